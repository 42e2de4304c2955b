"""A workload that calls what does not exist: a Service's name, its namespace or its port written wrong.

An address in the environment, the arguments or a ConfigMap is held against the Services. One that names nothing is a
fault only where something says that it matters: a slip in the name, the caller's own complaint, or a caller that is
not ready; optional helpers that were never installed are named in many manifests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.citations import (
    MAX_VALUE,
    cite,
    cite_entry,
    cite_line,
    limited,
    named_quote,
    quoted,
)
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    RESOLVING,
    NamedAddress,
    addresses,
    called_service,
    complaint,
    known_namespaces,
    port_path,
    service_at,
    service_named,
    service_names,
    service_ports,
    workload_logs,
    workloads_behind,
)
from inquest.core.diagnosis.detectors.network.service_selector import is_slip
from inquest.core.diagnosis.detectors.revisions import roll_back, way_back
from inquest.core.diagnosis.detectors.workloads import (
    container_specs,
    is_short,
    listed,
    proof_of_absence,
    ref_to,
    workloads,
)
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot


@one_per_field
def address_misconfigured(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each field that names a Service or a port of it that does not exist."""
    yield from _callers(snapshot)
    yield from _external_names(snapshot)
    yield from _governing(snapshot)


def _callers(snapshot: Snapshot) -> Iterator[Finding]:
    known = addresses(snapshot)
    for address in known:
        finding = _unknown_name(snapshot, address) or _unknown_port(snapshot, address, known)
        if finding:
            yield finding


# --- names --------------------------------------------------------------------------------------------------


def _unknown_name(snapshot: Snapshot, address: NamedAddress) -> Finding | None:
    place = service_named(snapshot, address.host, address.caller.namespace)
    if place is None or service_at(snapshot, place):
        return None
    proof = proof_of_absence(snapshot, "Service", *place)
    meant = _meant(snapshot, address, *place)
    line = complaint(snapshot, address.caller_ref, (address.host,))
    unresolved = line is not None and bool(RESOLVING.search(line[1]))
    # The name of the caller or of a pod: it listens there.
    pods = {each.name for each in snapshot.of_kind("Pod") if each.namespace == address.caller.namespace}
    if address.host.split(".")[0] in {address.caller.name} | pods or not (proof or (unresolved and meant)):
        return None
    behind = _named_like(snapshot, *place)
    if behind is not None and (line or is_short(snapshot, address.caller_ref)):
        return _missing_service(snapshot, address, place, behind, line)
    confidence = _certainty(snapshot, address, meant, line)
    return _name_finding(snapshot, address, place, proof, meant, line, confidence) if confidence else None


def _named_like(snapshot: Snapshot, name: str, namespace: str) -> ObservedObject | None:
    """A workload of the very name that is called: then the name is right, and its Service is missing."""
    found = (each for each in workloads(snapshot, namespace) if each.name == name)
    return next((each for each in found if each.kind not in ("Job", "CronJob")), None)


def _missing_service(
    snapshot: Snapshot,
    address: NamedAddress,
    place: tuple[str, str],
    behind: ObservedObject,
    line: tuple[LogTail, str] | None,
) -> Finding | None:
    ref = ref_to("Service", place[0], place[1], "v1")
    if ref is None:
        return None
    caller, proof = address.caller_ref, proof_of_absence(snapshot, "Service", *place)
    return Finding(
        category="NoReadyEndpoints",
        object=ref,
        field="metadata.name",
        value="",
        summary=f"{ref.display}: none exists in {place[1]} (metadata.name), though {behind.ref.display} "
        f"is there to serve and {caller.display} calls it ({address.shown})",
        confidence=0.88 if line else 0.8,
        citations=(
            *_own_words(snapshot, address),
            *cite_entry(snapshot, proof),
            *cite_line(snapshot, line),
        ),
        explains=(f"{caller.display}: {line[1]}"[:253],) if line else (),
        facts={**_facts(address, place[0], None), "workload": behind.name},
        refuted_by=("A Service of that name, or another resolver of it, would refute it.",),
    )


