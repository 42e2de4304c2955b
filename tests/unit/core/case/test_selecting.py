"""From a diagnosis to one of the nine: every question is asked once, and what was named is looked up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.api.refs import DetectedLabels, TargetRef
from inquest.api.types import Detection, Outcome, Phase, Reason, SubReason
from inquest.core.case import facts
from inquest.core.case.case import Case, context_of
from inquest.core.case.decide import next_step
from inquest.core.case.endings import end_cancelled, model_unavailable, timed_out
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.outcome import Conclusion
from inquest.core.case.steps import ResolveContext, Wait
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.detected_labels import ALL_DETECTIONS
from inquest.core.evidence.evidence import Finding, Gap, Health
from inquest.core.llm.messages import ModelReply, ToolCall
from inquest.core.reporting import status
from inquest.core.selection import selection
from tests.unit.core import cases
from tests.unit.core.cases import World, view

MODEL = {"model": "m-1"}
INVALID = cases.invalid()
HEALTHY = cases.taken(health=Health.HEALTHY)


def answers(*replies: ModelReply, **more: Any) -> World:
    return World({**MODEL, **more.pop("settings", {})}, replies=iter(replies), **more)


def verdict_of(case: Case) -> Conclusion:
    assert case.closed is not None
    return case.closed.verdict


def ended(world: World) -> tuple[Outcome | None, Phase, Conclusion]:
    verdict = verdict_of(world.run(view()))
    return verdict.outcome, verdict.phase, verdict


def codes(verdict: Conclusion) -> list[str]:
    return [warning.code for warning in verdict.merged.warnings] if verdict.merged else []


def asked(case: Case) -> list[ModelReply]:
    return [fact.reply for fact in case.all(facts.SelectionReplied)]


# --- which group (pipeline, section 10) ---------------------------------------------------------------------------

GROUPS = ("a.example/v1", "b.example/v1")
GADGET = TargetRef(kind="Gadget", name="g", namespace="shop")


def looked_up(target: TargetRef) -> ResourceContext:
    """A cluster in which two groups serve Gadget."""
    if target.kind != "Gadget":
        return cases.context(target=target)
    known = target.api_version in GROUPS
    found = target if known else target.model_copy(update={"api_version": GROUPS[0]})
    pin = cases.PINNED_DEPLOYMENT.model_copy(update={"kind": "Gadget", "name": "g", "api_version": found.api_version})
    return cases.context(
        target=found,
        root=found,
        chain=(),
        root_pin=pin,
        verified=known or not target.api_version,
        choices=() if known else GROUPS,
    )


def about(api_version: str | None = None, **more: Any) -> ModelReply:
    target = {"kind": "Gadget", "name": "g", "namespace": "shop", "api_version": api_version}
    return cases.submitted(remediation_target=target, **more)


@pytest.mark.parametrize("said", [None, "c.example/v1"], ids=["no group said", "a group that does not serve it"])
def test_a_kind_of_several_groups_goes_to_a_person(said: str | None) -> None:
    outcome, phase, verdict = ended(answers(about(said), contexts=looked_up))

    assert (outcome, phase, verdict.sub_reason) == (Outcome.RCA_INCOMPLETE, Phase.COMPLETED, SubReason.AMBIGUOUS_KIND)
    assert verdict.message == (
        "Root cause analysis incomplete: no verified target; the target's kind is served by a.example/v1, b.example/v1"
    )
    assert "AmbiguousKind" in codes(verdict)
    assert verdict.conditions["TargetVerified"] == ("False", "AmbiguousKind")


def test_a_group_that_the_diagnosis_names_is_looked_up() -> None:
    case = answers(about("b.example/v1"), cases.chose(), contexts=looked_up).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL
    assert [fact.context.target.api_version for fact in case.all(facts.ContextResolved)][1:] == ["b.example/v1"]


def test_the_signals_own_resource_is_of_the_group_that_the_signal_means() -> None:
    """Several groups serve its kind: it is the one that the Signal means (row 3)."""
    contexts = [cases.context(choices=GROUPS)]

    case = answers(cases.submitted(), cases.chose(), contexts=lambda _: contexts[0]).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL


def of_two(target: TargetRef) -> ResourceContext:
    """A cluster in which two groups have an object of the Signal's name; the first is taken where none is said."""
    known = target.api_version in GROUPS
    found = target if known else target.model_copy(update={"api_version": GROUPS[0]})
    pin = cases.PINNED_DEPLOYMENT.model_copy(update={"kind": "Pod", "name": "api-1", "api_version": found.api_version})
    more: dict[str, Any] = {} if known else {"choices": GROUPS, "rivals": GROUPS, "warnings": ("two objects",)}
    return cases.context(target=found, root=found, chain=(), root_pin=pin, **more)


