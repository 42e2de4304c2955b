"""A network policy that keeps a caller from whom it calls, or from the cluster's names.

Each call that is known, from the callers' configuration and their complaints, is held against the policies at both
ends. Of several policies that isolate, the one that was meant to let the call through is wrong; where none was, it is
the one that denies. A call that is kept away is a fault where somebody suffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import value_at
from inquest.core.cluster.relations import backends_of
from inquest.core.diagnosis.detectors.citations import cite, cite_line, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    ANSWERED,
    REACHING,
    RESOLVING,
    UNANSWERED,
    NamedAddress,
    addresses_of,
    any_complaint,
    called_service,
    calls_in_logs,
    complaint,
    is_near,
    service_named,
    service_names,
    service_ports,
    services_of,
    workloads_behind,
)
from inquest.core.diagnosis.detectors.network.policy_reading import (
    EGRESS,
    INGRESS,
    NAMESPACE_LABEL,
    Peer,
    Port,
    allows,
    allows_peer,
    allows_port,
    blocked_by,
    directions,
    isolating,
    path_of,
    peer_of,
    peers_word,
    port_of,
    rules,
)
from inquest.core.diagnosis.detectors.network.service_selector import is_slip
from inquest.core.diagnosis.detectors.workloads import (
    is_short,
    listed,
    pods_of,
    template_labels,
    wanted_replicas,
    workloads,
)
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

DNS_PORT: Final = 53
_DNS: Final = Peer("kube-system", {"k8s-app": "kube-dns"})
_OUTSIDE: Final = Peer("", None)

Line = tuple[LogTail, str] | None


@dataclass(frozen=True)
class Call:
    """One call that is known: who, whom, where, and the complaint about it."""

    caller: ObservedObject
    workload: ObservedObject
    """Whose pods the policies are about: the caller's own for egress, the callee's for ingress."""
    direction: str
    peer: Peer
    port: Port
    what: str
    """In words: `Deployment/web to cart:7070`."""
    line: Line
    callee: ObservedObject | None = None


@dataclass(frozen=True)
class PolicyBlame:
    """The policy and field that keeps a call away, and how surely it was meant for it."""

    policy: ObservedObject
    field: str
    value: str
    score: int


@one_per_field
def network_policy(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each policy that keeps a call away which somebody needs."""
    if snapshot.of_kind("NetworkPolicy"):
        yield from _blocked_calls(snapshot)
        yield from _unreachable(snapshot)


def _blocked_calls(snapshot: Snapshot) -> Iterator[Finding]:
    for caller in workloads(snapshot):
        if caller.kind in ("Job", "CronJob") or wanted_replicas(caller):
            for call in _calls(snapshot, caller):
                yield from _findings(snapshot, call)


def _findings(snapshot: Snapshot, call: Call) -> Iterator[Finding]:
    policies = blocked_by(snapshot, call.workload, call.direction, call.peer, call.port)
    confidence = _certainty(snapshot, call) if policies else 0.0
    if confidence:
        yield _finding(snapshot, call, _blame(snapshot, call, policies), confidence)


def _certainty(snapshot: Snapshot, call: Call) -> float:
    """A complaint, a caller that is not ready, or a Signal about one of the two; else nobody suffers."""
    caller = call.caller.ref
    if call.line:
        return 0.95
    if is_short(snapshot, caller):
        return 0.85
    wide = snapshot.target.kind in ("Namespace", "NetworkPolicy")
    return 0.7 if wide or is_near(snapshot, caller) else 0.0


# --- the calls that are known -------------------------------------------------------------------------------


def _calls(snapshot: Snapshot, caller: ObservedObject) -> Iterator[Call]:
    known = [*addresses_of(snapshot, caller), *calls_in_logs(snapshot, caller)]
    for address in known:
        yield from _to_service(snapshot, caller, address)
        yield from _to_outside(snapshot, caller, address)
    yield from _to_names(snapshot, caller, known)


