"""Nodes and what runs on every one of them: readiness, pressure, kubelet, container runtime, proxy, network plugin.

The kubelet's own message tells the parts apart: a runtime that does not answer and a network plugin that is missing
both make a node NotReady. A kubelet that says nothing at all is known by the node's Lease, which it no longer renews.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inquest.core.cluster.objects import condition_of, parse_time
from inquest.core.diagnosis.detectors.citations import cite, cite_event, quoted
from inquest.core.diagnosis.detectors.events import events_of, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    NOT_READY,
    BrokenComponent,
    broken,
    cite_condition,
    component_pods,
    condition_field,
    has_lasted,
    owner_of,
    platform_finding,
)
from inquest.core.diagnosis.detectors.startup.oom_killed import is_memory_kill
from inquest.core.diagnosis.detectors.workloads import listed, node_of, ref_to
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot, TextSeen

GRACE: Final = timedelta(seconds=30)
JOINING: Final = timedelta(minutes=2)
"""A node that just joined has no network plugin yet."""
LEASE: Final = timedelta(seconds=120)
"""Three times the usual lease of 40 s: the kubelet renews it every 10 s."""
AHEAD: Final = timedelta(minutes=2)
"""A renewal so far in the future is a clock that runs ahead."""
MAX_PODS: Final = 5

_RUNTIME: Final = re.compile(
    r"PLEG is not healthy|container runtime is down|container runtime status check|RuntimeReady=false|"
    r"runtime service failed|rpc error.{0,80}containerd\.sock|container runtime not ready",
    re.IGNORECASE,
)
_NETWORK: Final = re.compile(
    r"NetworkReady=false|NetworkPluginNotReady|cni plugin not initialized|network plugin is not ready|"
    r"cni config uninitialized|no networks found in /etc/cni",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Ailment:
    """A condition of a node that is true and should not be."""

    type: str
    category: str
    words: str
    actions: tuple[str, ...]


_CORDON: Final = ("CordonNode",)
AILMENTS: Final = (
    Ailment("MemoryPressure", "NodePressure", "is short of memory and evicts pods", ("CordonNode", "DrainNode")),
    Ailment("DiskPressure", "NodePressure", "is short of disk and evicts pods", ("CleanupNode", "CordonNode")),
    Ailment("PIDPressure", "NodePressure", "is short of process ids and evicts pods", ("CordonNode", "DrainNode")),
    Ailment("NetworkUnavailable", "NetworkDegraded", "has no network set up", ("CordonNode", "DrainNode")),
    # What the node problem detector reports.
    Ailment("KernelDeadlock", "NodeNotReady", "has a kernel that hangs", ("DrainNode", "CordonNode")),
    Ailment("ReadonlyFilesystem", "NodeNotReady", "has a file system that became read-only", ("DrainNode",)),
    Ailment("FrequentKubeletRestart", "KubeletFailing", "has a kubelet that restarts again and again", _CORDON),
    Ailment("FrequentContainerdRestart", "ContainerRuntimeFailing", "has a container runtime that restarts", _CORDON),
    Ailment("FrequentDockerRestart", "ContainerRuntimeFailing", "has a container runtime that restarts", _CORDON),
    Ailment("CorruptDockerOverlay2", "ContainerRuntimeFailing", "has a corrupt image store", ("DrainNode",)),
)


def node_not_ready(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each node whose Ready condition is not True, by what its message says."""
    for node in snapshot.of_kind("Node"):
        ready = condition_of(node.status, "Ready")
        if ready and ready.get("status") != "True" and _counts(snapshot, node, ready):
            yield _not_ready(snapshot, node, ready)


def _counts(snapshot: Snapshot, node: ObservedObject, found: Json) -> bool:
    born = parse_time(node.created)
    joined = born is None or snapshot.taken_at - born >= JOINING
    going = node.metadata.get("deletionTimestamp")
    return joined and not going and has_lasted(found, snapshot.taken_at, GRACE)