def unsaid(*replies: ModelReply, **more: Any) -> World:
    """A case of a Signal that names no group, where two objects have its name."""
    named = {"target": {"kind": "Pod", "name": "api-1", "namespace": "shop"}}
    return replace(answers(*replies, contexts=of_two, **more), code=lambda: cases.tried(), signal=named)


OWN = {"kind": "Pod", "name": "api-1", "namespace": "shop"}


@pytest.mark.parametrize("target", [OWN, None], ids=["named without a group", "not named"])
def test_a_signal_that_means_two_objects_goes_to_a_person(target: Any) -> None:
    outcome, phase, verdict = ended(unsaid(cases.submitted(remediation_target=target)))

    assert (outcome, phase, verdict.sub_reason) == (Outcome.RCA_INCOMPLETE, Phase.COMPLETED, SubReason.AMBIGUOUS_KIND)
    assert "a.example/v1, b.example/v1" in verdict.message


def test_of_a_signal_that_means_two_objects_the_one_that_the_diagnosis_names_is_taken() -> None:
    case = unsaid(cases.submitted(remediation_target={**OWN, "api_version": GROUPS[1]}), cases.chose()).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL
    assert [fact.context.target.api_version for fact in case.all(facts.ContextResolved)] == list(GROUPS)


def test_without_a_model_a_signal_that_means_two_objects_goes_to_a_person() -> None:
    """The detectors looked at the one that was taken: that says nothing of the one that is meant."""
    world = replace(unsaid(), settings={}, findings=(cases.finding(),))

    verdict = ended(world)[2]

    assert verdict.sub_reason is SubReason.AMBIGUOUS_KIND
    assert verdict.merged is not None
    assert verdict.merged.workflow is None


def test_another_target_with_a_group_of_its_own_is_looked_up() -> None:
    case = unsaid(about("a.example/v1"), cases.chose()).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL


def test_without_a_model_an_ambiguous_kind_goes_to_a_person() -> None:
    world = World(findings=(cases.finding(object=GADGET),), contexts=looked_up)

    assert ended(world)[2].sub_reason is SubReason.AMBIGUOUS_KIND


def test_what_was_detected_at_first_stays_where_nothing_is_detected_later() -> None:
    none = DetectedLabels(failed_detections=ALL_DETECTIONS)
    later = replace(looked_up(GADGET.model_copy(update={"api_version": GROUPS[0]})), labels=none, quota={})
    world = answers(about("a.example/v1"), contexts=lambda t: later if t.kind == "Gadget" else looked_up(t))
    case = world.run(view(), until=Phase.SELECTING)
    case, _ = world.step(case, view())

    found = context_of(case)

    assert (found.labels, found.quota) == (cases.context().labels, cases.context().quota)
    some = replace(later, labels=DetectedLabels(failed_detections=(Detection("stateful"),)))
    other = advance_case(case, facts.ContextResolved(some, cases.history(), cases.AT))
    assert context_of(other).labels == some.labels


