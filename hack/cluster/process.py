"""Starting and stopping the cluster's programs, by recorded process id only.

A program outlives the command that started it, so it writes its own record before it becomes itself: there is no
moment at which it runs unrecorded. The record holds the time the process was started and the boot it belongs to, for a
process id alone may be somebody else's by the time we come back.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack import HackError
from hack.cache import hash_of, log_tail

POLL_SECONDS = 0.05
START_SECONDS = 60
STOP_SECONDS = 90
BOOT = Path("/proc/sys/kernel/random/boot_id")

RECORD_AND_BECOME = 'cat /proc/$$/stat "$1" > "$0.new" && mv "$0.new" "$0" && shift && exec "$@"'
"""A shell that writes its own /proc entry down and then turns into the program, keeping its process id."""


@dataclass(frozen=True)
class Record:
    """Who a process is, beyond doubt: the number, the clock tick of its start, and the boot of the machine."""

    pid: int
    started: int
    boot: str


@dataclass(frozen=True)
class Program:
    """One component of the cluster and how it is started."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    """What enters the node's namespaces before the command, where it runs inside them."""

    @property
    def fingerprint(self) -> str:
        """Changes with its flags and with the files they name, so that `up` knows what runs but is out of date."""
        settings = [f"{key}={value}" for key, value in sorted(self.environment.items())]
        named = [Path(word.partition("=")[2]) for word in self.command if word.startswith("--")]
        files = [path.read_bytes() for path in named if path.is_file()]
        return hash_of([*(word.encode() for word in (*self.command, *settings)), *files])


class ProcessTable:
    """The programs of one cluster, by name."""

    def __init__(self, folder: Path) -> None:
        self._records = folder / "processes"
        self._logs = folder / "logs"

    def ensure(self, program: Program) -> bool:
        """Have it running as it should be; says whether it had to be started."""
        if self.is_running(program.name) and self._fingerprint(program.name) == program.fingerprint:
            return False
        self.stop(program.name)
        self._start(program)
        return True

    def is_running(self, name: str) -> bool:
        """Whether the recorded process, and no other with its number, is alive."""
        record = self.record(name)
        return record is not None and is_alive(record)

    def record(self, name: str) -> Record | None:
        """What the program wrote down about itself."""
        path = self._records / name
        return parse_record(path.read_text()) if path.exists() else None

    def log(self, name: str) -> Path:
        """Where its output goes; a restart appends."""
        return self._logs / f"{name}.log"

    def names(self) -> list[str]:
        """Every program that was ever started and not stopped since, dead or alive."""
        if not self._records.exists():
            return []
        return sorted(path.name for path in self._records.iterdir() if not path.suffix)

    def stop(self, name: str) -> None:
        """End it now. Nothing here has anything to save: a store that loses power must come back anyway."""
        record = self.record(name)
        if record and is_alive(record):
            os.kill(record.pid, signal.SIGKILL)
            self.wait_gone(name)
        (self._records / name).unlink(missing_ok=True)
        (self._records / f"{name}.fingerprint").unlink(missing_ok=True)

    def wait_gone(self, name: str) -> None:
        """Wait for a program that was killed to be dead, which is a moment later."""
        _wait_until(lambda: not self.is_running(name), STOP_SECONDS, f"{name} does not end")

    def wait_ready(self, name: str, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait for the program to answer; its death ends the wait at once, with the end of its log."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if not self.is_running(name):
                raise HackError(f"{name} died at its start; the end of {self.log(name)}:\n{log_tail(self.log(name))}")
            if time.monotonic() > deadline:
                raise HackError(f"{name} is not ready after {seconds:.0f} s:\n{log_tail(self.log(name))}")
            time.sleep(POLL_SECONDS)

    def _start(self, program: Program) -> None:
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        record = self._records / program.name
        recorder = ["sh", "-c", RECORD_AND_BECOME, str(record), str(BOOT)]
        with self.log(program.name).open("ab") as log:
            subprocess.run(
                ["setsid", "--fork", *recorder, *program.prefix, *program.command],
                check=True,
                timeout=START_SECONDS,
                cwd="/",
                env={**_plain_environment(), **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        _wait_until(record.exists, START_SECONDS, f"{program.name} does not start")
        (self._records / f"{program.name}.fingerprint").write_text(program.fingerprint)

    def _fingerprint(self, name: str) -> str:
        path = self._records / f"{name}.fingerprint"
        return path.read_text() if path.exists() else ""


def parse_record(text: str) -> Record:
    """Read a /proc stat line and a boot id; the program's name in it may hold spaces and brackets."""
    stat, boot = text.strip().rsplit("\n", 1)
    pid = int(stat.split(" ", 1)[0])
    return Record(pid=pid, started=_start_tick(stat), boot=boot)


def is_alive(record: Record) -> bool:
    """Whether exactly that process still runs; one that ended and was not collected by its parent does not."""
    entry = Path(f"/proc/{record.pid}")
    try:
        stat = (entry / "stat").read_text()
        is_same = _start_tick(stat) == record.started and BOOT.read_text().strip() == record.boot
        return is_same and not _has_ended(stat, entry)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _has_ended(stat: str, entry: Path) -> bool:
    """A killed program's first thread ends before the others, which still hold its ports."""
    return _after_name(stat)[0] in "ZX" and len(list((entry / "task").iterdir())) <= 1


def _after_name(stat: str) -> list[str]:
    return stat.rpartition(")")[2].split()


def _start_tick(stat: str) -> int:
    return int(_after_name(stat)[19])


def _plain_environment() -> dict[str, str]:
    """Enough to run, and nothing else: a proxy or a kubeconfig of the caller must not change the cluster."""
    return {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin", "HOME": "/", "LANG": "C.UTF-8"}


def _wait_until(condition: Callable[[], bool], seconds: float, complaint: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise HackError(f"{complaint} within {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
