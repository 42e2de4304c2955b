"""The service as a server of its own: its ports, its end, and what it refuses to start with."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sqlalchemy import select
from structlog.testing import capture_logs

from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.errors import Misconfigured
from inquest.serving.http import STOP_SIGNALS, Certificate, _listener, serve_app, stop_signal
from inquest.settings.settings import Settings
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import API, llm_request
from tests.integration.datastorage.served import Served, served, settings_file

EVENTS = f"{API}/audit/events"
ASKED = {"severity": "low", "component": "Pod", "environment": "x", "priority": "P3", "remediation_id": "rr-9"}


async def test_it_answers_on_three_ports_and_ends_without_losing_anything(database_url: str, tmp_path: Path) -> None:
    async with served(tmp_path, settings_file(tmp_path, database_url)) as server:
        ready, alive = await server.probe("/readyz"), await server.probe("/healthz")
        async with httpx2.AsyncClient(base_url=server.api, timeout=60) as http:
            asked, elsewhere = await http.get(f"{API}/workflows/actions", params=ASKED), await http.get("/metrics")
            metrics = await server.probe("/metrics", "metrics")
            in_flight, code = await _stopped_in_the_middle_of_a_write(server, http)

    assert (ready.status_code, ready.json(), alive.json()["status"]) == (200, {"status": "ready"}, "healthy")
    assert (asked.status_code, elsewhere.status_code) == (200, 404)
    assert 'code="200",method="GET",route="/api/v1/workflows/actions"} 1.0' in metrics.text
    assert (in_flight.status_code, code) == (201, 0), in_flight.text
    assert await _stored_types(database_url) == ["aiagent.llm.request", "workflow.catalog.actions_listed"]


async def test_its_metrics_ask_a_caller_from_elsewhere_for_a_token(database_url: str, tmp_path: Path) -> None:
    """A proxy on the machine says for whom it asks, and is believed that it is somebody else."""
    file = settings_file(tmp_path, database_url)
    elsewhere = {"X-Forwarded-For": "10.1.2.3"}
    async with served(tmp_path, file, INQUEST_SERVER__AUTHENTICATION="kubernetes") as server:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.ports['metrics']}") as http:
            refused = await http.get("/metrics", headers=elsewhere)
            unknown = await http.get("/metrics", headers={**elsewhere, "Authorization": "Bearer some-token"})
        here, probe = await server.probe("/metrics", "metrics"), await server.probe("/readyz")

    assert (refused.status_code, unknown.status_code) == (401, 503), "there is no API server to ask"
    assert (here.status_code, probe.status_code) == (200, 200)
    assert not any("inquest_" in one.text for one in (refused, unknown))


async def test_no_answer_waits_for_the_acknowledgement_of_its_first_half() -> None:
    found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        found.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with _listener("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(serve, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await found == 1
            writer.close()


async def _stopped_in_the_middle_of_a_write(server: Served, http: httpx2.AsyncClient) -> tuple[httpx2.Response, int]:
    """The answer to a batch whose second half is sent when the server takes no new connections any more; exit code."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"["
        begun.set()
        await go_on.wait()
        yield json.dumps(llm_request("rr-1", at=datetime.now(UTC))).encode() + b"]"

    sending = asyncio.create_task(http.post(f"{EVENTS}/batch", content=body()))
    await begun.wait()
    await server.probe("/readyz")
    stopping = asyncio.create_task(server.stop())
    await _until_refused(server.api)
    go_on.set()
    return await sending, await stopping


async def _until_refused(address: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with httpx2.AsyncClient(base_url=address) as http:
                    await http.get(EVENTS)
            except httpx2.ConnectError:
                return
            except httpx2.TransportError:
                # It was let in and dropped again: the door is being closed.
                pass
            await asyncio.sleep(0.02)


async def _stored_types(database_url: str) -> list[str]:
    database = open_database(database_url)
    found = await database.read(lambda connection: sorted(connection.scalars(select(audit_events.c.event_type))))
    await database.close()
    return found


async def test_with_a_certificate_it_speaks_tls_only(site: Site, tmp_path: Path) -> None:
    certificate = _certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate.chain))

    async with (
        serve_app(site.app, "127.0.0.1", 0, certificate=certificate) as port,
        httpx2.AsyncClient(verify=trusting) as http,
    ):
        safe = await http.get(f"https://127.0.0.1:{port}{EVENTS}")
        with pytest.raises(httpx2.HTTPError):
            await http.get(f"http://127.0.0.1:{port}{EVENTS}")

    assert safe.status_code == 200


async def test_a_renewed_certificate_is_served_without_a_restart_and_a_broken_one_never(
    site: Site, tmp_path: Path
) -> None:
    first = ssl.create_default_context(cafile=str(_certificate(tmp_path).chain))
    certificate = Certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    async with serve_app(site.app, "127.0.0.1", 0, certificate=certificate) as port:
        old = await _is_trusted(first, port)
        second = ssl.create_default_context(cafile=str(_certificate(tmp_path).chain))
        new = await _is_trusted(second, port), await _is_trusted(first, port)
        certificate.key.write_text("half of a key")
        with capture_logs() as lines:
            broken = [await _is_trusted(second, port) for _ in range(2)]
        certificate.chain.unlink()
        missing = await _is_trusted(second, port)
        third = ssl.create_default_context(cafile=str(_certificate(tmp_path).chain))
        healed = await _is_trusted(third, port)

    assert (old, new, broken, missing, healed) == (True, (True, False), [True, True], True, True)
    assert [line["event"] for line in lines if line["event"].startswith("renewed")] == ["renewed certificate not used"]


async def _is_trusted(authorities: ssl.SSLContext, port: int) -> bool:
    """Over a new connection."""
    async with httpx2.AsyncClient(verify=authorities) as http:
        try:
            return (await http.get(f"https://127.0.0.1:{port}{EVENTS}")).status_code == 200
        except httpx2.ConnectError:
            return False


async def test_a_taken_port_and_a_missing_certificate_are_for_a_person(site: Site, tmp_path: Path) -> None:
    async with serve_app(site.app, "127.0.0.1", 0) as port:
        with pytest.raises(Misconfigured, match=f"cannot listen on 127.0.0.1, port {port}"):
            await serve_app(site.app, "127.0.0.1", port).__aenter__()
    none = tmp_path / "none.pem"
    with pytest.raises(Misconfigured, match="certificate or its key cannot be read"):
        await serve_app(site.app, "127.0.0.1", 0, certificate=Certificate(none, none)).__aenter__()


def _certificate(folder: Path) -> Certificate:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ds")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, secret = folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return Certificate(chain, secret)


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_one_signal_asks_for_the_end_and_a_second_one_is_a_crash(number: signal.Signals) -> None:
    stop = stop_signal()

    os.kill(os.getpid(), number)
    async with asyncio.timeout(60):
        await stop.wait()

    assert [signal.getsignal(one) for one in STOP_SIGNALS] == [signal.SIG_DFL, signal.default_int_handler]


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ({"authentication": "none", "host": "0.0.0.0"}, "loopback"),
        ({"tls_certificate": "/a"}, "belong together"),
    ],
)
def test_settings_that_would_open_the_door_are_refused(tmp_path: Path, server: dict[str, str], fault: str) -> None:
    with pytest.raises(Misconfigured, match=fault):
        Settings.load(settings_file(tmp_path, "sqlite:///x.db", **server))
