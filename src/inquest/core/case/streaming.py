"""The four streams inside Investigating: when they run, what they do next, what they came to.

They go in step: every round is one slot of the journal, and a crash costs one round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.conversations import grow_conversation
from inquest.core.case.steps import MoveStreams
from inquest.core.evidence.evidence import Evidence
from inquest.core.llm import streams
from inquest.core.llm.conversation import Concluded, Conversation, Move, Slot
from inquest.core.llm.loop import next_move, with_slot
from inquest.core.llm.messages import ToolResult
from inquest.core.llm.prompts import rca
from inquest.core.llm.reply.verdicts import RcaVerdict
from inquest.core.llm.streams import RUN_STREAMS, Stream, StreamFinding

OPEN: frozenset[str] = frozenset({"inconclusive", "insufficient_data"})
"""Verdicts that leave the root cause open."""
HANDED_OVER = "four others look now"


def have_begun(case: Case) -> bool:
    """Whether the streams of this case were asked anything."""
    return case.first(facts.StreamsMoved) is not None


def are_wanted(case: Case, loop: Conversation, move: Move, *, elapsed: float) -> bool:
    """Whether the streams come next: the model asks for them, or it ends without a cause and with budget left."""
    if have_begun(case):
        return True
    if not case.opened.pinned.habits.streams or elapsed >= loop.budgets.seconds:
        return False
    return is_handed_over(loop) or _is_open(move)


def is_handed_over(loop: Conversation) -> bool:
    """Whether the model asks for them."""
    return any(call.name == RUN_STREAMS.name for call in loop.pending)


def _is_open(move: Move) -> bool:
    if not isinstance(move, Concluded) or move.spent or move.reading is None:
        return False
    return isinstance(move.reading.reply, RcaVerdict) and move.reading.reply.outcome in OPEN


def answers_to(loop: Conversation) -> tuple[ToolResult, ...]:
    """What the calls are told that came with the handing over: none of them is run."""
    return tuple(ToolResult(call.id, call.name, HANDED_OVER, repeat=True) for call in loop.pending)


@dataclass(frozen=True)
class Streams:
    """The streams of a case as the journal has them."""

    case: Case
    loop: Conversation
    context: rca.RcaContext

    @cached_property
    def talks(self) -> tuple[tuple[Stream, Conversation], ...]:
        """Every stream with its conversation."""
        first = 1 + max((int(item.id[1:]) for item in self._before()), default=0)
        begun = streams.begin_streams(self.context, self.loop, first_evidence=first)
        return tuple((stream, self._told(stream, start)) for stream, start in begun)

    def _before(self) -> Iterator[Evidence]:
        """Evidence from before the first of them was asked."""
        earlier = takewhile(lambda fact: not isinstance(fact, facts.StreamsMoved), self.case.facts)
        return iter(replace(Case(), facts=tuple(earlier)).evidence)

    def _told(self, stream: Stream, start: Conversation) -> Conversation:
        return grow_conversation(
            self.case, f"stream {stream.domain}", start, _slots(self.case, str(stream.domain)), with_slot
        )

    def step(self, elapsed: float) -> MoveStreams | None:
        """What they do next, all at once; None once all of them have come to an end."""
        moves = [(str(stream.domain), next_move(talk, elapsed=elapsed)) for stream, talk in self.talks]
        ongoing = tuple((name, move) for name, move in moves if not isinstance(move, Concluded))
        return MoveStreams(ongoing) if ongoing else None

    @cached_property
    def findings(self) -> tuple[StreamFinding, ...]:
        """Of every stream that has come to an end, and of those that could not begin."""
        known = frozenset(item.id for item in self.case.evidence)
        ended = (
            streams.finding_of(stream, talk, talk.concluded, known)
            for stream, talk in self.talks
            if talk.concluded is not None
        )
        return (*ended, *streams.unconfigured_streams(self.talks))

    def synthesis(self) -> Conversation:
        """The one conversation that makes the verdict of all."""
        start = streams.begin_synthesis(self.context, self.loop, self.talks, self.findings, self.case.evidence)
        after = self.case.facts.index(self.case.all(facts.StreamsMoved)[-1])
        replies = tuple(fact.reply for fact in self.case.facts[after:] if isinstance(fact, facts.RcaReplied))
        return grow_conversation(self.case, "synthesis", start, replies, with_slot)


def _slots(case: Case, name: str) -> tuple[Slot, ...]:
    return tuple(slot for fact in case.all(facts.StreamsMoved) for whose, slot in fact.moves if whose == name)
