"""Transitions: which facts belong where, and that a case only ever moves along the table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.types import TERMINAL_PHASES, Phase
from inquest.core.case import facts as case_facts
from inquest.core.case.case import Case
from inquest.core.case.facts import ApprovalDecided, Closed, Fact, JobSucceeded, Opened, PolicyRuled, ToolsRan
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.outcome import Conclusion
from inquest.core.case.transitions import TRANSITIONS, advance_case, fold_case
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation
from inquest.errors import InvalidTransition
from tests.support.tables import each_row
from tests.unit.core import cases

FACTS = cases.one_of_each()
SLOTS = (
    "Opened, Snapshot, ModelTurn, ToolBatch, Verdict, Context, SelectionTurn, Selected, Ruling, Intent, Effect, "
    "Decision, Closed"
)
MOVES: dict[Phase, str] = {
    Phase.PENDING: "Investigating Completed Failed Cancelled",
    Phase.INVESTIGATING: "Selecting Completed Failed Cancelled",
    Phase.SELECTING: "Analyzing Completed Failed Cancelled",
    Phase.ANALYZING: "AwaitingApproval Executing Completed Failed Cancelled",
    Phase.AWAITING_APPROVAL: "Executing Completed Failed Cancelled",
    Phase.EXECUTING: "Verifying Completed Failed Cancelled",
    Phase.VERIFYING: "Completed",
    Phase.COMPLETED: "",
    Phase.FAILED: "",
    Phase.CANCELLED: "",
}
"""Resources, section 3.5, row by row; staying in a phase is no move."""


def closed(phase: Phase) -> Closed:
    return Closed(Conclusion(phase, "the end"), cases.AT)


EVERYTHING: tuple[Fact, ...] = (
    *(fact for fact in FACTS if not isinstance(fact, Closed)),
    *(closed(phase) for phase in Phase),
)
facts = st.lists(st.sampled_from(EVERYTHING), max_size=30)


def willing(found: Iterable[Fact]) -> Case:
    """The case after those of the facts that are in turn."""
    return reduce(_taking, found, Case())


def _taking(case: Case, fact: Fact) -> Case:
    try:
        return advance_case(case, fact)
    except InvalidTransition:
        return case


# --- slots ------------------------------------------------------------------------------------------------------


def test_there_is_one_of_each_fact() -> None:
    assert {type(fact).__name__ for fact in FACTS} == set(case_facts.FACTS)


@each_row("fact", FACTS, ids=lambda fact: type(fact).__name__)
def test_a_fact_comes_back_from_its_slot_as_it_was(fact: Fact) -> None:
    text = json.dumps(dump_fact(fact))

    assert load_fact(json.loads(text)) == fact
    assert load_fact(dump_fact(fact)) == fact
    assert dump_fact(load_fact(json.loads(text))) == dump_fact(fact)


def test_an_enum_in_a_slot_is_an_enum_again() -> None:
    found = load_fact(json.loads(json.dumps(dump_fact(cases.decided()))))

    assert isinstance(found, ApprovalDecided)
    assert type(found.state) is type(cases.decided().state)


def test_a_fact_that_this_version_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidTransition):
        load_fact({"fact": "Dreamt", "body": {}})


def test_the_kinds_of_slots_are_those_of_the_journal() -> None:
    assert {fact.SLOT for fact in case_facts.FACTS.values()} == set(SLOTS.split(", "))


@given(facts)
def test_a_case_folded_from_its_slots_is_the_case(found: list[Fact]) -> None:
    case = willing(found)

    again = fold_case(load_fact(json.loads(json.dumps(dump_fact(fact)))) for fact in case.facts)

    assert again == case


# --- the table ----------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Case, Fact]] = {
    "C-LC-7 Pending does not skip to Executing": (Case(), cases.created()),
    "C-LC-7 Executing does not go back to Investigating": (Case(Phase.EXECUTING), cases.opened()),
    "C-LC-7 Completed does not go back to Pending": (Case(Phase.COMPLETED), closed(Phase.PENDING)),
    "C-LC-7 a case is opened once": (Case(Phase.INVESTIGATING), cases.opened()),
    "C-LC-7 a case closes into no phase that goes on": (Case(Phase.SELECTING), closed(Phase.ANALYZING)),
    "C-LC-7 no end is ended again": (Case(Phase.FAILED), closed(Phase.FAILED)),
    "C-LC-7 a cancelled case is not completed": (Case(Phase.CANCELLED), closed(Phase.COMPLETED)),
    "an approval is not decided before it is asked for": (Case(Phase.ANALYZING), cases.decided()),
    "policy does not rule before the choice": (Case(Phase.SELECTING), PolicyRuled(cases.ruling(), cases.AT)),
    "policy does not rule again while people think": (
        Case(Phase.AWAITING_APPROVAL),
        PolicyRuled(cases.ruling(), cases.AT),
    ),
    "nothing is verified that does not run": (Case(Phase.ANALYZING), JobSucceeded(cases.AT)),
    "a made change is not called cancelled": (Case(Phase.VERIFYING), closed(Phase.CANCELLED)),
    "a made change is not called failed": (Case(Phase.VERIFYING), closed(Phase.FAILED)),
    "a second execution is not created in Verifying": (Case(Phase.VERIFYING), cases.created()),
}


@pytest.mark.parametrize(("case", "fact"), REFUSED.values(), ids=REFUSED.keys())
def test_a_fact_out_of_turn_is_refused(case: Case, fact: Fact) -> None:
    with pytest.raises(InvalidTransition):
        advance_case(case, fact)


def test_c_lc_7_an_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match="Dreaming"):
        Phase("Dreaming")


@each_row("phase", Phase)
def test_a_phase_moves_only_as_the_reference_says(phase: Phase) -> None:
    moved = set()
    for fact in EVERYTHING:
        after = _taking(Case(phase), fact).phase
        moved |= {after} - {phase}

    assert moved == {Phase(word) for word in MOVES[phase].split()}


def test_every_phase_can_be_reached() -> None:
    found, more = {Phase.PENDING}, True
    while more:
        reachable = {Phase(word) for phase in found for word in MOVES[phase].split()}
        more, found = not reachable <= found, found | reachable

    assert found == set(Phase)
    assert set(TRANSITIONS) == set(Phase)


@given(facts)
def test_no_phase_moves_in_silence(found: list[Fact]) -> None:
    phases = [Phase.PENDING]
    case = Case()
    for fact in found:
        case = _taking(case, fact)
        phases.append(case.phase)

    for before, after in pairwise(phases):
        assert after is before or str(after) in MOVES[before].split()


@given(facts, facts)
def test_a_terminal_phase_never_moves(before: list[Fact], after: list[Fact]) -> None:
    case = willing(before)

    later = reduce(_taking, after, case)

    assert case.phase not in TERMINAL_PHASES or later == case


@given(facts)
def test_folding_is_advancing_one_by_one(found: list[Fact]) -> None:
    case = willing(found)

    assert fold_case(case.facts) == reduce(advance_case, case.facts, Case())
    assert fold_case(case.facts).phase is case.phase


# --- the case -----------------------------------------------------------------------------------------------------


def test_a_case_that_was_never_opened_has_no_beginning() -> None:
    with pytest.raises(InvalidTransition):
        _ = Case().opened


def test_the_identity_of_a_case_is_its_first_root_owner() -> None:
    other = cases.resolved(root=cases.DEPLOYMENT.model_copy(update={"name": "other"}))

    case = fold_case([cases.opened(), cases.taken(), cases.resolved()])

    assert Case().first(Opened) is None
    assert len(case.fingerprint) == 64
    assert advance_case(case, other).fingerprint == case.fingerprint


def test_evidence_stands_in_the_order_of_its_ids() -> None:
    batch = ToolsRan(Invocation.RCA, (cases.ran(ToolRun(cases.call("get"), "E2", "b")),), cases.AT)

    case = fold_case([cases.opened(), cases.taken(), batch])

    assert [item.id for item in case.evidence] == ["E1", "E2"]
    assert replace(case, facts=()).evidence == ()
