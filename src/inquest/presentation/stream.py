"""A case as a reader follows it: first how it stands, then every call that came after the one they know, then the end.

Told from the status of the Investigation alone, so that a reader may come late, go away and come back with the number
of the last call they were told of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any

from inquest.api.investigation import Investigation
from inquest.api.types import TERMINAL_PHASES


class FollowKind(StrEnum):
    """What a reader is told."""

    STATUS = "status"
    MISSED = "missed"
    """Calls that the status does not hold any more; the transcript does."""
    CALL = "tool_result"
    END = "end"


@dataclass(frozen=True)
class FollowEvent:
    """One thing that a reader is told; `id` is that of the call, 0 for everything else."""

    event: FollowKind
    body: Mapping[str, Any]
    id: int = 0


@dataclass(frozen=True)
class Reader:
    """What a reader knows."""

    after: int = 0
    """Id of the newest call that they were told of."""
    standing: Mapping[str, Any] | None = None
    """The status as they were told it last; None: not at all."""
    ended: bool = False


def news_for(inv: Investigation, reader: Reader) -> tuple[Reader, tuple[FollowEvent, ...]]:
    """What this reader has not been told yet, and what they know after it.

    A call is told once it has an answer, and none before those ahead of it: who comes back misses no result.
    """
    if reader.ended:
        return reader, ()
    told = (*_standing(inv, reader), *_missed(inv, reader), *_calls(inv, reader))
    ended = inv.status.phase in TERMINAL_PHASES
    after = max((one.id for one in told), default=0)
    knows = Reader(max(reader.after, after), _status(inv), ended)
    return knows, (*told, FollowEvent(FollowKind.END, _end(inv))) if ended else told


def _status(inv: Investigation) -> Mapping[str, Any]:
    return {"phase": str(inv.status.phase or "Pending"), "message": inv.status.message or ""}


def _standing(inv: Investigation, reader: Reader) -> Iterator[FollowEvent]:
    if _status(inv) != reader.standing:
        yield FollowEvent(FollowKind.STATUS, _status(inv))


def _missed(inv: Investigation, reader: Reader) -> Iterator[FollowEvent]:
    """A gap is said, never passed over."""
    kept = inv.status.progress
    first = kept[0].id if kept else None
    if first is not None and first > reader.after + 1:
        yield FollowEvent(FollowKind.MISSED, {"from": reader.after + 1, "to": first - 1}, first - 1)
    elif first is None and "progress" in inv.status.truncated:
        yield FollowEvent(FollowKind.MISSED, {"from": reader.after + 1, "to": None})


def _calls(inv: Investigation, reader: Reader) -> Iterator[FollowEvent]:
    later = [entry for entry in inv.status.progress if entry.id > reader.after]
    ended = inv.status.phase in TERMINAL_PHASES
    for entry in takewhile(lambda each: ended or each.ok is not None, later):
        told = {key: value for key, value in entry.to_object().items() if key != "id"}
        yield FollowEvent(FollowKind.CALL, told, entry.id)


def _end(inv: Investigation) -> Mapping[str, Any]:
    status = inv.status
    words = {"phase": status.phase, "outcome": status.outcome, "reason": status.reason}
    return {key: str(value) for key, value in words.items() if value is not None}


def resume_reader(after: int) -> Reader:
    """A reader who was told of everything up to this call."""
    return replace(Reader(), after=max(0, after))
