"""Which playbooks match a snapshot (behaviours, 5.2 and 19.3); the shipped ones throughout."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.adapters.playbooks.reader import book_of, read_library
from inquest.api.refs import TargetRef
from inquest.core.diagnosis.playbooks import Playbook, match_playbooks
from inquest.core.evidence.evidence import Citation, Finding
from inquest.core.evidence.snapshot import Snapshot
from tests.unit.core.diagnosis.detectors.support import NOW, snapshot_of

SHIPPED = read_library().books


def at(seconds: float) -> str:
    """So many seconds ago."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str = "api", *, age: float = 600, ready: bool = False, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": at(age)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": at(age)},
        "spec": {"containers": [{"name": "app"}], "initContainers": [{"name": "init"}]},
        "status": {"phase": "Running" if ready else "Pending", "conditions": conditions, **status},
    }


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return pod(containerStatuses=[{"name": "app", "ready": False, "state": {"waiting": {"reason": reason}}}], **more)


def running(*, last: dict[str, Any] | None = None, name: str = "api") -> dict[str, Any]:
    state = {"running": {"startedAt": at(500)}}
    status = {"name": "app", "ready": True, "state": state, "lastState": {"terminated": last} if last else {}}
    return pod(name, ready=True, containerStatuses=[status])


def init_waiting(reason: str) -> dict[str, Any]:
    return pod(initContainerStatuses=[{"name": "init", "state": {"waiting": {"reason": reason}}}])


def deleted(seconds: float) -> dict[str, Any]:
    found = running()
    found["metadata"]["deletionTimestamp"] = at(seconds)
    return found


def event(reason: str, message: str, *, kind: str = "Warning", of: str = "api", **times: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{of}.{abs(hash(reason + message))}", "namespace": "shop"},
        "type": kind,
        "reason": reason,
        "message": message,
        "involvedObject": {"kind": "Pod", "name": of, "namespace": "shop"},
        **({"firstTimestamp": at(60), "lastTimestamp": at(5)} | times),
    }


def seen(*objects: dict[str, Any]) -> Snapshot:
    return snapshot_of({"objects": list(objects), "target": {"kind": "Pod", "name": "api", "namespace": "shop"}})


def names(snapshot: Snapshot, *findings: Finding, books: tuple[Playbook, ...] = SHIPPED) -> list[str]:
    return [found.name for found in match_playbooks(books, snapshot, findings)]


PULL = 'Back-off pulling image "img.example/app:v2"'
NO_KEY = "Error: couldn't find key DB_URL in Secret shop/app"
TAINTED = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
    "2 Insufficient memory. preemption: 0/3 nodes are available."
)
REFUSED = "Readiness probe failed: dial tcp 10.0.0.7:8080: connect: connection refused"
KILLED = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at(30)}
PORTS = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
    "2 node(s) didn't have free ports for the requested pod ports."
)
AFFINITY = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."

ROWS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "M01 the word CrashLoopBackOff": ([waiting("CrashLoopBackOff")], ["CrashLoopBackOff"]),
    "M02 back-off of a container": (
        [pod(), event("BackOff", "Back-off restarting failed container app in pod api_shop(1)")],
        ["CrashLoopBackOff"],
    ),
    "M03 back-off of a pull": ([pod(), event("BackOff", PULL)], []),
    "M04 a key that is not there": ([pod(), event("Failed", NO_KEY)], ["CreateContainerConfigError"]),
    "M05 two obstacles": (
        [pod(), event("FailedScheduling", TAINTED)],
        ["PendingInsufficientResources", "PendingSchedulingConstraints"],
    ),
    "M06 a readiness probe": ([pod(), event("Unhealthy", REFUSED)], ["ReadinessProbeFailing"]),
    "M07 creating for 20 s": ([waiting("ContainerCreating", age=20)], []),
    "M07 creating for 400 s": ([waiting("ContainerCreating", age=400)], ["ContainerCreatingStuck"]),
    "M08 ending for 5 s": ([deleted(5)], []),
    "M08 ending for 300 s": ([deleted(300)], ["TerminatingStuck"]),
    "M09 killed before, running now": ([running(last=KILLED)], ["OOMKilled"]),
    "M10 a name in an image": (
        [running(), event("Pulled", 'Container image "oomkilled-demo:v1" already present', kind="Normal")],
        [],
    ),
    "M12 two that run": ([running(), running(name="api-2")], []),
    "T35 a control plane's taint beside a crash loop": (
        [waiting("CrashLoopBackOff"), event("FailedScheduling", PORTS)],
        ["CrashLoopBackOff", "PendingSchedulingConstraints"],
    ),
    "T35 a control plane's taint beside a shortage and a crash loop": (
        [waiting("CrashLoopBackOff"), event("FailedScheduling", TAINTED)],
        ["PendingInsufficientResources", "CrashLoopBackOff", "PendingSchedulingConstraints"],
    ),
    "T35 a control plane's taint beside a rule that no node meets": (
        [waiting("CrashLoopBackOff"), event("FailedScheduling", f"{TAINTED} {AFFINITY}")],
        ["PendingInsufficientResources", "PendingSchedulingConstraints", "CrashLoopBackOff"],
    ),
    "T35 another taint": (
        [waiting("CrashLoopBackOff"), event("FailedScheduling", PORTS.replace("node-role", "team"))],
        ["PendingSchedulingConstraints", "CrashLoopBackOff"],
    ),
    "M16 an init container": ([init_waiting("CrashLoopBackOff")], ["CrashLoopBackOff"]),
    "M17 a ConfigMap that is not there": (
        [pod(), event("Failed", 'Error: configmap "app-cfg" not found')],
        ["CreateContainerConfigError"],
    ),
    "M18 affinity": ([pod(), event("FailedScheduling", AFFINITY)], ["PendingSchedulingConstraints"]),
    "M19 too many pods": (
        [pod(), event("FailedScheduling", "0/1 nodes are available: 1 Too many pods.")],
        ["PendingInsufficientResources"],
    ),
    "M20 a crash loop and its probe": (
        [waiting("CrashLoopBackOff"), event("Unhealthy", "Liveness probe failed: timeout")],
        ["ReadinessProbeFailing", "CrashLoopBackOff"],
    ),
}


