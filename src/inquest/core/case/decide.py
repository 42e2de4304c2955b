"""What comes next in a case: one small function for each phase, all of them pure.

`next_step` sees the case and a view of what was read just now; it names what to do and never does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from inquest.api.base import duration_from_timedelta
from inquest.api.types import Phase, Reason
from inquest.core.case import endings, facts, outcome
from inquest.core.case.case import Case, chosen_conclusion
from inquest.core.case.investigating import step_investigating, step_pending
from inquest.core.case.remediating import step_analyzing, step_awaiting, step_executing, step_verifying
from inquest.core.case.selecting import step_selecting
from inquest.core.case.steps import Observed, RecordFact, Step


def next_step(case: Case, view: Observed) -> Step:
    """What comes next; asked only while the case is open."""
    ended = _stopped(case, view)
    if ended is None:
        return _STEPS[case.phase](case, view)
    late = case.phase if ended.reason is Reason.TIMED_OUT else None
    # What both invocations said stays for the person who reads how it ended.
    kept = replace(ended, merged=ended.merged or chosen_conclusion(case).merged)
    return RecordFact(facts.Closed(kept, view.now, timeout_phase=late))


def _stopped(case: Case, view: Observed) -> outcome.Conclusion | None:
    """A person's stop, or time that is spent; what waits for people or Jobs has clocks of its own."""
    if view.cancelled:
        undoing = case.last(facts.UndoPlanned) is not None
        if case.phase is Phase.VERIFYING:
            stopped = endings.stopped_undoing if undoing else endings.stopped_waiting
            return stopped(chosen_conclusion(case))
        if case.phase is Phase.EXECUTING:
            return endings.stopped_undoing_half() if undoing else endings.stopped_running()
        return endings.end_cancelled()
    if case.phase is Phase.PENDING and view.signal_resolved:
        return outcome.signal_resolved()
    if case.phase is Phase.PENDING and view.waited > view.queue_limit:
        return endings.queue_timeout(duration_from_timedelta(view.waited))
    return endings.timed_out(case.phase) if _is_spent(case, view) else None


def _is_spent(case: Case, view: Observed) -> bool:
    """The one budget is what may be used up to the ruling."""
    if case.phase not in facts.SHARES or case.last(facts.PolicyRuled) is not None:
        return False
    return view.now - case.opened.at > case.opened.pinned.timeout


_STEPS: Final[Mapping[Phase, Callable[[Case, Observed], Step]]] = {
    Phase.PENDING: step_pending,
    Phase.INVESTIGATING: step_investigating,
    Phase.SELECTING: step_selecting,
    Phase.ANALYZING: step_analyzing,
    Phase.AWAITING_APPROVAL: step_awaiting,
    Phase.EXECUTING: step_executing,
    Phase.VERIFYING: step_verifying,
}
