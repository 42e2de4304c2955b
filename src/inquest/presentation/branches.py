"""What is told: a line with lines beneath it, and a heading with such lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a line stands; the sign is for people, the name chooses a colour."""

    NONE = ""
    DONE = "✔"
    FAILED = "✖"
    RUNNING = "▶"
    WAITING = "○"
    ATTENTION = "!"


@dataclass(frozen=True)
class Node:
    """One line and what belongs to it."""

    text: str
    leaves: tuple[Node, ...] = ()
    mark: State = State.NONE
    quote: bool = False
    """Words of the cluster, a diff, a command: kept as they are, line by line."""


@dataclass(frozen=True)
class Section:
    """A question and its answer."""

    title: str
    body: tuple[Node, ...]


def text_nodes(*texts: str | None) -> tuple[Node, ...]:
    """A line for each text that is there."""
    return tuple(Node(text) for text in texts if text)


def text_of(word: object) -> str:
    return "" if word is None else str(word)


def join_present(parts: Iterable[str | None], by: str = ", ") -> str:
    """The parts that are there."""
    return by.join(part for part in parts if part)


def two_decimals(confidence: float | None) -> str:
    """A confidence or a score with two decimals, empty where there is none."""
    return "" if confidence is None else f"{confidence:.2f}"


def text_after(before: str, text: str | None) -> str:
    """The text behind a word, empty where there is none."""
    return f"{before}{text}" if text else ""
