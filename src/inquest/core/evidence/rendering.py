"""How objects become evidence text: what matters first, one object a line, cut at a line end and said so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

from inquest.core.evidence.evidence import NONE_FOUND, Json, involved_object

MAX_LISTING: Final = 8_000
"""Characters of one listing."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_FIRST: Final = ("apiVersion", "kind", "metadata", "status", "spec")
_NOISE: Final = frozenset(
    {
        *("managedFields", "selfLink", "terminationMessagePath", "terminationMessagePolicy"),
        *("enableServiceLinks", "preemptionPolicy", "podIPs", "hostIPs", "containerID", "imageID"),
        *("revisionHistoryLimit", "clusterIPs", "ipFamilies", "images", "volumeDevices", "allocatedResourcesStatus"),
        # What tells one object of the same name from another, and when somebody looked: no cause has it in it.
        *("uid", "resourceVersion", "generateName", "blockOwnerDeletion", "daemonEndpoints"),
        *("lastHeartbeatTime", "lastUpdateTime", "lastProbeTime"),
        *("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"),
        *("node.alpha.kubernetes.io/ttl", "beta.kubernetes.io/arch", "beta.kubernetes.io/os"),
    }
)
"""Keys that every object has and no reader needs."""
_DEFAULTS: Final[Mapping[str, Any]] = {
    "terminationGracePeriodSeconds": 30,
    "progressDeadlineSeconds": 600,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    "podManagementPolicy": "OrderedReady",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminatingReplicas": 0,
    "defaultMode": 420,
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilyPolicy": "SingleStack",
}
"""What stands there when nobody has said anything; any other value is shown. How long a probe waits is not among it."""
_DEFAULT_TAINTS: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_WRITER: Final = ("manager", "operation", "subresource", "time")
_TOKEN_VOLUME: Final = "kube-api-access-"


@dataclass(frozen=True)
class ListingText:
    """Text of a listing with what became of it."""

    text: str
    shown: int
    total: int

    @property
    def cut(self) -> bool:
        return self.shown < self.total


def prune_object(found: Json) -> dict[str, Any]:
    """The object for the detectors, without what says nothing about it.

    Of managed fields stay who wrote and when, but for status; the copy of itself that kubectl keeps goes, and so does
    the volume with token and root certificates that every pod gets: nobody configured it.
    """
    metadata = dict(found.get("metadata") or {})
    if entries := metadata.pop("managedFields", None):
        kept = (each for each in entries if each.get("subresource") != "status")
        metadata["managedFields"] = [{key: each[key] for key in _WRITER if key in each} for each in kept]
    if _LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _LAST_APPLIED}
    spec = found.get("spec")
    return {**found, "metadata": metadata, **({"spec": _without_token(spec)} if found.get("kind") == "Pod" else {})}


def _without_token(spec: Any) -> Any:
    """A pod's spec without the automatic volume and its mounts."""
    if not isinstance(spec, Mapping) or not any(map(_is_of_token, spec.get("volumes") or ())):
        return spec
    kept = {**spec, "volumes": [each for each in spec["volumes"] if not _is_of_token(each)]}
    for word in ("initContainers", "containers", "ephemeralContainers"):
        if word in spec:
            kept[word] = [_without_mount(each) for each in spec[word]]
    return kept


def _without_mount(container: Json) -> Json:
    mounts = [each for each in container.get("volumeMounts") or () if not _is_of_token(each)]
    return {**container, "volumeMounts": mounts} if "volumeMounts" in container else container


def _is_of_token(item: Json) -> bool:
    return str(item.get("name", "")).startswith(_TOKEN_VOLUME)


def line_of(found: Json) -> str:
    """One object as compact JSON, status before spec, without the defaults that every object repeats."""
    first = {key: found[key] for key in _FIRST if key in found}
    return json.dumps(_brief({**first, **found}), ensure_ascii=False, separators=(",", ":"))


def render_listing(lines: Iterable[str], *, total: int | None = None, cap: int = MAX_LISTING) -> ListingText:
    """As many whole lines as fit; a first line that does not fit is cut inside."""
    rows = list(lines)
    wanted = max(len(rows), total or 0)
    shown: list[str] = []
    room = cap
    for row in rows:
        if len(row) + 1 > room:
            break
        shown.append(row)
        room -= len(row) + 1
    if rows and not shown:
        return ListingText(f"{rows[0][:cap]}\n… cut inside the first of {wanted}", 0, wanted)
    marker = [f"… cut: {len(shown)} of {wanted} shown"] if len(shown) < wanted else []
    return ListingText("\n".join((*shown, *marker)) or NONE_FOUND, len(shown), wanted)


def log_tail(text: str, cap: int = MAX_LISTING) -> tuple[str, bool]:
    """The end of a log from a line start, and whether something is missing before it."""
    if len(text) <= cap:
        return text, False
    end = text[-cap:]
    return f"… cut: the last {cap} of {len(text)} characters\n{end.partition(chr(10))[2] or end}", True


def event_line(event: Json) -> str:
    """What an Event says, on one line."""
    about = involved_object(event)
    return json.dumps(
        {
            "lastTimestamp": event_time(event),
            "reason": event.get("reason"),
            "object": f"{about.get('kind')}/{about.get('name')}",
            "count": (event.get("series") or {}).get("count") or event.get("count") or 1,
            "message": event.get("message") or event.get("note"),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def event_time(event: Json) -> str:
    """When it happened last, as text that sorts."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return str(next((time for time in (*times, created) if time), ""))


def diff_revisions(before: Any, after: Any, *, names: tuple[str, str]) -> str:
    """What changed between two revisions, as a diff of their indented JSON."""
    old, new = (_lines(value) for value in (before, after))
    return "\n".join(unified_diff(old, new, fromfile=names[0], tofile=names[1], lineterm="", n=2))


def _lines(value: Any) -> list[str]:
    return json.dumps(_brief(value), indent=1, ensure_ascii=False, sort_keys=True).splitlines()


def _brief(value: Any) -> Any:
    if isinstance(value, Mapping):
        shown = {key: _brief(item) for key, item in value.items() if not _is_noise(key, item)}
        return {key: item for key, item in shown.items() if item not in ({}, [])}
    if isinstance(value, (list, tuple)):
        return [_brief(item) for item in value if not _is_default(item)]
    return value


def _is_noise(key: str, item: Any) -> bool:
    return key in _NOISE or key == _LAST_APPLIED or item is None or (key in _DEFAULTS and item == _DEFAULTS[key])


def _is_default(item: Any) -> bool:
    """Volumes, mounts and tolerations that every pod gets."""
    if not isinstance(item, Mapping):
        return False
    return _is_of_token(item) or (item.get("key") in _DEFAULT_TAINTS and item.get("operator") == "Exists")
