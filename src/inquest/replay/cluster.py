"""`ports.Cluster` over a recorded case: what was not recorded is a gap, never an empty answer.

Reads pass a recorded failure on as the API server gave it. Secrets are refused as on a live cluster.
"""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from inquest.adapters.kubernetes.discovery import pick_kind, refuse_secrets
from inquest.core.cluster.objects import spec_of
from inquest.errors import Forbidden, InquestError, NotFound, NotRecorded, Unavailable, UnknownKind
from inquest.ports.kubernetes import Json, Listing, ResourceKind
from inquest.replay import selectors
from inquest.replay.case import LogPlace, MissedRead, RecordedCase, WholeListing, names_kind, one_group
from inquest.replay.kinds import plural_of

PARTIAL: Final = "Partial"
LISTS: Final = frozenset({"", "list", "watch"})
GETS: Final = frozenset({"", "get"})
LOGS: Final = frozenset({"", "log", "logs", "get"})
_CRDS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
_FIGURES: Final = "metrics.k8s.io"
_API_SERVICES: Final = ("apiregistration.k8s.io", "apiservices")
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ?")
_NANOSECONDS: Final = re.compile(r"\.\d{7,9}(Z|[+-])")


class RecordedCluster:
    """Reads of one case; `reads` counts those that were answered, failures included."""

    def __init__(self, case: RecordedCase) -> None:
        self._case = case
        self._objects: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for found in case.objects:
            self._objects[str(found["apiVersion"]).rpartition("/")[0], str(found["kind"])].append(found)
        self._everywhere = self._namespaces()
        self.reads = 0

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        """As discovery would say; NotRecorded where nothing proves that the cluster does not serve it."""
        refuse_secrets(word)
        try:
            kind = pick_kind(self._case.kinds, word, api_version)
        except UnknownKind:
            kind = self._listed_kind(word, api_version)
        refuse_secrets(kind.kind)
        return kind

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        self.reads += 1
        place = namespace if kind.namespaced else ""
        found = next((one for one in self._of(kind) if _is(one, name, place)), None)
        if found is not None:
            return found
        what = f"{kind.plural} {name!r}" + (f" in {place}" if place else "")
        missed = self._gap(GETS, kind, place, name)
        if missed is not None and missed.reason != PARTIAL:
            raise _failure(missed, what)
        partial = missed is not None or self._is_partial(kind, place)
        if not partial and self._is_whole(kind.group, kind.plural, place):
            raise NotFound(f'{kind.plural} "{name}" not found')
        raise NotRecorded(f"{what} is not in the recorded case")

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Listing:
        self.reads += 1
        place = namespace if kind.namespaced else ""
        name = kind.kind if kind.group == _FIGURES else kind.plural
        what = f"list of {name}" + (f" in {place}" if place else "")
        missed = self._gap(LISTS, kind, place, "")
        if missed is not None and missed.reason != PARTIAL:
            raise _failure(missed, what)
        whole = missed is None and self._is_whole(kind.group, kind.plural, place)
        there = [one for one in self._of(kind) if not place or one["metadata"].get("namespace") == place]
        # Figures were printed for a person, who does not say of whom there were none: they prove what they show.
        shown = kind.group == _FIGURES and bool(there)
        if missed is None and not whole and not shown:
            raise NotRecorded(f"{what} is not in the recorded case")
        fits, suits = selectors.by_labels(labels), selectors.by_fields(fields, kind.kind)
        items = [one for one in there if fits(one) and suits(one)]
        return Listing(tuple(items[:limit]), whole and len(items) <= limit)

    async def logs(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail_lines: int = 500,
        since_seconds: int | None = None,
        limit_bytes: int = 1_048_576,
    ) -> str:
        self.reads += 1
        log = self._case.logs.get(LogPlace(namespace, pod, container, previous))
        if log is None:
            raise self._no_log(namespace, pod, container, previous)
        lines = log.splitlines()
        if since_seconds:
            lines = _since(lines, self._case.taken_at - timedelta(seconds=since_seconds))
        text = "".join(f"{line}\n" for line in _unstamped(lines)[-tail_lines:])
        return text.encode()[:limit_bytes].decode("utf-8", "ignore")

    # --- what is there, and what that proves

    def _of(self, kind: ResourceKind) -> tuple[Json, ...]:
        return tuple(self._objects.get((one_group(kind.group, kind.plural), kind.kind), ()))

    def _is_whole(self, group: str, plural: str, namespace: str) -> bool:
        group = one_group(group, plural)
        return any(_covers(whole, group, plural, namespace, self._everywhere) for whole in self._case.whole)

    def _namespaces(self) -> frozenset[str] | None:
        """All of the cluster; None where that is not known."""
        known = any((whole.group, whole.plural) == ("", "namespaces") for whole in self._case.whole)
        return frozenset(one["metadata"]["name"] for one in self._objects["", "Namespace"]) if known else None

    def _gap(self, verbs: frozenset[str], kind: ResourceKind, namespace: str, name: str) -> MissedRead | None:
        """The recorded failure of this read; one that names no object is about all of them."""
        for missed in self._case.missed:
            same_place = missed.namespace in ("", namespace)
            same_name = missed.name in ("", name)
            if missed.verb in verbs and names_kind(missed, kind) and same_place and same_name:
                return missed
        return None

    def _is_partial(self, kind: ResourceKind, namespace: str) -> bool:
        missed = self._gap(LISTS, kind, namespace, "")
        return missed is not None and missed.reason == PARTIAL

    def _no_log(self, namespace: str, pod: str, container: str, previous: bool) -> InquestError:
        run = "previous log" if previous else "log"
        what = f"{run} of {namespace}/{pod}/{container}"
        for missed in self._case.missed:
            about = missed.kind.partition("/")[0] in ("", "pod", "pods", "log", "logs")
            is_log = missed.verb in LOGS - {"", "get"} or missed.kind.endswith("/log")
            here = missed.namespace in ("", namespace) and missed.name in ("", pod, f"{pod}/{container}")
            if about and is_log and here and missed.reason != PARTIAL:
                return _failure(missed, what)
        return NotRecorded(f"{what} is not in the recorded case")

    def _listed_kind(self, word: str, api_version: str) -> ResourceKind:
        """A kind of which nothing is there: listed and empty, proven not to be served, or simply not recorded."""
        for whole in self._case.whole:
            if api_version and api_version.rpartition("/")[0] != whole.group:
                continue
            if word.lower() in (whole.plural, f"{whole.plural}.{whole.group}") or plural_of(word) == whole.plural:
                version = api_version.rpartition("/")[2] or "v1"
                return ResourceKind(whole.group, version, word, whole.plural, bool(whole.namespaces))
        if self._proves_unserved(api_version.rpartition("/")[0]):
            raise UnknownKind(f"the cluster serves no kind {word!r}" + (f" in {api_version}" if api_version else ""))
        raise NotRecorded(f"whether the cluster serves {word} is not in the recorded case")

    def _proves_unserved(self, group: str) -> bool:
        """Definitions say it of custom kinds, API services of groups that another server answers for."""
        if not self._is_whole(*_API_SERVICES, ""):
            return self._is_whole(*_CRDS, "") and group != "metrics.k8s.io"
        known = {spec_of(one).get("group", "") for one in self._objects[_API_SERVICES[0], "APIService"]}
        return (bool(group) and group not in known) or self._is_whole(*_CRDS, "")


