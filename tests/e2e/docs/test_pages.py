"""What the pages show is what the product takes: every snippet is read by the program that a reader gives it to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from inquest.adapters.playbooks.reader import book_of
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.cli.app import app
from inquest.settings.settings import Settings
from tests.e2e.chart.chart import IMAGE, rendered
from tests.e2e.docs.commands import unused, who
from tests.e2e.docs.pages import ROOT, Block, Step, blocks, kind_of, pages, steps
from tests.support.tables import each_row

STEPS: Final = [step for page in pages() for step in steps(page)]
YAML: Final = [block for page in pages() for block in blocks(page) if block.language == "yaml"]
ELSEWHERE: Final = {
    "docs/how-to/connect-alertmanager.md": "tests/integration/story/test_intake.py runs a real one with it",
    "docs/how-to/replay-a-case.md": "members of a recorded case: tests/integration/replay reads every one of them",
    "docs/how-to/write-a-policy.md": "a document for the policy: test_offline.py gives it to the command of the page",
}
"""Snippets that are neither objects nor settings nor values."""


def of_kind(kind: str) -> list[Block]:
    return [block for block in YAML if kind_of(block) == kind]


def whole(block: Block) -> Any:
    """What it says; a part of a longer list stands where that list does."""
    said = yaml.safe_load(block.text)
    if isinstance(said, list):
        return {"herald": {"receivers": said}}
    return {"herald": said | {"receivers": _named(said)}} if "routes" in said else said


def _named(said: dict[str, Any]) -> list[dict[str, str]]:
    names = dict.fromkeys(name for route in said["routes"] for name in route["receivers"])
    return [{"name": name, "kind": "webhook", "url_file": f"/etc/inquest-receivers/{name}"} for name in names]


@each_row("step", STEPS, ids=str)
def test_every_command_is_run_by_a_test_or_says_why_not(step: Step) -> None:
    assert who(step), f"{step}: tests/e2e/docs/commands.py names no journey and no reason"


def test_no_reason_outlives_its_command() -> None:
    assert unused() == []


@each_row("block", YAML, ids=str)
def test_every_snippet_is_something_that_a_program_reads(block: Block) -> None:
    assert kind_of(block) or block.page in ELSEWHERE


@pytest.mark.parametrize("block", of_kind("settings"), ids=str)
def test_settings_on_a_page_are_accepted_by_the_product(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(whole(block)))

    assert Settings.load(file)


@each_row("block", of_kind("values"), ids=str)
def test_values_on_a_page_are_accepted_by_the_chart(block: Block) -> None:
    assert rendered(IMAGE | yaml.safe_load(block.text))


@pytest.mark.parametrize("block", of_kind("playbook"), ids=str)
def test_a_playbook_on_a_page_can_be_used(block: Block) -> None:
    assert book_of(block.text.encode()).triggers


def test_the_workflow_of_the_guide_is_for_its_action_and_runs_as_its_account() -> None:
    page = "docs/how-to/write-a-workflow.md"
    shown = [one for block in of_kind("object") if block.page == page for one in yaml.safe_load_all(block.text)]
    action = next(ActionType.model_validate(one) for one in shown if one["kind"] == "ActionType")
    workflow = next(RemediationWorkflow.model_validate(one) for one in shown if one["kind"] == "RemediationWorkflow")

    assert workflow.spec.action_type == action.spec.name
    assert workflow.spec.execution.service_account_name in {
        one["metadata"]["name"] for one in shown if one["kind"] == "ServiceAccount"
    }


def test_targets_of_make_on_the_pages_are_there() -> None:
    made = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ": " in line}
    named = {
        word
        for step in STEPS
        for line in step.command.splitlines()
        for word in line.partition("#")[0].split()[1:2]
        if line.startswith("make ") and not word.startswith("-")
    }

    assert named
    assert named <= made


def own_commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of the product's own command, in whatever block it stands."""
    for step in STEPS:
        for line in step.command.replace("\\\n", " ").splitlines():
            if "inquest " not in line or "'" in line:
                continue
            words = shlex.split(line, comments=True)
            named = next((at for at, word in enumerate(words) if word.rpartition("/")[2] == "inquest"), None)
            if named is not None and all("=" in word for word in words[:named]):
                yield f"{step.block}: {line}", words[named + 1 :]


@each_row("words", [pytest.param(words, id=name) for name, words in own_commands()])
def test_commands_and_options_of_the_product_are_those_it_has(words: list[str]) -> None:
    app.parse_args(words, exit_on_error=False, print_error=False)
