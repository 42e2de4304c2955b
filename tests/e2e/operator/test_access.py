"""The self-check on real rights: the operator's account has none too many, and one too many is found (section 9)."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.api.manifests.rbac import EXECUTION as EXECUTION_RULES
from inquest.api.manifests.rbac import HOME as HOME_RULES
from inquest.api.manifests.rbac import INVESTIGATOR, OPERATOR, AccessRule, loss_of
from inquest.errors import Unavailable
from inquest.operator.access import MUST_NOT, excess_rights, missing_rights
from tests.support.kube import Cluster, Kubectl, eventually


async def account(cluster: Cluster, kubectl: Kubectl, *rights: tuple[str, str]) -> Credentials:
    """A service account of the test's namespace with these rights there, a verb and `plural` or `plural/name` each."""
    await asyncio.to_thread(kubectl, "create", "serviceaccount", "subject")
    namespace = kubectl.namespace
    subject = kubectl.user(f"system:serviceaccount:{namespace}:subject")
    for number, (verb, what) in enumerate(rights):
        resource, _, name = what.partition("/")
        only = (f"--resource-name={name}",) if name else ()
        await asyncio.to_thread(
            kubectl, "create", "role", f"r{number}", f"--verb={verb}", f"--resource={resource}", *only
        )
        binds = (f"--role=r{number}", f"--serviceaccount={namespace}:subject")
        await asyncio.to_thread(kubectl, "create", "rolebinding", f"r{number}", *binds)
        # The API server learns of a binding a moment after it has stored it.
        await asyncio.to_thread(eventually, partial(subject.may, verb, what), what=f"{verb} {what}")
    token = (await asyncio.to_thread(kubectl, "create", "token", "subject", "--duration=10m")).strip()
    admin = await from_kubeconfig(cluster.kubeconfig)()
    return Credentials(admin.server, admin.ca_file, token=token)


async def test_the_operators_own_account_has_no_right_too_many(own: Clients, namespace: str) -> None:
    assert await excess_rights(own.status, ["inquest-system", "inquest-workflows", namespace]) == ()


async def test_an_administrator_has_them_all(cluster: Cluster) -> None:
    async with Clients(from_kubeconfig(cluster.kubeconfig), SystemClock()) as kube:
        assert await excess_rights(kube.status) == tuple(sorted({question.text for question in MUST_NOT}))


async def test_a_right_in_one_namespace_is_found_there(cluster: Cluster, kubectl: Kubectl, namespace: str) -> None:
    login = await account(cluster, kubectl, ("get", "secrets"), ("list", "pods"))
    async with Clients(given_credentials(login), SystemClock()) as kube:
        assert await excess_rights(kube.status) == ()
        assert await excess_rights(kube.status, [namespace]) == ("get secrets",)
        assert await excess_rights(kube.status, [namespace], tolerated=["get secrets"]) == ()


async def test_a_right_by_resource_name_is_found_too(cluster: Cluster, kubectl: Kubectl, namespace: str) -> None:
    login = await account(cluster, kubectl, ("get", "secrets/one"))
    async with Clients(given_credentials(login), SystemClock()) as kube:
        assert await excess_rights(kube.status, [namespace]) == ("get secrets",)


async def test_a_question_that_nobody_answers_is_no_clean_bill() -> None:
    async with Clients(given_credentials(Credentials("http://127.0.0.1:1", token="t")), SystemClock()) as kube:
        with pytest.raises(Unavailable):
            await excess_rights(kube.status)


# --- rights that are missing ------------------------------------------------------------------------------------------

HOME, EXECUTION = "inquest-system", "inquest-workflows"


async def test_the_operators_own_account_misses_nothing(own: Clients, namespace: str) -> None:
    assert await missing_rights(own.status, own.cluster, home=HOME, execution=EXECUTION, managed=[namespace]) == ()


async def test_a_right_that_was_taken_away_is_named_with_what_stops_working(
    cluster: Cluster, kubectl: Kubectl, namespace: str
) -> None:
    login = await account(cluster, kubectl, ("get", "pods"), ("get", "pods/log"))
    async with Clients(given_credentials(login), SystemClock()) as kube:
        found = await missing_rights(kube.status, kube.cluster, home=HOME, execution=EXECUTION, managed=[namespace])

    told = {one.text for one in found}
    assert f"list pods in {namespace}: {loss_of('', 'pods')}" in told
    assert f"get, list services in {namespace}: {loss_of('', 'services')}" in told
    assert f"get, list nodes: {loss_of('', 'nodes')}" in told
    assert not [text for text in told if "certificates.cert-manager.io" in text], "nobody misses what is not served"


@pytest.mark.parametrize(
    "rules",
    [OPERATOR, HOME_RULES, EXECUTION_RULES, INVESTIGATOR],
    ids=["operator", "home", "execution", "investigator"],
)
def test_every_right_that_is_given_says_what_stops_without_it(rules: tuple[AccessRule, ...]) -> None:
    assert all(loss_of(rule.group, resource) for rule in rules for resource in rule.resources)
