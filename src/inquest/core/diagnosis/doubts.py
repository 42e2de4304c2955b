"""Why a target with nothing wrong in its objects is still not called healthy.

Healthy has to hold for the object and for what the Signal says. Three things speak against it that no object shows: the
target's own newest words are errors; the Signal speaks of requests, and what carries them to the target was not
read or is in trouble itself; or it speaks of a figure, which the Kubernetes API does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from inquest.core.cluster.ingress import CARRIER, carrier_entries, carrier_logs
from inquest.core.cluster.relations import backends_of, is_selected, routes_to
from inquest.core.evidence.evidence import ObservedObject
from inquest.core.evidence.snapshot import LogTail, Snapshot

ROUTES: Final = "cluster routes"
"""First words of the listings of Gateway routes."""
_WAYS: Final = (CARRIER, ROUTES, "ingresses", "cluster ingress classes")
NEWEST: Final = 20
"""Lines from the end of a log that say how it is now."""
LEAST: Final = 2
"""Lines that have to tell of errors: one is an incident of its own, but for a program that ended with it."""
STALE: Final = timedelta(hours=1)
"""Before the trouble: a line with an older time is not about it."""
MAX_LINE: Final = 600

_ERROR: Final = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)\b|^[EF]\d{4} \d\d:|\[(?:error|crit|alert|emerg)\]"
    r"|(?i:\b(?:level|lvl|severity)\"?\s?[=:]\s?\"?(?:error|fatal|critical|panic)\b)"
)
_COMPLAINT: Final = re.compile(
    r"\b(?:failed to|fails?|failure|refused|timed? ?out|unable to|can(?:no|')t|could not|denied|unavailable|unreachable"
    r"|no route|no such host|deadlock|waiting (?:for|on) (?:\w+ ){0,3}lock)\b",
    re.IGNORECASE,
)
"""Words of trouble where no level says so."""
_NONE: Final = re.compile(
    r"\b(?:0|no|without) (?:errors?|failures?|failed)\b|\b(?:errors?|fail(?:ed|ures?))[=: ]+0\b", re.IGNORECASE
)
_STAMP: Final = re.compile(r"^\W{0,2}(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)")
_CONTINUED: Final = re.compile(r"^(?:\s|at |Caused by|\.\.\.)")


def find_doubts(snapshot: Snapshot, pods: Collection[ObservedObject]) -> tuple[str, ...]:
    """Sentences; `pods` are those of the target. Empty where nothing speaks against health."""
    return (
        *_of_words(snapshot, pods),
        *_of_routes(snapshot, pods),
        *(_of_ways(snapshot, pods) if snapshot.about_requests else ()),
        *(("the Signal speaks of a figure that no object shows",) if snapshot.about_measures else ()),
    )


# --- what the target says -----------------------------------------------------------------------------------


def _of_words(snapshot: Snapshot, pods: Collection[ObservedObject]) -> Iterator[str]:
    ended = {(pod.namespace, pod.name): pod.status.get("phase") in ("Succeeded", "Failed") for pod in pods}
    for log in snapshot.logs:
        place = (log.namespace, log.pod)
        if place in ended and not log.previous and tells_of_errors(snapshot, log, 1 if ended[place] else LEAST):
            yield f"the newest lines of Pod/{log.pod}, container {log.container}, mostly complain"


def tells_of_errors(snapshot: Snapshot, log: LogTail, least: int = LEAST) -> bool:
    """Whether at least half of the newest lines complain; what is older than the trouble does not count."""
    begin = (snapshot.since or snapshot.taken_at) - STALE
    spoken = [line for line in log.text.splitlines() if line.strip() and not _CONTINUED.match(line)][-NEWEST:]
    errors = [line for line in spoken if _complains(line[:MAX_LINE]) and not _is_older(line, begin)]
    return len(errors) >= least and 2 * len(errors) >= len(spoken)


def complaint_in(log: LogTail) -> str:
    """The last of its newest lines that complains; empty where none does."""
    newest = [line for line in log.text.splitlines() if line.strip()][-NEWEST:]
    return next((line for line in reversed(newest) if _complains(line[:MAX_LINE])), "")


def _complains(line: str) -> bool:
    return bool(_ERROR.search(line) or (_COMPLAINT.search(line) and not _NONE.search(line)))


def _is_older(line: str, begin: datetime) -> bool:
    """A line without a readable time is as new as its place says."""
    stamp = _STAMP.match(line)
    try:
        return stamp is not None and datetime(*map(int, stamp.groups()), tzinfo=UTC) < begin  # type: ignore[arg-type,misc]
    except ValueError:
        return False


# --- what carries requests to it --------------------------------------------------------------------------------


def _of_routes(snapshot: Snapshot, pods: Collection[ObservedObject]) -> Iterator[str]:
    """Gateway routes say themselves that a gateway does not take them up, or cannot reach what they name."""
    for route in snapshot.of_kind("HTTPRoute", "GRPCRoute"):
        if leads_to(snapshot, route, pods) and (word := next(_refusals(route), "")):
            yield f"{route.kind}/{route.name}, which leads to it, is refused: {word}"


def _refusals(route: ObservedObject) -> Iterator[str]:
    for parent in route.status.get("parents") or ():
        for each in parent.get("conditions") or ():
            if each.get("type") in ("Accepted", "ResolvedRefs") and each.get("status") == "False":
                yield f"{each['type']} is False ({each.get('reason', 'no reason')})"


def _of_ways(snapshot: Snapshot, pods: Collection[ObservedObject]) -> Iterator[str]:
    unread = (what for what in (*(gap.what for gap in snapshot.gaps), *snapshot.cut) if what.startswith(_WAYS))
    yield from (f"requests may come by a way that was not read: {what}" for what in dict.fromkeys(unread))
    # Ingresses that lead to the target, or are it.
    ways = [seen for seen in snapshot.of_kind("Ingress") if leads_to(snapshot, seen, pods)]
    said = carrier_logs(snapshot)
    if ways and not said:
        yield f"what its controller does with Ingress/{ways[0].name} was not read"
    if ways and any(tells_of_errors(snapshot, log) for log in said):
        yield f"the controller of Ingress/{ways[0].name} tells of errors"
    if ways and _is_warned_about(snapshot):
        yield f"warnings are about the controller of Ingress/{ways[0].name}"


def _is_warned_about(snapshot: Snapshot) -> bool:
    entries = carrier_entries(snapshot)
    events = (seen for seen in snapshot.of_kind("Event") if seen.evidence in entries)
    return any(seen.object.get("type") == "Warning" for seen in events)


def leads_to(snapshot: Snapshot, way: ObservedObject, pods: Collection[ObservedObject]) -> bool:
    """Whether an Ingress or a Gateway route is the target or sends to a Service of it."""
    target = snapshot.target
    if (way.kind, way.name, way.namespace) == (target.kind, target.name, target.namespace or ""):
        return True
    if way.kind == "Ingress":
        steps = tuple((way.namespace, name) for name in backends_of(way.object))
    else:
        steps = routes_to(way.object)
    if target.kind == "Service" and (target.namespace or "", target.name) in steps:
        return True
    services = [seen for step in steps if (seen := snapshot.at("Service", *step))]
    return any(is_selected(pod.object, service.object) for service in services for pod in pods)
