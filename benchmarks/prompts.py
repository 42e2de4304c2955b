"""What was sent to the model: how many tokens, and how much of it a provider's cache would have known already."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

CHARACTERS_PER_TOKEN: Final = 4
"""The usual estimate for English text and JSON; no tokenizer is used."""

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Prompts:
    """The prompts of one case."""

    turns: int
    tool_calls: int
    tokens: int
    """Of all turns together, estimated by characters."""
    largest: int
    """Of the largest turn."""
    shared: float
    """Share of the bytes, after the second turn of each conversation, that the turn before began with too."""


def look(bodies: Sequence[Body]) -> Prompts:
    """The requests of one case in order; a new conversation begins where no reply of the model is among them."""
    texts = [prefix_text(body) for body in bodies]
    sizes = [len(text) // CHARACTERS_PER_TOKEN for text in texts]
    return Prompts(len(bodies), sum(map(_answered, bodies)), sum(sizes), max(sizes, default=0), shared(bodies))


def prefix_text(body: Body) -> str:
    """A request in the order in which providers cache it: tools, then messages."""
    parts = [body.get("tools") or [], *body["messages"]]
    return "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)


def shared(bodies: Sequence[Body]) -> float:
    """Longest common prefix of consecutive turns by the length of the later one, over all turns after the second."""
    common = length = 0
    for earlier, later in pairwise(bodies):
        if turn_of(later) > 2:
            one, other = (prefix_text(body).encode() for body in (earlier, later))
            common += common_bytes(one, other)
            length += len(other)
    return common / length if length else 0.0


def common_bytes(one: bytes, other: bytes) -> int:
    """Length of what both begin with."""
    least = min(len(one), len(other))
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), least)


def turn_of(body: Body) -> int:
    """Number of the reply that is asked for."""
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    return len(said) + 1


def _answered(body: Body) -> int:
    """Results of tools that stand at the end of a request."""
    said = [at for at, message in enumerate(body["messages"]) if message["role"] == "assistant"]
    return sum(message["role"] == "tool" for message in body["messages"][said[-1] :]) if said else 0
