"""What figures that are counted may be: `ranges.yaml`, read, held against and written anew."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
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

    def calibrate(self, figures: Mapping[str, int], commit: str) -> None:
        """Write this part anew, measured at a commit."""
        measured = {"unit": self.unit, "runs": self.runs, "commit": commit}
        part = {name: {"mean": mean, "limit": int(mean * self.above), **measured} for name, mean in figures.items()}
        whole = yaml.safe_load(FILE.read_text()) | {self.name: part}
        FILE.write_text(HEAD + yaml.safe_dump(whole, sort_keys=False))

    def main(self, program: str, figures: Mapping[str, int]) -> int:
        """What the command line asks for: show, check, or write anew after a change on purpose."""
        parser = argparse.ArgumentParser(prog=program)
        parser.add_argument("--check", action="store_true", help="fail where a figure is above its limit")
        parser.add_argument("--calibrate", metavar="COMMIT", help="write the ranges anew, measured at this commit")
        options = parser.parse_args()
        if options.calibrate:
            self.calibrate(figures, options.calibrate)
        for name, figure in figures.items():
            print(f"{figure:>8}  {name}")
        faults = list(self.faults(figures, self.limits())) if options.check else []
        for fault in faults:
            print(fault, file=sys.stderr)
        return 1 if faults else 0
