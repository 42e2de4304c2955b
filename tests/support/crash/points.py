"""Where the operator is killed: at a call by its number, or by its name (reliability, section 7, T2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

SIDES = ("before", "after")


@dataclass(frozen=True)
class Point:
    """What the operator is armed with: the n-th call that the selectors let through, and the side."""

    at: int
    side: str
    call: str = ""
    case: str = ""

    def environment(self, log: Path) -> dict[str, str]:
        """What an armed operator reads."""
        words = {f"CRASH_{name.upper()}": str(value) for name, value in asdict(self).items()}
        return {"CRASH_LOG": str(log), **words}

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Point:
        """The point that stands there."""
        words = {name: environment.get(f"CRASH_{name.upper()}", "") for name in ("call", "case")}
        return cls(int(environment["CRASH_AT"]), environment["CRASH_SIDE"], **words)

    def earlier(self) -> Point:
        """A point that a shorter run comes to: how often things are looked at depends on time."""
        return replace(self, at=max(1, self.at * 2 // 3))

    def __str__(self) -> str:
        return f"{self.side} call {self.at} of {self.call or 'the case'}"


COUNT_ONLY = Point(0, "before")
"""Kills nobody, and writes every call down."""


def killed_at(log: Path) -> str:
    """The call at which the process killed itself; empty where it did not."""
    lines = _lines(log)
    if not lines or "killed" not in lines[-1]:
        return ""
    last = next(line for line in reversed(lines) if "call" in line and line["n"] == lines[-1]["n"])
    return f"{last['phase']}: {lines[-1]['killed']} {last['call']} (call {last['n']})"


def everywhere(log: Path) -> list[Point]:
    """Before and after each call that a counting run wrote down."""
    return [Point(line["n"], side) for line in _lines(log) if "call" in line for side in SIDES]


def _lines(log: Path) -> list[dict[str, Any]]:
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines()]
