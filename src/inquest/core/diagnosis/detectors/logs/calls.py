"""Lines about a call that fails: a name that is not found, a port where nobody listens, a callee that is down."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.citations import cite, cited
from inquest.core.diagnosis.detectors.containers import container_field, containers_of, pod_field
from inquest.core.diagnosis.detectors.logs.peers import without_token
from inquest.core.diagnosis.detectors.logs.view import LogCause, LogView, external, held, holder
from inquest.core.diagnosis.detectors.logs.words import LogFinding
from inquest.core.diagnosis.detectors.network.callee import Callee, callee, nearest_service, workload_by_name
from inquest.core.diagnosis.detectors.platform.bindings import BoundSetting, place_of
from inquest.core.evidence.evidence import ObservedObject
from inquest.core.evidence.snapshot import Snapshot


def dns(view: LogView, said: LogFinding) -> LogCause | None:
    """A name that is not found: wrong in a setting, unknown outside, or a resolver that does not answer."""
    host = said.named.get("host", "")
    if not host:
        return None
    called = callee(view.snapshot, host, view.container.pod.namespace)
    place = holder(view, called)
    own = _own_resolver(view, called, said)
    if own is not None:
        return own
    if called.external_name:
        return _wrong_external_name(view, called)
    if called.service is not None:
        return _resolver_failing(view, called, said)
    if not called.in_cluster:
        return _unknown_outside(view, called, place, said)
    return _unknown_service(view, called, place, said)


def _wrong_external_name(view: LogView, called: Callee) -> LogCause | None:
    if called.service is None:
        return None
    return LogCause(
        "DNSFailing",
        BoundSetting(called.service.ref, "spec.externalName", called.external_name),
        0.75,
        f"Service/{called.service.name} points to {called.external_name}, which cannot be resolved",
        citations=cited(view.snapshot, called.service.evidence, f'"externalName":"{called.external_name}"'),
        facts={"host": called.host},
        refuted_by=(f"{called.external_name} resolves from inside the cluster.",),
        actions=("PatchConfiguration",),
    )


_TRANSIENT: Final = re.compile(
    r"temporary failure|eai_again|server misbehaving|i/o timeout|servfail|read udp|dial udp", re.IGNORECASE
)
"""The resolver did not answer, which is not "there is no such name"."""


def _own_resolver(view: LogView, called: Callee, said: LogFinding) -> LogCause | None:
    """Its pods are told whom to ask, and that one does not answer, or does not know the cluster's names."""
    spec = view.container.pod.spec
    servers = [str(each) for each in (spec.get("dnsConfig") or {}).get("nameservers") or ()]
    silent = _TRANSIENT.search(said.line) and (not _ASKED.search(said.line) or _asked(said.line) in servers)
    if not servers or not (silent or (called.in_cluster and spec.get("dnsPolicy") == "None")):
        return None
    return LogCause(
        "DNSFailing",
        BoundSetting(view.ref, pod_field(view.ref, "dnsConfig.nameservers"), ", ".join(servers)),
        0.9,
        f"its pods ask {', '.join(servers)} for names (dnsConfig.nameservers), and {called.host} is not found",
        citations=cited(view.snapshot, view.container.pod.evidence, f'"{servers[0]}"'),
        facts={"host": called.host},
        refuted_by=(f"{', '.join(servers)} answers {called.host} to these pods.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


_ASKED: Final = re.compile(r" on \[?(?P<server>[0-9a-fA-F.:]{3,45}?)\]?:53\b")


def _asked(line: str) -> str:
    match = _ASKED.search(line)
    return match["server"] if match else ""


def _resolver_failing(view: LogView, called: Callee, said: LogFinding) -> LogCause | None:
    """The Service exists: the name is right, and the resolver is not reached or not asked."""
    policy = str(view.container.pod.spec.get("dnsPolicy") or "")
    if policy in ("None", "Default"):
        return LogCause(
            "DNSFailing",
            BoundSetting(view.ref, pod_field(view.ref, "dnsPolicy"), policy),
            0.85,
            f"its pods do not ask the cluster's DNS (dnsPolicy {policy}), so {called.host} is not found",
            facts={"host": called.host},
            refuted_by=(f"{called.host} resolves in a pod with this dnsPolicy.",),
            actions=("PatchConfiguration", "RollbackDeployment"),
        )
    return LogCause(
        "DNSFailing",
        BoundSetting(view.ref, "log", said.line),
        0.6,
        f"{called.host} is not resolved though its Service exists",
        facts={"host": called.host},
        refuted_by=(f"{called.host} resolves in these pods.",),
    )


def _unknown_outside(view: LogView, called: Callee, place: BoundSetting | None, said: LogFinding) -> LogCause:
    away = bool(_TRANSIENT.search(said.line))
    where = f", named in {place.ref.display} {place.field}" if place else ""
    return LogCause(
        "DNSFailing",
        BoundSetting(external(called.host), "name", called.host, place.citations if place else ()),
        0.65 if away else 0.75,
        f"External/{called.host}: {view.owner} cannot resolve {called.host}{where}",
        facts={"host": called.host, **held(place)},
        refuted_by=(f"{called.host} resolves from inside the cluster.",),
        actions=("PatchConfiguration",) if place and not away else (),
    )


def _unknown_service(view: LogView, called: Callee, place: BoundSetting | None, said: LogFinding) -> LogCause:
    absent = view.snapshot.proves_absent(TargetRef(kind="Service", name=called.name, namespace=called.namespace))
    behind = workload_by_name(view.snapshot, called.name, called.namespace)
    near = nearest_service(view.snapshot, called.name, called.namespace)
    if behind is not None and near is None:
        return _service_missing(view, called, behind)
    if _TRANSIENT.search(said.line) and not absent:
        return _resolver_silent(view, called, said)
    meant = f"; Service/{near.name} exists" if near else ""
    found = place or BoundSetting(view.ref, "log", called.host)
    proof = cite(view.snapshot, near)
    return LogCause(
        "AddressMisconfigured",
        found,
        0.9 if near and place else 0.85 if absent and place else 0.75,
        f"{found.ref.display} {found.field} names {called.host}, and there is no such Service{meant}",
        citations=proof,
        facts={"host": called.host, "meant": near.name if near else "", **held(place)},
        refuted_by=(f"Service {called.name} exists in namespace {called.namespace}.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def _resolver_silent(view: LogView, called: Callee, said: LogFinding) -> LogCause:
    return LogCause(
        "DNSFailing",
        BoundSetting(view.ref, "log", said.line),
        0.6,
        f"{called.host} is not resolved, because the resolver does not answer",
        facts={"host": called.host},
        refuted_by=("The cluster's DNS answers queries of these pods.",),
    )


def _service_missing(view: LogView, called: Callee, behind: ObservedObject) -> LogCause:
    ref = TargetRef(api_version="v1", kind="Service", name=called.name, namespace=called.namespace)
    return LogCause(
        "DNSFailing",
        BoundSetting(ref, "metadata.name", called.name),
        0.8,
        f"Service/{called.name} does not exist, though {behind.kind}/{behind.name} runs and {view.ref.display} "
        f"calls it",
        citations=cite(view.snapshot, behind),
        facts={"host": called.host},
        refuted_by=(f"Service {called.name} exists in namespace {called.namespace}.",),
        actions=("FixRouteTarget",),
    )


def refused(view: LogView, said: LogFinding) -> LogCause | None:
    """An address that does not answer: by who stands behind it."""
    host, port = said.named.get("host", ""), said.named.get("port", "")
    if not host:
        return None
    called = callee(view.snapshot, host, view.container.pod.namespace)
    if called.local:
        return _refused_locally(view, called, port, said)
    if called.external_name:
        return _outside(view, replace(called, host=called.external_name), said)
    if called.service is not None:
        return _refused_by_service(view, called, port, said)
    if called.workload is not None:
        return _down(view, called, f"{host}:{port}" if port else host)
    if called.node is not None:
        return None
    if not called.in_cluster:
        return _outside(view, called, said)
    return _refused_by_stranger(view, called, said)


def _refused_locally(view: LogView, called: Callee, port: str, said: LogFinding) -> LogCause | None:
    """Its own pod: a sidecar that is not up, or an address that means another place."""
    asks_api = port == _DEFAULT_API_PORT and bool(_ASKS_API.search(view.log.text[:_MAX_SEARCHED]))
    tokenless = without_token(view) if asks_api else None
    if tokenless is not None:
        return tokenless
    beside = [
        each for each in containers_of(view.container.pod) if each.name != view.container.name and not each.is_ready
    ]
    running = [each for each in beside if not each.init or each.is_sidecar]
    if running:
        return LogCause(
            "DependencyFailing",
            BoundSetting(view.ref, container_field(view.ref, running[0], "name"), running[0].name),
            0.65,
            f"it waits for container {running[0].name} of its own pod, which is not ready",
            facts={"sidecar": running[0].name, "port": port},
            refuted_by=(f"Container {running[0].name} is ready and listens on port {port}.",),
        )
    services = [each for each in view.snapshot.of_kind("Service") if _has_port(each, port, view)] if port else []
    names = (called.host, "localhost", "127.0.0.1")
    place = place_of(view.snapshot, view.container, *(f"{name}:{port}" for name in names), *names)
    if place is None and not services:
        return None
    found = place or BoundSetting(view.ref, "log", f"{called.host}:{port}")
    meant = f"; Service/{services[0].name} has that port" if services else ""
    return LogCause(
        "AddressMisconfigured",
        found,
        0.85 if place and services else 0.7,
        f"{found.ref.display} {found.field} points to its own pod, where nothing listens on {port}{meant}",
        facts={"host": called.host, "port": port, "meant": services[0].name if services else "", **held(place)},
        refuted_by=(f"A container of the same pod listens on port {port}.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


_DEFAULT_API_PORT: Final = "8080"
_ASKS_API: Final = re.compile(
    r"API group list|specify the right host or port|localhost:8080/apis?\b|ReplicationController|client-go|kubectl|"
    r"clientcmd|in-?cluster config",
    re.IGNORECASE,
)
"""Words of a client of the API server: without an account's token it asks a server on its own pod."""
_MAX_SEARCHED: Final = 20_000


def _has_port(service: ObservedObject, port: str, view: LogView) -> bool:
    ports = service.spec.get("ports") or ()
    return service.namespace == view.container.pod.namespace and any(str(each.get("port")) == port for each in ports)


def _refused_by_service(view: LogView, called: Callee, port: str, said: LogFinding) -> LogCause | None:
    if called.service is None:
        return None
    if port and called.ports and not called.listens(port):
        return _wrong_port(view, called, port)
    if called.is_down or _wants_none(view.snapshot, called) or _has_no_pods(view.snapshot, called):
        return _down(view, called, f"{called.host}:{port}" if port else called.host)
    return _silent_service(view, called, said)


def _wrong_port(view: LogView, called: Callee, port: str) -> LogCause | None:
    if called.service is None:
        return None
    names = [
        f"{called.host}:{port}",
        f"{called.name}:{port}",
        f"{called.name}.{called.namespace}:{port}",
        port,
        called.name,
    ]
    place = place_of(view.snapshot, view.container, *names)
    found = place or BoundSetting(called.service.ref, "spec.ports", port)
    offered = ", ".join(str(each.get("port")) for each in called.ports)
    return LogCause(
        "AddressMisconfigured" if place else "PortMismatch",
        found,
        0.92 if place else 0.75,
        f"{found.ref.display} {found.field}: Service/{called.service.name} is called on port {port} and has {offered}",
        citations=cited(view.snapshot, called.service.evidence, f'"port":{offered.split(",")[0]}'),
        facts={"host": called.host, "port": port, "servicePort": offered, **held(place)},
        refuted_by=(f"Service {called.service.name} has port {port}.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def _wants_none(snapshot: Snapshot, called: Callee) -> bool:
    found = snapshot.find(called.workload) if called.workload else None
    return found is not None and found.spec.get("replicas") == 0


def _has_no_pods(snapshot: Snapshot, called: Callee) -> bool:
    """No pod was read behind it, and its workload counts none that is ready either."""
    found = snapshot.find(called.workload) if called.workload and not called.pods else None
    return found is not None and not found.status.get("readyReplicas")


def _down(view: LogView, called: Callee, address: str) -> LogCause:
    """What it calls has pods that are not ready, or none."""
    ref = called.workload or view.ref
    none = _wants_none(view.snapshot, called)
    state = "is scaled to zero" if none else "has no ready pod"
    found = view.snapshot.find(ref)
    evidence = found.evidence if found else called.pods[0].evidence if called.pods else ""
    quotes = (
        ('"replicas":0',)
        if none
        else (f'"name":"{ref.name}"', f'"name":"{called.pods[0].name}"' if called.pods else "")
    )
    own = called.pods and not called.is_down
    return LogCause(
        "ScaledToZero" if none else "DependencyFailing",
        BoundSetting(ref, "spec.replicas" if none else "status.readyReplicas", "0" if none else address),
        0.8 if none else 0.5 if own else 0.75,
        f"{ref.display} {'does not answer' if own else state}, and {view.owner} calls it as {address}",
        citations=cited(view.snapshot, evidence, *quotes),
        facts={"address": address, "caller": view.ref.display},
        refuted_by=(f"{ref.display} has ready pods that answer on {address}.",),
        actions=("ScaleReplicas",) if none else (),
    )


def _silent_service(view: LogView, called: Callee, said: LogFinding) -> LogCause | None:
    """It has ready pods, or nobody knows: what keeps them apart is for others to say."""
    if called.service is None:
        return None
    ref = called.workload if called.pods and called.workload else called.service.ref
    return LogCause(
        "DependencyFailing",
        BoundSetting(ref, "process" if ref.kind != "Service" else "spec.ports", said.line),
        0.5 if called.service.namespace == view.container.pod.namespace else 0.6,
        f"{ref.display} does not answer {view.owner} through Service/{called.service.name}",
        citations=cite(view.snapshot, called.service),
        facts={"host": called.host, "caller": view.ref.display},
        refuted_by=(f"Service {called.service.name} answers from other pods of the namespace.",),
    )


def _outside(view: LogView, called: Callee, said: LogFinding) -> LogCause:
    place = holder(view, called)
    return LogCause(
        "ExternalServiceFailing",
        BoundSetting(external(called.host), "process", said.line, place.citations if place else ()),
        0.75,
        f"External/{called.host} does not answer {view.owner}",
        facts={"host": called.host, **held(place)},
        refuted_by=(f"{called.host} answers from inside the cluster.",),
    )


def _refused_by_stranger(view: LogView, called: Callee, said: LogFinding) -> LogCause | None:
    """An address inside the cluster that nothing in the snapshot has."""
    place = holder(view, called)
    if called.name:
        absent = view.snapshot.proves_absent(TargetRef(kind="Service", name=called.name, namespace=called.namespace))
        near = nearest_service(view.snapshot, called.name, called.namespace)
        if absent or near:
            return _unknown_service(view, called, place, said)
    if place is None:
        return _unknown_callee(view, called, said)
    return LogCause(
        "AddressMisconfigured",
        place,
        0.6,
        f"{place.ref.display} {place.field} names {called.host}, which does not answer",
        facts={"host": called.host, **held(place)},
        refuted_by=(f"Something answers on {called.host}.",),
        actions=("PatchConfiguration",),
    )


def _unknown_callee(view: LogView, called: Callee, said: LogFinding) -> LogCause:
    return LogCause(
        "DependencyFailing",
        BoundSetting(external(called.host), "process", said.line),
        0.6,
        f"External/{called.host} does not answer {view.owner}",
        facts={"host": called.host},
        refuted_by=(f"{called.host} answers from these pods.",),
    )
