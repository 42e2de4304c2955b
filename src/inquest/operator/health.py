"""`/healthz`, `/readyz` and `/metrics`; what they say is asked of the parts (reliability, section 3.7)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from inquest.ports import Clock
from inquest.telemetry import LOOP_LAG, exposition

_log = structlog.stdlib.get_logger(__name__)

LAG_SECONDS: Final = 0.5
LAG_WARNING: Final = 1.0


@dataclass(frozen=True)
class Line:
    """One thing to know: `fault` says what is wrong, empty when nothing is."""

    name: str
    fault: Callable[[], str]
    required: bool = True
    """Without it the probe fails; otherwise it only shows."""


def health_app(*, alive: Sequence[Line], ready: Sequence[Line]) -> Starlette:
    """The probes; `?verbose` shows every line."""

    async def healthz(request: Request) -> Response:
        return _answer(alive, "verbose" in request.query_params)

    async def readyz(request: Request) -> Response:
        return _answer(ready, "verbose" in request.query_params)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])


def metrics_app() -> Starlette:
    """Everything that Prometheus scrapes."""

    async def metrics(_: Request) -> Response:
        return Response(exposition(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(routes=[Route("/metrics", metrics)])


async def measure_lag(clock: Clock) -> None:
    """Until cancelled: how late the event loop is; above one second every task is named."""
    while True:
        at = clock.monotonic()
        await clock.sleep(LAG_SECONDS)
        lag = max(0.0, clock.monotonic() - at - LAG_SECONDS)
        LOOP_LAG.set(lag)
        if lag > LAG_WARNING:
            names = sorted(task.get_name() for task in asyncio.all_tasks())
            _log.warning("event loop is late", seconds=round(lag, 2), tasks=names[:100])


@asynccontextmanager
async def serving(app: Starlette, host: str, port: int) -> AsyncIterator[int]:
    """Serve it meanwhile; gives the port, which is a free one for 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        server = _Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=2))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve(sockets=[listener]))
            yield int(listener.getsockname()[1])
            server.should_exit = True


class _Server(uvicorn.Server):
    """Signals belong to the process, not to its probes."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _answer(lines: Sequence[Line], verbose: bool) -> Response:
    faults = {line: line.fault() for line in lines}
    failed = any(fault and line.required for line, fault in faults.items())
    shown = [_shown(line, fault) for line, fault in faults.items() if verbose or (fault and line.required)]
    return PlainTextResponse("\n".join([*shown, "failed" if failed else "ok", ""]), 503 if failed else 200)


def _shown(line: Line, fault: str) -> str:
    mark = "+" if not fault else "-" if line.required else "~"
    return f"[{mark}] {line.name}{f': {fault}' if fault else ''}"
