"""What a Signal asks about, by its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from inquest.api.signal import SignalContent
from inquest.core.cluster.relations import controller_of, hosts_of
from inquest.core.evidence.snapshot import Snapshot

_REQUESTS: Final = re.compile(
    r"error ?rate|request|latenc|slow|\b[45]\d\d\b|\b[45]xx\b|time(?:d)?[ -]?out|reachable|connection (?:closed|reset|"
    r"refused)|https?[:_ ]|probe ?failed|bad gateway",
    re.IGNORECASE,
)


def speaks_of_requests(signal: SignalContent) -> bool:
    """Whether a Signal complains of requests that fail or are slow."""
    return _REQUESTS.search(_words(signal)) is not None


_MEASURES: Final = re.compile(
    r"throttl|filling ?up|saturat|\b(?:lag|backlog)\b|only \d[\d.]*\s?% free|almost out of|running out of"
    r"|(?:disk|memory|cpu|volume|heap|inode|queue|pool)s?[ _-]?(?:usage|utili[sz]ation|space)\b"
    r"|(?:high|low) (?:disk|memory|cpu|heap)\b",
    re.IGNORECASE,
)
_THROTTLES: Final = re.compile(r"throttl", re.IGNORECASE)


def speaks_of_measures(signal: SignalContent) -> bool:
    """Whether a Signal complains of a figure that the Kubernetes API does not tell."""
    return _MEASURES.search(_words(signal)) is not None


def speaks_of_throttling(signal: SignalContent) -> bool:
    """Whether a Signal says that something is held back by its CPU limit."""
    return _THROTTLES.search(_words(signal)) is not None


_WORD: Final = re.compile(r"[\w./-]+")
_NAME: Final = re.compile(r"(?<![\w.-])[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?![\w-])")


def names_in(signal: SignalContent) -> frozenset[str]:
    """What a Signal's words could name within its target's namespace: names of objects, and hosts.

    Its namespace's own name counts only where it is said of an object too: `shop/shop`.
    """
    words, home = _words(signal), signal.target.namespace or signal.target.name
    is_displayed = any(word.strip(".") == f"{home}/{home}" for word in _WORD.findall(words))
    return frozenset(_NAME.findall(words)) - (frozenset() if is_displayed else {home})


def _known_names(snapshot: Snapshot) -> Iterator[str]:
    for seen in snapshot.objects:
        yield seen.name
        yield str(controller_of(seen.object).get("name"))
        if seen.kind == "Ingress":
            yield from hosts_of(seen.object)


def about(snapshot: Snapshot, signal: SignalContent) -> Snapshot:
    """The snapshot with what the Signal asks."""
    return replace(
        snapshot,
        about_names=tuple(sorted(names_in(signal) & {*_known_names(snapshot)})),
        about_requests=speaks_of_requests(signal),
        about_measures=speaks_of_measures(signal),
        about_throttling=speaks_of_throttling(signal),
    )


def _words(signal: SignalContent) -> str:
    return " ".join((signal.name or "", signal.message or "", signal.description or ""))
