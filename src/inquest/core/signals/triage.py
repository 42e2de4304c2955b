"""Does this Signal deserve an Investigation? Fourteen reasons against it, in order; the first one wins.

Read `TRIAGE` from top to bottom. Each rule looks at the same frozen `TriageInput` and either
gives the decision or None. What nobody objects to is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from inquest.api.types import Resolution, SignalPhase, SourceType
from inquest.core.cluster.objects import UNKNOWN_KIND
from inquest.core.history.chain_guards import chain_block
from inquest.core.signals.holds import counts_as_failure, failures_in_a_row
from inquest.core.signals.noise import is_chatter, is_own_report
from inquest.core.signals.scope import is_managed, target_reaches
from inquest.core.signals.triage_input import AcceptedSignal, EndedCase, OpenCase, TriageDecision, TriageInput

SHORT_LIVED_KINDS: Final = frozenset({"Pod", "ReplicaSet", "Job"})
"""Kinds of which a missing one is replaced by design, so that its alert is about nothing any more."""
OWN_GROUP: Final = "inquest.dev/"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"

SCOPE_LOOK: Final = timedelta(seconds=5)
MAX_SCOPE_LOOK: Final = timedelta(minutes=5)
MANUAL_REVIEW_PENDING: Final = "ManualReviewPending"
REVIEW_HOLD: Final = timedelta(hours=24)
RATE_WINDOW: Final = timedelta(minutes=1)

Rule = Callable[[TriageInput], TriageDecision | None]


def triage_signal(seen: TriageInput) -> TriageDecision:
    """The first rule that objects decides; nobody does: accepted."""
    rules = (rule for rule in TRIAGE if not (seen.by_person and rule in NOT_FOR_A_PERSON))
    return next((found for rule in rules if (found := rule(seen))), ACCEPTED)


ACCEPTED: Final = TriageDecision(SignalPhase.ACCEPTED, "Accepted", "an investigation is due")


def earlier_answer(seen: TriageInput) -> str:
    """What a person is told who asks once more; empty where nobody has looked yet, or no person asks."""
    newest = _newest(seen) if seen.by_person else None
    if newest is None:
        return ""
    end = newest.resolution or newest.reason or newest.phase
    return f"an earlier case ended with {end} at {newest.ended_at:%Y-%m-%d %H:%M:%SZ}"


# --- the rules, in the order of 9.1 -----------------------------------------------------------------------


def out_of_reach(seen: TriageInput) -> TriageDecision | None:
    """Who wrote it may not ask about that place: whatever is there, and whether anything is, they are told the same."""
    message = next((text for holds, text in target_reaches(seen) if holds), "")
    return (resolved(seen) or _blocked(seen, "OutOfScope", message, _scope_look(seen))) if message else None


def malformed(seen: TriageInput) -> TriageDecision | None:
    """The target cannot exist."""
    fault = next((text for holds, text in _faults(seen) if holds), "")
    return TriageDecision(SignalPhase.FAILED, "Malformed", fault) if fault else None


def resolved(seen: TriageInput) -> TriageDecision | None:
    """The source says that it is over."""
    if seen.spec.resolved_time is None:
        return None
    return TriageDecision(SignalPhase.RESOLVED, "Resolved", "the source says that the problem is over")


def noise(seen: TriageInput) -> TriageDecision | None:
    """Nobody wants to hear of it: heartbeats, normal events, our own doings."""
    why = next((text for holds, text in _noises(seen) if holds), "")
    return TriageDecision(SignalPhase.IGNORED, "Noise", why) if why else None


def target_gone(seen: TriageInput) -> TriageDecision | None:
    """Its pod has been replaced meanwhile."""
    if seen.target_exists or seen.spec.target.kind not in SHORT_LIVED_KINDS:
        return None
    return TriageDecision(SignalPhase.IGNORED, "TargetGone", f"{seen.spec.target.display} no longer exists")


def out_of_scope(seen: TriageInput) -> TriageDecision | None:
    """Nobody has put the target into Inquest's care."""
    if seen.scope_unknown or is_managed(seen.scope_labels, require_label=seen.rules.require_label):
        return None
    message = 'label the namespace with inquest.dev/managed="true" to have it looked after'
    return _blocked(seen, "OutOfScope", message, _scope_look(seen))


def scope_unknown(seen: TriageInput) -> TriageDecision | None:
    """Not knowing whether we may look is a no."""
    if not seen.scope_unknown:
        return None
    return _blocked(seen, "ScopeUnknown", "the scope labels could not be read", _scope_look(seen))


def duplicate_open(seen: TriageInput) -> TriageDecision | None:
    """An older case looks at the same thing."""
    mine = next((case for case in seen.open_cases if case.signal == seen.name), None)
    others = [
        case for case in seen.open_cases if case.signal != seen.name and (mine is None or _age(case) < _age(mine))
    ]
    if not others or not seen.has_case:
        return None
    case = min(others, key=_age).investigation
    return TriageDecision(SignalPhase.DUPLICATE, "DuplicateOpen", f"{case.name} is looking at it", duplicate_of=case)


def chain(seen: TriageInput) -> TriageDecision | None:
    """What was tried before did not help (rows 8 and 9: IneffectiveChain, RecurrenceLimit)."""
    found = chain_block(seen.history, seen.spec_hash, seen.now, seen.rules.chain) if seen.has_case else None
    return _blocked(seen, found.reason, found.message, found.until) if found else None


