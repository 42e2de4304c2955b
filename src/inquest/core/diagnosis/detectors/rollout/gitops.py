"""What a GitOps tool could not bring into the cluster: the workload is old or missing, and the source is to blame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from inquest.core.cluster.objects import condition_of
from inquest.core.diagnosis.detectors.citations import cite, quoted
from inquest.core.diagnosis.detectors.platform.platform_reading import (
    cite_condition,
    condition_field,
    has_lasted,
    platform_finding,
)
from inquest.core.diagnosis.detectors.workloads import listed
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

GRACE: Final = timedelta(minutes=2)
FLUX: Final = ("Kustomization", "HelmRelease")
SOURCES: Final = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
_EFFECTS: Final = frozenset({"HealthCheckFailed", "DependencyNotReady", "ArtifactFailed", "Progressing", "Reconciling"})
"""Reasons that repeat another's trouble: pods that do not get well, a source that has none."""
_WARNINGS: Final = frozenset({"OrphanedResourceWarning", "SharedResourceWarning", "ExcludedResourceWarning"})


def gitops_sync_failing(snapshot: Snapshot) -> Iterable[Finding]:
    """Applications of Argo CD and objects of Flux that cannot be synchronised, with the tool's own words."""
    yield from (each for seen in snapshot.of_kind("Application") for each in _argo(snapshot, seen))
    for seen in snapshot.of_kind(*SOURCES, *FLUX):
        ready = condition_of(seen.status, "Ready")
        bad = ready.get("status") == "False" and ready.get("reason") not in _EFFECTS
        is_flux = ".toolkit.fluxcd.io/" in str(seen.object.get("apiVersion"))
        if bad and is_flux and not seen.spec.get("suspend") and has_lasted(ready, snapshot.taken_at, GRACE):
            yield _finding(snapshot, seen, condition_field("Ready"), str(ready.get("message") or ""), ready)


def _argo(snapshot: Snapshot, seen: ObservedObject) -> Iterator[Finding]:
    status = seen.status
    errors = [each for each in listed(status, "conditions") if _is_error(each)]
    state = status.get("operationState") or {}
    if errors:
        first = errors[0]
        yield _finding(snapshot, seen, condition_field(str(first.get("type"))), str(first.get("message") or ""), first)
    elif state.get("phase") in ("Failed", "Error") and (status.get("sync") or {}).get("status") != "Synced":
        yield _failed(snapshot, seen, state)


def _is_error(found: Json) -> bool:
    kind = str(found.get("type") or "")
    return kind.endswith("Error") and kind not in _WARNINGS


def _failed(snapshot: Snapshot, seen: ObservedObject, state: Json) -> Finding:
    message = str(state.get("message") or "")
    field = "status.operationState.message" if message else "status.operationState.phase"
    return platform_finding(
        "GitOpsSyncFailing",
        seen.ref,
        field,
        message or str(state.get("phase")),
        f"the last synchronisation failed: {message or state.get('phase')}",
        confidence=0.88,
        citations=cite(snapshot, seen, quoted("phase", state.get("phase")), quoted("message", message)),
        explains=_consequences(seen),
        refuted_by=("the Application is Synced with the wanted revision",),
        actions=("GitRevertCommit",),
    )


def _consequences(seen: ObservedObject) -> list[str]:
    place = (seen.spec.get("destination") or {}).get("namespace") or seen.namespace
    return [f"Namespace/{place}: what was committed last is not there"]


def _finding(snapshot: Snapshot, seen: ObservedObject, field: str, message: str, found: Json) -> Finding:
    return platform_finding(
        "GitOpsSyncFailing",
        seen.ref,
        field,
        message,
        f"its source cannot be synchronised: {message}",
        confidence=0.92,
        citations=cite_condition(snapshot, seen, found),
        explains=_consequences(seen),
        facts={"reason": str(found.get("reason") or found.get("type") or "")},
        refuted_by=("the tool synchronises the wanted revision",),
        actions=("GitRevertCommit",),
    )
