"""From the words people and models use to the kinds that the cluster serves.

Read from the aggregated discovery documents, kept until a word is unknown, then read once more: a kind may have come
since. Several versions of one group are no ambiguity, several groups are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from inquest.adapters.kubernetes.transport import Request, Transport
from inquest.errors import AmbiguousKind, NeverRead, UnknownKind
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Json, ResourceKind

ACCEPT: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
LEAST_AGE: Final = 10.0
"""Seconds between two readings, so that invented words cost nothing."""
VIEWS: Final = frozenset({"events.k8s.io", "metrics.k8s.io"})
"""Groups that show core objects again: the core group is meant unless they are named."""
SECRET_WORDS: Final = frozenset({"secret", "secrets"})
SECRET_HINT: Final = (
    "Secrets are never read here, their names neither; a missing or wrong one shows in the pod's events and "
    "container statuses"
)


@dataclass(frozen=True)
class ServedResource:
    """One resource of one group version, with the words that mean it."""

    kind: ResourceKind
    singular: str
    short: frozenset[str]

    def rank(self, word: str) -> int:
        """How well a word fits: the kind's name before its plural or singular, those before a short name; 0: not."""
        if word == self.kind.kind.lower():
            return 3
        if word in (self.kind.plural, self.singular):
            return 2
        return 1 if word in self.short else 0


def refuse_secrets(word: str) -> None:
    """Refuse every spelling of Secrets before a request is made."""
    pieces = re.split(r"[,/\s]+", word.strip().lower())
    if any(piece.split(".")[0] in SECRET_WORDS for piece in pieces):
        raise NeverRead(SECRET_HINT)


def pick_kind(served: Iterable[ServedResource], word: str, api_version: str = "") -> ResourceKind:
    """The one kind of these that a word means; UnknownKind or AmbiguousKind otherwise."""
    return _only(_matches(served, *_split(word, api_version)), word, api_version)


class Discovery:
    """The kinds of the cluster."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._served: tuple[ServedResource, ...] = ()
        self._read_at: float | None = None

    async def resolve(self, word: str, api_version: str = "") -> ResourceKind:
        """The one kind that a word means; UnknownKind or AmbiguousKind otherwise."""
        name, wanted = _split(word, api_version)
        if self._read_at is None:
            await self._read()
        found = _matches(self._served, name, wanted)
        if not found and (self._read_at is None or self._clock.monotonic() - self._read_at >= LEAST_AGE):
            await self._read()
            found = _matches(self._served, name, wanted)
        return _only(found, word, api_version)

    async def _read(self) -> None:
        documents = [await self._document(path) for path in ("/api", "/apis")]
        self._served = tuple(served for document in documents for served in _served(document))
        self._read_at = self._clock.monotonic()

    async def _document(self, path: str) -> Json:
        return (await self._transport.send(Request("GET", path, "discover", "kinds", accept=ACCEPT))).json()

    async def plurals(self, group: str, version: str) -> frozenset[str]:
        """What a group version serves right now, never from the cache; empty where it is not served."""
        try:
            reply = await self._transport.send(Request("GET", f"/apis/{group}/{version}", "discover", "kinds"))
        except UnknownKind:
            return frozenset()
        return frozenset(str(resource["name"]) for resource in reply.json().get("resources", ()))


@dataclass(frozen=True)
class _Wanted:
    """What was said of the group: None is nothing, the empty text is the core group."""

    group: str | None = None
    version: str = ""

    def accepts(self, kind: ResourceKind) -> bool:
        return self.group in (None, kind.group) and self.version in ("", kind.version)


def _split(word: str, api_version: str) -> tuple[str, _Wanted]:
    """`deployments`, `deployment.v1.apps`, `apps/v1/Deployment`, or a word beside its api_version."""
    before, _, name = word.strip().rpartition("/")
    name, _, after = name.lower().partition(".")
    if wanted := _wanted(api_version.strip() or before):
        return name, wanted
    version, _, group = after.partition(".")
    if _is_version(version):
        return name, _Wanted(group, version)
    return name, _Wanted(after or None)


def _wanted(api_version: str) -> _Wanted | None:
    if not api_version:
        return None
    group, slash, version = api_version.lower().rpartition("/")
    if slash:
        return _Wanted("" if group == "core" else group, version)
    if _is_version(version):
        return _Wanted("", version)
    return _Wanted("" if version == "core" else version)


def _is_version(text: str) -> bool:
    return re.fullmatch(r"v\d+((alpha|beta)\d+)?", text) is not None


def _matches(served: Iterable[ServedResource], name: str, wanted: _Wanted) -> list[ResourceKind]:
    """The best fits, one for each group: the first version of a group is the one it prefers."""
    fits = [(one.rank(name), one.kind) for one in served if wanted.accepts(one.kind)]
    best = max((rank for rank, _ in fits), default=0)
    found: dict[str, ResourceKind] = {}
    for rank, kind in fits:
        if rank and rank == best:
            found.setdefault(kind.group, kind)
    return [kind for group, kind in found.items() if "" not in found or group not in VIEWS]


def _only(found: list[ResourceKind], word: str, api_version: str) -> ResourceKind:
    if not found:
        where = f" in {api_version}" if api_version else ""
        raise UnknownKind(f"the cluster serves no kind {word!r}{where}")
    if len(found) > 1:
        raise AmbiguousKind(found[0].kind, tuple(sorted(kind.api_version for kind in found)))
    return found[0]


def _served(document: Json) -> Iterable[ServedResource]:
    for item in document.get("items", ()):
        group = str(item.get("metadata", {}).get("name", ""))
        for version in item.get("versions", ()):
            for resource in version.get("resources", ()):
                yield _one(group, str(version["version"]), resource)


def _one(group: str, version: str, resource: dict[str, Any]) -> ServedResource:
    kind = str(resource.get("responseKind", {}).get("kind", ""))
    plural = str(resource["resource"])
    return ServedResource(
        ResourceKind(group, version, kind, plural, resource.get("scope") == "Namespaced"),
        str(resource.get("singularResource") or kind.lower()),
        frozenset(resource.get("shortNames") or ()),
    )
