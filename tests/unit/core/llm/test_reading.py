"""The reader takes what a model meant wherever that is certain, and rejects the rest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.api.refs import TargetRef
from inquest.api.types import Severity
from inquest.core.case.merging import merge_results
from inquest.core.case.outcome import decide_outcome
from inquest.core.diagnosis.claims import RawClaim
from inquest.core.diagnosis.diagnosis import Diagnosis
from inquest.core.evidence.evidence import Citation
from inquest.core.llm.messages import Invocation, ModelReply, ToolCall, Usage
from inquest.core.llm.reply.contradictions import find_contradictions
from inquest.core.llm.reply.reading import (
    EMPTY,
    NO_FIELDS,
    NO_JSON,
    REQUIRED,
    Reading,
    better,
    corrective_message,
    labelled_summary,
    read_verdict,
)
from inquest.core.llm.reply.schemas import (
    SEVERITIES,
    SUBMIT_NO_WORKFLOW,
    SUBMIT_RESULT,
    SUBMIT_TOOLS,
    SUBMIT_WITH_WORKFLOW,
)
from inquest.core.llm.reply.verdicts import FieldProblem, RcaVerdict, SelectionVerdict, StreamVerdict, WorkflowChoice
from tests.support.tables import each_row

RCA = Invocation.RCA
SELECTION = Invocation.SELECTION


def said(text: str, *calls: tuple[str, str]) -> ModelReply:
    made = tuple(ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
    return ModelReply(text, made, "stop", Usage(), "model")


def rca(text: str) -> RcaVerdict:
    reply = read_verdict(RCA, said(text)).reply
    assert isinstance(reply, RcaVerdict)
    return reply


def selection(text: str) -> SelectionVerdict:
    reply = read_verdict(SELECTION, said(text)).reply
    assert isinstance(reply, SelectionVerdict)
    return reply


def bad_values(reading: Reading) -> tuple[str, ...]:
    verdict = reading.reply if not isinstance(reading.reply, StreamVerdict) else None
    conflicts = find_contradictions(verdict) if verdict else ()
    found = (problem for problem in reading.problems if problem not in conflicts and problem.rule != REQUIRED)
    return tuple(problem.path for problem in found)


# --- the vectors of pipeline 20.1 --------------------------------------------------------------------

OUTCOMES = {
    "WorkflowSelected": 1,
    "ProblemResolved": 2,
    "Inconclusive": 3,
    "NoMatchingWorkflows": 4,
    "RcaIncomplete": 5,
    "ValidationFailed": 6,
    "LowConfidence": 7,
    "HumanReviewRequested": 8,
    "NotActionable": 9,
}


@dataclass(frozen=True)
class Expected:
    """What one vector says; None where it says nothing."""

    end: int
    summary: str = "s"
    confidence: float | None = None
    problems: tuple[str, ...] = ()
    workflow: str = ""
    gate: float | None = None


def row(number: str, text: str, expected: Expected | str) -> Any:
    return pytest.param(text, expected, id=f"pipeline-20.1-{number}")


RCA_S = '{"root_cause_analysis": {"summary": "s"}, '

VECTORS = [
    row("01", "", EMPTY),
    row("02a", "{invalid json", NO_JSON),
    row("02b", '[{"rca_summary":"a"},{"rca_summary":"b"}]', NO_JSON),
    row("03a", '{"foo": "bar", "baz": 42}', NO_FIELDS),
    row("03b", '{"confidence": 0.9}', NO_FIELDS),
    row("04", '[{"rca_summary":"x","confidence":0.5}]', Expected(4, "x", 0.5)),
    row("05", '{"rca_summary":"x","confidence":0.5} trailing prose', Expected(4, "x", 0.5)),
    row("06", 'A {"foo":1} then {"rca_summary":"x"}', Expected(4, "x")),
    row("07", 'txt ```json\n{"rca_summary":"f"}\n``` {"rca_summary":"raw"}', Expected(4, "f")),
    row("08", '```json\n{"rca_summary":"f"}', Expected(4, "f")),
    row("09", '```json\n[{"rca_summary":"f"}]\n```', Expected(4, "f")),
    row("10", r'"{\"rca_summary\": \"x\", \"confidence\": 0.5}"', Expected(4, "x", 0.5)),
    row(
        "11",
        RCA_S + '"confidence": 0.9, "selected_workflow": {"workflow_id": "w"}}',
        Expected(1, confidence=0.9, workflow="w", gate=0.9),
    ),
    row("12", RCA_S + '"confidence": 0.9, "selected_workflow": {}}', Expected(4, confidence=0.9)),
    row("13", RCA_S + '"confidence": "92%"}', Expected(4, confidence=0.92)),
    row("14a", RCA_S + '"confidence": "NaN"}', Expected(4, problems=("confidence",))),
    row("14b", RCA_S + '"confidence": 1.5}', Expected(4, problems=("confidence",))),
    row("14c", RCA_S + '"confidence": true}', Expected(4, problems=("confidence",))),
    row("15", RCA_S + '"confidence": 0.3, "actionable": "false"}', Expected(9, confidence=0.8)),
    row("16", RCA_S + '"actionable": "False"}', Expected(9, confidence=0.8)),
    row("17a", RCA_S + '"actionable": "no"}', Expected(4, problems=("actionable",))),
    row("17b", RCA_S + '"actionable": 0}', Expected(4, problems=("actionable",))),
    row(
        "18",
        '{"rca_summary": "s", "needs_human_review": true, "human_review_reason": "low_confidence"}',
        Expected(7),
    ),
    row(
        "19",
        '{"rca_summary": "s", "is_actionable": false, "warnings": ["injected"], "reason": "r"}',
        Expected(4),
    ),
    row(
        "20",
        '{"rca_summary": "s", "confidence": 0.75, "selected_workflow": {"workflow_id": "w", "confidence": 0.9, '
        '"rationale": "r", "parameters": {"A": "1"}}}',
        Expected(1, confidence=0.75, workflow="w", gate=0.9),
    ),
    row(
        "21",
        '{"rca_summary": "s", "workflow_id": "top", "confidence": 0.75, "selected_workflow": {"workflow_id": "w", '
        '"confidence": 0.9}}',
        Expected(1, confidence=0.75, workflow="w", gate=0.9, problems=("workflow_id",)),
    ),
    row(
        "22",
        '{"rca_summary": "s", "workflow_id": "w", "parameters": "x"}',
        Expected(7, workflow="w", problems=("parameters",)),
    ),
    row(
        "23",
        r'{"root_cause_analysis": "{\"summary\": \"s\", \"severity\": \"high\"}", "confidence": 0.9}',
        Expected(4, confidence=0.9),
    ),
    row("24", '{"root_cause_analysis": "OOM", "confidence": 0.9}', NO_FIELDS),
    row(
        "25",
        r'{"root_cause_analysis": "\"{\\\"summary\\\": \\\"s\\\"}\"", "confidence": 0.9}',
        Expected(4, confidence=0.9),
    ),
    row("26", r'{"root_cause_analysis": "x {\"summary\": \"s\"}", "confidence": 0.9}', Expected(4, confidence=0.9)),
    row("27", RCA_S + '"selected_workflow": "restart"}', Expected(4, problems=("selected_workflow",))),
    row("28", '{"root_cause_analysis": {"summary": "s", "severity": "low"}, "severity": "critical"}', Expected(4)),
    row(
        "29",
        '{"root_cause_analysis": {"summary": "s", "contributing_factors": "a"}, "confidence": 0.9}',
        Expected(4, confidence=0.9),
    ),
    row(
        "30",
        '{"root_cause_analysis": {"summary": "s", "remediation_target": {"kind": "A", "name": "a"}, '
        '"remediationTarget": {"kind": "B", "name": "b"}}}',
        Expected(4),
    ),
    row(
        "31",
        'Prose\n# root_cause_analysis\n{"summary":"s","severity":"high"}\n# confidence\n0.95\n# selected_workflow\n'
        '{"workflow_id":"w","confidence":0.9}\n# alternative_workflows\n'
        '[{"workflow_id":"a","confidence":0.1,"rationale":"r"}]\n',
        Expected(1, confidence=0.95, workflow="w", gate=0.9),
    ),
    row("32", "# root_cause_analysis\nThe pod OOMed\n# confidence\n0.9\n", NO_FIELDS),
    row("33", '## root_cause_analysis\n{"summary":"s"}\n', Expected(4)),
    row("34", '# root_cause_analysis\n{"summary":"s"}\n# severity\nhigh\nvery\n', Expected(4, problems=("severity",))),
    row("35", '# root_cause_analysis\n{"summary":"s"}\n# selected_workflow\nNone\n', Expected(4)),
]


@pytest.mark.parametrize(("text", "expected"), VECTORS)
def test_a_reply_of_invocation_2_is_read_and_routed(text: str, expected: Expected | str) -> None:
    reading = read_verdict(SELECTION, said(text))

    if isinstance(expected, str):
        assert (reading.reply, reading.failure) == (None, expected)
        return
    assert isinstance(reading.reply, SelectionVerdict)
    verdict = decide_outcome(merge_results(Diagnosis(), reading.reply))
    merged = verdict.merged
    assert merged is not None
    workflow = reading.reply.choice
    assert expected == Expected(
        end=OUTCOMES[str(verdict.outcome)],
        summary=reading.reply.summary,
        confidence=merged.confidence,
        problems=bad_values(reading),
        workflow=workflow.workflow_id if workflow else "",
        gate=workflow.confidence if workflow else None,
    )


def test_what_the_vectors_say_about_single_fields() -> None:
    texts = {parameter.id: parameter.values[0] for parameter in VECTORS}
    replies = {
        name: selection(str(texts[f"pipeline-20.1-{name}"])) for name in ("19", "20", "23", "28", "29", "30", "31")
    }

    assert replies["19"] == SelectionVerdict(summary="s")
    assert replies["20"].choice == WorkflowChoice("w", 0.9, "r", {"A": "1"})
    assert replies["23"].severity == "high"
    assert replies["28"].severity == "critical"
    assert replies["29"].contributing_factors == ("a",)
    assert replies["30"].target == TargetRef(kind="A", name="a")
    assert replies["31"].alternatives == (WorkflowChoice("a", 0.1, "r"),)


# --- where a verdict can stand -----------------------------------------------------------------------


@each_row(
    ("invocation", "calls", "text", "summary"),
    [
        pytest.param(
            RCA, [("submit_result", '{"rca_summary": "tool"}')], '{"rca_summary": "text"}', "tool", id="own tool first"
        ),
        pytest.param(
            RCA, [("submit_result_with_workflow", '{"rca_summary": "x"}')], "", "x", id="the wrong submit tool"
        ),
        pytest.param(
            SELECTION,
            [("submit_result", '{"rca_summary": "wrong"}'), ("submit_result_with_workflow", '{"rca_summary": "own"}')],
            "",
            "own",
            id="own tool before the wrong one",
        ),
        pytest.param(RCA, [("kubectl_get", '{"rca_summary": "x"}')], '{"rca_summary": "t"}', "t", id="no other tool"),
        pytest.param(
            RCA, [("submit_result", "{broken")], '{"rca_summary": "t"}', "t", id="text when the tool is broken"
        ),
        pytest.param(RCA, [("submit_result", r'"{\"rca_summary\": \"s\"}"')], "", "s", id="arguments encoded twice"),
    ],
)
def test_a_verdict_is_found_where_it_stands(
    invocation: Invocation, calls: list[tuple[str, str]], text: str, summary: str
) -> None:
    reading = read_verdict(invocation, said(text, *calls))

    assert isinstance(reading.reply, RcaVerdict | SelectionVerdict)
    assert reading.reply.summary == summary


@pytest.mark.parametrize("arguments", ["", "{}", "{broken", '{"confidence": 2}', "[1, 2]"])
def test_declining_is_a_verdict_whatever_its_arguments(arguments: str) -> None:
    reading = read_verdict(SELECTION, said("", ("submit_result_no_workflow", arguments)))

    assert isinstance(reading.reply, SelectionVerdict)
    assert reading.reply.declined
    assert FieldProblem("root_cause_analysis.summary", "", REQUIRED) in reading.problems


def test_a_declining_reply_never_brings_a_workflow() -> None:
    arguments = '{"rca_summary": "s", "reasoning": "nothing fits", "selected_workflow": {"workflow_id": "w"}}'

    reply = read_verdict(SELECTION, said("", ("submit_result_no_workflow", arguments))).reply

    assert reply == SelectionVerdict(summary="s", reasoning="nothing fits", declined=True)


def test_a_workflow_without_a_summary_is_usable_in_invocation_2_alone() -> None:
    text = '{"selected_workflow": {"workflow_id": "w", "confidence": 0.9}}'

    assert read_verdict(SELECTION, said(text)).usable
    assert not read_verdict(RCA, said(text)).usable


def test_words_for_people_hide_nothing_and_what_is_looked_up_stays_as_it_was() -> None:
    hidden = "a\u200bb"
    cause = {
        "summary": hidden,
        "signal_name": hidden,
        "contributing_factors": [hidden],
        "investigation_analysis": hidden,
        "causal_chain": [hidden],
        "cause": {"field": hidden, "value": hidden},
        "due_diligence": {"target_accuracy": hidden},
        "remediation_target": {"kind": "Pod", "name": hidden},
        "claims": [{"statement": hidden, "role": "symptom", "evidence": [{"id": "E1", "quote": hidden}]}],
    }

    found = rca(json.dumps({"root_cause_analysis": cause, "confidence": 0.9, "human_review_reason": hidden}))

    seen = "a\\u{200b}b"
    claim = RawClaim(seen, "symptom", (Citation("E1", hidden),))
    assert (found.summary, found.signal_name, found.analysis, found.review_reason) == (seen,) * 4
    assert (found.cause_field, found.cause_value) == (seen, seen)
    assert (found.contributing_factors, found.causal_chain) == ((seen,), (seen,))
    assert (found.due_diligence, found.claims) == ({"target_accuracy": seen}, (claim,))
    assert found.target is not None
    assert found.target.name == hidden


# --- candidates --------------------------------------------------------------------------------------


@each_row(
    ("text", "summary"),
    [
        pytest.param('\ufeff  {"rca_summary": "s"}', "s", id="byte order mark"),
        pytest.param('one {of} the pods {"rca_summary": "s"}', "s", id="braces of prose"),
        pytest.param('{"foo": 1} } { {"rca_summary": "s"}', "s", id="stray braces in the rest"),
        pytest.param('{"rca_summary": "a } b { c \\" d"}', 'a } b { c " d', id="braces in strings"),
        pytest.param('x {"bad": } y {"rca_summary": "s"}', "s", id="a pair that does not decode"),
        pytest.param('{"rca_summary": "a", "rca_summary": "b"}', "b", id="the last of duplicate keys"),
        pytest.param('{"rca_summary": "s", "confidence": NaN}', "s", id="NaN is null"),
        pytest.param('```\n{"foo": 1}\n```\n```JSON\n{"rca_summary": "s"}\n```', "s", id="labelled fence, any case"),
        pytest.param(
            '```\n{"rca_summary": "a"}\n```\n```json\n{"rca_summary": "b"}\n```', "b", id="labelled fence first"
        ),
        pytest.param('```json\n{"rca_summary": "use ``` here"}\n```', "use ``` here", id="a fence in a string"),
        pytest.param('```json {"rca_summary": "s"}```', "s", id="a fence on one line"),
        pytest.param('Use ``` then {"rca_summary": "x ```"} done', "x ```", id="fence marks that are none"),
        pytest.param('{"RCA_Summary": "s"}', "s", id="another spelling"),
        pytest.param('{"root-cause-analysis": {"Summary": "s"}}', "s", id="hyphens"),
        pytest.param('{"root_cause_analysis": {"rca_summary": "s"}}', "s", id="flat key inside"),
        pytest.param(
            '**x**\n### **Root-Cause Analysis:**\n```json\n{"summary": "s"}\n```', "s", id="an emphasised header"
        ),
        pytest.param('{"rca_summary": "\\ud800s"}', "\ufffds", id="a lone surrogate"),
        pytest.param('{"rca_summary": "\\ud83d\\ude00"}', "\U0001f600", id="a pair of surrogates stays"),
    ],
)
def test_a_summary_is_found(text: str, summary: str) -> None:
    assert rca(text).summary == summary


@each_row(
    "text",
    [
        pytest.param('```json\n[{"rca_summary":"a"},{"rca_summary":"b"}]\n```', id="two verdicts in a fence"),
        pytest.param('{"rca_summary": "cut off", "causal_chain": [{"rca_summary": "inner"}', id="a fragment"),
        pytest.param('{"outer": {"rca_summary": "inner"}}', id="inside another object"),
        pytest.param("42", id="a number"),
        pytest.param("[[{}]]", id="a list of a list"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('{"rca_summary": {"summary": "s"}}', id="a summary that is an object"),
    ],
)
def test_what_is_ambiguous_or_cut_is_no_verdict(text: str) -> None:
    assert not read_verdict(RCA, said(text)).usable


def test_a_header_inside_a_fence_is_no_section() -> None:
    assert not read_verdict(RCA, said('```\n# root_cause_analysis\n"{}"\n```')).usable


@each_row(
    "text",
    ["`" * 300_000, '{"\\"' * 100_000, '{"' * 200_000, "\\" * 400_000, "# confidence\n" * 30_000, '"\\"' * 100_000],
)
@pytest.mark.timeout(20)
def test_hostile_text_costs_little(text: str) -> None:
    assert not read_verdict(RCA, said(text)).usable


# --- fields ------------------------------------------------------------------------------------------


@each_row(
    ("raw", "figure"),
    [(0, 0.0), (1, 1.0), (0.5, 0.5), (" 0.5 ", 0.5), (".5", 0.5), ("1e-1", 0.1), ("92%", 0.92), ("100 %", 1.0)],
)
def test_a_confidence_is_taken(raw: Any, figure: float) -> None:
    assert rca(json.dumps({"rca_summary": "s", "confidence": raw})).confidence == pytest.approx(figure)


@each_row("raw", [1.5, 95, -0.5, "high", "NaN", "Inf", "95", "150%", True, [0.5], {"a": 1}, "", "1e999"])
def test_a_confidence_is_never_guessed(raw: Any) -> None:
    reading = read_verdict(RCA, said(json.dumps({"rca_summary": "s", "confidence": raw})))

    assert isinstance(reading.reply, RcaVerdict)
    assert reading.reply.confidence is None
    assert bad_values(reading) == ("confidence",)


@each_row(
    ("raw", "word"),
    [
        ("RESOLVED", "problem_resolved"),
        ("self-resolved", "problem_resolved"),
        ("Not Actionable", "not_actionable"),
        ("predictive_no_action", "not_actionable"),
        ("Inconclusive", "inconclusive"),
        ("solved", ""),
        (3, ""),
    ],
)
def test_an_outcome_word_in_any_spelling(raw: Any, word: str) -> None:
    assert rca(json.dumps({"rca_summary": "s", "investigation_outcome": raw})).outcome == word


@each_row(
    ("raw", "factors", "bad"),
    [
        (["a", " ", "b "], ("a", "b"), False),
        ('["a", "b"]', ("a", "b"), False),
        ("a", ("a",), False),
        ([], (), False),
        (["a", 1], (), True),
        ({"a": 1}, (), True),
        (None, (), False),
    ],
)
def test_lists_of_texts(raw: Any, factors: tuple[str, ...], bad: bool) -> None:
    reading = read_verdict(
        RCA, said(json.dumps({"root_cause_analysis": {"summary": "s", "contributing_factors": raw}}))
    )

    assert isinstance(reading.reply, RcaVerdict)
    assert reading.reply.contributing_factors == factors
    assert bool(bad_values(reading)) is bad


@each_row(
    ("raw", "target", "bad"),
    [
        ({"kind": "deployment", "name": "api"}, TargetRef(kind="Deployment", name="api"), False),
        (
            {"kind": "Deployment", "name": "api", "namespace": "shop", "apiVersion": "apps/v1"},
            TargetRef(kind="Deployment", name="api", namespace="shop", api_version="apps/v1"),
            False,
        ),
        ('{"kind": "Node", "name": "n1", "namespace": ""}', TargetRef(kind="Node", name="n1"), False),
        ({}, None, False),
        ({"kind": "Deployment"}, None, True),
        ({"kind": "../x", "name": "api"}, None, True),
        ("Deployment/api", None, True),
        ([{"kind": "Deployment", "name": "api"}], None, True),
    ],
)
def test_targets(raw: Any, target: TargetRef | None, bad: bool) -> None:
    reading = read_verdict(RCA, said(json.dumps({"root_cause_analysis": {"summary": "s", "remediation_target": raw}})))

    assert isinstance(reading.reply, RcaVerdict)
    assert reading.reply.target == target
    assert bool(bad_values(reading)) is bad


CLAIM = {"statement": "it was killed", "role": "Root-Cause", "evidence": [{"id": "E1", "quote": "OOMKilled"}]}


UNCHECKABLE = [
    pytest.param({"statement": "no evidence"}, id="D07"),
    pytest.param({"statement": "", "evidence": CLAIM["evidence"]}, id="blank statement"),
    pytest.param({"statement": "s", "evidence": [{"id": "E1", "quote": "ab"}]}, id="short quote"),
    pytest.param({"statement": "s", "evidence": [{"quote": "OOMKilled"}]}, id="no id"),
    pytest.param({"statement": "s", "evidence": [*CLAIM["evidence"], {"id": "E2", "quote": "a"}]}, id="one bad quote"),
    pytest.param("text", id="text"),
]


@pytest.mark.parametrize("claim", UNCHECKABLE)
def test_a_claim_that_cannot_be_checked_is_dropped_and_counted(claim: Any) -> None:
    reply = rca(json.dumps({"root_cause_analysis": {"summary": "s", "claims": [CLAIM, claim]}}))

    assert reply.dropped_claims == 1
    assert reply.claims == (RawClaim("it was killed", "root_cause", (Citation("E1", "OOMKilled"),)),)


def test_a_number_is_a_quote_however_short() -> None:
    claim = {"statement": "a number", "evidence": {"id": "E2", "quote": 5}}

    reply = rca(json.dumps({"root_cause_analysis": {"summary": "s", "claims": claim}}))

    assert reply.claims == (RawClaim("a number", "contributing", (Citation("E2", "5"),)),)


def test_alternatives_without_an_id_vanish_and_are_counted() -> None:
    reply = selection('{"rca_summary": "s", "alternative_workflows": [{"workflow_id": "a"}, {"confidence": 1}, 3]}')

    assert (reply.alternatives, reply.dropped_alternatives) == ((WorkflowChoice("a", None),), 2)


@pytest.mark.parametrize("word", ["none", "N/A", " null ", ""])
def test_a_reason_that_says_nothing_is_no_request(word: str) -> None:
    assert rca(json.dumps({"rca_summary": "s", "human_review_reason": word})).review_reason == ""


# --- validation and correction -----------------------------------------------------------------------


@each_row(
    ("text", "paths"),
    [
        ('{"rca_summary": "s", "actionable": true, "investigation_outcome": "not_actionable"}', ["actionable"]),
        ('{"rca_summary": "s", "actionable": true, "investigation_outcome": "resolved"}', ["actionable"]),
        ('{"rca_summary": "s", "actionable": false, "investigation_outcome": "actionable"}', ["actionable"]),
        ('{"rca_summary": "s", "workflow_id": "w", "investigation_outcome": "resolved"}', ["investigation_outcome"]),
        ('{"rca_summary": "s", "workflow_id": "w", "actionable": false}', ["actionable"]),
        ('{"rca_summary": "s", "actionable": true, "investigation_outcome": "actionable"}', []),
    ],
)
def test_contradictions_are_found(text: str, paths: list[str]) -> None:
    assert [problem.path for problem in find_contradictions(selection(text))] == paths


def test_missing_required_fields_are_problems() -> None:
    first = read_verdict(RCA, said('{"root_cause_analysis": {"summary": "s"}}'))
    second = read_verdict(
        SELECTION, said("", ("submit_result_with_workflow", '{"root_cause_analysis": {"summary": "s"}}'))
    )

    assert first.problems == (FieldProblem("confidence", "", REQUIRED),)
    assert [problem.path for problem in second.problems] == ["selected_workflow", "confidence"]


def test_a_complete_reply_wants_no_correction() -> None:
    text = RCA_S + '"selected_workflow": {"workflow_id": "w", "confidence": 1}, "confidence": 1}'

    found = read_verdict(SELECTION, said("", ("submit_result_with_workflow", text)))

    assert found.usable
    assert found.problems == ()


def test_the_better_of_two_replies_counts() -> None:
    clean, poor = Reading(RcaVerdict("new")), Reading(RcaVerdict("old"), (FieldProblem("a", "b", "c"),))
    useless = Reading(None, failure=NO_JSON)

    assert better(poor, clean) is clean
    assert better(clean, poor) is clean
    assert better(poor, useless) is poor
    assert better(useless, poor) is poor
    assert better(poor, replacement := Reading(RcaVerdict("again"), poor.problems)) is replacement


FAULTS = {
    Invocation.RCA: "- root_cause_analysis must be an object; found: OOM",
    Invocation.SELECTION: "- root_cause_analysis must be an object; found: OOM",
    Invocation.STREAM: "- hypothesis is required",
}


@pytest.mark.parametrize("invocation", list(Invocation))
def test_the_corrective_message_names_faults_tools_and_an_example(invocation: Invocation) -> None:
    reading = read_verdict(invocation, said('{"root_cause_analysis": "OOM", "confidence": 7}'))

    message = corrective_message(invocation, reading)

    assert FAULTS[invocation] in message
    assert "- confidence must be a number from 0 to 1; found: 7" in message
    assert all(tool.name in message for tool in SUBMIT_TOOLS[invocation])
    assert not read_verdict(invocation, said(message.splitlines()[-1])).problems


@pytest.mark.parametrize("tool", [SUBMIT_RESULT, SUBMIT_WITH_WORKFLOW, SUBMIT_NO_WORKFLOW], ids=lambda tool: tool.name)
def test_the_schemas_are_open_and_name_nothing_that_code_sets(tool: Any) -> None:
    text = json.dumps(tool.parameters)

    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    assert "additionalProperties" not in text
    assert "$schema" not in text
    assert not any(
        f'"{word}"' in text for word in ("is_actionable", "warnings", "reason", "validation_attempts_history")
    )
    assert tool is not SUBMIT_RESULT or "workflow" not in text


def test_the_severities_of_a_reply_are_those_of_a_signal() -> None:
    assert tuple(word.value for word in Severity) == SEVERITIES


def test_prose_is_read_for_people_only() -> None:
    prose = "I looked around.\n**Root cause:** the limit is too low\nbye"

    assert not read_verdict(RCA, said(prose)).usable
    assert labelled_summary(prose) == "the limit is too low"


# --- laws --------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "rca_summary",
        "root_cause_analysis",
        "summary",
        "confidence",
        "claims",
        "selected_workflow",
        "workflow_id",
        "remediation_target",
        "kind",
        "name",
        "actionable",
        "severity",
        "contributing_factors",
        "parameters",
        "evidence",
        "statement",
        "id",
        "quote",
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["high", "0.5", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)
FRAGMENTS = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        '"',
        "\\",
        "```",
        "```json\n",
        "\n",
        "# confidence\n",
        '{"rca_summary": "s"}',
        '{"a"',
        "\ud800",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=5) | JSON.map(json.dumps), max_size=8).map("".join)


@given(TEXTS, st.sampled_from(list(Invocation)), st.sampled_from(["", "submit_result", "submit_result_no_workflow"]))
@settings(max_examples=300, deadline=None)
def test_the_reader_never_raises(text: str, invocation: Invocation, tool: str) -> None:
    reading = read_verdict(invocation, said(text, *([(tool, text)] if tool else [])))

    assert reading.usable != bool(reading.failure)


def written(reply: RcaVerdict | SelectionVerdict | StreamVerdict) -> str:
    """A reply in the form of the schema."""
    if isinstance(reply, StreamVerdict):
        return json.dumps(asdict(reply))
    target = reply.target
    cause: dict[str, Any] = {"summary": reply.summary, "contributing_factors": reply.contributing_factors}
    cause["remediation_target"] = target and target.model_dump()
    whole: dict[str, Any] = {
        "root_cause_analysis": cause,
        "severity": reply.severity or None,
        "confidence": reply.confidence,
        "investigation_outcome": reply.outcome or None,
        "actionable": reply.actionable,
        "needs_human_review": reply.needs_review,
        "human_review_reason": reply.review_reason,
    }
    if isinstance(reply, RcaVerdict):
        claims = [
            {"statement": c.statement, "role": c.role, "evidence": [asdict(item) for item in c.citations]}
            for c in reply.claims
        ]
        cause |= {"signal_name": reply.signal_name, "claims": claims, "causal_chain": reply.causal_chain}
        cause |= {"cause": {"field": reply.cause_field, "value": reply.cause_value}}
        cause |= {"investigation_analysis": reply.analysis, "due_diligence": dict(reply.due_diligence)}
    else:
        whole["selected_workflow"] = reply.choice and choice_written(reply.choice)
        whole["alternative_workflows"] = [choice_written(choice) for choice in reply.alternatives]
        whole["reasoning"] = reply.reasoning
    return json.dumps(whole)


def choice_written(choice: WorkflowChoice) -> dict[str, Any]:
    found = asdict(choice)
    return found | {"execution_engine": choice.engine, "execution_bundle": choice.bundle}


@given(JSON, st.sampled_from(list(Invocation)))
@settings(max_examples=300, deadline=None)
def test_reading_a_healed_reply_changes_nothing(value: Any, invocation: Invocation) -> None:
    verdict = {"rca_summary": "s", "root_cause_analysis": value, "claims": value}
    part = {"hypothesis": "h", "confidence": 0.5, "signals": value, "evidence": value}
    healed = read_verdict(invocation, said(json.dumps(part if invocation is Invocation.STREAM else verdict))).reply
    assert healed is not None

    again = read_verdict(invocation, said(written(healed)))

    plain = {"dropped_claims": 0, "dropped_alternatives": 0}
    assert bad_values(again) == ()
    assert again.reply is not None
    assert asdict(again.reply) | plain == asdict(healed) | plain
