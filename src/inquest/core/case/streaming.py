"""The four streams inside Investigating: when they run, what they do next, what they came to.

They go in step: every round is one slot of the journal, and a crash costs one round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.conversations import grow_conversation
from inquest.core.case.steps import MoveStreams
from inquest.core.llm import streams
from inquest.core.llm.conversation import Concluded, Conversation, Move
from inquest.core.llm.loop import next_move, with_slot
from inquest.core.llm.messages import ToolResult
from inquest.core.llm.prompts import rca
from inquest.core.llm.reply.verdicts import RcaVerdict

OPEN: Final = ("inconclusive", "insufficient_data")
"""Verdicts that leave the root cause open."""
HANDED_OVER: Final = "four others look now"


def have_begun(case: Case) -> bool:
    """Whether the streams of this case were asked anything."""
    return case.first(facts.StreamsMoved) is not None


def are_wanted(case: Case, loop: Conversation, move: Move, *, elapsed: float) -> bool:
    """Whether the streams come next: the model asks for them, or it ends without a cause and with budget left."""
    if have_begun(case):
        return True
    if not case.opened.pinned.habits.streams or elapsed >= loop.budgets.seconds:
        return False
    if any(call.name == streams.RUN_STREAMS.name for call in loop.pending):
        return True
    reply = move.reading.reply if isinstance(move, Concluded) and move.reading and not move.spent else None
    return isinstance(reply, RcaVerdict) and reply.outcome in OPEN


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
    def talks(self) -> dict[str, Conversation]:
        """The conversation of each."""
        moved = [move for fact in self.case.all(facts.StreamsMoved) for move in fact.moves]
        return {
            name: grow_conversation(
                self.case, f"stream {name}", start, tuple(slot for whose, slot in moved if whose == name), with_slot
            )
            for name, start in streams.begin_streams(self.context, self.loop).items()
        }

    def step(self, elapsed: float) -> MoveStreams | None:
        """What they do next, all at once; None once all of them have come to an end."""
        moves = ((name, next_move(talk, elapsed=elapsed)) for name, talk in self.talks.items())
        ongoing = tuple((name, move) for name, move in moves if not isinstance(move, Concluded))
        return MoveStreams(ongoing) if ongoing else None

    @cached_property
    def findings(self) -> tuple[streams.StreamFinding, ...]:
        return streams.findings_of(self.talks, {item.id for item in self.case.evidence})

    def synthesis(self) -> Conversation:
        """The one conversation that makes the verdict of all."""
        talks, evidence = self.talks.values(), self.case.evidence
        start = streams.begin_synthesis(self.context, self.loop, talks, self.findings, evidence)
        after = self.case.facts.index(self.case.all(facts.StreamsMoved)[-1])
        replies = tuple(fact.reply for fact in self.case.facts[after:] if isinstance(fact, facts.RcaReplied))
        return grow_conversation(self.case, "synthesis", start, replies, with_slot)
