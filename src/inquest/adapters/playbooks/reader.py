"""Playbooks out of files: those that ship with the product, and a folder of the user's own.

A file that cannot be used is named, with the line where that is known, and left out; the others are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Final

import re2
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inquest.adapters.playbooks.words import KINDS, STATUSES, TERMINATIONS, WELL
from inquest.adapters.yaml_fault import line_of_field
from inquest.core.diagnosis.playbooks import Pattern, Playbook, Trigger

SHIPPED: Final = files("inquest.adapters.playbooks") / "library"
MAX_FILE: Final = 65_536
"""Bytes of one file."""

Words = Annotated[str, Field(min_length=1, max_length=500)]


class TriggerFile(BaseModel):
    """One entry of `triggers`; every field that is there must hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    pod_status_regex: Words | None = None
    event_reason_regex: Words | None = None
    event_message_regex: Words | None = None
    last_termination_regex: Words | None = None
    condition_regex: Words | None = None
    finding_regex: Words | None = None
    kind_regex: Words | None = None
    min_age_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None


class BookFile(BaseModel):
    """One file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,62}$")]
    triggers: Annotated[list[TriggerFile], Field(min_length=1, max_length=20)]
    investigation_steps: Annotated[list[Words], Field(min_length=1, max_length=12)]
    expected_evidence: Annotated[list[Words], Field(max_length=12)] = []
    recommended_fix_template: Annotated[str, Field(max_length=4_000)] = ""


@dataclass(frozen=True)
class Library:
    """What could be used, by name, and what could not."""

    books: tuple[Playbook, ...]
    faults: tuple[str, ...] = ()
    """`file:line: field: rule`."""


@dataclass
class _Folder:
    """One source while it is read."""

    books: dict[str, Playbook] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def read_library(own: Path | None = None) -> Library:
    """The shipped playbooks and the user's; one of the same name replaces the shipped one."""
    shipped = _read(SHIPPED)
    mine = _read(own) if own is not None else _Folder()
    books = shipped.books | mine.books
    return Library(tuple(books[name] for name in sorted(books)), (*shipped.faults, *mine.faults))


def _read(place: Traversable) -> _Folder:
    folder = _Folder()
    try:
        found = sorted(
            (one for one in place.iterdir() if one.name.endswith((".yaml", ".yml"))), key=lambda one: one.name
        )
    except OSError as error:
        folder.faults.append(f"{place}: {error.strerror or type(error).__name__}")
        return folder
    for one in sorted(found, key=lambda one: one.name):
        _add_to(one, folder)
    return folder


def _add_to(one: Traversable, folder: _Folder) -> None:
    try:
        book = book_of(one.read_bytes())
    except _Unusable as error:
        folder.faults += (
            f"{one.name}:{line}: {rule}" if line else f"{one.name}: {rule}" for rule, line in error.faults
        )
        return
    except OSError as error:
        folder.faults.append(f"{one.name}: {error.strerror or type(error).__name__}")
        return
    if book.name in folder.books:
        folder.faults.append(f"{one.name}: name: {book.name} is taken by another file of this folder")
    else:
        folder.books[book.name] = book


class _Unusable(Exception):
    """A file that says nothing that can be used."""

    def __init__(self, *faults: tuple[str, int]) -> None:
        super().__init__("; ".join(rule for rule, _ in faults))
        self.faults = faults
        """Rule and line of each; 0: not known."""


def book_of(content: bytes) -> Playbook:
    """One playbook; `_Unusable` names fields, rules, lines."""
    if len(content) > MAX_FILE:
        raise _Unusable((f"larger than {MAX_FILE} bytes", 0))
    node, data = _parsed(content)
    faults = find_book_faults(data)
    if faults:
        raise _Unusable(
            *((f"{'.'.join(map(str, place))}: {rule}", line_of_field(node, place)) for place, rule in faults)
        )
    said = BookFile.model_validate(data)
    triggers = tuple(map(_trigger, said.triggers))
    steps, expected = tuple(said.investigation_steps), tuple(said.expected_evidence)
    return Playbook(said.name, triggers, steps, expected, said.recommended_fix_template)


def find_book_faults(data: object) -> tuple[tuple[tuple[int | str, ...], str], ...]:
    """All that is wrong with a playbook, as field and rule."""
    try:
        said = BookFile.model_validate(data)
    except ValidationError as error:
        return tuple((one["loc"], one["msg"]) for one in error.errors())
    return tuple(
        (("triggers", number, *place), rule)
        for number, one in enumerate(said.triggers)
        for place, rule in _trigger_faults(one)
    )


def _parsed(content: bytes) -> tuple[Any, Any]:
    try:
        text = content.decode()
        return yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise _Unusable((f"not UTF-8 at byte {error.start}", 0)) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise _Unusable((error.problem or "not YAML", line)) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _Unusable(("not YAML", 0)) from error


# --- triggers ------------------------------------------------------------------------------------------------


def _trigger(said: TriggerFile) -> Trigger:
    patterns = {part: _compiled(text)[0] for name, part in _FIELDS.items() if (text := getattr(said, name)) is not None}
    age = None if said.min_age_seconds is None else timedelta(seconds=said.min_age_seconds)
    return Trigger(**patterns, min_age=age)


def _trigger_faults(said: TriggerFile) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Of its fields, or where each is well, of them together."""
    found = tuple(((name,), rule) for name, part in _FIELDS.items() if (rule := _pattern_fault(said, name, part)))
    return found or tuple(((), rule) for rule in _unfit(_trigger(said)))


def _unfit(trigger: Trigger) -> Iterator[str]:
    """What is wrong with its fields together."""
    if not (trigger.of_object or trigger.of_event or trigger.finding is not None):
        yield "names nothing that can be seen"
    if trigger.finding is not None and trigger.fields > 1 + (trigger.kind is not None):
        yield "finding_regex takes only kind_regex beside it"
    of_pods = trigger.status or trigger.termination or (trigger.of_object and trigger.of_event)
    if of_pods and trigger.kind is not None and not trigger.kind.search("Pod"):
        yield "can never fire: only a pod has all of that"


def _pattern_fault(said: TriggerFile, name: str, part: str) -> str:
    text = getattr(said, name)
    if text is None:
        return ""
    pattern, fault = _compiled(text)
    return fault or next(_faults(part, pattern), "")


_FIELDS: Final[Mapping[str, str]] = {
    "pod_status_regex": "status",
    "last_termination_regex": "termination",
    "condition_regex": "condition",
    "event_reason_regex": "reason",
    "event_message_regex": "message",
    "finding_regex": "finding",
    "kind_regex": "kind",
}

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"status": STATUSES, "termination": TERMINATIONS, "kind": KINDS}
"""Fields whose words are known: a pattern that hits none of them can never fire."""


def _faults(part: str, pattern: Pattern) -> Iterator[str]:
    yield from (f"fires on health: it hits {word}" for word in WELL.get(part, ()) if pattern.search(word))
    if part in _WORDS and not any(pattern.search(word) for word in _WORDS[part]):
        yield "can never fire: it hits no word that is ever seen there"


def _compiled(text: str) -> tuple[Pattern, str]:
    """By an engine of linear time: what would need backtracking is refused; gives the fault beside it."""
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(text, options), ""
    except re2.error as error:
        said = error.args[0] if error.args else "no pattern"
        return None, said.decode() if isinstance(said, bytes) else str(said)
