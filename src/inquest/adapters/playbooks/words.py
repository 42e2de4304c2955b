"""The words that a trigger can meet: one that hits none of them can never fire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inquest.tables import read_table

_WORDS: Final = read_table(__package__, "words.yaml")
WELL: Final[Mapping[str, tuple[str, ...]]] = _WORDS["well"]
"""Field of a trigger → words of what is well: a pattern that hits one of them fires on health."""
_CONTAINER: Final[tuple[str, ...]] = _WORDS["container_statuses"]
STATUSES: Final = (*_CONTAINER, *_WORDS["pod_statuses"], *(f"Init:{word}" for word in _CONTAINER))
"""Every STATUS word that a pod can have."""
TERMINATIONS: Final[tuple[str, ...]] = _WORDS["terminations"]
KINDS: Final[tuple[str, ...]] = _WORDS["kinds"]
"""Kinds that a snapshot reads or that its events name."""
