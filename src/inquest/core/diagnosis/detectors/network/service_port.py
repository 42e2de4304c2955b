"""A Service's port that leads to no port of its pods, or leads there with another protocol.

A container's `ports` only inform, so a target port that is not among them is held against what else tells where the
process listens: its probes, a PORT variable, its arguments, its own first lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.core.cluster.pods import start_words
from inquest.core.diagnosis.detectors.citations import cite, cite_line, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    addresses,
    called_service,
    complaint,
    newest_lines,
    pods_behind,
    port_path,
    selector_of,
    service_names,
    service_ports,
    workloads_behind,
)
from inquest.core.diagnosis.detectors.workloads import container_specs, is_ready, listed
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

_LISTENS: Final = re.compile(
    r"\b(?:listen\w*|serving|start(?:ed|ing)|running|bound)\b[^\n]{0,60}?\b(?:on|at|to|port)\b[^\n]{0,40}?"
    r"(?:port[ =:]{1,3}|port\(s\): |:| )(?P<port>\d{2,5})\b",
    re.IGNORECASE,
)
_CALLS: Final = re.compile(r"connect|dial|upstream|proxy", re.IGNORECASE)
"""Words of a line that speaks of somebody else's port."""
_REFUSED: Final = re.compile(r"refused|ECONNREFUSED", re.IGNORECASE)
_PROBES: Final = ("readinessProbe", "livenessProbe", "startupProbe")
_MESH_PORTS: Final = frozenset({15000, 15001, 15006, 15008, 15020, 15021, 15090, 4143, 4191})
"""Ports of mesh sidecars: declared beside the workload's own."""


@dataclass(frozen=True)
class Ports:
    """What is known of the ports of the pods behind a Service."""

    declared: frozenset[tuple[int, str]]
    """Number and protocol."""
    names: frozenset[str]
    probed: frozenset[int]
    said: frozenset[int]
    """By a PORT variable or an argument."""
    heard: frozenset[int]
    """By the process's own words."""
    line: tuple[LogTail, str] | None
    pods: tuple[ObservedObject, ...]

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(number for number, _ in self.declared) - _MESH_PORTS


