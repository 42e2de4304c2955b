"""The program as a person starts it, where no cluster is needed."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import reduce
from io import StringIO
from pathlib import Path

import pytest
import structlog

from hack.gen import readme
from inquest.api.registry import KINDS, KindEntry
from inquest.cli.app import app
from inquest.cli.cases.list import KINDS_BY_WORD
from inquest.cli.completion import candidates
from inquest.cli.exits import Exit
from inquest.cli.main import main
from tests.support.tables import each_row

ROOT = Path(__file__).resolve().parents[3]
CASE = "examples/oomkilled"


@dataclass(frozen=True)
class Ran:
    """What the program said."""

    returncode: int
    stdout: str
    stderr: str


def _run(*words: str) -> Ran:
    """The program with these words, in this process: to start one takes seconds."""
    out, err, root = StringIO(), StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(ROOT)
        patch.setattr(sys, "argv", ["inquest", *words])
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
            structlog.reset_defaults()
    return Ran(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def _started(program: str, *words: str) -> Ran:
    """The program in a process of its own, under the name by which it was started."""
    code = f"import sys; sys.argv[0] = {program!r}; from inquest.cli.main import main; main()"
    command = [sys.executable, "-c", code, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=280)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def test_the_example_is_replayed_without_a_cluster_and_named_rightly() -> None:
    ran = _run("replay", CASE, "-o", "json")

    assert ran.returncode == Exit.OK, ran.stderr
    told = json.loads(ran.stdout)
    assert told["expected"] == {"at1": True, "at3": True, "field": True, "outcome": True}


@pytest.mark.parametrize(
    ("listed", "status", "said"),
    [
        ("memory: the limit is not named", Exit.OK, "1 of them are not as expected, and known"),
        ("quiet: something else", Exit.NO, "0 of them are not as expected, and known"),
        ("# memory: no longer", Exit.NO, "2 cases"),
    ],
)
def test_a_case_that_is_known_to_be_answered_wrong_fails_no_replay(
    tmp_path: Path, listed: str, status: Exit, said: str
) -> None:
    """Of two cases one is expected to be something else; the list beside them may say so."""
    cases = tmp_path / "cases"
    shutil.copytree(ROOT / "tests/integration/replay/cases", cases)
    expected = cases / "memory" / "expected.yaml"
    expected.write_text(expected.read_text().replace("category: OOMKilled", "category: ImagePullFailed"))
    (cases / "not-yet.txt").write_text(f"# why\n{listed}\n")

    ran = _run("replay", str(cases))

    assert ran.returncode == status, ran.stdout
    assert said in ran.stdout


def test_a_recorded_case_is_told_and_reported_without_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "report.md"

    told, reported, quoted = (
        _run(*words) for words in (("get", CASE), ("report", CASE, "-o", str(file)), ("evidence", CASE, "E29"))
    )

    assert (told.returncode, reported.returncode, quoted.returncode) == (Exit.OK, Exit.OK, Exit.OK)
    assert "Completed, WorkflowSelected, Remediated" in told.stdout
    assert file.read_text().startswith("# Incident: KubePodCrashLooping\n")
    assert "OOMKilled, exit code 137" in quoted.stdout


def test_a_report_that_cannot_be_written_is_a_line_and_no_traceback(tmp_path: Path) -> None:
    ran = _run("report", CASE, "-o", str(tmp_path))

    assert ran.returncode == Exit.MISUSED
    assert ran.stderr == f"inquest: {tmp_path} cannot be written: Is a directory\n"


def test_a_case_that_was_only_recorded_is_played_to_be_explained() -> None:
    ran = _run("explain", "tests/scenarios/memory-cpu/" + sorted(_scenarios("memory-cpu"))[0])

    assert ran.returncode == Exit.OK, ran.stderr
    assert "What it rests on" in ran.stdout


def _scenarios(family: str) -> list[str]:
    return [path.stem for path in (ROOT / "tests/scenarios" / family).glob("*.yaml")]


def test_evidence_that_is_not_there_is_named() -> None:
    ran = _run("evidence", CASE, "E99")

    assert ran.returncode == Exit.NOT_FOUND
    assert "E99" in ran.stderr


def test_a_wrong_argument_and_a_kubeconfig_that_is_not_there_are_misuse() -> None:
    assert _run("nonsense").returncode == Exit.MISUSED
    ran = _run("list", "--kubeconfig", "/nowhere/config")
    assert (ran.returncode, ran.stderr) == (
        Exit.MISUSED,
        "inquest: kubeconfig /nowhere/config: there is no such file\n",
    )


@pytest.mark.parametrize("command", [["investigate", "deploy/checkout"], ["rerun", "inv-1"]])
def test_a_wrong_time_is_refused_before_anything_is_asked_of_a_cluster(command: list[str], tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n"
        "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    )

    ran = _run(*command, "--wait", "--timeout", "soon", "--kubeconfig", str(config))

    assert ran.returncode == Exit.MISUSED
    assert "'soon' is no time" in ran.stderr


@pytest.mark.parametrize("group", [[], ["datastorage"], ["audit"], ["policy"]])
def test_every_command_says_what_it_does(group: list[str]) -> None:
    found = reduce(lambda at, word: at[word], group, app)

    silent = [name for name in found if not name.startswith("-") and not found[name].help.strip()]
    assert (silent, [name for name in found if not name.startswith("-")] != []) == ([], True)


@each_row(
    ("words", "told"),
    [
        (["list", "signals", "workflows"], "one word too many: workflows; see inquest list --help"),
        (["lst"], 'unknown command "lst". Did you mean "list"? See inquest --help'),
        (["audit", "nonsense"], 'unknown command "nonsense"; see inquest audit --help'),
        (["get"], 'command "get" parameter NAME requires an argument; see inquest get --help'),
        (["get", "inv-1", "--nope"], "unknown option: --nope; see inquest get --help"),
        (
            ["get", "inv-1", "-o", "xml"],
            'invalid value "xml" for -o. Choose from: "tree", "wide", "json", "yaml", "name"; see inquest get --help',
        ),
    ],
)
def test_what_is_wrong_with_the_words_of_a_person_is_one_line_that_says_where_the_help_is(
    words: list[str], told: str
) -> None:
    ran = _run(*words)

    assert (ran.returncode, ran.stdout, ran.stderr) == (Exit.MISUSED, "", f"inquest: {told}\n")


@each_row("entry", KINDS, ids=lambda entry: entry.kind)
def test_a_kind_is_listed_by_every_word_that_kubectl_has_for_it(entry: KindEntry) -> None:
    words = (entry.kind, entry.kind.lower(), entry.plural, entry.short, entry.crd_name)

    meant = {app.parse_args(["list", word], exit_on_error=False)[1].arguments["what"] for word in words}
    assert [KINDS_BY_WORD[what].kind for what in meant] == [entry.kind]


@pytest.mark.parametrize("word", ["pods", "inv.example.com", "investigationss"])
def test_a_kind_that_is_none_of_these_is_told_with_those_that_are(word: str) -> None:
    ran = _run("list", word)

    assert ran.returncode == Exit.MISUSED
    assert ran.stderr.startswith(f"inquest: invalid value {word!r} for WHAT. Choose from: investigations, signals, ")


def test_the_list_of_evidence_says_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert app(["evidence", CASE], result_action="return_value") == Exit.OK

    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["ID", "TOOL", "ASKED", "FOR"]
    assert "read=pods" in "".join(rows)


def test_the_plugin_calls_itself_as_it_was_called() -> None:
    assert "Usage: kubectl inquest COMMAND" in _started("kubectl-inquest", "--help").stdout
    assert "Usage: inquest COMMAND" in _run("--help").stdout


@pytest.mark.parametrize(("page", "words"), [pytest.param(*one, id=one[0].name) for one in readme.SHOWN.items()])
def test_a_page_fails_its_check_once_it_shows_something_else(
    page: Path, words: tuple[str, ...], tmp_path: Path
) -> None:
    told, changed = page.read_text(encoding="utf-8"), tmp_path / page.name
    changed.write_text(told.replace(f"$ inquest {' '.join(words)}", "$ inquest something-else"), encoding="utf-8")

    assert readme.shown(page, words) == told
    assert changed.read_text(encoding="utf-8") != told
    assert readme.shown(changed, words) == told


# --- completion ---------------------------------------------------------------------------------------------


@each_row(
    ("words", "expected"),
    [
        (["ex"], ["explain", "export"]),
        (["policy", ""], ["test"]),
        (["list", "sig"], ["signals"]),
        (["list", "--all"], ["--all-namespaces"]),
        (["get", "--name"], ["--namespace"]),
        (["follow", "--kube"], ["--kubeconfig"]),
        (["export", "--as"], ["--as", "--as-group", "--as-uid"]),
        (["export", "--inv"], []),
        (["nonsense", ""], []),
        (["--ver"], []),
        (["list", "-o", ""], ["json", "name", "table", "wide", "yaml"]),
        (["list", "--output", "wi"], ["wide"]),
        (["list", "-o", "json", "sig"], ["signals"]),
        (["list", "-A", "sig"], ["signals"]),
        (["get", "inv-1", "--timeout", ""], []),
        (["investigate", "--severity", "c"], ["critical"]),
    ],
)
def test_a_word_is_completed_by_what_may_stand_there(words: list[str], expected: list[str]) -> None:
    assert candidates(app, words) == expected


def test_names_that_no_cluster_gives_complete_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")

    assert candidates(app, ["get", "-n", "shop", "inv"]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(shell: str) -> None:
    ran = _run("completion", shell)

    assert ran.returncode == Exit.OK, ran.stderr
    assert "inquest" in ran.stdout
    assert "investigate" in ran.stdout
