"""The page of the scenarios: what the detectors alone say of each of them, replayed now and live when they last ran.

python -m hack.gen.scenarios            replays all and writes it
python -m hack.gen.scenarios --check    exits 1 with a diff where it is out of date
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.gen.docs import FOLDER, NOTE
from hack.gen.files import reconcile
from hack.scenarios.matrix import HERRINGS, QUESTIONS, RIGHT, TURNED, WEAKER, WELL, Row, shares, written
from hack.scenarios.report import REPORT, compared, lines, part, read, share_row
from hack.scenarios.silent import CONTROLS, FAULTS, Answer, answers
from inquest.replay.case import case_id, read_case
from inquest.replay.player import Result, case_places, default_catalogue, open_player
from inquest.replay.scoring import Table, tabulate
from inquest.settings.settings import Settings
from inquest.telemetry.logs import set_up_logging

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "tests" / "scenarios"


def main(arguments: list[str] | None = None) -> int:
    """0 where the page is as the replays say, or was written."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    set_up_logging(level="warning", form="text", redact=str)
    results = asyncio.run(replayed())
    text = page(results) + silent() + asked_otherwise(written()) + live()
    return reconcile({FOLDER / "scenarios.md": NOTE + text}, check=check)


@dataclass(frozen=True)
class FirstSight:
    """Families written without sight of a detector, as they were answered the first time. It never changes."""

    families: str
    kinds: str
    foreign: bool
    """Whether its faults were sought where nobody had looked, and not among those that everybody meets."""
    faults: int
    at1: int
    at3: int
    controls: int
    alarms: int
    ends: int
    """That ended as expected, of faults and controls."""

    @property
    def row(self) -> str:
        figures = (self.faults, self.at1, self.at3, self.controls, self.alarms)
        ended = f"{self.ends} of {self.faults + self.controls}"
        return f"| {self.families} | {self.kinds} | {' | '.join(map(str, figures))} | {ended} |\n"


FIRST: Final = (
    FirstSight("blind-a, blind-b", "everyday ones, by hand", False, 20, 18, 19, 4, 0, 19),
    FirstSight("blind-c", "foreign ones, recorded from a cluster", True, 37, 18, 19, 5, 1, 32),
    FirstSight("blind-d", "foreign ones, by hand", True, 26, 14, 15, 5, 2, 19),
    FirstSight("blind-e", "textbook ones of public lists, recorded from a cluster", False, 40, 38, 38, 10, 0, 43),
)


async def replayed() -> dict[str, Result]:
    """Every recorded scenario with its result, by its place."""
    async with open_player(Settings(), default_catalogue()) as player:
        return {
            str(case_id(place).relative_to(SCENARIOS)): await player.play(place) for place in case_places([SCENARIOS])
        }


def page(results: dict[str, Result]) -> str:
    """The figures over all scenarios, then each of them."""
    table = tabulate(result.played for result in results.values())
    categories = "".join(f"{share_row(name, share)}\n" for name, share in table.by_category.items())
    rows = "".join(_scenario(name, result) for name, result in sorted(results.items()))
    return (
        "# Recorded scenarios\n\nEvery case under `tests/scenarios`, recorded from a cluster or written by hand, "
        "replayed without a model. A case is right at 1 when the first cause names the category and the object, at 3 "
        "when one of the first three does, and with its field when the first names that too. Healthy controls expect "
        "that nothing is blamed.\n\n"
        f"{_figures(table)}\n{_first_sight()}\n"
        "## By category\n\n| category | cases | at 1 | at 3 | with field |\n|---|---|---|---|---|\n"
        f"{categories}\n"
        "## Each scenario\n\n| scenario | right at | field | first cause |\n|---|---|---|---|\n"
        f"{rows}"
    )


def _first_sight() -> str:
    controls, alarms = sum(each.controls for each in FIRST), sum(each.alarms for each in FIRST)
    return (
        "## At first sight\n\nThe faults above and the detectors have the same authors, but for these families: "
        "their cases were written without sight of a detector. The table keeps what came of them when they were "
        "first replayed, before anything was mended for them. A fault that nobody here has thought of may expect what "
        f"came of the foreign ones: {_right_at_first(foreign=True)} right at 1. For those that everybody meets it was "
        f"{_right_at_first(foreign=False)}. There were {alarms} false alarms among {controls} controls. The table at "
        "the top of this page counts all of them as they are answered now. No real application ran in the recorded "
        "ones: what programs log is printed by a shell in words of the case's author, which is a bias in our favour. "
        "Where the textbook ones come from stands in `tests/scenarios/blind-e/README.md`.\n\n"
        "| family | kinds | faults | at 1 | at 3 | controls | false alarms | ended as expected |\n"
        f"|---|---|---|---|---|---|---|---|\n{''.join(each.row for each in FIRST)}"
    )


def _right_at_first(*, foreign: bool) -> str:
    those = [each for each in FIRST if each.foreign is foreign]
    return part(sum(each.at1 for each in those), sum(each.faults for each in those))


