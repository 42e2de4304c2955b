"""Does this Signal deserve an Investigation? Fourteen reasons against it, in order; the first one wins.

Read `TRIAGE` from top to bottom (resources, section 9.1). Each rule looks at the same frozen `Observed` and either
gives the decision or None. What nobody objects to is accepted. After a case has ended, `next_allowed` says when its
fingerprint may have another one (resources, section 9.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from inquest.api.signal import SignalContent
from inquest.api.types import (
    EffectivenessReason,
    ObjectRef,
    Phase,
    Reason,
    Resolution,
    SignalPhase,
    SourceType,
    SubReason,
)
from inquest.core.history.history import ChainRules, History, chain_block
from inquest.core.signals.classification import UNKNOWN_KIND, is_managed
from inquest.core.signals.noise import is_chatter, is_own_report
from inquest.core.signals.scope import is_outside

BUILT_IN_NOISE: Final = frozenset({"Watchdog", "InfoInhibitor", "DeadMansSwitch"})
BUILT_IN_PROTECTED: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Investigated like others, never remediated; the operator's and the execution namespace come on top."""
SHORT_LIVED_KINDS: Final = frozenset({"Pod", "ReplicaSet", "Job"})
"""Kinds of which a missing one is replaced by design, so that its alert is about nothing any more."""
OWN_GROUP: Final = "inquest.dev/"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"

SCOPE_LOOK: Final = timedelta(seconds=5)
MAX_SCOPE_LOOK: Final = timedelta(minutes=5)
MANUAL_REVIEW_PENDING: Final = "ManualReviewPending"
REVIEW_HOLD: Final = timedelta(hours=24)
DRY_RUN_HOLD: Final = timedelta(hours=1)
RATE_WINDOW: Final = timedelta(minutes=1)
FIRST_BACK_OFF: Final = timedelta(minutes=1)
MAX_BACK_OFF: Final = timedelta(minutes=10)
JITTER_SHARE: Final = 0.1


@dataclass(frozen=True)
class TriageRules:
    """The settings that triage reads (resources, 15.1)."""

    operator_namespace: str = "inquest-system"
    namespaces: frozenset[str] = frozenset()
    """Of targets that are looked after; empty: all."""
    noise: frozenset[str] = BUILT_IN_NOISE
    require_label: bool = True
    chain: ChainRules = field(default_factory=ChainRules)
    consecutive_failures: int = 3
    failure_block: timedelta = timedelta(hours=1)
    no_action_hold: timedelta = timedelta(hours=24)
    rate: int = 30
    rate_per_namespace: int = 10


@dataclass(frozen=True)
class OpenCase:
    """An Investigation of this fingerprint that has not ended."""

    investigation: ObjectRef
    signal: str
    opened_at: datetime


@dataclass(frozen=True)
class EndedCase:
    """An Investigation of this fingerprint that has ended."""

    phase: Phase
    ended_at: datetime
    reason: Reason | None = None
    sub_reason: SubReason | None = None
    resolution: Resolution | None = None
    effectiveness: EffectivenessReason | None = None
    next_allowed: datetime | None = None
    reviewed: bool = False
    workflow_came: bool = False
    """It found no workflow for its cause, and one has been registered since."""
    namespace: str = ""
    """Namespace of the Signal's target."""
    place: tuple[str, str] = ("", "")
    """Namespace and name of the Investigation itself."""


@dataclass(frozen=True)
class Accept:
    """One Signal that was accepted lately, for the rate limit."""

    at: datetime
    namespace: str


