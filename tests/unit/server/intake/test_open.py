"""The open door: its port, its certificate, its bounds for slow senders, and settings that would open it to all."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import yaml

from hack.cluster.certificates import Authority, Subject
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured
from inquest.server.intake.limits import REQUESTS_AT_ONCE
from inquest.settings.settings import Settings
from inquest.wiring import open_intake
from tests.unit.server.intake.conftest import Opening, Server
from tests.unit.server.intake.test_notices import ALERTS, alert, batch

TOKEN = "kJ8wPq2LxTn5VbYc"


def adapters(server: Server, **intake: Any) -> Any:
    ports = server.ports(enabled=True, port=0, **intake)
    return SimpleNamespace(reconcilers=SimpleNamespace(ports=ports), kube=None)


async def test_an_intake_that_is_off_opens_nothing() -> None:
    server = Server()
    ports = server.ports()

    async with open_intake(SimpleNamespace(reconcilers=SimpleNamespace(ports=ports)), Redactor()) as port:  # type: ignore[arg-type]
        assert port is None


async def test_with_a_certificate_and_a_token_it_takes_alerts_over_tls_only(server: Server, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    chain, key = authority.issue(Subject("intake", "intake", addresses=[IPv4Address("127.0.0.1")]))
    (tmp_path / "token").write_text(TOKEN)
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    chosen = {"authentication": "token", "token_file": tmp_path / "token", "tls_certificate": chain, "tls_key": key}
    bearer = {"authorization": f"Bearer {TOKEN}"}

    async with (
        open_intake(adapters(server, **chosen), Redactor()) as port,
        httpx2.AsyncClient(verify=trusting, trust_env=False) as http,
    ):
        stranger = await http.post(f"https://127.0.0.1:{port}{ALERTS}", json=batch(alert()))
        taken = await http.post(f"https://127.0.0.1:{port}{ALERTS}", json=batch(alert()), headers=bearer)
        with pytest.raises(httpx2.HTTPError):
            await http.post(f"http://127.0.0.1:{port}{ALERTS}", json=batch(alert()), headers=bearer)

    assert (stranger.status_code, taken.status_code) == (401, 201)
    assert server.signal()["spec"]["name"] == "Down"


async def test_a_token_file_that_is_not_there_ends_the_start(server: Server, tmp_path: Path) -> None:
    chosen = {"authentication": "token", "token_file": tmp_path / "none"}

    with pytest.raises(Misconfigured, match=r"intake\.token_file cannot be read"):
        await open_intake(adapters(server, **chosen), Redactor()).__aenter__()


async def test_slow_senders_keep_so_many_places_and_no_more(opening: Opening) -> None:
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.release()
        await go_on.wait()
        yield b'{"version": "4", "alerts": []}'

    kind = {"content-type": "application/json"}
    async with opening() as http:
        waiting = [
            asyncio.create_task(http.post(ALERTS, content=slow(), headers=kind)) for _ in range(REQUESTS_AT_ONCE)
        ]
        for _ in waiting:
            await begun.acquire()
        one_more = await http.post(ALERTS, json=batch())
        go_on.set()
        answers = await asyncio.gather(*waiting)
        afterwards = await http.post(ALERTS, json=batch())

    assert (one_more.status_code, one_more.headers["retry-after"]) == (429, "1")
    assert {answer.status_code for answer in answers} == {200}
    assert afterwards.status_code == 200


OPEN_TO_ALL = {
    "no login beyond this machine": ({"authentication": "none", "host": "0.0.0.0"}, "loopback"),
    "a login by token without one": ({"authentication": "token"}, "token_file"),
    "a token that nobody is asked for": ({"token_file": "/a"}, "token_file"),
    "half a certificate": ({"tls_certificate": "/a"}, "belong together"),
}


@pytest.mark.parametrize(("chosen", "fault"), OPEN_TO_ALL.values(), ids=OPEN_TO_ALL.keys())
def test_settings_that_would_open_the_door_to_all_are_refused(
    tmp_path: Path, chosen: dict[str, Any], fault: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"intake": chosen}))

    with pytest.raises(Misconfigured, match=fault):
        Settings.load(file)


def test_the_intake_is_off_unless_somebody_says_so() -> None:
    assert (Settings().intake.enabled, Settings().intake.authentication) == (False, "kubernetes")
