"""What any notice becomes, and how the JSON of a sender is read: bounded, checked field by field, never raised.

`alertmanager` reads alerts and specs with it, `events` the events of the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from inquest.api.signal import SignalContent
from inquest.core.signals.classification import PROACTIVE_NAMES

Json = dict[str, Any]
Labels = Mapping[str, str]

MOST_NOTICES: Final = 500
"""Alerts, or specs, of one request."""
MOST_ENTRIES: Final = 64
MOST_KEY: Final = 253
MOST_NAME: Final = 253
MOST_NAMESPACE: Final = 63
MOST_SOURCE: Final = 63
MOST_CLUSTER: Final = 63
MOST_URL: Final = 2048
MOST_TEXT: Final[Mapping[str, int]] = {"message": 4096, "description": 8192}
MOST_VALUE: Final[Mapping[str, int]] = {"labels": 1024, "annotations": 4096}
"""Characters, as the schema of a Signal has them."""
MOST_SHOWN: Final = 200
YEARS: Final = range(1970, 3000)
"""Of times that the schema takes."""


@dataclass(frozen=True)
class EventSighting:
    """How often an event of the cluster was seen, and when last."""

    key: str
    """Of target and reason: what has it is one Signal for a while."""
    count: int
    last: datetime


@dataclass(frozen=True)
class Firing:
    """Something is wrong; `name` is that of the Signal."""

    name: str
    content: SignalContent
    sighting: EventSighting | None = None
    """Of an event, which counts by itself; None for what is one occurrence each time that it is told."""


@dataclass(frozen=True)
class Resolved:
    """It is over since then."""

    name: str
    at: datetime


@dataclass(frozen=True)
class RefusedPayload:
    """Cannot be read: which field breaks which rule; an empty field is the whole."""

    field: str
    rule: str
    too_many: bool = False


@dataclass(frozen=True)
class DroppedEvent:
    """Can be read and is not worth a Signal: why, in words."""

    why: str


Told = Firing | Resolved | RefusedPayload | DroppedEvent
Batch = tuple[Told, ...] | RefusedPayload


@dataclass(frozen=True)
class ServedKind:
    """A kind that the API server serves."""

    kind: str
    namespaced: bool


@dataclass(frozen=True)
class IntakeContext:
    """What is known beside the payload itself."""

    received: datetime
    cluster: str
    """Where no label names one."""
    served: Mapping[str, ServedKind]
    """By the lower-case word of a kind: those of `words_of` that mean one."""
    proactive: Mapping[str, str] = field(default_factory=lambda: PROACTIVE_NAMES)
    """Names of predictions and the fault that each foresees."""


# --- texts and limits --------------------------------------------------------------------------------------------


_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_UNUSABLE: Final = re.compile(r"[/\\\x00-\x1f\x7f]|\.\.")
NAME_RULE: Final = "must have no slash, backslash, `..` or control character and at most {} characters"


def is_name(text: str, most: int = MOST_NAME) -> bool:
    """Whether it can be the name of an object, in the bounds of 11.2."""
    return 0 < len(text) <= most and not _UNUSABLE.search(text)


def is_kind(text: str) -> bool:
    """Whether it can be a kind."""
    return bool(_KIND.fullmatch(text))


TIME_RULE: Final = f"must be a time of RFC 3339 between {YEARS.start} and {YEARS.stop - 1}"


class PayloadFault(Exception):
    """A field of a notice and the rule that it breaks."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field, self.rule = field, rule


def fit_spec(spec: Json) -> Json:
    """The spec of a Signal with texts and maps cut to what the schema takes; applied again to what was redacted."""
    texts = {key: str(spec[key])[:most] for key, most in MOST_TEXT.items() if key in spec}
    maps = {key: _cut(spec[key], most) for key, most in MOST_VALUE.items() if key in spec}
    return {**spec, **texts, **maps}


def _cut(found: Labels, most: int) -> dict[str, str]:
    # The source's own word for the severity is read again at triage: it is never among those that are left out.
    kept = sorted((key for key in found if len(key) <= MOST_KEY), key=lambda key: key != "severity")
    return {key: found[key][:most] for key in kept[:MOST_ENTRIES]}


def texts_of(alert: Json, field: str) -> dict[str, str]:
    """A field that holds texts by text; absent is empty. Fault."""
    found = alert.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PayloadFault(field, "must be an object")
    for key, value in found.items():
        if not isinstance(value, str):
            raise PayloadFault(f"{field}.{key}", "must be a text")
    return {drop_surrogates(key): drop_surrogates(value) for key, value in found.items()}


def time_of(found: object, field: str) -> datetime:
    """A time of RFC 3339, in whole seconds; one without a zone is UTC. Fault."""
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0) if at else None
    except (ValueError, OverflowError):
        at = None
    if at is None or at.year not in YEARS:
        raise PayloadFault(field, TIME_RULE)
    return at


def drop_surrogates(text: str) -> str:
    """Halves of surrogate pairs, which JSON can hold and no UTF-8 can, replaced."""
    return text.encode("utf-8", "replace").decode()


def refuse_payload(field: str, rule: str, *, too_many: bool = False) -> RefusedPayload:
    """A refusal whose texts can be shown."""
    return RefusedPayload(drop_surrogates(field)[:MOST_SHOWN], drop_surrogates(rule)[:MOST_SHOWN], too_many)


def read_each(payload: object, read: Callable[[object, str, IntakeContext], Told], around: IntakeContext) -> Batch:
    """One thing, or a list of them in their order, each read with its place."""
    if not isinstance(payload, list):
        return (read(payload, "", around),)
    if len(payload) > MOST_NOTICES:
        return refuse_payload("", f"at most {MOST_NOTICES} in one request", too_many=True)
    return tuple(read(item, f"[{number}]", around) for number, item in enumerate(payload))


def schema_fault(error: ValidationError, place: str) -> RefusedPayload:
    """The first thing that the schema of a Signal has against it."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return refuse_payload(field_path(place, *first["loc"]), first["msg"])


def field_path(place: str, *parts: int | str) -> str:
    """The path of a field within a place."""
    return ".".join(str(part) for part in (place, *parts) if part != "")
