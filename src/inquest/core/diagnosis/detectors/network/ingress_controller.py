"""The controller of the target's Ingress, which serves every namespace, does not do what its Ingresses say.

Two faults are told by its own words: it cannot load its configuration, so that nothing changes any more, and it waits
for a PROXY header that nobody sends. Its log is data: the object that is blamed has to hold the word that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.ingress import carrier_logs, complained_words, holds_word, settings_named
from inquest.core.diagnosis.detectors.citations import cite, cited, limited, named_quote, quoted
from inquest.core.diagnosis.detectors.workloads import workload_of
from inquest.core.evidence.evidence import Citation, Finding, ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

OFTEN: Final = 3
"""Connections without the header: one is a port scan."""
_REFUSED: Final = re.compile(
    r"failure reloading the backend|error reloading|\[emerg\]|configuration file \S+ test failed", re.I
)
_LOADED: Final = re.compile(r"backend successfully reloaded|configuration reload(?:ed)? success", re.IGNORECASE)
_HEADLESS: Final = re.compile(r"broken header: .{0,200}while reading PROXY protocol", re.IGNORECASE)
_TELLING: Final = re.compile(r"\[emerg\]")


def ingress_controller(snapshot: Snapshot) -> Iterable[Finding]:
    """One finding for each controller that says what keeps it from its work."""
    for log in carrier_logs(snapshot):
        pod = snapshot.at("Pod", log.namespace, log.pod)
        if pod is not None:
            yield from _reload_refused(snapshot, pod, log)
            yield from _no_header(snapshot, pod, log)


# --- a configuration that is not loaded -----------------------------------------------------------------------------


def _reload_refused(snapshot: Snapshot, pod: ObservedObject, log: LogTail) -> Iterator[Finding]:
    lines = [line for line in log.text.splitlines() if _REFUSED.search(line) or _LOADED.search(line)]
    if not lines or _LOADED.search(lines[-1]):
        return
    said = next((line for line in reversed(lines) if _TELLING.search(line)), lines[-1]).strip()
    told = cited(snapshot, log.evidence, said)
    holders = [*_holders(snapshot, complained_words(said))]
    # The word in two places: either may be the one that is refused, so that nobody's Ingress is blamed.
    if len(holders) == 1:
        ingress, field, value = holders[0]
        quotes = (*cite(snapshot, ingress), *told)
        yield _finding(ingress.ref, field, value, f"it keeps the controller from loading: {said}", 0.9, quotes)
    else:
        quotes = (*cite(snapshot, pod), *told)
        owner = workload_of(snapshot, pod)
        yield _finding(owner, "log", said, f"it cannot load its configuration: {said}", 0.8, quotes)


def _holders(snapshot: Snapshot, words: tuple[str, ...]) -> Iterator[tuple[ObservedObject, str, str]]:
    for ingress in snapshot.of_kind("Ingress") if words else ():
        for key, value in ingress.annotations.items():
            if holds_word(value, words):
                yield ingress, f"metadata.annotations[{key}]", value


def _finding(
    ref: TargetRef, field: str, value: str, why: str, confidence: float, citations: tuple[Citation, ...]
) -> Finding:
    return Finding(
        category="ConfigReloadFailing",
        object=ref,
        field=field,
        value=limited(value.strip()),
        summary=f"{ref.display}: {why}",
        confidence=confidence,
        citations=citations,
        explains=("changes of Ingresses of this class have no effect",),
        facts={"cause": "reloadRefused"},
        refuted_by=("A later line in which the controller says that it has loaded its configuration.",),
        actions=("PatchConfiguration",),
    )


# --- a header that one side does not send ---------------------------------------------------------------------


def _no_header(snapshot: Snapshot, pod: ObservedObject, log: LogTail) -> Iterator[Finding]:
    lines = [line for line in log.text.splitlines() if line.strip()]
    headless = [line for line in lines if _HEADLESS.search(line)]
    if len(headless) < OFTEN or 2 * len(headless) < len(lines):
        return
    told = cited(snapshot, log.evidence, headless[-1].strip())
    asking = next((found for found in _settings(snapshot, pod) if _asks(found)), None)
    seen, field, value = (asking, "data[use-proxy-protocol]", "true") if asking else (pod, "log", headless[-1].strip())
    ref = asking.ref if asking else workload_of(snapshot, pod)
    quotes = cite(snapshot, seen, quoted("use-proxy-protocol", "true") if asking else "", named_quote(seen))
    yield Finding(
        category="ProtocolMismatch",
        object=ref,
        field=field,
        value=limited(value),
        summary=f"{ref.display}: the controller waits for a PROXY header that what stands before it does not send, "
        f"and refuses every connection: {headless[-1].strip()}",
        confidence=0.9 if asking else 0.75,
        citations=(*quotes, *told),
        explains=("requests to Ingresses of this class fail",),
        facts={"cause": "proxyProtocol"},
        refuted_by=("A connection through the load balancer that the controller takes.",),
        actions=("PatchConfiguration",),
    )


def _settings(snapshot: Snapshot, pod: ObservedObject) -> Iterator[ObservedObject]:
    found = (snapshot.at("ConfigMap", *step) for step in settings_named(pod.object))
    return (seen for seen in found if seen is not None)


def _asks(settings: ObservedObject) -> bool:
    return str(settings.data.get("use-proxy-protocol")).lower() == "true"
