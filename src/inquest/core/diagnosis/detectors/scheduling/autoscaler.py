"""An autoscaler that cannot do its work: no target, no metrics, no requests to measure against, no room.

The words are the controller's: conditions AbleToScale, ScalingActive and ScalingLimited of autoscaling/v2. One at its
maximum is a fault only while it would have more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inquest.core.cluster.objects import condition_of, value_at
from inquest.core.diagnosis.detectors.citations import cite, cite_event, limited, quoted
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.links import METRICS_API
from inquest.core.diagnosis.detectors.workloads import container_specs, listed, ready_replicas, ref_to, wanted_replicas
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

TOLERANCE: Final = 1.1
"""The controller leaves a ratio within a tenth of the target alone."""
_REQUEST: Final = re.compile(
    r"missing request for (?P<resource>[\w-]{1,60})(?: in container (?P<container>[\w.-]{1,253}))?"
)
_NO_API: Final = re.compile(
    r"unable to fetch metrics from [\w ]{1,30} metrics API|no metrics returned from|metrics\.k8s\.io"
    r"|could not find the requested resource|unable to get metrics"
)


@dataclass(frozen=True)
class AutoscalerFault:
    """What keeps an autoscaler from its work."""

    field: str
    value: str
    why: str
    confidence: float
    citations: tuple[Citation, ...]
    cause: str
    actions: tuple[str, ...] = ("PatchHPA",)
    container: str = ""


@one_per_field
def autoscaler(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each autoscaler that cannot do its work."""
    for scaler in snapshot.of_kind("HorizontalPodAutoscaler"):
        silent = _metrics_server(snapshot, scaler)
        if silent:
            yield silent
            continue
        fault = next((found for rule in _RULES if (found := rule(snapshot, scaler))), None)
        if fault:
            yield _finding(snapshot, scaler, fault)


def _finding(snapshot: Snapshot, scaler: ObservedObject, fault: AutoscalerFault) -> Finding:
    ref = scaler.ref
    target = scaler.spec.get("scaleTargetRef") or {}
    return Finding(
        category="HPAMisconfigured",
        object=ref,
        field=fault.field,
        value=limited(fault.value),
        summary=f"{ref.display}: {fault.field} is {fault.value or 'not set'}: {fault.why}",
        confidence=fault.confidence,
        citations=(*cite(snapshot, scaler), *fault.citations),
        explains=(f"{ref.display}: does not scale",),
        facts={"workload": str(target.get("name") or ""), "cause": fault.cause, "container": fault.container}
        | {"maxReplicas": str(scaler.spec.get("maxReplicas") or "")},
        refuted_by=("Its conditions AbleToScale and ScalingActive being True with a current metric would refute it.",),
        actions=fault.actions,
    )


def _said(scaler: ObservedObject, name: str) -> tuple[str, str]:
    """Reason and message of a condition that is False."""
    found = condition_of(scaler.status, name)
    if found.get("status") != "False":
        return "", ""
    return str(found.get("reason") or ""), str(found.get("message") or "")[:1000]


# --- its target ------------------------------------------------------------------------------------------------------


def _no_target(snapshot: Snapshot, scaler: ObservedObject) -> AutoscalerFault | None:
    target = scaler.spec.get("scaleTargetRef") or {}
    name, kind = str(target.get("name") or ""), str(target.get("kind") or "")
    reason, message = _said(scaler, "AbleToScale")
    ref = ref_to(kind, name, scaler.namespace)
    proof = snapshot.proves_absent(ref) if ref else ""
    if reason != "FailedGetScale" and not proof:
        return None
    if "forbidden" in message.lower():
        return None
    quotes = cite(snapshot, scaler, quoted("name", name), '"reason":"FailedGetScale"')
    wrong = "kind" if "no matches for kind" in message else "name"
    value = kind if wrong == "kind" else name
    why = f"there is no such {kind} {name}" + (f" ({message})" if message else "")
    return AutoscalerFault(f"spec.scaleTargetRef.{wrong}", value, why, 0.95, quotes, "targetMissing")


# --- the server of its metrics ---------------------------------------------------------------------------------------


def _metrics_server(snapshot: Snapshot, scaler: ObservedObject) -> Finding | None:
    """It cannot read because nothing answers behind the API of the metrics: that is what has to change."""
    reason, message = _said(scaler, "ScalingActive")
    ref = ref_to("APIService", METRICS_API, None)
    api = snapshot.find(ref) if ref else None
    available = condition_of(api.status, "Available") if api else {}
    if api is None or reason != "FailedGetResourceMetric" or available.get("status") != "False":
        return None
    server = _behind(snapshot, api)
    found, field, category = server or api, "status.conditions[type=Available]", "DependencyFailing"
    value, quote = "False", quoted("reason", available.get("reason"))
    if server and not wanted_replicas(server):
        field, value, category, quote = "spec.replicas", "0", "ScaledToZero", quoted("replicas", 0)
    blamed, own = found.ref, scaler.ref
    return Finding(
        category=category,
        object=blamed,
        field=field,
        value=value,
        summary=f"{blamed.display}: {field} is {value}, so that nothing answers behind {api.name} "
        f"({available.get('message') or available.get('reason')}), and {own.display} cannot read its metrics",
        confidence=0.88,
        citations=(
            *cite(snapshot, found, quote),
            *cite(snapshot, api, quoted("reason", available.get("reason"))),
            *cite(snapshot, scaler, quoted("reason", reason)),
        ),
        explains=(f"{own.display}: {reason}: {message}"[:253],),
        facts={"cause": "metricsServer", "api": api.name, "replicas": value if field == "spec.replicas" else ""},
        refuted_by=(f"The condition Available of {api.name} being True would refute it.",),
        actions=("ScaleReplicas",) if field == "spec.replicas" else (),
    )


