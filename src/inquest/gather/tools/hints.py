"""Failures in kubectl's own words, and what each of them means.

Models know these words. The hint stands after the raw error and never instead of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest import errors
from inquest.errors import Declined
from inquest.tables import alternatives, read_table

ARROW: Final = "→ "


@dataclass(frozen=True)
class Hint:
    """One known failure; a terminal one is not worth a second call."""

    name: str
    pattern: re.Pattern[str]
    says: str
    terminal: bool = False


def _hints(rows: Iterable[Mapping[str, Any]]) -> tuple[Hint, ...]:
    return tuple(
        Hint(
            row["name"],
            re.compile(alternatives(row["message"]), re.IGNORECASE),
            row["says"],
            row.get("terminal", False),
        )
        for row in rows
    )


_TABLES: Final = read_table(__package__, "hints.yaml")
HINTS: Final = _hints(_TABLES["kubectl"])
STACK_HINTS: Final = _hints(_TABLES["stack"])
LACKS_RIGHT: Final = "this account lacks the right; asking again will not help"

_KUBECTL_LINE: Final = re.compile(
    r"^(?:Error from server|error:|Unable to connect|The connection to the server|The \S+ \"[^\"]*\" is invalid"
    r"|Operation cannot be fulfilled|E\d{4} .*memcache\.go)"
)


def hint_for(text: str | None, *, application: bool = False) -> Hint | None:
    """The first rule that fits; of an application's output only lines count that begin as kubectl begins them."""
    lines = [line for line in (text or "").splitlines() if not line.startswith(ARROW)]
    if application:
        lines = [line for line in lines if _KUBECTL_LINE.match(line)]
    return next((hint for hint in HINTS if any(hint.pattern.search(line) for line in lines)), None)


def words_of(hint: Hint, text: str) -> str:
    """The hint's sentence; a missing right and an admission rule share one word of the API."""
    return LACKS_RIGHT if hint.name == "forbidden" and re.search(r"cannot \w+ resource", text) else hint.says


def add_hint(text: str | None, *, application: bool = False) -> str:
    """The text unchanged, with a hint line behind it where one is known; twice is once. Never raises."""
    raw = text or ""
    hint = hint_for(raw, application=application)
    if hint is None or any(line.startswith(ARROW) for line in raw.splitlines()):
        return raw
    return f"{raw}\n{ARROW}{words_of(hint, raw)}"


class CallRefused(errors.InquestError):
    """A guard of ours said no before any request was made; `hint` says where else to look."""

    reason = "Refused"

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"[refused] {why}")
        self.hint = hint


@dataclass(frozen=True)
class ToolFailure:
    """A failed call as it is shown and counted."""

    error: str
    hint: str = ""
    terminal: bool = False
    interpreted: bool = False
    """The hint says what a known failure means; others say how to call."""


def failure_of(error: BaseException, *, seconds: float = 0.0, system: str = "") -> ToolFailure:
    """What a model is told of an exception; an unknown one gives away nothing but its class.

    `system` is what was asked where that was not Kubernetes: then nothing is said in kubectl's words.
    """
    if isinstance(error, CallRefused):
        return ToolFailure(str(error), error.hint)
    if isinstance(error, TimeoutError):
        return ToolFailure(f"[timed out after {seconds:g} s]", "ask for less, or for something else")
    if system and isinstance(error, errors.InquestError):
        return _of_system(error, system)
    text = _rendered(error)
    if hint := hint_for(text):
        return ToolFailure(text, words_of(hint, text), hint.terminal, interpreted=True)
    return ToolFailure(text, _fallback(error))


def _rendered(error: BaseException) -> str:
    match error:
        case errors.NotFound():
            return f"Error from server (NotFound): {error}"
        case errors.Forbidden():
            return f"Error from server (Forbidden): {error}"
        case errors.Misconfigured():
            return f"error: {error}"
        case errors.UnknownKind():
            return f"error: the server doesn't have a resource type: {error}"
        case errors.AmbiguousKind():
            return f"error: {error}"
        case errors.RateLimited():
            return f"Error from server (TooManyRequests): {error}"
        case errors.Unavailable():
            return f"Unable to connect to the server: {error}" if error.system != "catalogue" else str(error)
        case errors.NotRecorded():
            return f"error: {error}: that is no proof that there is none"
        case errors.Invalid():
            return str(error) if str(error).startswith("arguments.") else f"Error from server (BadRequest): {error}"
    return f"internal error: {type(error).__name__}"


def _fallback(error: BaseException) -> str:
    match error:
        case errors.AmbiguousKind():
            return f"call again with api_version, one of {', '.join(error.groups)}"
        case errors.Invalid():
            return "correct the arguments"
        case errors.RateLimited():
            return "the server is busy; look at something else first"
    return ""


# --- failures of a monitoring stack -------------------------------------------------------------------------------

UNKNOWN_FIGURES: Final = "what it would show is unknown, not zero and not absent; look elsewhere"


def _of_system(error: errors.InquestError, system: str) -> ToolFailure:
    text = str(error)
    if text.startswith("arguments"):
        return ToolFailure(text, "correct the arguments")
    if isinstance(error, Declined):
        return ToolFailure(f"[refused] {text}", error.hint)
    said = next((hint.says for hint in STACK_HINTS if hint.pattern.search(text)), "")
    match error:
        case errors.RateLimited():
            return ToolFailure(text, "it is busy; look at something else first")
        case errors.Unavailable():
            return ToolFailure(text, said or UNKNOWN_FIGURES, terminal=not said)
        case errors.Forbidden():
            return ToolFailure(text, LACKS_RIGHT, terminal=True)
        case errors.NotConfigured():
            return ToolFailure(text, UNKNOWN_FIGURES, terminal=True)
        case errors.Misconfigured() | errors.NotFound():
            return ToolFailure(text, f"{system} is not set up right; {UNKNOWN_FIGURES}", terminal=True)
        case errors.NotRecorded():
            return ToolFailure(
                f"{text}: that is no proof that there is none", "ask what was recorded, or look elsewhere"
            )
        case errors.Invalid():
            return ToolFailure(text, said or "correct the query")
    return ToolFailure(f"internal error: {type(error).__name__}", UNKNOWN_FIGURES)
