"""Every case ends in one of the nine ways, with a message, and the tables say in which."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.refs import TargetRef
from inquest.api.types import TERMINAL_PHASES, HumanReviewReason, Outcome, Phase, Reason, Resolution, SubReason
from inquest.core.case.endings import (
    catalogue_unavailable,
    end_cancelled,
    internal_error,
    model_unavailable,
    queue_timeout,
    timed_out,
)
from inquest.core.case.merging import MergedResult, SelectionFacts, merge_results, normalise_result, review_row
from inquest.core.case.outcome import Conclusion, decide_outcome, selected_message, signal_resolved
from inquest.core.diagnosis.claims import CheckedClaims
from inquest.core.diagnosis.diagnosis import Diagnosis, diagnose
from inquest.core.evidence.evidence import CaseWarning, Citation, Finding, Health, TargetState
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.selection.selection import SelectionAttempt
from tests.support.tables import each_row

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NUMBERS = {outcome: number for number, outcome in enumerate(Outcome, start=1)}
HERE = SelectionFacts()


def reply(word: str = "", workflow: float | Literal["no"] | None = "no", **more: Any) -> SelectionVerdict:
    """A verdict of invocation 2 with summary `s` and confidence 0.9 unless said; `workflow` is its confidence."""
    choice = None if workflow == "no" else WorkflowChoice("w", workflow)
    shape: dict[str, Any] = {"summary": "s", "confidence": 0.9, "outcome": word, "choice": choice}
    return SelectionVerdict(**shape | more)


def routed(selection: SelectionVerdict | None, rca: Diagnosis | None = None, **seen: Any) -> Conclusion:
    return decide_outcome(merge_results(rca or Diagnosis(), selection), SelectionFacts(**seen))


def end(verdict: Conclusion) -> tuple[int, str]:
    assert verdict.outcome is not None
    return NUMBERS[verdict.outcome], verdict.phase.value


def codes(verdict: Conclusion) -> list[str]:
    assert verdict.merged is not None
    return [warning.code for warning in verdict.merged.warnings]


def overall(verdict: Conclusion) -> float | None:
    assert verdict.merged is not None
    return verdict.merged.confidence


# --- merge -------------------------------------------------------------------------------------------

FIRST = Diagnosis(
    summary="first",
    severity="high",
    contributing_factors=("f1",),
    analysis="long",
    target=TargetRef(kind="Deployment", name="api"),
    confidence=0.6,
    model_confidence=0.95,
    outcome="actionable",
    warnings=(CaseWarning("NoClaims", "n"),),
)


def test_what_invocation_2_leaves_out_comes_from_invocation_1() -> None:
    merged = merge_results(FIRST, SelectionVerdict(choice=WorkflowChoice("w", 0.9)))

    assert merged.rca is FIRST
    assert (merged.summary, merged.severity, merged.contributing_factors) == ("first", "high", ("f1",))
    assert (merged.confidence, merged.model_confidence, merged.outcome) == (0.6, 0.95, "actionable")
    assert (merged.target, merged.warnings) == (None, FIRST.warnings)


def test_what_invocation_2_says_stands() -> None:
    target = TargetRef(kind="Node", name="n1")
    second = SelectionVerdict("second", "low", ("f2",), target, confidence=0.0, outcome="inconclusive", actionable=True)

    merged = merge_results(FIRST, second, warnings=[CaseWarning("NoClaims", "n"), CaseWarning("X", "x")])

    assert (merged.summary, merged.severity, merged.contributing_factors) == ("second", "low", ("f2",))
    assert (merged.confidence, merged.outcome, merged.actionable, merged.target) == (0.0, "inconclusive", True, target)
    assert [warning.code for warning in merged.warnings] == ["NoClaims", "X"]


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [(False, None, False), (True, None, None), (None, None, None), (False, True, True), (True, False, False)],
)
def test_only_a_no_is_carried_over(first: bool | None, second: bool | None, merged: bool | None) -> None:
    assert merge_results(replace(FIRST, actionable=first), SelectionVerdict(actionable=second)).actionable is merged


@pytest.mark.parametrize(
    ("said", "signal", "severity"), [("", "high", "high"), ("", "", "unknown"), ("low", "high", "low")]
)
def test_severity_falls_back_to_the_signals(said: str, signal: str, severity: str) -> None:
    assert merge_results(Diagnosis(severity=said), None, signal_severity=signal).severity == severity


@each_row(
    ("first", "second", "asked", "reason"),
    [
        (
            Diagnosis(needs_review=True, review_reason="a"),
            SelectionVerdict(needs_review=True, review_reason="b"),
            True,
            "b",
        ),
        (Diagnosis(needs_review=True, review_reason="a"), SelectionVerdict(needs_review=True), True, "a"),
        (Diagnosis(), SelectionVerdict(review_reason="b"), True, "b"),
        (Diagnosis(outcome="problem_resolved"), SelectionVerdict(needs_review=True, review_reason="b"), False, ""),
        (Diagnosis(outcome="problem_resolved", needs_review=True), SelectionVerdict(needs_review=True), True, ""),
        (
            Diagnosis(outcome="problem_resolved"),
            SelectionVerdict(needs_review=True, choice=WorkflowChoice("w", 0.9)),
            True,
            "",
        ),
    ],
)
def test_a_review_that_either_asked_for(first: Diagnosis, second: SelectionVerdict, asked: bool, reason: str) -> None:
    merged = merge_results(first, second)

    assert (merged.needs_review, merged.review_reason) == (asked, reason)


# --- routing: pipeline 20.2 --------------------------------------------------------------------------

RESOLVED = Diagnosis(summary="s", outcome="problem_resolved", confidence=0.9)


def vector(number: str, selection: SelectionVerdict | None, expected: tuple[int, str], **more: Any) -> Any:
    return pytest.param(selection, more.pop("rca", None), more, expected, id=f"pipeline-20.2-{number}")


FACTORS = ("a factor",)
ROUTING = [
    vector("01a", reply("problem_resolved"), (2, "Completed")),
    vector("01b", reply("problem_resolved", confidence=0.7), (2, "Completed")),
    vector("02a", reply("problem_resolved", contributing_factors=FACTORS), (2, "Completed"), healthy=True),
    vector("02b", reply("problem_resolved", contributing_factors=FACTORS), (4, "Completed")),
    vector("03a", reply("inconclusive"), (3, "Completed")),
    vector("03b", reply("inconclusive", 0.9), (3, "Failed")),
    vector("03c", reply("inconclusive", actionable=False, confidence=0.5), (3, "Completed")),
    vector("04a", reply(actionable=False, confidence=0.5), (9, "Completed")),
    vector("04b", reply("problem_resolved", actionable=False, confidence=0.5), (2, "Completed")),
    vector("05", reply(actionable=False), (9, "Completed")),
    vector("06", reply("not_actionable", 0.9), (1, "Analyzing")),
    vector("07a", reply("", 0.7), (1, "Analyzing")),
    vector("07b", reply("actionable", 0.6, actionable=True), (7, "Failed")),
    vector("08a", reply(needs_review=True), (8, "Completed")),
    vector("08b", reply(needs_review=True, review_reason="no_matching_workflows"), (4, "Completed")),
    vector("09a", reply("inconclusive"), (2, "Completed"), rca=RESOLVED),
    vector("09b", reply("", 0.9), (1, "Analyzing"), rca=RESOLVED),
    vector("11", reply(summary=""), (3, "Completed")),
]


@pytest.mark.parametrize(("selection", "rca", "seen", "expected"), ROUTING)
def test_a_reply_is_routed(
    selection: SelectionVerdict, rca: Diagnosis | None, seen: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert end(routed(selection, rca, **seen)) == expected


def test_what_routing_says_besides_the_outcome() -> None:
    results = {parameter.id: routed(parameter.values[0], parameter.values[1]) for parameter in ROUTING}
    found = {str(name).removeprefix("pipeline-20.2-"): verdict for name, verdict in results.items()}

    assert {found[name].review_reason for name in ("03a", "03b", "03c")} == {
        HumanReviewReason.INVESTIGATION_INCONCLUSIVE
    }
    assert [overall(found[name]) for name in ("04a", "04b", "05")] == [0.8, 0.8, 0.9]
    assert ["ContradictoryVerdict" in codes(found[name]) for name in ("06", "07a", "09b", "09a")] == [
        True,
        False,
        True,
        False,
    ]
    assert found["07b"].merged is not None
    assert found["07b"].merged.workflow == WorkflowChoice("w", 0.6)
    assert found["08a"].review_reason is HumanReviewReason.HUMAN_REVIEW_REQUESTED
    assert found["11"].review_reason is HumanReviewReason.LLM_PARSING_ERROR


@pytest.mark.parametrize(
    "rca",
    [
        pytest.param(Diagnosis(outcome="problem_resolved"), id="pipeline-20.2-10a"),
        pytest.param(Diagnosis(outcome="not_actionable"), id="pipeline-20.2-10b"),
        pytest.param(Diagnosis(actionable=False), id="pipeline-20.2-10c"),
    ],
)
def test_nothing_to_do_needs_no_selection(rca: Diagnosis) -> None:
    assert rca.nothing_to_do
    assert end(routed(None, replace(rca, summary="s", confidence=0.9)))[0] in (2, 9)


# --- routing: the matrix of pipeline 5.2 -------------------------------------------------------------

CELLS = ("absent", "true", "false", "workflow", "workflow, false")
MATRIX = {
    "": ("4", "4", "9", "1", "1C"),
    "actionable": ("4", "4", "9C", "1", "1C"),
    "not_actionable": ("9", "9C", "9", "1C", "1C"),
    "problem_resolved": ("2", "2C", "2", "1C", "1C"),
    "inconclusive": ("3", "3", "3", "3F", "3F"),
    "insufficient_data": ("3", "3", "3", "3F", "3F"),
}


def cell(word: str, column: str, **more: Any) -> SelectionVerdict:
    actionable = {"true": True, "false": False}.get(column.rpartition(" ")[2])
    return reply(word, 0.9 if "workflow" in column else "no", actionable=actionable, **more)


@each_row(
    ("word", "column", "expected"),
    [(word, column, cells[at]) for word, cells in MATRIX.items() for at, column in enumerate(CELLS)],
)
def test_the_matrix(word: str, column: str, expected: str) -> None:
    verdict = routed(cell(word, column))

    phase = {"1": "Analyzing"}.get(expected[0], "Failed" if expected.endswith("F") else "Completed")
    assert end(verdict) == (int(expected[0]), phase)
    # The last row of pipeline 3.7: a workflow beside `actionable: false`, whatever the word.
    conflict = expected.endswith("C") or (column == "workflow, false")
    assert ("ContradictoryVerdict" in codes(verdict)) is conflict


@each_row(("word", "column"), [(word, column) for word in MATRIX for column in CELLS])
def test_a_request_for_review_beats_every_cell(word: str, column: str) -> None:
    verdict = routed(cell(word, column, needs_review=True, review_reason="low_confidence"))

    assert end(verdict) == (7, "Failed" if "workflow" in column else "Completed")


@pytest.mark.parametrize("word", ["", "actionable", "not_actionable", "problem_resolved"])
def test_below_the_gate_a_workflow_is_kept_but_not_run(word: str) -> None:
    for figure in (None, 0.0, 0.699999):
        assert end(routed(reply(word, figure))) == (7, "Failed")


# --- conformance cases (resources, 17) ---------------------------------------------------------------

WHOLE = Diagnosis(
    summary="s",
    contributing_factors=("f",),
    confidence=0.9,
    outcome="actionable",
    checked=CheckedClaims(judged=1, supported=1),
)
ALTERNATIVE = WorkflowChoice("a", 0.5)


def case(number: str, verdict: Conclusion, phase: Phase, outcome: Outcome, sub: SubReason | None) -> Any:
    return pytest.param(verdict, phase, outcome, sub, id=f"C-AR-{number}")


DONE, FAILED = Phase.COMPLETED, Phase.FAILED
CASES = [
    case("1", routed(reply("", 0.9), WHOLE), Phase.ANALYZING, Outcome.WORKFLOW_SELECTED, None),
    case(
        "2a",
        routed(reply(declined=True), WHOLE),
        DONE,
        Outcome.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
    ),
    case(
        "2b",
        routed(SelectionVerdict(needs_review=True, review_reason="no_matching_workflows")),
        DONE,
        Outcome.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
    ),
    case(
        "3",
        routed(reply(needs_review=True, review_reason="call_the_dba"), WHOLE),
        DONE,
        Outcome.HUMAN_REVIEW_REQUESTED,
        SubReason.HUMAN_REVIEW_REQUESTED,
    ),
    *(
        case(
            f"4{letter}",
            routed(SelectionVerdict(confidence=figure)),
            DONE,
            Outcome.INCONCLUSIVE,
            SubReason.LLM_PARSING_ERROR,
        )
        for letter, figure in (("a", 0.5), ("b", 0.69), ("c", 0.9))
    ),
    case(
        "5",
        routed(None, replace(WHOLE, confidence=0.88, outcome="")),
        DONE,
        Outcome.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
    ),
    case(
        "6a",
        routed(None, replace(WHOLE, confidence=0.85, outcome="problem_resolved"), healthy=True),
        DONE,
        Outcome.PROBLEM_RESOLVED,
        SubReason.PROBLEM_RESOLVED,
    ),
    case(
        "6b",
        routed(None, replace(WHOLE, confidence=0.85, outcome="problem_resolved")),
        DONE,
        Outcome.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
    ),
    case(
        "8",
        routed(None, replace(WHOLE, warnings=(CaseWarning("x", "Alert not actionable: s"),))),
        DONE,
        Outcome.NO_MATCHING_WORKFLOWS,
        SubReason.NO_MATCHING_WORKFLOWS,
    ),
    case(
        "9",
        routed(reply("", 0.69, confidence=0.95, alternatives=(ALTERNATIVE,)), WHOLE),
        FAILED,
        Outcome.LOW_CONFIDENCE,
        SubReason.LOW_CONFIDENCE,
    ),
]


@pytest.mark.parametrize(("verdict", "phase", "outcome", "sub"), CASES)
def test_conformance(verdict: Conclusion, phase: Phase, outcome: Outcome, sub: SubReason | None) -> None:
    assert (verdict.phase, verdict.outcome, verdict.sub_reason) == (phase, outcome, sub)
    assert verdict.message
    assert verdict.needs_review is (verdict.review_reason is not None)


def test_what_the_conformance_cases_keep() -> None:
    found = {str(one.id): one.values[0] for one in CASES}
    low, asked, silent = found["C-AR-9"], found["C-AR-3"], found["C-AR-2a"]
    assert isinstance(low, Conclusion)
    assert isinstance(asked, Conclusion)
    assert isinstance(silent, Conclusion)

    assert low.merged is not None
    assert (low.merged.workflow, low.merged.alternatives) == (WorkflowChoice("w", 0.69), (ALTERNATIVE,))
    assert low.message == "Workflow confidence 0.69 below threshold 0.70 (low_confidence)"
    assert asked.message == "Human review requested: call_the_dba"
    assert silent.merged is not None
    assert silent.merged.rca is WHOLE
    assert (silent.reason, silent.resolution) == (Reason.ANALYSIS_COMPLETED, Resolution.MANUAL_REVIEW_REQUIRED)
    assert [
        silent.conditions[name][0] for name in ("InvestigationComplete", "AnalysisComplete", "WorkflowResolved")
    ] == [
        "True",
        "True",
        "False",
    ]


@pytest.mark.parametrize(
    ("healthy", "expected"),
    [pytest.param(True, (2, "Completed"), id="D12a"), pytest.param(False, (4, "Completed"), id="D12b")],
)
def test_a_resolved_word_wins_over_a_root_cause_only_where_code_agrees(
    healthy: bool, expected: tuple[int, str]
) -> None:
    assert end(routed(None, replace(WHOLE, outcome="problem_resolved"), healthy=healthy)) == expected


# --- normalise ---------------------------------------------------------------------------------------

ATTEMPTS = tuple(
    SelectionAttempt(number, "w", (f"error {number}",), reason, NOW)
    for number, reason in enumerate(("workflow_not_found", "image_mismatch", "parameter_validation_failed"), start=1)
)


@each_row(
    ("selection", "seen", "sub", "phase"),
    [
        pytest.param(reply(), {"root_verified": False}, "RcaIncomplete", DONE, id="N7"),
        pytest.param(reply("", 0.9), {"root_verified": False}, "RcaIncomplete", FAILED, id="N7 with a workflow"),
        pytest.param(
            reply("problem_resolved", 0.9),
            {"root_verified": False},
            "RcaIncomplete",
            FAILED,
            id="N7, a workflow stands",
        ),
        pytest.param(reply("problem_resolved"), {"root_verified": False}, "ProblemResolved", DONE, id="N7 not for N2"),
        pytest.param(reply("not_actionable"), {"root_verified": False}, "NotActionable", DONE, id="N7 not for N3"),
        pytest.param(reply("", 0.9), {"ambiguous_groups": ("a/v1", "b/v1")}, "AmbiguousKind", DONE, id="N8"),
        pytest.param(reply("insufficient_data"), {}, "InsufficientData", DONE, id="N6"),
        pytest.param(reply(declined=True), {}, "NoMatchingWorkflows", DONE, id="N9"),
        pytest.param(reply("not_actionable", declined=True), {}, "NotActionable", DONE, id="N9 not for N3"),
        pytest.param(
            reply("", 0.9), {"attempts": ATTEMPTS, "exhausted": True}, "ParameterValidationFailed", DONE, id="N10"
        ),
        pytest.param(None, {"rca_verdict": False}, "RcaIncomplete", DONE, id="N11, invocation 1"),
        pytest.param(reply(), {"selection_verdict": False}, "InvestigationInconclusive", DONE, id="N11, invocation 2"),
        pytest.param(None, {"readable": False}, "LLMParsingError", DONE, id="R3"),
        pytest.param(
            reply("inconclusive", declined=True),
            {"root_verified": False},
            "InvestigationInconclusive",
            DONE,
            id="the first that is set stands",
        ),
    ],
)
def test_normalise(selection: SelectionVerdict | None, seen: dict[str, Any], sub: str, phase: Phase) -> None:
    verdict = routed(selection, Diagnosis(summary="s", confidence=0.9), **seen)

    assert (str(verdict.sub_reason), verdict.phase) == (sub, phase)
    assert verdict.message


def test_an_exhausted_selection_is_cleared_and_every_attempt_told() -> None:
    chosen = reply("", 0.9, alternatives=(ALTERNATIVE,))

    verdict = routed(chosen, attempts=ATTEMPTS, exhausted=True)

    assert verdict.merged is not None
    assert (verdict.merged.workflow, verdict.merged.alternatives) == (None, (ALTERNATIVE,))
    assert verdict.message == ("Workflow validation failed: Attempt 1: error 1; Attempt 2: error 2; Attempt 3: error 3")
    assert verdict.review_message == "self-correction exhausted after 3 attempts: error 3"


def test_an_ambiguous_kind_names_its_groups() -> None:
    verdict = routed(reply("", 0.9, alternatives=(ALTERNATIVE,)), ambiguous_groups=("a.io/v1", "b.io/v1"))

    assert verdict.merged is not None
    assert (verdict.merged.workflow, verdict.merged.alternatives) == (None, ())
    assert "a.io/v1, b.io/v1" in verdict.message
    assert verdict.conditions["TargetVerified"] == ("False", "AmbiguousKind")


@pytest.mark.parametrize("word", ["Inconclusive", "NO WORKFLOWS MATCHED", "Human Review recommended"])
def test_a_blocking_warning_keeps_a_problem_open(word: str) -> None:
    rca = replace(RESOLVED, warnings=(CaseWarning("X", f"it was {word}."),))

    assert end(routed(None, rca)) == (4, "Completed")


def test_an_active_finding_keeps_a_problem_open() -> None:
    verdict = routed(None, RESOLVED, active_findings=("OOMKilled of Deployment/api",))

    assert end(verdict) == (4, "Completed")
    assert "FindingActive" in codes(verdict)


@pytest.mark.parametrize("figure", [None, 0.0, 0.69])
def test_a_resolved_problem_needs_confidence(figure: float | None) -> None:
    assert end(routed(None, replace(RESOLVED, confidence=figure))) == (4, "Completed")


def test_the_exact_warnings() -> None:
    resolved, idle = routed(reply("problem_resolved")), routed(reply("not_actionable"))

    assert resolved.merged is not None
    assert idle.merged is not None
    assert [warning.text for warning in resolved.merged.warnings] == ["Problem self-resolved: s"]
    assert [warning.text for warning in idle.merged.warnings] == ["Alert not actionable: s"]


# --- review reasons (resources, 4.4) -----------------------------------------------------------------


@each_row(
    ("word", "reason", "number"),
    [
        ("workflow_not_found", "WorkflowNotFound", 6),
        ("image_mismatch", "ImageMismatch", 6),
        ("parameter_validation_failed", "ParameterValidationFailed", 6),
        ("no_matching_workflows", "NoMatchingWorkflows", 4),
        ("low_confidence", "LowConfidence", 7),
        ("llm_parsing_error", "LLMParsingError", 3),
        ("investigation_inconclusive", "InvestigationInconclusive", 3),
        ("rca_incomplete", "RcaIncomplete", 5),
        ("alignment_check_failed", "AlignmentCheckFailed", 8),
        ("RCA-Incomplete", "RcaIncomplete", 5),
        ("something else", "HumanReviewRequested", 8),
    ],
)
def test_a_review_reason_takes_its_row(word: str, reason: str, number: int) -> None:
    found, sub, outcome = review_row(MergedResult(Diagnosis(), review_reason=word))

    assert (str(found), str(sub), NUMBERS[outcome]) == (reason, reason, number)


@each_row(
    ("text", "reason"),
    [
        ("Workflow x NOT FOUND", "WorkflowNotFound"),
        ("it does not exist", "WorkflowNotFound"),
        ("no workflows matched", "NoMatchingWorkflows"),
        ("no matching entry", "NoMatchingWorkflows"),
        ("confidence 0.4 is below 0.7", "LowConfidence"),
        ("parameter validation", "ParameterValidationFailed"),
        ("missing required X", "ParameterValidationFailed"),
        ("image mismatch", "ImageMismatch"),
        ("the container image differs", "ImageMismatch"),
        ("could not parse", "LLMParsingError"),
        ("invalid JSON", "LLMParsingError"),
        ("confidence is fine", "HumanReviewRequested"),
    ],
)
def test_a_flag_without_a_reason_is_read_from_the_warnings(text: str, reason: str) -> None:
    assert str(review_row(MergedResult(Diagnosis(), warnings=(CaseWarning("X", text),)))[0]) == reason


# --- messages and conditions -------------------------------------------------------------------------


@each_row(
    ("verdict", "message"),
    [
        (routed(reply("", 0.9)), "Investigation complete, starting analysis"),
        (routed(None, RESOLVED), "Problem self-resolved: s"),
        (routed(None, replace(RESOLVED, analysis="it recovered")), "it recovered"),
        (routed(reply("inconclusive")), "Investigation inconclusive: s"),
        (routed(reply("inconclusive", summary=""), gaps=("logs",)), "Investigation inconclusive: not read: logs"),
        (
            routed(reply("inconclusive", summary="")),
            "Investigation inconclusive: root cause could not be determined",
        ),
        (routed(reply("insufficient_data"), gaps=("logs",)), "Investigation inconclusive: s; not read: logs"),
        (
            routed(reply(declined=True, reasoning="all are for nodes")),
            "Investigation completed: no matching workflows found; all are for nodes",
        ),
        (
            routed(reply(), root_verified=False, unverified_why="NotFound: Pod/x"),
            "Root cause analysis incomplete: no verified target; NotFound: Pod/x",
        ),
        (routed(reply(review_reason="rca_incomplete")), "Root cause analysis incomplete: a person is asked"),
        (routed(reply("", None)), "Workflow confidence unknown, threshold 0.70 (low_confidence)"),
        (routed(reply("", 0.699)), "Workflow confidence 0.6990 below threshold 0.70 (low_confidence)"),
        (routed(SelectionVerdict(needs_review=True)), "Human review requested: the model asked for a person"),
        (routed(reply(needs_review=True)), "Human review requested: s"),
        (routed(reply(actionable=False)), "Alert not actionable: s"),
    ],
)
def test_messages(verdict: Conclusion, message: str) -> None:
    assert verdict.message == message


def test_a_message_fits_the_status() -> None:
    assert len(routed(reply("inconclusive", summary="x" * 5000)).message) == 1024


def test_after_the_ruling_the_workflow_is_named() -> None:
    assert selected_message("w", 0.9) == "Workflow w selected with confidence 90%"


@pytest.mark.parametrize(
    ("verdict", "conditions"),
    [
        pytest.param(
            routed(reply("", 0.9)),
            "InvestigationComplete=True/InvestigationSucceeded WorkflowResolved=True/WorkflowSelected "
            "TargetVerified=True/RootOwnerResolved",
            id="D7",
        ),
        pytest.param(
            routed(None, RESOLVED),
            "InvestigationComplete=True/InvestigationSucceeded AnalysisComplete=True/AnalysisSucceeded "
            "WorkflowResolved=False/NoWorkflowNeeded ApprovalRequired=False/NotApplicable Executed=False/NotApplicable "
            "EffectivenessAssessed=False/NotApplicable Ready=True/Completed TargetVerified=True/RootOwnerResolved",
            id="D3",
        ),
        pytest.param(
            routed(reply(), root_verified=False, unverified_why="NotFound: Pod/x"),
            "InvestigationComplete=True/InvestigationSucceeded AnalysisComplete=True/AnalysisSucceeded "
            "WorkflowResolved=False/RcaIncomplete ApprovalRequired=False/NotApplicable Executed=False/NotApplicable "
            "EffectivenessAssessed=False/NotApplicable Ready=True/Completed TargetVerified=False/NotFound",
            id="D2",
        ),
        pytest.param(
            routed(reply("", 0.1)),
            "InvestigationComplete=False/WorkflowResolutionFailed AnalysisComplete=False/WorkflowResolutionFailed "
            "WorkflowResolved=False/WorkflowResolutionFailed ApprovalRequired=False/NotApplicable "
            "Executed=False/NotApplicable EffectivenessAssessed=False/NotApplicable Ready=False/Failed "
            "TargetVerified=True/RootOwnerResolved",
            id="D6",
        ),
    ],
)
def test_conditions(verdict: Conclusion, conditions: str) -> None:
    assert " ".join(f"{name}={status}/{why}" for name, (status, why) in verdict.conditions.items()) == conditions


# --- without a model, and ends outside the nine ------------------------------------------------------


def found(act: bool = True) -> Finding:
    target = TargetRef(kind="Deployment", name="api", namespace="shop")
    return Finding("OOMKilled", target, "f", "v", "s", 0.9, (Citation("E1", "x"),), act=act)


@pytest.mark.parametrize(
    ("rca", "healthy", "expected"),
    [
        (diagnose([], TargetState(Health.HEALTHY, unwell_before="ready at 10:00")), True, (2, "Completed")),
        (diagnose([], TargetState(Health.HEALTHY)), True, (3, "Completed")),
        (diagnose([], TargetState(Health.UNKNOWN)), False, (3, "Completed")),
        (diagnose([found(act=False)], TargetState(Health.UNHEALTHY)), False, (9, "Completed")),
        (diagnose([found()], TargetState(Health.UNHEALTHY)), False, (4, "Completed")),
    ],
)
def test_the_way_without_a_model_ends_in_the_same_nine(
    rca: Diagnosis, healthy: bool, expected: tuple[int, str]
) -> None:
    assert end(routed(None, rca, healthy=healthy)) == expected


INFRASTRUCTURE = HumanReviewReason.INFRASTRUCTURE_FAILURE


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(
            model_unavailable("401", permanent=True),
            (FAILED, Reason.MODEL_UNAVAILABLE, SubReason.PERMANENT_ERROR, INFRASTRUCTURE),
            id="C-ER-2",
        ),
        pytest.param(
            model_unavailable("503", permanent=False),
            (FAILED, Reason.MODEL_UNAVAILABLE, SubReason.MAX_RETRIES_EXCEEDED, INFRASTRUCTURE),
            id="no endpoint answers",
        ),
        pytest.param(
            internal_error("lost 5 times"),
            (FAILED, Reason.INTERNAL_ERROR, SubReason.MAX_RESTARTS_EXCEEDED, INFRASTRUCTURE),
            id="C-ER-1",
        ),
        pytest.param(
            catalogue_unavailable("refused"),
            (FAILED, Reason.API_ERROR, SubReason.MAX_RETRIES_EXCEEDED, INFRASTRUCTURE),
            id="no catalogue",
        ),
        pytest.param(timed_out(Phase.INVESTIGATING), (FAILED, Reason.TIMED_OUT, None, None), id="time is up"),
        pytest.param(queue_timeout("1h"), (FAILED, Reason.QUEUE_TIMEOUT, None, None), id="never started"),
        pytest.param(end_cancelled("jane"), (Phase.CANCELLED, Reason.CANCELLED, None, None), id="cancelled"),
        pytest.param(
            signal_resolved(), (DONE, Reason.WORKFLOW_NOT_NEEDED, SubReason.SIGNAL_RESOLVED, None), id="signal resolved"
        ),
    ],
)
def test_ends_outside_the_nine(verdict: Conclusion, expected: tuple[Any, ...]) -> None:
    assert (verdict.phase, verdict.reason, verdict.sub_reason, verdict.review_reason) == expected
    assert verdict.outcome is None
    assert verdict.message
    assert verdict.needs_review is (verdict.resolution is Resolution.MANUAL_REVIEW_REQUIRED)


# --- laws --------------------------------------------------------------------------------------------

FIGURES = st.none() | st.floats(0, 1)
OUTCOME_WORDS = st.sampled_from([*MATRIX])
REASONS = st.sampled_from(["", "low_confidence", "rca_incomplete", "call the dba"])
SUMMARIES = st.sampled_from(["", "s", "inconclusive logs"])
RCAS = st.builds(
    Diagnosis,
    summary=SUMMARIES,
    severity=st.sampled_from(["", "high"]),
    contributing_factors=st.sampled_from([(), ("f",)]),
    confidence=FIGURES,
    outcome=OUTCOME_WORDS,
    actionable=st.none() | st.booleans(),
    needs_review=st.booleans(),
    review_reason=REASONS,
)
CHOICES = st.none() | st.builds(WorkflowChoice, st.just("w"), FIGURES)
SELECTIONS = st.none() | st.builds(
    SelectionVerdict,
    summary=SUMMARIES,
    contributing_factors=st.sampled_from([(), ("g",)]),
    choice=CHOICES,
    declined=st.booleans(),
    confidence=FIGURES,
    outcome=OUTCOME_WORDS,
    actionable=st.none() | st.booleans(),
    needs_review=st.booleans(),
    review_reason=REASONS,
)
SEEN = st.builds(
    SelectionFacts,
    root_verified=st.booleans(),
    healthy=st.booleans(),
    active_findings=st.sampled_from([(), ("x",)]),
    ambiguous_groups=st.sampled_from([(), ("a", "b")]),
    readable=st.booleans(),
    rca_verdict=st.booleans(),
    selection_verdict=st.booleans(),
    attempts=st.sampled_from([(), ATTEMPTS]),
    exhausted=st.booleans(),
)


@given(RCAS, SELECTIONS)
def test_the_merge_never_changes_invocation_1_and_takes_its_workflow_from_2(
    rca: Diagnosis, selection: SelectionVerdict | None
) -> None:
    merged = merge_results(rca, selection)

    assert merged.rca is rca
    assert merged.workflow == (selection.choice if selection else None)
    assert merged.target == (selection.target if selection else None)


@given(RCAS)
def test_merging_silence_changes_nothing(rca: Diagnosis) -> None:
    assert merge_results(rca, SelectionVerdict()) == merge_results(rca, None)


@given(RCAS, SELECTIONS, SEEN)
def test_every_verdict_is_complete(rca: Diagnosis, selection: SelectionVerdict | None, seen: SelectionFacts) -> None:
    verdict = decide_outcome(merge_results(rca, selection), seen)

    assert verdict.message
    assert verdict.outcome is not None
    assert verdict.needs_review is (verdict.review_reason is not None)
    assert (verdict.phase in TERMINAL_PHASES) is (verdict.outcome is not Outcome.WORKFLOW_SELECTED)
    assert (verdict.resolution is not None) is (verdict.phase in TERMINAL_PHASES)


@given(RCAS, SELECTIONS, SEEN)
def test_nothing_runs_on_an_unverified_target_or_below_the_gate(
    rca: Diagnosis, selection: SelectionVerdict | None, seen: SelectionFacts
) -> None:
    verdict = decide_outcome(merge_results(rca, selection), seen)
    if verdict.outcome is not Outcome.WORKFLOW_SELECTED:
        return

    assert seen.root_verified
    assert not seen.ambiguous_groups
    assert verdict.merged is not None
    assert verdict.merged.workflow is not None
    assert (verdict.merged.workflow.confidence or 0) >= seen.gate


@given(RCAS, SELECTIONS, SEEN)
def test_normalising_twice_is_normalising_once(
    rca: Diagnosis, selection: SelectionVerdict | None, seen: SelectionFacts
) -> None:
    once = normalise_result(merge_results(rca, selection), seen)

    assert normalise_result(once, seen) == once
