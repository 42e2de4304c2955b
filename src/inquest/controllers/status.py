"""Writing a status: one server-side apply, with all conditions, only when something changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import structlog

from inquest.api.base import Resource
from inquest.api.conditions import ConditionValue, initial_conditions, set_conditions
from inquest.computing import compute
from inquest.controllers.ports import ControllerPorts
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Forbidden, Invalid
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json, ResourceKind

log = structlog.stdlib.get_logger(__name__)

POSITION: Final[tuple[str, ...]] = (
    *("phase", "reason", "subReason", "outcome", "resolution", "needsHumanReview", "humanReviewReason"),
    *("startedAt", "phaseStartedAt", "completedAt", "observedGeneration", "consumedBy"),
)
"""Fields of a status that hold a word of a closed list, a uid, a time or a number: where the object stands."""
SETTLED: Final[tuple[str, ...]] = ("outcome", "fingerprint", "context")
"""Fields that the CRD lets nobody take back."""
TOLD_ANEW: Final = frozenset({"Investigation"})
"""Kinds whose status follows from the journal; that of the others is read back, and none of it may be lost."""
MOST_WORDS: Final = 400

FRAME: Final = ("apiVersion", "kind", "metadata")
REFERENCES: Final = frozenset({"signalRef", "investigationRef", "approvalRef", "undoOf", "duplicateOf"})
"""Fields of a spec or a status that hold the name of an object of ours, and nothing else."""


PROGRESS_SECONDS: Final = 10.0
"""Shortest time between two writes that tell of progress alone."""


@dataclass
class ProgressPace:
    """When the status of a case may tell of progress; a new phase and the end never wait for it."""

    clock: Clock
    seconds: float = PROGRESS_SECONDS
    _written: dict[tuple[str, str], float] = field(default_factory=dict)
    """By namespace and name, in monotonic seconds."""

    def due_in(self, place: tuple[str, str]) -> float:
        """Seconds until the next write; 0 where it may be made now."""
        last = self._written.get(place)
        return 0.0 if last is None else max(0.0, last + self.seconds - self.clock.monotonic())

    def wrote(self, place: tuple[str, str]) -> None:
        """A status was written just now."""
        self._written[place] = self.clock.monotonic()

    def forget(self, place: tuple[str, str]) -> None:
        """Nobody works on it any more."""
        self._written.pop(place, None)


Gate = Callable[[Json], Redacted[Json]]
"""What strings pass: `strings` or `published` of a redactor."""


def redact_object(gate: Gate, obj: Json) -> Redacted[Json]:
    """An object to be written: its body redacted, names and references exact: a changed one names nothing."""
    clean = gate({key: value for key, value in obj.items() if key not in FRAME})
    body = {key: _with_references(obj[key], value) for key, value in clean.value.items()}
    return clean.carried({key: body.get(key, value) for key, value in obj.items()})


def _with_references(raw: Any, clean: Any) -> Any:
    if not isinstance(raw, Mapping):
        return clean
    return {**clean, **{key: value for key, value in raw.items() if key in REFERENCES}}


async def publish_status(
    ports: ControllerPorts,
    kind: ResourceKind,
    found: Resource,
    changes: Mapping[str, Any],
    verdicts: Mapping[str, ConditionValue],
    *,
    now: datetime,
    leave_out: tuple[str, ...] = (),
    fit: Callable[[Any], Any] = lambda status: status,
    on_refusal: Callable[[str], None] = lambda why: None,
) -> Json | None:
    """Apply the status with `changes` (by attribute name) and condition `verdicts`; None where nothing changed.

    The object's resourceVersion goes along: a stale replica's status is refused with Conflict. A status that the API
    server does not take as it is goes out in its least form, and `on_refusal` hears why; an admission policy or webhook
    may refuse it with any code. Where the right is missing the least form is refused too, and that error is raised.
    """
    generation = found.generation
    there = found.status.conditions or initial_conditions(kind.kind, generation=generation, now=now)
    conditions = set_conditions(there, kind.kind, verdicts, generation=generation, now=now)
    updated = found.status.model_copy(update={**changes, "conditions": conditions, "observed_generation": generation})

    def rendered() -> Redacted[Json] | None:
        status = _without(fit(updated).to_object(), leave_out)
        obj = redact_object(ports.redactor.published, _object(kind, found, status))
        # Compared as it is written: the redacted form of a text differs from the text at every look.
        return None if obj.value["status"] == _without(found.status.to_object(), leave_out) else obj

    obj = await compute(rendered)
    if obj is None:
        return None
    try:
        return await ports.status.apply_status(kind, obj)
    except (Invalid, Forbidden) as error:
        # The answer quotes what it refuses: what could be refused again is left out.
        why = "".join(char for char in str(error) if char.isascii() and char.isprintable())[:MOST_WORDS]
        log.warning("status refused", kind=kind.kind, namespace=found.namespace, name=found.name, error=why)
        on_refusal(why)
        taken = _without(found.status.to_object(), leave_out)
        # A missing right refuses every form: one try more tells it from an objection to what is said.
        most = 1 if isinstance(error, Forbidden) else 2
        return await _publish_least(ports, kind, found, taken, obj.value["status"], why, most)


async def _publish_least(
    ports: ControllerPorts, kind: ResourceKind, found: Resource, there: Json, refused: Json, why: str, most: int
) -> Json | None:
    """What was taken before with the new position or, where all of it can be told anew, the position alone."""
    has_message = "message" in type(found.status).model_fields
    told = {"message": f"the API server refuses the whole status: {why}"} if has_message else {}
    forms = [minimal_status(there, refused) | told]
    settled = {key: there[key] for key in SETTLED if key in there}
    forms += [minimal_status(settled, refused) | told] if kind.kind in TOLD_ANEW else []
    for form in forms[-most:]:
        least = redact_object(ports.redactor.published, _object(kind, found, form))
        if least.value["status"] == there:
            return None
        try:
            return await ports.status.apply_status(kind, least)
        except (Invalid, Forbidden) as error:
            last = error
    raise last


def minimal_status(accepted: Json, refused: Json) -> Json:
    """What the server took the last time, with where the object stands now."""
    moved = {key: refused[key] for key in POSITION if key in refused}
    conditions = [{**condition, "message": ""} for condition in refused.get("conditions") or ()]
    # A message that has not changed was taken before; a new one may be what is refused.
    known = {condition["type"]: condition for condition in accepted.get("conditions") or ()}
    kept = [known[one["type"]] if _is_same(known.get(one["type"]), one) else one for one in conditions]
    return {**accepted, **moved, "conditions": kept}


def _is_same(known: Json | None, one: Json) -> bool:
    return known is not None and {**known, "message": ""} == one


def _without(status: Json, leave_out: tuple[str, ...]) -> Json:
    return {key: value for key, value in status.items() if key not in leave_out}


def _object(kind: ResourceKind, found: Resource, status: Json) -> Json:
    meta = {"name": found.name, "namespace": found.namespace, "resourceVersion": found.metadata.resource_version}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "status": status}