def _not_ready(snapshot: Snapshot, node: ObservedObject, ready: Json) -> Finding:
    message = str(ready.get("message") or "")[:1000]
    category, words = _reading(message)
    ref = ref_to("Lease", node.name, "kube-node-lease")
    lease = snapshot.find(ref) if ref else None
    at = _renewed(lease)
    quiet = snapshot.taken_at - at if at is not None and snapshot.taken_at - at >= LEASE else None
    status = str(ready.get("status"))
    if category == "NodeNotReady" and (status == "Unknown" or quiet):
        words = f"its kubelet stopped reporting{f', its lease is {_minutes(quiet)} old' if quiet else ''}"
    return platform_finding(
        category,
        node.ref,
        condition_field("Ready"),
        status,
        f"the node is not ready: {words or message or 'it gives no reason'}",
        confidence=0.95 if quiet or category != "NodeNotReady" else 0.9,
        citations=(*cite_condition(snapshot, node, ready), *_cite_lease(snapshot, lease, quiet)),
        explains=_pods_on(snapshot, node.name),
        facts={"node": node.name, "reason": str(ready.get("reason") or ""), "message": message},
        refuted_by=(f"the Ready condition of {node.name} is True and its lease is renewed every 10 s",),
        actions=("DrainNode", "CordonNode"),
    )


def _reading(message: str) -> tuple[str, str]:
    if _NETWORK.search(message):
        return "NetworkDegraded", f"its network plugin is not set up: {message}"
    if _RUNTIME.search(message):
        return "ContainerRuntimeFailing", f"its container runtime does not answer: {message}"
    return "NodeNotReady", message


def _renewed(lease: ObservedObject | None) -> datetime | None:
    return parse_time(lease.spec.get("renewTime")) if lease else None


def _minutes(span: timedelta) -> str:
    return f"{int(span.total_seconds() // 60)} min"


def _cite_lease(snapshot: Snapshot, lease: ObservedObject | None, quiet: timedelta | None) -> tuple[Citation, ...]:
    if lease is None or quiet is None:
        return ()
    return cite(snapshot, lease, quoted("renewTime", lease.spec.get("renewTime")))


def _pods_on(snapshot: Snapshot, node: str) -> list[str]:
    held = [pod.name for pod in snapshot.of_kind("Pod") if node_of(pod) == node and _is_down(pod)]
    return [f"Pod/{name}: not ready" for name in held[:MAX_PODS]]


def _is_down(pod: ObservedObject) -> bool:
    return condition_of(pod.status, "Ready").get("status") == "False"


def node_ailing(snapshot: Snapshot) -> Iterable[Finding]:
    """Pressure and the other conditions of a node that are true and should not be."""
    for node in snapshot.of_kind("Node"):
        for ailment in AILMENTS:
            found = condition_of(node.status, ailment.type)
            if found.get("status") == "True" and (_counts(snapshot, node, found) or _is_old(snapshot, found)):
                yield _ailing(snapshot, node, ailment, found)


def _is_old(snapshot: Snapshot, found: Json) -> bool:
    """A node that was made anew under its old name brings its ailments along: those are no matter of joining."""
    at = parse_time(found.get("lastTransitionTime"))
    return at is not None and snapshot.taken_at - at >= JOINING


def _ailing(snapshot: Snapshot, node: ObservedObject, ailment: Ailment, found: Json) -> Finding:
    evicted = [event for event in events_of(snapshot, "Evicted") if _low(ailment.type) in message_of(event)]
    places = list(dict.fromkeys(event.namespace for event in evicted))[:MAX_PODS]
    return platform_finding(
        ailment.category,
        node.ref,
        condition_field(ailment.type),
        "True",
        f"the node {ailment.words}: {found.get('message') or found.get('reason') or ailment.type}",
        confidence=0.93,
        citations=(*cite_condition(snapshot, node, found), *cite_event(snapshot, evicted[0] if evicted else None)),
        explains=[f"Pod/{_name(event)}: evicted" for event in evicted[:MAX_PODS]],
        facts={"node": node.name, "pressure": ailment.type, "namespaces": ",".join(places)},
        refuted_by=(f"{ailment.type} of {node.name} is False",),
        actions=ailment.actions,
    )


def _low(kind: str) -> str:
    return {"MemoryPressure": "memory", "DiskPressure": "ephemeral-storage", "PIDPressure": "pids"}.get(kind, kind)


def _name(event: ObservedObject) -> str:
    return str(involved_object(event.object).get("name") or "")


