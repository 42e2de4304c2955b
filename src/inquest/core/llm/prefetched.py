"""Calls whose answer is there before the first turn: what code has read itself (behaviours, section 11.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any

from inquest.core.llm.conversation import BEFORE, Inquiry, Seen
from inquest.core.llm.messages import ToolCall
from inquest.core.llm.tool_calls import canonical, key_of


@dataclass(frozen=True)
class Known:
    """A call that would read again what stands in this evidence."""

    tool: str
    arguments: Mapping[str, Any]
    evidence: str
    optional: tuple[str, ...] = ()
    """Arguments that a call may leave out and mean the same."""
    beside: str = ""
    """Evidence that holds the rest of what the call would give; empty: there is no rest."""


def knowing(inquiry: Inquiry, known: Iterable[tuple[Known, str]]) -> Inquiry:
    """The conversation in which these calls are repeats; each with the text of its evidence."""
    offered = {tool.name for tool in inquiry.tools}
    seen = {
        key_of(inquiry, call): Seen(one.evidence, BEFORE, text, one.beside)
        for one, text in known
        if one.tool in offered
        for call in _spellings(one)
    }
    return replace(inquiry, seen={**inquiry.seen, **seen})


def _spellings(one: Known) -> Iterator[ToolCall]:
    sizes = range(len(one.optional) + 1)
    for left_out in chain.from_iterable(combinations(one.optional, size) for size in sizes):
        said = {key: value for key, value in one.arguments.items() if key not in left_out}
        yield ToolCall("", one.tool, canonical(said))
