"""Who calls whom: addresses in the configuration of workloads, the Services they name, the pods behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import metadata_of, value_at
from inquest.core.cluster.relations import backends_of, claim_name, volume_sources
from inquest.core.diagnosis.detectors.containers import template_field
from inquest.core.diagnosis.detectors.workloads import (
    Key,
    container_specs,
    is_live,
    listed,
    pod_spec_of,
    pods_of,
    reached,
    remembered,
    selected_pods,
    template_labels,
    wanted_replicas,
    workload_of,
    workloads,
)
from inquest.core.diagnosis.health import slices_of
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

MAX_TEXT: Final = 20_000
"""Characters of one value that are searched for addresses."""
MAX_LINE: Final = 1_000
_HOST: Final = r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}"
_URL: Final = re.compile(
    rf"(?P<scheme>[a-z][a-z0-9+.-]{{1,20}})://(?:[^@/\s\"'<>]{{0,200}}@)?(?P<host>{_HOST})(?::(?P<port>\d{{1,5}}))?"
)
_PAIR: Final = re.compile(rf"(?<![\w./:@-])(?P<host>{_HOST}):(?P<port>\d{{2,5}})(?![\w.:-])")
_IN_CLUSTER: Final = re.compile(
    r"(?<![\w./:@-])(?P<host>[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.svc(?:\.[a-z0-9.-]{1,100})?)\b"
)
_BARE: Final = re.compile(rf"^(?P<host>{_HOST})$")
_HOST_NAME: Final = re.compile(
    r"(?:^|_)(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|ENDPOINT|SERVICE|URL|URI|UPSTREAM|BACKEND)$"
)
_PORT_NAME: Final = re.compile(r"^(?P<stem>.*?)_?PORT$")
_ADDRESS_SUFFIX: Final = re.compile(r"_?(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER|ENDPOINT|SERVICE)$")
_HERE: Final = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "metadata"})
_TOP_DOMAINS: Final = frozenset(
    {"com", "org", "net", "io", "dev", "app", "cloud", "local", "internal", "edu", "gov", "co", "ai", "example", "test"}
)
SCHEME_PORTS: Final = {
    "http": 80,
    "https": 443,
    "redis": 6379,
    "rediss": 6379,
    "postgres": 5432,
    "postgresql": 5432,
    "mysql": 3306,
    "amqp": 5672,
    "mongodb": 27017,
    "nats": 4222,
}


@dataclass(frozen=True)
class NamedAddress:
    """A host, and perhaps a port, that a workload's configuration names."""

    caller: ObservedObject
    holder: ObservedObject
    """The object that holds the words: the workload, or a ConfigMap it reads."""
    field: str
    container: str
    text: str
    """What stands in the field, cut."""
    host: str
    port: int | None
    explicit: bool
    """Written as an address: a URL, a cluster name, or in a field that is named like one."""
    port_field: str = ""
    """Where the port stands if it is a field of its own."""

    @property
    def caller_ref(self) -> TargetRef:
        return self.caller.ref

    @property
    def shown(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


# --- addresses in configuration --------------------------------------------------------------------------------


def addresses(snapshot: Snapshot) -> list[NamedAddress]:
    """Every address in the environment, the arguments and the ConfigMaps of the workloads that were read."""
    return [found for each in _by_workload(snapshot).values() for found in each]


def addresses_of(snapshot: Snapshot, workload: ObservedObject) -> list[NamedAddress]:
    """The addresses that one workload's configuration names, each once."""
    known = _by_workload(snapshot).get(workload.key)
    return known if known is not None else _read(snapshot, workload)


@remembered
def _by_workload(snapshot: Snapshot) -> Mapping[Key, list[NamedAddress]]:
    return {each.key: _read(snapshot, each) for each in workloads(snapshot)}


def _read(snapshot: Snapshot, workload: ObservedObject) -> list[NamedAddress]:
    found = [*_environment(snapshot, workload), *_arguments(workload), *_files(snapshot, workload)]
    unique = {(each.holder.evidence, each.field, each.host, each.port): each for each in found}
    return [each for each in unique.values() if _is_elsewhere(each, workload)]


def _is_elsewhere(address: NamedAddress, workload: ObservedObject) -> bool:
    aliases = {
        str(name) for each in listed(pod_spec_of(workload), "hostAliases") for name in each.get("hostnames") or ()
    }
    return address.host not in aliases and _is_other_host(address.host)


def _is_other_host(host: str) -> bool:
    return host not in _HERE and bool(re.search("[A-Za-z]", host))


def _environment(snapshot: Snapshot, workload: ObservedObject) -> Iterator[NamedAddress]:
    ref = workload.ref
    for kind, container in container_specs(workload):
        name = str(container.get("name", ""))
        pairs: list[tuple[str, str, ObservedObject, str]] = []
        for entry in listed(container, "env"):
            field = template_field(ref, kind, name, f"env[name={entry.get('name')}].value")
            if isinstance(entry.get("value"), str):
                pairs.append((str(entry.get("name")), entry["value"], workload, field))
            pairs += _from_key(snapshot, workload, entry)
        pairs += _from_maps(snapshot, workload, container)
        yield from _named_values(workload, name, pairs)


def _from_key(
    snapshot: Snapshot, workload: ObservedObject, entry: Json
) -> Iterator[tuple[str, str, ObservedObject, str]]:
    source = value_at(entry, "valueFrom", "configMapKeyRef")
    found = snapshot.at("ConfigMap", workload.namespace, source.get("name", ""))
    value = found.data.get(source.get("key", "")) if found else None
    if found and isinstance(value, str):
        yield str(entry.get("name")), value, found, f"data.{source.get('key')}"


def _from_maps(
    snapshot: Snapshot, workload: ObservedObject, container: Json
) -> Iterator[tuple[str, str, ObservedObject, str]]:
    for source in listed(container, "envFrom"):
        found = snapshot.at("ConfigMap", workload.namespace, (source.get("configMapRef") or {}).get("name", ""))
        for key, value in (found.data if found else {}).items():
            if found and isinstance(value, str):
                yield f"{source.get('prefix') or ''}{key}", value, found, f"data.{key}"


def _named_values(
    workload: ObservedObject, container: str, pairs: Iterable[tuple[str, str, ObservedObject, str]]
) -> Iterator[NamedAddress]:
    """A host and its port may stand in two variables of the same stem."""
    known = list(pairs)
    ports = {_stem(name): (int(value), field) for name, value, _, field in known if _is_port(name, value)}
    for name, value, holder, field in known:
        looks = bool(_HOST_NAME.search(name.upper()))
        for host, port, explicit in hosts_in(value, bare=looks):
            beside, port_field = ports.get(_stem(name), (None, "")) if port is None else (None, "")
            yield NamedAddress(
                workload, holder, field, container, value[:253], host, port or beside, explicit or looks, port_field
            )


def _stem(name: str) -> str:
    upper = name.upper().replace("-", "_").replace(".", "_")
    return re.sub(r"_?PORT$", "", upper) if upper.endswith("PORT") else _ADDRESS_SUFFIX.sub("", upper)


def _is_port(name: str, value: str) -> bool:
    return bool(_PORT_NAME.match(name.upper())) and value.isdigit() and 0 < int(value) < 65_536


def _arguments(workload: ObservedObject) -> Iterator[NamedAddress]:
    ref = workload.ref
    for kind, container in container_specs(workload):
        name = str(container.get("name", ""))
        for word in ("command", "args"):
            for value in container.get(word) or ():
                for host, port, explicit in hosts_in(str(value)):
                    field = template_field(ref, kind, name, word)
                    yield NamedAddress(workload, workload, field, name, str(value)[:253], host, port, explicit)


def _files(snapshot: Snapshot, workload: ObservedObject) -> Iterator[NamedAddress]:
    """ConfigMaps mounted as files: whatever is written as an address in them."""
    for volume in listed(pod_spec_of(workload), "volumes"):
        for source in volume_sources(volume):
            found = snapshot.at("ConfigMap", workload.namespace, value_at(source, "configMap").get("name", ""))
            for key, value in (found.data if found else {}).items():
                for host, port, explicit in hosts_in(str(value)):
                    if found:
                        yield NamedAddress(
                            workload, found, f"data[{key}]", "", f"{host}:{port or ''}", host, port, explicit
                        )


def hosts_in(value: str, *, bare: bool = False) -> list[tuple[str, int | None, bool]]:
    """Host, port and whether it is surely an address; `bare` takes a value that is nothing but a host."""
    text = value[:MAX_TEXT]
    found: dict[str, tuple[str, int | None, bool]] = {}
    for match in _URL.finditer(text):
        port = int(match["port"]) if match["port"] else SCHEME_PORTS.get(match["scheme"])
        _add(found, match["host"], port, explicit=True)
    for match in _PAIR.finditer(text):
        _add(found, match["host"], int(match["port"]), explicit=".svc" in match["host"])
    for match in _IN_CLUSTER.finditer(text):
        _add(found, match["host"], None, explicit=True)
    single = _BARE.match(text.strip()) if bare and not found else None
    if single:
        _add(found, single["host"], None, explicit=False)
    return list(found.values())


def _add(found: dict[str, tuple[str, int | None, bool]], host: str, port: int | None, *, explicit: bool) -> None:
    plain = host.rstrip(".").lower()
    if plain and (port is None or 0 < port < 65_536):
        found.setdefault(plain, (plain, port, explicit))


# --- names of the cluster ----------------------------------------------------------------------------------------


def service_named(snapshot: Snapshot, host: str, namespace: str) -> tuple[str, str] | None:
    """Name and namespace of the Service that a host means to a pod of this namespace; None for a host elsewhere."""
    parts = host.rstrip(".").split(".")
    if "svc" in parts[2:4]:
        at = parts.index("svc", 2)
        return parts[at - 2], parts[at - 1]
    if len(parts) == 1:
        return parts[0], namespace
    if len(parts) == 2 and parts[1] not in _TOP_DOMAINS:
        # `service.namespace`, or `pod.service` of a headless one.
        first, second = parts
        if second in known_namespaces(snapshot):
            return first, second
        return (second, namespace) if snapshot.at("Service", namespace, second) else None
    return None


@remembered
def known_namespaces(snapshot: Snapshot) -> set[str]:
    """The namespaces that something was read of."""
    named = {each.name for each in snapshot.of_kind("Namespace")}
    return named | {each.namespace for each in snapshot.objects if each.namespace}


def service_names(service: ObservedObject) -> tuple[str, ...]:
    """By what a complaint may name a Service: its name, or its address."""
    address = str(service.spec.get("clusterIP") or "")
    return (service.name, *([address] if address not in ("", "None") else []))


def called_service(snapshot: Snapshot, address: NamedAddress) -> ObservedObject | None:
    """The Service that an address names and that was read."""
    return service_at(snapshot, service_named(snapshot, address.host, address.caller.namespace))


def service_at(snapshot: Snapshot, place: tuple[str, str] | None) -> ObservedObject | None:
    """The Service of this name and namespace, None where none was read."""
    return snapshot.at("Service", place[1], place[0]) if place else None


def service_ports(service: ObservedObject) -> tuple[Json, ...]:
    """The ports of a Service."""
    return listed(service.spec, "ports")


def port_path(service: ObservedObject, port: Json, rest: str) -> str:
    """Path of a Service port's field: by its name, else by its place."""
    if port.get("name"):
        return f"spec.ports[name={port['name']}].{rest}"
    return f"spec.ports[{service_ports(service).index(port)}].{rest}"


# --- behind a Service --------------------------------------------------------------------------------------------


def selector_of(service: ObservedObject) -> dict[str, str]:
    """What a Service selects by; empty for one with endpoints of its own."""
    return {str(key): str(value) for key, value in (service.spec.get("selector") or {}).items()}


def takes(selector: dict[str, str], labels: object) -> bool:
    """Whether a Service's selector takes these labels; an empty one takes nothing."""
    own = labels if isinstance(labels, dict) else {}
    return bool(selector) and all(own.get(key) == value for key, value in selector.items())


def pods_behind(snapshot: Snapshot, service: ObservedObject) -> list[ObservedObject]:
    """Live pods that a Service selects."""
    return [each for each in selected_pods(snapshot, service) if is_live(each)]


def workloads_behind(snapshot: Snapshot, service: ObservedObject) -> list[ObservedObject]:
    """Workloads whose template a Service selects."""
    chosen = selector_of(service)
    same = workloads(snapshot, service.namespace)
    return [each for each in same if takes(chosen, template_labels(each))]


def services_of(snapshot: Snapshot, workload: ObservedObject) -> list[ObservedObject]:
    """Services that select a workload's template."""
    labels = template_labels(workload)
    same = (each for each in snapshot.of_kind("Service") if each.namespace == workload.namespace)
    return [each for each in same if takes(selector_of(each), labels)]


def endpoints_of(snapshot: Snapshot, service: ObservedObject) -> tuple[int, int] | None:
    """Ready and other addresses behind a Service by its slices or Endpoints, None where neither was read."""
    slices = [each.object for each in slices_of(snapshot, service)]
    if slices:
        points = [point for each in slices for point in listed(each, "endpoints")]
        ready = sum(1 for each in points if (each.get("conditions") or {}).get("ready") is not False)
        return ready, len(points) - ready
    old = [each.object for each in snapshot.of_kind("Endpoints") if _same_place(each, service)]
    if not old:
        return None
    subsets = [subset for each in old for subset in listed(each, "subsets")]
    return tuple(sum(len(listed(each, word)) for each in subsets) for word in ("addresses", "notReadyAddresses"))  # type: ignore[return-value]


def _same_place(one: ObservedObject, other: ObservedObject) -> bool:
    return (one.name, one.namespace) == (other.name, other.namespace)


# --- what is said in logs ------------------------------------------------------------------------------------------


_ERROR: Final = re.compile(
    r"no such host|not known|could not resolve|couldn't resolve|ENOTFOUND|EAI_AGAIN|UnknownHost|getaddrinfo|lookup "
    r"|name resolution|refused|ECONNREFUSED|timed? ?out|ETIMEDOUT|deadline exceeded|unreachable|EHOSTUNREACH"
    r"|reset by peer|unavailable|failed to connect|connection error|connect: ",
    re.IGNORECASE,
)
RESOLVING: Final = re.compile(
    r"no such host|not known|could not resolve|couldn't resolve|ENOTFOUND|EAI_AGAIN|UnknownHost|name resolution"
    r"|server misbehaving|bad address",
    re.IGNORECASE,
)
UNANSWERED: Final = re.compile(r"lookup [^\n]{1,300}:53\b[^\n]{0,100}(?:timeout|refused|unreachable)", re.IGNORECASE)
"""The resolver itself does not answer."""
ANSWERED: Final = re.compile(r"lookup [^\n]{1,300}:53: no such host|\bNXDOMAIN\b", re.IGNORECASE)
"""The resolver says that there is no such name, so that nothing keeps the caller from it."""
REACHING: Final = re.compile(
    r"timed? ?out|ETIMEDOUT|deadline exceeded|i/o timeout|unreachable|EHOSTUNREACH|no route", re.IGNORECASE
)


def newest_lines(log: LogTail) -> Iterator[str]:
    """The lines of a log, each cut, the newest first."""
    return (line[:MAX_LINE] for line in reversed(log.text.splitlines()) if line.strip())


def workload_logs(snapshot: Snapshot, workload: TargetRef) -> list[LogTail]:
    """Logs of a workload's pods."""
    known = _logs_by_pod(snapshot)
    return [log for pod in pods_of(snapshot, workload) for log in known.get((pod.namespace, pod.name), ())]


@remembered
def _logs_by_pod(snapshot: Snapshot) -> Mapping[tuple[str, str], list[LogTail]]:
    found: dict[tuple[str, str], list[LogTail]] = {}
    for log in snapshot.logs:
        found.setdefault((log.namespace, log.pod), []).append(log)
    return found


def complaint(
    snapshot: Snapshot, workload: TargetRef, words: Iterable[str], pattern: re.Pattern[str] = _ERROR
) -> tuple[LogTail, str] | None:
    """The newest line of a workload's logs, or of a check, that names one of the words and an error of the network."""
    wanted = [word.lower() for word in dict.fromkeys(words) if word]
    # What other checks printed, to be read like logs: they seldom say for whom they tried.
    checks = (LogTail("", "", each.title, False, each.text[:MAX_TEXT], each.evidence) for each in snapshot.texts)
    for log in (*workload_logs(snapshot, workload), *checks):
        for line in newest_lines(log):
            if _names_any(line.lower(), wanted) and pattern.search(line):
                return log, line.strip()
    return None


def _names_any(line: str, words: list[str]) -> bool:
    """Whole words only: `db` is not in `mongodb`."""
    found = (word for word in words if word in line)
    return any(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line) for word in found)


