"""Whether earlier remediations of the same start forbid another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from typing import Final

from inquest.core.history.history import BY_HASH, PRE, History, HistoryEntry

CHAIN_WINDOW: Final = timedelta(hours=4)
FORWARD_WINDOW: Final = timedelta(hours=1)
CHAIN_THRESHOLD: Final = 3
FORWARD_THRESHOLD: Final = 2
RECURRENCE_THRESHOLD: Final = 5

INEFFECTIVE_CHAIN: Final = "IneffectiveChain"
RECURRENCE_LIMIT: Final = "RecurrenceLimit"


@dataclass(frozen=True)
class ChainRules:
    """Thresholds of the chain guards."""

    chain: int = CHAIN_THRESHOLD
    recurrence: int = RECURRENCE_THRESHOLD
    window: timedelta = CHAIN_WINDOW


@dataclass(frozen=True)
class ChainBlock:
    """A guard that holds: its word, a sentence, and until when."""

    reason: str
    message: str
    until: datetime


def chain_block(history: History, spec_hash: str, now: datetime, rules: ChainRules | None = None) -> ChainBlock | None:
    """The first chain guard that holds; None also where the history could not be read."""
    limits = rules or ChainRules()
    recent = tuple(entry for entry in history.newest_first if now - entry.completed_at < limits.window)
    # Of scope `hash` an entry may belong to a stranger with the same spec: it must not block.
    if not history.available or not recent or history.scope == BY_HASH:
        return None
    until = recent[0].completed_at + limits.window
    found = (guard(recent, spec_hash, now, limits) for guard in CHAIN_GUARDS)
    return next((ChainBlock(reason, message, until) for reason, message in filter(None, found)), None)


Blocked = tuple[str, str] | None


def same_start(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """Each of the last attempts began from the spec that stands there now: they changed nothing that lasted."""
    if not spec_hash:
        return None
    tries = sum(1 for _ in takewhile(lambda entry: entry.pre_spec_hash == spec_hash or entry.hash_match == PRE, recent))
    message = f"the last {tries} remediations began from the spec that is there now"
    return (INEFFECTIVE_CHAIN, message) if tries >= rules.chain else None


def forward_chain(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """Each attempt went on from the one before with the same action, and none helped."""
    fresh = [entry for entry in recent if now - entry.completed_at < FORWARD_WINDOW]
    if not spec_hash or not fresh or fresh[0].post_spec_hash != spec_hash:
        return None
    links = 1 + sum(1 for _ in takewhile(lambda pair: _leads_to(pair[1], pair[0]), pairwise(fresh)))
    message = f"{links} remediations of type {fresh[0].action_type} in a row did not help"
    return (INEFFECTIVE_CHAIN, message) if not fresh[0].resolved and links >= FORWARD_THRESHOLD else None


def recurrence(recent: Sequence[HistoryEntry], spec_hash: str, now: datetime, rules: ChainRules) -> Blocked:
    """So many attempts that another one is no plan."""
    message = f"{len(recent)} remediations within {rules.window}"
    return (RECURRENCE_LIMIT, message) if len(recent) >= rules.recurrence else None


CHAIN_GUARDS: Final[tuple[Callable[[Sequence[HistoryEntry], str, datetime, ChainRules], Blocked], ...]] = (
    same_start,
    forward_chain,
    recurrence,
)


def _leads_to(earlier: HistoryEntry, later: HistoryEntry) -> bool:
    same_action = earlier.action_type == later.action_type
    linked = bool(earlier.post_spec_hash) and earlier.post_spec_hash == later.pre_spec_hash
    return same_action and linked and not earlier.resolved