# --- which object (pipeline, section 9) ---------------------------------------------------------------------------

NODE = {"kind": "Node", "name": "n9"}
CONFIG = {"kind": "ConfigMap", "name": "cfg", "namespace": "shop"}
SECRET = {"kind": "Secret", "name": "db", "namespace": "shop"}
ELSEWHERE = {"kind": "ConfigMap", "name": "cfg", "namespace": "payments"}


def choosing(target: Any, workflow_id: str = cases.WORKFLOW_ID, **more: Any) -> ModelReply:
    cause = {"summary": "the memory limit is too low", "remediation_target": target}
    return cases.chose(workflow_id, root_cause_analysis=cause, **more)


def selecting(*replies: ModelReply, **more: Any) -> World:
    return answers(cases.submitted(), *replies, **more)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"kind": "Deployment", "name": "halluc"}, id="pipeline-20.5-01"),
        pytest.param({"kind": "Pod", "name": "worker-abc"}, id="pipeline-20.5-02a"),
        pytest.param({"kind": "Deployment", "name": "x", "api_version": "apps/v1beta1"}, id="another version"),
        pytest.param(None, id="none named"),
    ],
)
def test_a_target_of_a_kind_that_was_diagnosed_is_the_root_owner(target: Any) -> None:
    case = selecting(choosing(target)).run(view())

    assert case.phase is Phase.AWAITING_APPROVAL
    assert len(asked(case)) == 1


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(NODE, id="pipeline-20.5-02c"),
        pytest.param(CONFIG, id="a ConfigMap"),
        pytest.param(SECRET, id="a Secret"),
        pytest.param({"kind": "Deployment", "name": "x", "api_version": "other/v1"}, id="another group"),
    ],
)
def test_a_target_of_another_kind_goes_to_a_person_and_is_asked_of_nobody(target: Any) -> None:
    case = selecting(choosing(target)).run(view())

    verdict = verdict_of(case)
    shown = f"{target['kind']}/{target['name']}"
    why = f"NotResolved: {shown} is of another kind than Deployment/api"
    assert (verdict.outcome, verdict.phase) == (Outcome.RCA_INCOMPLETE, Phase.FAILED)
    assert verdict.message == f"Root cause analysis incomplete: no verified target; {why}"
    assert verdict.conditions["TargetVerified"][0] == "False"
    assert len(asked(case)) == 1
    assert case.all(facts.Proposed) == ()


ACTIONS = cases.reply("", cases.call("list_available_actions"))
LISTED = cases.reply("", cases.call("list_workflows", action_type="Restart"))
DISCOVERED: dict[str, tuple[list[ModelReply], frozenset[str], str]] = {
    "nothing answered": ([ACTIONS, cases.declined()], frozenset({"list_available_actions"}), "APIError"),
    "one step answered": ([ACTIONS, LISTED, cases.declined()], frozenset({"list_workflows"}), "AnalysisCompleted"),
    "nobody asked": ([cases.declined()], frozenset({"list_available_actions"}), "AnalysisCompleted"),
}


@pytest.mark.parametrize(("replies", "away", "reason"), DISCOVERED.values(), ids=DISCOVERED.keys())
def test_a_catalogue_that_could_not_be_read_is_not_one_in_which_nothing_fits(
    replies: list[ModelReply], away: frozenset[str], reason: str
) -> None:
    case = selecting(*replies, away=away).run(view())

    assert case.closed is not None
    verdict = case.closed.verdict
    assert (str(verdict.reason), verdict.needs_review) == (reason, True)
    assert (verdict.outcome is Outcome.NO_MATCHING_WORKFLOWS) == (reason == "AnalysisCompleted")


