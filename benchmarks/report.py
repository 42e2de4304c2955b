"""Figures beside their goals and their baselines, as a table and as data. A missed goal is told, and is no failure."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from benchmarks.load import EXPECTED, Idle, Played, percentile
from inquest import __version__

MEGABYTE: Final = 1024 * 1024

OVERHEAD_GOALS: Final = {1: 0.5, 20: 1.0}
"""Seconds, p95 (reliability, 15.1)."""
REACTION_GOAL: Final = 1.0
WRITES_GOAL: Final = 40.0
READS_GOAL: Final = 60.0
IDLE_MEMORY_GOAL: Final = 120.0
PEAK_MEMORY_GOALS: Final = {50: 250.0}
CASE_MEMORY_GOAL: Final = 2.0
READY_GOAL: Final = 5.0
REST_GOAL: Final = 1.0
"""Requests a second of one replica: 3 with three of them (15.2)."""
LAG_GOALS: Final = {20: 20.0}
TOKENS_GOAL: Final = 36_000.0
SHARED_GOAL: Final = 85.0
QUIET: Final = 0.2
"""Cores; above it the times of a run are not of Inquest alone. Counts, bytes, tokens and CPU seconds hold anyway."""
REDACTION_GOALS: Final = {"log": 5.0, "JSON": 10.0}
"""Milliseconds for 100 KB: plain logs at 20 MB/s, all else by time (reliability, 10.2)."""
REDACTION_SIZE: Final = 100_000
SLOTS_WORD: Final = "create configmaps"


class Measured(Protocol):
    """What `redaction` says of one text; milliseconds of CPU."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def characters(self) -> int: ...
    @property
    def milliseconds(self) -> float: ...
    @property
    def baseline(self) -> float: ...
    @property
    def megabytes_per_second(self) -> float: ...


@dataclass(frozen=True)
class Row:
    """One figure; `baseline` is the same figure of whatever ran beside it."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    sense: Literal["most", "least"] = "most"
    baseline: float | None = None
    against: str = ""
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether there is a goal, and this is not within it."""
        if self.goal is None:
            return False
        return self.value > self.goal if self.sense == "most" else self.value < self.goal

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None

    def data(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self) | {"missed": self.missed, "ratio": self.ratio}


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": models[0].partition(":")[2].strip() if models else platform.processor(),
        "memory_mib": int(memory.split()[1]) // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "inquest": __version__,
        "load_before": os.getloadavg()[0],
    }


def of_idle(idle: Idle) -> Iterator[Row]:
    """The operator at rest."""
    yield Row("ready after start", idle.ready, "s", READY_GOAL)
    yield Row("memory at rest", idle.resident / MEGABYTE, "MiB", IDLE_MEMORY_GOAL)
    yield Row("requests at rest", sum(idle.requests.values()), "/s", REST_GOAL)
    yield Row("CPU at rest", 100 * idle.cpu_share, "%")


def of_run(run: Played, alone: Played, idle: Idle) -> Iterator[Row]:
    """One size of load; `alone` may be the run itself."""
    ended = sum(case.ending == EXPECTED for case in run.cases)
    yield Row("cases remediated as they should be", ended, f"of {len(run.cases)}", len(run.cases), "least")
    amiss = sum(abs(number - len(run.cases)) for number in run.objects.values())
    yield Row("objects short of, or beyond, one of a kind for a case", amiss, "", 0)
    yield Row("left behind: slots, Leases", len(run.left), "", 0)
    note = "times are not of Inquest alone" if run.others > QUIET else ""
    yield Row("other work on this machine meanwhile", run.others, "cores", note=note)
    yield from _times(run, alone)
    yield from _requests(run, alone)
    yield from _machine(run, alone, idle)


def of_prompts(run: Played) -> Iterator[Row]:
    """What the model was sent."""
    found = run.prompts
    yield Row("model turns of a case", median(one.turns for one in found))
    yield Row("tool calls of a case", median(one.tool_calls for one in found))
    yield Row("prompt tokens of a case, as reported", median(run.reported), "", TOKENS_GOAL)
    yield Row("prompt tokens of a case, by characters / 4", median(one.tokens for one in found), "", TOKENS_GOAL)
    yield Row("prompt tokens of the largest turn", median(one.largest for one in found))
    yield Row(
        "prefix shared with the turn before, after turn 2",
        100 * median(one.shared for one in found),
        "%",
        SHARED_GOAL,
        "least",
    )


def of_redaction(measured: Iterable[Measured]) -> Iterator[Row]:
    """Texts of several sizes; the goals are for those of 100 KB."""
    for one in measured:
        speed = f"{one.megabytes_per_second:.1f} MB/s"
        size = one.characters / REDACTION_SIZE
        goal = REDACTION_GOALS[one.kind] * size if 1 <= size < 2 else None
        yield Row(one.name, one.milliseconds, "ms", goal, baseline=one.baseline, against=f"one pattern; {speed}")