def _to_service(snapshot: Snapshot, caller: ObservedObject, address: NamedAddress) -> Iterator[Call]:
    service = called_service(snapshot, address)
    if service is None:
        yield from _to_unread(snapshot, caller, address)
        return
    line = complaint(snapshot, caller.ref, (address.host, *service_names(service)))
    what = f"{caller.ref.display} to {address.host}:{address.port or '?'}"
    own = peer_of(caller, pods_of(snapshot, caller.ref))
    for target in workloads_behind(snapshot, service):
        port = port_of(target, *_target_port(service, address.port))
        other = peer_of(target, pods_of(snapshot, target.ref))
        if wanted_replicas(target):
            yield Call(caller, target, INGRESS, own, port, what, line, target)
        yield Call(caller, caller, EGRESS, other, port, what, line, target)


def _to_unread(snapshot: Snapshot, caller: ObservedObject, address: NamedAddress) -> Iterator[Call]:
    """A Service of a namespace that was not read: its pods' labels are not known, so only the namespace counts."""
    place = service_named(snapshot, address.host, caller.namespace)
    line = complaint(snapshot, caller.ref, (address.host,))
    if place is None or place[1] == caller.namespace or not line:
        return
    for policy in isolating(snapshot, caller, EGRESS):
        for rule in rules(policy, EGRESS):
            named = listed(rule, "to")
            if not named or any(each.get("podSelector") or "ipBlock" in each for each in named):
                return
    what = f"{caller.ref.display} to {address.shown}"
    yield Call(caller, caller, EGRESS, Peer(place[1], {}), Port(None), what, line)


def _target_port(service: ObservedObject, number: int | None) -> tuple[object, str]:
    """Target port and protocol of a Service's port; its only one where the caller names none."""
    ports = service_ports(service)
    found = next((each for each in ports if each.get("port") == number), ports[0] if len(ports) == 1 else {})
    return found.get("targetPort") or found.get("port"), str(found.get("protocol") or "TCP")


def _to_outside(snapshot: Snapshot, caller: ObservedObject, address: NamedAddress) -> Iterator[Call]:
    """A host outside counts only where the caller complains of it."""
    if service_named(snapshot, address.host, caller.namespace) is not None:
        return
    line = complaint(snapshot, caller.ref, (address.host,), REACHING)
    if line:
        what = f"{caller.ref.display} to {address.shown}"
        yield Call(caller, caller, EGRESS, _OUTSIDE, Port(address.port), what, line)


def _to_names(snapshot: Snapshot, caller: ObservedObject, known: list[NamedAddress]) -> Iterator[Call]:
    """The cluster's DNS, for whoever calls by name."""
    ref = caller.ref
    unanswered = any_complaint(snapshot, ref, UNANSWERED)
    line = any_complaint(snapshot, ref, RESOLVING) or unanswered
    is_answered = not unanswered and any_complaint(snapshot, ref, ANSWERED) is not None
    if is_answered or (not known and not line):
        return
    blocked = all(_is_name_blocked(snapshot, caller, protocol) for protocol in ("UDP", "TCP"))
    if blocked:
        what = f"{ref.display} to the cluster's DNS (port {DNS_PORT})"
        yield Call(caller, caller, EGRESS, _dns(snapshot), Port(DNS_PORT, "UDP"), what, line)


def _is_name_blocked(snapshot: Snapshot, caller: ObservedObject, protocol: str) -> bool:
    """Addresses count as the DNS's where port 53 is allowed to them: caches on the node have their own."""
    port = Port(DNS_PORT, protocol)
    policies = isolating(snapshot, caller, EGRESS)
    by_address = any(
        allows_port(rule, port) and any("ipBlock" in each for each in listed(rule, "to"))
        for policy in policies
        for rule in rules(policy, EGRESS)
    )
    return not by_address and bool(blocked_by(snapshot, caller, EGRESS, _dns(snapshot), port))


def _dns(snapshot: Snapshot) -> Peer:
    """The DNS pods as they were read, else as they are everywhere."""
    pods = [each for each in snapshot.of_kind("Pod") if each.labels.get("k8s-app") == "kube-dns"]
    return Peer(pods[0].namespace, {**pods[0].labels}) if pods else _DNS


# --- which policy is to blame -------------------------------------------------------------------------------


def _blame(snapshot: Snapshot, call: Call, policies: list[ObservedObject]) -> PolicyBlame:
    found = [*(_nearest_rule(snapshot, call, each) for each in policies), *_drifted(snapshot, call)]
    return max(found, key=lambda each: (each.score, each.policy.created, each.policy.name))


