"""The part of a kubelet that gives out logs: over TLS, for the pods of a Node that there is only in name."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hack.cluster.certificates import Authority, Subject
from tests.cluster.kube import Cluster
from tests.cluster.story.api import Object

NODE = "node-of-words"
ADDRESS = "127.0.0.1"


@dataclass
class Kubelet:
    """Logs by namespace and pod, of the present run and of the one before."""

    port: int
    logs: dict[str, str] = field(default_factory=dict)
    """By namespace; every pod and container of it says the same."""

    def application(self) -> Starlette:
        """The one route that the API server asks."""

        async def log(request: Request) -> PlainTextResponse:
            return PlainTextResponse(self.logs.get(request.path_params["namespace"], ""))

        return Starlette(routes=[Route("/containerLogs/{namespace}/{pod}/{container}", log)])


@contextmanager
def kubelet(cluster: Cluster, authority: Path) -> Iterator[Kubelet]:
    """A Node and the server behind it, with a certificate that the API server trusts."""
    subject = Subject("kubelet-of-words", NODE, names=[NODE], addresses=[IPv4Address(ADDRESS)])
    certificate, key = Authority(authority).issue(subject)
    with socket.create_server((ADDRESS, 0)) as listening:
        found = Kubelet(int(listening.getsockname()[1]))
        config = uvicorn.Config(
            found.application(), log_config=None, lifespan="off", ssl_certfile=certificate, ssl_keyfile=key
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        _register(cluster, found.port)
        try:
            yield found
        finally:
            cluster.kubectl("delete", "node", NODE, "--wait=false")
            server.should_exit = True
            server.force_exit = True
            thread.join()


def _register(cluster: Cluster, port: int) -> None:
    cluster.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    status = {
        "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    said = cluster.kubectl.status("node", NODE, status)
    assert said.accepted, said.err


def binding(pod: Object) -> Object:
    """What a scheduler would write."""
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
