"""A route from outside that leads nowhere: Ingress, HTTPRoute, VirtualService.

Each backend is held against the Services and their ports, each class against the classes; a Gateway route says itself,
in its conditions, what it cannot resolve. A TLS Secret is never read: what its controller said of it stands in the
Ingress's events and in the controller's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.ingress import carrier_logs
from inquest.core.cluster.objects import condition_of, value_at
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, cite_event, cited, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import service_ports
from inquest.core.diagnosis.detectors.network.service_selector import is_slip
from inquest.core.diagnosis.detectors.workloads import age_seconds, listed, proof_of_absence, ref_to
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

GRACE_SECONDS: Final = 60.0
"""A controller may take that long to take up a new route."""
CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
DEFAULT_CLASS: Final = "ingressclass.kubernetes.io/is-default-class"
_NO_SECRET: Final = re.compile(r"not found|does not exist|no such|invalid|missing|no key|expired", re.IGNORECASE)


@dataclass(frozen=True)
class RouteFault:
    """What is wrong with a route: field, value, words, certainty and what shows it."""

    field: str
    value: str
    why: str
    confidence: float
    citations: tuple[Citation, ...] = ()
    cause: str = ""
    service: str = ""


@one_per_field
def ingress_misconfigured(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each field of a route that leads nowhere."""
    for kind, rules in _BY_KIND.items():
        for route in snapshot.of_kind(kind):
            for rule in rules:
                for fault in rule(snapshot, route):
                    yield _finding(snapshot, route, fault)


def _finding(snapshot: Snapshot, route: ObservedObject, fault: RouteFault) -> Finding:
    ref = route.ref
    return Finding(
        category="IngressMisconfigured",
        object=ref,
        field=fault.field,
        value=limited(fault.value),
        summary=f"{ref.display}: {fault.field} is {fault.value or 'not set'}, and {fault.why}",
        confidence=fault.confidence,
        citations=(*cite(snapshot, route, _quote_of(fault), named_quote(route)), *fault.citations),
        explains=(f"{ref.display}: requests fail",),
        felt_by=_service_of(fault, route),
        facts={"route": route.name, "service": fault.service, "cause": fault.cause},
        refuted_by=("A request that came through by this route would refute it.",),
        actions=("FixRouteTarget", "PatchConfiguration"),
    )


def _service_of(fault: RouteFault, route: ObservedObject) -> tuple[TargetRef, ...]:
    """The Service that the requests do not reach; none where it does not exist."""
    ref = ref_to("Service", fault.service, route.namespace) if fault.service else None
    return (ref,) if ref else ()


def _quote_of(fault: RouteFault) -> str:
    word = fault.field.rpartition(".")[2]
    return quoted(word, int(fault.value) if fault.value.isdigit() else fault.value) if fault.value else ""


# --- Ingress ---------------------------------------------------------------------------------------------------------


def backends(ingress: ObservedObject) -> Iterator[tuple[str, Json]]:
    """Path and service of each backend."""
    spec = ingress.spec
    default = (spec.get("defaultBackend") or {}).get("service")
    if default:
        yield "spec.defaultBackend.service", default
    for number, rule in enumerate(listed(spec, "rules")):
        for place, path in enumerate(listed(rule.get("http") or {}, "paths")):
            service = (path.get("backend") or {}).get("service")
            if service:
                yield f"spec.rules[{number}].http.paths[{place}].backend.service", service


def _backend_faults(snapshot: Snapshot, ingress: ObservedObject) -> Iterator[RouteFault]:
    for field, backend in backends(ingress):
        name, port = str(backend.get("name") or ""), backend.get("port") or {}
        service = snapshot.at("Service", ingress.namespace, name)
        if service is None:
            yield from _no_service(snapshot, ingress, f"{field}.name", name)
        else:
            yield from _no_port(snapshot, service, f"{field}.port", port)


def _no_service(snapshot: Snapshot, route: ObservedObject, field: str, name: str) -> Iterator[RouteFault]:
    proof = proof_of_absence(snapshot, "Service", name, route.namespace) if name else ""
    if proof:
        others = [each.name for each in snapshot.of_kind("Service") if each.namespace == route.namespace]
        near = next((each for each in others if is_slip(each, name)), "")
        hint = f"; there is {near}" if near else ""
        why = f"there is no such Service in {route.namespace}{hint}"
        yield RouteFault(field, name, why, 0.95, cite_entry(snapshot, proof), "serviceMissing", near or name)


def _no_port(snapshot: Snapshot, service: ObservedObject, field: str, port: Json) -> Iterator[RouteFault]:
    known = service_ports(service)
    number, name = port.get("number"), port.get("name")
    offered = ", ".join(str(each.get("name") or each.get("port")) for each in known) or "none"
    ports = ", ".join(str(each.get("port")) for each in known)
    quotes = cite(snapshot, service, *(quoted("port", each.get("port")) for each in known), named_quote(service))
    if number is not None and known and number not in [each.get("port") for each in known]:
        why = f"Service/{service.name} offers {ports} only"
        yield RouteFault(f"{field}.number", str(number), why, 0.94, quotes, "portMissing", service.name)
    if name and known and name not in [each.get("name") for each in known]:
        why = f"Service/{service.name} has the ports {offered} only"
        yield RouteFault(f"{field}.name", str(name), why, 0.94, quotes, "portMissing", service.name)