def any_complaint(snapshot: Snapshot, workload: TargetRef, pattern: re.Pattern[str]) -> tuple[LogTail, str] | None:
    """The newest line of a workload's logs of this kind."""
    for log in workload_logs(snapshot, workload):
        for line in newest_lines(log):
            if pattern.search(line):
                return log, line.strip()
    return None


# --- what the target stands on ---------------------------------------------------------------------------------------


def is_near(snapshot: Snapshot, ref: TargetRef) -> bool:
    """Whether the target stands on this object: it is it, holds it, calls it at any distance, or is a wider place."""
    target = snapshot.target
    if target.kind == "Namespace":
        return (ref.namespace or target.name) == target.name
    if target.kind not in _PLACED:
        return True
    return ref.key in _ground(snapshot)


@remembered
def _ground(snapshot: Snapshot) -> set[Key]:
    """All that the target stands on, itself included."""
    start = {each.key for each in (snapshot.target, snapshot.root, *snapshot.chain)}
    return reached(start, lambda key: _below(snapshot, key))


_PLACED: Final = frozenset(
    {
        *("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Rollout", "Pod"),
        *("Service", "Ingress", "PersistentVolumeClaim", "HorizontalPodAutoscaler", "ConfigMap", "NetworkPolicy"),
    }
)


