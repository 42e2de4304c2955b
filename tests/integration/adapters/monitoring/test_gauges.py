"""What a real Prometheus and a real Alertmanager say of a run (resources, section 12.1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from hack.ports import free_port
from inquest.adapters.monitoring.alertmanager import Alertmanager
from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.api.investigation import Investigation
from inquest.api.refs import TargetRef
from inquest.controllers.execution.effect_readings import EffectReader
from inquest.controllers.ports import ControllerPorts
from inquest.core.remediation.effectiveness import MetricChange, improvement, metrics_score
from inquest.errors import Unavailable
from inquest.settings.settings import Settings
from tests.integration.adapters.monitoring import servers
from tests.integration.adapters.monitoring.servers import NOW, RAN

CHECKOUT = TargetRef(api_version="apps/v1", kind="StatefulSet", name="checkout", namespace="till")
NOBODY = f"http://127.0.0.1:{free_port()}"


def gauges(**ports: Any) -> EffectReader:
    nothing = dict.fromkeys(field.name for field in fields(ControllerPorts))
    return EffectReader(ControllerPorts(**{**nothing, "settings": Settings(), **ports}))


async def read(ports: EffectReader, target: TargetRef = CHECKOUT) -> dict[str, MetricChange]:
    found = await ports.metrics(target, started=RAN, ended=RAN + timedelta(minutes=1), now=NOW)
    return {} if found is None else {one.name: one for one in found}


# --- metrics ----------------------------------------------------------------------------------------------------------


async def test_every_figure_is_read_before_the_run_and_after_it(prometheus: Prometheus) -> None:
    found = await read(gauges(metrics=prometheus))

    halves = {name: (round(one.before or 0, 3), round(one.after or 0, 3)) for name, one in found.items()}
    assert halves == {
        "cpu": (0.95, 0.3),
        "memory": (512, 128),
        "latency_p95": (0.48, 0.095),
        "error_rate": (0, 0.167),
        "throughput": (0.333, 0.4),
    }
    gains = {
        name: round(improvement(one.before, one.after, lower_is_better=one.lower_is_better) or 0, 3)
        for name, one in found.items()
    }
    assert gains == {"cpu": 0.684, "memory": 0.75, "latency_p95": 0.802, "error_rate": 0, "throughput": 0.2}


async def test_the_same_pod_of_another_namespace_is_not_measured(prometheus: Prometheus) -> None:
    """A case reads its own namespace, here as everywhere (decision 0013)."""
    elsewhere = CHECKOUT.model_copy(update={"namespace": "pay"})

    found = await read(gauges(metrics=prometheus), elsewhere)

    assert {(one.before, one.after) for one in found.values()} == {(None, None)}
    assert metrics_score(found.values()) is None, "no data is not assessed, and not 0"


async def test_a_source_that_is_away_is_not_a_figure_of_zero() -> None:
    line = StackClient("prometheus", StackAddress(NOBODY))
    try:
        assert await gauges(metrics=Prometheus(line)).metrics(CHECKOUT, started=RAN, ended=RAN, now=NOW) is None
    finally:
        await line.aclose()


async def test_one_query_that_is_wrong_takes_no_other_along(prometheus: Prometheus) -> None:
    ports = gauges(metrics=prometheus, settings=Settings(effectiveness={"queries": {"cpu": "sum(rate(", "memory": ""}}))

    assert set(await read(ports)) == {"latency_p95", "error_rate", "throughput"}


# --- alerts -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alertmanager_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.alertmanager(tmp_path_factory.mktemp("alertmanager")) as url:
        yield url


@pytest.fixture
async def alertmanager(alertmanager_url: str) -> AsyncIterator[Alertmanager]:
    line = StackClient("alertmanager", StackAddress(alertmanager_url))
    yield Alertmanager(line)
    await line.aclose()


def fires(url: str, *, over: bool = False, **labels: str) -> None:
    """An alert, as Prometheus would send it."""
    now = datetime.now(UTC)
    ends = now - timedelta(seconds=1) if over else now + timedelta(hours=1)
    alert = {"labels": labels, "startsAt": (now - timedelta(hours=1)).isoformat(), "endsAt": ends.isoformat()}
    httpx2.post(f"{url}/api/v2/alerts", json=[alert], timeout=30, trust_env=False).raise_for_status()


def silence(url: str, name: str) -> None:
    now = datetime.now(UTC)
    matchers = [{"name": "alertname", "value": name, "isRegex": False, "isEqual": True}]
    body = {"matchers": matchers, "startsAt": now.isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}
    body |= {"createdBy": "jane", "comment": "I know"}
    httpx2.post(f"{url}/api/v2/silences", json=body, timeout=30, trust_env=False).raise_for_status()


def case_of(source: str = "Alertmanager", name: str = "CartDown", **labels: str) -> Investigation:
    spec = {"name": name, "severity": "high", "source": {"type": source}, "labels": {"alertname": name, **labels}}
    spec |= {"target": {"kind": "Deployment", "name": "cart", "namespace": "shop", "apiVersion": "apps/v1"}}
    return Investigation.from_object({"metadata": {"name": "inv-1"}, "spec": {"signal": spec}})


async def test_an_alert_that_fires_is_seen_until_it_is_over(alertmanager: Alertmanager, alertmanager_url: str) -> None:
    own: dict[str, Any] = {"namespace": "shop", "deployment": "cart"}
    ports = gauges(alerts=alertmanager)
    fires(alertmanager_url, alertname="CartDown", **own)
    fires(alertmanager_url, alertname="CartDown", namespace="other", deployment="cart")
    fires(alertmanager_url, alertname="CartDown", namespace="shop", deployment="checkout")

    (found,) = await ports.firing(case_of(**own)) or ()
    assert found == {"alertname": "CartDown", **own}

    fires(alertmanager_url, alertname="CartDown", over=True, **own)
    assert await ports.firing(case_of(**own)) == ()


async def test_a_silenced_alert_still_fires(alertmanager: Alertmanager, alertmanager_url: str) -> None:
    fires(alertmanager_url, alertname="Known", namespace="shop")
    silence(alertmanager_url, "Known")

    assert await alertmanager.firing("Known", "shop") == ({"alertname": "Known", "namespace": "shop"},)


async def test_a_name_is_a_word_and_no_pattern(alertmanager: Alertmanager, alertmanager_url: str) -> None:
    name = 'Odd "name", {with=~".*"}'
    fires(alertmanager_url, alertname=name, namespace="shop")

    assert [one["alertname"] for one in await alertmanager.firing(name, "shop")] == [name]
    assert await alertmanager.firing(".*", "shop") == ()


NOT_OF_THE_TARGET: dict[str, dict[str, str]] = {
    "the namespace of who was scraped": {"namespace": "monitoring", "exported_namespace": "shop"},
    "no namespace at all": {},
}


@pytest.mark.parametrize("labels", NOT_OF_THE_TARGET.values(), ids=NOT_OF_THE_TARGET.keys())
async def test_an_alert_that_is_not_looked_for_where_it_is_has_not_ended(
    alertmanager: Alertmanager, alertmanager_url: str, labels: dict[str, Any]
) -> None:
    ports = gauges(alerts=alertmanager)
    fires(alertmanager_url, alertname="Scraped", deployment="cart", **labels)

    assert await ports.firing(case_of(name="Scraped", deployment="cart", **labels)) is None
    assert ports.alert(case_of(name="Scraped", deployment="cart", **labels)) == "", "it is no part of the verification"


async def test_who_is_away_says_nothing_of_an_alert(prometheus_url: str) -> None:
    away, other = (
        StackClient("alertmanager", StackAddress(NOBODY)),
        StackClient("alertmanager", StackAddress(prometheus_url)),
    )
    try:
        assert await gauges(alerts=Alertmanager(away)).firing(case_of(namespace="shop")) is None
        with pytest.raises(Unavailable):
            await Alertmanager(away).firing("CartDown", "shop")
        assert await gauges(alerts=Alertmanager(other)).firing(case_of(namespace="shop")) is None, (
            "a Prometheus is no Alertmanager"
        )
    finally:
        await away.aclose()
        await other.aclose()


async def test_what_no_alert_began_has_none_to_look_for(alertmanager: Alertmanager) -> None:
    ports = gauges(alerts=alertmanager)

    assert ports.alert(case_of("Manual", namespace="shop")) == ""
    assert await ports.firing(case_of("Manual", namespace="shop")) is None
    assert replace(ports, ports=replace(ports.ports, alerts=None)).alert(case_of(namespace="shop")) == ""
