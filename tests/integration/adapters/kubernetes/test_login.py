"""A login as the real API server meets it: whom it acts as, by which name, through what."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.credentials import Credentials, Impersonation, from_kubeconfig, given_credentials
from inquest.adapters.kubernetes.transport import Request, Transport
from inquest.errors import Unavailable
from inquest.ports.kubernetes import Json
from tests.support.kube import Cluster

REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def user(login: Credentials) -> Json:
    """Who the API server takes us for."""
    transport = Transport(given_credentials(login), SystemClock(), random.random)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        reply = await transport.send(Request("POST", REVIEW, "create", "selfsubjectreviews", body=body))
    finally:
        await transport.aclose()
    found: Json = reply.json()["status"]["userInfo"]
    return found


@pytest.fixture
async def admin(cluster: Cluster) -> Credentials:
    return await from_kubeconfig(cluster.kubeconfig)()


async def test_it_acts_as_a_user_with_groups_and_a_uid(admin: Credentials) -> None:
    found = await user(replace(admin, impersonate=Impersonation("jane", ("ops", "sre"), "7")))

    assert (found["username"], found["uid"]) == ("jane", "7")
    assert {"ops", "sre"} <= set(found["groups"])
    assert "system:masters" not in found["groups"]


async def test_the_certificate_is_held_against_the_name_that_is_set(admin: Credentials) -> None:
    assert (await user(replace(admin, server_name="kubernetes.default.svc")))["username"]

    with pytest.raises(Unavailable):
        await user(replace(admin, server_name="elsewhere.example"))


async def test_a_certificate_that_nobody_vouches_for_is_taken_only_where_the_kubeconfig_says_so(
    admin: Credentials,
) -> None:
    unknown = replace(admin, ca_file="")

    with pytest.raises(Unavailable):
        await user(unknown)
    assert (await user(replace(unknown, is_unverified=True)))["username"]


async def test_it_goes_through_the_proxy_that_is_set(admin: Credentials) -> None:
    async with proxy() as (address, asked):
        assert (await user(replace(admin, proxy=address)))["username"]

    assert asked == [admin.server.removeprefix("https://")]


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[str]]]:
    """An HTTP proxy on loopback, and what it was asked to connect to."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head.split()[1])
        host, _, port = asked[-1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer))

    serving: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(lambda *both: serving.append(asyncio.create_task(serve(*both))), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", asked
    finally:
        server.close()
        await asyncio.wait_for(asyncio.gather(*serving), 10)


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await source.read(65536):
            sink.write(part)
            await sink.drain()
    sink.close()
    with suppress(OSError):
        await sink.wait_closed()
