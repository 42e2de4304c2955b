"""What happens when, seen from outside: the phases of Investigations by a watch, memory and CPU by /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kubernetes import client, watch

from benchmarks.ground import GROUP, Ground, Object

SAMPLE_SECONDS: Final = 0.2
RECORDED: Final = "Recorded"
TERMINAL: Final = frozenset({"Completed", "Failed", "Cancelled"})
ASKED: Final = "Asked"
"""A person can decide: the request is open."""
SETTLED: Final = TERMINAL | {ASKED}
"""A ruling was made and told, or there will be none."""
TICKS: Final = os.sysconf("SC_CLK_TCK")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Timeline:
    """When each case was first seen in a phase; seconds of the monotonic clock."""

    seen: dict[str, dict[str, float]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Investigation by case."""

    def note(self, found: Object) -> None:
        """One version of an Investigation."""
        now, meta, status = time.monotonic(), found["metadata"], found.get("status") or {}
        case = meta["namespace"]
        self.names[case] = meta["name"]
        recorded = any(one["type"] == RECORDED and one["status"] == "True" for one in status.get("conditions", []))
        for word in ("Opened", status.get("phase", ""), RECORDED if recorded else ""):
            if word:
                self.seen.setdefault(case, {}).setdefault(word, now)

    def note_request(self, found: Object) -> None:
        """One version of an approval request."""
        if found.get("status", {}).get("phase") == "Pending":
            self.seen.setdefault(found["metadata"]["namespace"], {}).setdefault(ASKED, time.monotonic())

    def asked(self, case: str) -> bool:
        """Whether a person may decide."""
        return ASKED in self.seen.get(case, {})

    def settled(self, case: str) -> float | None:
        """When the ruling, or an end without one, was there to be seen."""
        return min((at for word, at in self.seen.get(case, {}).items() if word in SETTLED), default=None)

    def recorded(self, case: str) -> float | None:
        """When everything was done."""
        return self.seen.get(case, {}).get(RECORDED)


@contextmanager
def watching(ground: Ground) -> Iterator[Timeline]:
    """Watch Investigations and approval requests from now on; the watches end with the cluster."""
    timeline = Timeline()
    for plural, note in {"investigations": timeline.note, "remediationapprovalrequests": timeline.note_request}.items():
        threading.Thread(target=_follow, args=(ground, plural, note), daemon=True).start()
    yield timeline


def _follow(ground: Ground, plural: str, note: Callable[[Object], None]) -> None:
    make: Any = watch.Watch
    listing = client.CustomObjectsApi(ground.api).list_cluster_custom_object
    with suppress(Exception):
        # Whatever ends a watch ends what waits for it by its own time limit, and the cluster's end is one of them.
        for event in make().stream(listing, *GROUP, plural):
            if event["type"] != "DELETED":
                note(event["object"])


@dataclass(frozen=True)
class Sample:
    """One look at a process and its children."""

    at: float
    resident: int
    """Bytes of the process itself."""
    cpu: float
    """Seconds of the process itself since its start."""
    children_cpu: float
    children_resident: int


class Sampler:
    """Looks at a process again and again."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Sample] = []

    def __enter__(self) -> Sampler:
        self.samples.append(look(self._pid))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def between(self, begin: float, end: float) -> list[Sample]:
        """The looks in a time, with the last one before it."""
        before = [sample for sample in self.samples if sample.at <= begin][-1:]
        return before + [sample for sample in self.samples if begin < sample.at <= end]

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            try:
                self.samples.append(look(self._pid))
            except (FileNotFoundError, ProcessLookupError):
                return


def look(pid: int) -> Sample:
    """Memory and CPU right now."""
    children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return Sample(
        time.monotonic(),
        _resident(pid),
        cpu_seconds(pid),
        sum(cpu_seconds(child) for child in children),
        sum(_resident(child) for child in children),
    )


@dataclass(frozen=True)
class Machine:
    """CPU seconds spent since the machine's start: by everything, and by what belongs to the benchmark."""

    at: float
    busy: float
    ours: float

    def others_until(self, later: Machine) -> float:
        """Cores that everything else used on average: what is left of the machine is what was measured."""
        busy, ours = later.busy - self.busy, later.ours - self.ours
        return max(0.0, busy - ours) / max(later.at - self.at, 1e-9)


def machine(mark: str) -> Machine:
    """Read it now; ours is what is named by the mark, or by this package."""
    words = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = words[3] + words[4]
    ours = sum(_cpu_of_ours(entry, mark) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return Machine(time.monotonic(), (sum(words[:8]) - idle) / TICKS, ours)


def _cpu_of_ours(entry: Path, mark: str) -> float:
    try:
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return cpu_seconds(int(entry.name)) if mark in command or "benchmarks" in command else 0.0
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process since its start, in steps of a tick."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS
