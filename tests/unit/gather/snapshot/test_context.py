"""Owner chain and enrichment: pipeline, sections 13.1, 13.2 and 20.7."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from inquest.adapters.kubernetes.discovery import LEAST_AGE, Discovery
from inquest.adapters.kubernetes.transport import Reply, Request
from inquest.api.refs import TargetRef
from inquest.api.types import Detection
from inquest.core.cluster.detected_labels import ALL_DETECTIONS, Quota
from inquest.core.cluster.hashes import spec_hash
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Forbidden, InquestError, NotFound, RateLimited, Unavailable
from inquest.gather.snapshot.collector import ClusterTargetReader
from inquest.gather.snapshot.context import ContextReader, owner_chain
from inquest.ports.kubernetes import ResourceKind
from tests.support.tables import each_row
from tests.unit.gather.snapshot.support import FakeClock, FakeCluster, cluster, made, owner

DEPLOYMENT = TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace="shop")
POD = TargetRef(kind="Pod", name="api-2-b", namespace="shop")


@dataclass
class Later(FakeClock):
    """A clock that goes when it is told to."""

    moment: float = 0.0

    def monotonic(self) -> float:
        return self.moment


DOWN = Unavailable("kubernetes", "timed out")


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-01+C-CX-2"])
async def test_the_start_is_not_in_the_chain() -> None:
    chain = await owner_chain(cluster(), FakeClock(), POD)

    assert [ref.display for ref in chain.owners] == ["ReplicaSet/api-2", "Deployment/api"]
    assert chain.root.api_version == "apps/v1"
    assert chain.root.namespace == "shop"
    assert chain.verified


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-01+C-CX-2"])
async def test_a_pod_without_owners_is_root() -> None:
    chain = await owner_chain(cluster(made("Pod", "lone")), FakeClock(), POD.model_copy(update={"name": "lone"}))

    assert chain.owners == ()
    assert chain.root.display == "Pod/lone"
    assert chain.verified


@dataclass
class Served:
    """A transport that serves these kinds and nothing else, and counts how often it is asked."""

    kinds: list[ResourceKind]
    reads: int = 0

    async def send(self, request: Request) -> Reply:
        self.reads += 1
        wanted = [kind for kind in self.kinds if bool(kind.group) is (request.path == "/apis")]
        items = [{"metadata": {"name": kind.group}, "versions": [_version(kind)]} for kind in wanted]
        return Reply(200, {}, json.dumps({"items": items}).encode())


def _version(kind: ResourceKind) -> dict[str, Any]:
    resource = {"resource": kind.plural, "responseKind": {"kind": kind.kind}, "scope": "Namespaced"}
    return {"version": kind.version, "resources": [resource]}


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-01"])
async def test_an_owner_whose_kind_was_installed_later_is_found_after_one_reset() -> None:
    rollout = ResourceKind("argoproj.io", "v1alpha1", "Rollout", "rollouts", True)
    pods = ResourceKind("", "v1", "Pod", "pods", True)
    pod = made("Pod", "lone", metadata={"ownerReferences": [owner("Rollout", "x", "argoproj.io/v1alpha1")]})
    world = cluster(pod, made("Rollout", "x", api_version="argoproj.io/v1alpha1"))
    served, clock = Served([pods]), Later()
    world.kind = Discovery(served, clock).resolve  # type: ignore[arg-type, method-assign]
    await world.kind("Pod")

    served.kinds.append(rollout)
    clock.moment += LEAST_AGE
    chain = await owner_chain(world, clock, POD.model_copy(update={"name": "lone"}))

    assert [ref.display for ref in chain.owners] == ["Rollout/x"]
    assert chain.verified
    assert served.reads == 4, "two documents at first, two after the one reset"


async def test_the_controller_counts_wherever_it_stands() -> None:
    other = {**owner("StatefulSet", "x"), "controller": False}
    pod = made("Pod", "lone", metadata={"ownerReferences": [other, owner("Deployment", "api")]})

    chain = await owner_chain(cluster(pod), FakeClock(), POD.model_copy(update={"name": "lone"}))

    assert [ref.display for ref in chain.owners] == ["Deployment/api"]


async def test_an_owner_that_cannot_be_fetched_stays_and_is_root_unverified() -> None:
    chain = await owner_chain(cluster(broken={"get ReplicaSet": [Forbidden("no")]}), FakeClock(), POD)

    assert [ref.display for ref in chain.owners] == ["ReplicaSet/api-2"]
    assert not chain.verified
    assert chain.root_object is None
    assert [gap.what for gap in chain.gaps] == ["get ReplicaSet/api-2"]


async def test_an_owner_of_an_unknown_kind_ends_the_chain() -> None:
    pod = made("Pod", "lone", metadata={"ownerReferences": [owner("Rollout", "x", "argoproj.io/v1alpha1")]})

    chain = await owner_chain(cluster(pod), FakeClock(), POD.model_copy(update={"name": "lone"}))

    assert chain.owners == ()
    assert chain.gaps


async def test_a_cluster_scoped_owner_has_no_namespace() -> None:
    pod = made("Pod", "mirror", metadata={"ownerReferences": [owner("Node", "node-1", "v1")]})

    chain = await owner_chain(cluster(pod), FakeClock(), POD.model_copy(update={"name": "mirror"}))

    assert chain.root.display == "Node/node-1"
    assert chain.root.namespace is None


async def test_a_circle_ends_where_it_began() -> None:
    one = made("Job", "a", api_version="batch/v1", metadata={"ownerReferences": [owner("Job", "b", "batch/v1")]})
    two = made("Job", "b", api_version="batch/v1", metadata={"ownerReferences": [owner("Job", "a", "batch/v1")]})

    chain = await owner_chain(FakeCluster([one, two]), FakeClock(), TargetRef(kind="Job", name="a", namespace="shop"))

    assert [ref.display for ref in chain.owners] == ["Job/b"]


@pytest.mark.parametrize((), [()], ids=["C-CX-2"])
async def test_a_chain_has_at_most_ten_owners() -> None:
    jobs = [
        made(
            "Job",
            f"j{n}",
            api_version="batch/v1",
            metadata={"ownerReferences": [owner("Job", f"j{n + 1}", "batch/v1")]},
        )
        for n in range(12)
    ]

    chain = await owner_chain(FakeCluster(jobs), FakeClock(), TargetRef(kind="Job", name="j0", namespace="shop"))

    assert len(chain.owners) == 10


async def test_a_cluster_scoped_start_loses_its_namespace() -> None:
    chain = await owner_chain(cluster(), FakeClock(), TargetRef(kind="Node", name="node-1", namespace="shop"))

    assert chain.target.namespace is None


GONE: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "a kind that nobody serves keeps its namespace": ("Gadget", "shop", ("scope of Gadget is not known",)),
    "a namespaced kind": ("Deployment", "shop", ()),
    "a cluster-scoped kind": ("Node", None, ()),
}


@pytest.mark.parametrize(("kind", "namespace", "warnings"), GONE.values(), ids=GONE.keys())
async def test_the_scope_of_what_is_not_there_is_that_of_its_kind(
    kind: str, namespace: str | None, warnings: tuple[str, ...]
) -> None:
    context = await ContextReader(cluster(), FakeClock()).resolve(TargetRef(kind=kind, name="gone", namespace="shop"))

    assert (context.target.namespace, context.warnings) == (namespace, warnings)
    assert not context.verified


async def test_several_groups_serve_the_kind_and_the_one_that_has_it_wins() -> None:
    widget = made("Widget", "w", api_version="b.example/v1")

    chain = await owner_chain(FakeCluster([widget]), FakeClock(), TargetRef(kind="Widget", name="w", namespace="shop"))

    assert chain.target.api_version == "b.example/v1"
    assert chain.verified


WIDGETS = ("a.example/v1", "b.example/v1")
SAID: dict[str, tuple[str, str, tuple[str, ...], bool]] = {
    # said → kind, api version, what must be named, whether the object was read
    "one group serves it": ("Pod", "", (), True),
    "several groups do": ("Widget", "", WIDGETS, True),
    "one of several was named": ("Widget", "b.example/v1", (), True),
    "the group that was named does not serve it": ("Widget", "c.example/v1", WIDGETS, False),
    "the only group was not named": ("Pod", "apps/v1", ("v1",), False),
    "another version of the group was named": ("Deployment", "apps/v1beta1", (), True),
    "nobody serves it": ("Gadget", "c.example/v1", (), False),
}


@each_row(("kind", "said", "choices", "read"), SAID.values(), ids=SAID.keys())
async def test_the_versions_of_which_one_must_be_named_are_told(
    kind: str, said: str, choices: tuple[str, ...], read: bool
) -> None:
    objects = [made("Pod", "x"), made("Widget", "x", api_version="b.example/v1")]
    objects.append(made("Deployment", "x", api_version="apps/v1"))
    reader = ContextReader(FakeCluster(objects), FakeClock())

    context = await reader.resolve(TargetRef(kind=kind, name="x", namespace="shop", api_version=said or None))

    assert (context.choices, context.verified) == (choices, read)
    assert bool(context.unverified_why) is not read


async def test_where_two_groups_have_the_object_both_are_named() -> None:
    """The first is taken, for something must be looked at, and it is said that nobody has said so."""
    objects = [made("Widget", "x", api_version=group, metadata={"uid": group}) for group in WIDGETS]

    context = await ContextReader(FakeCluster(objects), FakeClock()).resolve(
        TargetRef(kind="Widget", name="x", namespace="shop")
    )

    assert (context.choices, context.rivals, context.target.api_version) == (WIDGETS, WIDGETS, WIDGETS[0])
    assert context.warnings == (
        "Widget/x is there in a.example/v1, b.example/v1, and no apiVersion was said: that of a.example/v1 was taken",
    )


async def test_one_object_under_two_groups_is_one() -> None:
    objects = [made("Widget", "x", api_version=group, metadata={"uid": "u"}) for group in WIDGETS]

    context = await ContextReader(FakeCluster(objects), FakeClock()).resolve(
        TargetRef(kind="Widget", name="x", namespace="shop")
    )

    assert (context.rivals, context.warnings) == ((), ())


MALFORMED = {
    "C-AR-10 volumes that are a word": "data",
    "C-AR-10 volumes that are words": ["data"],
    "C-AR-10 a number": 3,
}


@pytest.mark.parametrize("volumes", MALFORMED.values(), ids=MALFORMED.keys())
async def test_labels_of_a_template_in_an_odd_shape_are_unknown_and_it_is_said(volumes: Any) -> None:
    """No schema of Kubernetes holds a custom resource to the shape of a workload."""
    widget = made("Widget", "w", api_version="b.example/v1", spec={"template": {"spec": {"volumes": volumes}}})

    context = await ContextReader(FakeCluster([widget]), FakeClock()).resolve(
        TargetRef(kind="Widget", name="w", namespace="shop")
    )

    assert (context.verified, context.labels.stateful) == (True, False)
    assert Detection.STATEFUL in context.labels.failed_detections
    assert context.warnings == (
        "Widget/w: volumes of its template are no list of objects: whether it keeps data is not known",
    )


async def test_one_name_of_two_groups_is_two_targets() -> None:
    objects = [made("Widget", "x", api_version=group) for group in WIDGETS]
    reader = ContextReader(FakeCluster(objects), FakeClock())

    found = [
        await reader.resolve(TargetRef(kind="Widget", name="x", namespace="shop", api_version=group))
        for group in WIDGETS
    ]

    assert tuple(context.target.api_version for context in found) == WIDGETS


STARTS: dict[str, tuple[InquestError, list[float], bool, bool]] = {
    # error → pauses, hard failure, deleted
    "down": (DOWN, [1.0, 2.0, 4.0], True, False),
    "limited": (RateLimited("kubernetes"), [1.0, 2.0, 4.0], True, False),
    "denied": (Forbidden("get pods is forbidden"), [], True, False),
    "pipeline-20.7-05 gone": (NotFound("no such pod"), [], False, True),
}


@pytest.mark.parametrize(("error", "pauses", "hard", "deleted"), STARTS.values(), ids=STARTS.keys())
async def test_only_failures_on_the_start_are_errors(
    error: InquestError, pauses: list[float], hard: bool, deleted: bool
) -> None:
    clock = FakeClock()

    chain = await owner_chain(cluster(broken={"get Pod": [error]}), clock, POD)

    assert pauses == clock.slept
    assert (hard, deleted) == (bool(chain.failure), chain.deleted)
    assert chain.gaps
    assert not chain.verified


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-05"])
async def test_an_unknown_kind_is_no_hard_failure() -> None:
    chain = await owner_chain(cluster(), FakeClock(), TargetRef(kind="Gadget", name="x", namespace="shop"))

    assert chain.failure == ""
    assert chain.gaps[0].why.startswith("UnknownKind")


@pytest.mark.parametrize((), [()], ids=["pipeline-20.7-05"])
async def test_without_retries_a_time_out_is_no_hard_failure() -> None:
    chain = await owner_chain(cluster(broken={"get Pod": [DOWN]}), FakeClock(), POD, pauses=())

    assert chain.failure == ""
    assert chain.gaps


async def test_a_start_that_answers_the_second_time_is_fine() -> None:
    chain = await owner_chain(cluster(broken={"get Pod": [DOWN, None]}), FakeClock(), POD)

    assert chain.verified
    assert chain.gaps == ()


async def test_the_context_is_about_the_root() -> None:
    found = cluster()

    context = await ContextReader(found, FakeClock()).resolve(POD)

    deployment = next(each for each in found.objects if each["kind"] == "Deployment")
    assert context.root_uid == "Deployment-api"
    assert context.spec_hash == spec_hash(deployment)
    assert context.labels.hpa_enabled is True
    assert context.labels.resource_quota_constrained is True
    assert context.quota == {"cpu": Quota("4", "1")}
    assert context.namespace_labels == {"environment": "production"}
    assert context.root_labels == {"team": "shop"}
    assert context.target_pin is not None
    assert (context.target_pin.uid, context.target_pin.resource_version) == ("Pod-api-2-b", "7")
    assert context.gaps == ()


async def test_replicas_of_an_autoscaled_root_are_no_drift() -> None:
    before, after = cluster(), cluster()
    scaled = next(each for each in after.objects if each["kind"] == "Deployment")
    scaled["spec"] = {**scaled["spec"], "replicas": 9}

    first = await ContextReader(before, FakeClock()).resolve(DEPLOYMENT)
    second = await ContextReader(after, FakeClock()).resolve(DEPLOYMENT)

    assert first.drift_hash == second.drift_hash
    assert first.spec_hash != second.spec_hash


def _mounting() -> dict[str, object]:
    volumes = [{"name": "c", "configMap": {"name": "conf"}}]
    return made("Pod", "lone", spec={"containers": [], "volumes": volumes})


LONE = TargetRef(kind="Pod", name="lone", namespace="shop")


async def test_config_maps_count_for_drift_and_an_absent_one_too() -> None:
    absent = await ContextReader(cluster(_mounting()), FakeClock()).resolve(LONE)
    empty = await ContextReader(cluster(_mounting(), made("ConfigMap", "conf")), FakeClock()).resolve(LONE)

    assert absent.gaps == ()
    assert absent.spec_hash == empty.spec_hash
    assert len({absent.drift_hash, empty.drift_hash, absent.spec_hash}) == 3


async def test_a_config_map_that_cannot_be_read_leaves_no_drift_hash() -> None:
    found = cluster(_mounting(), broken={"get ConfigMap": [Forbidden("no")]})

    context = await ContextReader(found, FakeClock()).resolve(LONE)

    assert context.drift_hash == ""
    assert context.spec_hash
    assert [gap.what for gap in context.gaps] == ["get ConfigMap/conf"]


LISTS: dict[str, Detection] = {
    "list PodDisruptionBudget": Detection.PDB_PROTECTED,
    "list HorizontalPodAutoscaler": Detection.HPA_ENABLED,
    "list NetworkPolicy": Detection.NETWORK_ISOLATED,
    "list ResourceQuota": Detection.RESOURCE_QUOTA_CONSTRAINED,
    "get Namespace": Detection.GIT_OPS_MANAGED,
}


@pytest.mark.parametrize(("call", "expected"), LISTS.items(), ids=LISTS.keys())
async def test_a_list_that_fails_is_a_failed_detection_and_a_gap(call: str, expected: Detection) -> None:
    context = await ContextReader(cluster(broken={call: [DOWN]}), FakeClock()).resolve(DEPLOYMENT)

    assert context.labels.failed_detections == (expected,)
    assert len(context.gaps) == 1


async def test_a_list_that_was_cut_is_no_proof_of_absence() -> None:
    more = [made("PodDisruptionBudget", name, api_version="policy/v1") for name in ("a", "b")]

    context = await ContextReader(cluster(*more, most=1), FakeClock()).resolve(DEPLOYMENT)

    assert context.labels.failed_detections == (Detection.PDB_PROTECTED,)


async def test_a_target_that_is_gone_gives_a_context_of_what_is_left() -> None:
    context = await ContextReader(cluster(), FakeClock()).resolve(TargetRef(kind="Pod", name="gone", namespace="shop"))

    assert context.deleted
    assert context.failure == ""
    assert context.labels.failed_detections == ALL_DETECTIONS
    assert context.spec_hash == ""


async def test_a_second_request_makes_no_call() -> None:
    found = cluster()
    reader = ContextReader(found, FakeClock())
    first = await reader.resolve(DEPLOYMENT)
    calls = list(found.asked)

    assert await reader.resolve(DEPLOYMENT) is first
    assert calls == found.asked


async def test_a_hard_failure_is_not_remembered() -> None:
    found = cluster(broken={"get Pod": [Forbidden("no"), None]})
    reader = ContextReader(found, FakeClock())

    assert (await reader.resolve(POD)).failure
    assert (await reader.resolve(POD)).failure == ""


async def test_the_eyes_look_anew_each_time() -> None:
    found = cluster()
    target_reader = ClusterTargetReader(found, Redactor(), FakeClock())

    first = await target_reader.context(DEPLOYMENT)
    calls = len(found.asked)

    assert first == await target_reader.context(DEPLOYMENT)
    assert len(found.asked) == 2 * calls
    assert (await target_reader.snapshot(DEPLOYMENT)).root == first.root


async def test_a_pin_is_what_a_guard_compares_read_anew_and_nothing_that_was_not_read_is_told() -> None:
    found = cluster()
    target_reader = ClusterTargetReader(found, Redactor(), FakeClock())
    whole = await target_reader.context(POD)
    asked = len(found.asked)

    pin = await target_reader.pin(POD)

    compared = ("target", "root", "chain", "target_pin", "root_pin", "root_labels", "target_labels")
    assert all(getattr(pin, name) == getattr(whole, name) for name in compared)
    assert pin.spec_hash == whole.spec_hash
    assert len(found.asked) - asked == asked - 4
    assert not pin.namespace_labels
    assert set(pin.labels.failed_detections) == {
        Detection.GIT_OPS_MANAGED,
        Detection.PDB_PROTECTED,
        Detection.NETWORK_ISOLATED,
        Detection.RESOURCE_QUOTA_CONSTRAINED,
    }


async def test_a_reference_to_another_uid_does_not_move_the_root() -> None:
    forged = {**owner("Deployment", "api"), "uid": "of-another-one"}
    pod = made("Pod", "lone", metadata={"ownerReferences": [forged]})

    chain = await owner_chain(cluster(pod), FakeClock(), POD.model_copy(update={"name": "lone"}))

    assert chain.root.display == "Pod/lone"
    assert not chain.verified
    assert [gap.what for gap in chain.gaps] == ["owner Deployment/api"]


async def test_the_labels_of_the_target_itself_are_told() -> None:
    lone = made("Pod", "lone", metadata={"labels": {"inquest.dev/managed": "false"}})

    context = await ContextReader(cluster(lone), FakeClock()).resolve(POD.model_copy(update={"name": "lone"}))

    assert context.target_labels == {"inquest.dev/managed": "false"}
