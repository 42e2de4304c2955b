"""The ruling: what policy said, and what follows where it said nothing usable (resources, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What OPA answered: the value of the query, or the fault that made it useless; never both."""

    value: Mapping[str, Any] | None
    fault: str = ""
    policy_hash: str = ""
    query: str = ""
