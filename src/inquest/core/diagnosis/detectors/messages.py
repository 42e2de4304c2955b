"""What messages mean: tables of YAML beside the detectors that read them, one way to say it a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest.core.tables import alternatives, read_table

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
    return {row["kind"]: _rule(row) for row in read_table(package, file)}


def _rule(row: Mapping[str, Any]) -> MessageRule:
    rest: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
    said = rest.pop("message", ())
    return MessageRule(pattern=re.compile(alternatives(said), re.IGNORECASE) if said else _NEVER, **rest)
