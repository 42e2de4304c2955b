"""What admission has put into a pod: its workload's template does not hold it.

Containers are a webhook's; node labels a policy's, whose own text says what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.detected_labels import injected_into
from inquest.core.cluster.selectors import selector_selects
from inquest.core.diagnosis.detectors.containers import Container
from inquest.core.diagnosis.detectors.workloads import workload_of
from inquest.core.evidence.evidence import Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

KIND: Final = "MutatingWebhookConfiguration"
POLICY: Final = "MutatingAdmissionPolicy"


def is_injected(snapshot: Snapshot, container: Container) -> bool:
    """Whether the workload behind the pod was read, and its template has no container of this name."""
    workload = snapshot.find(workload_of(snapshot, container.pod))
    return container.name in injected_into(container.pod.object, workload.object if workload else None)


def injector(snapshot: Snapshot, pod: ObservedObject) -> TargetRef | None:
    """The one webhook configuration that changes pods of this kind as they are made; None for none and for several."""
    found = [each for each in snapshot.of_kind(KIND) if any(_takes(snapshot, hook, pod) for hook in _hooks(each))]
    return found[0].ref if len(found) == 1 else None


def placement(snapshot: Snapshot, pod: ObservedObject, added: Mapping[str, str]) -> ObservedObject | None:
    """The one policy in force that writes all of these node labels into such pods; None for none and for several."""
    if not added:
        return None
    bound = {str(each.spec.get("policyName")) for each in snapshot.of_kind(f"{POLICY}Binding")}
    found = [each for each in snapshot.of_kind(POLICY) if each.name in bound and _writes(snapshot, each, pod, added)]
    return found[0] if len(found) == 1 else None


def _writes(snapshot: Snapshot, policy: ObservedObject, pod: ObservedObject, added: Mapping[str, str]) -> bool:
    spec = policy.spec
    constraints = spec.get("matchConstraints") or {}
    as_hook = {**constraints, "rules": constraints.get("resourceRules")}
    texts = [_expression(each) for each in spec.get("mutations") or ()]
    wanted = ("nodeSelector", *added, *added.values())
    return _takes(snapshot, as_hook, pod) and any(all(word in text for word in wanted) for text in texts)


def _expression(mutation: Json) -> str:
    forms = (mutation.get("jsonPatch"), mutation.get("applyConfiguration"))
    return " ".join(str((form or {}).get("expression") or "") for form in forms)


def _hooks(configuration: ObservedObject) -> Iterator[Json]:
    yield from configuration.object.get("webhooks") or ()


def _takes(snapshot: Snapshot, hook: Json, pod: ObservedObject) -> bool:
    home = snapshot.find(TargetRef(api_version="v1", kind="Namespace", name=pod.namespace))
    places = home.labels if home else {}
    return (
        any(_makes_pods(rule) for rule in hook.get("rules") or ())
        and _fits(hook.get("namespaceSelector"), places)
        and _fits(hook.get("objectSelector"), pod.labels)
    )


def _fits(selector: Json | None, labels: Json) -> bool:
    """For a webhook an empty selector takes everything."""
    return not selector or not any(selector.values()) or selector_selects(selector, dict(labels))


def _makes_pods(rule: Json) -> bool:
    resources, operations = rule.get("resources") or (), rule.get("operations") or ()
    return not {"pods", "*", "*/*"}.isdisjoint(resources) and not {"CREATE", "*"}.isdisjoint(operations)
