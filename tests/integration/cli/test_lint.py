"""Objects in files: each fault with its file, line, field and rule, and the nearest right name."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inquest.cli.admin.lint_rules import RULES, LintFault
from inquest.cli.app import app
from inquest.errors import Misconfigured

ROOT = Path(__file__).resolve().parents[3]
WORKFLOW = (ROOT / "catalogue" / "increase-memory-limits.yaml").read_text().replace("0" * 64, "a" * 64)
Linted = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Linted:
    """Exit status and findings of one text."""

    def lint(text: str) -> tuple[int, list[dict[str, Any]]]:
        path = tmp_path / "given.yaml"
        path.write_text(text)
        status = app(["lint", str(path), "-o", "json"], result_action="return_value")
        return status, json.loads(capsys.readouterr().out)["findings"]

    return lint


CASES: dict[str, tuple[str, str, str, str, str]] = {
    "a field that is not there": (
        "    timeout: 2m",
        "    timeOut: 2m",
        "spec.execution.timeOut",
        "there is no such field; did you mean timeout?",
        "fault",
    ),
    "an unknown action type": (
        "  actionType: IncreaseMemoryLimits",
        "  actionType: IncreaseMemoryLimit",
        "spec.actionType",
        "did you mean IncreaseMemoryLimits?",
        "fault",
    ),
    "an image without a digest": (
        "    image: localhost/inquest/kubectl@sha256:" + "a" * 64,
        "    image: localhost/inquest/kubectl:1.0",
        "spec.execution.image",
        "pattern",
        "fault",
    ),
    "a placeholder": (
        "sha256:" + "a" * 64,
        "sha256:" + "0" * 64,
        "spec.execution.image",
        "its digest is a placeholder",
        "warning",
    ),
    "a parameter that no rule derives": (
        "    - name: MEMORY_LIMIT",
        "    - name: MEMORY_LIMITS",
        "spec.parameters[1].name",
        "no rule derives MEMORY_LIMITS: without a model the workflow is never chosen; did you mean MEMORY_LIMIT?",
        "warning",
    ),
    "words that are missing": (
        "    whenToUse: The last state of the container is OOMKilled and its limit is the cause.\n",
        "",
        "spec.description.whenToUse",
        "Field required",
        "fault",
    ),
    "a label that no Signal has": (
        '    severity: ["*"]',
        "    severity: [highest]",
        "spec.labels.severity[0]",
        "no Signal has the severity highest; did you mean high?",
        "warning",
    ),
    "a run that takes too long": (
        "    timeout: 2m",
        "    timeout: 3h",
        "spec.execution.timeout",
        "must be longer than zero and at most 2h",
        "fault",
    ),
    "a pattern that would need going back": (
        "      pattern: ^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        "      pattern: ^(?=a)[a-z0-9]*$",
        "spec.parameters[0].pattern",
        "is no expression of RE2",
        "fault",
    ),
    "a secret": (
        "    whenToUse: The last state of",
        "    whenToUse: password=hunter2-Xk93jdLq0 The last state of",
        "spec.description.whenToUse",
        "holds what looks like a secret",
        "fault",
    ),
    "another version of the API": (
        "apiVersion: inquest.dev/v1alpha1\nkind: RemediationWorkflow",
        "apiVersion: inquest.dev/v1\nkind: RemediationWorkflow",
        "apiVersion",
        "must be inquest.dev/v1alpha1",
        "fault",
    ),
    "an unknown kind": ("kind: ActionType", "kind: ActionTypes", "kind", "did you mean ActionType?", "fault"),
}


@pytest.mark.parametrize(("old", "new", "field", "rule", "level"), CASES.values(), ids=CASES.keys())
def test_a_fault_is_told_with_its_field_and_rule(
    linted: Linted, old: str, new: str, field: str, rule: str, level: str
) -> None:
    assert WORKFLOW.count(old) == 1

    status, found = linted(WORKFLOW.replace(old, new))

    told = [one for one in found if one["field"] == field]
    assert [(rule in one["rule"], one["level"]) for one in told] == [(True, level)], found
    assert status == (1 if "fault" in {one["level"] for one in found} else 0)


def test_all_faults_of_an_object_are_told_at_once(linted: Linted) -> None:
    text = WORKFLOW.replace("    timeout: 2m", "    timeout: 3h\n    retries: 2").replace("[*]", "[highest]")
    text = text.replace("  actionType: IncreaseMemoryLimits", "  actionType: IncreaseMemoryLimit")

    _, found = linted(text)

    assert {"spec.execution.retries", "spec.execution.timeout", "spec.actionType"} <= {one["field"] for one in found}


def test_a_rule_that_fails_on_a_whole_object_is_no_silence(linted: Linted, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[LintFault]:
        raise KeyError("a fault of ours")

    monkeypatch.setitem(RULES, "RemediationWorkflow", (broken,))

    with pytest.raises(KeyError):
        linted(WORKFLOW)
    assert linted(WORKFLOW.replace("    timeout: 2m", "    timeOut: 2m"))[0] == 1


PLAYBOOK = """\
name: LicenceExpired
triggers:
  - event_reason_regex: '^Unhealthy$'
  - pod_status_regex: '^CrashLoopBackOff$'
