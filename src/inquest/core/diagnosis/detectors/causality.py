"""Which finding explains which: a table of words, and of the links between the objects that they are about.

A reason explains a crash of its container, a callee the caller that says so, a node what runs there, the cluster's DNS
every name that nobody resolves. Only words for a reason explain; words for an effect stand below them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from inquest.core.diagnosis.categories import CATEGORIES, SYMPTOMS
from inquest.core.diagnosis.detectors.links import CALLS, IS_IN, RUNS_ON, WAITS_FOR, Links
from inquest.core.diagnosis.detectors.workloads import Key
from inquest.core.evidence.evidence import Finding

MIN_CERTAINTY: Final = 0.5
"""Below it a finding explains nothing of another object: a guess may not fold what is certain."""

# --- words -------------------------------------------------------------------------------------------------

NODE: Final = frozenset(CATEGORIES["Node"])
CLUSTER: Final = frozenset(CATEGORIES["Control plane"])
PROBES: Final = frozenset(CATEGORIES["Probe"])
EVERY: Final = frozenset(name for names in CATEGORIES.values() for name in names)
CRASHES: Final = frozenset({"CrashLoopBackOff", "ApplicationError", "InitContainerFailing"})
FAR: Final = frozenset({"DependencyFailing", "DatabaseFailing", "ExternalServiceFailing"})
"""Words for "what I call does not answer"."""
WORKLOAD_ENDS: Final = frozenset({"RolloutStuck", "JobFailing", "NoReadyEndpoints"})
"""What the workload shows when its pods do not run, whatever the reason."""
STARTLESS: Final = frozenset({"VolumeMountFailing", "VolumeAttachFailing", "ImagePullFailing", "Unschedulable"})
MISSING: Final = frozenset({"ConfigMapMissing", "SecretMissing", "ConfigKeyMissing", "EnvVarMissing"})
WIRING: Final = frozenset(
    {
        "AddressMisconfigured",
        "ConfigReloadFailing",
        "ConnectionsExhausted",
        "CredentialsInvalid",
        "DNSFailing",
        "NetworkPolicyBlocking",
        "PortConflict",
        "PortMismatch",
        "ProtocolMismatch",
        "SelectorMismatch",
        "CertificateExpired",
        "RBACDenied",
    }
)
"""Finer words for why two things do not come together."""

_FAR_TEXT: Final = re.compile(
    r"connection (?:refused|reset|timed out)|connect: |ECONN|EHOSTUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|"
    r"no route to host|i/o timeout|timed? ?out|deadline exceeded|no such host|cannot connect|"
    r"could not (?:connect|resolve|translate)|unreachable|unavailable|upstream|"
    r"bad gateway|\b50[234]\b|name resolution|broken pipe|waiting for ",
    re.IGNORECASE,
)
_NAME_TEXT: Final = re.compile(
    r"no such host|name resolution|could not (?:resolve|translate)|ENOTFOUND|EAI_AGAIN|lookup |server misbehaving|"
    r"unknown host|NXDOMAIN|SERVFAIL|name or service not known|:53\b",
    re.IGNORECASE,
)
_TLS_TEXT: Final = re.compile(r"x509|certificate|tls", re.IGNORECASE)
_API_TEXT: Final = re.compile(
    r"etcdserver|apiserver|kubernetes\.default|leader ?election|the server (?:is currently unable|was unable)|apis?/v1",
    re.IGNORECASE,
)
_PLACE_TEXT: Final[Mapping[str, re.Pattern[str]]] = {
    "NodeCordoned": re.compile(r"unschedulable", re.IGNORECASE),
    "NodeNotReady": re.compile(r"not-ready|unreachable|not ready", re.IGNORECASE),
    "KubeletFailing": re.compile(r"not-ready|unreachable|not ready", re.IGNORECASE),
    "ContainerRuntimeFailing": re.compile(r"not-ready|unreachable|not ready", re.IGNORECASE),
    "NodePressure": re.compile(r"pressure", re.IGNORECASE),
    "NetworkDegraded": re.compile(r"network-unavailable|not-ready|sandbox|cni", re.IGNORECASE),
}


def _text_of(finding: Finding) -> str:
    quotes = " ".join(citation.quote for citation in finding.citations)
    return f"{finding.summary} {finding.value} {quotes}"[:4000]


# --- the table of relations -----------------------------------------------------------------------------------

Linked = Callable[[Finding, Finding, Links], bool]
"""Cause, symptom, map: whether what the one is about has to do with the other."""


EFFECTS: Final = SYMPTOMS | {"BadRevision", "NodeNotReady"}
"""Words that say what is seen and not why: a cause explains them however sure it is."""


@dataclass(frozen=True)
class Relation:
    """One way in which a cause explains a symptom."""

    says: str
    causes: frozenset[str]
    effects: frozenset[str]
    linked: Linked
    same: bool = False
    """Only where both say the same word."""

    def holds(self, cause: Finding, symptom: Finding, where: Links) -> bool:
        words = cause.category in self.causes and symptom.category in self.effects
        fits = words and (not self.same or cause.category == symptom.category)
        return fits and (self.same or _is_proof(cause, symptom, where)) and self.linked(cause, symptom, where)


def _is_proof(cause: Finding, symptom: Finding, where: Links) -> bool:
    """Whether one may explain the other away: no second reading of the same words does, and on one object no guess.

    Between two objects the way that links them is the proof; a cluster's trouble is what its component shows.
    """
    if cause.citations and set(cause.citations) <= set(symptom.citations):
        return False
    is_effect = symptom.category in EFFECTS or cause.category in CLUSTER or not _same_workload(cause, symptom, where)
    return is_effect or cause.confidence >= symptom.confidence


def _same_container(cause: Finding, symptom: Finding, where: Links) -> bool:
    one, other = cause.facts.get("container"), symptom.facts.get("container")
    return _same_workload(cause, symptom, where) and (not one or not other or one == other)


def _same_process(cause: Finding, symptom: Finding, where: Links) -> bool:
    """Both were seen of one container of one pod, whatever object they blame."""
    names = [(found.facts.get("pod"), found.facts.get("container")) for found in (cause, symptom)]
    return names[0] == names[1] and all(names[0])


def _same_workload(cause: Finding, symptom: Finding, where: Links) -> bool:
    return where.home(cause.object) == where.home(symptom.object)


def _needed(cause: Finding, symptom: Finding, where: Links) -> bool:
    """The symptom's object rests on the cause's, without a call over the network between them."""
    found = where.between(symptom.object, cause.object)
    return found is not None and not {CALLS, RUNS_ON, IS_IN} & {*found.way}


def _by_way_of(step: str) -> Linked:
    """The symptom's object rests on the cause's, and this is a step of the way."""

    def rule(cause: Finding, symptom: Finding, where: Links) -> bool:
        found = where.between(symptom.object, cause.object)
        return found is not None and step in found.way

    return rule


_awaited: Final = _by_way_of(WAITS_FOR)
_called: Final = _by_way_of(CALLS)


def _named(cause: Finding, symptom: Finding, where: Links) -> bool:
    """What stands behind a name that the symptom's own words say; its own pod is who calls."""
    if cause.facts.get("pod") and cause.facts["pod"] == symptom.facts.get("pod"):
        return False
    return _is_host(cause.object.name, _text_of(symptom)) and cause.object.kind in _CALLABLE


