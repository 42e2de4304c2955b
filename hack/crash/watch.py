"""Watching a run from outside: every version of every object, also of what is gone by the end."""

from __future__ import annotations

import codecs
import json
import subprocess
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
        return [event["object"] for event in self._seen[kind].read_on() if event["type"] != "DELETED"]

    def now(self, kind: str) -> list[Object]:
        """The objects of a kind that are there."""
        there: dict[str, Object] = {}
        for event in self._seen[kind].read_on():
            found = event["object"]
            if event["type"] == "DELETED":
                there.pop(found["metadata"]["uid"], None)
            else:
                there[found["metadata"]["uid"]] = found
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
            command = [*kubectl, "get", resource, place, *selector]
            file = stack.enter_context(watch.path(kind).open("wb"))
            process = subprocess.Popen([*command, "--watch", "--output-watch-events", "--output=json"], stdout=file)
            stack.callback(_end, process)
        yield watch


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(STOP_SECONDS)
