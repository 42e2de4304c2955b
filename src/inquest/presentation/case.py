"""What is stored of one case: the Investigation, and what belongs to it as far as it is there."""

from __future__ import annotations

from dataclasses import dataclass

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.execution import WorkflowExecution
from inquest.api.findings import CauseEntry, Claim, ClaimVerdict
from inquest.api.investigation import Investigation, InvestigationStatus
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal
from inquest.api.types import TERMINAL_PHASES, Phase


@dataclass(frozen=True)
class CaseObjects:
    """The objects of one case; None: there is none, or it was not read."""

    investigation: Investigation
    signal: Signal | None = None
    request: RemediationApprovalRequest | None = None
    execution: WorkflowExecution | None = None
    undo: WorkflowExecution | None = None

    @property
    def name(self) -> str:
        return self.investigation.name

    @property
    def status(self) -> InvestigationStatus:
        return self.investigation.status

    @property
    def phase(self) -> Phase:
        return self.status.phase or Phase.PENDING

    @property
    def has_ended(self) -> bool:
        return self.phase in TERMINAL_PHASES

    @property
    def by_model(self) -> bool:
        """Whether a model had a part in it."""
        return bool(self.status.usage and self.status.usage.turns)


def place_of_target(target: TargetRef | None) -> str:
    """`Kind/name in namespace`."""
    if target is None:
        return ""
    return f"{target.display} in {target.namespace}" if target.namespace else target.display


def is_refuted(claim: Claim) -> bool:
    """Whether what it cites does not say so."""
    return claim.verdict is ClaimVerdict.UNSUPPORTED


def cause_line(cause: CauseEntry) -> str:
    """`0.95 Category Kind/name in namespace: what is wrong`."""
    figure = "" if cause.confidence is None else f"{cause.confidence:.2f} "
    words = " ".join(part for part in (cause.category, place_of_target(cause.object)) if part)
    return f"{figure}{words}: {cause.summary}" if cause.summary else f"{figure}{words}"


def cause_of(told: CaseObjects) -> str:
    """The cause in one sentence, or what the analysis came to instead; empty where it came to nothing yet."""
    root = told.status.root_cause
    return (root.summary if root else None) or next((each.summary or "" for each in told.status.causes), "")
