"""The page of the scenarios: what the detectors alone say of each of them, replayed now and live when they last ran.

python -m hack.gen.scenarios            replays all and writes it
python -m hack.gen.scenarios --check    exits 1 with a diff where it is out of date
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hack.gen.docs import FOLDER, NOTE
from hack.gen.files import reconcile
from hack.scenarios.report import REPORT, compared, lines, part, read
from inquest.replaying import Result, default_catalogue, folders, playing
from inquest.settings import Settings
from inquest.story.expectation import Share, Table, tabled
from inquest.telemetry import set_up_logging

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "tests" / "scenarios"


def main(arguments: list[str] | None = None) -> int:
    """0 where the page is as the replays say, or was written."""
    check = "--check" in (sys.argv[1:] if arguments is None else arguments)
    set_up_logging(level="warning", form="text", redact=str)
    results = asyncio.run(replayed())
    return reconcile({FOLDER / "scenarios.md": NOTE + page(results) + live()}, check=check)


async def replayed() -> dict[str, Result]:
    """Every recorded scenario with its result, by its place."""
    async with playing(Settings(), default_catalogue()) as player:
        return {str(folder.relative_to(SCENARIOS)): await player.play(folder) for folder in folders([SCENARIOS])}


def page(results: dict[str, Result]) -> str:
    """The figures over all scenarios, then each of them."""
    table = tabled(result.played for result in results.values())
    rows = "".join(_scenario(name, result) for name, result in sorted(results.items()))
    return (
        "# Recorded scenarios\n\nEvery case under `tests/scenarios`, recorded from a cluster or written by hand, "
        "replayed without a model. A case is right at 1 when the first cause names the category and the object, at 3 "
        "when one of the first three does, and with its field when the first names that too. Healthy controls expect "
        "that nothing is blamed. The faults and the detectors have the same authors, but for the families `blind-a` "
        "and `blind-b`: their 24 cases were written without sight of a detector. When they were first replayed, "
        "before anything was mended for them, 18 of 20 faults were right at 1 and 19 at 3, no control raised an alarm, "
        "and 19 of 24 ended as expected. Their kinds of faults are everyday ones that the detectors know; of other "
        "kinds no figure here tells.\n\n"
        f"{_figures(table)}\n## By category\n\n| category | cases | at 1 | at 3 | with field |\n|---|---|---|---|---|\n"
        f"{''.join(_share(name, share) for name, share in table.by_category.items())}\n"
        "## Each scenario\n\n| scenario | right at | field | first cause |\n|---|---|---|---|\n"
        f"{rows}"
    )


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


def _share(name: str, share: Share) -> str:
    return f"| {name} | {share.cases} | {share.at1} | {share.at3} | {share.field} |\n"


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
