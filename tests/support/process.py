"""The real operator as a process of its own, with the token of its own service account."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx2
import yaml

from inquest.api.installation import NAMESPACE
from tests.support.kube import eventually
from tests.support.programs import Ran, inquest, launch, run_operator

READY_SECONDS = 240.0
STOP_SECONDS = 120.0
"""Bounds of a machine that is many times slower; nothing waits for them."""


@dataclass
class Operator:
    """May be stopped and started again; its database stays."""

    folder: Path
    kubeconfig: Path
    opa: Path
    changes: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    run: Callable[[Path], None] = run_operator
    """What its process does with its settings."""
    _process: BaseProcess | None = None
    _starts: int = 0

    @property
    def database(self) -> Path:
        """Its embedded store."""
        return self.folder / "inquest.db"

    @property
    def log(self) -> str:
        """Everything that it ever said."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("operator-*.log")))

    def lines(self) -> list[dict[str, Any]]:
        """The log as records; a line that is still being written is not one yet."""
        whole = self.log.rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        self._starts += 1
        self._process = launch(self.run, self._written(), self._latest, self.environment)

    def start(self) -> None:
        """Start it and wait until it works; one that does not is ended, for it would disturb the next."""
        self.launch()
        try:
            eventually(self._is_up, what="the operator is ready", seconds=READY_SECONDS)
        except AssertionError as error:
            tail = self._tail()
            self.kill()
            raise AssertionError(f"{error}:\n{tail}") from None

    def command(self, *words: str) -> Ran:
        """Run another command of the program on its settings."""
        return inquest(*words, "--settings", str(self._written()), **self.environment)

    def change(self, **changes: Any) -> None:
        """Change its settings while it runs, and wait until it has taken them up."""
        before = self._taken_up()
        self.write(**changes)
        eventually(lambda: self._taken_up() > before, what=f"{', '.join(changes)} taken up", seconds=READY_SECONDS)

    def write(self, **changes: Any) -> None:
        """Change the file under it."""
        self.changes.update(changes)
        self._written()

    def forget(self, *groups: str) -> None:
        """Take changes out of the file again."""
        for name in groups:
            self.changes.pop(name)
        self._written()

    def stop(self) -> None:
        """Stop it as the kubelet would."""
        if self._process is None:
            return
        self._process.terminate()
        self._process.join(STOP_SECONDS)
        if self._process.is_alive():
            self.kill()
            raise AssertionError(f"the operator did not stop within {STOP_SECONDS:g} s:\n{self._tail()}")
        self._process = None

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.join()
        self._process = None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, and wait for nothing."""
        assert self._process is not None
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def was_killed(self) -> bool:
        """Whether it died of `kill -9`, its own included."""
        return self._process is not None and self._process.exitcode == -signal.SIGKILL

    def is_running(self) -> bool:
        """Whether it has not crashed."""
        return self._process is not None and self._process.is_alive()

    def readiness(self) -> tuple[int, str]:
        """What /readyz answers, every line of it."""
        port = next(line["health"] for line in reversed(self.lines()) if line.get("event") == "serving")
        answer = httpx2.get(f"http://127.0.0.1:{port}/readyz?verbose", timeout=10, trust_env=False)
        return answer.status_code, answer.text

    def _written(self) -> Path:
        path = self.folder / "settings.yaml"
        path.write_text(yaml.safe_dump(_merged(self._settings(), self.changes)))
        return path

    def _taken_up(self) -> int:
        return sum(line.get("event") == "settings taken up" for line in self.lines())

    @property
    def _latest(self) -> Path:
        return self.folder / f"operator-{self._starts:03}.log"

    def _is_up(self) -> bool:
        assert self.is_running(), "the operator has ended"
        return self._latest.exists() and "operator is ready" in self._latest.read_text(errors="replace")

    def _tail(self) -> str:
        return "\n".join(self._latest.read_text(errors="replace").splitlines()[-25:])

    def _settings(self) -> dict[str, Any]:
        return {
            "kubernetes": {"kubeconfig": str(self.kubeconfig), "namespace": NAMESPACE},
            "policy": {"opa_binary": str(self.opa)},
            "effectiveness": {"stabilization": "1s", "validity": "10m"},
            "triage": {"rate": 1000, "rate_per_namespace": 1000},
            "datastorage": {"database": f"sqlite:///{self.database}"},
            "server": {"health_port": 0, "metrics_port": 0},
            "replica": "inquest-story",
        }


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: {**base[key], **value} if isinstance(value, dict) and key in base else value
        for key, value in changes.items()
    }
    return {**base, **both}


def now() -> str:
    """This moment as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
