"""The pages whose commands need no cluster, typed as they stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hack.tools import build
from tests.e2e.docs.commands import OFFLINE
from tests.e2e.docs.desk import Desk
from tests.e2e.docs.pages import blocks


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    tools = build(["opa", "helm", "kubectl"])
    return Desk(tmp_path, OFFLINE, {"PATH": f"{tmp_path}/.venv/bin:{tools}:{os.environ['PATH']}"})


def test_the_pages_that_need_no_cluster_work_as_they_stand(desk: Desk) -> None:
    desk.does("docs/how-to/replay-a-case.md", "inquest replay tests")
    (desk.folder / "settings.yaml").write_text("{}")
    desk.does("docs/how-to/use-a-model.md", "INQUEST_LIMITS__MAX_TURNS=0")
    desk.write_files_of("docs/how-to/write-a-workflow.md")
    desk.does("docs/how-to/write-a-workflow.md", "inquest lint")
    desk.does("docs/how-to/install-the-command.md", "--version")
    desk.does("docs/how-to/install-the-command.md", "inquest completion")
    _write_policy(desk)
    desk.does("docs/how-to/write-a-policy.md", "inquest policy test")

    assert desk.left_out() == []


def test_the_case_that_a_page_shows_is_answered_as_it_expects(desk: Desk) -> None:
    shown = (block.text for block in blocks("docs/how-to/replay-a-case.md") if block.text.startswith("description:"))
    (desk.folder / "mine.yaml").write_text(next(shown))

    said, code = desk.runs("inquest replay mine.yaml")

    assert code == 0
    assert said.startswith("right  mine:")


def _write_policy(desk: Desk) -> None:
    """The default with the page's own rules, and the page's own document."""
    page = list(blocks("docs/how-to/write-a-policy.md"))
    rules = next(block.text for block in page if block.language == "rego")
    document = next(block.text for block in page if block.language == "yaml")
    default = (desk.folder / "policies" / "approval.rego").read_text()
    (desk.folder / "my-approval.rego").write_text(f"{default}\n{rules}")
    (desk.folder / "my-cases").mkdir()
    (desk.folder / "my-cases" / "many-pods.yaml").write_text(document)