def test_what_reads_like_an_order_is_told_to_people_and_to_the_policy() -> None:
    case = selecting(LISTED, cases.chose(), suspect=(2,)).run(view())

    selected = case.last(facts.Proposed)
    assert selected is not None
    assert selected.verdict.merged is not None
    told = [warning for warning in selected.verdict.merged.warnings if warning.code == "InjectionSuspected"]
    assert [warning.text.split()[1] for warning in told] == [
        result.evidence.id for batch in case.all(facts.ToolsRan) for result in batch.results if result.evidence
    ]


UNPLACED: dict[str, tuple[dict[str, str], TargetRef]] = {
    "of the Signal's namespace": (
        {"kind": "ConfigMap", "name": "cfg"},
        TargetRef(kind="ConfigMap", name="cfg", namespace="shop"),
    ),
    "of its own": (CONFIG, TargetRef(kind="ConfigMap", name="cfg", namespace="shop")),
}


@pytest.mark.parametrize(("target", "sought"), UNPLACED.values(), ids=UNPLACED.keys())
def test_a_target_without_a_namespace_is_looked_for_where_the_signal_is(
    target: dict[str, str], sought: TargetRef
) -> None:
    case = answers(cases.submitted(remediation_target=target)).run(view(), until=Phase.SELECTING)

    assert next_step(case, view()) == ResolveContext(sought)


def test_a_diagnosis_of_the_signals_own_root_needs_no_second_look() -> None:
    case = answers(cases.submitted(remediation_target={"kind": "Deployment", "name": "api"}), cases.chose()).run(view())

    assert len(case.all(facts.ContextResolved)) == 1
    assert case.phase is Phase.AWAITING_APPROVAL


def test_a_tenants_case_reaches_nothing_that_turns_out_to_be_in_no_namespace() -> None:
    node = cases.context(target=TargetRef(kind="Node", name="n-1"), root=TargetRef(kind="Node", name="n-1"), chain=())
    named = cases.submitted(remediation_target={"kind": "Node", "name": "n-1", "namespace": "shop"})

    case = answers(
        named,
        settings={"home": "inquest-system"},
        contexts=lambda target: node if target.kind == "Node" else cases.context(target=target),
    ).run(view())

    verdict = verdict_of(case)
    assert verdict.outcome is Outcome.RCA_INCOMPLETE
    assert "Node/n-1 is outside the namespaces of this case" in verdict.message
    assert case.all(facts.SelectionReplied) == ()


# --- tries (pipeline, section 8.2) --------------------------------------------------------------------------------


def test_pipeline_20_5_04b_two_corrections_and_the_third_is_valid() -> None:
    wrong = cases.chose("wrong")
    world = selecting(wrong, wrong, cases.chose(), validations=iter([INVALID, INVALID, cases.valid()]))

    case = world.run(view())

    assert [tried.validation.valid for tried in case.all(facts.SelectionTried)] == [False, False, True]
    assert case.phase is Phase.AWAITING_APPROVAL


REVIEWS: dict[str, World] = {
    "pipeline-20.5-05a in invocation 2": selecting(
        cases.chose("wrong", needs_human_review=True, human_review_reason="ask me"), validations=iter([INVALID])
    ),
    "in invocation 1": answers(
        cases.submitted(needs_human_review=True, human_review_reason="ask me"),
        cases.chose("wrong"),
        validations=iter([INVALID]),
    ),
}


@pytest.mark.parametrize("world", REVIEWS.values(), ids=REVIEWS.keys())
def test_where_a_person_is_asked_anyway_nothing_is_corrected(world: World) -> None:
    case = world.run(view())

    verdict = verdict_of(case)
    assert len(case.all(facts.SelectionTried)) == 1
    assert (verdict.outcome, verdict.phase) == (Outcome.HUMAN_REVIEW_REQUESTED, Phase.COMPLETED)
    assert verdict.merged is not None
    assert verdict.merged.workflow is None
    assert verdict.message == "Human review requested: ask me; no such workflow"


