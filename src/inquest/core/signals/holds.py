"""How long a Signal is held after failures, and when its fingerprint may have another case."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from inquest.api.types import EffectivenessReason, Phase, Reason, Resolution, SubReason
from inquest.core.signals.triage_input import EndedCase, TriageRules

DRY_RUN_HOLD: Final = timedelta(hours=1)
FIRST_BACK_OFF: Final = timedelta(minutes=1)
MAX_BACK_OFF: Final = timedelta(minutes=10)
JITTER_SHARE: Final = 0.1


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


def back_off(failures: int, jitter: float) -> timedelta:
    """Wait after so many failures in a row; `jitter` from -1 to 1 moves it by up to a tenth."""
    # 2 ** 4 minutes is past the bound: a larger exponent would only overflow.
    wait = min(FIRST_BACK_OFF * 2.0 ** min(max(failures, 1) - 1, 4), MAX_BACK_OFF)
    return wait * (1 + JITTER_SHARE * max(-1.0, min(1.0, jitter)))


def next_allowed(
    case: EndedCase, earlier: Iterable[EndedCase], rules: TriageRules, *, jitter: float = 0.0
) -> datetime | None:
    """When this fingerprint may have another case; None where nothing holds it."""
    if counts_as_failure(case):
        failures = len(failures_in_a_row((case, *earlier)))
        return case.ended_at + back_off(failures, jitter) if failures < rules.consecutive_failures else None
    if case.resolution is Resolution.DRY_RUN:
        return case.ended_at + DRY_RUN_HOLD
    if case.resolution is Resolution.NO_ACTION_REQUIRED and rules.no_action_hold:
        return case.ended_at + rules.no_action_hold
    return None
