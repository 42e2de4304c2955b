"""Containers that an admission webhook has put into a pod: its workload's template does not hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inquest.api.shared import TargetRef
from inquest.story.detectors.reading import Container, culprit, ref_of
from inquest.story.evidence import Json, Observed, Snapshot
from inquest.story.labels import injected_into, labels_of, selects

KIND: Final = "MutatingWebhookConfiguration"


def is_injected(snapshot: Snapshot, container: Container) -> bool:
    """Whether the workload behind the pod was read, and its template has no container of this name."""
    workload = snapshot.find(culprit(snapshot, container.pod))
    return container.name in injected_into(container.pod.object, workload.object if workload else None)


def injector(snapshot: Snapshot, pod: Observed) -> TargetRef | None:
    """The one webhook configuration that changes pods of this kind as they are made; None for none and for several."""
    found = [each for each in snapshot.of_kind(KIND) if any(_takes(snapshot, hook, pod) for hook in _hooks(each))]
    return ref_of(found[0]) if len(found) == 1 else None


def _hooks(configuration: Observed) -> Iterator[Json]:
    yield from configuration.object.get("webhooks") or ()


def _takes(snapshot: Snapshot, hook: Json, pod: Observed) -> bool:
    home = snapshot.find(TargetRef(api_version="v1", kind="Namespace", name=pod.namespace))
    places = labels_of(home.object) if home else {}
    return (
        any(_makes_pods(rule) for rule in hook.get("rules") or ())
        and _fits(hook.get("namespaceSelector"), places)
        and _fits(hook.get("objectSelector"), labels_of(pod.object))
    )


def _fits(selector: Json | None, labels: Json) -> bool:
    """For a webhook an empty selector takes everything."""
    return not selector or not any(selector.values()) or selects(selector, dict(labels))


def _makes_pods(rule: Json) -> bool:
    resources, operations = rule.get("resources") or (), rule.get("operations") or ()
    return not {"pods", "*", "*/*"}.isdisjoint(resources) and not {"CREATE", "*"}.isdisjoint(operations)