def _class_faults(snapshot: Snapshot, ingress: ObservedObject) -> Iterator[RouteFault]:
    spec = ingress.spec
    name, old = spec.get("ingressClassName"), ingress.annotations.get(CLASS_ANNOTATION)
    served = bool((ingress.status.get("loadBalancer") or {}).get("ingress"))
    if name:
        proof = proof_of_absence(snapshot, "IngressClass", str(name), None)
        if proof:
            why = "there is no such IngressClass, so that no controller takes it up"
            yield RouteFault("spec.ingressClassName", str(name), why, 0.95, cite_entry(snapshot, proof), "classMissing")
        return
    if old or served or _is_young(snapshot, ingress):
        return
    listing = next((each for each in snapshot.listings if each.kind == "IngressClass"), None)
    classes = snapshot.of_kind("IngressClass")
    if listing and not any(each.annotations.get(DEFAULT_CLASS) == "true" for each in classes):
        told = cite_entry(snapshot, listing.evidence)
        yield RouteFault("spec.ingressClassName", "", "there is no default IngressClass", 0.8, told, "noClass")


def _is_young(snapshot: Snapshot, found: ObservedObject) -> bool:
    age = age_seconds(snapshot, found)
    return age is not None and age < GRACE_SECONDS


def _secret_faults(snapshot: Snapshot, ingress: ObservedObject) -> Iterator[RouteFault]:
    """The controller's complaint that names one of the Secrets."""
    complaints = list(_complaints(snapshot, ingress))
    for number, each in enumerate(listed(ingress.spec, "tls")):
        name = str(each.get("secretName") or "")
        for said, told in complaints if name else ():
            if _NO_SECRET.search(said) and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", said):
                why = f"its controller says: {said[:200]}"
                yield RouteFault(f"spec.tls[{number}].secretName", name, why, 0.88, told, "secretMissing")


def _complaints(snapshot: Snapshot, ingress: ObservedObject) -> Iterator[tuple[str, tuple[Citation, ...]]]:
    """What its controller says of it, with the evidence: in events, and in lines of its log that name its namespace."""
    for event in events_on(snapshot, ingress, *_EVENT_REASONS):
        yield message_of(event), cite_event(snapshot, event)
    own = re.compile(rf"(?<![\w.-]){re.escape(ingress.namespace)}/")
    for log in carrier_logs(snapshot):
        for line in reversed(log.text.splitlines()):
            if own.search(line):
                yield line.strip(), cited(snapshot, log.evidence, line.strip())


_EVENT_REASONS: Final = (
    "Sync",
    "Rejected",
    "AddedOrUpdatedWithWarning",
    "AddedOrUpdatedWithError",
    "BadConfig",
    "Warning",
)


def _conflicts(snapshot: Snapshot, ingress: ObservedObject) -> Iterator[RouteFault]:
    """The same host and path on two Ingresses of one class, whoever's they are: the older one has it."""
    own = {} if _shares(ingress) else dict(_places(ingress))
    for other in snapshot.of_kind("Ingress"):
        older = other.created < ingress.created and not _shares(other)
        if other is ingress or not older or _class(other) != _class(ingress):
            continue
        is_near = other.namespace == ingress.namespace
        if not is_near and ingress.namespace != snapshot.target.namespace:
            # Who comes too late for a host of the target takes nothing from it.
            continue
        for place, (service, _) in _places(other):
            if place in own and (own[place][0] != service or not is_near):
                elsewhere = "" if is_near else f" in {other.namespace}"
                why = f"Ingress/{other.name}{elsewhere}, which is older, sends the same host and path to {service}"
                told = cite(snapshot, other, named_quote(other), quoted("host", place[0]))
                yield RouteFault(own[place][1], place[1], why, 0.7 if is_near else 0.8, told, "conflict", own[place][0])


def _shares(ingress: ObservedObject) -> bool:
    """Made to stand beside another one of the same host and path."""
    return any(key.endswith(("/canary", "/mergeable-ingress-type")) for key in ingress.annotations)


def _class(ingress: ObservedObject) -> str:
    old = ingress.annotations.get(CLASS_ANNOTATION)
    return str(ingress.spec.get("ingressClassName") or old or "")


def _places(ingress: ObservedObject) -> Iterator[tuple[tuple[str, str, bool], tuple[str, str]]]:
    """Host, path and whether it is an exact one → Service and field of the path."""
    for number, rule in enumerate(listed(ingress.spec, "rules")):
        for place, path in enumerate(listed(rule.get("http") or {}, "paths")):
            service = str(value_at(path, "backend", "service").get("name") or "")
            field = f"spec.rules[{number}].http.paths[{place}].path"
            is_exact = path.get("pathType") == "Exact"
            yield (str(rule.get("host") or "*"), str(path.get("path") or "/"), is_exact), (service, field)


