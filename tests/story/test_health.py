"""Rows of behaviours, section 19.2: the STATUS word and the flags."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.story.evidence import Health
from inquest.story.health import flags_of, health, quantity, status_word
from tests.story.detectors.support import snapshot_of

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
    assert well == health(snapshot)


def test_p14_a_cut_listing_makes_the_count_inexact() -> None:
    flags = flags_of(snapshot_of({"objects": [TARGET, *THREE], "cut": ["pods Job/api"]}))

    assert not flags.pod_count_exact


def test_p16_a_refused_listing_is_a_gap_and_no_count() -> None:
    flags = flags_of(snapshot_of({"objects": [TARGET], "gaps": ["pods Job/api"]}))

    assert not flags.pod_count_exact
    assert not flags.complete


def of(kind: str, spec: Pod | None = None, **status: Any) -> Pod:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec or {}, "status": status}


SURROUNDINGS: dict[str, tuple[Pod, str]] = {
    "a workload with fewer ready than wanted": (of("StatefulSet", {"replicas": 2}, readyReplicas=1), "1 of 2 ready"),
    "a rollout that does not progress": (
        of(
            "Deployment",
            {},
            conditions=[{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
        ),
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
        of(
            "HorizontalPodAutoscaler",
            {},
            conditions=[{"type": "ScalingActive", "status": "False", "reason": "FailedGetMetric"}],
        ),
        "ScalingActive is False (FailedGetMetric)",
    ),
    "an autoscaler at its maximum": (
        of(
            "HorizontalPodAutoscaler",
            {"maxReplicas": 5},
            conditions=[{"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}],
        ),
        "at its maximum of 5",
    ),
    "a quota at its limit": (of("ResourceQuota", {}, hard={"cpu": "2"}, used={"cpu": "2000m"}), "cpu at its limit"),
    "a quota with room": (of("ResourceQuota", {}, hard={"cpu": "2"}, used={"cpu": "1900m"}), ""),
}


@pytest.mark.parametrize(("found", "expected"), SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_surroundings_are_issues_too(found: Pod, expected: str) -> None:
    issues = flags_of(snapshot_of({"objects": [TARGET, *THREE, found]})).issues

    assert issues == ((f"{found['kind']}/x: {expected}",) if expected else ())


def test_a_service_without_a_ready_endpoint_is_an_issue() -> None:
    service = {**of("Service", {"selector": {"app": "api"}})}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "x-1", "labels": {"kubernetes.io/service-name": "x"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}],
    }

    assert flags_of(snapshot_of({"objects": [TARGET, service, endpoints]})).issues == ("Service/x: no ready endpoint",)


QUANTITIES = {"1": 1.0, "100m": 0.1, "64Mi": 64 * 2**20, "1.5Gi": 1.5 * 2**30, "2k": 2000.0, "1e3": 1000.0, "x": None}


@pytest.mark.parametrize(("text", "expected"), QUANTITIES.items(), ids=QUANTITIES.keys())
def test_quantities(text: str, expected: float | None) -> None:
    assert expected == quantity(text)
