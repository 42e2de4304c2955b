"""What was tried before on this target, and what it was worth (pipeline, section 16; resources, section 9.2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class HistoryEntry:
    """One earlier remediation; scores are 0 to 1, None where nothing was measured."""

    remediation_uid: str
    completed_at: datetime
    action_type: str = ""
    workflow_type: str = ""
    workflow_id: str = ""
    signal_type: str = ""
    outcome: str = ""
    effectiveness_score: float | None = None
    signal_resolved: bool | None = None
    assessment_reason: str = ""
    hash_match: str = "none"
    pre_spec_hash: str = ""
    post_spec_hash: str = ""


@dataclass(frozen=True)
class History:
    """Both tiers, oldest first. `available` False is never to be read as "nothing was tried"."""

    available: bool
    target: str = ""
    regression_detected: bool = False
    recent: tuple[HistoryEntry, ...] = ()
    older: tuple[HistoryEntry, ...] = ()
    scope: str = "chain"


UNAVAILABLE = History(available=False)
