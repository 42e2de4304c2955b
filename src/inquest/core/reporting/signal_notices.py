"""Messages to people about Signals."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Final

from inquest.api.base import rfc3339
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal
from inquest.api.types import SignalPhase, SourceType
from inquest.core.reporting.notices import NoticeText, TargetOwner, owner_of_signal
from inquest.core.signals.triage_input import TriageDecision


def sender_of(found: Signal) -> TargetOwner:
    """Where the Signal stands: what is refused is not the business of those whom it names."""
    return TargetOwner(found.namespace)


HELD_FOR_A_PERSON: Final = frozenset({"IneffectiveChain", "RecurrenceLimit"})
"""Blocks in which more of the same would do harm."""


OF_MANY: Final = frozenset({"RateLimited", "ScopeUnknown"})
"""Blocks that say nothing of one Signal: of thousands that are held back, one message in an hour is enough."""


def held_notice(found: Signal, owner: TargetRef, decision: TriageDecision, cluster: str) -> NoticeText | None:
    """What people hear of a Signal that is not looked at. None where nobody has to know."""
    row = _row(found, decision)
    if row is None:
        return None
    body = "\n".join(
        (
            f"Signal: {found.namespace}/{found.name}",
            f"Cluster: {found.spec.cluster_name or cluster}",
            f"Target: {owner.display}",
            f"Held until: {hold_end(decision)}",
            f"Look at it: kubectl describe sig {found.name} -n {found.namespace}",
        )
    )
    return NoticeText(*row, f"{decision.reason}: {decision.message}", body)


def _row(found: Signal, decision: TriageDecision) -> tuple[str, str] | None:
    """Type and priority."""
    if decision.reason in HELD_FOR_A_PERSON:
        return "ManualReview", "High"
    if decision.reason == "OutOfScope":
        # What a machine reports of targets that are not looked after is no news; a person waits for an answer.
        return ("Escalation", "High") if found.spec.source.type is SourceType.MANUAL else None
    if decision.phase is SignalPhase.FAILED and decision.reason == "ConsecutiveFailures":
        return "Escalation", "High"
    return ("StatusUpdate", "Low") if decision.phase is SignalPhase.BLOCKED else None


def held_key(found: Signal, fingerprint: str, decision: TriageDecision, now: datetime, *, grouped: bool = False) -> str:
    """One message for each block, however many Signals it holds; `grouped`: one an hour for a whole namespace.

    It is kept in the status and read from there again: with a dot before the time it does not look like a secret.
    """
    hour = f"{now:%Y-%m-%dT%H}"
    if decision.reason in OF_MANY:
        return f"{decision.reason}/{hour}"
    if decision.reason == "OutOfScope":
        sender = sha256(found.namespace.encode()).hexdigest()[:16]
        return f"{sender}/{decision.reason}.{hour}" if grouped else f"{found.uid}/{decision.reason}"
    return f"{fingerprint[:16]}/{decision.reason}.{hold_end(decision) if decision.until else hour}"


def duplicates_notice(original: Signal, before: int, after: int, cluster: str) -> tuple[int, NoticeText] | None:
    """The power of ten that the count has just reached, from ten on, and what is told of it."""
    reached = 10 ** (len(str(after)) - 1)
    if reached < 10 or before >= reached:
        return None
    target = original.spec.target
    body = "\n".join(
        (
            f"Signal: {original.namespace}/{original.name}",
            f"Cluster: {original.spec.cluster_name or cluster}",
            f"Target: {target.display}",
            f"Look at it: kubectl describe sig {original.name} -n {original.namespace}",
        )
    )
    return reached, NoticeText("StatusUpdate", "Low", f"{original.spec.name} was seen {after} times", body)


def repeated_notice(found: Signal, key: str, cluster: str) -> NoticeText | None:
    """What that key stands for, from the status alone; None where it is no news any more: the block is over."""
    status = found.status
    owner = owner_of_signal(found.spec.target, status.context)
    _, many, reached = key.rpartition("/duplicates-")
    if many:
        said = duplicates_notice(found, int(reached) - 1, max(int(reached), status.occurrences or 1), cluster)
        return replace(said[1], owners=(owner,)) if said else None
    if status.phase is None or not status.reason or status.reason not in re.split(r"[/.]", key):
        return None
    if status.reason == "OutOfScope":
        owner = sender_of(found)
    decision = TriageDecision(status.phase, status.reason, status.message or "", status.blocked_until)
    told = held_notice(found, status.root_owner or found.spec.target, decision, cluster)
    return replace(told, owners=(owner,)) if told else None


def hold_end(decision: TriageDecision) -> str:
    """When the block ends of itself, or the word for one that a person ends."""
    return rfc3339(decision.until) if decision.until else "reviewed"
