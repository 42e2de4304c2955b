"""The cluster's DNS: its pods, its configuration, its Service; one cause behind every name that nobody resolves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from inquest.core.diagnosis.detectors.citations import cite, quoted
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    SYSTEM,
    BrokenComponent,
    broken,
    component_pods,
    is_working,
    owner_of,
    platform_finding,
)
from inquest.core.diagnosis.detectors.workloads import is_going, ref_to, wanted_replicas
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

NAMES: Final = ("coredns", "kube-dns", "rke2-coredns-rke2-coredns", "node-local-dns")
LABELS: Final = ("k8s-app", "app.kubernetes.io/name")
VALUES: Final = ("kube-dns", "coredns", "node-local-dns")
COREFILE: Final = "data.Corefile"
MIN_ERRORS: Final = 3
"""Lines about an upstream that does not answer, before they count."""
_CONFIG: Final = re.compile(
    r"Corefile:\d+|Unknown directive|Error during parsing|plugin/\w{1,30}: (?:Loop|not a valid|unable|no nameservers)"
    r"|could not parse|Wrong argument count|unknown property",
    re.IGNORECASE,
)
_UPSTREAM: Final = re.compile(
    r"plugin/errors: \d \S{1,253} \S{1,10}: (?:read|dial|write) (?:udp|tcp) "
    r"\S{1,80}->(?P<server>[\d.]{7,15}|\[[0-9a-f:]{2,45}\]):\d+: "
    r"(?:i/o timeout|read: connection refused|read: no route to host|connect: connection refused)"
)
_ZONE: Final = re.compile(
    r"^[ \t]*kubernetes(?P<zones>(?:[ \t]+[^\s{]{1,253}){0,10})[ \t]*+(?:\{[ \t]*+)?$", re.MULTILINE
)
_REFUTED: Final = ("a pod resolves kubernetes.default.svc.cluster.local",)


def cluster_dns(snapshot: Snapshot) -> Iterable[Finding]:
    """The first thing that is wrong with the cluster's DNS, from its configuration to its Service."""
    rules: tuple[Callable[[Snapshot], Iterator[Finding]], ...] = (
        _crashing,
        _switched_off,
        _serviceless,
        _denying,
        _misled,
        _deaf,
    )
    found = next((finding for rule in rules for finding in rule(snapshot)), None)
    return (found,) if found else ()


def _pods(snapshot: Snapshot) -> list[ObservedObject]:
    """Of the cluster's DNS only: somebody's own CoreDNS in another namespace is an application."""
    found = [*component_pods(snapshot, VALUES, *LABELS), *component_pods(snapshot, NAMES)]
    own = (pod for pod in found if pod.namespace == SYSTEM and not is_going(pod))
    return list({pod.name: pod for pod in own}.values())


def _config(snapshot: Snapshot) -> ObservedObject | None:
    refs = (ref_to("ConfigMap", name, SYSTEM) for name in ("coredns", "rke2-coredns-rke2-coredns"))
    return next((found for ref in refs if ref and (found := snapshot.find(ref))), None)


def _corefile(config: ObservedObject | None) -> str:
    return str(config.data.get("Corefile") or "")[:20_000] if config else ""


# --- it does not run ---------------------------------------------------------------------------------------------


def _crashing(snapshot: Snapshot) -> Iterator[Finding]:
    pods = _pods(snapshot)
    down = [trouble for pod in pods if (trouble := broken(snapshot, pod))]
    if not down or any(is_working(pod) for pod in pods):
        return
    first = max(down, key=lambda each: bool(each.line))
    config = _config(snapshot)
    if config is not None and _CONFIG.search(first.line):
        yield _of_config(snapshot, config, first)
    else:
        yield _of_pods(snapshot, first, len(down))


