"""Texts of the wire: instants, Go durations, and the words both sides agreed on (section 2.2)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

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

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
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


def instant_from_text(text: str) -> datetime:
    """RFC 3339 with a zone, as UTC, cut to microseconds; ValueError for anything else."""
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 date-time: {text[:64]}")
    day, clock, fraction, zone = match.groups()
    cut = (fraction or "")[:6].ljust(6, "0")
    offset = "+00:00" if zone in "Zz" else zone
    return datetime.fromisoformat(f"{day}T{clock}.{cut}{offset}").astimezone(UTC)


def instant_text(instant: datetime) -> str:
    """UTC with `Z`; trailing zeros of the fraction are cut, a whole second has no fraction."""
    moment = instant.astimezone(UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{moment.microsecond:06d}".rstrip("0").rstrip(".") + "Z" if moment.microsecond else f"{text}Z"


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
    wrong = re.fullmatch(r"(?:\d+\.?\d*|\.\d+)([^\d.]*).*", rest)
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