def _behind(snapshot: Snapshot, api: ObservedObject) -> ObservedObject | None:
    """The Deployment that serves an API, where it was read and is not ready; it bears the name of its Service."""
    service = api.spec.get("service") or {}
    name, namespace = str(service.get("name") or ""), str(service.get("namespace") or "")
    found = snapshot.at("Deployment", namespace, name) if name else None
    return found if found and (not wanted_replicas(found) or not ready_replicas(found)) else None


# --- its metrics -----------------------------------------------------------------------------------------------------


def _no_request(snapshot: Snapshot, scaler: ObservedObject) -> AutoscalerFault | None:
    """A utilisation is a share of the request: without one there is nothing to divide by."""
    _, message = _said(scaler, "ScalingActive")
    events = events_on(snapshot, scaler, "FailedGetResourceMetric", "FailedComputeMetricsReplicas")
    texts = [message, *(message_of(each) for each in events)] if message else []
    match = next((found for text in texts if (found := _REQUEST.search(text))), None)
    if match is None:
        return None
    resource, target = match["resource"], scaler.spec.get("scaleTargetRef") or {}
    container = match["container"] or _silent(snapshot, scaler, resource)
    why = (
        f"it measures {resource} against the request, and container {container or '?'} of {target.get('name')} has none"
    )
    number, value = _metric(scaler, resource)
    told = cite_event(snapshot, next(iter(events), None))
    quotes = (*cite(snapshot, scaler, '"reason":"FailedGetResourceMetric"'), *told)
    return AutoscalerFault(
        f"spec.metrics[{number}].resource", value, why, 0.93, quotes, "requestMissing", (), container
    )


def _silent(snapshot: Snapshot, scaler: ObservedObject, resource: str) -> str:
    """The first container of the target that asks for none of a resource."""
    target = scaler.spec.get("scaleTargetRef") or {}
    ref = ref_to(str(target.get("kind")), str(target.get("name")), scaler.namespace)
    found = snapshot.find(ref) if ref else None
    for _, container in container_specs(found) if found else ():
        if not value_at(container, "resources", "requests").get(resource):
            return str(container.get("name"))
    return ""


def _metric(scaler: ObservedObject, resource: str) -> tuple[int, str]:
    for number, metric in enumerate(listed(scaler.spec, "metrics")):
        if (metric.get("resource") or {}).get("name") == resource:
            return number, resource
    return 0, resource


def _no_metrics(snapshot: Snapshot, scaler: ObservedObject) -> AutoscalerFault | None:
    reason, message = _said(scaler, "ScalingActive")
    if not reason.startswith("FailedGet") and reason not in ("InvalidMetricSourceType", "AmbiguousSelector"):
        return None
    external = "External" in reason or "Object" in reason or "Pods" in reason
    field = "spec.metrics" if reason != "AmbiguousSelector" else "spec.scaleTargetRef"
    named = _metric_names(scaler) if external else ""
    from_api = bool(_NO_API.search(message)) and not external
    confidence = 0.7 if from_api else 0.88
    quotes = cite(snapshot, scaler, quoted("reason", reason))
    return AutoscalerFault(
        field, named, f"{reason}: {message}", confidence, quotes, "noMetrics", () if from_api else ("PatchHPA",)
    )


def _metric_names(scaler: ObservedObject) -> str:
    kinds = ("external", "object", "pods")
    metrics = [value_at(each, kind, "metric") for each in listed(scaler.spec, "metrics") for kind in kinds]
    return ",".join(str(each.get("name")) for each in metrics if each.get("name"))


# --- its bounds ------------------------------------------------------------------------------------------------------


def _at_maximum(snapshot: Snapshot, scaler: ObservedObject) -> AutoscalerFault | None:
    """At its maximum, and what it measures is still above the target."""
    found = condition_of(scaler.status, "ScalingLimited")
    if (found.get("status"), found.get("reason")) != ("True", "TooManyReplicas"):
        return None
    over = _over(scaler)
    if not over:
        return None
    maximum, minimum = scaler.spec.get("maxReplicas"), scaler.spec.get("minReplicas", 1)
    same = "; its minimum is the same" if minimum == maximum else ""
    why = f"it is at its maximum, and {over}{same}"
    quotes = cite(snapshot, scaler, quoted("maxReplicas", maximum), '"reason":"TooManyReplicas"')
    return AutoscalerFault("spec.maxReplicas", str(maximum), why, 0.85 if same else 0.8, quotes, "atMaximum")


def _over(scaler: ObservedObject) -> str:
    """The metric that passes its target, in words."""
    current = {_resource(each): each for each in listed(scaler.status, "currentMetrics")}
    for metric in listed(scaler.spec, "metrics"):
        name = _resource(metric)
        goal = ((metric.get("resource") or metric.get("containerResource") or {}).get("target") or {}).get(
            "averageUtilization"
        )
        now = _utilization(current.get(name, {}))
        if name and goal and now and now > int(goal) * TOLERANCE:
            return f"{name} is at {now} % of the request, {goal} % are wanted"
    return ""


def _resource(metric: Json) -> str:
    return str((metric.get("resource") or metric.get("containerResource") or {}).get("name") or "")


def _utilization(metric: Json) -> int:
    found = (metric.get("resource") or metric.get("containerResource") or {}).get("current") or {}
    return int(found.get("averageUtilization") or 0)


_RULES: Final = (_no_target, _no_request, _no_metrics, _at_maximum)
