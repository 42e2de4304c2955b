"""One hash chain for each correlation id: what is hashed, byte for byte, and how it is checked. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from inquest.datastorage.wire.audit_events import StoredEvent
from inquest.datastorage.wire.types import instant_text

_ESCAPED = re.compile('[\\x00-\\x1f"\\\\<>&\u2028\u2029]')
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

NO_LEGAL_HOLD: Final[Mapping[str, object]] = {
    "legal_hold": False,
    "legal_hold_reason": "",
    "legal_hold_placed_by": "",
    "legal_hold_placed_at": None,
}
"""Members of every event on the wire and in its hash; this service places no holds."""


@dataclass(frozen=True)
class ChainedEvent:
    """A stored event with the two hashes stored beside it."""

    event: StoredEvent
    event_hash: str
    previous_hash: str
    derived: Mapping[str, str | None] | None = None
    """The columns that history asks by, as stored; None where only the event itself was kept."""


@dataclass(frozen=True)
class BrokenLink:
    """A link that does not hold."""

    link: ChainedEvent
    expected_hash: str
    message: str


class ChainVerifier:
    """Chains that are read together, each in the order of appending."""

    def __init__(self) -> None:
        self.heads: dict[str, str] = {}
        """Last stored hash by correlation id."""
        self.events = 0

    def add(self, link: ChainedEvent) -> BrokenLink | None:
        """Go on from the stored hash, so that one altered event is one finding, and one that was put in is another."""
        name = link.event.correlation_id
        before = self.heads.get(name, "")
        self.heads[name] = link.event_hash or before
        self.events += 1
        if not link.event_hash:
            return BrokenLink(link, next_hash(before, link.event), "event carries no hash")
        if link.previous_hash != before:
            return BrokenLink(link, next_hash(before, link.event), "previous hash does not name the stored predecessor")
        expected = next_hash(link.previous_hash, link.event)
        if link.event_hash != expected:
            return BrokenLink(link, expected, "event hash does not match the stored event")
        if not isinstance(link.event.event_data, Mapping):
            return BrokenLink(link, expected, "its payload is no object")
        if link.derived is not None and link.derived != link.event.derived:
            return BrokenLink(link, expected, "what history asks by does not follow from the stored event")
        return None


def next_hash(previous: str, event: StoredEvent) -> str:
    """SHA-256 over the previous hash (empty for the first event) and the event's text."""
    return hashlib.sha256((previous + event_text(event)).encode()).hexdigest()


def find_broken_links(links: Iterable[ChainedEvent]) -> list[BrokenLink]:
    """What does not hold in the chains of these links, in their order."""
    book = ChainVerifier()
    return [finding for link in links if (finding := book.add(link))]


def event_text(event: StoredEvent) -> str:
    """`json(event)`: exactly these members in exactly this order; empty ones are left out where the rule says so."""
    members: dict[str, Any] = {
        "event_id": event.event_id,
        "event_timestamp": instant_text(event.event_timestamp),
        "event_date": None,
        "event_type": event.event_type,
        "version": event.version,
        "event_category": event.event_category,
        "event_action": event.event_action,
        "event_outcome": event.event_outcome,
        "correlation_id": event.correlation_id,
        "parent_event_id": event.parent_event_id,
        "parent_event_date": None,
        **_filled(event),
        "retention_days": event.retention_days,
        "is_sensitive": event.is_sensitive,
        "event_hash": "",
        "previous_event_hash": "",
        **NO_LEGAL_HOLD,
        "event_data": event.event_data,
    }
    return "{" + ",".join(f"{_string(name)}:{canonical(value)}" for name, value in members.items()) + "}"


def _filled(event: StoredEvent) -> dict[str, Any]:
    optional = (
        "resource_type",
        "resource_id",
        "namespace",
        "cluster_name",
        "severity",
        "duration_ms",
        "error_code",
        "error_message",
        "actor_id",
        "actor_type",
    )
    return {name: value for name in optional if (value := getattr(event, name))}


def canonical(value: object) -> str:
    """JSON as Go's encoder writes it, keys of every object in the order of their UTF-8 bytes."""
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: str(key).encode())
        return "{" + ",".join(f"{_string(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _number(float(value)) if isinstance(value, int | float) else _string(str(value))


def _number(number: float) -> str:
    """Shortest digits; plain from 1e-6 up to 1e21. Zero has no sign, since PostgreSQL's JSON keeps none."""
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    return re.sub(r"e([+-])0*", r"e\1", repr(number)).replace(".0e", "e")


def _string(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _SHORT_ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text) + '"'
