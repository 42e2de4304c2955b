"""`inquest policy test`: a policy against documents in files, on a real OPA."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inquest.cli.app import app
from inquest.errors import Misconfigured

CASES = Path(__file__).parents[4] / "policies" / "cases"
HEAD = "package inquest.approval\n\n"
Run = Callable[..., int]


@pytest.fixture
def run(opa_binary: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The exit status of `inquest policy test` with these words."""
    monkeypatch.setenv("INQUEST_OPA_BINARY", opa_binary)

    def run_(*words: object) -> int:
        return app(["policy", "test", *map(str, words)], result_action="return_value")  # type: ignore[no-any-return]

    return run_


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Path]:
    """A file with a document and, where given, what is expected."""

    def write(name: str, environment: str, **expect: object) -> Path:
        body = {"input": {"environment": environment}, **({"expect": expect} if expect else {})}
        path = tmp_path / name
        path.write_text(json.dumps(body))
        return path

    return write


def policy_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.rego"
    path.write_text(HEAD + text)
    return path


def test_the_cases_of_the_default_policy_are_ruled_as_they_say(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CASES) == 0

    told = capsys.readouterr()
    said = told.out.splitlines()
    assert "tested with OPA 1." in told.err
    assert len(said) == len(list(CASES.iterdir()))
    assert all(line.startswith("ok") for line in said)
    assert any("node-in-production.yaml: ApprovalRequired: Production environment with" in line for line in said)


def test_a_ruling_that_is_not_as_expected_is_told_and_fails(
    run: Run, case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = policy_of(tmp_path, 'require_approval := false\nreason := "as you like"\n')
    good = case("a.json", "qa", decision="AutoApproved", reason="as you like")
    wrong = case("b.json", "qa", decision="Denied", reason="no")

    assert run(good, "--policy", mine) == 0
    assert run(good, wrong, "--policy", mine) == 1

    said = capsys.readouterr().out
    assert f"FAIL  {wrong}: AutoApproved: as you like" in said
    assert "expected Denied, was AutoApproved" in said
    assert "expected the reason 'no', was 'as you like'" in said


def test_a_policy_that_says_nothing_usable_is_seen_as_degraded(
    run: Run, case: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = policy_of(tmp_path, 'require_approval := "false"\n')

    assert run(case("a.json", "qa", decision="ApprovalRequired"), "--policy", mine) == 1
    assert "expected no degraded ruling, was require_approval is not a boolean" in capsys.readouterr().out
    assert run(case("a.json", "qa", decision="ApprovalRequired", degraded=True), "--policy", mine) == 0


def test_a_document_without_an_expectation_is_ruled_and_not_judged(
    run: Run, case: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(case("a.json", "production"), "-o", "json") == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["decision"], told["reason"]) == ("ApprovalRequired", "Remediation target is missing")
    assert [factor["score"] for factor in told["riskFactors"]] == [90, 70]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input: {}\nexpect: {decision: Perhaps}", "expect.decision"),
        ("input: {}\nexpected: {decision: Denied}", "expected: Extra inputs"),
        ("- 1", "the whole"),
        ("{", "cannot be read"),
    ],
    ids=["an unknown decision", "a misspelt key", "no mapping", "no YAML"],
)
def test_a_case_that_cannot_be_read_is_named_and_the_others_go_on(
    run: Run,
    case: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    said: str,
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(text)

    assert run(bad, case("good.json", "production", decision="ApprovalRequired")) == 2

    told = capsys.readouterr()
    assert f"{bad}" in told.err
    assert said in told.err
    assert "ok" in told.out


def test_a_policy_that_cannot_be_used_is_a_mistake_and_no_ruling(
    run: Run, case: Callable[..., Path], tmp_path: Path
) -> None:
    clock = policy_of(tmp_path, "require_approval := time.now_ns() > 0\n")

    with pytest.raises(Misconfigured, match=r"undefined function time\.now_ns"):
        run(case("a.json", "qa"), "--policy", clock)
    with pytest.raises(Misconfigured, match="the policy file is missing"):
        run(case("a.json", "qa"), "--policy", tmp_path / "nowhere.rego")


def test_a_folder_without_cases_is_a_mistake_and_no_success(run: Run, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="name a case"):
        run(tmp_path)


def test_opa_is_found_where_a_checkout_has_built_it(
    opa_binary: str, case: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "cache" / "bin" / "0123abcd" / "opa"
    built.parent.mkdir(parents=True)
    built.symlink_to(opa_binary)
    monkeypatch.delenv("INQUEST_OPA_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path / "cache"))

    assert app(["policy", "test", str(case("a.json", "qa"))], result_action="return_value") == 0


def test_without_opa_the_one_command_is_named_that_brings_it(
    case: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INQUEST_OPA_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path / "empty"))

    with pytest.raises(Misconfigured, match=r"go install github\.com/open-policy-agent/opa@latest"):
        app(["policy", "test", str(case("a.json", "qa"))], result_action="return_value")