def _nearest_rule(snapshot: Snapshot, call: Call, policy: ObservedObject) -> PolicyBlame:
    """The rule of a policy that comes nearest to letting the call through."""
    found = [
        _rule_blame(snapshot, call, policy, number, rule) for number, rule in enumerate(rules(policy, call.direction))
    ]
    selector = policy.spec.get("podSelector") or {}
    denies = PolicyBlame(
        policy, path_of(call.direction), "[]" if not found else "", 2 if not found else 1 + bool(selector)
    )
    best = max(found, key=lambda each: each.score, default=denies)
    return best if best.score > denies.score else denies


def _rule_blame(snapshot: Snapshot, call: Call, policy: ObservedObject, number: int, rule: Json) -> PolicyBlame:
    word = peers_word(call.direction)
    if allows_peer(snapshot, policy, rule, call.direction, call.peer):
        said = ",".join(f"{each.get('protocol') or 'TCP'}/{each.get('port', 'all')}" for each in listed(rule, "ports"))
        return PolicyBlame(policy, path_of(call.direction, number, "ports"), said, 5)
    slips = _is_near_peer(snapshot, policy, call, rule)
    score = 6 if slips and allows_port(rule, call.port) else 1
    peers_text = ";".join(_peer_text(each) for each in listed(rule, word))
    return PolicyBlame(policy, path_of(call.direction, number, word), peers_text, score)


def _peer_text(peer: Json) -> str:
    if "ipBlock" in peer:
        return str((peer.get("ipBlock") or {}).get("cidr"))
    parts = [(word, value_at(peer, word, "matchLabels")) for word in ("namespaceSelector", "podSelector")]
    return " ".join(
        f"{word}:" + ",".join(f"{key}={value}" for key, value in labels.items()) for word, labels in parts if labels
    )


def _is_near_peer(snapshot: Snapshot, policy: ObservedObject, call: Call, rule: Json) -> bool:
    """A slip in a label, or a rule that takes nobody who is there."""
    labels = dict(call.peer.labels or {})
    for named in listed(rule, peers_word(call.direction)):
        wanted = value_at(named, "podSelector", "matchLabels")
        spaces = value_at(named, "namespaceSelector", "matchLabels")
        place = {NAMESPACE_LABEL: call.peer.namespace}
        if any(_slipped(str(value), labels.get(key)) for key, value in wanted.items()):
            return True
        if any(_slipped(str(value), place.get(key)) for key, value in spaces.items()):
            return True
        here = "podSelector" in named and "namespaceSelector" not in named
        if here and wanted and not _takes_anybody(snapshot, policy, rule, call.direction):
            return True
    return False


def _slipped(value: str, own: str | None) -> bool:
    return own is not None and own != value and is_slip(own, value)


def _takes_anybody(snapshot: Snapshot, policy: ObservedObject, rule: Json, direction: str) -> bool:
    others = (peer_of(each, []) for each in workloads(snapshot))
    return any(allows_peer(snapshot, policy, rule, direction, each) for each in others)


def _drifted(snapshot: Snapshot, call: Call) -> Iterator[PolicyBlame]:
    """A policy that would let the call through, and selects nobody: its podSelector is out of date."""
    for policy in snapshot.of_kind("NetworkPolicy"):
        selector = policy.spec.get("podSelector") or {}
        same = policy.namespace == call.workload.namespace and call.direction in directions(policy)
        if not same or not selector or _selects_anybody(snapshot, policy):
            continue
        if any(
            allows(snapshot, policy, rule, call.direction, call.peer, call.port)
            for rule in rules(policy, call.direction)
        ):
            labels = selector.get("matchLabels") or {}
            value = ",".join(f"{key}={value}" for key, value in labels.items())
            yield PolicyBlame(policy, "spec.podSelector", value, 7)


def _selects_anybody(snapshot: Snapshot, policy: ObservedObject) -> bool:
    return any(
        policy in isolating(snapshot, each, direction)
        for each in workloads(snapshot, policy.namespace)
        for direction in directions(policy)
    )


# --- what is said -------------------------------------------------------------------------------------------


