"""An operator that looks after single namespaces: Roles are enough for it, and it knows what it does not see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.adapters.kubernetes.identity import ClusterIdentity
from inquest.api.base import GROUP
from inquest.api.manifests.rbac import INSTALLED, TOKENS, loss_of, render_confined
from inquest.api.refs import TargetRef
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Forbidden
from inquest.gather.snapshot.collector import ClusterTargetReader
from inquest.operator.access import excess_rights, missing_rights
from inquest.operator.supervisor import supervisor_for
from inquest.operator.watcher import JOB, LEASE, OURS, KopfWatcher, plan_of
from inquest.ports.kubernetes import Access, Json, Person, ResourceKind
from tests.e2e.operator.conftest import BOUND, Rings
from tests.support.kube import Cluster, eventually, own_namespace, proposal

SIGNAL = next(kind for kind in OURS if kind.kind == "Signal")
SIGNALS = "signals.inquest.dev"
NODE = ResourceKind("", "v1", "Node", "nodes", False)
NAMESPACES = ResourceKind("", "v1", "Namespace", "namespaces", False)


@dataclass(frozen=True)
class Confined:
    """The account of such an operator, and where it may go."""

    kube: Clients
    login: Credentials
    home: str
    team: str
    jobs: str
    elsewhere: str


@contextmanager
def _granted(cluster: Cluster, home: str, team: str, jobs: str) -> Iterator[None]:
    """Its roles, under names of this test's own where they are the cluster's."""
    roles = render_confined([team], home, jobs)
    for one in roles:
        if one["kind"].startswith("Cluster"):
            one["metadata"]["name"] = f"{one['metadata']['name']}-{home}"
        if one["kind"] == "ClusterRoleBinding":
            one["roleRef"]["name"] = one["metadata"]["name"]
    cluster.kubectl("create", "serviceaccount", "inquest", "-n", home)
    cluster.kubectl.apply(*roles)
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", f"inquest-installed-{home}")


@pytest.fixture
async def confined(cluster: Cluster) -> AsyncIterator[Confined]:
    """Bound in a namespace of its own, in one of a team and in that of the Jobs."""
    with ExitStack() as stack:
        home, team, jobs, elsewhere = (stack.enter_context(own_namespace(cluster)) for _ in range(4))
        stack.enter_context(_granted(cluster, home, team, jobs))
        subject = cluster.kubectl.user(f"system:serviceaccount:{home}:inquest")
        for place, what in ((home, "signals.inquest.dev"), (team, "pods"), (jobs, "jobs.batch")):
            # The API server learns of a binding a moment after it has stored it.
            seen = partial(subject.within(place).may, "list", what)
            await asyncio.to_thread(eventually, seen, what=f"{what} in {place}")
        token = cluster.kubectl("create", "token", "inquest", "-n", home, "--duration=10m").strip()
        admin = await from_kubeconfig(cluster.kubeconfig)()
        login = Credentials(admin.server, admin.ca_file, token=token)
        async with Clients(given_credentials(login), SystemClock(), namespaces=(home, team)) as kube:
            yield Confined(kube, login, home, team, jobs, elsewhere)


def signal(name: str) -> Json:
    return proposal("Signal") | {"metadata": {"name": name}}


async def test_it_misses_nothing_and_has_nothing_too_many(confined: Confined) -> None:
    status, home, team, jobs = confined.kube.status, confined.home, confined.team, confined.jobs
    wide = [Access(verb, one.group, name) for one in INSTALLED for name in one.resources for verb in one.verbs]

    assert await missing_rights(status, confined.kube.cluster, home=home, execution=jobs, namespaces=[team]) == ()
    assert await excess_rights(status, [home, jobs, team]) == ()
    assert all([await status.allowed(one) for one in wide])
    for refused in (Access("list", "", "pods"), Access("get", "", "nodes"), Access("list", GROUP, "signals")):
        assert not await status.allowed(refused)


async def test_what_a_namespace_does_not_give_is_missing_there(confined: Confined, cluster: Cluster) -> None:
    await asyncio.to_thread(cluster.kubectl, "delete", "rolebinding", "inquest-investigator", "-n", confined.team)

    def gone() -> bool:
        return (
            not cluster.kubectl.user(f"system:serviceaccount:{confined.home}:inquest")
            .within(confined.team)
            .may("list", "pods")
        )

    await asyncio.to_thread(eventually, gone, what="the binding has no effect any more")
    status, kinds = confined.kube.status, confined.kube.cluster
    found = await missing_rights(status, kinds, home=confined.home, execution=confined.jobs, namespaces=[confined.team])

    told = {one.text for one in found}
    assert f"get, list pods in {confined.team}: {loss_of('', 'pods')}" in told
    assert {one.namespace for one in found} == {confined.team}
    assert not [text for text in told if "nodes" in text], "nobody misses what no Role can give"


async def test_a_door_that_must_know_whose_token_it_is_misses_the_right_to_ask(confined: Confined) -> None:
    status, kinds, home = confined.kube.status, confined.kube.cluster, confined.home
    found = await missing_rights(
        status, kinds, home=home, execution=confined.jobs, namespaces=[confined.team], also=[TOKENS]
    )

    loss = loss_of(TOKENS.group, "tokenreviews")
    assert [one.text for one in found] == [f"create tokenreviews.authentication.k8s.io: {loss}"]


async def test_a_right_too_many_in_a_namespace_of_the_team_is_found(confined: Confined, cluster: Cluster) -> None:
    team = cluster.kubectl.within(confined.team)
    await asyncio.to_thread(team, "create", "role", "more", "--verb=get", "--resource=secrets")
    binding = ("create", "rolebinding", "more", "--role=more", f"--serviceaccount={confined.home}:inquest")
    await asyncio.to_thread(team, *binding)
    subject = team.user(f"system:serviceaccount:{confined.home}:inquest")
    await asyncio.to_thread(eventually, partial(subject.may, "get", "secrets"), what="the right is there")

    assert await excess_rights(confined.kube.status, [confined.home, confined.jobs, confined.team]) == ("get secrets",)


async def test_a_list_of_its_own_kinds_is_of_its_namespaces(confined: Confined, cluster: Cluster) -> None:
    for place in (confined.home, confined.team, confined.elsewhere):
        answer = await asyncio.to_thread(cluster.kubectl.within(place).create, signal("one"))
        assert answer.accepted, answer.err

    found = await confined.kube.status.list(SIGNAL)
    paged = [one async for page in confined.kube.status.pages(SIGNAL) for one in page]

    assert {one["metadata"]["namespace"] for one in found} == {confined.home, confined.team}
    assert [one["metadata"]["uid"] for one in paged] == [one["metadata"]["uid"] for one in found]
    with pytest.raises(Forbidden):
        await confined.kube.status.list(SIGNAL, confined.elsewhere)


async def test_a_namespace_that_is_refused_is_left_out_of_a_list_which_says_so(
    confined: Confined, cluster: Cluster
) -> None:
    await asyncio.to_thread(cluster.kubectl.within(confined.home).create, signal("one"))
    async with Clients(
        given_credentials(confined.login), SystemClock(), namespaces=(confined.home, confined.elsewhere)
    ) as kube:
        found = await kube.status.seen(SIGNAL)
        paged = [one async for page in kube.status.pages(SIGNAL) for one in page]

        assert [one["metadata"]["namespace"] for one in found.items] == [confined.home]
        assert found.unseen == {confined.elsewhere}
        assert [one["metadata"]["uid"] for one in paged] == [one["metadata"]["uid"] for one in found.items]
        assert kube.places.fault().startswith(f"{confined.elsewhere}: gone, or without the RoleBindings")
        with pytest.raises(Forbidden):
            await kube.status.list(SIGNAL, confined.elsewhere)


async def test_a_list_that_is_refused_in_the_operators_own_namespace_is_refused(confined: Confined) -> None:
    async with Clients(
        given_credentials(confined.login), SystemClock(), namespaces=(confined.elsewhere, confined.home)
    ) as kube:
        for ask in (kube.status.list(SIGNAL), kube.status.seen(SIGNAL)):
            with pytest.raises(Forbidden):
                await ask
        with pytest.raises(Forbidden):
            [page async for page in kube.status.pages(SIGNAL)]
        await kube.status.look_around()

        assert kube.places.served == (confined.elsewhere, confined.home)


async def test_a_namespace_is_served_again_when_what_was_refused_is_allowed(
    confined: Confined, cluster: Cluster
) -> None:
    """Deleted and made again is what its account sees as a right that goes and comes back."""
    team, kube = cluster.kubectl.within(confined.team), confined.kube
    subject = cluster.kubectl.user(f"system:serviceaccount:{confined.home}:inquest").within(confined.team)
    roles = [one for one in render_confined([confined.team], confined.home, confined.jobs) if _binds_in(one, confined)]
    await asyncio.to_thread(team, "delete", "rolebinding", *(one["metadata"]["name"] for one in roles))
    await asyncio.to_thread(eventually, lambda: not subject.may("list", SIGNALS), what="the right is gone")
    await kube.status.look_around()
    assert (kube.places.served, kube.places.refused) == ((confined.home,), (confined.team,))
    assert await kube.status.list(SIGNAL) == ()

    await asyncio.to_thread(cluster.kubectl.apply, *roles)
    await asyncio.to_thread(team.create, signal("back"))
    await asyncio.to_thread(eventually, partial(subject.may, "list", SIGNALS), what="the right is back")
    await kube.status.look_around()

    assert (kube.places.served, kube.places.fault()) == ((confined.home, confined.team), "")
    assert [one["metadata"]["name"] for one in await kube.status.list(SIGNAL)] == ["back"]


def _binds_in(one: Json, confined: Confined) -> bool:
    return bool(one["kind"] == "RoleBinding" and one["metadata"].get("namespace") == confined.team)


async def test_whether_somebody_may_is_asked_inside_the_namespace(confined: Confined, cluster: Cluster) -> None:
    team = cluster.kubectl.within(confined.team)
    await asyncio.to_thread(
        team, "create", "rolebinding", "j", "--clusterrole=inquest-approver", "--user=jane", "--group=oncall"
    )
    resource = "remediationapprovalrequests.inquest.dev"
    await asyncio.to_thread(eventually, partial(team.user("jane").may, "approve", resource), what="jane may approve")
    access = Access("approve", GROUP, "remediationapprovalrequests", namespace=confined.team)
    status = confined.kube.status

    assert await status.allowed_for(Person("jane"), access, "rar-1")
    assert await status.allowed_for(Person("grace", ("oncall",)), access, "rar-1"), "by a group"
    assert not await status.allowed_for(Person("eve", ("others",)), access, "rar-1")
    with pytest.raises(Forbidden):
        await status.allowed_for(Person("jane"), Access("approve", GROUP, "remediationapprovalrequests"))


async def test_a_sender_may_be_judged_but_no_token(confined: Confined, cluster: Cluster) -> None:
    """Why its intake wants a token of its own."""
    home = cluster.kubectl.within(confined.home)
    await asyncio.to_thread(home, "create", "rolebinding", "a", "--clusterrole=inquest-signal-source", "--user=alerts")
    await asyncio.to_thread(
        eventually, partial(home.user("alerts").may, "create", "signals.inquest.dev"), what="alerts may send"
    )
    reviews = confined.kube.sender_reviews(confined.home)

    assert await reviews.authorise({"username": "alerts", "groups": ["system:authenticated"]})
    assert not await reviews.authorise({"username": "eve"})
    with pytest.raises(Forbidden):
        await reviews.authenticate(confined.login.token)


async def test_it_is_rung_for_its_namespaces_and_for_jobs_where_workflows_run(
    confined: Confined, cluster: Cluster
) -> None:
    rings = Rings()
    bell = KopfWatcher(plan_of(confined.login, (confined.home, confined.team), confined.jobs), rings)
    bell.start()
    try:
        for place in (confined.elsewhere, confined.home, confined.team):
            await asyncio.to_thread(cluster.kubectl.within(place).create, signal("rung"))
        await asyncio.to_thread(cluster.kubectl.within(confined.jobs).create, a_job())
        await asyncio.to_thread(cluster.kubectl.within(confined.home).create, a_lease())
        for kind, place in (("Signal", confined.home), ("Signal", confined.team), ("Job", confined.jobs)):
            await rings.until(lambda ring: (ring.key.kind, ring.key.namespace) == (kind, place))  # noqa: B023 - at once
        await rings.until(lambda ring: ring.key.kind == LEASE.kind)
        assert bell.alive()
    finally:
        assert await bell.stop(BOUND)

    assert confined.elsewhere not in {ring.key.namespace for ring in rings.all}


async def test_the_watch_follows_the_namespaces_that_can_be_read(confined: Confined, cluster: Cluster) -> None:
    """One that does not exist yet is watched as soon as it can be, and the others are meanwhile."""
    rings, places = Rings(), (confined.home, "not-there-yet", confined.team)
    async with Clients(given_credentials(confined.login), SystemClock(), namespaces=places) as kube:
        kube.places.lose(confined.team, SIGNAL, Forbidden("played"))
        await asyncio.to_thread(cluster.kubectl.within(confined.home).create, signal("others"))
        await asyncio.to_thread(cluster.kubectl.within(confined.team).create, signal("later"))
        supervisor = supervisor_for(kube, rings, SystemClock(), execution=confined.jobs)
        watching = asyncio.create_task(supervisor.run())
        try:
            await rings.until(lambda ring: ring.key.name == "others")
            assert confined.team not in {ring.key.namespace for ring in rings.all}
            await kube.status.look_around()
            await rings.until(lambda ring: ring.key.name == "later")
            assert kube.places.refused == ("not-there-yet",)
            assert supervisor.alive()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def test_a_watch_that_is_refused_does_not_stop_the_others(confined: Confined, cluster: Cluster) -> None:
    """A namespace that is gone takes the right to watch it with it."""
    rings = Rings()
    bell = KopfWatcher(plan_of(confined.login, (confined.elsewhere, confined.home), confined.elsewhere), rings)
    bell.start()
    try:
        await asyncio.to_thread(cluster.kubectl.within(confined.home).create, signal("rung"))
        await rings.until(lambda ring: ring.key.name == "rung")
        assert bell.alive()
    finally:
        assert await bell.stop(BOUND)


def a_job() -> Json:
    box = {"name": "one", "image": "localhost/none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [box]}}
    metadata = {"name": "work", "labels": {"app.kubernetes.io/managed-by": "inquest"}}
    return {"apiVersion": JOB.api_version, "kind": "Job", "metadata": metadata, "spec": {"template": template}}


def a_lease() -> Json:
    metadata = {"name": "one", "labels": {"app.kubernetes.io/managed-by": "inquest"}}
    return {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": metadata, "spec": {}}


async def test_a_namespace_is_read_by_its_name_where_a_role_says_so(confined: Confined) -> None:
    cluster = confined.kube.cluster

    assert (await cluster.get(NAMESPACES, confined.team))["metadata"]["name"] == confined.team
    assert await ClusterIdentity(cluster, confined.home).uid()
    for name in (confined.elsewhere, "kube-system"):
        with pytest.raises(Forbidden):
            await cluster.get(NAMESPACES, name)


# --- what it does not see ---------------------------------------------------------------------------------------------


def a_pod(**spec: object) -> Json:
    box = {"name": "shop", "image": "localhost/none", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    whole = {"nodeName": "worker-9", "containers": [box], "volumes": [volume], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shop", "labels": {"app": "shop"}}, "spec": whole}


CLAIM: Json = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
        "volumeName": "volume-9",
    },
}


NOT_SEEN = (
    "node Node/worker-9",
    "volume PersistentVolume/volume-9",
    "cluster volumes",
    "cluster storage classes",
    "cluster attachments",
    "system pods kube-system",
)


async def test_a_read_that_needs_the_cluster_is_a_gap_with_its_reason_and_never_an_empty_answer(
    confined: Confined, cluster: Cluster
) -> None:
    team = cluster.kubectl.within(confined.team)
    for one in (CLAIM, a_pod()):
        answer = await asyncio.to_thread(team.create, one)
        assert answer.accepted, answer.err
    target_reader = ClusterTargetReader(confined.kube.cluster, Redactor(()), SystemClock())

    found = await target_reader.snapshot(TargetRef(kind="Pod", name="shop", namespace=confined.team))

    gaps = {gap.what: gap.why for gap in found.gaps}
    for what in NOT_SEEN:
        assert gaps.get(what, "").startswith("Forbidden: "), (what, gaps)
    refused = [one for one in found.evidence if "is forbidden" in one.text]
    assert refused
    assert not any(one.holds or one.empty for one in refused)
