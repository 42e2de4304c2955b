"""The one thing that simulated nodes lack: a kubelet that gives the log of a container.

Without it every read of a log fails after three tries, which no working cluster does, and would count as overhead.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hack import HackError
from hack.cluster.certificates import Authority, Subject

LOOPBACK: Final = "127.0.0.1"
START_SECONDS: Final = 10.0
LINES: Final = 100
SUBJECT: Final = Subject("bench-kubelet", "bench-kubelet", addresses=[IPv4Address(LOOPBACK)])


def log_of(pod: str) -> str:
    """A program that loads until it is killed; lines differ by time and number, as logs do."""
    head = [f"{pod} starting", "loading price list (48 MiB)"]
    body = [f"2026-05-04T12:00:{n % 60:02d}Z INFO loaded {n * 31} of 48000 prices in {n % 17} ms" for n in range(LINES)]
    return "\n".join([*head, *body]) + "\n"


@contextmanager
def served(authority: Path) -> Iterator[int]:
    """Serve logs on the loopback with a certificate of the cluster's authority; gives the port."""
    certificate, key = Authority(authority.parent).issue(SUBJECT)
    app = Starlette(routes=[Route("/containerLogs/{namespace}/{pod}/{container}", _log)])
    with socket.create_server((LOOPBACK, 0)) as listening:
        config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
        config.ssl_certfile, config.ssl_keyfile = str(certificate), str(key)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            _wait_until_started(server)
            yield listening.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            thread.join(START_SECONDS)


def status(port: int) -> dict[str, object]:
    """What a node's status has to say so that the API server asks here."""
    addresses = [{"type": "InternalIP", "address": LOOPBACK}]
    return {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}


async def _log(request: Request) -> PlainTextResponse:
    lines = log_of(request.path_params["pod"]).splitlines(keepends=True)
    return PlainTextResponse("".join(lines[-int(request.query_params.get("tailLines", LINES + 2)) :]))


def _wait_until_started(server: uvicorn.Server) -> None:
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if time.monotonic() > end:
            raise HackError("the stand-in for the kubelet did not start")
        time.sleep(0.05)