def _below(snapshot: Snapshot, key: Key) -> Iterator[Key]:
    """What an object stands on: a workload on what it calls and holds, a Service on its workloads, and so on."""
    kind, namespace, name = key
    found = snapshot.at(kind, namespace, name)
    if found is None:
        return
    if kind == "Pod":
        yield workload_of(snapshot, found).key
    if kind in ("Service",):
        yield from (each.key for each in workloads_behind(snapshot, found))
    elif kind == "Ingress":
        yield from (("Service", namespace, each) for each in backends_of(found.object))
    elif kind == "HorizontalPodAutoscaler":
        scaled = found.spec.get("scaleTargetRef") or {}
        yield str(scaled.get("kind")), namespace, str(scaled.get("name"))
    else:
        yield from _below_workload(snapshot, found)


def _below_workload(snapshot: Snapshot, found: ObservedObject) -> Iterator[Key]:
    for address in addresses_of(snapshot, found):
        place = service_named(snapshot, address.host, found.namespace)
        if place:
            yield "Service", place[1], place[0]
        yield address.holder.key
    yield from (each.key for each in services_of(snapshot, found))
    yield from _held(found)


def _held(found: ObservedObject) -> Iterator[Key]:
    for volume in listed(pod_spec_of(found), "volumes"):
        if claim := claim_name(volume):
            yield "PersistentVolumeClaim", found.namespace, claim
    for template in listed(found.spec, "volumeClaimTemplates"):
        prefix = f"{metadata_of(template).get('name')}-{found.name}"
        for ordinal in range(min(max(wanted_replicas(found), 1), 20)):
            yield "PersistentVolumeClaim", found.namespace, f"{prefix}-{ordinal}"


# --- calls that the logs tell of -------------------------------------------------------------------------------------


def calls_in_logs(snapshot: Snapshot, workload: ObservedObject) -> list[NamedAddress]:
    """Hosts and ports that the workload's own complaints name: nobody has to have written them down."""
    found: dict[tuple[str, int | None], NamedAddress] = {}
    for log in workload_logs(snapshot, workload.ref):
        for line in _complaints(log):
            for host, port, explicit in hosts_in(line):
                known = explicit or snapshot.at("Service", workload.namespace, host.split(".")[0])
                if known and _is_other_host(host):
                    address = NamedAddress(workload, workload, "log", log.container, line.strip(), host, port, explicit)
                    found.setdefault((host, port), address)
    return list(found.values())


def _complaints(log: LogTail) -> Iterator[str]:
    for number, line in enumerate(newest_lines(log)):
        if number >= MAX_COMPLAINTS:
            return
        if _ERROR.search(line):
            yield line


MAX_COMPLAINTS: Final = 50
"""Lines of one log, the newest first."""