@pytest.mark.parametrize(("objects", "expected"), ROWS.values(), ids=ROWS.keys())
def test_what_matches(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert names(seen(*objects)) == expected


@pytest.mark.parametrize("row", ["M11"])
def test_a_service_without_endpoints_is_unreachable(row: str) -> None:
    service = TargetRef(api_version="v1", kind="Service", name="api", namespace="shop")
    finding = Finding("NoReadyEndpoints", service, "spec.selector", "", "nobody", 0.8, (Citation("E1", "api"),))

    (found,) = match_playbooks(SHIPPED, seen(running()), (finding,))

    assert (found.name, found.evidence) == ("ServiceUnreachable", ("E1",))


def book(*triggers: str, name: str = "Mine") -> Playbook:
    listed = "\n".join(f"  - {trigger}" for trigger in triggers)
    return book_of(f"name: {name}\ntriggers:\n{listed}\ninvestigation_steps: [look]\n".encode())


@pytest.mark.parametrize("row", ["M13"])
def test_reason_and_message_of_two_events_are_no_match(row: str) -> None:
    mine = book("{event_reason_regex: '^Failed$', event_message_regex: pull}")

    assert names(seen(pod(), event("Failed", "x"), event("Other", "pull")), books=(mine,)) == []
    assert names(seen(pod(), event("Failed", "could not pull")), books=(mine,)) == ["Mine"]


def test_status_and_event_of_two_pods_are_no_match() -> None:
    mine = book("{pod_status_regex: CrashLoop, event_reason_regex: '^Unhealthy$'}")
    crashed, warned = waiting("CrashLoopBackOff"), event("Unhealthy", "no", of="api-2")

    assert names(seen(crashed, warned), books=(mine,)) == []
    assert names(seen(crashed, event("Unhealthy", "no")), books=(mine,)) == ["Mine"]


def test_a_condition_of_any_object_can_fire() -> None:
    mine = book("{kind_regex: '^Node$', condition_regex: '^DiskPressure=True/'}")
    conditions = [{"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure"}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"conditions": conditions}}

    (found,) = match_playbooks((mine,), seen(running(), node), ())

    assert found.matched == "DiskPressure=True/KubeletHasDiskPressure of Node/n1"
    assert names(seen(running()), books=(mine,)) == []


def test_the_targets_own_stands_before_a_neighbours() -> None:
    neighbour = waiting("ImagePullBackOff")
    neighbour["metadata"]["name"] = "other"
    own, theirs = book("{pod_status_regex: Crash}", name="Z-own"), book("{pod_status_regex: Image}", name="A-theirs")

    assert names(seen(waiting("CrashLoopBackOff"), neighbour), books=(own, theirs)) == ["Z-own", "A-theirs"]


def test_a_neighbour_of_any_kind_is_not_the_targets_own() -> None:
    stuck = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    metadata = {"name": "other", "namespace": "shop"}
    neighbour = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": {"conditions": stuck}}
    own = book("{pod_status_regex: Crash}", name="Z-own")
    theirs = book("{condition_regex: '^Progressing=False/', kind_regex: '^Deployment$'}", name="A-theirs")

    assert names(seen(waiting("CrashLoopBackOff"), neighbour), books=(own, theirs)) == ["Z-own", "A-theirs"]


def test_what_bears_the_targets_name_in_another_namespace_is_not_its_own() -> None:
    other = TargetRef(api_version="v1", kind="Pod", name="api", namespace="staging")
    finding = Finding("OOMKilled", other, "spec", "", "killed", 0.8, (Citation("E1", "api"),))
    theirs = book("{finding_regex: '^OOMKilled$', kind_regex: '^Pod$'}", name="A-theirs")
    own = book("{pod_status_regex: Crash}", name="Z-own")

    assert names(seen(waiting("CrashLoopBackOff")), finding, books=(theirs, own)) == ["Z-own", "A-theirs"]


def test_a_warning_from_before_the_recovery_is_no_match() -> None:
    warned = event("Unhealthy", REFUSED, firstTimestamp=at(900), lastTimestamp=at(700))

    assert names(seen(running(), warned)) == []


def test_an_event_without_a_time_is_used_and_that_is_said() -> None:
    timeless = event("Unhealthy", REFUSED, firstTimestamp=None, lastTimestamp=None)

    (found,) = match_playbooks(SHIPPED, seen(pod(), timeless), ())

    assert found.matched == "event Unhealthy of Pod/api (no time)"


@given(
    count=st.integers(1, 4),
    text=st.text(max_size=60),
    reason=st.sampled_from(["Pulled", "Scheduled", "Created", "Killing", "SuccessfulCreate"]),
)
def test_nothing_matches_a_healthy_snapshot(count: int, text: str, reason: str) -> None:
    pods = [running(name="api" if not number else f"api-{number}") for number in range(count)]

    assert names(seen(*pods, event(reason, text, kind="Normal"))) == []
