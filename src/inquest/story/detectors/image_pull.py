"""An image that cannot be pulled, and why as far as the runtime says: not found, refused, unreachable, a bad name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from inquest.story.detectors.reading import (
    Container,
    cited,
    container_field,
    containers,
    culprit,
    events_about,
    limited,
    rollout_facts,
    strongest,
)
from inquest.story.evidence import Citation, Finding, Observed, Snapshot

NAME: Final = "image_pull"
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
_BY_MESSAGE: Final = (
    ("rateLimited", re.compile(r"toomanyrequests|\b429\b|rate limit", re.IGNORECASE)),
    (
        "unauthorized",
        re.compile(
            r"unauthorized|denied|forbidden|\b40[13]\b|authentication required|no basic auth|may require", re.IGNORECASE
        ),
    ),
    (
        "unreachable",
        re.compile(
            r"no such host|timeout|timed out|connection re(?:fused|set)|dial tcp|x509|tls:|deadline exceeded"
            r"|server misbehaving|\b50[0-4]\b",
            re.IGNORECASE,
        ),
    ),
    ("notFound", re.compile(r"not found|manifest unknown|does not exist|no match for platform", re.IGNORECASE)),
)
"""In this order: a registry that hides what it refuses says both "does not exist" and "may require authorization"."""
_WORDS: Final = {
    "notFound": "the registry does not have it",
    "unauthorized": "the registry refuses it to these credentials",
    "unreachable": "the registry cannot be reached",
    "rateLimited": "the registry limits the rate",
    "neverPull": "it is not on the node and the pull policy is Never",
    "invalidName": "its name is invalid",
    "": "the runtime does not say why",
}
_CONFIDENCE: Final = {"": 0.8, "unreachable": 0.8, "rateLimited": 0.85}


def image_pull(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each container of a workload that waits for its image."""
    return strongest(_findings(snapshot))


def _findings(snapshot: Snapshot) -> Iterator[Finding]:
    for container in containers(snapshot):
        if container.waiting.get("reason") in REASONS:
            yield _finding(snapshot, container)


def _finding(snapshot: Snapshot, container: Container) -> Finding:
    ref = culprit(snapshot, container.pod)
    image = str(container.spec.get("image") or container.status.get("image") or "")
    events = _failures(snapshot, container, image)
    cause = _cause(container, events)
    rollout = rollout_facts(snapshot)
    return Finding(
        detector=NAME,
        category="ImagePullFailing",
        object=ref,
        field=container_field(ref, container, "image"),
        value=limited(image),
        summary=f"{ref.display}: image {image} of container {container.name} cannot be pulled: {_WORDS[cause]}"[:500],
        confidence=_CONFIDENCE.get(cause, 0.95),
        citations=_citations(snapshot, container, image, events),
        explains=(str(container.waiting.get("reason")),),
        facts={"container": container.name, "pod": container.pod.name, "image": image, "cause": cause, **rollout},
    )


def _failures(snapshot: Snapshot, container: Container, image: str) -> list[Observed]:
    events = events_about(snapshot, container.pod, "Failed")
    return [event for event in events if image in str(event.object.get("message"))]


def _cause(container: Container, events: list[Observed]) -> str:
    """The status says it in newer versions, the events in all."""
    by_reason = _BY_REASON.get(str(container.waiting.get("reason")))
    if by_reason:
        return by_reason
    texts = [str(container.waiting.get("message") or ""), *(str(event.object.get("message")) for event in events)]
    return next((cause for text in texts if (cause := _cause_in(text, container))), "")


def _cause_in(text: str, container: Container) -> str:
    """The image's own name may hold such words."""
    said = text.replace(str(container.spec.get("image")), "")
    return next((cause for cause, pattern in _BY_MESSAGE if pattern.search(said)), "")


def _citations(snapshot: Snapshot, container: Container, image: str, events: list[Observed]) -> tuple[Citation, ...]:
    quotes = (f'"reason":"{container.waiting.get("reason")}"', f'"image":"{image}"')
    said = [cited(snapshot, event.evidence, str(event.object.get("message"))) for event in events[:1]]
    return (*cited(snapshot, container.pod.evidence, *quotes), *(each for group in said for each in group))
