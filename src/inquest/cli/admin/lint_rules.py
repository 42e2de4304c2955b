"""What is wrong with objects that a person wrote, before any cluster sees them: `inquest lint`, without the files.

First the schema of the kind, then what the product makes of the object. CEL rules of the kinds are the API server's:
`UNCHECKED` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from inquest.api.base import API_VERSION, GROUP, Resource, timedelta_from_duration
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.investigation import Investigation
from inquest.api.signal import Signal
from inquest.api.types import Environment, Priority, Severity
from inquest.core.cluster.objects import spec_of
from inquest.core.selection.parameter_rules import PARAMETER_RULES
from inquest.core.selection.parameters import TARGET_PARAMETERS
from inquest.core.text import compile_re2

Json = Mapping[str, Any]
Path = tuple[str | int, ...]

KINDS: Final[Mapping[str, type[Resource]]] = {
    model.__name__: model for model in (Signal, Investigation, ActionType, RemediationWorkflow)
}
UNCHECKED: Final = (
    "CEL rules and admission policies are checked by the API server: kubectl apply --dry-run=server -f FILE"
)
LONGEST_RUN: Final = timedelta(hours=2)
PLACEHOLDER: Final = "0" * 64
LABELS: Final[Mapping[str, frozenset[str]]] = {
    "severity": frozenset(Severity),
    "environment": frozenset(one.value.lower() for one in Environment),
    "priority": frozenset(one.value.lower() for one in Priority),
}
"""Words that a Signal can have; a label that none has matches nothing."""


@dataclass(frozen=True)
class LintFault:
    """One thing that is wrong with one document."""

    document: int
    """Number of the document among those given."""
    path: Path
    """Field in it; empty: the whole."""
    rule: str
    warning: bool = False
    """Only surprises somebody; the object can be applied."""

    @property
    def field(self) -> str:
        """`spec.parameters[0].name`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).removeprefix(".") or "the whole"


@dataclass(frozen=True)
class LintInput:
    """All documents of one call: they may name each other."""

    documents: Sequence[object]
    actions: frozenset[str]
    """Action types that are there besides."""
    is_secret: Callable[[str], bool]
    """Whether a text holds what looks like a secret."""
    playbook_faults: Callable[[object], Iterable[tuple[Path, str]]]
    """What is wrong with a playbook, as field and rule."""


def find_faults(given: LintInput) -> tuple[LintFault, ...]:
    """Of every document, in their order."""
    return tuple(fault for number, body in enumerate(given.documents) for fault in _of_one(given, number, body))


def is_of_others(body: object) -> bool:
    """Whether it is an object of a kind that is not Inquest's; those are passed over."""
    if not isinstance(body, Mapping) or "kind" not in body or str(body["kind"]) in KINDS:
        return False
    return not str(body.get("apiVersion")).startswith(f"{GROUP}/")


def _of_one(given: LintInput, number: int, body: object) -> Iterator[LintFault]:
    if not isinstance(body, Mapping):
        yield LintFault(number, (), "must be an object")
        return
    if is_of_others(body):
        return
    # By its fields: a playbook is no object of Kubernetes.
    is_object = "kind" in body or "apiVersion" in body
    is_playbook = not is_object and not {"triggers", "investigation_steps"}.isdisjoint(body)
    if is_playbook:
        yield from (LintFault(number, path, rule) for path, rule in given.playbook_faults(body))
        return
    model = KINDS.get(str(body.get("kind")))
    if model is None:
        yield LintFault(number, ("kind",), f"must be one of {', '.join(KINDS)}{nearest(str(body.get('kind')), KINDS)}")
        return
    if body.get("apiVersion") != API_VERSION:
        yield LintFault(number, ("apiVersion",), f"must be {API_VERSION}")
    found = tuple(_schema(model, number, body))
    yield from found
    yield from (LintFault(number, path, "holds what looks like a secret") for path in _secrets(body, given.is_secret))
    if isinstance(body.get("spec"), Mapping):
        rules = RULES.get(model.__name__, ())
        yield from (one for rule in rules for one in _applied(rule, given, number, body, is_whole=not found))


