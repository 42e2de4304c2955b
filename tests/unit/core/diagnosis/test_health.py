"""Rows of behaviours, section 19.2: the STATUS word and the flags."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.cluster.pods import status_word
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.diagnosis.health import concerned_pods, flags_of, health_of
from inquest.core.diagnosis.target_state import describe_settling
from inquest.core.evidence.evidence import Health
from tests.support.tables import each_row
from tests.unit.core.diagnosis.detectors.support import snapshot_of

Pod = dict[str, Any]


def pod(*containers: Pod, name: str = "api-x", owner: str = "Job", **rest: Any) -> Pod:
    metadata = {"name": name, "namespace": "shop", **rest.pop("metadata", {})}
    metadata["ownerReferences"] = [{"kind": owner, "name": "api", "controller": True}]
    status = {"phase": "Running", "containerStatuses": list(containers), **rest}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": status}


def waiting(reason: str) -> Pod:
    return {"name": "app", "ready": False, "state": {"waiting": {"reason": reason}}}


def terminated(**end: Any) -> Pod:
    return {"name": "app", "ready": False, "state": {"terminated": end}}


def running(*, ready: bool = True, **last: Any) -> Pod:
    found: Pod = {"name": "app", "ready": ready, "state": {"running": {}}}
    return {**found, "lastState": {"terminated": last}} if last else found


def ready(status: str, since: str = "2026-11-22T09:00:00Z") -> list[Pod]:
    return [{"type": "Ready", "status": status, "lastTransitionTime": since}]


GONE = {"deletionTimestamp": "2026-11-22T09:59:00Z"}
DONE_INIT = {"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
TWO_INITS = {"initContainers": [{"name": "a"}, {"name": "b"}]}

WORDS: dict[str, tuple[Pod, str]] = {
    "P01 killed for memory": (pod(terminated(reason="OOMKilled", exitCode=137)), "OOMKilled"),
    "P02 an exit code without reason": (pod(terminated(exitCode=3)), "ExitCode:3"),
    "P03 running, not ready": (pod(running(ready=False), conditions=ready("False")), "Running"),
    "P04 one done, one running": (
        pod(terminated(reason="Completed", exitCode=0), running(), conditions=ready("False")),
        "NotReady",
    ),
    "one done, one running, pod ready": (
        pod(terminated(reason="Completed", exitCode=0), running(), conditions=ready("True")),
        "Running",
    ),
    "P05 the first container wins": (pod(waiting("ImagePullBackOff"), waiting("CrashLoopBackOff")), "ImagePullBackOff"),
    "P06 evicted": (pod(phase="Failed", reason="Evicted"), "Evicted"),
    "P07 the second init container waits": (
        {**pod(initContainerStatuses=[DONE_INIT, {"name": "b", "state": {"waiting": {"reason": "ImagePullBackOff"}}}])},
        "Init:ImagePullBackOff",
    ),
    "P08 two that have not begun": (
        {
            **pod(
                initContainerStatuses=[
                    {"name": "a", "state": {"waiting": {"reason": "PodInitializing"}}},
                    {"name": "b", "state": {"waiting": {"reason": "PodInitializing"}}},
                ]
            ),
            "spec": TWO_INITS,
        },
        "Init:0/2",
    ),
    "P09 being deleted": (pod(running(), metadata=GONE), "Terminating"),
    "P10 its node is lost": (pod(running(), metadata=GONE, reason="NodeLost"), "Unknown"),
    "P17 a signal": (pod(terminated(exitCode=137, signal=9)), "Signal:9"),
    "P18 a signal in an init container": (
        pod(initContainerStatuses=[{"name": "a", "state": {"terminated": {"exitCode": 137, "signal": 9}}}]),
        "Init:Signal:9",
    ),
    "P19 failed, then deleted": (
        pod(terminated(reason="Error", exitCode=1), metadata=GONE, phase="Failed"),
        "Error",
    ),
    "P20 pending": (pod(phase="Pending"), "Pending"),
    "gated": (
        pod(phase="Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        "SchedulingGated",
    ),
    "a sidecar that has started holds nothing up": (
        {
            **pod(running(), initContainerStatuses=[{"name": "a", "started": True, "state": {"running": {}}}]),
            "spec": {"initContainers": [{"name": "a", "restartPolicy": "Always"}]},
        },
        "Running",
    ),
}


@pytest.mark.parametrize(("found", "expected"), WORDS.values(), ids=WORDS.keys())
def test_the_word_is_the_one_that_kubectl_prints(found: Pod, expected: str) -> None:
    assert expected == status_word(found)


TARGET = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "api", "namespace": "shop"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}}
THREE = [pod(running(), name=name, conditions=ready("True")) for name in "abc"]


def event(at: str = "2026-11-22T09:59:00Z", name: str = "a") -> Pod:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "shop"},
        "type": "Warning",
        "reason": "BackOff",
        "involvedObject": {"kind": "Pod", "name": name},
        "lastTimestamp": at,
    }


FLAGS: dict[str, tuple[dict[str, Any], tuple[bool, bool, bool, int], Health]] = {
    # objects → the spec's issues, ours, warnings, count
    "P11 three running": ({"objects": [TARGET, *THREE]}, (False, False, False, 3), Health.HEALTHY),
    "P12 one backs off": (
        {"objects": [TARGET, pod(waiting("CrashLoopBackOff")), pod(running(), name="b")]},
        (True, True, False, 2),
        Health.UNHEALTHY,
    ),
    "P13 events were refused": (
        {"objects": [TARGET, *THREE], "gaps": ["warning events"]},
        (False, False, False, 3),
        Health.UNKNOWN,
    ),
    "P14 the listing was cut": (
        {"objects": [TARGET, *THREE], "cut": ["pods Job/api"]},
        (False, False, False, 3),
        Health.UNKNOWN,
    ),
    "a cut listing of neighbours says nothing": (
        {"objects": [TARGET, *THREE], "cut": ["neighbour pods shop"]},
        (False, False, False, 3),
        Health.HEALTHY,
    ),
    "P15 a warning event only": ({"objects": [TARGET, *THREE, event()]}, (False, False, True, 3), Health.UNKNOWN),
    "a warning from before the recovery": (
        {"objects": [TARGET, *THREE, event("2026-11-22T08:00:00Z")]},
        (False, False, False, 3),
        Health.HEALTHY,
    ),
    "a warning about a neighbour": (
        {"objects": [TARGET, *THREE, event(name="other")]},
        (False, False, False, 3),
        Health.HEALTHY,
    ),
    "P03 running, not ready for long": (
        {"objects": [TARGET, pod(running(ready=False), conditions=ready("False"))]},
        (False, True, False, 1),
        Health.UNHEALTHY,
    ),
    "running, not ready for seconds": (
        {"objects": [TARGET, pod(running(ready=False), conditions=ready("False", "2026-11-22T09:59:50Z"))]},
        (False, False, False, 1),
        Health.HEALTHY,
    ),
    "P20 one pending": ({"objects": [TARGET, pod(phase="Pending")]}, (True, True, False, 1), Health.UNHEALTHY),
    "P21 ended badly four minutes ago": (
        {"objects": [TARGET, pod(running(exitCode=1, finishedAt="2026-11-22T09:56:00Z"))]},
        (False, True, False, 1),
        Health.UNHEALTHY,
    ),
    "P22 a Deployment's pod is done": (
        {"objects": [DEPLOYMENT, pod(terminated(reason="Completed", exitCode=0), owner="Deployment")]},
        (False, True, False, 1),
        Health.UNHEALTHY,
    ),
    "a Job's pod is done": (
        {"objects": [TARGET, pod(terminated(reason="Completed", exitCode=0))]},
        (False, False, False, 1),
        Health.HEALTHY,
    ),
    "seconds of ContainerCreating": (
        {
            "objects": [
                TARGET,
                pod(waiting("ContainerCreating"), metadata={"creationTimestamp": "2026-11-22T09:59:50Z"}),
            ]
        },
        (True, False, False, 1),
        Health.HEALTHY,
    ),
}


@pytest.mark.parametrize(("case", "expected", "well"), FLAGS.values(), ids=FLAGS.keys())
def test_the_flags_say_what_was_read(
    case: dict[str, Any], expected: tuple[bool, bool, bool, int], well: Health
) -> None:
    snapshot = snapshot_of(case)

    flags = flags_of(snapshot)

    assert expected == (flags.has_issues, bool(flags.issues), flags.has_warnings, flags.pod_count)
    assert well == health_of(snapshot)


def test_p14_a_cut_listing_makes_the_count_inexact() -> None:
    flags = flags_of(snapshot_of({"objects": [TARGET, *THREE], "cut": ["pods Job/api"]}))

    assert not flags.pod_count_exact


@pytest.mark.parametrize((), [()], ids=["P16"])
def test_a_refused_listing_is_a_gap_and_no_count() -> None:
    flags = flags_of(snapshot_of({"objects": [TARGET], "gaps": ["pods Job/api"]}))

    assert flags.pod_count is None
    assert not flags.pod_count_exact
    assert not flags.complete


BESIDE = ["witness log a app shop", "ingresses shop", "config map ConfigMap/x shop", "system pods kube-system"]
RESTS_ON = ["log a app shop", "node Node/x", "services shop", "claims shop", "get Deployment/api"]


@each_row(("gap", "well"), [*((gap, True) for gap in BESIDE), *((gap, False) for gap in RESTS_ON)])
def test_health_rests_on_the_reads_about_the_target(gap: str, well: bool) -> None:
    snapshot = snapshot_of({"objects": [TARGET, *THREE], "gaps": [gap]})

    assert health_of(snapshot) is (Health.HEALTHY if well else Health.UNKNOWN)
    assert not snapshot.complete


def test_refused_neighbours_leave_the_count() -> None:
    flags = flags_of(snapshot_of({"objects": [TARGET, *THREE], "gaps": ["neighbour pods shop", "cluster nodes"]}))

    assert (flags.pod_count, flags.pod_count_exact, flags.complete) == (3, True, True)


def of(kind: str, spec: Pod | None = None, *, name: str = "x", **status: Any) -> Pod:
    metadata = {"name": name, "namespace": "" if kind == "Node" else "shop", "labels": {"app": "api"}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status}


REFUSED = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
UNREAD = {"type": "ScalingActive", "status": "False", "reason": "FailedGetMetric"}
LIMITED = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
SCALES = {"scaleTargetRef": {"kind": "Job", "name": "api"}}
SURROUNDINGS: dict[str, tuple[Pod, str]] = {
    "a workload with fewer ready than wanted": (of("StatefulSet", {"replicas": 2}, readyReplicas=1), "1 of 2 ready"),
    "a rollout that does not progress": (
        of("Deployment", {}, conditions=[REFUSED]),
        "Progressing is False (ProgressDeadlineExceeded)",
    ),
    "a revision that wants nothing": (of("ReplicaSet", {"replicas": 0}), ""),
    "a claim that is not bound": (of("PersistentVolumeClaim", {}, phase="Pending"), "Pending, not Bound"),
    "a node that is not ready": (of("Node", {}, conditions=[{"type": "Ready", "status": "Unknown"}]), "Ready"),
    "a node under pressure": (
        of("Node", {}, conditions=[{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]),
        "DiskPressure",
    ),
    "an autoscaler that reads nothing": (
        of("HorizontalPodAutoscaler", SCALES, conditions=[UNREAD]),
        "ScalingActive is False (FailedGetMetric)",
    ),
    "an autoscaler at its maximum": (
        of("HorizontalPodAutoscaler", {**SCALES, "maxReplicas": 5}, conditions=[LIMITED]),
        "at its maximum of 5",
    ),
    "a quota at its limit": (of("ResourceQuota", {}, hard={"cpu": "2"}, used={"cpu": "2000m"}), "cpu at its limit"),
    "a quota with room": (of("ResourceQuota", {}, hard={"cpu": "2"}, used={"cpu": "1900m"}), ""),
}


def needy(**spec: Any) -> Pod:
    """A pod of the target that runs on node x with claim x."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]
    found = pod(running(), name="needy", conditions=ready("True"), metadata={"labels": {"app": "api"}})
    return {**found, "spec": {"nodeName": "x", "volumes": volumes, **spec}}


