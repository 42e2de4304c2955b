"""The command: `python -m benchmarks [--json FILE] [--only steps replays] [--sizes 20 50]`.

Exit status 1 says that something could not be measured. A goal that was missed is told and changes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import cpu_profile, ground, load, report, steps
from benchmarks.load import Idle, Played
from benchmarks.model import served
from benchmarks.report import Row

SECTIONS: Final = ("steps", "redaction", "tokens", "replays", "datastorage", "ruling", "intake", "install", "cases")
BUSY_LOAD: Final = 1.0
"""Above it something else runs on this machine, and times say less."""


@dataclass
class Results:
    """Everything measured so far."""

    begun: float = field(default_factory=time.monotonic)
    sections: dict[str, list[Row]] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def show(self, title: str, rows: list[Row]) -> None:
        """Print a section as soon as it is there."""
        self.sections[title] = rows
        print(report.table(title, rows), flush=True)

    def say(self, line: str) -> None:
        """One line about what happens now."""
        print(f"[{time.monotonic() - self.begun:5.0f} s] {line}", file=sys.stderr, flush=True)

    def data(self, machine: dict[str, Any]) -> dict[str, Any]:
        """As JSON."""
        sections = {title: [row.data() for row in rows] for title, rows in self.sections.items()}
        return {"machine": machine, "sections": sections, "raw": self.raw, "failures": self.failures}

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """What fails is told, and the rest goes on."""
        try:
            yield
        except Exception as error:
            traceback.print_exc()
            self.failures[what] = f"{type(error).__name__}: {error}"


def main() -> int:
    """Measure, print, save; what was started goes, also where this is told to stop."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    options = _options()
    machine, results = report.machine(), Results()
    _introduce(machine)
    sections: dict[str, Callable[[Results, argparse.Namespace], None]] = {
        "steps": _steps,
        "redaction": _redaction,
        "tokens": _tokens,
        "replays": _replays,
        "datastorage": _datastorage,
        "ruling": _ruling,
        "intake": _intake,
        "install": _install,
        "cases": _cases,
    }
    try:
        for name in options.only:
            with results.attempt(name):
                sections[name](results, options)
    finally:
        if options.json:
            options.json.write_text(json.dumps(results.data(machine), indent=1) + "\n")
        _conclude(results)
    return 1 if results.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="every figure, raw ones too")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="not everything")
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, 50], metavar="N", help="cases at once")
    parser.add_argument("--alone", type=int, default=5, metavar="N", help="cases one after the other")
    parser.add_argument("--turn-seconds", type=float, default=1.0, help="how long the scripted model takes for a turn")
    parser.add_argument("--without-model", action="store_true", help="cases that rules alone bring to their end")
    parser.add_argument("--profile", action="store_true", help="CPU of cases at once by function; slows them a little")
    parser.add_argument("--rest-seconds", type=float, default=70.0, help="at rest: one round of resync and sweep")
    parser.add_argument("--engines", nargs="+", default=["sqlite", "postgres"], help="of DataStorage")
    rows = int(os.environ.get("ROWS", 1_000_000))
    parser.add_argument("--rows", type=int, default=rows, metavar="N", help="of the audit trail; also ROWS=N")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a new folder for logs, requests and prompts")
    return parser.parse_args()


def _introduce(machine: dict[str, Any]) -> None:
    print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items()))
    if machine["load_before"] > BUSY_LOAD:
        print("something else runs on this machine: times are not of Inquest alone")


def _steps(results: Results, _: argparse.Namespace) -> None:
    results.show("Single steps, in memory", list(steps.rows()))


def _redaction(results: Results, _: argparse.Namespace) -> None:
    from benchmarks import redaction  # imported late: whoever measures cases needs none of it

    results.show("Redaction", list(report.of_redaction(redaction.measure())))


def _tokens(results: Results, _: argparse.Namespace) -> None:
    from benchmarks import tokens  # imported late: whoever measures cases needs none of it

    results.show("What a model reads of each kind of tool result", list(tokens.rows()))


