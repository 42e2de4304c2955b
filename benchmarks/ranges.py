"""What figures that are counted may be: `ranges.yaml`, read, held against and written anew."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

import yaml

FILE: Final = Path(__file__).with_name("ranges.yaml")
HEAD: Final = "# Figures that are counted, and what each may be: the mean of its runs and some percent more.\n"


@dataclass(frozen=True)
class Section:
    """One part of the file."""

    name: str
    unit: str
    above: float
    """Limit over mean."""
    runs: int = 1

    def limits(self) -> dict[str, dict[str, Any]]:
        """What each figure may be, by its name."""
        found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())[self.name]
        return found

    def faults(self, figures: Mapping[str, int], limits: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """A line for each figure that is above its limit, and for each that only one side knows."""
        yield from (f"{name}: stands on one side only" for name in sorted(figures.keys() ^ limits.keys()))
        for name in figures.keys() & limits.keys():
            if figures[name] > limits[name]["limit"]:
                yield f"{name}: {figures[name]} {self.unit}, limit {limits[name]['limit']}"

    def calibrate(self, measured: Sequence[Mapping[str, int]], commit: str) -> None:
        """Write this part anew: what each run measured at a commit."""
        means = {name: round(mean(run[name] for run in measured)) for name in measured[0]}
        facts = {"unit": self.unit, "runs": len(measured), "commit": commit}
        part = {name: {"mean": value, "limit": int(value * self.above), **facts} for name, value in means.items()}
        whole = yaml.safe_load(FILE.read_text()) | {self.name: part}
        FILE.write_text(HEAD + yaml.safe_dump(whole, sort_keys=False))

    def main(self, program: str, measure: Callable[[], Mapping[str, int]]) -> int:
        """What the command line asks for: show, check, or write anew after a change on purpose."""
        parser = argparse.ArgumentParser(prog=program)
        parser.add_argument("--check", action="store_true", help="fail where a figure is above its limit")
        parser.add_argument("--calibrate", metavar="COMMIT", help="write the ranges anew, measured at this commit")
        options = parser.parse_args()
        measured = [measure() for _ in range(self.runs if options.calibrate else 1)]
        figures = measured[-1]
        if options.calibrate:
            self.calibrate(measured, options.calibrate)
        for name, figure in figures.items():
            print(f"{figure:>8}  {name}")
        faults = list(self.faults(figures, self.limits())) if options.check else []
        for fault in faults:
            print(fault, file=sys.stderr)
        return 1 if faults else 0
