"""Kubernetes quantities as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

_SUFFIXES: Final[Mapping[str, float]] = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}


def parse_quantity(text: Any) -> float | None:
    """A Kubernetes quantity as a number, None when it is none."""
    body = str(text if text is not None else "")
    digits = body.rstrip("numkKMGTPEi")
    try:
        return float(digits) * _SUFFIXES[body[len(digits) :]]
    except (ValueError, KeyError):
        return None


_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}


_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_QUANTITY: Final = re.compile(
    r"([0-9]{1,30}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[kMGTPE]|m))?"
)


def bytes_from(quantity: str) -> int | None:
    """A Kubernetes quantity of memory as whole bytes, exactly; None where it is none."""
    found = _QUANTITY.fullmatch(quantity.strip())
    if not found:
        return None
    scale = Fraction(1, 1000) if found[3] == "m" else Fraction((_BINARY | _DECIMAL).get(found[3] or "", 1))
    size = Fraction(f"0{found[1]}".rstrip(".") + (found[2] or "")) * scale
    return size.numerator if size.denominator == 1 else None


def thousandths_from(quantity: str) -> int | None:
    """A Kubernetes quantity of CPU in thousandths, exactly; None where it is none or finer."""
    found = _QUANTITY.fullmatch(quantity.strip())
    if not found or found[3] not in (None, "m", "k"):
        return None
    scale = {"m": 1, "k": 10**6}.get(found[3] or "", 1000)
    amount: Fraction = Fraction(f"0{found[1]}".rstrip(".") + (found[2] or "")) * scale
    return amount.numerator if amount.denominator == 1 else None


def quantity_from(size: int, like: str = "") -> str:
    """Bytes in the largest unit that says them exactly, in the family of units that `like` uses, else binary."""
    families = (_DECIMAL, _BINARY) if like.strip()[-1:] in _DECIMAL else (_BINARY, _DECIMAL)
    for units in families:
        fitting = [(factor, suffix) for suffix, factor in units.items() if size and size % factor == 0]
        if fitting:
            factor, suffix = max(fitting)
            return f"{size // factor}{suffix}"
    return str(size)
