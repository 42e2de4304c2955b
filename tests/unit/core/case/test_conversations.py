"""What is kept of a conversation is what telling it from the beginning gives."""

from __future__ import annotations

from dataclasses import replace

from inquest.core.case.case import Case
from inquest.core.case.conversations import KeptConversation, grow_conversation, make_once
from inquest.core.case.facts import Prepared, RcaReplied, SelectionReplied, SnapshotTaken
from inquest.core.case.investigating import rca_inquiry
from inquest.core.case.selecting import selection_inquiry
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.llm.conversation import Conversation
from inquest.core.llm.messages import Invocation
from tests.unit.core import cases, talk

VIEW = cases.view(5, tools=talk.TOOLS)
WHOLE = talk.whole()
SPOKEN = WHOLE.facts.index(WHOLE.all(SnapshotTaken)[0]) + 1
"""Facts before a conversation can be told."""
CHOOSING = next(at for at, fact in enumerate(WHOLE.facts) if isinstance(fact, SelectionReplied))


def told(case: Case) -> tuple[Conversation, ...]:
    """Both conversations, as far as there are any."""
    first = (rca_inquiry(case, VIEW),)
    return (*first, selection_inquiry(case, VIEW)) if len(case.facts) >= CHOOSING else first


def anew(case: Case) -> tuple[Conversation, ...]:
    """The same from facts that nobody has told yet."""
    return told(fold_case(case.facts))


def test_a_case_that_grows_tells_what_a_new_one_tells() -> None:
    case = fold_case(WHOLE.facts[:SPOKEN])
    for fact in WHOLE.facts[SPOKEN:]:
        case = advance_case(case, fact)

        assert told(case) == anew(case)


def test_only_what_is_new_is_told() -> None:
    taken: list[int] = []

    def take(inquiry: Conversation, number: int) -> Conversation:
        taken.append(number)
        return replace(inquiry, runs=inquiry.runs + number)

    start, facts = rca_inquiry(fold_case(WHOLE.facts[:SPOKEN]), VIEW), tuple(range(1000, 1010))
    case = Case()
    first = grow_conversation(case, "sums", start, facts[:6], take)
    second = grow_conversation(replace(case), "sums", start, facts, take)
    case.__dict__["memory"]["more"] = KeptConversation(start, facts[:6], first)
    third = grow_conversation(case, "more", start, facts, take)

    assert taken == [*facts[:6], *facts, *facts[6:]]
    assert second == third


def test_what_a_fact_that_was_not_written_would_have_made_is_nobodys_memory() -> None:
    second = WHOLE.facts.index(WHOLE.all(RcaReplied)[1])
    trunk = fold_case(WHOLE.facts[:second])
    other = RcaReplied(talk.calling(talk.asks(77, kind="node", name="n-1")), cases.AT)
    told(advance_case(trunk, other))

    case = advance_case(trunk, WHOLE.facts[second])

    assert told(case) == anew(case)


def test_a_memory_is_no_part_of_a_case() -> None:
    case, other = fold_case(WHOLE.facts), fold_case(WHOLE.facts)
    told(case)

    assert {Invocation.RCA, Invocation.SELECTION} < case.memory.keys()
    assert other.memory == {}
    assert case == other


def test_a_prompt_is_made_once_and_anew_from_other_facts() -> None:
    spoken = fold_case(WHOLE.facts[:SPOKEN])
    asked = [make_once(spoken, "it", (spoken.opened, fact), lambda fact=fact: [fact], list) for fact in (1, 1, 2)]  # type: ignore[misc]

    assert asked == [[1], [1], [2]]
    assert asked[0] is asked[1]


def test_what_comes_later_does_not_change_what_was_asked() -> None:
    stages = [fold_case(WHOLE.facts[:count]) for count in range(SPOKEN + 1, len(WHOLE.facts) + 1)]

    assert len({rca_inquiry(case, VIEW).opening for case in stages if case.first(Prepared)}) == 1
