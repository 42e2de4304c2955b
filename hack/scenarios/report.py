"""What a live run said, kept as a file and shown as a table; judged anew against what is expected when it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hack.scenarios.live import SCENARIOS, Told, cause_of
from inquest.core.diagnosis.diagnosis import Cause
from inquest.replay.case import read_case
from inquest.replay.scoring import Expectation, Judged, Played, Share, Table, judge_result, tabulate

REPORT = SCENARIOS / "live" / "report.json"
"""Of the last run of all scenarios; `docs/reference/scenarios.md` shows it."""


@dataclass(frozen=True)
class Compared:
    """One scenario's verdict beside what was expected."""

    told: Told
    expected: Expectation

    @property
    def judged(self) -> Judged | None:
        """None where there is no verdict."""
        return None if self.told.trouble else judge_result(self.expected, self.told.causes, self.told.outcome)

    @property
    def holds(self) -> bool:
        """Whether the first cause is the right one, or nothing is blamed where nothing is wrong."""
        return self.judged is not None and self.judged.at1 and not self.played.alarmed

    @property
    def fits(self) -> bool:
        """Whether the chosen action is one that would be right; choosing none is never wrong here."""
        return not self.told.action or self.told.action in self.expected.action_types

    @property
    def played(self) -> Played:
        """As the table counts it."""
        told = self.told
        return Played(self.expected, self.judged, len(told.causes), told.outcome, told.reads)


def compared(told: Told, root: Path = SCENARIOS) -> Compared:
    """Beside the expectation in the scenario's folder."""
    expected = read_case(root / told.name).expected
    if expected is None:
        raise ValueError(f"{told.name} does not say what is expected of it")
    return Compared(told, expected)


# --- the file -------------------------------------------------------------------------------------


def write(path: Path, several: Iterable[Told], about: Mapping[str, str]) -> None:
    """All verdicts in the order of their names, with when and on what they were given."""
    cases = [_plain(one) for one in sorted(several, key=lambda one: one.name)]
    path.write_text(json.dumps({**about, "cases": cases}, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[dict[str, str], list[Told]]:
    """What was written: about the run, and its verdicts."""
    found: dict[str, Any] = json.loads(path.read_text())
    cases = found.pop("cases")
    return found, [Told(**{**one, "causes": tuple(map(cause_of, one["causes"]))}) for one in cases]


def _plain(one: Told) -> dict[str, Any]:
    return {
        **asdict(one),
        "causes": [_plain_cause(cause) for cause in one.causes],
        "seconds": round(one.seconds, 1),
        "staged": round(one.staged),
    }


def _plain_cause(cause: Cause) -> dict[str, Any]:
    return {
        "category": cause.category,
        "object": cause.object.model_dump(by_alias=True, exclude_none=True),
        "field": cause.field,
        "value": cause.value,
    }


# --- the table ------------------------------------------------------------------------------------


def lines(several: Iterable[Compared]) -> Iterator[str]:
    """The table in Markdown: figures over all, category by category, then each scenario."""
    cases = sorted(several, key=lambda one: one.told.name)
    table = tabulate(one.played for one in cases)
    yield from _figures(table, cases)
    yield from ("", "| category | cases | at 1 | at 3 | with field |", "|---|---|---|---|---|")
    yield from (share_row(name, share) for name, share in table.by_category.items())
    yield from ("", "| scenario | right at | field | first cause | seconds | reads |", "|---|---|---|---|---|---|")
    yield from map(_row, cases)


def _figures(table: Table, cases: list[Compared]) -> Iterator[str]:
    total, silent = table.total, [one for one in cases if one.told.trouble]
    chosen = [one for one in cases if one.told.action]
    told = [one.told for one in cases if not one.told.trouble]
    yield from ("| | |", "|---|---|")
    yield f"| scenarios with a fault | {total.cases} |"
    yield f"| right at 1 | {part(total.at1, total.cases)} |"
    yield f"| right at 3 | {part(total.at3, total.cases)} |"
    yield f"| right at 1 with the field | {part(total.field, total.cases)} |"
    yield f"| false alarms among healthy controls | {table.alarms} of {table.healthy} |"
    yield f"| outcome as expected | {part(table.outcomes, table.told)} |"
    yield f"| chosen actions that are acceptable | {part(sum(one.fits for one in chosen), len(chosen))} |"
    yield f"| without a verdict | {len(silent)} |"
    yield f"| seconds from Signal to verdict, median and most | {_spread(one.seconds for one in told)} |"
    yield f"| reads of a case, median and most | {_spread(one.reads for one in told)} |"


def _spread(figures: Iterable[float]) -> str:
    ordered = sorted(figures)
    return f"{ordered[len(ordered) // 2]:g}, {ordered[-1]:g}" if ordered else "–"


def part(count: int, whole: int) -> str:
    """How many of how many, with the share."""
    return f"{count} of {whole} ({100 * count / whole:.0f} %)" if whole else "–"


def share_row(name: str, share: Share) -> str:
    """Cases, and how many of them are right at 1, at 3 and with the field."""
    return f"| {name} | {share.cases} | {share.at1} | {share.at3} | {share.field} |"


def _row(one: Compared) -> str:
    judged, told = one.judged, one.told
    if judged is None:
        return f"| {told.name} | – | – | no verdict: {_in_one_line(told.trouble)} | – | – |"
    right = "1" if judged.at1 else "3" if judged.at3 else "no"
    named = "–" if one.expected.cause is None else "yes" if judged.field else "no"
    first = next((f"{cause.category}, {cause.object.display}" for cause in told.causes), "none")
    return f"| {told.name} | {right} | {named} | {first} | {told.seconds:.1f} | {told.reads} |"


def _in_one_line(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:120]
