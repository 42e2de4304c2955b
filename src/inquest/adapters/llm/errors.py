"""What went wrong: the class of an error, and whether the same call may succeed later.

A fault is decided by the first rule that holds. Vendors word the same thing in their own ways, so some rules read
words; those are looked for only under the statuses in which they are known to mean it.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2
import openai

from inquest.adapters.llm.endpoint import ModelEndpoint
from inquest.adapters.llm.response import ErrorInAnswer, ModelRefusal, Unreadable
from inquest.errors import Misconfigured

MOST_WORDS: Final = 4000
"""Characters of an error's body in which words are looked for."""
MOST_SHOWN: Final = 500


@dataclass(frozen=True)
class EndpointFault:
    """What an error of the endpoint means."""

    kind: str
    transient: bool
    text: str
    retry_after: float | None = None
    """Seconds; None when not said."""
    busy: bool = False
    """The endpoint has too much to do."""
    again: bool = True
    """Whether the same endpoint may be asked again for this request; a permanent fault never allows it."""


class CallFailed(Exception):
    """One call failed; `fault` says how."""

    def __init__(self, fault: EndpointFault) -> None:
        super().__init__(f"{fault.kind}: {fault.text}")
        self.fault = fault


@dataclass(frozen=True)
class EndpointMessage:
    """What an endpoint said, in lower case; `status` is 0 where it only said it in words."""

    status: int
    code: str
    words: str


def fault_of(error: Exception, secrets: Sequence[str], now: datetime) -> EndpointFault:
    """Class of an error of the call; no secret is in its text."""
    text = without(str(error) or type(error).__name__, secrets)[:MOST_SHOWN]
    match error:
        case CallFailed():
            return error.fault
        case openai.APIStatusError():
            return _sorted(complaint_of(error), text, retry_after(error.response.headers, now))
        case ErrorInAnswer():
            return _sorted(_complaint(0, error.error, text), text, None)
        case openai.APITimeoutError() | TimeoutError():
            return EndpointFault("ModelTimeout", True, text)
        case openai.APIConnectionError() | httpx2.TransportError():
            # A connection's error says nothing itself; what lies below it does.
            below = [str(cause) for cause in _causes(error) if str(cause)]
            why = below[0] if below else str(error)
            return EndpointFault("ModelUnreachable", True, without(why, secrets)[:MOST_SHOWN])
        case openai.APIError():
            return _sorted(_complaint(0, error.body, text), text, None)
    return _without_a_word(error, text)


def _without_a_word(error: Exception, text: str) -> EndpointFault:
    """The endpoint said nothing that can be read; an error that is not known is permanent."""
    match error:
        case ModelRefusal():
            return EndpointFault("ModelRefused", False, text)
        case Misconfigured():
            return EndpointFault("ModelUnauthorized", False, text)
        case UnicodeEncodeError():
            return EndpointFault("ModelRejected", False, "the request cannot be encoded")
        case Unreadable() | ValueError() | RecursionError():
            return EndpointFault("ModelUnreachable", True, text)
    return EndpointFault("ModelRejected", False, text)


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    while (error := error.__cause__) is not None and len(found) < 8:  # type: ignore[assignment]
        found.append(error)
    return found


# --- what an endpoint said ---------------------------------------------------------------------------------------


def complaint_of(error: openai.APIStatusError) -> EndpointMessage:
    """Status, code and all the words of an answer."""
    return _complaint(error.status_code, error.body, str(error))


def _complaint(status: int, body: Any, text: str) -> EndpointMessage:
    """Codes are texts with one vendor and numbers with another; a number that is a status counts as one."""
    said = body if isinstance(body, Mapping) else {}
    code, kind = said.get("code"), said.get("type")
    if not status and isinstance(code, int) and 400 <= code < 600:
        status = code
    words = f"{text}\n{_as_text(body)}"[:MOST_WORDS].lower()
    return EndpointMessage(status, f"{code or ''} {kind or ''}".lower(), words)


def _as_text(body: Any) -> str:
    try:
        return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""


# --- the rules ---------------------------------------------------------------------------------------------------

