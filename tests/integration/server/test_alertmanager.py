"""A real Prometheus and a real Alertmanager: what is down fires an alert at the intake, and once it is up that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.cluster.certificates import Authority, Subject
from hack.packages import unpacked
from hack.ports import free_port
from inquest.core.redaction.redactor import Redactor
from inquest.serving.http import metrics_app, serve_app
from inquest.wiring import open_intake
from tests.integration.adapters.monitoring.servers import at_home, running
from tests.unit.server.intake.conftest import Server
from tests.unit.server.intake.test_open import TOKEN, adapters

SECONDS = 120.0
"""Longest wait for anything, on a machine that is many times slower."""


@asynccontextmanager
async def taking_alerts(server: Server, folder: Path) -> AsyncIterator[dict[str, Any]]:
    """The intake over TLS behind a token; gives the webhook as Alertmanager is told of it."""
    authority = Authority(folder)
    chain, key = authority.issue(Subject("intake", "intake", addresses=[IPv4Address("127.0.0.1")]))
    (folder / "token").write_text(TOKEN)
    chosen = {"authentication": "token", "token_file": folder / "token", "tls_certificate": chain, "tls_key": key}
    async with open_intake(adapters(server, **chosen), Redactor()) as port:
        yield {
            "url": f"https://127.0.0.1:{port}/api/v1/signals/alertmanager",
            "send_resolved": True,
            "http_config": {
                "authorization": {"credentials_file": str(folder / "token")},
                "tls_config": {"ca_file": str(authority.certificate)},
            },
        }


def alertmanager(folder: Path, webhook: dict[str, Any], stack: ExitStack) -> str:
    """Its address; it sends at once, and what still fires again and again."""
    route = {"receiver": "inquest", "group_wait": "0s", "group_interval": "1s", "repeat_interval": "1s"}
    told = {"route": route, "receivers": [{"name": "inquest", "webhook_configs": [webhook]}]}
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(told))
    address = f"127.0.0.1:{free_port()}"
    program = unpacked("prometheus-alertmanager", "prometheus-alertmanager")
    command = [
        *at_home(program),
        "--config.file=alertmanager.yml",
        "--storage.path=alerts",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    stack.enter_context(running(command, f"http://{address}/-/ready", folder))
    return address


def prometheus(folder: Path, alerts: str, watched: int, stack: ExitStack, **about: str) -> None:
    """It looks at a port every second, and alerts where nobody answers there."""
    labels = {"severity": "page", "namespace": "shop", "deployment": "cart", **about}
    rule = {"alert": "CartDown", "expr": 'up{job="cart"} == 0', "labels": labels}
    rule |= {"annotations": {"summary": "nobody answers at {{ $labels.instance }}"}}
    target = [{"targets": [f"127.0.0.1:{watched}"]}]
    told = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "cart", "static_configs": target}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerts]}]}]},
    }
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "shop", "rules": [rule]}]}))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(told))
    url = f"127.0.0.1:{free_port()}"
    command = [
        str(unpacked("prometheus", "prometheus")),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address={url}",
    ]
    stack.enter_context(running(command, f"http://{url}/-/ready", folder))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("row", ["resources-11.4-01"])
async def test_a_rule_that_fires_makes_one_signal_and_its_end_resolves_it(
    server: Server, tmp_path: Path, row: str
) -> None:
    watched = free_port()
    folders = [tmp_path / name for name in ("intake", "alertmanager", "prometheus")]
    for folder in folders:
        folder.mkdir()

    def seen() -> int:
        return int(server.signal().get("status", {}).get("occurrences", 1)) if server.held else 0

    async with taking_alerts(server, folders[0]) as webhook:
        with ExitStack() as stack:
            alerts = await asyncio.to_thread(alertmanager, folders[1], webhook, stack)
            await asyncio.to_thread(prometheus, folders[2], alerts, watched, stack)
            await until(lambda: seen() > 2)
            async with serve_app(metrics_app(), "127.0.0.1", watched):
                await until(lambda: "resolvedTime" in server.signal()["spec"])

    spec = server.signal()["spec"]
    assert (spec["name"], spec["severity"], spec["source"]["name"]) == ("CartDown", "critical", "inquest")
    assert spec["target"] == {"kind": "Deployment", "name": "cart", "namespace": "shop"}
    assert spec["message"] == f"nobody answers at 127.0.0.1:{watched}"
    assert spec["resolvedTime"] >= spec["firingTime"]