def silent() -> str:
    """The short cases: faults that no object shows, healthy workloads beside broken ones."""
    faults, controls = answers(FAULTS), answers(CONTROLS)
    said = Counter(each.letter for each in faults)
    alarms = sum(each.letter == TURNED for each in controls)
    return (
        "\n# Faults that no object shows\n\nCases of a few lines under `tests/scenarios/silent`: a paused Deployment, "
        "a wait for a lock, a Service that sends to another port, mostly after somebody restarted the pods. What "
        "counts is that none is called resolved and that nobody else is blamed; `inquest` cannot name what the objects "
        f"do not tell. Of {len(faults)} faults: {_letters(said)} (right, no cause named, called well, **turned**). Of "
        f"{len(controls)} healthy workloads beside a broken one, {alarms} were blamed for it. At first sight it was "
        f"{FIRST_SILENT}: a pod that was made since the trouble began counted as recovery, and it no longer does.\n\n"
        "| case | asked about | named | ends |\n|---|---|---|---|\n"
        f"{''.join(map(_short, faults))}"
    )


FIRST_SILENT: Final = "7, 8, 15, **0** of the faults and 0 of the healthy ones"


def _short(one: Answer) -> str:
    target = one.case.case.signal.spec.target
    return f"| {one.case.name} | {target.kind}/{target.name} | {one.named or 'none'} | {one.told.outcome} |\n"


def asked_otherwise(rows: Mapping[str, Row]) -> str:
    """The matrix: every case under four questions, with one of five things beside it that has nothing to do with it."""
    blames = {name: read_case(SCENARIOS / name).expected for name in rows}
    faults = [row for name, row in rows.items() if (expected := blames[name]) and expected.cause]
    controls = [row for name, row in rows.items() if (expected := blames[name]) and not expected.cause]
    head = (
        f"| asked about | {' | '.join(one.replace('-', ' ') for one in HERRINGS)} |\n|{'---|' * (len(HERRINGS) + 1)}\n"
    )
    without = sum((Counter(row.without) for row in faults), Counter[str]())
    others = Counter(row.renamed for row in faults)
    return (
        "\n# Asked in other ways\n\nEvery case above, asked about in four ways, alone and with something in its "
        "namespace that has nothing to do with it (`hack/scenarios/beside`): a bare pod whose image does not exist, a "
        "Job that failed three days ago, a cordoned node, another workload whose Secret is missing, a healthy workload "
        "whose log complains. By the detectors alone; `make matrix` plays it. Each cell: right, weaker (no cause is "
        "named), called well, **turned** (another cause is named). Nothing may be blamed for a target that is not "
        f"there.\n\n{head}{''.join(_asked(*one) for one in zip(QUESTIONS, shares(faults), strict=True))}\n"
        "Of the healthy controls, how many were blamed for something; of a namespace in which the thing beside is all "
        "that is wrong, naming it counts as right:\n\n"
        f"{head}{''.join(_alarmed(*one) for one in zip(QUESTIONS, shares(controls), strict=True))}\n"
        f"Under names that mean nothing: {_letters(others)} of {len(faults)}. With each entry of the evidence taken "
        f"out in turn, of cases that are answered rightly: {_letters(without)} of {without.total()}.\n"
    )


def _asked(question: str, line: Sequence[Counter[str]]) -> str:
    return f"| {question} | {' | '.join(map(_letters, line))} |\n"


def _letters(said: Counter[str]) -> str:
    return f"{said[RIGHT]}, {said[WEAKER]}, {said[WELL]}, **{said[TURNED]}**"


def _alarmed(question: str, line: Sequence[Counter[str]]) -> str:
    return f"| {question} | {' | '.join(f'{said[TURNED]} of {said.total()}' for said in line)} |\n"


def live(path: Path = REPORT) -> str:
    """The last live run of all scenarios, compared with what is expected of them now."""
    about, told = read(path)
    table = "\n".join(lines(compared(one) for one in told))
    return (
        "\n# Live\n\n`make scenarios` brings about every fault that a cluster really came into once: on a real node "
        "where containers must fail, on simulated nodes otherwise. A Signal goes to the running operator, which has no "
        "model; the verdict is read from the Investigation. What was written by hand has no way to a live cluster. "
        "Seconds are from the Signal until the case has ended, on a machine that brings other faults about meanwhile; "
        "reads are all that the operator asked of the API server in that time.\n\n"
        f"Last run: {about['takenAt']}, Kubernetes {about['kubernetesVersion']}.\n\n{table}\n"
    )


def _figures(table: Table) -> str:
    total = table.total
    return (
        "| | |\n|---|---|\n"
        f"| scenarios with a fault | {total.cases} |\n"
        f"| right at 1 | {part(total.at1, total.cases)} |\n"
        f"| right at 3 | {part(total.at3, total.cases)} |\n"
        f"| right at 1 with the field | {part(total.field, total.cases)} |\n"
        f"| false alarms among healthy controls | {table.alarms} of {table.healthy} |\n"
        f"| outcome as expected | {part(table.outcomes, table.told)} |\n"
        f"| reads per case | {table.reads / max(1, table.cases):.0f} |\n"
    )


def _scenario(name: str, result: Result) -> str:
    judged = result.judged
    right = "–" if judged is None else "1" if judged.at1 else "3" if judged.at3 else "no"
    expected = result.recorded.expected
    blamed = expected is not None and expected.cause is not None
    named = "–" if not blamed else "yes" if judged is not None and judged.field else "no"
    first = next((f"{cause.category}, {cause.object.display}" for cause in result.causes), "none")
    return f"| {name} | {right} | {named} | {first} |\n"


if __name__ == "__main__":
    sys.exit(main())
