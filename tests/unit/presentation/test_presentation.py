"""One case as every face shows it, from what is stored of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.types import Phase
from inquest.presentation.branches import Node, Section, State
from inquest.presentation.case import CaseObjects
from inquest.presentation.drawing import as_markdown, as_sections, as_tree, terminal_cells
from inquest.presentation.explanation import explanation_of
from inquest.presentation.tree import case_tree
from inquest.replay.export import read_recording
from inquest.replay.player import recorded_investigation
from tests.support.tables import each_row

ROOT = Path(__file__).resolve().parents[3]
OBJECTS = ROOT / "tests" / "support" / "objects"
FINISHED = ROOT / "examples" / "oomkilled"
RULES = {"│", "├─", "└─"}
HOSTILE = "\x1b[2J\x1b]0;owned\x07<img src=x> [a](http://evil) @team `x` | # \u202e\x9b31m\n# heading"


def _object(name: str) -> Any:
    return yaml.safe_load((OBJECTS / f"{name}.yaml").read_text())


def _investigation(**status: Any) -> Investigation:
    found = _object("investigation")
    return Investigation.from_object({**found, "metadata": {"name": "inv-1", "namespace": "ops"}, "status": status})


@pytest.fixture(scope="module")
def finished() -> CaseObjects:
    return CaseObjects(recorded_investigation(read_recording(FINISHED)))


def _drawn(told: CaseObjects) -> str:
    return "\n".join(as_tree(case_tree(told)))


SCREEN = 50


def _explained(told: CaseObjects) -> str:
    return "\n".join(as_sections(explanation_of(told)))


# --- a terminal ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_gets_every_word_and_no_line_that_could_be_shorter(finished: CaseObjects, width: int) -> None:
    whole, narrow = as_tree(case_tree(finished)), as_tree(case_tree(finished), width)

    assert [word for line in narrow for word in line.split() if word not in RULES] == [
        word for line in whole for word in line.split() if word not in RULES
    ]
    assert len(narrow) > len(whole)
    # What is longer than the terminal is one word alone beneath the beginning of its text.
    assert all(terminal_cells(line) <= width or len(_words(line)) == 1 for line in narrow)


def _words(line: str) -> list[str]:
    return [word for word in line.split() if word not in RULES]


def test_a_text_goes_on_beneath_its_beginning_and_a_quote_stays_as_it_is() -> None:
    leaf = Node("one two three four five six seven", mark=State.DONE)
    quote = Node("inquest approve a-case -n inquest-system", quote=True)
    root = Node("a", (Node("eight nine ten eleven twelve", (leaf,)), quote))

    assert as_tree(root, 26) == [
        "a",
        "├─ eight nine ten eleven",
        "│  │ twelve",
        "│  └─ ✔ one two three four",
        "│       five six seven",
        "└─ inquest approve a-case -n inquest-system",
    ]
    assert as_sections((Section("Why", root.leaves),), 26) == [
        "Why",
        "  eight nine ten eleven",
        "    twelve",
        "    ✔ one two three four",
        "      five six seven",
        "  inquest approve a-case -n inquest-system",
    ]


def test_signs_that_take_two_columns_are_counted_as_two() -> None:
    assert terminal_cells("東京 e\u0301") == 6
    assert as_tree(Node("東京東京東京 東京東京東京"), 22) == ["東京東京東京", "  東京東京東京"]


def test_the_command_that_decides_can_be_copied_in_any_terminal() -> None:
    waiting = _investigation(phase="AwaitingApproval", startedAt="2026-11-20T10:00:00Z")

    assert any(
        line.endswith("to decide: inquest approve inv-1 -n ops")
        for line in as_tree(case_tree(CaseObjects(waiting)), 20)
    )


# --- how far it is ------------------------------------------------------------------------------------------


def test_a_finished_case_shows_every_phase_with_what_was_done_in_it(finished: CaseObjects) -> None:
    text = _drawn(finished)

    for words in (
        "Investigating: 7 turns of scripted/oom, 8 calls",
        "✔ call 4 kubectl_describe",
        "finding 0.95 OOMKilled",
        "root cause 0.97 OOMKilled Deployment/checkout in shop",
        "Selecting: IncreaseMemoryLimits:increase-memory-limit 1.0.0 0.92",
        "MEMORY_LIMIT=64Mi",
        "Analyzing: ApprovalRequired: Production environment",
        "AwaitingApproval: Approved by admin",
        "Verifying: Partial, score 1.00",
    ):
        assert words in text
    assert "○" not in text


def test_an_open_case_shows_what_is_before_it() -> None:
    lines = as_tree(case_tree(CaseObjects(_investigation(phase="Selecting", startedAt="2026-11-20T10:00:00Z"))))

    assert [line[3:] for line in lines if "○" in line] == [
        "○ Analyzing",
        "○ AwaitingApproval",
        "○ Executing",
        "○ Verifying",
    ]
    assert any("▶ Selecting" in line for line in lines)


def test_an_ended_case_leaves_out_what_it_never_came_to() -> None:
    status = {"phase": "Completed", "outcome": "NotActionable", "startedAt": "2026-11-20T10:00:00Z"}

    text = _drawn(CaseObjects(_investigation(**status)))

    assert "Executing" not in text
    assert "Selecting" not in text


@each_row("phase", list(Phase))
def test_every_phase_can_be_drawn_before_anything_is_known(phase: Phase) -> None:
    told = CaseObjects(_investigation(phase=str(phase)))

    assert str(phase) in _drawn(told)
    assert _explained(told)


def test_a_run_that_failed_and_its_undo_are_told() -> None:
    execution = WorkflowExecution.from_object(_object("workflowexecution"))
    failed = execution.model_copy(update={"status": execution.status.model_copy(update={"phase": "Failed"})})
    inv = _investigation(phase="Failed", execution={"ref": {"name": "wfe-1"}}, startedAt="2026-11-20T10:00:00Z")

    text = _drawn(CaseObjects(inv, execution=failed, undo=execution))

    assert "✖ Executing: Failed" in text
    assert "The workflow failed." in text
    assert "undone by" in text


def test_a_read_that_failed_is_shown_as_one() -> None:
    inv = _investigation(phase="Investigating", gaps=[{"what": "events", "why": "refused"}])

    assert "! could not be read: events: refused" in _drawn(CaseObjects(inv))
    assert "events: refused" in _explained(CaseObjects(inv))


# --- why ----------------------------------------------------------------------------------------------------


def test_the_cause_stands_with_the_quotes_it_rests_on(finished: CaseObjects) -> None:
    text = _explained(finished)

    assert "Supported, RootCause: Its memory limit is 32Mi." in text
    assert "E29: “memory 32Mi”" in text
    assert "detector oom_killed 0.95" in text


def test_what_was_refuted_and_the_runners_up_are_named() -> None:
    inv = _investigation(
        phase="Selecting",
        claims=[{"text": "The disk is full.", "evidence": ["E1"], "verdict": "Unsupported", "note": "not in E1"}],
        causes=[
            {"category": "OOMKilled", "summary": "first", "confidence": 0.9},
            {"category": "CrashLoop", "summary": "second", "confidence": 0.4},
        ],
    )

    text = _explained(CaseObjects(inv))

    assert "dropped: The disk is full.\n    not in E1" in text
    assert "place 2: 0.40 CrashLoop: second" in text
    assert "The disk is full." not in text.partition("What was ruled out")[0]


def test_a_parameter_stands_with_the_rule_that_gave_it(finished: CaseObjects) -> None:
    by_model = _explained(finished)
    status = finished.status.model_copy(update={"usage": None})
    by_code = _explained(CaseObjects(finished.investigation.model_copy(update={"status": status})))

    assert "MEMORY_LIMIT=64Mi (named by the model, checked against the workflow's schema)" in by_model
    assert "MEMORY_LIMIT=64Mi (rule: twice the present limit" in by_code
    assert "TARGET_RESOURCE_NAME=checkout " in by_model
    assert by_model.count("(set by code: the verified target)") == 1


def test_why_a_person_was_asked_and_what_they_decided_is_told(finished: CaseObjects) -> None:
    decided = _object("remediationapprovalrequest")
    decided["spec"] |= {"decision": "Approved", "decidedBy": "admin", "decisionReason": "raise it"}

    text = _explained(CaseObjects(finished.investigation, request=RemediationApprovalRequest.from_object(decided)))

    assert "risk 70: Production environment" in text
    assert "Approved by admin: raise it" in text
    assert "\n  -revision: 7\n  +revision: 6\n" in text


def test_the_same_is_told_as_markdown(finished: CaseObjects) -> None:
    lines = as_markdown("Incident", explanation_of(finished))

    assert lines[0] == "# Incident"
    assert lines[2].startswith("## Container app of Deployment checkout is killed")
    assert "- Supported, RootCause: Its memory limit is 32Mi." in lines


# --- text of the cluster is data ------------------------------------------------------------------------------


def _hostile() -> CaseObjects:
    return CaseObjects(
        _investigation(
            phase="Failed",
            message=HOSTILE,
            rootCause={"summary": HOSTILE, "analysis": HOSTILE + "."},
            claims=[{"text": HOSTILE, "quote": HOSTILE, "evidence": ["E1"], "verdict": "Supported"}],
            gaps=[{"what": HOSTILE, "why": HOSTILE}],
            warnings=[HOSTILE],
        )
    )


@pytest.mark.parametrize("draw", [_drawn, _explained])
def test_no_text_of_a_case_drives_a_terminal_or_makes_a_line_of_its_own(draw: Any) -> None:
    text = draw(_hostile())

    assert not any(sign in text for sign in ("\x1b", "\x07", "\x9b", "\u202e"))
    assert not any(line.startswith("# heading") for line in text.splitlines())


def test_no_text_of_a_case_is_markdown_in_a_report() -> None:
    text = "\n".join(as_markdown(HOSTILE, explanation_of(_hostile())))

    assert "<img" not in text.replace("\\<img", "")
    assert "@team" not in text
    assert "http://" not in text
    assert "\n# heading" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("text", "line"), [("- a", "- \\- a"), ("12. a", "- 12\\. a"), ("a_b", "- a\\_b")])
def test_a_mark_of_markdown_has_one_backslash(text: str, line: str) -> None:
    assert as_markdown("t", [Section("s", (Node(text),))])[-1] == line


@settings(max_examples=50)
@given(st.text(max_size=80))
def test_a_quote_never_ends_the_fence_that_it_stands_in(text: str) -> None:
    lines = as_markdown("t", [Section("s", (Node(f"```\n{text}\n````", quote=True),))])

    fence = lines[4].removeprefix("- ").removesuffix("text")
    inner = [line.strip() for line in lines[5:-1]]
    assert set(fence) == {"`"}
    assert lines[-1].strip() == fence
    assert fence not in inner


def test_the_cause_and_what_was_done_come_first_and_each_stands_once(finished: CaseObjects) -> None:
    first, second, *others = _explained(finished).splitlines()

    assert first.startswith("Container app of Deployment checkout is killed")
    assert second.strip().startswith("Completed, WorkflowSelected, Remediated")
    assert second.count("Remediated") == 1
    assert not any(first in other for other in others)


def test_an_explanation_fits_a_screen(finished: CaseObjects) -> None:
    assert len(as_sections(explanation_of(finished), 120)) <= SCREEN


def test_more_reads_that_failed_than_fit_are_counted() -> None:
    inv = _investigation(phase="Completed", gaps=[{"what": f"read {number}", "why": "refused"} for number in range(9)])

    assert "and 6 more in status.gaps" in _explained(CaseObjects(inv))


@pytest.mark.parametrize(("decision", "is_shown"), [(None, True), ("Approved", False)])
def test_who_is_asked_reads_what_to_type(decision: str | None, is_shown: bool) -> None:
    found = _object("remediationapprovalrequest")
    found["spec"] |= {"decision": decision, "decidedBy": "jane"} if decision else {}
    inv = _investigation(phase="AwaitingApproval", approval={"state": "Pending"})

    text = _drawn(CaseObjects(inv, request=RemediationApprovalRequest.from_object(found)))

    assert ("to decide: inquest approve inv-1 -n ops" in text) is is_shown