# --- the clock -------------------------------------------------------------------------------------------------


def node_clock(snapshot: Snapshot) -> Iterable[Finding]:
    """A node whose Lease was renewed in the future, while another node's clock agrees with ours."""
    leases = [lease for lease in snapshot.of_kind("Lease") if lease.namespace == "kube-node-lease"]
    times = {lease.name: at for lease in leases if (at := _renewed(lease))}
    if not any(abs(at - snapshot.taken_at) < AHEAD / 2 for at in times.values()):
        return
    for lease in leases:
        ahead = times[lease.name] - snapshot.taken_at if lease.name in times else timedelta()
        node = ref_to("Node", lease.name, None)
        if ahead >= AHEAD and node is not None:
            yield platform_finding(
                "KubeletFailing",
                node,
                "process",
                f"clock {_minutes(ahead)} ahead",
                f"the node's clock runs {_minutes(ahead)} ahead: its kubelet renews the lease in the future",
                confidence=0.75,
                citations=cite(snapshot, lease, quoted("renewTime", lease.spec.get("renewTime"))),
                facts={"node": lease.name},
                refuted_by=("the node's time service says that it is in step",),
                actions=("CordonNode",),
            )


# --- services of a node, as somebody looked at them ----------------------------------------------------------------

_STATE: Final = re.compile(
    r"Active: (?P<state>inactive|failed|activating \(auto-restart\)|deactivating)[^\n]{0,200}"
    r"|System clock synchronized: (?P<clock>no)"
    r"|(?P<gone>(?:kubelet|containerd|crio|docker)[^\n]{0,60}(?:not running|is dead|could not be found))"
)
_SERVICES: Final = (
    ("kubelet", "KubeletFailing", "its kubelet does not run"),
    ("containerd", "ContainerRuntimeFailing", "its container runtime does not run"),
    ("crio", "ContainerRuntimeFailing", "its container runtime does not run"),
    ("docker", "ContainerRuntimeFailing", "its container runtime does not run"),
    ("kube-proxy", "ServiceProxyFailing", "its service proxy does not run"),
    ("timedatectl", "KubeletFailing", "its clock is not in step"),
    ("chrony", "KubeletFailing", "its clock is not in step"),
)


def node_services(snapshot: Snapshot) -> Iterable[Finding]:
    """What a check of a node's services printed: the kubelet, the runtime or the proxy is not active."""
    for seen in snapshot.texts:
        head = f"{seen.title}\n{seen.text[:300]}".lower()
        row = next((each for each in _SERVICES if each[0] in head), None)
        node = _node_named(snapshot, seen)
        match = _STATE.search(seen.text[:20_000])
        if node is not None and row is not None and match is not None:
            _, category, words = row
            said = match[0].strip()
            yield platform_finding(
                category,
                node.ref,
                "process",
                said,
                f"{words}: {said}",
                confidence=0.95,
                citations=(Citation(seen.evidence, said[:300].rstrip()), *cite(snapshot, node)),
                explains=_pods_on(snapshot, node.name),
                facts={"node": node.name},
                refuted_by=("the same check says active (running) now",),
                actions=("DrainNode", "CordonNode"),
            )


def _node_named(snapshot: Snapshot, seen: TextSeen) -> ObservedObject | None:
    """The node of a check: named in its title or first lines, else the only one that was read."""
    nodes = snapshot.of_kind("Node")
    head = f"{seen.title}\n{seen.text[:2000]}"
    named = [node for node in nodes if re.search(rf"(?<![\w.-]){re.escape(node.name)}(?![\w-])", head)]
    return named[0] if named else nodes[0] if len(nodes) == 1 else None


# --- what runs on every node --------------------------------------------------------------------------------------

PROXIES: Final = ("kube-proxy",)
PLUGINS: Final = (
    *("calico-node", "canal", "cilium", "kube-flannel", "kube-flannel-ds", "flannel", "weave-net", "antrea-agent"),
    *(
        "aws-node",
        "azure-cns",
        "kindnet",
        "ovnkube-node",
        "kube-router",
        "kube-ovn-cni",
        "kube-multus-ds",
        "calico-typha",
    ),
)


