"""The self-check on real rights: the operator's account has none too many, and one too many is found (section 9)."""

from __future__ import annotations

import asyncio

import pytest

from inquest.access import MUST_NOT, AccessCheck, excess
from inquest.adapters.clock import SystemClock
from inquest.adapters.kube import Kube, Login, from_kubeconfig, given
from inquest.errors import Unavailable
from tests.cluster.kube import Cluster, Kubectl


async def account(cluster: Cluster, kubectl: Kubectl, *rules: tuple[str, ...]) -> Login:
    """A service account of the test's namespace with a Role of these `kubectl create role` options."""
    await asyncio.to_thread(kubectl, "create", "serviceaccount", "subject")
    for number, rule in enumerate(rules):
        await asyncio.to_thread(kubectl, "create", "role", f"r{number}", *rule)
        namespace = next(option.split("=")[1] for option in kubectl.options if option.startswith("--namespace="))
        subject = f"--serviceaccount={namespace}:subject"
        await asyncio.to_thread(kubectl, "create", "rolebinding", f"r{number}", f"--role=r{number}", subject)
    token = (await asyncio.to_thread(kubectl, "create", "token", "subject", "--duration=10m")).strip()
    admin = await from_kubeconfig(cluster.kubeconfig)()
    return Login(admin.server, admin.ca_file, token=token)


async def test_the_operators_own_account_has_no_right_too_many(own: Kube, namespace: str) -> None:
    assert await excess(own.status, ["inquest-system", "inquest-workflows", namespace]) == ()


async def test_an_administrator_has_them_all(cluster: Cluster) -> None:
    async with Kube(from_kubeconfig(cluster.kubeconfig), SystemClock()) as kube:
        assert await excess(kube.status) == tuple(sorted({question.text for question in MUST_NOT}))


async def test_a_right_in_one_namespace_is_found_there(cluster: Cluster, kubectl: Kubectl, namespace: str) -> None:
    login = await account(cluster, kubectl, ("--verb=get", "--resource=secrets"), ("--verb=list", "--resource=pods"))
    async with Kube(given(login), SystemClock()) as kube:
        assert await excess(kube.status) == ()
        assert await excess(kube.status, [namespace]) == ("get secrets",)
        assert await excess(kube.status, [namespace], tolerated=["get secrets"]) == ()


async def test_a_right_by_resource_name_is_found_too(cluster: Cluster, kubectl: Kubectl, namespace: str) -> None:
    login = await account(cluster, kubectl, ("--verb=get", "--resource=secrets", "--resource-name=one"))
    async with Kube(given(login), SystemClock()) as kube:
        assert await excess(kube.status, [namespace]) == ("get secrets",)


async def test_a_question_that_nobody_answers_is_no_clean_bill() -> None:
    async with Kube(given(Login("http://127.0.0.1:1", token="t")), SystemClock()) as kube:
        with pytest.raises(Unavailable):
            await excess(kube.status)


async def test_nothing_is_claimed_before_the_rights_are_known(own: Kube) -> None:
    clock = SystemClock()
    async with Kube(given(Login("http://127.0.0.1:1", token="t")), clock) as nowhere:
        unknown = AccessCheck(nowhere.status, clock, tuple)
        await unknown.look()
    known = AccessCheck(own.status, clock, tuple)
    await known.look()

    assert (unknown.fault(), known.fault()) == ("rights are not verified yet", "")