def _meant(snapshot: Snapshot, address: NamedAddress, name: str, namespace: str) -> ObservedObject | None:
    """The Service that was meant: a slip in the name, or the same name in another namespace."""
    services = snapshot.of_kind("Service")
    elsewhere = [each for each in services if each.name == name and each.namespace != namespace]
    here = [each for each in services if each.namespace == namespace and is_slip(each.name, name)]
    same_port = [each for each in here if address.port in {port.get("port") for port in service_ports(each)}]
    return next(iter([*same_port, *here, *elsewhere]), None)


def _certainty(
    snapshot: Snapshot, address: NamedAddress, meant: ObservedObject | None, line: tuple[LogTail, str] | None
) -> float:
    """0.0 where nothing says that it matters."""
    unwell = is_short(snapshot, address.caller_ref)
    if line:
        return 0.95 if meant else 0.85
    if not address.explicit:
        return 0.0
    if meant and (unwell or address.port is not None):
        return 0.9 if unwell else 0.8
    silent = not workload_logs(snapshot, address.caller_ref)
    return 0.55 if unwell and silent else 0.0


def _name_finding(
    snapshot: Snapshot,
    address: NamedAddress,
    place: tuple[str, str],
    proof: str,
    meant: ObservedObject | None,
    line: tuple[LogTail, str] | None,
    confidence: float,
) -> Finding:
    ref, caller = address.holder.ref, address.caller_ref
    hint = f"; there is {meant.name} in {meant.namespace}" if meant else ""
    return Finding(
        category="AddressMisconfigured",
        object=ref,
        field=address.field,
        value=limited(address.text),
        summary=f"{ref.display}: {caller.display} is told to call {address.shown} ({address.field}), and the namespace "
        f"{place[1]} has no Service {place[0]}{hint}",
        confidence=confidence,
        citations=(
            *_own_words(snapshot, address),
            *cite_entry(snapshot, proof),
            *cite_line(snapshot, line),
        ),
        explains=(f"{caller.display}: {line[1]}"[:253],) if line else (),
        facts={**_facts(address, place[0], meant), **way_back(snapshot, ref)},
        refuted_by=(f"A Service {place[0]} in {place[1]}, or another resolver of that name, would refute it.",),
        actions=_actions(snapshot, address),
    )


def _facts(address: NamedAddress, service: str, meant: ObservedObject | None) -> dict[str, str]:
    return {
        "caller": address.caller.name,
        "container": address.container,
        "host": address.host,
        "service": service,
        "meant": meant.name if meant else "",
    }


def _actions(snapshot: Snapshot, address: NamedAddress) -> tuple[str, ...]:
    """A rollout that brought the address is taken back; a ConfigMap is mended."""
    return (*roll_back(way_back(snapshot, address.holder.ref)), "PatchConfiguration")


def _own_words(snapshot: Snapshot, address: NamedAddress) -> tuple[Citation, ...]:
    return cite(snapshot, address.holder, quoted("value", address.text), address.shown, address.host)


# --- ports --------------------------------------------------------------------------------------------------


def _unknown_port(snapshot: Snapshot, address: NamedAddress, known: list[NamedAddress]) -> Finding | None:
    service = called_service(snapshot, address)
    if service is None or address.port is None or service.spec.get("type") == "ExternalName":
        return None
    offered = [port.get("port") for port in service_ports(service)]
    # A headless Service gives the pods' addresses: their own ports count.
    if service.spec.get("clusterIP") == "None":
        return _behind_headless(snapshot, service, address)
    if not offered or address.port in offered:
        return None
    alike = {each.caller_ref.key for each in known if _calls_same(snapshot, each, service, address.port)}
    rightly = {
        each.caller_ref.key for each in known if called_service(snapshot, each) == service and each.port in offered
    }
    if not rightly and (len(alike) > 1 or _is_moved(service, address.port)):
        return _service_finding(snapshot, service, address, offered, len(alike))
    return _port_finding(snapshot, service, address, offered, rightly=bool(rightly))


