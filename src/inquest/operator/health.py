"""`/healthz`, `/readyz` and `/metrics`; what they say is asked of the parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from inquest.ports.clock import Clock
from inquest.serving.login import Reviewer
from inquest.serving.loopback import PrivatePaths
from inquest.telemetry.metrics import LOOP_LAG

_log = structlog.stdlib.get_logger(__name__)

LAG_SECONDS: Final = 0.5
LAG_WARNING: Final = 1.0


@dataclass(frozen=True)
class HealthLine:
    """One thing to know: `fault` says what is wrong, empty when nothing is."""

    name: str
    fault: Callable[[], str]
    required: bool = True
    """Without it the probe fails; otherwise it only shows."""


def health_app(
    *, alive: Sequence[HealthLine], ready: Sequence[HealthLine], reviewer: Reviewer | None = None
) -> Starlette:
    """The probes; `?verbose` shows every line, with a `reviewer` to who may read metrics alone."""

    async def healthz(request: Request) -> Response:
        return _answer(alive, "verbose" in request.query_params)

    async def readyz(request: Request) -> Response:
        return _answer(ready, "verbose" in request.query_params)

    around = [Middleware(PrivatePaths, reviewer=reviewer, private=_is_verbose)] if reviewer else []
    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)], middleware=around)


def _is_verbose(scope: Scope) -> bool:
    return "verbose" in QueryParams(scope.get("query_string", b""))


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


def _answer(lines: Sequence[HealthLine], verbose: bool) -> Response:
    faults = {line: line.fault() for line in lines}
    failed = any(fault and line.required for line, fault in faults.items())
    shown = [_shown(line, fault) for line, fault in faults.items() if verbose]
    return PlainTextResponse("\n".join([*shown, "failed" if failed else "ok", ""]), 503 if failed else 200)


def _shown(line: HealthLine, fault: str) -> str:
    mark = "+" if not fault else "-" if line.required else "~"
    return f"[{mark}] {line.name}{f': {fault}' if fault else ''}"
