"""Watching a run from outside: every version of every object, also of what is gone by the end."""

from __future__ import annotations

import codecs
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.demo.stage import EXECUTION_NAMESPACE, NAMESPACE

STOP_SECONDS = 10
WATCHED = {
    "Signal": ("signals", NAMESPACE, ""),
    "Investigation": ("investigations", NAMESPACE, ""),
    "RemediationApprovalRequest": ("remediationapprovalrequests", NAMESPACE, ""),
    "WorkflowExecution": ("workflowexecutions", NAMESPACE, ""),
    "Job": ("jobs", EXECUTION_NAMESPACE, ""),
    "Pod": ("pods", "", ""),
    "ConfigMap": ("configmaps", NAMESPACE, "inquest.dev/journal=true"),
    "Lease": ("leases", NAMESPACE, "inquest.dev/signal"),
}
"""By kind: resource, namespace or all, labels."""
BEGUN = "BEGUN"
"""Written by us wherever a watch begins: everything that is there is told anew."""
AGAIN_SECONDS = 0.2

Object = dict[str, Any]


@dataclass
class Told:
    """What one watch has told so far."""

    path: Path
    events: list[Object] = field(default_factory=list)
    _place: int = 0
    _rest: str = ""
    _decoder: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))

    def read_on(self) -> list[Object]:
        """Every event up to now; half an event, or half a letter of one, waits for the rest."""
        with self.path.open("rb") as file:
            file.seek(self._place)
            more = file.read()
        self._place += len(more)
        self._rest = (self._rest + self._decoder.decode(more)).lstrip()
        decoder = json.JSONDecoder()
        while self._rest:
            try:
                event, end = decoder.raw_decode(self._rest)
            except json.JSONDecodeError:
                break
            self.events.append(event)
            self._rest = self._rest[end:].lstrip()
        return self.events


class Watch:
    """What all watches have told; it costs the API server nothing to ask."""

    def __init__(self, folder: Path) -> None:
        self._seen = {kind: Told(folder / f"{kind}.json") for kind in WATCHED}

    def path(self, kind: str) -> Path:
        """Where the events of a kind are written."""
        return self._seen[kind].path

    def versions(self, kind: str) -> list[Object]:
        """Every version of every object of a kind, in the order in which they came; deletions left out."""
        return [event["object"] for event in self._seen[kind].read_on() if event["type"] in ("ADDED", "MODIFIED")]

    def now(self, kind: str) -> list[Object]:
        """The objects of a kind that are there."""
        there: dict[str, Object] = {}
        for event in self._seen[kind].read_on():
            if event["type"] == BEGUN:
                there.clear()
            elif event["type"] == "DELETED":
                there.pop(event["object"]["metadata"]["uid"], None)
            elif event["type"] in ("ADDED", "MODIFIED"):
                there[event["object"]["metadata"]["uid"]] = event["object"]
        return list(there.values())


@contextmanager
def watching(kubectl: list[str], folder: Path) -> Iterator[Watch]:
    """Watch from now on; the watchers end with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    watch = Watch(folder)
    with ExitStack() as stack:
        for kind, (resource, namespace, labels) in WATCHED.items():
            place = f"--namespace={namespace}" if namespace else "--all-namespaces"
            selector = [f"--selector={labels}"] if labels else []
            command = [*kubectl, "get", resource, place, *selector, "--watch", "--output-watch-events", "--output=json"]
            stack.enter_context(_kept_up(command, watch.path(kind)))
        yield watch


@contextmanager
def _kept_up(command: list[str], path: Path) -> Iterator[None]:
    """A watch that ends is begun again: the server ends one that began before its cache was warm (410 Expired)."""
    over = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def run() -> None:
        while not over.is_set():
            with path.open("ab") as file:
                file.write(json.dumps({"type": BEGUN}).encode() + b"\n")
                file.flush()
                running[:] = [subprocess.Popen(command, stdout=file)]
                running[0].wait()
            over.wait(AGAIN_SECONDS)

    path.touch()
    keeper = threading.Thread(target=run, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        end = time.monotonic() + STOP_SECONDS
        while keeper.is_alive() and time.monotonic() < end:
            for process in running:
                process.kill()
            keeper.join(AGAIN_SECONDS)
