"""An image that cannot be pulled, and why as far as the runtime says: not found, refused, unreachable, a bad name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.citations import cite_event, cited, limited
from inquest.core.diagnosis.detectors.containers import Container, container_field, every_container, pod_field
from inquest.core.diagnosis.detectors.events import events_on, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.messages import message_rules
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.startup.injected import KIND, injector, is_injected
from inquest.core.diagnosis.detectors.workloads import is_going, workload_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

INJECTED_BY: Final = "webhooks"
REASONS: Final = frozenset(
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    ]
)
_BY_REASON: Final = {
    "ErrImageNeverPull": "neverPull",
    "InvalidImageName": "invalidName",
    "RegistryUnavailable": "unreachable",
}
CAUSES: Final = message_rules(__package__, "image_pull.yaml")
_SECRETS: Final = re.compile(r"image pull secrets \((?P<names>[^)]{1,253})\)")


@one_per_container
def image_pull(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container of a workload that waits for its image."""
    for container in every_container(snapshot):
        if container.waiting.get("reason") in REASONS and not is_going(container.pod):
            yield _finding(snapshot, container)


def _finding(snapshot: Snapshot, container: Container) -> Finding:
    injected = is_injected(snapshot, container)
    ref = _who_changes(snapshot, container) if injected else workload_of(snapshot, container.pod)
    image = str(container.spec.get("image") or container.status.get("image") or "")
    events = _failures(snapshot, container, image)
    cause = _cause(container, events)
    rule = CAUSES[cause or "unknown"]
    missing = _missing_secrets(snapshot, container)
    field, value = _place(ref, container, cause, image, missing)
    field = INJECTED_BY if ref.kind == KIND else field
    facts = {
        "container": container.name,
        "pod": container.pod.name,
        "image": image,
        "cause": cause,
        "secret": missing,
    }
    facts = {**facts, **_before(snapshot, container, image), **rollout_facts(snapshot, ref)}
    secret = f", and its pull secret {missing} does not exist" if missing else ""
    whose = ", which stands in no template and was injected into the pod," if injected else ""
    said = f"image {image} of container {container.name}{whose} cannot be pulled: {rule.says}{secret}"
    summary = f"{ref.display}: {said}"
    return Finding(
        category="ImagePullFailing",
        object=ref,
        field=field,
        value=limited(value),
        summary=summary,
        confidence=rule.confidence,
        citations=_citations(snapshot, container, image, events, missing),
        explains=(str(container.waiting.get("reason")),),
        felt_by=(workload_of(snapshot, container.pod),),
        facts=facts,
        refuted_by=(rule.refuted,),
        actions=() if injected else possible(snapshot, rule.actions, facts, ref, field),
    )


def _who_changes(snapshot: Snapshot, container: Container) -> TargetRef:
    """No field of the workload holds a container that a webhook put into its pods."""
    return injector(snapshot, container.pod) or container.pod.ref


def _place(ref: TargetRef, container: Container, cause: str, image: str, missing: str) -> tuple[str, str]:
    """The image, unless it is about with whose word it is pulled, or whether at all."""
    if cause == "neverPull":
        return container_field(ref, container, "imagePullPolicy"), "Never"
    secrets = [str(each.get("name")) for each in container.pod.spec.get("imagePullSecrets") or ()]
    if missing or (cause == "unauthorized" and secrets):
        return pod_field(ref, "imagePullSecrets"), missing or ", ".join(secrets)
    return container_field(ref, container, "image"), image


def _missing_secrets(snapshot: Snapshot, container: Container) -> str:
    """Pull secrets that the kubelet does not find."""
    for event in events_on(snapshot, container.pod, "FailedToRetrieveImagePullSecret", recent=False):
        if match := _SECRETS.search(message_of(event)):
            return match["names"]
    return ""


def _before(snapshot: Snapshot, container: Container, image: str) -> dict[str, str]:
    """The image of a running pod of the same workload: what works."""
    owner = workload_of(snapshot, container.pod)
    for other in every_container(snapshot):
        same = other.name == container.name and other.pod.name != container.pod.name and other.is_running
        found = str(other.spec.get("image") or "")
        if same and found != image and workload_of(snapshot, other.pod) == owner:
            return {"runningImage": found}
    return {}


def _failures(snapshot: Snapshot, container: Container, image: str) -> list[ObservedObject]:
    events = events_on(snapshot, container.pod, "Failed", recent=False)
    return [event for event in events if image in str(event.object.get("message"))]


def _cause(container: Container, events: list[ObservedObject]) -> str:
    """The status says it in newer versions, the events in all."""
    by_reason = _BY_REASON.get(str(container.waiting.get("reason")))
    if by_reason:
        return by_reason
    texts = [str(container.waiting.get("message") or ""), *(str(event.object.get("message")) for event in events)]
    return next((cause for text in texts if (cause := _cause_in(text, container))), "")


def _cause_in(text: str, container: Container) -> str:
    """The image's own name may hold such words."""
    said = text.replace(str(container.spec.get("image")), "")
    return next((kind for kind, rule in CAUSES.items() if rule.pattern.search(said)), "")


def _citations(
    snapshot: Snapshot, container: Container, image: str, events: list[ObservedObject], missing: str
) -> tuple[Citation, ...]:
    quotes = (f'"reason":"{container.waiting.get("reason")}"', f'"image":"{image}"')
    events = events[:1]
    if missing:
        events += events_on(snapshot, container.pod, "FailedToRetrieveImagePullSecret", recent=False)[:1]
    said = [cite_event(snapshot, event) for event in events]
    return (*cited(snapshot, container.pod.evidence, *quotes), *(each for group in said for each in group))
