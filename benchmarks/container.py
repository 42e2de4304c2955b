"""A container on the node of this machine, as the kernel sees it: what its processes hold, and when they began."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack import HackError

GROUPS: Final = Path("/sys/fs/cgroup")
TICKS: Final = os.sysconf("SC_CLK_TCK")
KIBIBYTE: Final = 1024


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    working_set: int
    """All that is charged to the container, less the file cache that nobody used lately: what the kubelet reports and
    evicts by, and what `kubectl top` shows."""
    resident: int
    """What is mapped by its first process, files that other containers share too."""
    anonymous: int
    """The part of it that no file stands behind."""


@dataclass(frozen=True)
class Container:
    """A running container."""

    pid: int
    """Of its first process, on this machine."""
    group: Path
    """Its control group, of version 1 or 2."""
    begun: float
    """Start of that process, seconds since the epoch, in steps of 10 ms."""

    def memory(self) -> Memory:
        """Right now."""
        used, idle = ("memory.usage_in_bytes", "total_inactive_file"), ("memory.current", "inactive_file")
        total, word = used if (self.group / used[0]).exists() else idle
        lines = (self.group / "memory.stat").read_text().splitlines()
        cached = next(int(line.split()[1]) for line in lines if line.split()[0] == word)
        held = dict(re.findall(r"^(\w+): +(\d+) kB", Path(f"/proc/{self.pid}/smaps_rollup").read_text(), re.MULTILINE))
        resident, anonymous = (int(held[name]) * KIBIBYTE for name in ("Rss", "Anonymous"))
        return Memory(int((self.group / total).read_text()) - cached, resident, anonymous)


def find(container_id: str) -> Container:
    """By the id in a pod's status, `containerd://…`; its node has to be on this machine."""
    word = container_id.partition("://")[2]
    found = sorted((_begun(pid), pid, group) for pid, group in _groups() if word and word in group)
    if not found:
        raise HackError(f"no process of container {container_id} runs on this machine")
    begun, pid, group = found[0]
    return Container(pid, _folder(group), begun)


def _groups() -> Iterator[tuple[int, str]]:
    """Processes of this machine with the path of their control group for memory."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                lines = [line.split(":", 2) for line in (entry / "cgroup").read_text().splitlines()]
                paths = {kind: path for _, kind, path in lines}
                yield int(entry.name), paths.get("memory", paths.get("", ""))


def _folder(group: str) -> Path:
    hierarchy = GROUPS / "memory"
    return (hierarchy if hierarchy.is_dir() else GROUPS) / group.lstrip("/")


def _begun(pid: int) -> float:
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return float("inf")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / TICKS