@one_per_field
def service_port(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each port of a Service that does not meet its pods."""
    for service in snapshot.of_kind("Service"):
        if not selector_of(service) or service.spec.get("type") == "ExternalName":
            continue
        sources = pods_behind(snapshot, service) or workloads_behind(snapshot, service)
        if not sources:
            continue
        ports = _ports(snapshot, sources)
        for port in service_ports(service):
            finding = _checked(snapshot, service, port, ports)
            if finding:
                yield finding


def _ports(snapshot: Snapshot, sources: list[ObservedObject]) -> Ports:
    containers = [container for each in sources for _, container in container_specs(each)]
    declared = [port for container in containers for port in listed(container, "ports")]
    numbers = {str(port["name"]): port.get("containerPort") for port in declared if port.get("name")}
    heard, line = _heard(snapshot, sources)
    return Ports(
        frozenset(
            (int(port["containerPort"]), str(port.get("protocol") or "TCP"))
            for port in declared
            if isinstance(port.get("containerPort"), int)
        ),
        frozenset(numbers),
        frozenset(number for container in containers for number in _probed(container, numbers)),
        frozenset(number for container in containers for number in _said(container)),
        frozenset(heard),
        line,
        tuple(each for each in sources if each.kind == "Pod"),
    )


def _probed(container: Json, numbers: dict[str, object]) -> Iterator[int]:
    for name in _PROBES:
        probe = container.get(name) or {}
        for handler in ("httpGet", "tcpSocket", "grpc"):
            port = (probe.get(handler) or {}).get("port")
            number = numbers.get(port, port) if isinstance(port, str) else port
            if isinstance(number, int):
                yield number


_ARGUMENT: Final = re.compile(r"(?:port[= ]|:|^)(?P<port>\d{2,5})$", re.IGNORECASE)


def _said(container: Json) -> Iterator[int]:
    for entry in listed(container, "env"):
        name, value = str(entry.get("name", "")).upper(), str(entry.get("value") or "")
        if name in _OWN_PORT and value.rpartition(":")[2].isdigit():
            yield int(value.rpartition(":")[2][:6])
    for word in start_words(container):
        match = _ARGUMENT.search(word[-300:])
        if match:
            yield int(match["port"])


_OWN_PORT: Final = frozenset(
    {"PORT", "HTTP_PORT", "SERVER_PORT", "LISTEN_PORT", "APP_PORT", "GRPC_PORT", "LISTEN_ADDR", "LISTEN"}
)


def _heard(snapshot: Snapshot, sources: list[ObservedObject]) -> tuple[set[int], tuple[LogTail, str] | None]:
    names = {(each.namespace, each.name) for each in sources if each.kind == "Pod"}
    found: set[int] = set()
    first: tuple[LogTail, str] | None = None
    for log in snapshot.logs:
        if (log.namespace, log.pod) in names and not log.previous:
            for line in newest_lines(log):
                match = None if _CALLS.search(line) else _LISTENS.search(line)
                if match:
                    found.add(int(match["port"]))
                    first = first or (log, line.strip())
    return found, first


# --- one port ------------------------------------------------------------------------------------------------------


def _checked(snapshot: Snapshot, service: ObservedObject, port: Json, ports: Ports) -> Finding | None:
    target = port.get("targetPort") or port.get("port")
    protocol = str(port.get("protocol") or "TCP")
    if isinstance(target, str) and not target.isdigit():
        # A name that no container of the pods gives to a port.
        if target in ports.names:
            return None
        known = ", ".join(sorted(ports.names)) or ", ".join(map(str, sorted(ports.numbers))) or "none"
        why = f"no port of its pods has that name (they have {known})"
        return _mismatch(snapshot, service, port, target, why, 0.93, ports, known)
    number = int(str(target)) if str(target).isdigit() else 0
    if number in ports.numbers and (number, protocol) not in ports.declared:
        return _other_protocol(snapshot, service, port, number, protocol, ports)
    if protocol == "TCP" and number and number in _MESH_PORTS:
        return None
    # A number at which nothing listens, as far as anything tells.
    if not number or _answers(number, ports):
        return None
    if ports.heard and number not in ports.heard and (ports.numbers | ports.heard) - {number}:
        return _heard_elsewhere(snapshot, service, port, number, ports)
    elsewhere = ports.numbers or ports.said or ports.probed
    if number in ports.numbers or not elsewhere:
        return None
    other = ", ".join(map(str, sorted(elsewhere)))
    confidence = 0.9 if ports.numbers else 0.75
    return _mismatch(snapshot, service, port, str(number), f"its pods' ports are {other}", confidence, ports, other)


def _heard_elsewhere(
    snapshot: Snapshot, service: ObservedObject, port: Json, number: int, ports: Ports
) -> Finding | None:
    """A port that is declared may be right though another is spoken of: then somebody has to be refused there."""
    declared = number in ports.numbers
    if declared and not _is_refused(snapshot, service):
        return None
    other = ", ".join(map(str, sorted(ports.heard)))
    confidence = 0.75 if declared else 0.93
    return _mismatch(snapshot, service, port, str(number), f"its pods listen on {other}", confidence, ports, other)


def _is_refused(snapshot: Snapshot, service: ObservedObject) -> bool:
    callers = {each.caller_ref.key: each for each in addresses(snapshot) if called_service(snapshot, each) == service}
    return any(complaint(snapshot, each.caller_ref, service_names(service), _REFUSED) for each in callers.values())


def _answers(number: int, ports: Ports) -> bool:
    """A probe that succeeds there, or the process's own word or setting."""
    probed = number in ports.probed and any(is_ready(pod) for pod in ports.pods)
    return probed or number in ports.heard or (number in ports.said and not ports.heard)


def _mismatch(
    snapshot: Snapshot,
    service: ObservedObject,
    port: Json,
    target: str,
    why: str,
    confidence: float,
    ports: Ports,
    other: str,
) -> Finding:
    ref = service.ref
    field = port_path(service, port, "targetPort")
    return Finding(
        category="PortMismatch",
        object=ref,
        field=field,
        value=limited(target),
        summary=f"{ref.display}: its port {port.get('port')} leads to {field} = {target}, and {why}",
        confidence=confidence,
        citations=(*_quotes(snapshot, service, port, ports), *cite_line(snapshot, ports.line)),
        explains=(f"{ref.display}: connections to port {port.get('port')} are refused",),
        facts={"service": service.name, "port": str(port.get("port")), "targetPort": target, "containerPort": other},
        refuted_by=(f"A process in those pods that listens on {target} would refute it.",),
        actions=("PatchConfiguration",),
    )


def _quotes(snapshot: Snapshot, service: ObservedObject, port: Json, ports: Ports) -> tuple[Citation, ...]:
    target = port.get("targetPort")
    wrong = quoted("targetPort", target) if target is not None else quoted("port", port.get("port"))
    own = [f'"containerPort":{number}' for number in sorted(ports.numbers)[:2]]
    pod = ports.pods[0] if ports.pods else None
    return (*cite(snapshot, service, wrong, named_quote(service)), *cite(snapshot, pod, *own))


def _other_protocol(
    snapshot: Snapshot, service: ObservedObject, port: Json, number: int, protocol: str, ports: Ports
) -> Finding:
    ref = service.ref
    field = port_path(service, port, "protocol")
    own = ", ".join(sorted(each for at, each in ports.declared if at == number))
    return Finding(
        category="ProtocolMismatch",
        object=ref,
        field=field,
        value=protocol,
        summary=f"{ref.display}: its port {port.get('port')} is {protocol} ({field}), and port {number} of its pods is "
        f"{own}",
        confidence=0.92,
        citations=(
            *cite(snapshot, service, quoted("protocol", protocol)),
            *_quotes(snapshot, service, port, ports)[1:],
        ),
        explains=(f"{ref.display}: connections to port {port.get('port')} time out",),
        facts={"service": service.name, "port": str(port.get("port")), "protocol": protocol, "containerProtocol": own},
        refuted_by=(f"A process in those pods that listens on {number} with {protocol} would refute it.",),
        actions=("PatchConfiguration",),
    )
