"""Conditions and recommendation of a Signal."""

from __future__ import annotations

from datetime import datetime

from inquest.api.conditions import ConditionValue, false, true, unknown
from inquest.api.investigation import Investigation
from inquest.api.signal import Recommendation, RecommendationSource, Urgency
from inquest.api.types import Resolution, SignalPhase
from inquest.controllers.signal.surroundings import SignalSurroundings
from inquest.core.signals.triage_input import TriageDecision


def recommendation(inv: Investigation, now: datetime) -> Recommendation:
    """What a person should do, from the ended Investigation."""
    status = inv.status
    cause = status.root_cause.summary if status.root_cause else None
    remediated = status.resolution is Resolution.REMEDIATED
    return Recommendation(
        diagnosis=(cause or status.message or "")[:500],
        action=(status.message or "")[:500],
        urgency=Urgency.NONE if remediated or status.resolution is Resolution.NO_ACTION_REQUIRED else Urgency.SOON,
        remediate=status.selected_workflow is not None,
        source=RecommendationSource.MODEL if asked_a_model(inv) else RecommendationSource.PLAYBOOK,
        cached=False,
        generated_at=now,
    )


def asked_a_model(inv: Investigation | None) -> bool:
    return bool(inv and inv.status.usage and inv.status.usage.turns)


def in_progress(case: str) -> ConditionValue:
    """Not in which phase: each would be one more write of every Signal of the case."""
    return false("InProgress", f"{case} is open")


def signal_conditions(surveyed: SignalSurroundings, decision: TriageDecision) -> dict[str, ConditionValue]:
    triaged = {
        SignalPhase.BLOCKED: false("Blocked", decision.message),
        SignalPhase.FAILED: false(
            decision.reason if decision.reason in ("Malformed", "ConsecutiveFailures") else "InternalError",
            decision.message,
        ),
    }.get(decision.phase) or true(str(decision.phase), decision.message)
    outside = decision.reason in ("OutOfScope", "ScopeUnknown")
    scope = false(decision.reason, decision.message) if outside else true("Managed")
    degraded = surveyed.resource is None or surveyed.resource.deleted
    warned = "; ".join(surveyed.warnings)
    context = true("Degraded", "the target could not be read") if degraded else true("Resolved", warned)
    ready = true("Ready") if triaged.status == "True" else false("Triaged", decision.message)
    case = decision.opened or decision.duplicate_of
    concluded = unknown("Pending") if triaged.status != "True" else in_progress(case.name if case else "its case")
    ended = decision.phase in (SignalPhase.IGNORED, SignalPhase.RESOLVED)
    return {
        "Triaged": triaged,
        "ContextResolved": context,
        "InScope": scope,
        "Ready": ready,
        "Concluded": unknown("Pending") if ended else concluded,
        "Recommended": false("NotAccepted") if decision.phase is not SignalPhase.ACCEPTED else unknown("Pending"),
    }
