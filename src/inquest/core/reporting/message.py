"""The message of a status: the cause in one sentence, then what was done about it. Written here, and read again."""

from __future__ import annotations

from typing import Final

from inquest.core.text import shorten

MAX_CAUSE: Final = 500
"""Characters of a cause in a message: what was done about it has to fit as well."""


def message_with_cause(said: str, cause: str) -> str:
    """What is said of a case behind its cause, which is told once."""
    return f"{_begin(cause)}{what_was_done(said, cause)}" if cause and not said.startswith(_short(cause)) else said


def what_was_done(message: str, cause: str, resolution: str = "") -> str:
    """The message of a status without the cause that it begins with, and without the resolution that follows."""
    said = message.removeprefix(_begin(cause)).removeprefix(f"{resolution}: ")
    return said.replace(f": {cause}", "") if cause else said


def _begin(cause: str) -> str:
    return f"{_short(cause)}; "


def _short(cause: str) -> str:
    return shorten(cause, MAX_CAUSE).rstrip(". ")