@one_per_field
def node_agents(snapshot: Snapshot) -> Iterator[Finding]:
    """The service proxy or the network plugin does not run on a node."""
    rows = (
        (PROXIES, "ServiceProxyFailing", "no Service can be reached"),
        (PLUGINS, "NetworkDegraded", "pods get no network"),
    )
    for names, category, effect in rows:
        for pod in component_pods(snapshot, names, "k8s-app", "app", "app.kubernetes.io/name"):
            trouble = broken(snapshot, pod)
            if trouble is not None and not (trouble.word == NOT_READY and _is_lost(snapshot, node_of(pod))):
                yield _agent(snapshot, trouble, category, effect)


def _is_lost(snapshot: Snapshot, name: str) -> bool:
    """Whether nobody hears from the node: its pods are not ready for want of news."""
    ref = ref_to("Node", name, None)
    node = snapshot.find(ref) if ref else None
    return node is not None and condition_of(node.status, "Ready").get("status") == "Unknown"


def _agent(snapshot: Snapshot, trouble: BrokenComponent, category: str, effect: str) -> Finding:
    node = node_of(trouble.pod)
    said = trouble.line or trouble.word
    more = f": {trouble.line}" if trouble.line else ""
    return platform_finding(
        category,
        owner_of(snapshot, trouble.pod),
        "log" if trouble.line else "process",
        said,
        f"its pod {trouble.pod.name} on node {node} does not run ({trouble.word}), so that {effect} there{more}",
        confidence=0.9,
        citations=trouble.cite(snapshot),
        explains=_pods_on(snapshot, node),
        facts={
            "pod": trouble.pod.name,
            "onNode": node,
            "container": trouble.container.name if trouble.container else "",
        },
        refuted_by=(f"{trouble.pod.name} is ready and its log shows no error",),
    )


# --- sandboxes -------------------------------------------------------------------------------------------------

_SANDBOX_NETWORK: Final = re.compile(
    r"plugin type=|failed to set ?up network|networkPlugin cni|NetworkPlugin|no IP addresses available|"
    r"failed to assign an IP address|failed to (?:set up sandbox|setup network)|failed to allocate for range",
    re.IGNORECASE,
)


def sandboxes(snapshot: Snapshot) -> Iterable[Finding]:
    """Pods that get no sandbox: the network plugin or the runtime of their node refuses, for more than one of them.

    One that was killed for memory has a limit that is too low, and its node nothing to do with it.
    """
    events = [each for each in events_of(snapshot, "FailedCreatePodSandBox") if not is_memory_kill(message_of(each))]
    nodes = {pod.name: node_of(pod) for pod in snapshot.of_kind("Pod") if not _started(pod)}
    held = [(nodes[_name(event)], event) for event in events if nodes.get(_name(event))]
    counts = Counter(node for node, _ in held)
    for node in counts:
        told = [event for name, event in held if name == node]
        ref = ref_to("Node", node, None)
        if ref is not None:
            yield _sandbox(snapshot, node, told, len({_name(event) for event in told}))


def _started(pod: ObservedObject) -> bool:
    return any(each.get("ready") or each.get("restartCount") for each in listed(pod.status, "containerStatuses"))


def _sandbox(snapshot: Snapshot, node: str, told: list[ObservedObject], pods: int) -> Finding:
    message = message_of(told[0])[:600]
    network = _SANDBOX_NETWORK.search(message) is not None
    ref = ref_to("Node", node, None)
    seen = snapshot.find(ref) if ref else None
    first = next((pod for pod in snapshot.of_kind("Pod") if pod.name == _name(told[0])), None)
    if ref is None:
        raise AssertionError("the node's name was read before")
    return platform_finding(
        "NetworkDegraded" if network else "ContainerRuntimeFailing",
        ref,
        "process",
        message,
        f"{pods} pods get no sandbox there: {message}",
        confidence=0.85 if network and pods > 1 else 0.75 if network or pods > 1 else 0.6,
        citations=(*cite_event(snapshot, told[0]), *cite(snapshot, first or seen, quoted("nodeName", node))),
        explains=[f"Pod/{_name(event)}: no sandbox" for event in told[:MAX_PODS]],
        facts={"node": node},
        refuted_by=(f"another new pod starts on {node}",),
        actions=("CordonNode", "DrainNode"),
    )
