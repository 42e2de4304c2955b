"""Watching a run from outside: every version of every object, also of what is gone by the end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
    "ConfigMap": ("configmaps", NAMESPACE, "inquest.dev/journal=true"),
}
"""By kind: resource, namespace, labels."""


class Watch:
    """The files into which kubectl writes what it sees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def versions(self, kind: str) -> list[dict[str, Any]]:
        """Every version of every object of a kind, in the order in which they came; deletions left out."""
        return [event["object"] for event in self._events(kind) if event["type"] != "DELETED"]

    def _events(self, kind: str) -> Iterator[dict[str, Any]]:
        text, place, decoder = self.path(kind).read_text(), 0, json.JSONDecoder()
        while place < len(text):
            try:
                event, end = decoder.raw_decode(text, place)
            except json.JSONDecodeError:
                return
            yield event
            place = end + 1

    def path(self, kind: str) -> Path:
        """Where the events of a kind are written."""
        return self._folder / f"{kind}.json"


@contextmanager
def watching(kubectl: list[str], folder: Path) -> Iterator[Watch]:
    """Watch from now on; the watchers end with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    watch = Watch(folder)
    with ExitStack() as stack:
        for kind, (resource, namespace, labels) in WATCHED.items():
            selector = [f"--selector={labels}"] if labels else []
            command = [*kubectl, "get", resource, f"--namespace={namespace}", *selector]
            file = stack.enter_context(watch.path(kind).open("wb"))
            process = subprocess.Popen([*command, "--watch", "--output-watch-events", "--output=json"], stdout=file)
            stack.callback(_end, process)
        yield watch


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(STOP_SECONDS)