investigation_steps:
  - Read the ConfigMap licence-server.
"""


def test_a_playbook_is_checked_as_the_operator_would_take_it(linted: Linted) -> None:
    assert linted(PLAYBOOK) == (0, [])


def test_all_faults_of_a_playbook_are_told_at_once(linted: Linted) -> None:
    text = PLAYBOOK.replace("^Unhealthy$", "(?=a)").replace("^CrashLoopBackOff$", "Running")

    status, found = linted(text)

    assert status == 1
    assert [(one["field"], one["line"]) for one in found] == [
        ("triggers[0].event_reason_regex", 3),
        ("triggers[1].pod_status_regex", 4),
    ]
    assert "fires on health: it hits Running" in found[1]["rule"]


def test_a_fault_is_told_with_its_line(linted: Linted) -> None:
    text = WORKFLOW.replace("    timeout: 2m", "    timeout: 3h")

    _, found = linted(text)

    (line,) = [one["line"] for one in found if one["field"] == "spec.execution.timeout"]
    assert text.splitlines()[line - 1] == "    timeout: 3h"


def test_what_is_missing_is_told_at_the_line_of_what_it_is_missing_in(linted: Linted) -> None:
    text = WORKFLOW.replace("  version: 1.0.0\n  actionType", "  actionType")

    _, found = linted(text)

    (line,) = [one["line"] for one in found if one["field"] == "spec.version"]
    assert text.splitlines()[line - 1] == "spec:"


def test_one_version_twice_is_told_at_the_second(linted: Linted) -> None:
    status, found = linted(f"{WORKFLOW}---\n{WORKFLOW.partition('---')[2]}")

    assert [one["rule"] for one in found if one["field"] == "spec.version"] == [
        "increase-memory-limit 1.0.0 stands in document 2 too: a change needs a new version"
    ]
    assert status == 1


def test_the_products_own_objects_have_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    places = [str(ROOT / "catalogue"), str(ROOT / "examples" / "oom")]
    status = app(["lint", *places, "-o", "json"], result_action="return_value")

    found = json.loads(capsys.readouterr().out)
    assert (status, {one["rule"] for one in found["findings"]}) == (0, {"its digest is a placeholder"})
    assert "CEL rules" in found["unchecked"]


def test_the_standard_input_is_read_where_a_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("apiVersion: inquest.dev/v1alpha1\nkind: Signal\nspec: {names: x}\n"))

    assert app(["lint", "-"], result_action="return_value") == 1
    assert "-:3: spec.names: there is no such field; did you mean name?" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a: [", "\t- x"])
def test_what_is_no_yaml_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)

    with pytest.raises(Misconfigured, match=r"broken\.yaml:\d+: no YAML"):
        app(["lint", str(path)], result_action="return_value")


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("a: [")
    (tmp_path / "b.yaml").write_text("apiVersion: inquest.dev/v1alpha1\nkind: Signal\nspec: {names: x}\n")
    (tmp_path / "c.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: Secret\n")

    with pytest.raises(Misconfigured, match=r"a\.yaml:\d+: no YAML"):
        app(["lint", str(tmp_path)], result_action="return_value")

    printed = capsys.readouterr()
    assert "b.yaml:3: spec.names: there is no such field" in printed.out
    assert "1 document, " in printed.err
    assert ", 2 documents of other kinds passed over" in printed.err
