"""What tells soonest that a change is wrong, within a minute: `make quick`.

Format and lint of what changed, layers, types, a tenth of the scenarios, ten whole cases on an API server in memory,
and the pure tests nearest to the change: changed ones first, then those that import a changed module. What there was
no time for is named by number; `make check` and `make test` leave nothing out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from signal import SIGINT
from time import monotonic

import pytest
import yaml

from hack.cache import REPOSITORY
from hack.test import WITH_CLUSTERS
from hack.tools import bin_folder

SECONDS = 50.0
LEFT_OUT = (*WITH_CLUSTERS, "tests/real_model/")
"""Tests that `make quick` leaves out."""
SCENARIOS = "tests/scenarios/test_recorded.py"
MATRIX = "tests/scenarios/test_matrix.py"
TENTH = 10
WHOLE_CASES = "tests/integration/cases/test_outcomes.py"
CASES = "tests/integration/cases/cases"
FIFTH = 5
CASES_SECONDS = 60.0
"""Bound of the whole cases, which run beside the other tests."""
BIN = Path(sys.executable).parent


class Budget:
    """Stops a run of tests when its time is over."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.collected = self.ran = 0

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Of the scenarios every tenth."""
        recorded = [item for item in items if item.nodeid.startswith(SCENARIOS)]
        kept = set(recorded[::TENTH])
        items[:] = [item for item in items if item in kept or not item.nodeid.startswith(SCENARIOS)]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = len(session.items)

    def pytest_runtest_logfinish(self) -> None:
        self.ran += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        if monotonic() > self._until:
            item.session.shouldstop = f"{SECONDS:.0f} s are over"
        return (yield)


def main() -> int:
    """0 where nothing failed in time."""
    begun = monotonic()
    files = changed()
    python = [name for name in files if name.endswith(".py") and (REPOSITORY / name).exists()]
    cases = whole_cases()
    for command in checks(python):
        if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:
            if cases is not None:
                # As Ctrl-C does, so that it ends its operator too.
                cases.send_signal(SIGINT)
            return 1
    tests = nearest(python)
    budget = Budget(begun + SECONDS)
    options = ["-q", "-x", "-n0", "-m", "not long", "-p", "no:cacheprovider", "--no-header", "--no-summary"]
    code = pytest.main([*options, *tests, SCENARIOS, MATRIX], plugins=[budget])
    failed = in_time(cases)
    left = budget.collected - budget.ran
    print(f"{len(python)} changed files, {len(tests)} files of tests near them, {monotonic() - begun:.0f} s")
    if left and code in (pytest.ExitCode.OK, pytest.ExitCode.INTERRUPTED):
        print(f"{left} of {budget.collected} tests were left out for want of time")
        code = pytest.ExitCode.OK
    return int(code) or failed


def whole_cases() -> subprocess.Popen[str] | None:
    """Begin every fifth of the cases whose model answers at once, each from its Signal to its end.

    None where nobody has built OPA yet.
    """
    if not (bin_folder() / "opa").exists():
        print("no whole cases: they need OPA, which `make opa` builds")
        return None
    names = sorted(path.stem for path in (REPOSITORY / CASES).glob("*.yaml") if not _waits(path))[::FIFTH]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--no-header", "--no-summary"]
    return subprocess.Popen(
        [*command, WHOLE_CASES, "-k", " or ".join(names)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _waits(case: Path) -> bool:
    """Whether its model is slow on purpose."""
    return any("delay" in step for step in yaml.safe_load(case.read_text()).get("steps", ()))


def in_time(cases: subprocess.Popen[str] | None) -> int:
    """1 where one of them failed; a machine that is too slow for them says so."""
    if cases is None:
        return 0
    try:
        told, _ = cases.communicate(timeout=CASES_SECONDS)
    except subprocess.TimeoutExpired:
        cases.send_signal(SIGINT)
        cases.communicate()
        print(f"the whole cases were left out: they took more than {CASES_SECONDS:.0f} s")
        return 0
    print(told if cases.returncode else f"whole cases: {told.strip().splitlines()[-1]}")
    return int(cases.returncode != 0)


def changed() -> list[str]:
    """Files that differ from the last commit; where none does, those of the last commit."""
    ours = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return sorted(set(ours or _git("diff", "--name-only", "HEAD~1")))


def checks(python: Sequence[str]) -> list[list[str]]:
    """What is looked at before any test."""
    formatted = [[str(BIN / "ruff"), "format", "--check", *python], [str(BIN / "ruff"), "check", *python]]
    return [*(formatted if python else ()), [str(BIN / "lint-imports")], [str(BIN / "mypy"), "src", "hack", "tests"]]


def nearest(python: Iterable[str]) -> list[str]:
    """Files of pure tests, the nearest first: changed ones, then those that import a changed module."""
    names = list(python)
    own = [name for name in names if _is_pure(name)]
    modules = [module for name in names if (module := module_of(name))]
    others = (str(path.relative_to(REPOSITORY)) for path in sorted((REPOSITORY / "tests").rglob("test_*.py")))
    near = [name for name in others if _is_pure(name) and _imports(REPOSITORY / name, modules)]
    return list(dict.fromkeys([*own, *near]))


def _is_pure(name: str) -> bool:
    return name.startswith("tests/") and not name.startswith(LEFT_OUT) and Path(name).name.startswith("test_")


def module_of(name: str) -> str:
    """The dotted name of a file of the product or of hack; empty for any other."""
    found = re.fullmatch(r"(?:src/)?((?:inquest|hack)/.+?)(?:/__init__)?\.py", name)
    return found.group(1).replace("/", ".") if found else ""


def _imports(path: Path, modules: Iterable[str]) -> bool:
    """By the lines of import alone, whichever way a module is named there."""
    text = path.read_text()
    for module in modules:
        package, _, last = module.rpartition(".")
        whole, part = re.escape(module), rf"{re.escape(package)} import .*\b{last}\b"
        if re.search(rf"^(?:(?:from|import) {whole}\b|from {part})", text, re.MULTILINE):
            return True
    return False


def _git(*arguments: str) -> list[str]:
    ran = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return ran.stdout.split()


if __name__ == "__main__":
    sys.exit(main())