def _behind_headless(snapshot: Snapshot, service: ObservedObject, address: NamedAddress) -> Finding | None:
    """A headless Service translates no port: its callers reach the pods' own, whatever it offers."""
    found = next((port for port in service_ports(service) if port.get("port") == address.port), None)
    target = (found or {}).get("targetPort")
    pods = workloads_behind(snapshot, service)
    own = {port.get("containerPort") for each in pods for _, c in container_specs(each) for port in listed(c, "ports")}
    if found is None or target in (None, address.port) or not own or address.port in own:
        return None
    ref = service.ref
    return Finding(
        category="PortMismatch",
        object=ref,
        field=port_path(service, found, "port"),
        value=limited(address.port),
        summary=f"{ref.display}: it is headless, so its port {address.port} is not translated to {target}, and its "
        f"pods listen on {', '.join(map(str, sorted(map(str, own))))}; {address.caller_ref.display} calls "
        f"{address.shown}",
        confidence=0.82,
        citations=(*cite(snapshot, service, quoted("clusterIP", "None")), *_own_words(snapshot, address)),
        explains=(f"{ref.display}: connections to port {address.port} are refused",),
        facts={"service": service.name, "port": str(address.port), "targetPort": str(target)},
        refuted_by=(f"A process in those pods that listens on {address.port} would refute it.",),
        actions=("PatchConfiguration",),
    )


_FRONT_PORTS: Final = frozenset({80, 443})


def _is_moved(service: ObservedObject, called: int) -> bool:
    """A Service mostly keeps the number of its pods' port, but for the ports of the web: another one was put there."""
    ports = service_ports(service)
    return len(ports) == 1 and ports[0].get("targetPort") == called and ports[0].get("port") not in _FRONT_PORTS


def _calls_same(snapshot: Snapshot, address: NamedAddress, service: ObservedObject, port: int) -> bool:
    return address.port == port and called_service(snapshot, address) == service


def _port_finding(
    snapshot: Snapshot, service: ObservedObject, address: NamedAddress, offered: list[object], *, rightly: bool
) -> Finding:
    ref, caller = address.holder.ref, address.caller_ref
    field = address.port_field or address.field
    line = complaint(snapshot, caller, (address.host, *service_names(service)))
    ports = ", ".join(map(str, offered))
    return Finding(
        category="AddressMisconfigured",
        object=ref,
        field=field,
        value=limited(address.text if field == address.field else address.port),
        summary=f"{ref.display}: {caller.display} is told to call {address.shown} ({field}), and "
        f"Service/{service.name} offers {ports} only",
        confidence=0.93 if line or rightly else 0.85,
        citations=(
            *_own_words(snapshot, address),
            *cite(snapshot, service, *(quoted("port", port) for port in offered), named_quote(service)),
            *cite_line(snapshot, line),
        ),
        explains=(f"{caller.display}: {line[1]}"[:253],) if line else (),
        facts={**_facts(address, service.name, service), "port": str(address.port), "offered": ports}
        | way_back(snapshot, ref),
        refuted_by=(f"Service/{service.name} offering {address.port} would refute it.",),
        actions=_actions(snapshot, address),
    )


def _service_finding(
    snapshot: Snapshot, service: ObservedObject, address: NamedAddress, offered: list[object], callers: int
) -> Finding:
    """All who call it ask for one port that it does not offer: then it is the Service that changed."""
    ref = service.ref
    first = service_ports(service)[0]
    name = first.get("name")
    field = f"spec.ports[name={name}].port" if name else "spec.ports[0].port"
    return Finding(
        category="PortMismatch",
        object=ref,
        field=field,
        value=limited(offered[0]),
        summary=f"{ref.display}: it offers {', '.join(map(str, offered))} ({field}), and whoever calls it "
        f"({callers} workloads) asks for {address.port}",
        confidence=0.88,
        citations=(*cite(snapshot, service, quoted("port", offered[0])), *_own_words(snapshot, address)),
        explains=(f"{ref.display}: connections to port {address.port} time out",),
        facts={"service": service.name, "port": str(offered[0]), "called": str(address.port)},
        refuted_by=("A caller that reaches it on the port it offers would refute it.",),
        actions=("PatchConfiguration",),
    )