def _of_config(snapshot: Snapshot, config: ObservedObject, trouble: BrokenComponent) -> Finding:
    return platform_finding(
        "ClusterDNSFailing",
        config.ref,
        COREFILE,
        _directive(trouble.line, _corefile(config)),
        f"the cluster's DNS does not start with its configuration: {trouble.line}",
        confidence=0.95,
        citations=(*trouble.cite(snapshot), *cite(snapshot, config)),
        explains=(f"Pod/{trouble.pod.name}: {trouble.word}",),
        facts={"pod": trouble.pod.name},
        refuted_by=_REFUTED,
        actions=("PatchConfiguration",),
    )


def _directive(line: str, corefile: str) -> str:
    """The line of the Corefile that the message names, else the message."""
    number = re.search(r"Corefile:(\d{1,4})", line)
    lines = corefile.splitlines()
    named = re.search(r"'([^']{1,80})'", line)
    if named and (hit := next((each.strip() for each in lines if named[1] in each), "")):
        return hit
    return lines[int(number[1]) - 1].strip() if number and 0 < int(number[1]) <= len(lines) else line


def _of_pods(snapshot: Snapshot, trouble: BrokenComponent, count: int) -> Finding:
    said = trouble.line or trouble.word
    more = f": {trouble.line}" if trouble.line else ""
    return platform_finding(
        "ClusterDNSFailing",
        owner_of(snapshot, trouble.pod),
        "log" if trouble.line else "process",
        said,
        f"the cluster's DNS does not run, none of its {count} pods is ready ({trouble.word}){more}",
        confidence=0.9,
        citations=trouble.cite(snapshot),
        facts={"pod": trouble.pod.name, "container": trouble.container.name if trouble.container else ""},
        refuted_by=_REFUTED,
        actions=("RestartDeployment",) if trouble.word == "not ready" else (),
    )


def _switched_off(snapshot: Snapshot) -> Iterator[Finding]:
    for seen in snapshot.of_kind("Deployment"):
        is_dns = seen.namespace == SYSTEM and (seen.name in NAMES or seen.labels.get("k8s-app") in VALUES)
        if is_dns and wanted_replicas(seen) == 0:
            yield platform_finding(
                "ClusterDNSFailing",
                seen.ref,
                "spec.replicas",
                "0",
                "the cluster's DNS is scaled to zero: no name of a Service is resolved",
                confidence=0.95,
                citations=cite(snapshot, seen, quoted("replicas", 0)),
                facts={"replicas": "0", "wantedReplicas": "2"},
                refuted_by=(*_REFUTED, "another DNS serves the cluster"),
                actions=("ScaleReplicas",),
            )


# --- it runs and is not reached --------------------------------------------------------------------------------------


def _serviceless(snapshot: Snapshot) -> Iterator[Finding]:
    ref = ref_to("Service", "kube-dns", SYSTEM)
    service = snapshot.find(ref) if ref else None
    pods = [pod for pod in _pods(snapshot) if is_working(pod)]
    if service is None or not pods:
        return
    selector = service.spec.get("selector") or {}
    if selector and not any(all(pod.labels.get(k) == v for k, v in selector.items()) for pod in pods):
        yield platform_finding(
            "ClusterDNSFailing",
            service.ref,
            "spec.selector",
            ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
            "the Service of the cluster's DNS selects none of its ready pods",
            confidence=0.93,
            citations=cite(snapshot, service, quoted("selector", selector)),
            explains=(f"Pod/{pods[0].name}: ready, and not behind the Service",),
            refuted_by=_REFUTED,
            actions=("PatchConfiguration",),
        )


# --- it answers, wrongly or not at all -------------------------------------------------------------------------


def _misled(snapshot: Snapshot) -> Iterator[Finding]:
    """The plug-in for the cluster's own names is missing, or is told of another zone."""
    config = _config(snapshot)
    corefile = _corefile(config)
    if config is None or not corefile.strip() or _is_local(snapshot):
        return
    found = _ZONE.search(corefile)
    zones = found["zones"].split() if found else []
    names = [zone for zone in zones if not zone.endswith("arpa")]
    if found and (not zones or any(zone.rstrip(".") == "cluster.local" for zone in names)):
        return
    wrong = found[0].strip() if found else "no kubernetes plug-in"
    if not (names or found is None) or not _says_no_name(snapshot):
        return
    yield platform_finding(
        "ClusterDNSFailing",
        config.ref,
        COREFILE,
        wrong,
        f"the cluster's DNS does not know the zone cluster.local: {wrong}",
        confidence=0.85,
        citations=cite(snapshot, config, wrong if found else "Corefile"),
        refuted_by=(*_REFUTED, "the cluster's domain is another one"),
        actions=("PatchConfiguration",),
    )