def _replays(results: Results, _: argparse.Namespace) -> None:
    from benchmarks import replays  # imported late: whoever measures cases needs none of it

    results.show("A thousand recorded cases", list(replays.rows()))


def _datastorage(results: Results, options: argparse.Namespace) -> None:
    from benchmarks import datastorage  # imported late: whoever measures cases needs none of it

    for title, rows in datastorage.sections(results.say, options.engines, options.rows):
        results.show(title, rows)


def _ruling(results: Results, _: argparse.Namespace) -> None:
    from benchmarks import ruling  # imported late: whoever measures cases needs none of it

    for title, rows in ruling.sections(results.say):
        results.show(title, rows)


def _intake(results: Results, options: argparse.Namespace) -> None:
    from benchmarks import intake  # imported late: whoever measures cases needs none of it

    results.say("bringing up a control plane with simulated nodes")
    with _folder(options.keep) as folder, ground.raised(folder) as stage:
        for title, rows in intake.sections(stage, results.say):
            results.show(title, rows)


def _install(results: Results, _: argparse.Namespace) -> None:
    from benchmarks import install  # imported late: whoever measures cases needs none of it

    for title, rows in install.sections(results.say):
        results.show(title, rows)


def _cases(results: Results, options: argparse.Namespace) -> None:
    results.say("bringing up a control plane with simulated nodes")
    with _folder(options.keep) as folder, ground.raised(folder) as stage, served(folder, options.turn_seconds) as model:
        model = replace(model, url="") if options.without_model else model
        idle, alone = load.idle_and_alone(stage, model, options.alone, options.rest_seconds, results.say)
        results.raw |= {"idle": _plain(idle), "alone": _plain(alone)}
        results.show("At rest", list(report.of_idle(idle)))
        _show(results, f"{options.alone} cases, one after the other", alone, alone, idle)
        if model.url:
            results.show("What the model is sent", list(report.of_prompts(alone)))
        for size in options.sizes:
            with results.attempt(f"{size} cases at once"):
                played = load.at_once(stage, model, size, idle, results.say, profile=options.profile)
                results.raw[f"{size} at once"] = _plain(played)
                _show(results, f"{size} cases at once", played, alone, idle)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """Where logs and notes are written; they go unless they are asked for."""
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept
        return
    with TemporaryDirectory(prefix="inquest-bench-") as folder:
        yield Path(folder)


def _show(results: Results, title: str, played: Played, alone: Played, idle: Idle) -> None:
    results.show(title, list(report.of_run(played, alone, idle)))
    for effect, words in played.to_record.items():
        told = sorted(words.items(), key=lambda pair: -pair[1])
        print(f"    {effect}s: " + ", ".join(f"{word} {number:.1f}" for word, number in told))
    for what, found in {"failed": played.failed, "log": played.warnings, "left": played.left}.items():
        if found:
            print(f"    {what}: {found}")
    if played.profile["samples"]:
        print("\n".join(cpu_profile.lines(played.profile)))
    print(f"    objects: {played.objects}, ends: {dict(Counter(case.ending for case in played.cases))}", flush=True)


def _plain(found: Idle | Played) -> dict[str, Any]:
    """As JSON takes it: keys are text."""
    data = asdict(found)
    if "targets" in data:
        data["targets"] = {" ".join(target): rate for target, rate in data["targets"].items()}
    return data


def _conclude(results: Results) -> None:
    judged = [(title, row) for title, rows in results.sections.items() for row in rows if row.goal is not None]
    missed = [(title, row) for title, row in judged if row.missed]
    print(f"\n{len(missed)} of {len(judged)} goals missed")
    for title, row in missed:
        print(f"  {title}: {row.name}")
    for what, why in results.failures.items():
        print(f"could not be measured: {what}: {why}")


if __name__ == "__main__":
    sys.exit(main())