def ours(found: Pod) -> Pod:
    """The same object, controlled by the target."""
    owner = [{"kind": "Job", "name": "api", "controller": True}]
    return {**found, "metadata": {**found["metadata"], "ownerReferences": owner}}


@each_row(("found", "expected"), SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_surroundings_are_issues_too(found: Pod, expected: str) -> None:
    issues = flags_of(snapshot_of({"objects": [TARGET, needy(), ours(found)]})).issues

    assert issues == ((f"{found['kind']}/x: {expected}",) if expected else ())


NEIGHBOURS = {sentence: found for sentence, (found, said) in SURROUNDINGS.items() if said and "quota" not in sentence}


@each_row("found", NEIGHBOURS.values(), ids=NEIGHBOURS.keys())
def test_the_illness_of_a_neighbour_is_not_the_targets(found: Pod) -> None:
    stranger = {**found, "spec": {key: value for key, value in found["spec"].items() if key != "scaleTargetRef"}}

    assert flags_of(snapshot_of({"objects": [TARGET, *THREE, stranger]})).issues == ()


@each_row("found", NEIGHBOURS.values(), ids=NEIGHBOURS.keys())
def test_whatever_ails_in_a_namespace_ails_the_namespace(found: Pod) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}

    issues = flags_of(snapshot_of({"objects": [namespace, needy(), found]})).issues

    assert len(issues) == 1