UNREAD: dict[str, tuple[list[ModelReply], list[str]]] = {
    "pipeline-20.5-05b a correction that cannot be read": (
        [cases.chose("wrong"), cases.reply("hm"), cases.reply("hm"), cases.reply("hm")],
        ["workflow_not_found", "", ""],
    ),
    "one that can be read in between": (
        [cases.chose("wrong"), cases.reply("hm"), cases.reply("hm"), cases.chose("worse")],
        ["workflow_not_found", "", "image_mismatch"],
    ),
}


@pytest.mark.parametrize(("replies", "reasons"), UNREAD.values(), ids=UNREAD.keys())
def test_a_correction_that_cannot_be_read_is_a_failed_try(replies: list[ModelReply], reasons: list[str]) -> None:
    found = iter([INVALID, cases.invalid("image_mismatch", "another image")])
    case = selecting(*replies, validations=found).run(view())

    verdict = verdict_of(case)
    assert [tried.validation.reason for tried in case.all(facts.SelectionTried)] == reasons
    assert (verdict.outcome, verdict.phase) == (Outcome.VALIDATION_FAILED, Phase.COMPLETED)
    last = next(reason for reason in reversed(reasons) if reason)
    assert (
        str(verdict.review_reason)
        == {"workflow_not_found": "WorkflowNotFound", "image_mismatch": "ImageMismatch"}[last]
    )
    assert verdict.merged is not None
    assert (verdict.merged.workflow, verdict.merged.rationale) == (None, "fits")
    assert verdict.message.startswith("Workflow validation failed: Attempt 1: no such workflow; Attempt 2: ")


def test_turns_that_are_spent_on_a_correction_are_a_failed_try() -> None:
    listing = [cases.reply("", replace(cases.call("list_workflows"), id=f"c-{number}")) for number in range(40)]
    case = selecting(cases.chose("wrong"), *listing, validations=iter([INVALID])).run(view())

    assert len(case.all(facts.SelectionTried)) == selection.MAX_TRIES
    assert verdict_of(case).outcome is Outcome.VALIDATION_FAILED


# --- resolved (pipeline, section 5.3) -----------------------------------------------------------------------------

OVER = cases.submitted(investigation_outcome="problem_resolved")
SICK = cases.taken(cases.finding(), health=Health.UNHEALTHY)


@pytest.mark.parametrize(
    ("later", "outcome", "sub"),
    [
        pytest.param(HEALTHY, Outcome.PROBLEM_RESOLVED, SubReason.PROBLEM_RESOLVED, id="D12 healthy"),
        pytest.param(SICK, Outcome.NO_MATCHING_WORKFLOWS, SubReason.NO_MATCHING_WORKFLOWS, id="D12 crash loop"),
        pytest.param(
            cases.taken(health=Health.UNKNOWN, gaps=(Gap("pods", "forbidden"),)),
            Outcome.NO_MATCHING_WORKFLOWS,
            SubReason.NO_MATCHING_WORKFLOWS,
            id="a read that failed",
        ),
    ],
)
@pytest.mark.parametrize("before", [Health.HEALTHY, Health.UNHEALTHY])
def test_a_resolved_word_counts_where_a_new_look_agrees(
    later: facts.SnapshotTaken, outcome: Outcome, sub: SubReason, before: Health
) -> None:
    """What was read before the inquiry decides nothing."""
    world = answers(OVER, health=before, later=lambda: later)

    case = world.run(view())

    verdict = verdict_of(case)
    assert (verdict.outcome, verdict.sub_reason, verdict.phase) == (outcome, sub, Phase.COMPLETED)
    assert len(case.all(facts.TargetRechecked)) == 1
    assert asked(case) == []
    assert ("FindingActive" in codes(verdict)) is (later is SICK)


def test_the_evidence_of_the_second_look_is_kept_and_numbered_on() -> None:
    case = answers(cases.reply("", cases.call("get", kind="pod")), OVER, later=lambda: HEALTHY).run(view())

    assert [item.id for item in case.evidence] == ["E1", "E2", "E3"]
    assert load_fact(dump_fact(case.all(facts.TargetRechecked)[0])) == case.all(facts.TargetRechecked)[0]