@dataclass(frozen=True)
class Observed:
    """All that triage may look at."""

    name: str
    namespace: str
    spec: SignalContent
    now: datetime
    rules: TriageRules = field(default_factory=TriageRules)
    fingerprint: str = ""

    kind_known: bool = True
    never_read: str = ""
    """Why objects of this kind are looked at for nobody."""
    namespaced: bool = True
    namespace_exists: bool = True
    target_exists: bool = True

    scope_labels: tuple[Mapping[str, str], ...] = ()
    """Labels of the target, its root owner and its namespace, in this order."""
    scope_unknown: bool = False
    """Some of these labels could not be read."""
    by_person: bool = False
    """A person asked, and the API server says so: triage neither takes it for small talk nor lets it cool down."""
    event_type: str = ""
    """`Normal` or `Warning` where the source is an event."""

    open_cases: tuple[OpenCase, ...] = ()
    ended: tuple[EndedCase, ...] = ()
    """Newest first."""
    history: History = field(default_factory=lambda: History(available=True))
    spec_hash: str = ""
    accepted: tuple[Accept, ...] = ()

    blocked_for: str = ""
    """Triage reason of the block that it comes from."""
    blocked_count: int = 0

    @property
    def has_case(self) -> bool:
        """Without fingerprint or target name nothing can be said about earlier cases."""
        return bool(self.fingerprint and self.spec.target.name)

    @property
    def target_namespace(self) -> str:
        return self.spec.target.namespace or ""


@dataclass(frozen=True)
class Decision:
    """What becomes of the Signal; `until` is the next look at a block, None: never."""

    phase: SignalPhase
    reason: str
    message: str
    until: datetime | None = None
    duplicate_of: ObjectRef | None = None


Rule = Callable[[Observed], Decision | None]


def triage(seen: Observed) -> Decision:
    """The first rule that objects decides; nobody does: accepted."""
    rules = (rule for rule in TRIAGE if not (seen.by_person and rule in NOT_FOR_A_PERSON))
    return next((found for rule in rules if (found := rule(seen))), ACCEPTED)


ACCEPTED: Final = Decision(SignalPhase.ACCEPTED, "Accepted", "an investigation is due")


def earlier_answer(seen: Observed) -> str:
    """What a person is told who asks once more; empty where nobody has looked yet, or no person asks."""
    newest = _newest(seen) if seen.by_person else None
    if newest is None:
        return ""
    end = newest.resolution or newest.reason or newest.phase
    return f"an earlier case ended with {end} at {newest.ended_at:%Y-%m-%d %H:%M:%SZ}"


# --- the rules, in the order of 9.1 -----------------------------------------------------------------------


def out_of_reach(seen: Observed) -> Decision | None:
    """Who wrote it may not ask about that place: whatever is there, and whether anything is, they are told the same."""
    message = next((text for holds, text in _reaches(seen) if holds), "")
    return (resolved(seen) or _blocked(seen, "OutOfScope", message, _scope_look(seen))) if message else None


def malformed(seen: Observed) -> Decision | None:
    """The target cannot exist."""
    fault = next((text for holds, text in _faults(seen) if holds), "")
    return Decision(SignalPhase.FAILED, "Malformed", fault) if fault else None


def resolved(seen: Observed) -> Decision | None:
    """The source says that it is over."""
    if seen.spec.resolved_time is None:
        return None
    return Decision(SignalPhase.RESOLVED, "Resolved", "the source says that the problem is over")


def noise(seen: Observed) -> Decision | None:
    """Nobody wants to hear of it: heartbeats, normal events, our own doings."""
    why = next((text for holds, text in _noises(seen) if holds), "")
    return Decision(SignalPhase.IGNORED, "Noise", why) if why else None


def target_gone(seen: Observed) -> Decision | None:
    """Its pod has been replaced meanwhile."""
    if seen.target_exists or seen.spec.target.kind not in SHORT_LIVED_KINDS:
        return None
    return Decision(SignalPhase.IGNORED, "TargetGone", f"{seen.spec.target.display} no longer exists")


def out_of_scope(seen: Observed) -> Decision | None:
    """Nobody has put the target into Inquest's care."""
    if seen.scope_unknown or is_managed(seen.scope_labels, require_label=seen.rules.require_label):
        return None
    message = 'label the namespace with inquest.dev/managed="true" to have it looked after'
    return _blocked(seen, "OutOfScope", message, _scope_look(seen))


def scope_unknown(seen: Observed) -> Decision | None:
    """Not knowing whether we may look is a no."""
    if not seen.scope_unknown:
        return None
    return _blocked(seen, "ScopeUnknown", "the scope labels could not be read", _scope_look(seen))