def endpoints(service: str, *, ready: bool) -> Pod:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{service}-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
    }


SERVICE = of("Service", {"selector": {"app": "api"}})


def test_a_service_without_a_ready_endpoint_is_an_issue() -> None:
    snapshot = snapshot_of({"objects": [TARGET, needy(), SERVICE, endpoints("x", ready=False)]})

    assert flags_of(snapshot).issues == ("Service/x: no ready endpoint",)


def balanced(made: str = "2026-11-22T09:00:00Z", **status: Any) -> Pod:
    found = of("Service", {"type": "LoadBalancer"})
    return {**found, "metadata": {**found["metadata"], "creationTimestamp": made}, "status": {"loadBalancer": status}}


def test_a_service_that_waits_for_its_address_is_an_issue_of_its_own() -> None:
    assert flags_of(snapshot_of({"objects": [balanced()]})).issues == ("Service/x: no address of a load balancer",)


def test_a_service_with_an_address_or_made_just_now_is_no_issue() -> None:
    for found in (balanced(ingress=[{"ip": "203.0.113.7"}]), balanced("2026-11-22T09:58:00Z")):
        assert flags_of(snapshot_of({"objects": [found]})).issues == ()


def test_an_address_that_is_missing_is_no_issue_of_the_pods_behind_it() -> None:
    assert flags_of(snapshot_of({"objects": [TARGET, *THREE, balanced()]})).issues == ()


