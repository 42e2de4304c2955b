"""The words of the chart's pods start what the commands of the same name start, without the library for people."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from inquest.cli.cases.records import in_pod
from inquest.cli.exits import Exit
from inquest.cli.program import program_of
from tests.support.tables import each_row

TEMPLATES = Path(__file__).resolve().parents[3] / "charts" / "inquest" / "templates"
OURS = "  args: [{}, --settings, /etc/inquest/settings.yaml]"
PODS = {"deployment.yaml": "run", "datastorage.yaml": "datastorage, serve"}
OTHERS: tuple[list[str], ...] = (
    [],
    ["run"],
    ["run", "--help"],
    ["run", "--settings", "--help"],
    ["run", "--settings", "settings.yaml", "--verbose"],
    ["serve", "--settings", "settings.yaml"],
)


@pytest.mark.parametrize("template", PODS)
def test_the_words_of_a_pod_of_the_chart_are_known(template: str) -> None:
    line = OURS.format(PODS[template])
    words = re.split(r"[\s,]+", line.split("[")[1].rstrip("]"))

    assert line in (TEMPLATES / template).read_text()
    assert program_of(words) is not None


def test_the_command_for_the_operators_pod_names_what_the_chart_installs() -> None:
    words = in_pod("evidence inv-1 E2 -n shop", "inquest-system").split()

    chart = (TEMPLATES / "deployment.yaml").read_text()
    image = (TEMPLATES.parents[2] / "images" / "operator" / "Containerfile").read_text()
    assert words[:6] == ["kubectl", "exec", "-n", "inquest-system", "deploy/inquest", "-c"]
    assert f"- name: {words[6]}" in chart
    assert f'ENTRYPOINT ["{words[8]}", "-m", "{words[10]}"]' in image
    assert f"{words[-2]}, {words[-1]}]" in chart


@each_row("words", OTHERS)
def test_other_words_are_read_as_every_command(words: list[str]) -> None:
    assert program_of(words) is None


@pytest.mark.parametrize("words", [["run"], ["datastorage", "serve"]])
def test_a_fault_is_told_alike_however_the_words_are_read(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "none.yaml"
    pod, person = _told(*words, "--settings", str(file)), _told(*words, f"--settings={file}")

    assert pod == person
    assert (person[0], str(file) in person[1]) == (Exit.MISUSED, True)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({}, "does not run in a pod: name one by kubernetes.kubeconfig or INQUEST_KUBERNETES__KUBECONFIG"),
        ({"kubernetes": {"kubeconfig": "nowhere"}}, "kubeconfig nowhere: there is no such file"),
        (
            {"kubernetes": {"kubeconfig": "config"}, "policy": {"opa_binary": "no-such-opa"}},
            "policy.opa_binary: there is no program no-such-opa",
        ),
    ],
)
def test_an_operator_that_cannot_begin_leaves_no_database_behind(
    own: dict[str, dict[str, str]], told: str, tmp_path: Path
) -> None:
    (tmp_path / "settings.yaml").write_text(json.dumps(own))
    (tmp_path / "config").write_text(
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    )
    command = [sys.executable, "-m", "inquest.cli.main", "run", "--settings", "settings.yaml"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path)

    assert (ran.returncode, ran.stdout) == (Exit.MISUSED, "")
    assert told in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config", "settings.yaml"]


def test_a_pod_does_without_the_library_that_reads_what_people_type() -> None:
    code = "import sys, inquest.cli.main; print(sorted({'cyclopts', 'inquest.cli.app'} & set(sys.modules)))"

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def _told(*words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "inquest.cli.main", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return ran.returncode, ran.stderr
