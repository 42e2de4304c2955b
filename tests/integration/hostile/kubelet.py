"""The part of a kubelet that gives out logs: over TLS, for the pods of a Node that there is only in name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hack.cluster.certificates import Authority, Subject
from tests.support.api import Api, Object

NODE = "node-of-words"
ADDRESS = "127.0.0.1"


@contextmanager
def kubelet(api: Api, authority: Path) -> Iterator[dict[str, str]]:
    """A Node and the server behind it, with a certificate that the API server trusts.

    What it gives out, by namespace: every container of one says the same, in its present run and the one before.
    """
    logs: dict[str, str] = {}
    subject = Subject("kubelet-of-words", NODE, names=[NODE], addresses=[IPv4Address(ADDRESS)])
    certificate, key = Authority(authority).issue(subject)
    with socket.create_server((ADDRESS, 0)) as listening:
        config = uvicorn.Config(
            _giving_out(logs), log_config=None, lifespan="off", ssl_certfile=certificate, ssl_keyfile=key
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        register(api, int(listening.getsockname()[1]))
        try:
            yield logs
        finally:
            api.delete("Node", NODE)
            server.should_exit = True
            server.force_exit = True
            thread.join()


def _giving_out(logs: dict[str, str]) -> Starlette:
    """The one route that the API server asks."""

    async def log(request: Request) -> PlainTextResponse:
        return PlainTextResponse(logs.get(request.path_params["namespace"], ""))

    return Starlette(routes=[Route("/containerLogs/{namespace}/{pod}/{container}", log)])


def register(api: Api, port: int) -> None:
    """The Node, whose kubelet listens on that port."""
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    status = {
        "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    api.change("Node", NODE, "", {"status": status}, part="status")


def bind(api: Api, pod: Object) -> None:
    """Play the scheduler: the pod runs on that Node."""
    api.bind(pod["metadata"]["name"], pod["metadata"]["namespace"], NODE)
