"""What a whole case asks of the API server, counted on the one in memory: `python -m benchmarks.requests`.

From the Signal to the record, without a model and with a scripted one, a person approving. Watches, reviews and what a
replica does without a case (its Lease) do not count. How often something is looked at depends on time, so a figure
differs by a few from run to run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

from benchmarks.ranges import Section
from inquest.adapters.kubernetes.transport import Request, Transport
from tests.integration.cases.scenes import scene
from tests.integration.cases.stage import Stage, staged
from tests.integration.story.conftest import WORKFLOWS, registered
from tests.support.apiserver.server import ApiServer, Call
from tests.support.ports import own_port
from tests.support.programs import run_operator
from tests.support.scene import Scene, scene_of

RANGES: Final = Section("requests of a case", "requests", 1.15, runs=5)
SCRIPT: Final = "1-workflow-selected"
READS: Final = frozenset({"get", "list"})
NOT_OF_A_CASE: Final = ("inquest-replica-", "inquest-sweep")
"""Leases that a replica has whether it works or not."""
QUIET_SECONDS: Final = 1.5
"""Without a request, whoever had something to do has done it: what follows belongs to the case."""
SHOWN: Final = 25
NOTES: Final = "INQUEST_BENCHMARK_REQUESTS"
ADAPTERS: Final = os.sep.join(("inquest", "adapters"))


@dataclass(frozen=True)
class Counted:
    """What a case asked: by verb and resource, and by the line of code that asked."""

    calls: Counter[tuple[str, str]]
    lines: Counter[str]

    @property
    def reads(self) -> int:
        return sum(count for (verb, _), count in self.calls.items() if verb in READS)

    @property
    def writes(self) -> int:
        return self.calls.total() - self.reads


def counted(*, model: bool) -> Counted:
    """Of one case."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        settings: dict[str, Any] = {}
        if model:
            stage = stack.enter_context(staged(Stage(own_port())))
            settings = {"model": {"provider": "openai", "endpoint": stage.url(), "name": "scripted", "api_key": "none"}}
        found = stack.enter_context(scene_of(Path(folder), **settings))
        if model:
            stage.play(found.cases[0].world.namespace, scene(SCRIPT).script())
        return _played(found, Path(folder) / "requests")


def _played(found: Scene, notes: Path) -> Counted:
    world = found.cases[0].world
    found.operator.run, found.operator.environment = run_noting, {NOTES: str(notes)}
    found.operator.start()
    world.until(lambda: registered(world.api) >= WORKFLOWS, "the catalogue is registered")
    world.until(lambda: _is_quiet(found.server), "the catalogue is looked at no more")
    before, lines = len(found.server.calls), len(notes.read_text().splitlines())
    found.cases[0].tell()
    found.drive()
    calls = [call for call in found.server.calls[before:] if _counts(call)]
    asked = (json.loads(line) for line in notes.read_text().splitlines()[lines:])
    return Counted(Counter((call.verb, _resource(call)) for call in calls), Counter(map(" ".join, asked)))


def _is_quiet(server: ApiServer) -> bool:
    before = sum(map(_counts, server.calls))
    time.sleep(QUIET_SECONDS)
    return before == sum(map(_counts, server.calls))


def _counts(call: Call) -> bool:
    is_ours = call.user.startswith("system:serviceaccount:inquest-system:") and call.verb != "watch"
    return is_ours and not call.name.startswith(NOT_OF_A_CASE)


def _resource(call: Call) -> str:
    return f"{call.resource}/{call.subresource}" if call.subresource else call.resource


def run_noting(settings: Path) -> None:
    """The operator, which writes down who in its code asks what."""
    notes, send = os.open(os.environ[NOTES], os.O_WRONLY | os.O_APPEND | os.O_CREAT), Transport.send

    @wraps(send)
    async def noting(self: Transport, request: Request) -> Any:
        line = ("write" if request.writes else "read", request.verb, request.resource, _line())
        os.write(notes, (json.dumps(line) + "\n").encode())
        return await send(self, request)

    Transport.send = noting  # type: ignore[method-assign]
    run_operator(settings)


def _line() -> str:
    """The innermost line of the product above its adapters."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        ADAPTERS in frame.f_code.co_filename or f"{os.sep}inquest{os.sep}" not in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('inquest' + os.sep)[2]}:{frame.f_lineno} {frame.f_code.co_name}"


def table(name: str, found: Counted) -> Iterator[str]:
    """What was asked, the most often asked first."""
    yield f"{name}: {found.reads} reads, {found.writes} writes"
    yield from (f"{count:>8}  {verb} {resource}" for (verb, resource), count in found.calls.most_common())
    yield "  by line of code:"
    yield from (f"{count:>8}  {line}" for line, count in found.lines.most_common(SHOWN))


def figures(*, shown: bool) -> dict[str, int]:
    """Reads and writes, without a model and with one."""
    found = {f"{name} a model": counted(model=name == "with") for name in ("without", "with")}
    for name, one in found.items() if shown else ():
        print("\n".join(table(name, one)), end="\n\n")
    return {f"{word}, {name}": getattr(one, word) for name, one in found.items() for word in ("reads", "writes")}


if __name__ == "__main__":
    sys.exit(RANGES.main("python -m benchmarks.requests", partial(figures, shown="--check" not in sys.argv)))
