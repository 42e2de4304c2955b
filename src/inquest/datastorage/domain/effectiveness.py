"""How well a remediation did: a fold over its stored assessment events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from inquest.datastorage.wire.types import instant_of, text_in

WEIGHTS = {"health": 40, "alert": 35, "metrics": 25}
"""In hundredths, so that 1.0, 1.0 and 0.8 give exactly 0.95."""

LOOKS = {name: f"effectiveness.{name}.assessed" for name in WEIGHTS}
"""Types of the events that say how a component is."""

SPEC_DRIFT = "SpecDrift"
NO_DATA = "no_data"
IN_PROGRESS = "in_progress"


Told = tuple[int, str, str, Any]
"""An event of category `effectiveness`: microseconds since 1970, event id, event type, payload."""


class StoredComponent(NamedTuple):
    """What is known of one component; the score lies in [0, 1], or is None."""

    assessed: bool = False
    score: float | None = None
    details: str | None = None


UNASSESSED = StoredComponent()


class StoredAssessment(NamedTuple):
    """The state after all events of one correlation id."""

    components: Mapping[str, StoredComponent]
    pre_hash: str | None
    post_hash: str | None
    hash_match: bool | None
    reason: str | None
    resolved: bool | None
    """Whether the signal went away, by the first alert assessment."""
    health_checks: Mapping[str, Any] | None
    metric_deltas: Mapping[str, Any] | None
    named_post_hashes: frozenset[str]
    """Every post hash that any event named: the link to what was tried before."""
    assessed_at: datetime | None
    skipped: int
    """Events without data that can be read."""

    @property
    def status(self) -> str:
        """`no_data`, `in_progress`, or the reason of the completed assessment."""
        if self.reason:
            return self.reason
        return IN_PROGRESS if any(part.assessed for part in self.components.values()) else NO_DATA

    @property
    def score(self) -> float | None:
        """Weighted mean of what is assessed and scored; SpecDrift forces 0.0, which means unreliable, not failed."""
        if self.reason == SPEC_DRIFT:
            return 0.0
        scored = [
            (WEIGHTS[n], part.score) for n, part in self.components.items() if part.assessed and part.score is not None
        ]
        return sum(w * s for w, s in scored) / sum(w for w, _ in scored) if scored else None


def fold_events(events: Iterable[Told]) -> StoredAssessment:
    """Events in the order (timestamp, event id) become an assessment; one without an object for data is skipped."""
    told: dict[str, list[Mapping[str, Any]]] = {}
    named: set[str | None] = set()
    last, skipped = None, 0
    for at, _, kind, data in events:
        if not isinstance(data, dict):
            skipped += 1
            continue
        told.setdefault(kind, []).append(data)
        named.add(text_in(data, "post_remediation_spec_hash"))
        last = at
    looks = {name: told.get(kind, ()) for name, kind in LOOKS.items()}
    pre, post, match = _hashes(told.get("effectiveness.hash.computed", ()))
    return StoredAssessment(
        components={name: _component(seen) if seen else UNASSESSED for name, seen in looks.items()},
        pre_hash=pre,
        post_hash=post,
        hash_match=match,
        reason=_reason(told.get("effectiveness.assessment.completed", ())),
        resolved=_resolved(looks["alert"]),
        health_checks=_newest_object(looks["health"], "health_checks"),
        metric_deltas=_newest_object(looks["metrics"], "metric_deltas"),
        named_post_hashes=frozenset(filter(None, named)),
        assessed_at=None if last is None else instant_of(last),
        skipped=skipped,
    )


def _component(looks: Sequence[Mapping[str, Any]]) -> StoredComponent:
    """Once assessed it stays so; a null or a text leaves the score of before."""
    assessed, score, details = False, None, None
    for data in looks:
        assessed = assessed or data.get("assessed") is True
        new, text = data.get("score"), data.get("details")
        score = float(new) if isinstance(new, int | float) and not isinstance(new, bool) else score
        details = text if isinstance(text, str) else details
    return StoredComponent(assessed, score, details)


def _hashes(computed: Sequence[Mapping[str, Any]]) -> tuple[str | None, str | None, bool | None]:
    """Of the last event that has a pre or a post hash: all three are replaced together."""
    for data in reversed(computed):
        pre, post = text_in(data, "pre_remediation_spec_hash"), text_in(data, "post_remediation_spec_hash")
        if pre or post:
            match = data.get("hash_match")
            return pre, post, match if isinstance(match, bool) else None
    return None, None, None


def _reason(completed: Sequence[Mapping[str, Any]]) -> str | None:
    """The last one, unless the target changed under the assessment."""
    reasons = [reason for data in completed if (reason := text_in(data, "reason"))]
    return SPEC_DRIFT if SPEC_DRIFT in reasons else next(reversed(reasons), None)


def _resolved(alerts: Sequence[Mapping[str, Any]]) -> bool | None:
    """By the first look alone."""
    resolution = alerts[0].get("alert_resolution") if alerts else None
    resolved = resolution.get("alert_resolved") if isinstance(resolution, dict) else None
    return resolved if isinstance(resolved, bool) else None


def _newest_object(looks: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((data[name] for data in reversed(looks) if isinstance(data.get(name), dict)), None)


def effectiveness_answer(correlation_id: str, state: StoredAssessment) -> dict[str, Any]:
    """The body of `GET /api/v1/effectiveness/{correlation_id}` without its clock."""
    components: dict[str, Any] = {}
    for name, part in state.components.items():
        components |= {f"{name}_assessed": part.assessed, f"{name}_score": part.score}
        components |= {f"{name}_details": part.details} if part.details is not None else {}
    comparison = {
        "pre_remediation_spec_hash": state.pre_hash,
        "post_remediation_spec_hash": state.post_hash,
        "hash_match": state.hash_match,
    }
    return {
        "correlation_id": correlation_id,
        "score": state.score,
        "components": components,
        "hash_comparison": {name: value for name, value in comparison.items() if value is not None},
        "assessment_status": state.status,
    }