_TEMPLATE: Final = re.compile(
    r"^[ \t]*template[ \t]+\S{1,20}[ \t]+\S{1,20}(?P<zones>[^{\n]{0,253})\{(?P<body>[^{}]{0,1000})\}", re.MULTILINE
)
_NO: Final = re.compile(r"^[ \t]*rcode[ \t]+(?:NXDOMAIN|SERVFAIL|REFUSED)\b", re.MULTILINE)
_OURS: Final = re.compile(r"\bsvc\b|cluster\\?\.local")


def _denying(snapshot: Snapshot) -> Iterator[Finding]:
    """A template that answers for the cluster's own names that there are none."""
    config = _config(snapshot)
    found = (
        match for match in _TEMPLATE.finditer(_corefile(config)) if _NO.search(match["body"]) and _OURS.search(match[0])
    )
    match = next(found, None)
    if config is None or match is None or not _says_no_name(snapshot):
        return
    first = match[0].strip().splitlines()[0].strip()
    yield platform_finding(
        "ClusterDNSFailing",
        config.ref,
        COREFILE,
        first,
        f"the cluster's DNS is told to say of the cluster's own names that there are none: {first}",
        confidence=0.93,
        citations=cite(snapshot, config, first),
        refuted_by=_REFUTED,
        actions=("PatchConfiguration",),
    )


def _is_local(snapshot: Snapshot) -> bool:
    """Names of another domain in use: then cluster.local is not the cluster's."""
    return any("clusterDomain" in text.text and "cluster.local" not in text.text for text in snapshot.texts)


_NO_NAME: Final = re.compile(
    r"no such host|NXDOMAIN|could not resolve|name or service not known|name resolution|ENOTFOUND|EAI_AGAIN|"
    r"could not translate|server misbehaving|unknown host|bad address|lookup \S{1,200} on ",
    re.IGNORECASE,
)


def _says_no_name(snapshot: Snapshot) -> bool:
    return any(_NO_NAME.search(line[:600]) for log in snapshot.logs for line in log.text.splitlines()[-100:])


def _deaf(snapshot: Snapshot) -> Iterator[Finding]:
    """An upstream server that does not answer; the Corefile names it, or the node's resolver."""
    config = _config(snapshot)
    names = {pod.name for pod in _pods(snapshot)}
    for log in snapshot.logs:
        hits = _upstream_errors(log) if (log.namespace, log.pod in names) == (SYSTEM, True) else []
        if len(hits) >= MIN_ERRORS and config is not None and _says_no_name(snapshot):
            yield _upstream(snapshot, config, log, hits)
            return


def _upstream_errors(log: LogTail) -> list[tuple[str, str]]:
    """Server and line."""
    found = ((_UPSTREAM.search(line[:600]), line[:300]) for line in log.text.splitlines()[-200:])
    return [(match["server"].strip("[]"), line) for match, line in found if match]


def _upstream(snapshot: Snapshot, config: ObservedObject, log: LogTail, hits: list[tuple[str, str]]) -> Finding:
    server, line = hits[-1]
    own = next((each.strip() for each in _corefile(config).splitlines() if server in each), "")
    return platform_finding(
        "ClusterDNSFailing",
        config.ref,
        COREFILE,
        own or server,
        f"the cluster's DNS forwards to {server}, which does not answer ({len(hits)} times)",
        confidence=0.88 if own else 0.75,
        citations=(Citation(log.evidence, line.strip()), *cite(snapshot, config, own)),
        facts={"upstream": server},
        refuted_by=(f"{server} answers on port 53",),
        actions=("PatchConfiguration",) if own else (),
    )
