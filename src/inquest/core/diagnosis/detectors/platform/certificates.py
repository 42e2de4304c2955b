"""Certificates that have run out, or that nobody could issue, as cert-manager says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from inquest.core.cluster.objects import condition_of, parse_time
from inquest.core.diagnosis.detectors.citations import cite, cite_entry, quoted
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    cite_condition,
    condition_field,
    has_lasted,
    platform_finding,
)
from inquest.core.diagnosis.detectors.workloads import proof_of_absence, ref_to
from inquest.core.diagnosis.health import UNREADY_GRACE
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

MAX_HOSTS: Final = 5


def certificate_expired(snapshot: Snapshot) -> Iterable[Finding]:
    """A Certificate that has run out, or was never issued; one that is being renewed in time is well."""
    for seen in snapshot.of_kind("Certificate"):
        ready = condition_of(seen.status, "Ready")
        text = str(seen.status.get("notAfter") or "")
        at = parse_time(text)
        over = text if at is not None and at <= snapshot.taken_at else ""
        never = ready.get("status") == "False" and not seen.status.get("notAfter")
        if over or (never and has_lasted(ready, snapshot.taken_at, 5 * UNREADY_GRACE)):
            yield _finding(snapshot, seen, ready, over)


def _finding(snapshot: Snapshot, seen: ObservedObject, ready: Json, over: str) -> Finding:
    why, proof = _why(snapshot, seen)
    hosts = [str(each) for each in seen.spec.get("dnsNames") or ()]
    words = (
        f"the certificate for {', '.join(hosts[:3]) or seen.name} ran out at {over}" if over else "it was never issued"
    )
    return platform_finding(
        "CertificateExpired",
        seen.ref,
        "status.notAfter" if over else condition_field("Ready"),
        over or str(ready.get("status")),
        f"{words}{f'; it is not renewed: {why}' if why else ''}",
        confidence=0.93 if over else 0.8,
        citations=(
            *cite(snapshot, seen, quoted("notAfter", over) if over else quoted("type", "Ready")),
            *cite_condition(snapshot, seen, ready),
            *proof,
        ),
        explains=[f"clients of {host} refuse it" for host in hosts[:MAX_HOSTS]],
        facts={"secret": str(seen.spec.get("secretName") or ""), "hosts": ",".join(hosts[:MAX_HOSTS])},
        refuted_by=("the certificate that is served is valid now",),
        actions=("FixCertificate",),
    )


def _why(snapshot: Snapshot, seen: ObservedObject) -> tuple[str, tuple[Citation, ...]]:
    """Why it is not renewed: the issuing condition, or an issuer that is not there or not ready."""
    issuing = condition_of(seen.status, "Issuing")
    issuer = seen.spec.get("issuerRef") or {}
    kind, name = str(issuer.get("kind") or "Issuer"), str(issuer.get("name") or "")
    space = None if kind == "ClusterIssuer" else seen.namespace
    ref = ref_to(kind, name, space)
    found = snapshot.find(ref) if ref else None
    if found is not None and condition_of(found.status, "Ready").get("status") == "False":
        ready = condition_of(found.status, "Ready")
        return f"{kind} {name} is not ready: {ready.get('message', '')}", cite_condition(snapshot, found, ready)
    if issuing.get("message") and (issuing.get("status") == "True" or issuing.get("reason") == "Failed"):
        return str(issuing["message"]), cite_condition(snapshot, seen, issuing)
    absent = proof_of_absence(snapshot, kind, name, space) if ref else ""
    return (f"{kind} {name} does not exist", cite_entry(snapshot, absent)) if absent else ("", ())