# --- Gateway routes --------------------------------------------------------------------------------------------------


def _route_backends(snapshot: Snapshot, route: ObservedObject) -> Iterator[RouteFault]:
    for number, rule in enumerate(listed(route.spec, "rules")):
        for place, backend in enumerate(listed(rule, "backendRefs")):
            if backend.get("kind", "Service") != "Service" or backend.get("namespace") not in (None, route.namespace):
                continue
            field, name = f"spec.rules[{number}].backendRefs[{place}]", str(backend.get("name") or "")
            service = snapshot.at("Service", route.namespace, name)
            if service is None:
                yield from _no_service(snapshot, route, f"{field}.name", name)
            elif backend.get("port") not in [None, *(each.get("port") for each in service_ports(service))]:
                ports = ", ".join(str(each.get("port")) for each in service_ports(service))
                why, wrong = f"Service/{name} offers {ports} only", str(backend.get("port"))
                yield RouteFault(f"{field}.port", wrong, why, 0.94, cite(snapshot, service), "portMissing", name)


def _route_conditions(snapshot: Snapshot, route: ObservedObject) -> Iterator[RouteFault]:
    """What the route's controller says of it."""
    for number, parent in enumerate(listed(route.status, "parents")):
        for name, field in (("Accepted", "spec.parentRefs"), ("ResolvedRefs", "spec.rules")):
            said = condition_of(parent, name)
            if said.get("status") == "False" and not _is_young(snapshot, route):
                refs = listed(route.spec, "parentRefs")
                gateway = str((parent.get("parentRef") or {}).get("name") or "")
                place = next((at for at, each in enumerate(refs) if each.get("name") == gateway), number)
                path = f"{field}[{place}].name" if name == "Accepted" else field
                if said.get("reason") == "RefNotPermitted":
                    path, gateway = _foreign(route) or (path, gateway)
                why = f"its controller says {said.get('reason')}: {str(said.get('message') or '')[:200]}"
                yield RouteFault(path, gateway, why, 0.85, (), str(said.get("reason") or ""))


def _foreign(route: ObservedObject) -> tuple[str, str] | None:
    """Field and namespace of the one backend that stands in another namespace; None where there are more."""
    found = [
        (f"spec.rules[{number}].backendRefs[{place}].namespace", str(backend["namespace"]))
        for number, rule in enumerate(listed(route.spec, "rules"))
        for place, backend in enumerate(listed(rule, "backendRefs"))
        if backend.get("namespace") not in (None, route.namespace)
    ]
    return found[0] if len(found) == 1 else None


# --- Istio -----------------------------------------------------------------------------------------------------------


def _virtual_destinations(snapshot: Snapshot, route: ObservedObject) -> Iterator[RouteFault]:
    for kind in ("http", "tcp", "tls"):
        for number, rule in enumerate(listed(route.spec, kind)):
            for place, each in enumerate(listed(rule, "route")):
                target = each.get("destination") or {}
                field = f"spec.{kind}[{number}].route[{place}].destination"
                yield from _destination(snapshot, route, field, target)


def _destination(snapshot: Snapshot, route: ObservedObject, field: str, target: Json) -> Iterator[RouteFault]:
    parts = str(target.get("host") or "").split(".")
    if len(parts) == 1 or parts[2:3] == ["svc"]:
        namespace = parts[1] if len(parts) > 1 else route.namespace
        service = snapshot.at("Service", namespace, parts[0])
        number = (target.get("port") or {}).get("number")
        proof = proof_of_absence(snapshot, "Service", parts[0], namespace) if parts[0] and service is None else ""
        if proof:
            why, told = f"there is no such Service in {namespace}", cite_entry(snapshot, proof)
            yield RouteFault(f"{field}.host", str(target.get("host")), why, 0.93, told, "serviceMissing", parts[0])
        elif service and number not in [None, *(each.get("port") for each in service_ports(service))]:
            why = f"Service/{service.name} does not offer it"
            yield RouteFault(
                f"{field}.port.number", str(number), why, 0.9, cite(snapshot, service), "portMissing", service.name
            )
    yield from _subset(snapshot, field, target, parts[0])


def _subset(snapshot: Snapshot, field: str, target: Json, host: str) -> Iterator[RouteFault]:
    """A subset that no DestinationRule of that host defines."""
    wanted = target.get("subset")
    rules = [
        each for each in snapshot.of_kind("DestinationRule") if str(each.spec.get("host") or "").split(".")[0] == host
    ]
    known = [each.get("name") for rule in rules for each in listed(rule.spec, "subsets")]
    if wanted and rules and wanted not in known:
        why = f"DestinationRule/{rules[0].name} has the subsets {', '.join(map(str, known)) or 'none'} only"
        yield RouteFault(f"{field}.subset", str(wanted), why, 0.9, cite(snapshot, rules[0]), "subsetMissing", host)


_BY_KIND: Final = {
    "Ingress": (_backend_faults, _class_faults, _secret_faults, _conflicts),
    **dict.fromkeys(("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute"), (_route_backends, _route_conditions)),
    "VirtualService": (_virtual_destinations,),
}