def test_invocation_2_may_say_that_it_is_over_and_is_believed_no_more() -> None:
    first = cases.submitted(investigation_outcome=None, contributing_factors=[])
    over = cases.declined(investigation_outcome="problem_resolved", confidence=0.9)

    well = answers(first, over, later=lambda: HEALTHY).run(view())
    sick = answers(first, over, later=lambda: SICK).run(view())

    assert verdict_of(well).outcome is Outcome.PROBLEM_RESOLVED
    assert verdict_of(sick).outcome is Outcome.NO_MATCHING_WORKFLOWS
    assert [len(case.all(facts.TargetRechecked)) for case in (well, sick)] == [1, 1]


@pytest.mark.parametrize(("seconds", "looks"), [(20, 0), (60, 1)], ids=["fresh", "stale"])
def test_code_alone_looks_again_only_at_what_is_stale(seconds: float, looks: int) -> None:
    case = World(findings=(), health=Health.HEALTHY).run(view(seconds))

    assert len(case.all(facts.TargetRechecked)) == looks
    assert verdict_of(case).outcome is Outcome.PROBLEM_RESOLVED


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(OVER, id="pipeline-20.2-10a"),
        pytest.param(cases.submitted(investigation_outcome="not_actionable"), id="pipeline-20.2-10b"),
        pytest.param(cases.submitted(investigation_outcome=None, actionable=False), id="pipeline-20.2-10c"),
    ],
)
def test_where_nothing_is_to_be_done_nothing_is_selected(reply: ModelReply) -> None:
    case = answers(reply, later=lambda: HEALTHY).run(view())

    assert case.closed is not None
    assert case.all(facts.SelectionReplied) == ()


# --- other ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("findings", "summary", "confidence"),
    [
        pytest.param((), "the limit is too low", 0.5, id="D03"),
        pytest.param((cases.finding(),), "", 0.95, id="findings"),
    ],
)
def test_prose_is_asked_again_and_then_for_people_only(findings: Any, summary: str, confidence: float) -> None:
    prose = cases.reply("I looked around.\nRoot cause: the limit is too low")

    case = answers(prose, prose, findings=findings).run(view())

    verdict = verdict_of(case)
    assert (verdict.outcome, verdict.sub_reason) == (Outcome.INCONCLUSIVE, SubReason.LLM_PARSING_ERROR)
    assert len(case.all(facts.RcaReplied)) == 2
    assert verdict.merged is not None
    assert verdict.merged.summary == (summary or cases.finding().summary)
    assert verdict.merged.confidence == confidence
    assert case.all(facts.SelectionReplied) == ()


def test_no_verdict_on_the_reserved_turn_says_so() -> None:
    get = cases.reply("", cases.call("get", kind="pod"))
    _, _, verdict = ended(answers(get, settings={"max_turns": 1}))

    assert verdict.message == "Root cause analysis incomplete: the model gave no verdict (TurnBudgetSpent)"
    assert verdict.conditions["TargetVerified"] == ("True", "RootOwnerResolved")
    assert "TurnBudgetSpent" in codes(verdict)


def test_a_model_that_asks_for_a_person_is_given_the_catalogue_all_the_same() -> None:
    asking = cases.submitted(needs_human_review=True, human_review_reason="the owner must decide")

    outcome, phase, verdict = ended(answers(asking, cases.chose()))

    assert (outcome, phase) == (Outcome.HUMAN_REVIEW_REQUESTED, Phase.FAILED)
    assert verdict.merged is not None
    assert verdict.merged.workflow is not None