def duplicate_open(seen: Observed) -> Decision | None:
    """An older case looks at the same thing."""
    mine = next((case for case in seen.open_cases if case.signal == seen.name), None)
    others = [
        case for case in seen.open_cases if case.signal != seen.name and (mine is None or _age(case) < _age(mine))
    ]
    if not others or not seen.has_case:
        return None
    case = min(others, key=_age).investigation
    return Decision(SignalPhase.DUPLICATE, "DuplicateOpen", f"{case.name} is looking at it", duplicate_of=case)


def chain(seen: Observed) -> Decision | None:
    """What was tried before did not help (rows 8 and 9: IneffectiveChain, RecurrenceLimit)."""
    found = chain_block(seen.history, seen.spec_hash, seen.now, seen.rules.chain) if seen.has_case else None
    return _blocked(seen, found.reason, found.message, found.until) if found else None


def manual_review_pending(seen: Observed) -> Decision | None:
    """A person was asked and has not answered."""
    newest = _newest(seen)
    if newest is None or newest.resolution is not Resolution.MANUAL_REVIEW_REQUIRED:
        return None
    if newest.reviewed or newest.workflow_came:
        return None
    told = "kubectl annotate investigation -n {} {} inquest.dev/reviewed=yes".format(*newest.place)
    message = f"the last investigation asked for a person. When you have looked: {told}"
    return _blocked(seen, MANUAL_REVIEW_PENDING, message, newest.ended_at + REVIEW_HOLD)


def consecutive_failures(seen: Observed) -> Decision | None:
    """Investigating it has failed again and again; after the block the next Signal is one probe."""
    failures = _failures(seen)
    if len(failures) < seen.rules.consecutive_failures:
        return None
    until, message = failures[0].ended_at + seen.rules.failure_block, f"{len(failures)} investigations in a row failed"
    if seen.now >= until and seen.blocked_for == "ConsecutiveFailures":
        return Decision(SignalPhase.FAILED, "ConsecutiveFailures", message)
    return _blocked(seen, "ConsecutiveFailures", message, until)


def exponential_backoff(seen: Observed) -> Decision | None:
    """The last case failed a moment ago."""
    newest = _newest(seen)
    if newest is None or newest.next_allowed is None or not counts_as_failure(newest):
        return None
    return _blocked(seen, "ExponentialBackoff", "the last investigation failed", newest.next_allowed)


def cooldown(seen: Observed) -> Decision | None:
    """The last case found that there is nothing to do."""
    newest = _newest(seen)
    if newest is None or newest.next_allowed is None or newest.resolution not in _HELD:
        return None
    return _blocked(seen, "Cooldown", "the last investigation found nothing to do", newest.next_allowed)


def rate_limited(seen: Observed) -> Decision | None:
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


def _faults(seen: Observed) -> Iterable[tuple[bool, str]]:
    target, named = seen.spec.target, seen.spec.target.kind != UNKNOWN_KIND
    return (
        (bool(seen.never_read), seen.never_read),
        (named and not seen.kind_known, f"no API group of this cluster serves {target.kind}"),
        (named and seen.kind_known and seen.namespaced and not target.namespace, f"{target.kind} needs a namespace"),
        (bool(target.namespace) and not seen.namespace_exists, f"there is no namespace {target.namespace}"),
    )


def _noises(seen: Observed) -> Iterable[tuple[bool, str]]:
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


def _is_ours(seen: Observed) -> bool:
    labels = seen.scope_labels[0] if seen.scope_labels else {}
    return (seen.spec.target.api_version or "").startswith(OWN_GROUP) or labels.get(MANAGED_BY) == "inquest"


def is_beyond(namespace: str, rules: TriageRules) -> bool:
    """Whether a target there is none that may be read; without a namespace it is the cluster's."""
    return bool(rules.namespaces) and namespace not in rules.namespaces


def is_out_of_reach(seen: Observed) -> bool:
    """By namespaces alone, before anything is read."""
    return any(holds for holds, _ in _reaches(seen))