_CALLABLE: Final = frozenset({"Service", "Deployment", "StatefulSet", "DaemonSet", "Pod", "External", "NetworkPolicy"})


def _is_host(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _calls_and_says_so(cause: Finding, symptom: Finding, where: Links) -> bool:
    """Of a crash alone nobody knows that another is to blame: its words have to speak of the network."""
    if not _FAR_TEXT.search(_text_of(symptom)):
        return False
    return _called(cause, symptom, where) or _named(cause, symptom, where)


def _calls_or_names(cause: Finding, symptom: Finding, where: Links) -> bool:
    return _called(cause, symptom, where) or _named(cause, symptom, where) or _needed(cause, symptom, where)


def _on_node(cause: Finding, symptom: Finding, where: Links) -> bool:
    """The symptom's pod runs there; a pod that waits for a node says in its words what keeps it away."""
    node = node_of(cause)
    if node is None:
        return False
    if node_of(symptom) == node and symptom.object.kind != "Node":
        return cause.object.kind == "Node"
    if symptom.facts.get("node") and symptom.object.kind != "Node":
        return symptom.facts["node"] == node[2]
    if node in where.reach(where.home(symptom.object)) or symptom.object.key == node:
        return True
    says = _PLACE_TEXT.get(cause.category)
    return says is not None and symptom.category in _WAITING and says.search(_text_of(symptom)) is not None


def _agent_of_node(cause: Finding, symptom: Finding, where: Links) -> bool:
    """A DaemonSet's pod fails on the node that the symptom is about."""
    is_agent = cause.object.kind != "Node" and symptom.object.kind == "Node"
    return is_agent and node_of(cause) == symptom.object.key


def node_of(cause: Finding) -> Key | None:
    """The node that a cause is about; its object may be what runs on every node."""
    name = cause.object.name if cause.object.kind == "Node" else cause.facts.get("onNode", "")
    return ("Node", "", name) if name else None


_WAITING: Final = frozenset({"Unschedulable", "InsufficientResources", "RolloutStuck", "NoReadyEndpoints"})


def _same_namespace(cause: Finding, symptom: Finding, where: Links) -> bool:
    return not cause.object.namespace or cause.object.namespace == symptom.object.namespace


def _anywhere(cause: Finding, symptom: Finding, where: Links) -> bool:
    return True


def _saying(pattern: re.Pattern[str], linked: Linked = _anywhere) -> Linked:
    return lambda cause, symptom, where: pattern.search(_text_of(symptom)) is not None and linked(cause, symptom, where)


def _in_system(cause: Finding, symptom: Finding, where: Links) -> bool:
    """The same component, or a part of it: a control plane that fails is one cause, whatever its pods show."""
    return _same_workload(cause, symptom, where) or _needed(symptom, cause, where)


def words(*names: str) -> frozenset[str]:
    return frozenset(names)


def _nearer(cause: Finding, symptom: Finding, where: Links) -> bool:
    """What the symptom's object rests on is the thing to change: the role rather than the account."""
    found = where.between(symptom.object, cause.object)
    return found is not None and not {RUNS_ON, IS_IN} & {*found.way}


def _twin(cause: Finding, symptom: Finding, where: Links) -> bool:
    alike = cause.object.key == symptom.object.key and cause.detector != symptom.detector
    return alike and _same_container(cause, symptom, where) and cause.confidence >= symptom.confidence


def _shown_by_host(cause: Finding, symptom: Finding, where: Links) -> bool:
    hosts = [host for host in cause.facts.get("hosts", "").split(",") if host]
    told = f"{symptom.object.name} {_text_of(symptom)}"
    return _TLS_TEXT.search(told) is not None and any(_is_host(host, told) for host in hosts)


def _of_account(cause: Finding, symptom: Finding, where: Links) -> bool:
    """A finding that names the account that was refused, about something else than the account."""
    account = cause.facts.get("serviceAccount", "")
    if not account or cause.object.kind == "ServiceAccount":
        return False
    if symptom.object.kind == "ServiceAccount":
        return symptom.object.name == account
    return f":{account}" in _text_of(symptom) and "forbidden" in _text_of(symptom).lower()


_RIGHTS: Final = CRASHES | frozenset({"RBACDenied", "JobFailing", "ReadinessProbeMisconfigured"})
_TLS_EFFECTS: Final = CRASHES | FAR | frozenset({"CertificateExpired", "ReadinessProbeMisconfigured", "JobFailing"})


FINE: Final = EVERY - SYMPTOMS - NODE - CLUSTER - {"Healthy", "Recovered", "Unknown", "BadRevision", "FinalizerStuck"}
"""Words that say a reason, of something smaller than a node."""
AROUND: Final = frozenset(
    {"NetworkPolicyBlocking", "PDBBlocking", "HPAMisconfigured", "GitOpsSyncFailing", "QuotaExceeded"}
)
"""Words about what stands around a workload: what it reads or mounts is another matter."""
SLOW: Final = frozenset({"CPUThrottled", "Overloaded", "ScaledToZero", "InsufficientResources"})
"""Words for too little; a process does not end of it by itself."""
_READINESS: Final = frozenset({"ReadinessProbeMisconfigured"})


def _down_elsewhere(cause: Finding, symptom: Finding, where: Links) -> bool:
    """A pod of the revision says so of somebody who is known to be down, and whose address the revision did not set."""
    told = f"Pod/{cause.facts.get('pod')}: "
    is_known = cause.field in ("status.readyReplicas", "spec.replicas") or cause.object.kind == "External"
    is_new = _is_host(cause.object.name, symptom.facts.get("after", ""))
    return is_known and not is_new and any(each.startswith(told) for each in symptom.explains)


def _took_room(cause: Finding, symptom: Finding, where: Links) -> bool:
    return where.home(symptom.object) in map(where.home, cause.felt_by)


def _stored(cause: Finding, symptom: Finding, where: Links) -> bool:
    """The cluster's store, and a component that lost or does not renew the lease that it writes there."""
    parts = (cause.facts.get("component"), symptom.facts.get("component"))
    tells = symptom.object.kind == "Lease" or _LEASE_TEXT.search(_text_of(symptom)) is not None
    return parts[0] == "etcd" and parts[1] not in (None, "", "etcd") and tells


_LEASE_TEXT: Final = re.compile(r"leader ?election|\bleases?\b|etcdserver", re.IGNORECASE)

RELATIONS: Final[tuple[Relation, ...]] = (
    # one word, said twice
    Relation("the same, nearer to its cause", FINE, FINE, _nearer, same=True),
    Relation("the same of the same object, by another detector", EVERY, EVERY, _twin, same=True),
    Relation("what an account lacks is its role's or its binding's", words("RBACDenied"), _RIGHTS, _of_account),
    Relation("who is shown a certificate that ran out", words("CertificateExpired"), _TLS_EFFECTS, _shown_by_host),
    # one container
    Relation("a reason explains the crash", FINE - _READINESS - AROUND - SLOW, CRASHES, _same_container),
    Relation("a crash has its own words", words("ApplicationError"), words("CrashLoopBackOff"), _same_container),
    Relation("a leak ends in a kill", words("MemoryLeaking"), words("OOMKilled"), _same_container),
    Relation(
        "what does not run or is slow answers no probe",
        (FINE | CRASHES) - PROBES - {"PortMismatch"},
        _READINESS,
        _same_container,
    ),
    Relation(
        "what is killed or slow fails its probes",
        words("OOMKilled", "CPUThrottled", "MemoryLeaking", "Overloaded", "DiskFull"),
        PROBES,
        _same_container,
    ),
    Relation("a wrong setting is why a call fails", WIRING | MISSING, FAR | {"DNSFailing"}, _same_container),
    Relation("a call that fails is why it ends", FAR, CRASHES | _READINESS, _same_container),
    Relation("a call that fails is why the caller is not well", FAR, words("ApplicationError"), _same_process),
    Relation(
        "too little is why it is slow", words("HPAMisconfigured", "CPUThrottled"), words("Overloaded"), _same_workload
    ),
    # one workload
    Relation(
        "what is missing cannot be mounted",
        MISSING | {"VolumeAttachFailing"},
        words("VolumeMountFailing"),
        _same_workload,
    ),
    Relation(
        "a pod that does not go keeps its volume",
        words("FinalizerStuck"),
        words("VolumeAttachFailing", "VolumeMountFailing"),
        _same_workload,
    ),
    Relation("an unbound claim has no node", words("VolumeUnbound"), STARTLESS - {"ImagePullFailing"}, _same_workload),
    Relation(
        "pods that do not run keep a workload back", EVERY - WORKLOAD_ENDS - AROUND, WORKLOAD_ENDS, _same_workload
    ),
    Relation("a reason explains a bad revision", FINE, words("BadRevision"), _same_workload),
    Relation(
        "a revision is not to blame for who does not answer it",
        words("CertificateExpired", "DependencyFailing", "ExternalServiceFailing", "ScaledToZero"),
        words("BadRevision"),
        _down_elsewhere,
    ),
    Relation(
        "a revision explains its rollout",
        words("BadRevision"),
        words("RolloutStuck", "NoReadyEndpoints") | CRASHES,
        _same_workload,
    ),
    Relation("who took their room keeps them back", words("InsufficientResources"), WORKLOAD_ENDS, _took_room),
    # what it rests on
    Relation(
        "what a workload reads or mounts",
        FINE - AROUND,
        CRASHES
        | FAR
        | PROBES
        | STARTLESS
        | WORKLOAD_ENDS
        | {"CommandFailing", "VolumeUnbound", "Overloaded", "DNSFailing"},
        _needed,
    ),
    Relation(
        "a job that an init container waits for",
        words("JobFailing"),
        CRASHES | WORKLOAD_ENDS | {"BadRevision"},
        _awaited,
    ),
    Relation(
        "a policy keeps packets away",
        words("NetworkPolicyBlocking"),
        FAR | _READINESS | {"DNSFailing", "NoReadyEndpoints"},
        _needed,
    ),
    Relation(
        "a policy keeps packets away, and a log says so",
        words("NetworkPolicyBlocking"),
        CRASHES,
        _saying(_FAR_TEXT, _needed),
    ),
    Relation(
        "pods behind a Service or an Ingress",
        EVERY - WORKLOAD_ENDS - FAR,
        words("NoReadyEndpoints", "IngressMisconfigured"),
        _needed,
    ),
    Relation("nothing behind a Service", words("NoReadyEndpoints"), words("IngressMisconfigured"), _needed),
    Relation("what is called does not answer", EVERY - CLUSTER - NODE, FAR, _calls_or_names),
    Relation(
        "what is called does not answer, and the caller says so",
        EVERY - CLUSTER - NODE,
        CRASHES | _READINESS | {"JobFailing", "RolloutStuck", "Overloaded"},
        _calls_and_says_so,
    ),
    # a node
    Relation(
        "a part of a node explains its state",
        words("KubeletFailing", "ContainerRuntimeFailing", "NetworkDegraded", "NodePressure"),
        words("NodeNotReady"),
        _on_node,
    ),
    Relation(
        "what runs on every node explains the one where it does not",
        words("NetworkDegraded"),
        words("NetworkDegraded", "NodeNotReady"),
        _agent_of_node,
    ),
    Relation(
        "a node that is ill takes its agents with it",
        NODE - {"NodeCordoned", "ServiceProxyFailing"},
        words("ServiceProxyFailing"),
        _on_node,
    ),
    Relation(
        "a full node is why its kubelet gives way",
        words("NodePressure"),
        words("PodEvicted", "DiskFull", "OOMKilled", "ImagePullFailing"),
        _on_node,
    ),
    Relation(
        "a node explains what runs there",
        NODE - {"NodeCordoned"},
        CRASHES
        | FAR
        | PROBES
        | WORKLOAD_ENDS
        | STARTLESS
        | {"PodEvicted", "DNSFailing", "InsufficientResources", "ClusterDNSFailing", "FinalizerStuck"},
        _on_node,
    ),
    Relation(
        "a closed node takes nobody",
        words("NodeCordoned"),
        words("Unschedulable", "InsufficientResources", "RolloutStuck"),
        _on_node,
    ),
    Relation("a budget holds a drain up", words("PDBBlocking"), words("NodeCordoned"), _anywhere),
    # a namespace, the cluster
    Relation(
        "what the namespace refuses",
        words("QuotaExceeded", "LimitRangeViolated", "AdmissionRejected", "WebhookFailing", "ServiceAccountMissing"),
        WORKLOAD_ENDS,
        lambda cause, symptom, where: _is_shared(cause) and _same_namespace(cause, symptom, where),
    ),
    Relation(
        "an expired certificate breaks a webhook",
        words("CertificateExpired"),
        words("WebhookFailing"),
        _saying(_TLS_TEXT),
    ),
    Relation(
        "a webhook refuses what it should pass",
        words("WebhookFailing"),
        words("AdmissionRejected", "FinalizerStuck"),
        _anywhere,
    ),
    Relation(
        "no names, no calls",
        words("ClusterDNSFailing"),
        CRASHES | FAR | {"DNSFailing", "JobFailing", "ImagePullFailing", "AddressMisconfigured"} | _READINESS,
        _saying(_NAME_TEXT),
    ),
    Relation(
        "who asks the cluster hears its trouble",
        words("ControlPlaneFailing"),
        CRASHES | FAR | _READINESS | {"JobFailing", "CertificateExpired"},
        _saying(_API_TEXT),
    ),
    Relation(
        "without its store a component cannot keep its lease",
        words("ControlPlaneFailing"),
        words("ControlPlaneFailing"),
        _stored,
    ),
    Relation("the component and its parts", CLUSTER, EVERY - CLUSTER - NODE, _in_system),
    Relation(
        "nobody decides", words("ControlPlaneFailing"), WORKLOAD_ENDS | {"Unschedulable", "HPAMisconfigured"}, _anywhere
    ),
)
"""Cause → symptom; a pair that explains each other is decided for the word that stands higher, then the surer one."""


def _is_shared(cause: Finding) -> bool:
    """Of the namespace or the cluster, rather than of one workload."""
    return cause.object.kind not in _OWNED


_OWNED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod"})


def explains(cause: Finding, symptom: Finding, where: Links) -> bool:
    """Whether a row of the table holds for the two."""
    if cause is symptom or (
        where.home(cause.object) != where.home(symptom.object) and cause.confidence < MIN_CERTAINTY
    ):
        return False
    return any(row.holds(cause, symptom, where) for row in RELATIONS)