def _finding(snapshot: Snapshot, call: Call, blame: PolicyBlame, confidence: float) -> Finding:
    ref, caller = blame.policy.ref, call.caller.ref
    word = call.direction.lower()
    shown = f"{blame.field} = {blame.value}" if blame.value else blame.field
    return Finding(
        category="NetworkPolicyBlocking",
        object=ref,
        field=blame.field,
        value=limited(blame.value),
        summary=f"{ref.display}: its {word} rules ({shown}) do not let {call.what} through, and no other policy does"[
            :500
        ],
        confidence=confidence,
        citations=(
            *cite(snapshot, blame.policy, *_policy_quotes(blame.policy), named_quote(blame.policy)),
            *cite_line(snapshot, call.line),
        ),
        explains=((f"{caller.display}: {call.line[1]}"[:253],) if call.line else ()),
        facts={"caller": caller.name, "direction": call.direction, "call": limited(call.what)}
        | {"port": str(call.port.number or ""), "protocol": call.port.protocol}
        | ({"callee": call.callee.name} if call.callee else {}),
        refuted_by=(
            "The call going through while the policy stands, or a network plugin that does not enforce policies, would "
            "refute it.",
        ),
        actions=("FixNetworkPolicy",),
    )


def _policy_quotes(policy: ObservedObject) -> Iterator[str]:
    spec = policy.spec
    for word in ("policyTypes", "podSelector", "ingress", "egress"):
        if spec.get(word):
            yield quoted(word, spec[word])


# --- workloads that nobody can reach ------------------------------------------------------------------------


def _unreachable(snapshot: Snapshot) -> Iterator[Finding]:
    """Served to the outside, or the very thing the Signal is about, and no rule lets anybody in."""
    routed = {(each.namespace, name) for each in snapshot.of_kind("Ingress") for name in backends_of(each.object)}
    for workload in workloads(snapshot):
        policies = isolating(snapshot, workload, INGRESS)
        services = services_of(snapshot, workload) if policies else []
        if not services or not wanted_replicas(workload):
            continue
        who = _who_is_kept_out(snapshot, workload, services, policies, routed)
        if who:
            yield _closed(snapshot, workload, policies, *who)


def _who_is_kept_out(
    snapshot: Snapshot,
    workload: ObservedObject,
    services: list[ObservedObject],
    policies: list[ObservedObject],
    routed: set[tuple[str, str]],
) -> tuple[str, float] | None:
    every = [rule for policy in policies for rule in rules(policy, INGRESS)]
    outward = any(each.spec.get("type") in ("LoadBalancer", "NodePort") for each in services)
    by_route = any((each.namespace, each.name) in routed for each in services)
    if (by_route or outward) and not any(_takes_foreign(rule) for rule in every):
        return "nobody from outside its namespace", 0.8 if by_route else 0.7
    about = [workload.ref, *(each.ref for each in services)]
    if not every and any(_is_the_target(snapshot, ref) for ref in about):
        return "nobody", 0.7
    return None


def _takes_foreign(rule: Json) -> bool:
    named = listed(rule, "from")
    return not named or any("namespaceSelector" in each or "ipBlock" in each for each in named)


def _is_the_target(snapshot: Snapshot, ref: TargetRef) -> bool:
    target = snapshot.target
    return (target.kind, target.name) == (ref.kind, ref.name) or (target.kind, target.name) == (
        "Namespace",
        ref.namespace,
    )


def _closed(
    snapshot: Snapshot, workload: ObservedObject, policies: list[ObservedObject], who: str, confidence: float
) -> Finding:
    policy = max(policies, key=lambda each: (not rules(each, INGRESS), each.created, each.name))
    ref, owner = policy.ref, workload.ref
    return Finding(
        category="NetworkPolicyBlocking",
        object=ref,
        field=path_of(INGRESS),
        value="" if rules(policy, INGRESS) else "[]",
        summary=f"{ref.display}: it isolates {owner.display}, which has a Service, and its ingress rules "
        f"({path_of(INGRESS)}) let {who} in",
        confidence=confidence,
        citations=cite(snapshot, policy, *_policy_quotes(policy), named_quote(policy)),
        explains=(f"{owner.display}: nothing reaches it",),
        facts={
            "callee": owner.name,
            "direction": INGRESS,
            "labels": limited(template_labels(workload)),
        },
        refuted_by=("A request that reached those pods while the policy stands would refute it.",),
        actions=("FixNetworkPolicy",),
    )