def test_the_service_of_somebody_else_is_no_issue() -> None:
    other = of("Service", {"selector": {"app": "other"}})

    assert flags_of(snapshot_of({"objects": [TARGET, needy(), other, endpoints("x", ready=False)]})).issues == ()


def test_a_node_that_is_not_there_is_an_issue() -> None:
    absent = [{"kind": "Node", "name": "x", "namespace": None}]

    assert flags_of(snapshot_of({"objects": [TARGET, needy()], "absent": absent})).issues == ("Node/x: does not exist",)


LEAVING = {"2026-11-22T09:00:00Z": 1, "2026-11-22T09:59:50Z": 0}


@each_row(("at", "count"), LEAVING.items(), ids=["an hour ago", "a moment ago"])
@each_row("kind", ["Namespace", "PersistentVolumeClaim", "Tenant"])
def test_a_target_that_does_not_go_is_an_issue(kind: str, at: str, count: int) -> None:
    metadata = {"name": "shop", "deletionTimestamp": at, **({} if kind == "Namespace" else {"namespace": "shop"})}
    going = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "status": {"phase": "Bound"}}

    assert len(flags_of(snapshot_of({"objects": [going]})).issues) == count


INGRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "x", "namespace": "shop"},
    "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}},
}
CLAIM = of("PersistentVolumeClaim", {"volumeName": "x"}, phase="Bound")
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "x"},
    "spec": {"claimRef": {"namespace": "shop", "name": "x"}},
}
BUDGET = of("PodDisruptionBudget", {"selector": {"matchLabels": {"app": "api"}}})
POLICY = of("NetworkPolicy", {"podSelector": {"matchLabels": {"app": "api"}}})
ACCOUNT = of("ServiceAccount")
CONFIG = of("ConfigMap")
TARGETS: dict[str, list[Pod]] = {
    "a namespace": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}],
    "a node": [of("Node", name="x")],
    "a service": [SERVICE],
    "an ingress": [INGRESS, SERVICE],
    "a slice": [endpoints("x", ready=True), SERVICE],
    "a claim": [CLAIM],
    "a volume": [VOLUME, CLAIM],
    "a config map": [CONFIG],
    "an account": [ACCOUNT],
    "an autoscaler": [of("HorizontalPodAutoscaler", SCALES)],
    "a budget": [BUDGET],
    "a policy": [POLICY],
}
ELSEWHERE = {"name": "stranger", "namespace": "elsewhere", "labels": {"app": "api"}}


