"""What messages mean: tables of YAML beside the detectors that read them, one way to say it a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest.tables import alternatives, read_table

_NEVER: Final = re.compile(r"(?!)")


@dataclass(frozen=True)
class MessageRule:
    """One meaning of a message; which of the words count is the detector's matter."""

    kind: str
    pattern: re.Pattern[str] = _NEVER
    """Without regard to case; a row without one is chosen in another way."""
    category: str = ""
    field: str = ""
    fields: tuple[str, ...] = ()
    says: str = ""
    confidence: float = 0.0
    refuted: str = ""
    actions: tuple[str, ...] = ()


def message_rules(package: str, file: str) -> Mapping[str, MessageRule]:
    """The rows of a table by their kind, in their order."""
    return {row["kind"]: _rule(**row) for row in read_table(package, file)}


def _rule(*, message: Iterable[str] = (), **rest: Any) -> MessageRule:
    return MessageRule(pattern=re.compile(alternatives(message), re.IGNORECASE) if message else _NEVER, **rest)
