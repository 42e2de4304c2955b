"""The step Investigating: what is decided before the first turn, the budgets, and how a partial answer is marked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from inquest.api.findings import StepState
from inquest.api.investigation import InvestigationSpec
from inquest.api.types import Phase, Reason
from inquest.core.case.case import Case, names_of
from inquest.core.case.decide import next_step
from inquest.core.case.facts import (
    Closed,
    Diagnosed,
    ExecutionCreated,
    Fact,
    Opened,
    Prepared,
    RcaReplied,
    SnapshotTaken,
    ToolsRan,
)
from inquest.core.case.investigating import rca_inquiry
from inquest.core.case.steps import CallModel, RecordFact, RunToolBatch
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.evidence.evidence import EvidenceStatus, ObservedObject
from inquest.core.llm.conversation import BudgetSpent
from inquest.core.llm.messages import Invocation, ModelReply, ToolCall, ToolSchema
from inquest.core.llm.planning.prepare import RcaOptions
from inquest.core.llm.planning.sufficiency import Sufficiency
from inquest.core.llm.planning.visible_plan import Step, plan_of
from inquest.errors import InvalidTransition
from tests.support.tables import each_row
from tests.unit.core import cases
from tests.unit.core.cases import World, view

MODEL = {"model": "m-1"}
GET = cases.reply("", cases.call("get", kind="pod"))
PLAN = "INVESTIGATION_PLAN:\n- pods\n- logs\n- fix"


def opened(spec: InvestigationSpec | None = None, **settings: Any) -> Opened:
    made = cases.opened(**{**MODEL, **settings})
    return replace(made, spec=spec) if spec else made


def briefed(spec: InvestigationSpec | None = None, **settings: Any) -> Case:
    """A case that is about to be asked for the first time."""
    facts = (opened(spec, **settings), cases.resolved(), cases.taken(cases.finding()))
    case = fold_case(facts)
    step = next_step(case, view(5))
    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Prepared)
    return advance_case(case, step.fact)


def asked(case: Case, seconds: float = 10) -> CallModel:
    step = next_step(case, view(seconds))
    assert isinstance(step, CallModel)
    return step


def prompt_of(case: Case) -> str:
    return asked(case).move.request.messages[0].content


def answered(case: Case, *replies: ModelReply, seconds: float = 10) -> Case:
    """The case after these answers, tools run in between."""
    world = World(replies=iter(replies))
    for _ in replies:
        case, _ = world.step(case, view(seconds))
        while isinstance(next_step(case, view(seconds)), RunToolBatch):
            case, _ = world.step(case, view(seconds))
    return case


# --- the brief ----------------------------------------------------------------------------------------------------


def test_what_was_decided_before_the_first_turn_is_kept_whatever_comes_later() -> None:
    case = briefed()
    first = asked(case)
    later = next_step(case, view(200, tools=dict.fromkeys(Invocation, ())))

    assert isinstance(later, CallModel)
    assert later.move.request == first.move.request
    assert first.move.request.tools[0].name == "get"


def test_a_journal_of_an_earlier_version_goes_on_without_a_brief() -> None:
    facts = (cases.opened(**MODEL), cases.resolved(), cases.taken(), RcaReplied(cases.submitted(), cases.AT))

    assert isinstance(next_step(fold_case(facts), view()), RecordFact)


def test_the_plan_of_tools_is_written_down_with_its_reasons() -> None:
    found = briefed().first(Prepared)

    assert found is not None
    (score,) = (*found.brief.plan.selected, *found.brief.plan.excluded)
    assert score.tool == "get"
    assert score.reasons
    assert "Where to look first" in prompt_of(briefed())


def test_the_prompt_holds_context_history_findings_and_what_was_read() -> None:
    prompt = prompt_of(briefed())

    assert "- root owner: Deployment/api in shop" in prompt
    assert "Target resource is HPA-scaled" in prompt
    assert "## Remediation history of shop/Deployment/api" in prompt
    assert "- finding OOMKilled of Deployment/api" in prompt
    assert "reason: OOMKilled\nexitCode: 137\n<</" in prompt


def test_what_is_found_out_later_does_not_change_what_was_asked() -> None:
    case = answered(briefed(), cases.submitted())
    before = rca_inquiry(case).opening
    diagnosed = advance_case(case, next_step(case, view()).fact)  # type: ignore[union-attr]
    again = advance_case(diagnosed, cases.resolved(gaps=(), verified=False))

    assert rca_inquiry(again).opening == before


MANUAL = {"source": {"type": "Manual", "name": "jane"}, "target": {"kind": "Unknown", "name": "unknown"}}


def question(text: str) -> InvestigationSpec:
    return cases.spec(**MANUAL, message=text)


@pytest.mark.parametrize(
    ("spec", "doubt"),
    [(cases.spec(), "NoQuestion"), (question("list pods right now"), "WantsNow"), (question("list pods"), "HasIssues")],
    ids=["an alert", "a question about now", "an unhealthy snapshot"],
)
def test_the_gate_and_its_reason_are_written_down(spec: InvestigationSpec, doubt: str) -> None:
    found = briefed(spec).first(Prepared)

    assert found is not None
    assert (found.brief.doubt, found.brief.sufficiency) == (doubt, "")
    assert "The question and the snapshot" not in prompt_of(briefed(spec))


def test_a_fresh_and_healthy_snapshot_is_recommended_for_a_persons_question() -> None:
    clean = cases.taken(objects=(), logs=())
    facts = (opened(question("which services exist?")), cases.resolved(), clean)
    step = next_step(fold_case(facts), view(5))

    assert isinstance(step, RecordFact)
    case = advance_case(fold_case(facts), step.fact)
    assert "prefer it for this question" in prompt_of(case)


def test_behaviours_are_switched_off_by_the_habits_of_the_case() -> None:
    off = briefed(habits=RcaOptions(visible_plan=False, sufficiency=Sufficiency.OFF))
    found = off.first(Prepared)

    assert "INVESTIGATION_PLAN" in prompt_of(briefed())
    assert "INVESTIGATION_PLAN" not in prompt_of(off)
    assert found is not None
    assert found.brief.doubt == "Off"


# --- what the snapshot has read already (behaviours, section 11.5) ---------------------------------------------------

WORDS = ("kind", "name", "namespace", "api_version", "output")
READING = {"type": "object", "properties": {word: {"type": "string", "default": ""} for word in WORDS}}
READERS = tuple(ToolSchema(name, "reads", READING) for name in ("kubectl_describe", "kubectl_get", "kubectl_get_yaml"))
LIVE = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}


def having_read(**changes: Any) -> SnapshotTaken:
    """A snapshot that holds the target whole, and the events around it."""
    target = cases.evidence(1, '{"kind":"Deployment"}', arguments={"read": "target"}, **changes)
    events = cases.evidence(2, "none found", arguments={"read": "warning events"})
    return cases.taken(
        target=cases.DEPLOYMENT, objects=(ObservedObject(LIVE, "E1"),), logs=(), evidence=(target, events)
    )


def reading(taken: SnapshotTaken) -> Case:
    case = fold_case((opened(), cases.resolved(), taken))
    return advance_case(case, next_step(case, view(5, tools={Invocation.RCA: READERS})).fact)  # type: ignore[union-attr]


def told(case: Case, call: ToolCall) -> Case:
    """The case after this one call, run or not."""
    case = advance_case(case, RcaReplied(asked(case).move.stamp(cases.reply("", call)), cases.AT))
    step = next_step(case, view(10))
    assert isinstance(step, RunToolBatch)
    return advance_case(case, World().perform(step, cases.AT))


TARGET = {"kind": "deployments", "name": "api"}


@pytest.mark.parametrize(
    "call",
    [
        cases.call("kubectl_describe", **TARGET),
        cases.call("kubectl_describe", **TARGET, namespace="shop", api_version="apps/v1"),
        cases.call("kubectl_get", **TARGET, namespace="shop"),
    ],
    ids=["S10", "S10 in full", "S10 get"],
)
def test_what_the_snapshot_holds_of_the_target_is_not_read_again_and_stays_citable(call: ToolCall) -> None:
    case = told(reading(having_read()), call)

    (result,) = rca_inquiry(case).turns[-1].results
    assert result.content.startswith("already read as E1 before the first turn")
    assert [item.id for item in case.evidence] == ["E1", "E2"]
    assert case.all(ToolsRan)[-1].results == ()


@each_row(
    ("taken", "call"),
    [
        (having_read(status=EvidenceStatus.TRUNCATED), cases.call("kubectl_describe", **TARGET)),
        (having_read(status=EvidenceStatus.GAP), cases.call("kubectl_describe", **TARGET)),
        (having_read(), cases.call("kubectl_describe", **TARGET, namespace="bank")),
        (having_read(), cases.call("kubectl_describe", kind="Pod", name="api")),
        (having_read(), cases.call("kubectl_get", kind="Deployment")),
        (having_read(), cases.call("kubectl_get", **TARGET, output="yaml")),
        (having_read(), cases.call("kubectl_get_yaml", **TARGET)),
    ],
    ids=["cut", "not read", "another namespace", "another kind", "a list", "a form by its name", "in full"],
)
def test_what_the_snapshot_does_not_hold_whole_is_read(taken: SnapshotTaken, call: ToolCall) -> None:
    assert rca_inquiry(told(reading(taken), call)).turns[-1].results[0].evidence is not None


def test_a_kind_that_somebody_added_is_known_under_its_group_only() -> None:
    live = {**LIVE, "apiVersion": "example.com/v1"}
    taken = replace(having_read(), snapshot=replace(having_read().snapshot, objects=(ObservedObject(live, "E1"),)))
    named = told(reading(taken), cases.call("kubectl_get", **TARGET, api_version="example.com/v1"))
    bare = told(reading(taken), cases.call("kubectl_get", **TARGET))

    assert [rca_inquiry(case).turns[-1].results[0].repeat for case in (named, bare)] == [True, False]


# --- budgets ------------------------------------------------------------------------------------------------------


def test_invocation_1_leaves_calls_tokens_and_time_to_invocation_2() -> None:
    budgets = rca_inquiry(briefed()).budgets

    assert (budgets.turns, budgets.calls, budgets.calls_per_tool) == (20, 45, 15)
    assert budgets.tokens == 240_000
    assert (budgets.seconds, budgets.end) == (585.0, 675.0)


@pytest.mark.parametrize(
    ("settings", "calls", "end"),
    [
        ({"max_tool_calls": 20}, 10, 675.0),
        ({"max_tool_calls": 1}, 1, 675.0),
        ({"timeout": timedelta(minutes=5)}, 45, 195.0),
        ({"timeout": timedelta(hours=1)}, 45, 3_240.0),
    ],
    ids=["few calls", "one call", "a short time", "a long time"],
)
def test_small_budgets_are_shared(settings: dict[str, Any], calls: int, end: float) -> None:
    budgets = rca_inquiry(briefed(**settings)).budgets

    assert (budgets.calls, budgets.end) == (calls, end)


def test_the_worst_severity_is_asked_about_first() -> None:
    urgencies = [
        asked(briefed(cases.spec(severity=word))).move.request.urgency for word in ("critical", "warning", "low")
    ]

    assert urgencies == sorted(set(urgencies))
    assert asked(briefed()).move.request.phase == "rca"


def test_the_habits_reach_the_loop() -> None:
    habits = RcaOptions(stagnant_turns=1, model_timeout=timedelta(seconds=7))
    inquiry = rca_inquiry(briefed(habits=habits))

    assert (inquiry.budgets.stagnant_turns, inquiry.budgets.model_timeout) == (1, 7.0)


# --- partial answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "seconds", "word"),
    [
        ({"max_turns": 1}, 10, BudgetSpent.TURNS),
        ({"token_budget": 5_000}, 10, BudgetSpent.TOKENS),
        ({}, 500, BudgetSpent.TIME),
        ({"context_window": 16_500}, 10, BudgetSpent.CONTEXT),
    ],
)
def test_a_partial_answer_names_the_budget_that_was_spent(
    settings: dict[str, Any], seconds: float, word: BudgetSpent
) -> None:
    case = answered(briefed(**settings), cases.submitted(), seconds=seconds)
    step = next_step(case, view(seconds))

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Diagnosed)
    warning = step.fact.diagnosis.warnings[-1]
    assert warning.code == word
    assert warning.text.endswith(f" ({word})")
    assert step.fact.diagnosis.summary


def test_a_whole_answer_carries_no_such_warning() -> None:
    step = next_step(answered(briefed(), cases.submitted()), view())

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Diagnosed)
    assert {caution.code for caution in step.fact.diagnosis.warnings}.isdisjoint(BudgetSpent)


def test_no_answer_at_all_within_the_time_fails_the_case() -> None:
    step = next_step(briefed(), view(676))

    assert isinstance(step, RecordFact)
    assert isinstance(step.fact, Closed)
    assert (step.fact.verdict.phase, step.fact.verdict.reason) == (Phase.FAILED, Reason.TIMED_OUT)
    assert step.fact.timeout_phase is Phase.INVESTIGATING


# --- the plan -----------------------------------------------------------------------------------------------------


def plan_steps(case: Case) -> tuple[Step, ...]:
    return plan_of(rca_inquiry(case).turns, ended=case.phase is not Phase.INVESTIGATING)


def test_the_plan_of_a_case_follows_its_calls() -> None:
    case = answered(briefed(), cases.reply(PLAN, cases.call("get", kind="pod")))

    assert [(step.text, step.state) for step in plan_steps(case)] == [
        ("pods", StepState.DONE),
        ("logs", StepState.PENDING),
        ("fix", StepState.PENDING),
    ]
    assert plan_steps(case)[0].evidence == ("E2",)


def test_the_plan_is_there_before_its_first_call_returns_and_closed_after_the_verdict() -> None:
    world = World(replies=iter([cases.reply(PLAN, cases.call("get", kind="pod")), cases.submitted()]))
    begun, _ = world.step(briefed(), view(10))
    ended = world.run(view(10), begun, until=Phase.SELECTING)

    assert [step.state for step in plan_steps(begun)] == [StepState.IN_PROGRESS, StepState.PENDING, StepState.PENDING]
    assert [step.state for step in plan_steps(ended)] == [StepState.DONE, StepState.SKIPPED, StepState.SKIPPED]


def test_two_steps_are_no_plan() -> None:
    assert (
        plan_steps(answered(briefed(), cases.reply("INVESTIGATION_PLAN:\n- a\n- b\nx", cases.call("get", kind="pod"))))
        == ()
    )


# --- what we changed is read anew (behaviours, section 12.1) --------------------------------------------------------


def executed(*replies: ModelReply) -> Case:
    """A case that has just let its workflow run."""
    case = World(MODEL, replies=iter(replies)).run(view(), until=Phase.AWAITING_APPROVAL)
    return World(MODEL).run(view(stand=cases.APPROVED), case, until=Phase.EXECUTING)


def made_runs(case: Case, call: ModelReply) -> tuple[str, ...]:
    """Calls that a conversation makes after this answer; what it knows already is not made."""
    step = next_step(advance_case(case, RcaReplied(asked(case).move.stamp(call), cases.AT)), view(10))
    return tuple(run.call.name for run in step.move.runs) if isinstance(step, RunToolBatch) else ()


@pytest.mark.parametrize((), [()], ids=["L12"])
def test_the_same_call_after_our_own_change_is_made_again() -> None:
    """Before it a repeat is answered from what is known; the case that follows a change knows nothing of it."""
    before = answered(briefed(), GET)
    assert before.last(ToolsRan) is not None
    assert made_runs(before, GET) == ()
    assert executed(GET, cases.submitted(), cases.chose()).last(ExecutionCreated) is not None

    assert made_runs(briefed(), GET) == ("get",)


@pytest.mark.parametrize("fact", [RcaReplied(GET, cases.AT), ToolsRan(Invocation.RCA, (), cases.AT)])
@pytest.mark.parametrize((), [()], ids=["L12"])
def test_no_conversation_goes_on_over_a_change_of_its_own(fact: Fact) -> None:
    """Otherwise what it read before would be taken for how things are."""
    with pytest.raises(InvalidTransition):
        advance_case(executed(GET, cases.submitted(), cases.chose()), fact)


def test_the_conversation_knows_by_which_names_its_target_goes() -> None:
    """Rows that name it are shortened last."""
    case = cases.reached(Phase.SELECTING)

    assert rca_inquiry(case).names == names_of(case)
    assert case.target.name in names_of(case)