@each_row("objects", TARGETS.values(), ids=TARGETS.keys())
def test_a_target_is_about_the_pods_that_it_selects_runs_or_holds(objects: list[Pod]) -> None:
    mine = needy(serviceAccountName="x", containers=[{"envFrom": [{"configMapRef": {"name": "x"}}]}])
    stranger = {**pod(waiting("CrashLoopBackOff"), owner="Job"), "metadata": ELSEWHERE, "spec": {"nodeName": "y"}}

    snapshot = snapshot_of({"objects": [*objects, mine, stranger]})

    assert [each.name for each in concerned_pods(snapshot)] == ["needy"]


QUANTITIES = {"1": 1.0, "100m": 0.1, "64Mi": 64 * 2**20, "1.5Gi": 1.5 * 2**30, "2k": 2000.0, "1e3": 1000.0, "x": None}


@each_row(("text", "expected"), QUANTITIES.items(), ids=QUANTITIES.keys())
def test_quantities(text: str, expected: float | None) -> None:
    assert expected == parse_quantity(text)


# --- what is over says nothing of now -----------------------------------------------------------------------------

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "api", "namespace": "shop"}}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = pod(terminated(reason="Error", exitCode=1), phase="Failed")
WELL = pod(running(), owner="ReplicaSet", conditions=ready("True"))
SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {
        "name": "api",
        "namespace": "shop",
        "ownerReferences": [{"kind": "Deployment", "name": "api", "controller": True}],
    },
    "spec": {"replicas": 4},
    "status": {"readyReplicas": 1},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "api", "namespace": "shop", "creationTimestamp": "2026-11-22T09:59:30Z"},
    "spec": {"replicas": 4},
    "status": {"readyReplicas": 1},
}


def warning(at: str) -> Pod:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": "api-x"},
        "type": "Warning",
        "lastTimestamp": at,
    }


PAST = {
    "a try of a job that succeeded afterwards": ([{**JOB, "status": COMPLETE}, FAILED], ()),
    "a try of a job that has not": ([JOB, FAILED], ("Pod/api-x: Error",)),
    "a pod that was asked to go a minute ago": ([pod(running(), owner="ReplicaSet", metadata=GONE)], ()),
    "a revision whose Deployment is seconds old": ([DEPLOYMENT, SET], ()),
}


@pytest.mark.parametrize(("objects", "issues"), PAST.values(), ids=list(PAST))
def test_what_is_over_is_no_issue(objects: list[Pod], issues: tuple[str, ...]) -> None:
    assert flags_of(snapshot_of({"objects": objects})).issues == issues


@pytest.mark.parametrize(("at", "warned"), [("2026-11-22T09:01:00Z", False), ("2026-11-22T09:30:00Z", True)])
def test_the_last_warnings_of_a_start_end_with_it(at: str, warned: bool) -> None:
    assert flags_of(snapshot_of({"objects": [WELL, warning(at)]})).has_warnings is warned


def evicted(at: str) -> Pod:
    end = terminated(reason="Error", exitCode=143, finishedAt=at)
    return pod(end, name="api-old", owner="ReplicaSet", phase="Failed", reason="Evicted")


def settled(ready: int) -> Pod:
    return {**SET, "spec": {"replicas": 1}, "status": {"readyReplicas": ready}}