def table(title: str, rows: Iterable[Row]) -> str:
    """A section of the report."""
    lines = ["", title, f"  {'':<52}{'measured':>14}{'goal':>12}          {'baseline':>10}{'ratio':>8}"]
    return "\n".join([*lines, *map(_line, rows)])


def median(values: Iterable[float]) -> float:
    """The middle one."""
    return percentile(list(values), 0.5)


# --- parts ----------------------------------------------------------------------------------------------------


def _times(run: Played, alone: Played) -> Iterator[Row]:
    overheads, bare = [case.overhead for case in run.cases], list(run.bare.values())
    for share, goal in ((0.5, None), (0.95, OVERHEAD_GOALS.get(run.size))):
        name = f"overhead beside the model, p{share * 100:.0f}"
        baseline = percentile(bare, share) if bare else None
        yield Row(name, percentile(overheads, share), "s", goal, baseline=baseline, against="bare loop" if bare else "")
    if bare:
        reactions, earlier = ([case.reaction for case in one.cases] for one in (run, alone))
        goal, first = REACTION_GOAL if run.size == 1 else None, percentile(earlier, 0.95)
        name = "Signal to first model request, p95"
        yield Row(name, percentile(reactions, 0.95), "s", goal, baseline=first, against="alone")
    yield Row("wait of a request for its place, p95", percentile(run.waits, 0.95), "s")
    yield Row("wait for places, all requests of a case", sum(run.waits) / len(run.cases), "s")
    yield Row("cases a minute, to the ruling", _pace(run, [case.ruled for case in run.cases]), "")
    yield Row("cases a minute, to the record", _pace(run, [case.recorded for case in run.cases]), "")


def _pace(run: Played, ends: Sequence[float | None]) -> float:
    """Of a run at once; of single cases one after the other, as if one followed the other without a pause."""
    spent = [(end or float("inf")) - case.told for end, case in zip(ends, run.cases, strict=True)]
    return 60 / (sum(spent) / len(spent)) if run.size == 1 else 60 * len(spent) / max(spent)


def _requests(run: Played, alone: Played) -> Iterator[Row]:
    for effect, goal in (("write", WRITES_GOAL), ("read", READS_GOAL)):
        for name, part in (("to the ruling", "to_ruling"), ("in all", "to_record")):
            mine, single = (sum(getattr(one, part)[effect].values()) for one in (run, alone))
            yield Row(f"API {effect}s of a case, {name}", mine, "", goal, baseline=single, against="alone")
    yield Row("journal slots of a case", run.to_record["write"].get(SLOTS_WORD, 0.0))
    yield Row("requests answered by an error, of a case", sum(run.failed.values()) / len(run.cases))


def _machine(run: Played, alone: Played, idle: Idle) -> Iterator[Row]:
    yield Row("CPU of a case, operator", run.cpu, "s", baseline=alone.cpu, against="alone")
    yield Row("CPU of a case, OPA", run.policy_cpu, "s", baseline=alone.policy_cpu, against="alone")
    peak, rest = run.resident_peak / MEGABYTE, idle.resident / MEGABYTE
    yield Row("memory at the peak", peak, "MiB", PEAK_MEMORY_GOALS.get(run.size), baseline=rest, against="at rest")
    if run.size > 1:
        grown = (run.resident_peak - run.resident_before) / MEGABYTE / run.size
        yield Row("memory of a case", grown, "MiB", CASE_MEMORY_GOAL)
    yield Row("memory of OPA beside it, at the peak", run.policy_resident / MEGABYTE, "MiB")
    late = 1000 * percentile(run.late, 0.99)
    yield Row("lateness of the event loop, p99", late, "ms", LAG_GOALS.get(run.size))
    yield Row("lateness of the event loop, longest", 1000 * max(run.late, default=0.0), "ms")


def _line(row: Row) -> str:
    goal = "" if row.goal is None else f"{'≤' if row.sense == 'most' else '≥'} {_number(row.goal)}"
    mark = "" if row.goal is None else "MISSED" if row.missed else "met"
    baseline = "" if row.baseline is None else _number(row.baseline)
    ratio = "" if row.ratio is None else f"{row.ratio:.1f}x"
    value = f"{_number(row.value)} {row.unit}".strip()
    return f"  {row.name:<52}{value:>14}{goal:>12} {mark:<9}{baseline:>10}{ratio:>8} {row.against}{row.note}".rstrip()


def _number(value: float) -> str:
    if value == int(value) if value == value and abs(value) != float("inf") else False:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
