"""Run every tier in one go: `python -m hack.test`; CI also fails where a tier could not run.

A test of a tier with clusters that fails is run once more by itself. A second failure fails the run; what passed only
then is named at its end.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable

from hack.cache import REPOSITORY
from hack.cluster import local
from hack.cluster.state import cluster_names

WITH_CLUSTERS = (
    *(f"tests/integration/{tier}/" for tier in ("cases", "faults", "hostile", "story")),
    *("tests/e2e/", "tests/scenarios/live/"),
)
WORKERS = "4"
"""Two more than CI has cores: the tests of the node and those of the control plane, each of which run one after the
other, mostly wait."""
MOST_AGAIN = 10
"""More failures than these are no accidents."""
GROUP = re.compile(r"@[\w-]+$")
FAILED = REPOSITORY / ".pytest_cache" / "v" / "cache" / "lastfailed"


def main() -> int:
    """Exit status of the test run; the clusters it brought up are taken down afterwards, also after a failure."""
    environment = {**os.environ, **({"INQUEST_ALL_TIERS": "1"} if os.environ.get("CI") == "true" else {})}
    others = cluster_names()
    FAILED.unlink(missing_ok=True)
    try:
        code = _pytest("tests", "-n", WORKERS, "--dist", "loadgroup", "-m", "not long", environment=environment)
        return _once_more(failed()) if code == 1 else code
    finally:
        for name in cluster_names() - others:
            local.down(name=name)


def failed() -> list[str]:
    """The tests that failed, by their ids, without the group that xdist puts behind each."""
    return sorted(GROUP.sub("", test) for test in json.loads(FAILED.read_text())) if FAILED.exists() else []


def may_be_flaky(tests: Iterable[str]) -> bool:
    """Whether these are few, and all of them ones that a slow machine may disturb."""
    several = list(tests)
    return 0 < len(several) <= MOST_AGAIN and all(one.startswith(WITH_CLUSTERS) for one in several)


def _once_more(tests: list[str]) -> int:
    if not may_be_flaky(tests):
        return 1
    print(f"\n{len(tests)} failed; each once more by itself:", *tests, sep="\n  ", flush=True)
    environment = {name: value for name, value in os.environ.items() if name != "INQUEST_ALL_TIERS"}
    code = _pytest(*tests, "-n", "0", environment=environment)
    if code == 0:
        print("\nFLAKY, failed once and passed by itself:", *tests, sep="\n  ", flush=True)
    return code


def _pytest(*arguments: str, environment: dict[str, str]) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env=environment, cwd=REPOSITORY, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
