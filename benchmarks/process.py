"""The operator of a run: the real one, with the token of its own account, under the probe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.ground import Ground, operator_kubeconfig
from hack import HackError
from inquest.api.installation import NAMESPACE

READY_SECONDS: Final = 60.0
STOP_SECONDS: Final = 40.0


@dataclass(frozen=True)
class Asked:
    """One request to the API server."""

    begin: float
    end: float
    verb: str
    resource: str
    path: str
    writes: bool
    result: str


@dataclass(frozen=True)
class Notes:
    """What the probe has noted: requests, waits for a write token and lateness of the event loop, (moment, seconds)."""

    requests: tuple[Asked, ...]
    waits: tuple[tuple[float, float], ...]
    late: tuple[tuple[float, float], ...]
    profile: Mapping[str, Any]
    """As `cpu_profile` gives it; without a sample where none was asked for."""


@dataclass
class Operator:
    """A running operator; its notes are there once it has stopped."""

    folder: Path
    pid: int
    ready_seconds: float

    @property
    def log(self) -> Path:
        return self.folder / "operator.log"

    def notes(self) -> Notes:
        """What it did, in all."""
        found = json.loads((self.folder / "notes.json").read_text())
        pairs = {name: tuple((at, seconds) for at, seconds in found[name]) for name in ("waits", "late")}
        return Notes(tuple(Asked(*line) for line in found["requests"]), **pairs, profile=found["profile"])

    def lines(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def running(
    ground: Ground,
    name: str,
    model_url: str,
    *,
    at_once: int,
    changes: Mapping[str, Any] | None = None,
    profile: bool = False,
) -> Iterator[Operator]:
    """Start it and stop it as the kubelet would; it begins with an empty history. Whole groups of settings change.

    Without a model's address it has none. `profile` takes samples of its CPU once it works.
    """
    folder = ground.folder / name
    folder.mkdir()
    settings = folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(_settings(ground, folder, model_url, at_once) | dict(changes or {})))
    probe = [sys.executable, "-m", "benchmarks.probe", str(folder / "notes.json"), *(["--profile"] if profile else [])]
    command = [*probe, "run", "--settings", str(settings)]
    begun = time.monotonic()
    with (folder / "operator.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=_environment())
    try:
        _wait_until_ready(process, folder / "operator.log")
        yield Operator(folder, process.pid, time.monotonic() - begun)
    finally:
        _stop(process, folder / "operator.log")


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("INQUEST_")}
    return kept | {"INQUEST_MODEL__API_KEY": "scripted"}


def _settings(ground: Ground, folder: Path, model_url: str, at_once: int) -> dict[str, Any]:
    return {
        "kubernetes": {"kubeconfig": str(operator_kubeconfig(ground)), "namespace": NAMESPACE},
        "policy": {"opa_binary": str(ground.cluster.bin / "opa")},
        **({"model": {"provider": "openai", "endpoint": model_url, "name": "bench"}} if model_url else {}),
        "runner": {"max_concurrent": at_once},
        "triage": {"rate": 1000, "rate_per_namespace": 1000},
        "effectiveness": {"enabled": False},
        "datastorage": {"database": f"sqlite:///{folder / 'inquest.db'}"},
        "server": {"health_port": 0, "metrics_port": 0},
        "replica": f"inquest-{folder.name}",
    }


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while "operator is ready" not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise HackError(f"the operator did not become ready:\n{_tail(log)}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise HackError(f"the operator did not stop within {STOP_SECONDS:g} s:\n{_tail(log)}") from None


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-25:])
