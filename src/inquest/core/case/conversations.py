"""A conversation grows by one fact at a time: what the facts before made is kept beside the case, not made again.

Only the very same objects count as the same, so that what is kept is what telling it from the beginning would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from inquest.core.case.case import Case
from inquest.core.llm.conversation import Conversation

T = TypeVar("T")


@dataclass(frozen=True)
class KeptConversation:
    """A conversation as it stood: how it began, what was told, what that made."""

    start: Conversation
    told: tuple[object, ...]
    inquiry: Conversation

    def leads_to(self, start: Conversation, told: Sequence[object]) -> bool:
        """Whether another telling begins as this one did and goes on where it ended."""
        same = all(ours is theirs for ours, theirs in zip(self.told, told, strict=False))
        return same and len(self.told) <= len(told) and self.start == start


@dataclass(frozen=True)
class DerivedValue:
    """Something that was made, and the facts that it was made from."""

    grounds: tuple[object, ...]
    value: object


def make_once(case: Case, name: str, grounds: tuple[object, ...], make: Callable[[], T], kind: type[T]) -> T:
    """What `make` makes from these facts alone; the very same facts give the very same thing."""
    kept = case.memory.get(name)
    if isinstance(kept, DerivedValue) and isinstance(kept.value, kind) and _are_same(kept.grounds, grounds):
        return kept.value
    value = make()
    case.memory[name] = DerivedValue(grounds, value)
    return value


def _are_same(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(ours) == len(theirs) and all(one is other for one, other in zip(ours, theirs, strict=True))


def grow_conversation(
    case: Case, name: str, start: Conversation, told: Sequence[T], step: Callable[[Conversation, T], Conversation]
) -> Conversation:
    """The conversation after all that was told, `step` by `step`."""
    kept = case.memory.get(name)
    if not isinstance(kept, KeptConversation) or not kept.leads_to(start, told):
        kept = KeptConversation(start, (), start)
    inquiry = reduce(step, told[len(kept.told) :], kept.inquiry)
    case.memory[name] = KeptConversation(start, tuple(told), inquiry)
    return inquiry
