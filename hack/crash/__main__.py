"""The runner.

    python -m hack.crash --phases --runs 5     kill -9 in each phase of the demo's case, five times each
    python -m hack.crash --everywhere          a counting run, then each number and each side (--limit bounds it)

Everything happens on a real cluster with a real node, of a name of its own. Exit status 1 on any violation.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hack import HackError
from hack.cluster import local
from hack.crash.oracle import Object, differences, double_effects, ending, is_lost, violations
from hack.crash.points import COUNT_ONLY, PHASES, Call, Point, calls_of, everywhere, in_phase
from hack.crash.scene import Result, Scene
from hack.demo.__main__ import forget_earlier_run, model
from hack.demo.play import say
from hack.demo.stage import Stage, folder, install, load_images, raise_cluster, stop_operator

NAME = "crash-real"
AHEAD = 8
"""Workloads on their way to the third kill, which takes the kubelet most of a minute."""


@dataclass
class Tally:
    """What all runs come to."""

    points: int = 0
    crashes: int = 0
    double_effects: int = 0
    lost: int = 0
    violations: int = 0
    by_phase: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Count one run; one without a crash proves nothing about crashes but must end well all the same."""
        self.points += bool(result.crashed)
        self.crashes += bool(result.crashed)
        self.double_effects += double_effects(result.faults)
        self.lost += is_lost(result.faults)
        self.violations += len(result.faults)
        self.by_phase[result.crashed.partition(":")[0]] += bool(result.crashed)


@dataclass
class Runner:
    """Plays one case after the other; the next workloads are broken while a case runs."""

    stage: Stage
    model: dict[str, str]
    tally: Tally = field(default_factory=Tally)
    expected: Object = field(default_factory=dict)
    _number: int = 0
    _ready: deque[Scene] = field(default_factory=deque)

    def undisturbed(self) -> list[Call]:
        """The run without a crash: its end is the oracle, its calls are the points."""
        scene = self._scene()
        result = scene.play(COUNT_ONLY)
        result.faults = violations(result.seen)
        self.expected = ending(result.seen)
        calls = calls_of(scene.log)
        say(f"undisturbed: {len(calls)} port calls, {result.seconds:.0f} s, {_verdict(result)}")
        if result.faults:
            raise HackError("the undisturbed run already breaks a promise")
        counted = Counter(call.phase for call in calls)
        say("  " + ", ".join(f"{phase} {count}" for phase, count in counted.items()))
        return calls

    def crash(self, point: Point) -> Result:
        """One run with the operator killed at a point; one that this run never came to gives way to an earlier one."""
        scene = self._scene()
        result = scene.play(point)
        different = differences(self.expected, ending(result.seen))
        result.faults = [*violations(result.seen), *(f"same end: {text}" for text in different)]
        self._say(scene, point, result)
        return self.crash(point.earlier()) if not result.crashed and point.at > 1 else result

    def _say(self, scene: Scene, point: Point, result: Result) -> None:
        if not result.faults:
            shutil.rmtree(scene.home)
        self.tally.add(result)
        say(f"{self.tally.points:4d}  {result.crashed or f'not reached: {point}':<90} {_verdict(result)}")
        for fault in result.faults:
            say(f"        {fault}")

    def _scene(self) -> Scene:
        """The workload that is broken first; as many as are needed are on their way."""
        while len(self._ready) < AHEAD:
            self._ready.append(self._prepared())
        return self._ready.popleft()

    def _prepared(self) -> Scene:
        self._number += 1
        name = f"crash-{int(time.time()) % 100_000}-{self._number}"
        scene = Scene(self.stage, self.model, name, self.stage.folder / "runs" / name)
        scene.prepare()
        return scene


def main(arguments: list[str] | None = None) -> int:
    """0 where nothing was violated and every point was reached."""
    options = _parser().parse_args(arguments)
    try:
        with raised(options) as runner:
            calls = runner.undisturbed()
            return play_all(runner, chosen(options, calls))
    except HackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def chosen(options: argparse.Namespace, calls: list[Call]) -> list[Point]:
    """The points that were asked for."""
    if options.everywhere:
        return everywhere(calls, options.limit)
    return [point for phase in options.phase or PHASES for point in in_phase(calls, phase, options.runs)]


def play_all(runner: Runner, points: list[Point]) -> int:
    """Every point; then the figures."""
    say(f"{len(points)} points")
    begun = time.monotonic()
    for point in points:
        runner.crash(point)
    tally = runner.tally
    say("")
    for phase in ("-", *PHASES, "Completed"):
        if tally.by_phase[phase]:
            say(f"  {phase:<18} {tally.by_phase[phase]:3d} crashes")
    say(f"  {time.monotonic() - begun:.0f} s, {tally.violations} violations")
    say(
        f"points {tally.points}, crashes {tally.crashes}, "
        f"double effects {tally.double_effects}, lost cases {tally.lost}"
    )
    return 0 if not tally.violations else 1


@contextmanager
def raised(options: argparse.Namespace) -> Iterator[Runner]:
    """The cluster with everything installed, and the runner; the operator ends with it, the cluster if so asked."""
    stage = raise_cluster(options.cluster)
    forget_earlier_run(stage)
    install(stage, load_images(options.cluster))
    try:
        with model(options.model) as settings:
            yield Runner(stage, dict(settings))
    finally:
        stop_operator(folder(options.cluster))
        if options.down:
            local.down(name=options.cluster)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.crash", description="kill -9 of the operator, everywhere.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--phases", action="store_true", help="some points in each phase")
    what.add_argument("--everywhere", action="store_true", help="every numbered call, before and after")
    parser.add_argument("--runs", type=int, default=5, help="runs for each phase")
    parser.add_argument("--phase", action="append", choices=PHASES, help="only this phase; may be repeated")
    parser.add_argument("--limit", type=int, default=0, help="at most so many points, spread evenly")
    parser.add_argument("--model", choices=("none", "scripted"), default="scripted")
    parser.add_argument("--cluster", default=NAME, help="name of the cluster")
    parser.add_argument("--down", action="store_true", help="take the cluster down at the end")
    return parser


def _verdict(result: Result) -> str:
    case = result.seen.case.get("status") or {}
    end = f"{case.get('phase', 'no case')}, {case.get('resolution', '-')}"
    return f"{end}, {result.seconds:.0f} s: " + (f"{len(result.faults)} VIOLATIONS" if result.faults else "same end")


if __name__ == "__main__":
    sys.exit(main())