@pytest.mark.parametrize(
    ("at", "replaced", "issues"),
    [
        ("2026-11-22T07:00:00Z", 1, ()),
        ("2026-11-22T07:00:00Z", 0, ("Pod/api-old: Error",)),
        ("2026-11-22T09:40:00Z", 1, ("Pod/api-old: Error",)),
    ],
    ids=["long ago and replaced", "long ago and not replaced", "just now and replaced"],
)
def test_an_evicted_pod_is_history_once_it_is_replaced(at: str, replaced: int, issues: tuple[str, ...]) -> None:
    deployment = {**DEPLOYMENT, "spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    snapshot = snapshot_of({"objects": [deployment, settled(replaced), evicted(at), WELL]})

    assert flags_of(snapshot).issues == issues


@pytest.mark.parametrize("gap", ["log api-x app shop", "previous log api-x app shop"])
@pytest.mark.parametrize(("status", "complete"), [(COMPLETE, True), ({}, False)], ids=["made up for", "still failed"])
def test_the_lost_log_of_a_pod_that_is_history_leaves_no_doubt(gap: str, status: Pod, complete: bool) -> None:
    snapshot = snapshot_of({"objects": [{**JOB, "status": status}, FAILED], "gaps": [gap]})

    assert flags_of(snapshot).complete is complete


PLACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
CLAIM = of("PersistentVolumeClaim", {"storageClassName": "fast"}, phase="Pending")


def storage(mode: str) -> Pod:
    found = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return {**found, "volumeBindingMode": mode}


@pytest.mark.parametrize(
    ("objects", "issues"),
    [
        ([storage("WaitForFirstConsumer")], ()),
        ([storage("Immediate")], ("PersistentVolumeClaim/x: Pending, not Bound",)),
        ([], ("PersistentVolumeClaim/x: Pending, not Bound",)),
        ([storage("WaitForFirstConsumer"), needy(nodeName=None)], ("PersistentVolumeClaim/x: Pending, not Bound",)),
    ],
    ids=["nobody uses it", "it need not wait", "the class was not read", "a pod uses it"],
)
def test_a_claim_may_wait_for_its_first_pod(objects: list[Pod], issues: tuple[str, ...]) -> None:
    assert flags_of(snapshot_of({"objects": [PLACE, CLAIM, *objects]})).issues == issues


YOUNG = pod(
    running(ready=False), name="api-new", owner="ReplicaSet", conditions=ready("False", since="2026-11-22T09:59:30Z")
)
UNHEALTHY = {**warning("2026-11-22T09:59:40Z"), "reason": "Unhealthy"}
UNHEALTHY = {**UNHEALTHY, "involvedObject": {"kind": "Pod", "name": "api-new"}}
ROLLED = {"replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}


def rolling(status: Pod = ROLLED, **spec: Any) -> Pod:
    return {**DEPLOYMENT, "spec": {"replicas": 1, **spec}, "status": status}


RESTARTED = {**YOUNG, "status": {**YOUNG["status"], "containerStatuses": [{**running(ready=False), "restartCount": 3}]}}
SETTLING: dict[str, tuple[list[Pod], bool]] = {
    "a new pod beside an old one": ([rolling(), SET, YOUNG, WELL], True),
    "a new pod that does not answer its probe yet": ([rolling(), SET, YOUNG, WELL, UNHEALTHY], True),
    "one pod of two": ([rolling({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1}, replicas=2), YOUNG], True),
    "a rollout that is done": ([rolling({"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}), WELL], False),
    "a new pod that ended before": ([rolling(), SET, RESTARTED, WELL, UNHEALTHY], False),
    "another warning": ([rolling(), SET, YOUNG, WELL, {**UNHEALTHY, "reason": "FailedMount"}], False),
    "a rollout that is paused": ([rolling(paused=True), SET, YOUNG, WELL], False),
    "a new pod that waits for long": (
        [rolling(), SET, {**YOUNG, "status": {**YOUNG["status"], "conditions": ready("False")}}, WELL],
        False,
    ),
}


@each_row(("objects", "expected"), SETTLING.values(), ids=list(SETTLING))
def test_a_change_that_is_on_its_way_is_named(objects: list[Pod], expected: bool) -> None:
    assert bool(describe_settling(snapshot_of({"objects": objects}))) is expected


def test_a_change_is_not_called_well_on_half_of_the_facts() -> None:
    assert describe_settling(snapshot_of({"objects": [rolling(), YOUNG], "gaps": ["warning events"]})) == ""