def _reaches(seen: Observed) -> Iterable[tuple[bool, str]]:
    known = ", ".join(sorted(seen.rules.namespaces))
    too_far = is_outside(seen.namespace, seen.rules.operator_namespace, seen.target_namespace)
    return (
        (too_far, "a Signal of this namespace may name targets in it only"),
        (
            is_beyond(seen.target_namespace, seen.rules),
            f"this operator looks after targets in {known}, and has no right to read others",
        ),
    )


def _scope_look(seen: Observed) -> datetime:
    # 2 ** 6 is past the bound: a larger exponent would only overflow.
    return seen.now + min(SCOPE_LOOK * 2.0 ** min(seen.blocked_count, 6), MAX_SCOPE_LOOK)


def _blocked(seen: Observed, reason: str, message: str, until: datetime | None) -> Decision | None:
    held = until is not None and until > seen.now
    return Decision(SignalPhase.BLOCKED, reason, message, until) if held else None


def _age(case: OpenCase) -> tuple[datetime, str]:
    return case.opened_at, case.investigation.name


def _newest(seen: Observed) -> EndedCase | None:
    return seen.ended[0] if seen.ended and seen.has_case else None


def _free_slot(accepted: Iterable[Accept], limit: int) -> datetime | None:
    times = sorted(accept.at for accept in accepted)
    return times[-limit] + RATE_WINDOW if len(times) >= limit else None


# --- failures and holds (9.3) ---------------------------------------------------------------------------------


def counts_as_failure(case: EndedCase) -> bool:
    """Failed, or Completed without a conclusion or in vain; not what was overtaken by events."""
    in_vain = case.phase is Phase.COMPLETED and case.resolution in _IN_VAIN
    return not is_overlooked(case) and (case.phase is Phase.FAILED or in_vain)


_IN_VAIN: Final = (Resolution.INCONCLUSIVE, Resolution.INEFFECTIVE)


def is_overlooked(case: EndedCase) -> bool:
    """Neither a failure nor the end of a series: nobody's investigation went wrong."""
    return (
        case.phase is Phase.CANCELLED
        or case.reason is Reason.APPROVAL_VOIDED
        or case.sub_reason is SubReason.TARGET_DRIFTED
        or case.effectiveness is EffectivenessReason.SPEC_DRIFT
    )


def failures_in_a_row(ended: Iterable[EndedCase]) -> tuple[EndedCase, ...]:
    """Failures since the last other completion, newest first, as the cases come."""
    counted = [case for case in ended if not is_overlooked(case)]
    series = next((n for n, case in enumerate(counted) if not counts_as_failure(case)), len(counted))
    return tuple(counted[:series])


def _failures(seen: Observed) -> tuple[EndedCase, ...]:
    here = (case for case in seen.ended if case.namespace == seen.target_namespace)
    return failures_in_a_row(here) if seen.has_case else ()


def back_off(failures: int, jitter: float) -> timedelta:
    """Wait after so many failures in a row; `jitter` from -1 to 1 moves it by up to a tenth."""
    # 2 ** 4 minutes is past the bound: a larger exponent would only overflow.
    wait = min(FIRST_BACK_OFF * 2.0 ** min(max(failures, 1) - 1, 4), MAX_BACK_OFF)
    return wait * (1 + JITTER_SHARE * max(-1.0, min(1.0, jitter)))


def next_allowed(
    case: EndedCase, earlier: Iterable[EndedCase], rules: TriageRules, *, jitter: float = 0.0
) -> datetime | None:
    """When this fingerprint may have another case; None where nothing holds it (resources, 9.3)."""
    if counts_as_failure(case):
        failures = len(failures_in_a_row((case, *earlier)))
        return case.ended_at + back_off(failures, jitter) if failures < rules.consecutive_failures else None
    if case.resolution is Resolution.DRY_RUN:
        return case.ended_at + DRY_RUN_HOLD
    if case.resolution is Resolution.NO_ACTION_REQUIRED and rules.no_action_hold:
        return case.ended_at + rules.no_action_hold
    return None