_CREDIT: Final = re.compile(r"quota|credit|billing")
_LENGTH: Final = re.compile(
    r"context.{0,3}(length|window|size)|maximum context|too many tokens|(prompt|input|request) is too long"
    r"|maximum number of tokens|exceeds? the (model'?s? )?(maximum|available)|too large for model"
    r"|must have less than \d+ tokens|reduce the length|(payload|entity|content) too large"
)
_TOOLS: Final = re.compile(
    r"(not|n't) support (the )?(use of )?(tool|function)"
    r"|(tool|function)s?\b[^.\n]{0,40}\b(is|are) not (supported|enabled)"
    r"|support tool use|tool choice requires|tools param requires"
    r"|(unknown|unrecogni[sz]ed|unexpected|unsupported|extra)[^.\n]{0,60}\b(tools|tool_choice|functions)\b"
    r"|\"loc\": ?\[\"body\", ?\"(tools|tool_choice)\"\]"
)
_RATE: Final = re.compile(r"rate.?limit|too many requests")


def _out_of_credit(said: EndpointMessage) -> bool:
    return said.status == 402 or (said.status in (0, 429) and bool(_CREDIT.search(said.code)))


def _too_long(said: EndpointMessage) -> bool:
    return said.status in (0, 400, 413, 422) and bool(_LENGTH.search(f"{said.words} {said.code}"))


def _without_tools(said: EndpointMessage) -> bool:
    return said.status in (0, 400, 404, 422, 500, 501) and bool(_TOOLS.search(said.words))


def _filtered(said: EndpointMessage) -> bool:
    return said.status in (0, 400) and "content_filter" in said.code


def _limited(said: EndpointMessage) -> bool:
    return said.status == 429 or (said.status == 0 and bool(_RATE.search(f"{said.words} {said.code}")))


def _status(*statuses: int) -> Callable[[EndpointMessage], bool]:
    return lambda said: said.status in statuses


def _bad_request(said: EndpointMessage) -> bool:
    return said.status in (400, 422) or (said.status == 0 and "invalid_request" in said.code)


RULES: Final[tuple[tuple[Callable[[EndpointMessage], bool], str, bool], ...]] = (
    (_out_of_credit, "ModelCreditExhausted", False),
    (_too_long, "ContextOverflow", False),
    (_without_tools, "ModelWithoutTools", False),
    (_filtered, "ModelRefused", False),
    (_limited, "ModelRateLimited", True),
    (_status(401, 403), "ModelUnauthorized", False),
    (_status(404), "ModelNotFound", False),
    (_bad_request, "ModelRejected", False),
    (_status(408, 504), "ModelTimeout", True),
)
"""The first that holds; none: `ModelUnreachable`, transient, as any other status is."""


def _sorted(said: EndpointMessage, text: str, after: float | None) -> EndpointFault:
    kind, transient = next(
        ((kind, transient) for holds, kind, transient in RULES if holds(said)), ("ModelUnreachable", True)
    )
    busy = kind == "ModelRateLimited" or said.status in (503, 529)
    return EndpointFault(kind, transient, text, after if transient else None, busy)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds, from milliseconds, seconds or a date; None where nothing usable is said."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    return seconds if seconds is not None else _until(said, now)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _until(text: str, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


# --- what may be shown -------------------------------------------------------------------------------------------


def without(text: str, secrets: Sequence[str]) -> str:
    """The text with every secret taken out."""
    for secret in secrets:
        text = text.replace(secret, "[REDACTED:api-key]")
    return text


def shown_cause(error: BaseException, endpoint: ModelEndpoint) -> BaseException:
    """The error itself where a traceback of it holds no secret, else what can be said of it."""
    secrets = endpoint.secrets()
    told = "".join(traceback.format_exception(error))
    if without(told, secrets) == told:
        return error
    return openai.OpenAIError(f"{type(error).__name__}: {without(str(error), secrets)[:MOST_SHOWN]}")


def fault_class(error: BaseException) -> str:
    """The class with which an error of this adapter begins, such as `ModelTimeout`."""
    return str(error).partition(":")[0]
