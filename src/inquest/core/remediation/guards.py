"""What must hold right before a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from inquest.api.execution import Holder
from inquest.api.refs import TargetRef
from inquest.api.types import HumanReviewReason, Phase, Reason, Resolution, SubReason
from inquest.core.history.chain_guards import RECURRENCE_LIMIT, ChainRules, chain_block
from inquest.core.history.history import History
from inquest.core.remediation.proposal import Drift, explain_drift
from inquest.core.signals.scope import is_managed

BUSY_LOOK: Final = timedelta(seconds=30)


@dataclass(frozen=True)
class RecentRun:
    """An execution that ended lately on the same target."""

    workflow_id: str
    ended_at: datetime


@dataclass(frozen=True)
class GuardRules:
    """The settings that the guards read."""

    protected_namespaces: frozenset[str]
    """Built-in ones, the operator's, the execution namespace, the setting's."""
    require_label: bool = True
    chain: ChainRules = field(default_factory=ChainRules)
    recently_remediated: timedelta = timedelta(minutes=5)


@dataclass(frozen=True)
class GuardInput:
    """All that the guards may look at; read again after approval and when a Blocked execution wakes."""

    target: TargetRef
    """Of the remediation, which is not always the Signal's."""
    workflow_id: str
    now: datetime
    rules: GuardRules
    signal_resolved: bool = False
    scope_labels: tuple[Mapping[str, str], ...] = ()
    scope_unknown: bool = False
    drift: Drift | None = None
    approved_by_person: bool = False
    history: History = field(default_factory=lambda: History(available=True))
    spec_hash: str = ""
    holder: Holder | None = None
    """Another execution whose Job runs on the target."""
    recent: tuple[RecentRun, ...] = ()


@dataclass(frozen=True)
class GuardResult:
    """A guard that holds: the end of the case, or, with `until`, a Blocked execution."""

    guard: str
    message: str
    phase: Phase | None = None
    reason: Reason | None = None
    sub_reason: SubReason | None = None
    resolution: Resolution | None = None
    review: HumanReviewReason | None = None
    until: datetime | None = None
    blocked_by: Holder | None = None
    drift: Drift | None = None


Guard = Callable[[GuardInput], GuardResult | None]


def check_guards(view: GuardInput) -> GuardResult | None:
    """The first guard that holds; None: the execution may begin."""
    return next((found for one in GUARDS if (found := one(view))), None)


def guard_resolved(view: GuardInput) -> GuardResult | None:
    """Nothing is wrong any more."""
    if not view.signal_resolved:
        return None
    return GuardResult(
        "SignalResolved",
        "the signal is resolved",
        Phase.COMPLETED,
        Reason.WORKFLOW_NOT_NEEDED,
        SubReason.SIGNAL_RESOLVED,
        Resolution.NO_ACTION_REQUIRED,
    )


def guard_scope(view: GuardInput) -> GuardResult | None:
    """The target was never given into our care; not knowing it is a no."""
    managed = is_managed(view.scope_labels, require_label=view.rules.require_label)
    return None if managed and not view.scope_unknown else _refused(view, SubReason.OUT_OF_SCOPE, "is out of scope")


def guard_protected(view: GuardInput) -> GuardResult | None:
    """Remediation there is refused by code, whatever policy or label say."""
    protected = (view.target.namespace or "") in view.rules.protected_namespaces
    return _refused(view, SubReason.PROTECTED_NAMESPACE, "is in a protected namespace") if protected else None


def guard_drift(view: GuardInput) -> GuardResult | None:
    """It is not the object that was judged."""
    if view.drift is None:
        return None
    reason = Reason.APPROVAL_VOIDED if view.approved_by_person else Reason.REMEDIATION_BLOCKED
    word, message = view.drift.reason, explain_drift(view.drift, view.target, view.workflow_id)
    return GuardResult(word, message, Phase.FAILED, reason, SubReason(word), drift=view.drift)


def guard_chain(view: GuardInput) -> GuardResult | None:
    """The same was tried before and did not help."""
    found = chain_block(view.history, view.spec_hash, view.now, view.rules.chain)
    if found is None:
        return None
    word = SubReason.RECURRENCE_LIMIT if found.reason == RECURRENCE_LIMIT else SubReason.INEFFECTIVE_CHAIN
    return _failed(found.reason, found.message, word, HumanReviewReason.INEFFECTIVE_CHAIN)


def guard_busy(view: GuardInput) -> GuardResult | None:
    """Somebody else works on it."""
    if view.holder is None:
        return None
    message = f"{view.holder.name} is changing {view.target.display}"
    return GuardResult("ResourceBusy", message, until=view.now + BUSY_LOOK, blocked_by=view.holder)


def guard_recent(view: GuardInput) -> GuardResult | None:
    """The same workflow has just been there; give it time to show."""
    ends = [run.ended_at for run in view.recent if run.workflow_id == view.workflow_id]
    until = max(ends, default=None)
    until = until + view.rules.recently_remediated if until else None
    held = until is not None and until > view.now
    return GuardResult("RecentlyRemediated", f"{view.workflow_id} has just run", until=until) if held else None


GUARDS: Final[tuple[Guard, ...]] = (
    guard_resolved,
    guard_scope,
    guard_protected,
    guard_drift,
    guard_chain,
    guard_busy,
    guard_recent,
)

UNDO_GUARDS: Final[tuple[Guard, ...]] = (guard_scope, guard_protected, guard_drift, guard_busy)
"""What may hold an undo back: it is no new try, and a Signal that is over does not mend what the run has broken."""


def guard_undo(view: GuardInput) -> GuardResult | None:
    """The first guard that holds an undo back; None: it may begin."""
    return next((found for one in UNDO_GUARDS if (found := one(view))), None)


def _refused(view: GuardInput, word: SubReason, what: str) -> GuardResult:
    return _failed(word, f"{view.target.display} {what}", word, HumanReviewReason.REMEDIATION_BLOCKED)


def _failed(name: str, message: str, word: SubReason, review: HumanReviewReason) -> GuardResult:
    resolution = Resolution.MANUAL_REVIEW_REQUIRED
    return GuardResult(name, message, Phase.FAILED, Reason.REMEDIATION_BLOCKED, word, resolution, review)