LISTED = cases.reply("", cases.call("list_workflows"))
SPENT: dict[str, tuple[World, list[str]]] = {
    "turns of invocation 1": (
        answers(cases.submitted(), cases.chose(), settings={"max_turns": 1}),
        ["TurnBudgetSpent", "TurnBudgetSpent"],
    ),
    "turns of invocation 2": (
        answers(cases.submitted(), LISTED, cases.chose(), settings={"max_turns": 2}),
        ["TurnBudgetSpent"],
    ),
    "nothing": (answers(cases.submitted(), cases.chose()), []),
}


@pytest.mark.parametrize(("world", "words"), SPENT.values(), ids=SPENT.keys())
def test_a_budget_that_was_spent_is_a_warning_that_the_policy_sees(world: World, words: list[str]) -> None:
    case = world.run(view())

    selected = case.last(facts.Proposed)
    assert selected is not None
    assert [code for code in codes(selected.verdict) if code.endswith("Spent")] == words


AFTERWARDS: dict[str, tuple[ModelReply, Phase, Outcome | None, str]] = {
    "pipeline-20.2-06 a workflow beside not_actionable": (
        cases.chose(investigation_outcome="not_actionable"),
        Phase.AWAITING_APPROVAL,
        None,
        "ContradictoryVerdict",
    ),
    "pipeline-20.2-11 neither summary nor flag": (
        cases.reply('{"confidence": 0.9}'),
        Phase.COMPLETED,
        Outcome.INCONCLUSIVE,
        "",
    ),
    "a summary and nothing else": (
        cases.reply('{"rca_summary": "s", "confidence": 0.9}'),
        Phase.COMPLETED,
        Outcome.NO_MATCHING_WORKFLOWS,
        "",
    ),
}


@pytest.mark.parametrize(("reply", "phase", "outcome", "warning"), AFTERWARDS.values(), ids=AFTERWARDS.keys())
def test_what_the_second_invocation_says_twice_stands(
    reply: ModelReply, phase: Phase, outcome: Outcome | None, warning: str
) -> None:
    first = cases.submitted(investigation_outcome=None)

    case = answers(first, reply, reply).run(view())

    ending = case.closed.verdict if case.closed else case.all(facts.Proposed)[0].verdict
    assert (case.phase, case.closed and ending.outcome) == (phase, outcome)
    assert warning in ("", *codes(ending))
    assert len(asked(case)) == (1 if outcome is Outcome.NO_MATCHING_WORKFLOWS else 2)
    if outcome is Outcome.INCONCLUSIVE:
        assert ending.sub_reason is SubReason.LLM_PARSING_ERROR


BROKEN: dict[str, Any] = {"severity": "awful"}
STILL_BROKEN: dict[str, list[ModelReply]] = {
    "of a choice": [cases.chose(**BROKEN)] * 2,
    "of a refusal": [cases.declined(**BROKEN)] * 2,
}


@pytest.mark.parametrize("replies", STILL_BROKEN.values(), ids=STILL_BROKEN.keys())
def test_what_the_corrective_turn_did_not_heal_is_said(replies: list[ModelReply]) -> None:
    case = selecting(*replies).run(view())

    ending = case.closed.verdict if case.closed else case.all(facts.Proposed)[0].verdict
    assert ending.merged is not None
    texts = [warning.text for warning in ending.merged.warnings if warning.code == "ReplyProblems"]
    assert texts == ["Parts of the reply could not be used: severity"]


GONE = model_unavailable("ModelUnauthorized: Permanent error: m-1: 401", permanent=True)
CUT_OFF: dict[str, tuple[Conclusion, tuple[Finding, ...], str | None]] = {
    "no endpoint answers, and a detector knows": (GONE, (cases.finding(),), cases.finding().summary),
    "no endpoint answers": (GONE, (), "not determined: ModelUnauthorized"),
    "the time is over": (timed_out(Phase.INVESTIGATING), (cases.finding(),), cases.finding().summary),
    "a person stopped it": (end_cancelled(), (cases.finding(),), None),
}


