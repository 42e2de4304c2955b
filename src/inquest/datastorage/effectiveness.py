"""How well a remediation did: a fold over its stored assessment events (section 9). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any

WEIGHTS = {"health": 40, "alert": 35, "metrics": 25}
"""In hundredths, so that 1.0, 1.0 and 0.8 give exactly 0.95."""

SPEC_DRIFT = "SpecDrift"
NO_DATA = "no_data"
IN_PROGRESS = "in_progress"


@dataclass(frozen=True)
class AssessmentEvent:
    """One event of category `effectiveness`; `data` is its payload."""

    event_type: str
    at: datetime
    data: Mapping[str, Any] | None


@dataclass(frozen=True)
class Component:
    """What is known of one component; the score lies in [0, 1], or is None."""

    assessed: bool = False
    score: float | None = None
    details: str | None = None


@dataclass(frozen=True)
class Assessment:
    """The state after all events of one correlation id."""

    components: Mapping[str, Component] = field(default_factory=lambda: {name: Component() for name in WEIGHTS})
    pre_hash: str | None = None
    post_hash: str | None = None
    hash_match: bool | None = None
    reason: str | None = None
    resolved: bool | None = None
    """Whether the signal went away, by the first alert assessment."""
    health_checks: Mapping[str, Any] | None = None
    metric_deltas: Mapping[str, Any] | None = None
    named_post_hashes: frozenset[str] = frozenset()
    """Every post hash that any event named: the link of section 8.2."""
    alert_seen: bool = False
    assessed_at: datetime | None = None

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


def fold(events: Iterable[AssessmentEvent]) -> Assessment:
    """Events in the order (timestamp, event id) become an assessment."""
    return reduce(_step, events, Assessment())


def _step(state: Assessment, event: AssessmentEvent) -> Assessment:
    if not isinstance(event.data, Mapping):
        return state
    noted = _with_link(replace(state, assessed_at=event.at), event.data)
    effect = _EFFECTS.get(event.event_type)
    return effect(noted, event.data) if effect else noted


def _with_link(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    post = data.get("post_remediation_spec_hash")
    named = {post} if isinstance(post, str) and post else set()
    return replace(state, named_post_hashes=state.named_post_hashes | named)


def _health(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    checks = data.get("health_checks")
    return replace(
        _assessed(state, "health", data), health_checks=checks if isinstance(checks, dict) else state.health_checks
    )


def _alert(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    next_state = _assessed(state, "alert", data)
    if state.alert_seen:
        return next_state
    resolution = data.get("alert_resolution")
    resolved = resolution.get("alert_resolved") if isinstance(resolution, dict) else None
    return replace(next_state, alert_seen=True, resolved=resolved if isinstance(resolved, bool) else None)


def _metrics(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    deltas = data.get("metric_deltas")
    return replace(
        _assessed(state, "metrics", data), metric_deltas=deltas if isinstance(deltas, dict) else state.metric_deltas
    )


def _assessed(state: Assessment, name: str, data: Mapping[str, Any]) -> Assessment:
    old, score, details = state.components[name], data.get("score"), data.get("details")
    new = Component(
        old.assessed or data.get("assessed") is True,
        float(score) if isinstance(score, int | float) and not isinstance(score, bool) else old.score,
        details if isinstance(details, str) else old.details,
    )
    return replace(state, components={**state.components, name: new})


def _hash(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    pre, post = _text(data, "pre_remediation_spec_hash"), _text(data, "post_remediation_spec_hash")
    if not pre and not post:
        return state
    match = data.get("hash_match")
    return replace(state, pre_hash=pre, post_hash=post, hash_match=match if isinstance(match, bool) else None)


def _completed(state: Assessment, data: Mapping[str, Any]) -> Assessment:
    reason = _text(data, "reason")
    return state if state.reason == SPEC_DRIFT or not reason else replace(state, reason=reason)


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) and value else None


_EFFECTS = {
    "effectiveness.health.assessed": _health,
    "effectiveness.alert.assessed": _alert,
    "effectiveness.metrics.assessed": _metrics,
    "effectiveness.hash.computed": _hash,
    "effectiveness.assessment.completed": _completed,
}


def answer(correlation_id: str, state: Assessment) -> dict[str, Any]:
    """The body of `GET /api/v1/effectiveness/{correlation_id}` without its clock (section 9.2)."""
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
