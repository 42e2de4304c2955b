"""Network policies as the API defines them: whom they isolate, and what their rules let through.

A pod is isolated in a direction by any policy that selects it and names that direction; then only what some rule of
such a policy allows gets through (networking.k8s.io/v1, NetworkPolicySpec). What cannot be told counts as allowed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.workloads import container_specs, listed, pod_spec_of, template_labels
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

INGRESS: Final = "Ingress"
EGRESS: Final = "Egress"
_RULES: Final = {INGRESS: "ingress", EGRESS: "egress"}
_PEERS: Final = {INGRESS: "from", EGRESS: "to"}
NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Peer:
    """The other end of a connection; `labels` None: a host outside the cluster."""

    namespace: str
    labels: Mapping[str, str] | None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Port:
    """The port at the receiving pod."""

    number: int | None
    protocol: str = "TCP"
    names: frozenset[str] = frozenset()


def isolating(snapshot: Snapshot, workload: ObservedObject, direction: str) -> list[ObservedObject]:
    """The policies that isolate a workload's pods in a direction."""
    if pod_spec_of(workload).get("hostNetwork"):
        return []
    labels = template_labels(workload)
    policies = (each for each in snapshot.of_kind("NetworkPolicy") if each.namespace == workload.namespace)
    acting = (each for each in policies if direction in directions(each))
    return [each for each in acting if _takes(each.spec.get("podSelector") or {}, labels)]


def _takes(selector: Json, labels: Mapping[str, str]) -> bool:
    """An empty selector takes every pod."""
    return not (selector.get("matchLabels") or selector.get("matchExpressions")) or selector_selects(
        selector, labels or {"": ""}
    )


def directions(policy: ObservedObject) -> tuple[str, ...]:
    """What a policy isolates: always ingress where it does not say, egress too where it has such rules."""
    spec = policy.spec
    named = spec.get("policyTypes")
    return tuple(named) if named else (INGRESS, *([EGRESS] if spec.get("egress") else []))


def rules(policy: ObservedObject, direction: str) -> tuple[Json, ...]:
    """The rules of a policy for a direction."""
    return listed(policy.spec, _RULES[direction])


def path_of(direction: str, number: int | None = None, rest: str = "") -> str:
    """Path of a rule, or of the list of them."""
    place = "" if number is None else f"[{number}]"
    return f"spec.{_RULES[direction]}{place}" + (f".{rest}" if rest else "")


def peers_word(direction: str) -> str:
    """`from` or `to`."""
    return _PEERS[direction]


def blocked_by(
    snapshot: Snapshot, workload: ObservedObject, direction: str, peer: Peer, port: Port
) -> list[ObservedObject]:
    """The policies that together keep this connection away; empty where it gets through."""
    policies = isolating(snapshot, workload, direction)
    open_ = any(allows(snapshot, each, rule, direction, peer, port) for each, rule in _all(policies, direction))
    return [] if open_ else policies


def _all(policies: list[ObservedObject], direction: str) -> Iterator[tuple[ObservedObject, Json]]:
    return ((policy, rule) for policy in policies for rule in rules(policy, direction))


def allows(snapshot: Snapshot, policy: ObservedObject, rule: Json, direction: str, peer: Peer, port: Port) -> bool:
    """Whether one rule lets a connection through."""
    return allows_peer(snapshot, policy, rule, direction, peer) and allows_port(rule, port)


def allows_peer(snapshot: Snapshot, policy: ObservedObject, rule: Json, direction: str, peer: Peer) -> bool:
    """No peers named: everybody."""
    named = listed(rule, _PEERS[direction])
    return not named or any(_is_peer(snapshot, policy, each, peer) for each in named)


def _is_peer(snapshot: Snapshot, policy: ObservedObject, named: Json, peer: Peer) -> bool:
    if "ipBlock" in named:
        block = named.get("ipBlock") or {}
        network = _network(block.get("cidr"))
        if network is None:
            return True
        if not peer.addresses:
            return network.prefixlen <= _WIDE
        left_out = [each for each in map(_network, block.get("except") or ()) if each is not None]
        return any(_holds(network, each) and not any(_holds(out, each) for out in left_out) for each in peer.addresses)
    if peer.labels is None:
        return False
    pods = named.get("podSelector")
    if pods is not None and not _takes(pods, peer.labels):
        return False
    spaces = named.get("namespaceSelector")
    if spaces is None:
        return peer.namespace == policy.namespace
    # A namespace that was not read has the label that every one has; what else it has is not known.
    found = snapshot.at("Namespace", "", peer.namespace)
    labels = {NAMESPACE_LABEL: peer.namespace, **(found.labels if found else {})}
    keys = {*(spaces.get("matchLabels") or {}), *(each.get("key") for each in listed(spaces, "matchExpressions"))}
    return _takes(spaces, labels) or (found is None and bool(keys - {NAMESPACE_LABEL}))


_WIDE: Final = 16
"""A block this wide may hold an address that is not known."""
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: Any) -> _Network | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None


def _holds(network: _Network, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


def allows_port(rule: Json, port: Port) -> bool:
    """No ports named: all of them; a port that is not known counts as allowed."""
    named = listed(rule, "ports")
    return not named or any(_is_port(each, port) for each in named)


def _is_port(named: Json, port: Port) -> bool:
    if str(named.get("protocol") or "TCP") != port.protocol:
        return False
    wanted, end = named.get("port"), named.get("endPort")
    if wanted is None or port.number is None:
        return True
    if isinstance(wanted, str) and not wanted.isdigit():
        return wanted in port.names
    return int(wanted) <= port.number <= int(end if isinstance(end, int) else wanted)


def peer_of(workload: ObservedObject, pods: list[ObservedObject]) -> Peer:
    """A workload as the other end."""
    addresses = tuple(str(pod.status.get("podIP") or "") for pod in pods)
    labels = {**template_labels(workload), **(pods[0].labels if pods else {})}
    return Peer(workload.namespace, labels, tuple(each for each in addresses if each))


def port_of(workload: ObservedObject, target: object, protocol: str) -> Port:
    """A Service's target port at the pods of a workload."""
    ports = [port for _, container in container_specs(workload) for port in listed(container, "ports")]
    if isinstance(target, str) and not target.isdigit():
        number = next((each.get("containerPort") for each in ports if each.get("name") == target), None)
        return Port(number if isinstance(number, int) else None, protocol, frozenset({target}))
    number = int(str(target)) if str(target or "").isdigit() else None
    names = frozenset(str(each.get("name")) for each in ports if each.get("containerPort") == number)
    return Port(number, protocol, names)
