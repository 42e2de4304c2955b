"""One HTTP application on one port, for as long as somebody needs it, and the signal that it is not needed any more."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from inquest.errors import Misconfigured
from inquest.telemetry.metrics import render_metrics

_log = structlog.stdlib.get_logger(__name__)

PROBE_GRACE_SECONDS = 2
"""What an answer to a probe may still take when the process ends."""
BACKLOG = 2048
IDLE_SECONDS = 120
"""A kept connection that asks nothing is closed after this long."""
CALLER: Final = "caller"
"""Of the state of a request: the common name in the certificate of whoever sent it."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Certificate:
    """PEM files of a server's certificate chain and of its key."""

    chain: Path
    key: Path
    callers: Path | None = None
    """PEM file of the authorities of which a caller must show a certificate; None: nobody is asked for one."""


def metrics_app(around: Sequence[Middleware] = ()) -> Starlette:
    """Everything that Prometheus scrapes."""

    async def metrics(_: Request) -> Response:
        return Response(render_metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return Starlette(routes=[Route("/metrics", metrics)], middleware=around)


@asynccontextmanager
async def serve_app(
    app: Any, host: str, port: int, *, grace: int = PROBE_GRACE_SECONDS, certificate: Certificate | None = None
) -> AsyncIterator[int]:
    """Serve it meanwhile, then finish what is being answered within `grace` seconds; gives the port, a free one for 0.

    Misconfigured where the address cannot be had or the certificate cannot be read.
    """
    with _listener(host, port) as listener:
        server = _Server(_config(app, grace, certificate))
        # No TaskGroup: what fails meanwhile would come out wrapped, and a fault that a person can mend is one line.
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            await running


def stop_signal() -> asyncio.Event:
    """Set by SIGTERM or SIGINT from now on; a second one is a crash like any other."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def once() -> None:
        stop.set()
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, once)
    return stop


@contextmanager
def _listener(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name: asyncio sends small packets at once (TCP_NODELAY) only on sockets that say that they are TCP. An answer
    # is two of them, and the second would wait some 40 ms until the caller's kernel acknowledges the first.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise Misconfigured(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
        yield listener


def _config(app: Any, grace: int, certificate: Certificate | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=IDLE_SECONDS,
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
        ssl_ca_certs=str(certificate.callers) if certificate and certificate.callers else None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if certificate and certificate.callers else ssl.CERT_NONE,
        http=_Introduced if certificate and certificate.callers else "auto",
        ssl_context_factory=partial(_renewable, certificate) if certificate else None,
    )
    try:
        config.load()
    except OSError as error:
        raise Misconfigured(f"the server's certificate or its key cannot be read: {error}") from error
    return config


def _renewable(certificate: Certificate, _: uvicorn.Config, load: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    context = load()
    context.sni_callback = _Newest(certificate, load, context).choose
    return context


class _Newest:
    """The certificate as it lies on disk at each handshake; what cannot be used leaves the one before in place."""

    def __init__(self, certificate: Certificate, load: Callable[[], ssl.SSLContext], context: ssl.SSLContext) -> None:
        self._certificate = certificate
        self._load = load
        self._context = context
        self._seen = self._state()

    def choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called by `ssl` for every handshake, also without a name; each state of the files is tried once."""
        found = self._state()
        if found != self._seen:
            self._seen = found
            try:
                self._context = self._load()
                _log.info("certificate renewed")
            except OSError as error:
                _log.warning("renewed certificate not used", fault=str(error))
        connection.context = self._context

    def _state(self) -> tuple[tuple[int, int, int] | None, ...]:
        files = (self._certificate.chain, self._certificate.key, self._certificate.callers)
        return tuple(_stamp(file) for file in files if file is not None)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Changes with every write and every swap of a link; None while there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class _Introduced(H11Protocol):
    """A request that carries the common name of its caller's certificate, which the handshake has proven."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert") or {}
        names = (value for part in shown.get("subject") or () for key, value in part if key == "commonName")
        common_name = str(next(names, ""))
        self.app_state = {**self.app_state, CALLER: common_name}


class _Server(uvicorn.Server):
    """Signals belong to the process, not to one of its servers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
