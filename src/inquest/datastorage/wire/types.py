"""Texts of the wire: instants, Go durations, and the words both sides agreed on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

SEVERITIES = ("critical", "high", "medium", "low")
PRIORITIES = ("P0", "P1", "P2", "P3")
CATEGORIES = (
    "gateway",
    "notification",
    "analysis",
    "aiagent",
    "signalprocessing",
    "workflow",
    "workflowexecution",
    "orchestration",
    "approval",
    "effectiveness",
    "actiontype",
)
OUTCOMES = ("success", "failure", "pending")
PLAIN_LIST_STATUSES = ("Active", "Disabled", "Deprecated", "Archived")
WILDCARD = "*"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_LONGEST_MICROSECONDS = 2**63 // 1000
"""Go counts nanoseconds in 64 bits; what does not fit there is no duration on the wire."""

_NOT_STORABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""NUL and halves of characters: no store takes them."""
DEEPEST = 100
"""Levels of nesting in a body; what is deeper is no event and no workflow."""
MOST_NAME = 253
MOST_VERSION = 100
"""Characters of what is compared by an index."""
MOST_KEY_BYTES = 512
"""Of a target and of a spec hash, which share an index with a correlation id; PostgreSQL takes some 2,700 together."""


def storage_fault(value: object, depth: int = 0) -> str:
    """Why a parsed body cannot be kept by every engine, as JSON and unchanged; empty when it can."""
    if depth > DEEPEST:
        return f"nested deeper than {DEEPEST} levels"
    match value:
        case str():
            return "a text holds a character that cannot be stored" if _NOT_STORABLE.search(value) else ""
        case dict():
            parts = (part for pair in value.items() for part in pair)
            named = all(isinstance(key, str) for key in value)
            return _first(parts, depth + 1) if named else "a key that is no text"
        case list():
            return _first(value, depth + 1)
        case float():
            return "" if math.isfinite(value) else "number is out of range"
        case None | bool() | int():
            return ""
        case _:
            return f"a value of the kind {type(value).__name__}"


def _first(values: Iterable[object], depth: int) -> str:
    return next((fault for value in values if (fault := storage_fault(value, depth))), "")


def text_in(found: Mapping[str, Any], name: str) -> str | None:
    """A member that is a text and not empty."""
    value = found.get(name)
    return value if isinstance(value, str) and value else None


def instant_from_text(text: str) -> datetime:
    """RFC 3339 with a zone, as UTC, cut to microseconds; ValueError for anything else."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 date-time: {text[:64]}")
    day, clock, fraction, zone = match.groups()
    cut = (fraction or "")[:6].ljust(6, "0")
    offset = "+00:00" if zone in "Zz" else zone
    try:
        return datetime.fromisoformat(f"{day}T{clock}.{cut}{offset}").astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"not within the years 1 to 9999 in UTC: {text[:64]}") from error


def instant_of(microseconds: int) -> datetime:
    """As they are counted since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def instant_text(instant: datetime) -> str:
    """UTC with `Z`; trailing zeros of the fraction are cut, a whole second has no fraction."""
    text = instant.astimezone(UTC).isoformat().removesuffix("+00:00")
    return f"{text.rstrip('0') if instant.microsecond else text}Z"


def duration_from_text(text: str) -> timedelta:
    """A Go duration such as `1h30m`, cut to microseconds; ValueError holds Go's own words."""
    if not _DURATION.fullmatch(text):
        raise ValueError(_duration_fault(text))
    total = sum(
        (Fraction(n.rstrip(".")) * _MICROSECONDS[unit] for n, unit in _DURATION_PART.findall(text)), Fraction(0)
    )
    if total >= _LONGEST_MICROSECONDS:
        raise ValueError(f'time: invalid duration "{text}"')
    return timedelta(microseconds=int(-total if text.startswith("-") else total))


def _duration_fault(text: str) -> str:
    rest = _DURATION_PART.sub("", text.lstrip("+-"))
    wrong = re.match(r"(?:\d+(?:\.\d*)?|\.\d+)([^\d.]*)", rest)
    if wrong is None:
        return f'time: invalid duration "{text}"'
    unit = wrong.group(1)
    return f'time: unknown unit "{unit}" in duration "{text}"' if unit else f'time: missing unit in duration "{text}"'


def duration_text(duration: timedelta) -> str:
    """Go's text: from the first non-zero unit on (`24h0m0s`, `30m0s`), below one second as `500ms`."""
    micros = duration // timedelta(microseconds=1)
    if micros < 0:
        return f"-{duration_text(-duration)}"
    if 0 < micros < 1_000_000:
        return f"{_decimal(micros, 1000)}ms" if micros >= 1000 else f"{micros}µs"
    hours, rest = divmod(micros, 3_600_000_000)
    minutes, rest = divmod(rest, 60_000_000)
    seconds = f"{_decimal(rest, 1_000_000)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    digits = str(unit + part)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