def _applied(rule: Rule, given: LintInput, number: int, body: Json, *, is_whole: bool) -> tuple[LintFault, ...]:
    """What a rule finds; nothing where the schema has already said why it cannot look."""
    try:
        return tuple(rule(given, number, body["spec"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        if is_whole:
            raise
        return ()


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean …?`, or nothing."""
    close = get_close_matches(word, list(words), n=1)
    return f"; did you mean {close[0]}?" if close else ""


# --- the schema ------------------------------------------------------------------------------------------------------


def _schema(model: type[Resource], number: int, body: Json) -> Iterator[LintFault]:
    if "spec" not in body:
        yield LintFault(number, (), "needs spec")
        return
    spec: Any = model.model_fields["spec"].annotation
    try:
        spec.model_validate(body["spec"])
    except ValidationError as error:
        for one in error.errors(include_url=False, include_input=False):
            path = ("spec", *one["loc"])
            hint = _meant(spec, one["loc"]) if one["type"] == "extra_forbidden" else ""
            rule = f"there is no such field{hint}" if one["type"] == "extra_forbidden" else one["msg"]
            yield LintFault(number, path, rule)


def _meant(model: type[BaseModel], path: Path) -> str:
    """The nearest name of a field where an unknown one stands."""
    schema = model.model_json_schema()
    here = schema
    for part in path[:-1]:
        here = _deref(schema, here)
        here = here.get("items", {}) if isinstance(part, int) else here.get("properties", {}).get(part, {})
    return nearest(str(path[-1]), list(_deref(schema, here).get("properties", {})))


def _deref(schema: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    found = next((one for one in here.get("anyOf", ()) if "$ref" in one), here)
    if "$ref" not in found:
        return found
    name = str(found["$ref"]).rsplit("/", 1)[-1]
    target: dict[str, Any] = schema["$defs"][name]
    return target


def _secrets(value: object, is_secret: Callable[[str], bool], path: Path = ()) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _secrets(part, is_secret, (*path, str(key)))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _secrets(part, is_secret, (*path, number))
    elif isinstance(value, str) and is_secret(value):
        yield path


# --- what the product makes of a workflow ----------------------------------------------------------------------------

Rule = Callable[[LintInput, int, Json], Iterator[LintFault]]


def _action(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    here = {str(one["spec"].get("name")) for one in _of_kind(given, "ActionType")}
    known, name = given.actions | here, str(spec["actionType"])
    if name not in known:
        rule = f"there is no ActionType {name} in these files or in the catalogue{nearest(name, known)}"
        yield LintFault(number, ("spec", "actionType"), rule)


def _once(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    for other, body in enumerate(given.documents[:number]):
        if isinstance(body, Mapping) and body.get("kind") == "RemediationWorkflow":
            before = spec_of(body)
            if (before.get("id"), before.get("version")) == (spec["id"], spec["version"]):
                rule = (
                    f"{spec['id']} {spec['version']} stands in document {other + 1} too: a change needs a new version"
                )
                yield LintFault(number, ("spec", "version"), rule)


def _image(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    if PLACEHOLDER in str((spec.get("execution") or {}).get("image", "")):
        yield LintFault(number, ("spec", "execution", "image"), "its digest is a placeholder", warning=True)


def _timeout(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    text = (spec.get("execution") or {}).get("timeout")
    if text is not None and not timedelta(0) < timedelta_from_duration(str(text)) <= LONGEST_RUN:
        yield LintFault(number, ("spec", "execution", "timeout"), "must be longer than zero and at most 2h")


def _parameters(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    for place, one in enumerate(spec.get("parameters") or ()):
        name = str(one["name"])
        if one["required"] and "default" not in one and name not in TARGET_PARAMETERS and name not in PARAMETER_RULES:
            rule = f"no rule derives {name}: without a model the workflow is never chosen"
            rule += nearest(name, PARAMETER_RULES)
            yield LintFault(number, ("spec", "parameters", place, "name"), rule, warning=True)


def _patterns(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    for place, one in enumerate(spec.get("parameters") or ()):
        if fault := compile_re2(str(one.get("pattern") or ""))[1]:
            yield LintFault(number, ("spec", "parameters", place, "pattern"), fault)


def _labels(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    for label, words in LABELS.items():
        for place, word in enumerate(spec["labels"][label]):
            if word != "*" and str(word).lower() not in words:
                rule = f"no Signal has the {label} {word}{nearest(str(word).lower(), words)}"
                yield LintFault(number, ("spec", "labels", label, place), rule, warning=True)


def _undo(given: LintInput, number: int, spec: Json) -> Iterator[LintFault]:
    undo = spec.get("undo")
    ids = {str(one["spec"].get("id")) for one in _of_kind(given, "RemediationWorkflow")}
    if undo and str(undo["id"]) not in ids:
        rule = f"{undo['id']} is not in these files; it has to be in the catalogue{nearest(str(undo['id']), ids)}"
        yield LintFault(number, ("spec", "undo", "id"), rule, warning=True)


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "RemediationWorkflow": (_action, _once, _image, _timeout, _parameters, _patterns, _labels, _undo)
}


def _of_kind(given: LintInput, kind: str) -> list[Json]:
    bodies = (one for one in given.documents if isinstance(one, Mapping) and one.get("kind") == kind)
    return [one for one in bodies if isinstance(one.get("spec"), Mapping)]
