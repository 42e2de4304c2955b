"""The login of a DataStorage server on a real API server: TokenReview, then SubjectAccessReview (datastorage, 3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.api.installation import DATASTORAGE_CLIENT, DATASTORAGE_SERVICE
from inquest.api.manifests.rbac import render_datastorage
from inquest.datastorage.app import create_app
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from tests.support.kube import Cluster, Kubectl, eventually

EVENTS = "/api/v1/audit/events"


@pytest.fixture
def accounts(cluster: Cluster, namespace: str, kubectl: Kubectl) -> Iterator[Kubectl]:
    """`server` and `caller` have what the manifests give them, `stranger` has nothing."""
    for name in ("caller", "stranger"):
        kubectl("create", "serviceaccount", name)
    ours = _here(render_datastorage(namespace, "server", "caller"), namespace)
    cluster.kubectl("create", "--filename=-", stdin=ours)
    server = cluster.kubectl.user(f"system:serviceaccount:{namespace}:server")
    eventually(lambda: server.may("create", "tokenreviews.authentication.k8s.io"), what="the server may review")
    caller = kubectl.user(f"system:serviceaccount:{namespace}:caller")
    eventually(lambda: caller.may("create", f"services/{DATASTORAGE_SERVICE}"), what="the caller has its right")
    yield kubectl
    cluster.kubectl("delete", "--filename=-", stdin=ours)


def _here(manifests: list[dict[str, Any]], namespace: str) -> str:
    """As one list; what is in no namespace gets a name of its own, for tests run side by side."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    return text.replace('"inquest-datastorage"', f'"inquest-datastorage-{namespace}"')


async def _token(accounts: Kubectl, name: str) -> dict[str, str]:
    token = await asyncio.to_thread(accounts, "create", "token", name, "--duration=10m")
    return {"Authorization": f"Bearer {token.strip()}"}


@asynccontextmanager
async def guarded(
    cluster: Cluster, folder: Path, bearer: dict[str, str], namespace: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """The application behind a login, as the account of that token, for callers' rights in that namespace."""
    admin = await from_kubeconfig(cluster.kubeconfig)()
    login = Credentials(admin.server, admin.ca_file, token=bearer["Authorization"].removeprefix("Bearer "))
    database = open_database(f"sqlite:///{folder}/store.db")
    await migrate_database(database)
    async with Clients(given_credentials(login), SystemClock()) as kube:
        app = create_app(database, reviewer=kube.reviews(namespace, DATASTORAGE_SERVICE))
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://datastorage") as http:
            yield http
        await app.state.service.close()
    await database.close()


async def test_who_may_use_the_service(cluster: Cluster, accounts: Kubectl, namespace: str, tmp_path: Path) -> None:
    server, caller, stranger = [await _token(accounts, name) for name in ("server", "caller", "stranger")]
    async with guarded(cluster, tmp_path, server, namespace) as http:
        unknown = await http.get(EVENTS, headers={"Authorization": "Bearer not-a-token"})
        refused = await http.get(EVENTS, headers=stranger)
        let_in = await http.get(EVENTS, headers=caller)
        # A right that a whole group has is a right of its members.
        group = f"--group=system:serviceaccounts:{namespace}"
        await asyncio.to_thread(accounts, "create", "rolebinding", "group", f"--role={DATASTORAGE_CLIENT}", group)
        bound = accounts.user(f"system:serviceaccount:{namespace}:stranger", group.removeprefix("--group="))
        may = partial(bound.may, "create", f"services/{DATASTORAGE_SERVICE}")
        await asyncio.to_thread(eventually, may, what="the group has its right")
        by_group = await http.get(EVENTS, headers=stranger)
    async with guarded(cluster, tmp_path, server, "default") as http:
        elsewhere = await http.get(EVENTS, headers=caller)

    assert (unknown.status_code, unknown.json()["detail"]) == (401, "Invalid or expired token")
    assert (refused.status_code, refused.json()["detail"]) == (403, "Insufficient permissions")
    assert (let_in.status_code, by_group.status_code, elsewhere.status_code) == (200, 200, 403)


async def test_a_server_that_may_not_review_lets_nobody_in(
    cluster: Cluster, accounts: Kubectl, namespace: str, tmp_path: Path
) -> None:
    caller, stranger = [await _token(accounts, name) for name in ("caller", "stranger")]
    async with guarded(cluster, tmp_path, stranger, namespace) as http:
        answer = await http.get(EVENTS, headers=caller)

    assert (answer.status_code, answer.json()["detail"]) == (500, "Authentication service unavailable")


async def test_the_right_to_use_the_service_creates_none(accounts: Kubectl, namespace: str) -> None:
    caller = accounts.user(f"system:serviceaccount:{namespace}:caller")

    assert caller.may("create", f"services/{DATASTORAGE_SERVICE}")
    refused = caller.ask("create", "service", "clusterip", DATASTORAGE_SERVICE, "--tcp=80:80")
    assert 'cannot create resource "services"' in refused.err


async def test_the_account_of_the_service_can_do_nothing_else(accounts: Kubectl, namespace: str) -> None:
    server = accounts.user(f"system:serviceaccount:{namespace}:server")

    assert server.may("create", "subjectaccessreviews.authorization.k8s.io")
    for verb, what in (("list", "pods"), ("get", "secrets"), ("get", "configmaps"), ("create", "services")):
        assert not server.may(verb, what)
