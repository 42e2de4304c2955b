"""`make scenarios`: every scenario with a live recipe on a real cluster, told by a running operator.

python -m hack.scenarios                               all of them; writes the report that the docs show
python -m hack.scenarios probes images/never-pulled    some of them
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hack import HackError
from hack.demo.play import fail, say
from hack.rights.judging import Run, judge, owed
from hack.rights.known import KNOWN
from hack.rights.known import SCENARIOS as TIER
from hack.scenarios.live import SCENARIOS, down, has_recipe, run
from hack.scenarios.report import REPORT, Compared, compared, lines, write
from hack.scenarios.staging import AGE_SECONDS, Scenario, scenario_of
from hack.tools import build
from inquest.replay.player import case_places

CLUSTER = "live"
JOBS = 8
"""Faults at once on each of the two clusters."""


def main(arguments: list[str] | None = None) -> int:
    """0 where every fault came about, each verdict was right or is known not to be, and no right was missing."""
    options = _parser().parse_args(arguments)
    rights: list[Run] = []
    try:
        scenarios = chosen(options.scenarios)
        seen = play(scenarios, rights, options)
    except HackError as error:
        return fail(error)
    finally:
        if not options.keep:
            down(options.cluster)
    said, faults = rights_in(rights, whole=not options.scenarios)
    for line in ("", *lines(seen), "", *said):
        say(line)
    if path := options.report or (None if options.scenarios else REPORT):
        write(path, (one.told for one in seen), _about())
        say(f"\nwritten to {path}; `make docs` takes it into docs/reference/scenarios.md")
    return 1 if faults or any(is_news(one) for one in seen) else 0


def rights_in(runs: Sequence[Run], *, whole: bool) -> tuple[list[str], list[str]]:
    """What is said of the rights of our accounts, and of that what fails the run.

    Forbidden answers do; and of a run of all scenarios the rights that no test shows in use because this run should.
    """
    both = Run.of(runs)
    verdict, left = judge(both, KNOWN), owed(both, KNOWN, TIER)
    told = [f"rights: {verdict.used} of {verdict.whole} in use, the others but {len(left)} are for `make test` to show"]
    faults = [f"refused: {line}" for line in verdict.refused]
    faults += [f"allowed by no known right: {line}" for line in verdict.strange]
    unused = [f"never used: {line}" for line in left]
    return [*told, *faults, *unused], faults + (unused if whole else [])


def _about() -> dict[str, str]:
    """When it was, and of which Kubernetes."""
    command = [str(build(["kubectl"]) / "kubectl"), "version", "--client", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return {
        "takenAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kubernetesVersion": json.loads(done.stdout)["clientVersion"]["gitVersion"],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.scenarios", description="Live runs of the scenarios.")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="family or family/name; all if none is given")
    parser.add_argument("--cluster", default=CLUSTER, help="other names are other clusters of this checkout")
    parser.add_argument("--jobs", type=int, default=JOBS, help="faults at once on each cluster")
    parser.add_argument("--age", type=float, default=AGE_SECONDS, help="seconds that a fault stands before it is told")
    parser.add_argument("--report", type=Path, help="where verdicts are written; a run of all has a place of its own")
    parser.add_argument("--keep", action="store_true", help="leave the clusters up")
    return parser


def chosen(names: Sequence[str]) -> list[Scenario]:
    """The scenarios with a live recipe, of these families or names; a name that chooses none is an error."""
    able = [place for place in case_places([SCENARIOS]) if has_recipe(place)]
    if strange := [name for name in names if not any(_is_meant(place, name) for place in able)]:
        raise HackError(f"no scenario with a live recipe is called {', '.join(strange)}")
    return [scenario_of(one) for one in able if not names or any(_is_meant(one, name) for name in names)]


def _is_meant(place: Path, name: str) -> bool:
    return name.strip("/") in (f"{place.parent.name}/{place.stem}", place.parent.name)


def play(scenarios: Sequence[Scenario], rights: list[Run], options: argparse.Namespace) -> list[Compared]:
    """Each verdict beside its expectation, told as it comes."""
    begun, seen = time.monotonic(), []
    for one in run(scenarios, rights, cluster=options.cluster, jobs=options.jobs, age=options.age):
        seen.append(compared(one))
        say(f"[{len(seen)}/{len(scenarios)}, {time.monotonic() - begun:.0f} s] {sentence(seen[-1])}")
    return seen


def sentence(one: Compared) -> str:
    """One line of what was said."""
    told = one.told
    if told.trouble:
        return f"NONE   {told.name}: {told.trouble}"
    word = "right" if one.holds else "WRONG"
    causes = "; ".join(f"{cause.category} {cause.object.display} {cause.field}" for cause in told.causes[:3])
    figures = f"{told.seconds:.1f} s, {told.reads} reads"
    return f"{word}  {told.name}: {told.outcome} {told.action} [{figures}] {causes or 'nothing blamed'}"


def is_news(one: Compared) -> bool:
    """Whether it fails and nobody knows yet."""
    return not one.holds and one.told.name not in known_failures()


def known_failures(lists: Iterable[str] = ("not-yet.txt", "live/not-yet.txt")) -> set[str]:
    """Names on the lists of what is not answered yet, replayed or live."""
    several = (line.strip() for name in lists for line in (SCENARIOS / name).read_text().splitlines())
    return {line.partition(":")[0].strip() for line in several if line and not line.startswith("#")}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, subprocess.TimeoutExpired) as stopped:
        sys.exit(f"stopped: {stopped}")
