"""What a Signal asks about, by its words."""

from __future__ import annotations

import re
from typing import Final

from inquest.api.signal import SignalContent

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


def _words(signal: SignalContent) -> str:
    return " ".join((signal.name or "", signal.message or "", signal.description or ""))
