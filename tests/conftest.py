"""What every tier shows: how many of its tests ran. A tier that is missing fails CI and is loud elsewhere."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from inquest.operator.interpreter import keep_what_is_loaded, prepare_interpreter

settings.register_profile("ports", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("ports"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "ports")
"""A machine that is busy must not fail a law: nothing here is timed. CI plays the same examples each time, so that a
red run tells of the change; whoever works on the code looks for new ones at each run."""

TIER_MISSING = 20
"""Exit status where a tier could not run: unlike a failed test it is not tried again."""
TIERS = (
    *(f"unit/{one}" for one in ("api", "controllers", "core", "gather", "operator", "presentation", "server")),
    *("unit/settings", "unit/telemetry"),
    *(f"integration/{one}" for one in ("adapters", "cases", "cli", "datastorage", "faults", "hostile", "replay")),
    *(f"integration/{one}" for one in ("server", "snapshot", "story")),
    *(f"e2e/{one}" for one in ("chart", "cli", "contract", "datastorage", "docs", "operator")),
    *("scenarios", "hack"),
)
os.environ.setdefault("INQUEST_FORBID_REAL_MODELS", "1")
# Thousands of collected tests are a large heap, which Python's own threshold has searched for garbage all the time.
prepare_interpreter()


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "the API server of tests that need its semantics alone: `memory`, or `real` for a control plane"
    parser.addoption("--server", choices=("memory", "real"), default="memory", help=text)


def _tier(nodeid: str) -> str:
    folder = nodeid.partition("::")[0].rpartition("/")[0].removeprefix("tests/")
    return next((tier for tier in TIERS if f"{folder}/".startswith(f"{tier}/")), "")


def _counted(reporter: pytest.TerminalReporter, outcome: str) -> Counter[str]:
    reports = (report for report in reporter.stats.get(outcome, []) if hasattr(report, "nodeid"))
    return Counter(_tier(report.nodeid) for report in reports)


ROW = re.compile(r"[\[-](?P<own>(?:C-[A-Z]{2}-|FA-|RV-|[ACDGHILMNPRSTX])\d{1,2}(?![0-9A-Za-z]))")
PLACE = re.compile(r"(?P<table>(?:pipeline|behaviours|datastorage|reliability|resources)-\d+(?:\.\d+)?)-(?P<row>\d+)")
"""A row of a conformance table is named in a test's id: by its own name, or by table and number where it has none."""


def _rows(nodeids: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for nodeid in nodeids:
        for place in PLACE.finditer(nodeid):
            found.setdefault(place["table"], set()).add(place["row"].lstrip("0"))
        for row in ROW.finditer(PLACE.sub("", nodeid)):
            found.setdefault(row["own"].rstrip("0123456789"), set()).add(row["own"])
    return found


def _row_lines(reporter: pytest.TerminalReporter) -> Iterator[str]:
    """How many rows of each table were asserted in this run."""
    reports = (*reporter.stats.get("passed", []), *reporter.stats.get("failed", []))
    found = _rows(report.nodeid for report in reports if hasattr(report, "nodeid"))
    for table in sorted(found):
        yield f"{table:>16}: {len(found[table])} rows"


def _seconds(reporter: pytest.TerminalReporter) -> Counter[str]:
    """What the tests of each tier took, with what they set up and took down; several workers add up."""
    whole = (found for word, found in reporter.stats.items() if not word.startswith("subtests"))
    reports = (report for found in whole for report in found if hasattr(report, "duration"))
    spent: Counter[str] = Counter()
    for report in reports:
        spent[_tier(report.nodeid)] += report.duration
    return spent


def _lines(reporter: pytest.TerminalReporter) -> Iterator[str]:
    ran, skipped = _counted(reporter, "passed") + _counted(reporter, "failed"), _counted(reporter, "skipped")
    spent = _seconds(reporter)
    for tier in TIERS:
        note = f", {skipped[tier]} could not run here" if skipped[tier] else ""
        took = f", {spent[tier]:.0f} s" if ran[tier] else "   <-- THIS TIER DID NOT RUN"
        yield f"{tier:>23}: {ran[tier]} tests ran{note}{took}"


CLUSTER_SECONDS = 900.0
"""Bound of a test that may have to bring a control plane up first, on a machine that is many times slower."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needs_cluster = {"cluster", "stage", "make_scene"} & set(getattr(item, "fixturenames", ()))
        if needs_cluster and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(CLUSTER_SECONDS))


def pytest_collection_finish(session: pytest.Session) -> None:
    keep_what_is_loaded()
    _groups_are_kept(session)


def _groups_are_kept(session: pytest.Session) -> None:
    """Two workers on one control plane spoil each other's runs: a group that is not kept must stop all."""
    if "PYTEST_XDIST_WORKER" not in os.environ or not session.config.getoption("loadgroup", default=False):
        return
    lost = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
    if lost:
        raise pytest.UsageError(f"pytest-xdist does not keep {lost[0]} in its group")


LASTING = ("MainThread", "computing_0", "apiserver")
"""Threads that outlive a file: the one that computes, and that of a server for all tests of a worker."""
END_SECONDS = 10.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A file ends the threads that it began: one that spins costs every test after it a core, and nobody sees why."""
    yield
    if nextitem is None or nextitem.path != item.path:
        left = [thread for thread in threading.enumerate() if thread.name not in LASTING]
        for thread in left:
            thread.join(END_SECONDS)
        assert not any(thread.is_alive() for thread in left), f"{item.path.name} leaves threads behind: {left}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title, lines in (("tiers", _lines), ("rows of the conformance tables", _row_lines)):
        terminalreporter.section(title)
        for line in lines(terminalreporter):
            terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(reporter, pytest.TerminalReporter) or "INQUEST_ALL_TIERS" not in os.environ or exitstatus > 1:
        return
    ran, skipped = _counted(reporter, "passed"), _counted(reporter, "skipped")
    if any(not ran[tier] for tier in TIERS) or skipped:
        session.exitstatus = TIER_MISSING
        reporter.write_line(
            "a tier, or a part of one, could not run on this machine; CI does not accept that", red=True
        )