# --- Services that stand for another name -------------------------------------------------------------------


def _external_names(snapshot: Snapshot) -> Iterator[Finding]:
    for service in snapshot.of_kind("Service"):
        spec = service.spec
        if spec.get("type") == "ExternalName":
            name = str(spec.get("externalName") or "")
            why, confidence, proof = _wrong_external(snapshot, service, name)
            if why:
                yield _external(snapshot, service, name, why, confidence, proof)


def _wrong_external(snapshot: Snapshot, service: ObservedObject, name: str) -> tuple[str, float, str]:
    """Why a name cannot be right, how sure, and the evidence of absence."""
    if "://" in name or "/" in name or ":" in name:
        return "that is no host name", 0.93, ""
    if name and name.replace(".", "").isdigit():
        return "that is an address, and only names can stand there", 0.85, ""
    place = service_named(snapshot, name, service.namespace) if ".svc" in name else None
    proof = proof_of_absence(snapshot, "Service", *place) if place else ""
    if place and not service_at(snapshot, place) and (proof or place[1] in known_namespaces(snapshot)):
        return (f"there is no Service {place[0]} in {place[1]}", 0.93, proof) if proof else ("", 0.0, "")
    callers = {each.caller_ref.key: each for each in addresses(snapshot) if called_service(snapshot, each) == service}
    for each in callers.values():
        if complaint(snapshot, each.caller_ref, (name, service.name)):
            return "its callers cannot reach that", 0.8, ""
    return "", 0.0, ""


def _external(
    snapshot: Snapshot, service: ObservedObject, name: str, why: str, confidence: float, proof: str
) -> Finding:
    ref = service.ref
    return Finding(
        category="AddressMisconfigured",
        object=ref,
        field="spec.externalName",
        value=name[:MAX_VALUE],
        summary=f"{ref.display}: it stands for {name} (spec.externalName), and {why}",
        confidence=confidence,
        citations=(
            *cite(snapshot, service, quoted("externalName", name)),
            *cite_entry(snapshot, proof),
        ),
        explains=(f"{ref.display}: its name leads nowhere",),
        facts={"service": service.name, "externalName": name},
        refuted_by=("That name resolving from a pod would refute it.",),
        actions=("PatchConfiguration",),
    )


# --- the Service that names a StatefulSet's pods ------------------------------------------------------------


def _governing(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods of a StatefulSet have names of their own only under the headless Service that it names."""
    known = addresses(snapshot)
    for found in snapshot.of_kind("StatefulSet"):
        name = found.spec.get("serviceName")
        called = [each for each in known if _is_pod_name(each, found)]
        if name and called:
            yield from _governed(snapshot, found, str(name), called[0])


def _is_pod_name(address: NamedAddress, found: ObservedObject) -> bool:
    first, _, rest = address.host.partition(".")
    stem, _, ordinal = first.rpartition("-")
    return stem == found.name and ordinal.isdigit() and bool(rest)


def _governed(snapshot: Snapshot, found: ObservedObject, name: str, address: NamedAddress) -> Iterator[Finding]:
    proof = proof_of_absence(snapshot, "Service", name, found.namespace)
    service = snapshot.at("Service", found.namespace, name)
    wanted = address.host.split(".")[1]
    if service is not None and wanted == name:
        return
    if service is None and not proof:
        return
    ref: TargetRef = found.ref
    why = f"its pods are called under {wanted}" if service is not None else "there is no such Service"
    yield Finding(
        category="AddressMisconfigured",
        object=ref,
        field="spec.serviceName",
        value=limited(name),
        summary=f"{ref.display}: spec.serviceName is {name}, and {why}, so that {address.host} has no address",
        confidence=0.85,
        citations=(*cite(snapshot, found, quoted("serviceName", name)), *_own_words(snapshot, address)),
        explains=(f"{address.caller_ref.display}: {address.host} does not resolve",),
        facts={"service": name, "host": address.host, "caller": address.caller.name},
        refuted_by=("That host name resolving from a pod would refute it.",),
    )