@pytest.mark.parametrize(("verdict", "findings", "summary"), CUT_OFF.values(), ids=CUT_OFF.keys())
def test_a_model_that_is_cut_off_leaves_the_word_to_the_detectors(
    verdict: Conclusion, findings: tuple[Finding, ...], summary: str | None
) -> None:
    case = fold_case([cases.opened(**MODEL), cases.resolved(), cases.taken(*findings)])

    told = status.status_changes(cases.closing(verdict, case)).get("root_cause")

    assert (told.summary if told else None) == summary


def test_a_case_that_is_stopped_keeps_what_both_invocations_said() -> None:
    case = answers(cases.submitted(), cases.chose(confidence=0.8)).run(view())
    selected = case.last(facts.Proposed)

    stopped = World().run(view(cancelled=True), case)

    assert selected is not None
    assert verdict_of(stopped).merged == selected.verdict.merged is not None


# --- laws ---------------------------------------------------------------------------------------------------------

BYTES = st.binary(max_size=60) | st.sampled_from([b"\xff\xfe{", b"\x00", b'{"rca_summary": "s"}', b"\xed\xa0\x80"])
TOOLS = ["", "submit_result", "submit_result_with_workflow", "submit_result_no_workflow", "get", "\udcff"]


@st.composite
def replies(draw: st.DrawFn) -> ModelReply:
    """What an endpoint may send, whatever the bytes are that it calls text."""
    text = draw(BYTES).decode("utf-8", draw(st.sampled_from(["replace", "surrogateescape"])))
    name, finish = (
        draw(st.sampled_from(TOOLS)),
        draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
    )
    calls = (ToolCall(draw(st.sampled_from(["", "c"])), name, text),) if name else ()
    return cases.reply("" if name else text, *calls, finish_reason=finish)


@given(
    st.lists(replies(), max_size=8), st.sampled_from([[], [cases.submitted()], [cases.submitted(), cases.chose("x")]])
)
@settings(max_examples=80, deadline=None)
def test_whatever_a_model_sends_the_case_ends_or_waits(sent: list[ModelReply], before: list[ModelReply]) -> None:
    silence = [cases.reply("")] * 60
    world = answers(*before, *sent, *silence, validations=iter([INVALID] * 5))

    case = world.run(view())

    assert case.closed is not None or case.phase is Phase.AWAITING_APPROVAL
    if case.closed is not None:
        assert case.closed.verdict.message
        assert case.closed.verdict.reason in set(Reason)


def _restarted(world: Callable[[], World]) -> Case:
    """The same walk with the process lost after every fact."""
    made, case = world(), Case()
    for _ in range(60):
        case = fold_case(load_fact(dump_fact(fact)) for fact in case.facts)
        if case.closed is not None:
            return case
        case, step = made.step(case, view())
        if isinstance(step, Wait):
            return case
    raise AssertionError("the case does not come to rest")


CRASHES: dict[str, Callable[[], World]] = {
    "which group": lambda: answers(about(), about("b.example/v1"), cases.chose(), contexts=looked_up),
    "which object": lambda: selecting(choosing(CONFIG)),
    "over": lambda: answers(OVER, later=lambda: HEALTHY),
    "tries": lambda: selecting(cases.chose("x"), *[cases.reply("hm")] * 3, validations=iter([INVALID])),
}


@pytest.mark.parametrize("world", CRASHES.values(), ids=CRASHES.keys())
def test_a_crash_after_any_fact_changes_nothing(world: Callable[[], World]) -> None:
    assert _restarted(world) == world().run(view())


def test_time_that_runs_out_in_selection_still_ends_the_case() -> None:
    case = answers(cases.submitted()).run(view(), until=Phase.SELECTING)

    late = answers().run(view(cases.TIMEOUT.total_seconds() + timedelta(seconds=1).total_seconds()), case)

    assert verdict_of(late).reason is Reason.TIMED_OUT