def manual_review_pending(seen: TriageInput) -> TriageDecision | None:
    """A person was asked and has not answered."""
    newest = _newest(seen)
    if newest is None or newest.resolution is not Resolution.MANUAL_REVIEW_REQUIRED:
        return None
    if newest.reviewed or newest.workflow_came:
        return None
    told = "kubectl annotate investigation -n {} {} inquest.dev/reviewed=yes".format(*newest.place)
    message = f"the last investigation asked for a person. When you have looked: {told}"
    return _blocked(seen, MANUAL_REVIEW_PENDING, message, newest.ended_at + REVIEW_HOLD)


def consecutive_failures(seen: TriageInput) -> TriageDecision | None:
    """Investigating it has failed again and again; after the block the next Signal is one probe."""
    here = (case for case in seen.ended if case.namespace == seen.target_namespace)
    failures = failures_in_a_row(here) if seen.has_case else ()
    if len(failures) < seen.rules.consecutive_failures:
        return None
    until, message = failures[0].ended_at + seen.rules.failure_block, f"{len(failures)} investigations in a row failed"
    if seen.now >= until and seen.blocked_for == "ConsecutiveFailures":
        return TriageDecision(SignalPhase.FAILED, "ConsecutiveFailures", message)
    return _blocked(seen, "ConsecutiveFailures", message, until)


def exponential_backoff(seen: TriageInput) -> TriageDecision | None:
    """The last case failed a moment ago."""
    newest = _newest(seen)
    if newest is None or newest.next_allowed is None or not counts_as_failure(newest):
        return None
    return _blocked(seen, "ExponentialBackoff", "the last investigation failed", newest.next_allowed)


def cooldown(seen: TriageInput) -> TriageDecision | None:
    """The last case found that there is nothing to do."""
    newest = _newest(seen)
    if newest is None or newest.next_allowed is None or newest.resolution not in _HELD:
        return None
    return _blocked(seen, "Cooldown", "the last investigation found nothing to do", newest.next_allowed)


def rate_limited(seen: TriageInput) -> TriageDecision | None:
    """Too many at once."""
    here = [accept for accept in seen.accepted if accept.namespace == seen.target_namespace]
    slots = (_free_slot(seen.accepted, seen.rules.rate), _free_slot(here, seen.rules.rate_per_namespace))
    until = max((slot for slot in slots if slot and slot > seen.now), default=None)
    return _blocked(seen, "RateLimited", "too many Signals were accepted in the last minute", until)


TRIAGE: Final[tuple[Rule, ...]] = (
    out_of_reach,
    malformed,
    resolved,
    noise,
    target_gone,
    out_of_scope,
    scope_unknown,
    duplicate_open,
    chain,
    manual_review_pending,
    consecutive_failures,
    exponential_backoff,
    cooldown,
    rate_limited,
)
"""Rows 1 to 14 of 9.1; rows 8 and 9 are one rule with two words, and what of row 5 needs no look comes first."""

NOT_FOR_A_PERSON: Final = frozenset(
    {noise, chain, manual_review_pending, consecutive_failures, exponential_backoff, cooldown}
)
"""What keeps alerts from asking the same again does not keep a person from it; the rate still holds."""


# --- what they use ------------------------------------------------------------------------------------------


_HELD: Final = (Resolution.NO_ACTION_REQUIRED, Resolution.DRY_RUN)


def _faults(seen: TriageInput) -> Iterable[tuple[bool, str]]:
    target, named = seen.spec.target, seen.spec.target.kind != UNKNOWN_KIND
    return (
        (bool(seen.never_read), seen.never_read),
        (named and not seen.kind_known, f"no API group of this cluster serves {target.kind}"),
        (named and seen.kind_known and seen.namespaced and not target.namespace, f"{target.kind} needs a namespace"),
        (bool(target.namespace) and not seen.namespace_exists, f"there is no namespace {target.namespace}"),
    )


def _noises(seen: TriageInput) -> Iterable[tuple[bool, str]]:
    spec, about_event = seen.spec, seen.spec.source.type is SourceType.KUBERNETES_EVENT
    spoken = (spec.message or spec.description or "") if spec.source.type is SourceType.MANUAL else ""
    return (
        (spec.name in seen.rules.noise, f"{spec.name} is on the noise list"),
        (spec.labels.get("severity", "").lower() == "none", "its severity is none"),
        (about_event and seen.event_type == "Normal", "a Normal event is no fault"),
        (about_event and _is_ours(seen), "it is about an object of Inquest's own"),
        (is_chatter(spoken), "it asks for nothing"),
        (is_own_report(spoken), "it is a message of Inquest's own"),
    )


def _is_ours(seen: TriageInput) -> bool:
    labels = seen.scope_labels[0] if seen.scope_labels else {}
    return (seen.spec.target.api_version or "").startswith(OWN_GROUP) or labels.get(MANAGED_BY) == "inquest"


def _scope_look(seen: TriageInput) -> datetime:
    # 2 ** 6 is past the bound: a larger exponent would only overflow.
    return seen.now + min(SCOPE_LOOK * 2.0 ** min(seen.blocked_count, 6), MAX_SCOPE_LOOK)


def _blocked(seen: TriageInput, reason: str, message: str, until: datetime | None) -> TriageDecision | None:
    held = until is not None and until > seen.now
    return TriageDecision(SignalPhase.BLOCKED, reason, message, until) if held else None


def _age(case: OpenCase) -> tuple[datetime, str]:
    return case.opened_at, case.investigation.name


def _newest(seen: TriageInput) -> EndedCase | None:
    return seen.ended[0] if seen.ended and seen.has_case else None


def _free_slot(accepted: Iterable[AcceptedSignal], limit: int) -> datetime | None:
    times = sorted(accept.at for accept in accepted)
    return times[-limit] + RATE_WINDOW if len(times) >= limit else None
