"""The probes say what the parts say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from starlette.middleware import Middleware

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.operator.health import HealthLine, health_app
from inquest.serving.http import metrics_app, serve_app
from inquest.serving.loopback import PrivatePaths
from inquest.settings.server import ServerSettings
from tests.support.kube import Cluster, Kubectl, eventually


async def answer(port: int, path: str) -> tuple[int, str]:
    async with httpx2.AsyncClient() as client:
        found = await client.get(f"http://127.0.0.1:{port}{path}")
        return found.status_code, found.text


async def test_what_is_required_fails_the_probe_and_the_rest_only_shows() -> None:
    faults = {"watch": "", "policy": "opa does not answer"}
    app = health_app(
        alive=[HealthLine("event loop", lambda: "")],
        ready=[
            HealthLine("watch", lambda: faults["watch"]),
            HealthLine("policy", lambda: faults["policy"], required=False),
        ],
    )
    async with serve_app(app, "127.0.0.1", 0) as port:
        assert await answer(port, "/healthz") == (200, "ok\n")
        assert await answer(port, "/readyz") == (200, "ok\n")
        verbose = "[+] watch\n[~] policy: opa does not answer\nok\n"
        assert await answer(port, "/readyz?verbose") == (200, verbose)

        faults["watch"] = "the first list is not through yet"
        assert await answer(port, "/readyz") == (503, "failed\n")
        verbose = "[-] watch: the first list is not through yet\n[~] policy: opa does not answer\nfailed\n"
        assert await answer(port, "/readyz?verbose") == (503, verbose)
        assert (await answer(port, "/metrics"))[0] == 404


async def test_metrics_are_served_with_their_first_values() -> None:
    async with serve_app(metrics_app(), "127.0.0.1", 0) as port:
        status, text = await answer(port, "/metrics")

    assert status == 200
    assert 'inquest_watch_restarts_total{cause="silent"}' in text
    assert "inquest_fenced_total" in text
    assert "process_resident_memory_bytes" in text


# --- callers from elsewhere -----------------------------------------------------------------------------------------

ELSEWHERE = ("10.1.2.3", 40_000)
FAULT = "get pods everywhere"


@pytest.fixture
def accounts(cluster: Cluster, namespace: str, kubectl: Kubectl) -> Any:
    """`scraper` may get /metrics, as Prometheus may; `stranger` and the operator's `server` have no right at all."""
    for name in ("scraper", "stranger", "server"):
        kubectl("create", "serviceaccount", name)
    role, account = f"scraper-{namespace}", f"{namespace}:scraper"
    cluster.kubectl("create", "clusterrole", role, "--verb=get", "--non-resource-url=/metrics")
    cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--serviceaccount={account}")
    scraper = kubectl.user(f"system:serviceaccount:{account}")
    eventually(lambda: scraper.may("get", "/metrics"), what="the scraper has its right")
    yield kubectl
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", role)


async def token(accounts: Kubectl, name: str) -> str:
    return (await asyncio.to_thread(accounts, "create", "token", name, "--duration=10m")).strip()


@asynccontextmanager
async def doors(cluster: Cluster, own: str) -> AsyncIterator[Any]:
    """Metrics and readiness of an operator whose token this is; asked by a caller from elsewhere unless told."""
    admin = await from_kubeconfig(cluster.kubeconfig)()
    async with Clients(given_credentials(Credentials(admin.server, admin.ca_file, token=own)), SystemClock()) as kube:
        readers = kube.metrics_readers()
        apps = {
            "/metrics": metrics_app([Middleware(PrivatePaths, reviewer=readers)]),
            "/readyz": health_app(alive=[], ready=[HealthLine("rights", lambda: FAULT)], reviewer=readers),
        }

        async def ask(path: str, bearer: str = "", client: tuple[str, int] = ELSEWHERE) -> httpx2.Response:
            transport = httpx2.ASGITransport(app=apps[path.partition("?")[0]], client=client)
            headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
            async with httpx2.AsyncClient(transport=transport, base_url="http://inquest") as http:
                return await http.get(path, headers=headers)

        yield ask


async def test_metrics_and_details_of_readiness_are_for_who_may_get_metrics(
    cluster: Cluster, accounts: Kubectl
) -> None:
    own, scraper, stranger = [await token(accounts, name) for name in ("server", "scraper", "stranger")]
    async with doors(cluster, own) as ask:
        for path in ("/metrics", "/readyz?verbose", "/readyz?verbose=0", "/readyz?a=b&verbose", "/readyz?%76erbose"):
            refused = [await ask(path), await ask(path, "not-a-token"), await ask(path, stranger), await ask(path, own)]

            assert [one.status_code for one in refused] == [401, 401, 403, 403], path
            assert not any(FAULT in one.text or "inquest_" in one.text for one in refused)
            assert "right to get /metrics" in refused[2].text
        metrics, details = await ask("/metrics", scraper), await ask("/readyz?verbose", scraper)
        probe = await ask("/readyz")

    assert (metrics.status_code, "inquest_fenced_total" in metrics.text) == (200, True)
    assert details.text == f"[-] rights: {FAULT}\nfailed\n"
    assert (probe.status_code, probe.text) == (503, "failed\n")


@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("::1", 1), ("127.8.8.8", 1)])
async def test_who_is_in_the_pod_already_needs_no_token(client: tuple[str, int], cluster: Cluster) -> None:
    """`kubectl port-forward` ends there, and takes a right of its own."""
    async with doors(cluster, "not-a-token") as ask:
        assert (await ask("/metrics", client=client)).status_code == 200
        assert FAULT in (await ask("/readyz?verbose", client=client)).text


async def test_a_header_makes_nobody_local(cluster: Cluster) -> None:
    """Only a server that is asked from the machine itself believes in such a header, and then it says elsewhere."""
    async with Clients(from_kubeconfig(cluster.kubeconfig), SystemClock()) as kube:
        app = metrics_app([Middleware(PrivatePaths, reviewer=kube.metrics_readers())])
        async with serve_app(app, "127.0.0.1", 0) as port, httpx2.AsyncClient(trust_env=False) as http:
            claims = {"X-Forwarded-For": "10.1.2.3"}
            answer = await http.get(f"http://127.0.0.1:{port}/metrics", headers=claims)
        elsewhere = httpx2.ASGITransport(app=app, client=ELSEWHERE)
        async with httpx2.AsyncClient(transport=elsewhere, base_url="http://inquest") as http:
            claimed = await http.get("/metrics", headers={"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"})

    assert (answer.status_code, claimed.status_code) == (401, 401)


async def test_where_nobody_can_be_asked_nobody_comes_in() -> None:
    away = given_credentials(Credentials("https://127.0.0.1:1"))
    async with Clients(away, SystemClock()) as kube:
        app = metrics_app([Middleware(PrivatePaths, reviewer=kube.metrics_readers())])
        transport = httpx2.ASGITransport(app=app, client=ELSEWHERE)
        async with httpx2.AsyncClient(transport=transport, base_url="http://inquest") as http:
            answer = await http.get("/metrics", headers={"Authorization": "Bearer some-token"})

    assert (answer.status_code, "inquest_" in answer.text) == (503, False)


@pytest.mark.parametrize(
    ("settings", "asks"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "10.0.0.1"}, True),
        ({"host": "0.0.0.0", "authentication": "none"}, False),
        ({"authentication": "kubernetes"}, True),
    ],
)
def test_a_port_that_others_can_reach_asks_for_tokens(settings: dict[str, Any], asks: bool) -> None:
    assert ServerSettings(**settings).asks_for_tokens is asks
