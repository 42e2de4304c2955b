"""A workload that asks the wrong resolver, by its own settings.

`dnsPolicy: Default` and a host network without `ClusterFirstWithHostNet` ask the node's resolver, which does not know
the cluster's names; `dnsPolicy: None` asks whom `dnsConfig` says. They are faults where the workload calls Services by
name and cannot find them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.core.diagnosis.detectors.citations import cite, cited, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.network.network_reading import (
    RESOLVING,
    UNANSWERED,
    addresses_of,
    any_complaint,
    called_service,
    complaint,
)
from inquest.core.diagnosis.detectors.revisions import roll_back, way_back
from inquest.core.diagnosis.detectors.workloads import is_short, listed, pod_spec_of, pods_of, workloads
from inquest.core.evidence.evidence import Finding, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

CLUSTER_SEARCH: Final = "svc.cluster.local"
MIN_NDOTS: Final = 2
"""Below it, `service.namespace` is asked as it is and not searched for first."""


@dataclass(frozen=True)
class Setting:
    """A field of the pod's DNS settings, its value, and what is wrong with it."""

    field: str
    value: str
    why: str
    confidence: float


@one_per_field
def pod_dns(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each workload whose own settings keep it from the cluster's names."""
    for workload in workloads(snapshot):
        ref, line = workload.ref, _complaint(snapshot, workload)
        setting = _wrong(snapshot, workload, line[1] if line else "")
        if setting is None:
            continue
        if line or (_calls_by_name(snapshot, workload) and is_short(snapshot, ref)):
            yield _finding(snapshot, workload, setting, line)


def _calls_by_name(snapshot: Snapshot, workload: ObservedObject) -> bool:
    return any(called_service(snapshot, each) for each in addresses_of(snapshot, workload))


def _complaint(snapshot: Snapshot, workload: ObservedObject) -> tuple[LogTail, str] | None:
    hosts = [each.host for each in addresses_of(snapshot, workload)]
    ref = workload.ref
    unanswered = any_complaint(snapshot, ref, UNANSWERED)
    return complaint(snapshot, ref, hosts, RESOLVING) or any_complaint(snapshot, ref, RESOLVING) or unanswered


def _wrong(snapshot: Snapshot, workload: ObservedObject, line: str) -> Setting | None:
    spec = pod_spec_of(workload)
    policy, config = str(spec.get("dnsPolicy") or "ClusterFirst"), spec.get("dnsConfig") or {}
    servers = [str(each) for each in config.get("nameservers") or ()]
    if policy == "None":
        return _own_servers(snapshot, servers, [str(each) for each in config.get("searches") or ()], line)
    if policy == "Default":
        return Setting(
            "dnsPolicy", policy, "so it asks the node's resolver, which does not know the cluster's names", 0.85
        )
    if spec.get("hostNetwork") and policy == "ClusterFirst":
        why = "with hostNetwork that is the node's resolver: it takes ClusterFirstWithHostNet"
        return Setting("dnsPolicy", policy, why, 0.85)
    return _options(config)


def _own_servers(snapshot: Snapshot, servers: list[str], searches: list[str], line: str) -> Setting | None:
    if not servers:
        return Setting("dnsConfig.nameservers", "", "with dnsPolicy None it has no resolver at all", 0.93)
    dns = snapshot.at("Service", "kube-system", "kube-dns")
    address = str(dns.spec.get("clusterIP") or "") if dns else ""
    if address and address not in servers and not any(each.startswith("169.254.") for each in servers):
        return Setting("dnsConfig.nameservers", ",".join(servers), f"the cluster's DNS is {address}", 0.92)
    if not address and any(f"{each}:53" in line for each in servers):
        return Setting("dnsConfig.nameservers", ",".join(servers), "that resolver does not answer", 0.88)
    if not any(each.endswith(CLUSTER_SEARCH) for each in searches):
        why = "the cluster's short names are searched nowhere"
        return Setting("dnsConfig.searches", ",".join(searches), why, 0.8)
    return None


def _options(config: object) -> Setting | None:
    """Servers beside the cluster's are asked too; `ndots` 0 or 1 keeps names of two parts from the search list."""
    found = config if isinstance(config, dict) else {}
    for option in listed(found, "options"):
        value = str(option.get("value") or "")
        if option.get("name") == "ndots" and value.isdigit() and int(value) < MIN_NDOTS:
            return Setting("dnsConfig.options[name=ndots].value", value, "names of two parts are not searched for", 0.6)
    servers = [str(each) for each in found.get("nameservers") or ()]
    if servers:
        why = "a resolver beside the cluster's, which does not know its names"
        return Setting("dnsConfig.nameservers", ",".join(servers), why, 0.6)
    return None


def _finding(
    snapshot: Snapshot, workload: ObservedObject, setting: Setting, line: tuple[LogTail, str] | None
) -> Finding:
    ref = workload.ref
    pod = next(iter(pods_of(snapshot, ref)), None)
    field, back = pod_field(ref, setting.field), way_back(snapshot, ref)
    quotes = (quoted("dnsPolicy", setting.value), f'"{setting.value.split(",")[0]}"' if setting.value else "")
    return Finding(
        category="DNSFailing",
        object=ref,
        field=field,
        value=limited(setting.value),
        summary=f"{ref.display}: {field} is {setting.value or 'not set'}: {setting.why}",
        confidence=round(setting.confidence + (0.05 if line else 0.0), 2),
        citations=(
            *cite(snapshot, workload, *quotes, named_quote(workload)),
            *(cited(snapshot, line[0].evidence, line[1]) if line else ()),
        ),
        explains=(f"{ref.display}: {line[1]}"[:253],) if line else (),
        facts={"workload": ref.name, "setting": setting.field, "pod": pod.name if pod else "", **back},
        refuted_by=("A name of the cluster resolving in one of its pods would refute it.",),
        actions=roll_back(back),
    )