def _is(found: Json, name: str, namespace: str) -> bool:
    metadata = found["metadata"]
    return metadata["name"] == name and str(metadata.get("namespace") or "") == namespace


def _covers(whole: WholeListing, group: str, plural: str, namespace: str, every: frozenset[str] | None) -> bool:
    if (whole.group, whole.plural) != (group, plural):
        return False
    if not whole.namespaces or namespace in whole.namespaces:
        return True
    return not namespace and every is not None and every <= whole.namespaces


def _failure(missed: MissedRead, what: str) -> InquestError:
    """The failure as it was recorded, in the class that the API server's answer would have had."""
    text = f"{what}: {missed.reason}, as recorded"
    if missed.reason in ("Forbidden", "Unauthorized"):
        return Forbidden(text)
    if missed.reason == "NotFound":
        return NotFound(text)
    if missed.reason == "NotRecorded":
        return NotRecorded(text)
    failed = Unavailable("kubernetes", text)
    failed.reason = missed.reason
    return failed


# --- logs ------------------------------------------------------------------------------------------------


def _since(lines: list[str], begin: datetime) -> list[str]:
    """Lines from then on, as far as they carry a time; one without goes with the line before it."""
    kept, wanted = [], True
    for line in lines:
        if hit := _STAMP.match(line):
            wanted = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", hit[1])) >= begin
        if wanted:
            kept.append(line)
    return kept


def _unstamped(lines: list[str]) -> list[str]:
    """Without the kubelet's own time stamps: the port answers without them, and only they have nanoseconds."""
    stamps = [_STAMP.match(line) for line in lines]
    if not lines or not all(stamps) or not any(hit and _NANOSECONDS.search(hit[1]) for hit in stamps):
        return lines
    return [line[hit.end() :] for line, hit in zip(lines, stamps, strict=True) if hit]
