"""Any endpoint that speaks the OpenAI chat protocol, behind `ports.Model`.

One call goes through the fail-over list in order; what is tried again, how often and after what wait is decided in
this file and nowhere else (resources, section 14.2; the SDK's own retries are off). What is raised begins with the
class of behaviours 12.4 (`ModelTimeout: …`), for log, metric and message.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
import openai
from openai import AsyncAzureOpenAI, AsyncOpenAI, AsyncStream
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import SecretStr

from inquest.errors import InquestError, Misconfigured, ModelRefused, RateLimited, Unavailable
from inquest.ports import Clock, Redacted
from inquest.story.conversation import Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage

FORBID_VARIABLE: Final = "INQUEST_FORBID_REAL_MODELS"
CONNECT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 120.0
ATTEMPTS: Final = 5
FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 300.0
JITTER: Final = 0.1
TOTAL_WAIT: Final = 60.0
CREDIT_REST: Final = 60.0
"""Seconds for which an endpoint without credit is not asked by anybody."""

NO_KEY: Final = SecretStr("")

_forbidden = False


def forbid_real_models() -> None:
    """From now on only loopback addresses are called; for tests, and there is no way back in a process."""
    global _forbidden
    _forbidden = True


def real_models_forbidden() -> bool:
    """Whether the switch is set, by call or by environment."""
    return _forbidden or os.environ.get(FORBID_VARIABLE, "") not in ("", "0", "false")


@dataclass(frozen=True)
class Endpoint:
    """One entry of the fail-over list; `azure_api_version` makes it an Azure deployment named `model`."""

    url: str
    model: str
    key: SecretStr = NO_KEY
    azure_api_version: str = ""

    @property
    def name(self) -> str:
        return f"model {self.model}"


@dataclass(frozen=True)
class Patience:
    """How long one call may take and how often it is made; seconds."""

    connect: float = CONNECT_SECONDS
    idle: float = IDLE_SECONDS
    whole: float = WHOLE_SECONDS
    attempts: int = ATTEMPTS
    total_wait: float = TOTAL_WAIT
    """All waits of one call of the port together; what is longer goes to the next endpoint."""


@dataclass(frozen=True)
class Fault:
    """What an error of the endpoint means (behaviours, section 12.4)."""

    kind: str
    transient: bool
    text: str
    retry_after: float | None = None


@dataclass
class _Line:
    """An endpoint with its client, and until when it wants to be left alone: shared by all cases of the process."""

    endpoint: Endpoint
    client: AsyncOpenAI
    not_before: float = 0.0
    no_credit_until: float = 0.0


@dataclass
class _Waits:
    left: float
    spent: int = field(default=0)


class OpenAIModel:
    """`ports.Model` over a list of endpoints."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        clock: Clock,
        patience: Patience = Patience(),
        stream: bool = True,
        temperature: float | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not endpoints:
            raise Misconfigured("model: no endpoint is set")
        for endpoint in endpoints:
            _check_allowed(endpoint.url)
        self._lines = tuple(_Line(endpoint, _client(endpoint, patience)) for endpoint in endpoints)
        self._clock, self._patience, self._stream = clock, patience, stream
        self._temperature, self._jitter = temperature, jitter

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        """Ask the first endpoint that answers; raises what the last one said."""
        waits = _Waits(self._patience.total_wait)
        last: InquestError | None = None
        for line in self._lines:
            try:
                return await self._ask_line(line, request.value, waits)
            except (Unavailable, RateLimited, ModelRefused) as error:
                error.__context__ = error.__context__ or last
                last = error
        raise last or Misconfigured("model: no endpoint is set")

    async def aclose(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.client.close()

    async def _ask_line(self, line: _Line, request: ModelRequest, waits: _Waits) -> ModelReply:
        """Transient faults are tried again, at most five calls in all; permanent ones are not (14.2)."""
        attempt = 1
        while True:
            await self._hold_back(line, waits)
            try:
                return await self._call(line, request)
            except Exception as error:  # unknown errors of the call are permanent, never a diagnosis (12.4)
                fault = fault_of(error, line.endpoint.key)
                if not await self._may_try_again(line, fault, attempt, waits):
                    raise _converted(fault, line.endpoint, attempt) from error
            attempt += 1

    async def _hold_back(self, line: _Line, waits: _Waits) -> None:
        """Wait where the endpoint asked another case to wait; not at all where its credit is gone."""
        now = self._clock.monotonic()
        if now < line.no_credit_until:
            raise ModelRefused(
                f"ModelCreditExhausted: {line.endpoint.name} is left alone until it may have credit again"
            )
        if line.not_before - now > 0:
            await self._wait(line.not_before - now, waits, line)

    async def _may_try_again(self, line: _Line, fault: Fault, attempt: int, waits: _Waits) -> bool:
        now = self._clock.monotonic()
        if fault.kind == "ModelCreditExhausted":
            line.no_credit_until = now + CREDIT_REST
        if fault.kind == "ModelRateLimited" and fault.retry_after:
            line.not_before = now + fault.retry_after
        if not fault.transient or attempt >= self._patience.attempts:
            return False
        wait = max(self._backoff(attempt), fault.retry_after or 0.0)
        if wait > waits.left:
            return False
        await self._wait(wait, waits, line)
        return True

    def _backoff(self, attempt: int) -> float:
        plain = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)
        return plain * (1 - JITTER + 2 * JITTER * self._jitter())

    async def _wait(self, seconds: float, waits: _Waits, line: _Line) -> None:
        if seconds > waits.left:
            raise RateLimited(f"ModelRateLimited: {line.endpoint.name}", seconds)
        waits.left -= seconds
        await self._clock.sleep(seconds)

    async def _call(self, line: _Line, request: ModelRequest) -> ModelReply:
        _check_allowed(line.endpoint.url)
        body = _body(request, line.endpoint) | ({} if self._temperature is None else {"temperature": self._temperature})
        async with asyncio.timeout(self._patience.whole):
            if self._stream:
                return await _streamed(line.client, body)
            return _whole(await line.client.chat.completions.create(**body))


# --- the request ---------------------------------------------------------------------------------------


def _check_allowed(url: str) -> None:
    """Before a socket opens: with the switch set, nothing but this machine is called."""
    if real_models_forbidden() and not _is_loopback(url):
        raise Misconfigured(f"real model calls are forbidden here: {urlsplit(url).hostname}")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _client(endpoint: Endpoint, patience: Patience) -> AsyncOpenAI:
    timeout = httpx2.Timeout(patience.idle, connect=patience.connect)
    http = httpx2.AsyncClient(timeout=timeout, trust_env=not _is_loopback(endpoint.url))
    key = endpoint.key.get_secret_value() or "none"
    if endpoint.azure_api_version:
        return AsyncAzureOpenAI(
            azure_endpoint=endpoint.url,
            azure_deployment=endpoint.model,
            api_version=endpoint.azure_api_version,
            api_key=key,
            http_client=http,
            timeout=timeout,
            max_retries=0,
        )
    return AsyncOpenAI(base_url=endpoint.url, api_key=key, http_client=http, timeout=timeout, max_retries=0)


def _body(request: ModelRequest, endpoint: Endpoint) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": endpoint.model or request.model,
        "messages": [_message(message) for message in request.messages],
        _limit_name(endpoint): request.max_tokens,
    }
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if request.forced:
        body["tool_choice"] = _choice(request.forced)
    return body


def _limit_name(endpoint: Endpoint) -> str:
    """The vendor's own service has renamed the field; other servers know the old name only."""
    host = urlsplit(endpoint.url).hostname or ""
    return "max_completion_tokens" if host.endswith(".openai.com") or endpoint.azure_api_version else "max_tokens"


def _choice(forced: tuple[str, ...]) -> Any:
    """One tool by name; of several, whichever: only they are offered then."""
    return {"type": "function", "function": {"name": forced[0]}} if len(forced) == 1 else "required"


def _tool(tool: ToolSchema) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.content or None, "tool_calls": calls}


# --- the answer ------------------------------------------------------------------------------------------


class _Unreadable(Exception):
    """The endpoint answered with something that is no chat completion, or stopped in the middle of one."""


class _Refusal(Exception):
    """The model or a filter before it declined to answer."""


def _whole(completion: object) -> ModelReply:
    if not isinstance(completion, ChatCompletion) or not completion.choices:
        raise _Unreadable("no choice in the answer")
    choice = completion.choices[0]
    if choice.finish_reason == "content_filter" or choice.message.refusal:
        raise _Refusal(choice.message.refusal or "content filter")
    calls = tuple(
        ToolCall(call.id or "", call.function.name, call.function.arguments or "")
        for call in choice.message.tool_calls or ()
        if call.type == "function"
    )
    reason = str(choice.finish_reason or "stop")
    return ModelReply(choice.message.content or "", calls, reason, _usage(completion.usage), completion.model)


async def _streamed(client: AsyncOpenAI, body: Mapping[str, Any]) -> ModelReply:
    """A stream shows a dead connection after the idle limit, long before the whole answer would be due."""
    request: dict[str, Any] = {**body, "stream": True, "stream_options": {"include_usage": True}}
    stream = cast(AsyncStream[ChatCompletionChunk], await client.chat.completions.create(**request))
    try:
        return await _assembled(stream)
    finally:
        await stream.close()


async def _assembled(stream: AsyncIterator[ChatCompletionChunk]) -> ModelReply:
    parts = _Parts()
    async for chunk in stream:
        parts.add(chunk)
    if not parts.reason:
        raise _Unreadable("the stream ended in the middle of the answer")
    if parts.reason == "content_filter" or parts.refusal:
        raise _Refusal(parts.refusal or "content filter")
    return parts.reply()


@dataclass
class _Parts:
    """Pieces of a stream; tool calls come by index, their arguments in fragments."""

    text: str = ""
    refusal: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)
    reason: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""

    def add(self, chunk: ChatCompletionChunk) -> None:
        self.model = chunk.model or self.model
        self.usage = _usage(chunk.usage) if chunk.usage else self.usage
        for choice in (chunk.choices or ())[:1]:
            self.reason = str(choice.finish_reason or self.reason)
            self.text += choice.delta.content or ""
            self.refusal += choice.delta.refusal or ""
            for call in choice.delta.tool_calls or ():
                self._add_call(call)

    def _add_call(self, delta: Any) -> None:
        """Some servers send no index: a new id then begins a new call."""
        last = max(self.calls, default=-1)
        index = delta.index if delta.index is not None else last + (1 if delta.id or last < 0 else 0)
        whole = self.calls.setdefault(index, ["", "", ""])
        whole[0] = whole[0] or delta.id or ""
        whole[1] += (delta.function and delta.function.name) or ""
        whole[2] += (delta.function and delta.function.arguments) or ""

    def reply(self) -> ModelReply:
        calls = tuple(ToolCall(*self.calls[index]) for index in sorted(self.calls))
        return ModelReply(self.text, calls, self.reason, self.usage, self.model)


def _usage(usage: CompletionUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details
    return Usage(usage.prompt_tokens or 0, (details and details.cached_tokens) or 0, usage.completion_tokens or 0)


# --- errors ------------------------------------------------------------------------------------------------

_LENGTH_WORDS: Final = ("context length", "context_length", "maximum context", "too many tokens", "prompt is too long")
_TOOL_WORDS: Final = (
    "does not support tools",
    "tools are not supported",
    "tool use is not supported",
    "support function",
)
_CREDIT_WORDS: Final = ("insufficient_quota", "quota", "credit", "billing")
_PERMANENT: Final[Mapping[int, str]] = {
    400: "ModelRejected",
    401: "ModelUnauthorized",
    402: "ModelCreditExhausted",
    403: "ModelUnauthorized",
    404: "ModelNotFound",
    422: "ModelRejected",
}


def fault_of(error: Exception, key: SecretStr = NO_KEY) -> Fault:
    """Class of an error of the call, and whether the same call may succeed later; the key never shows."""
    text = _without_key(str(error) or type(error).__name__, key)
    match error:
        case openai.APIStatusError():
            return _status_fault(error, text)
        case openai.APITimeoutError() | TimeoutError():
            return Fault("ModelTimeout", True, text)
        case openai.APIConnectionError() | httpx2.TransportError() | _Unreadable() | ValueError():
            return Fault("ModelUnreachable", True, text)
        case openai.APIError():
            return _body_fault(error, text)
        case _Refusal():
            return Fault("ModelRefused", False, text)
    return Fault("ModelRejected", False, text)


def _status_fault(error: openai.APIStatusError, text: str) -> Fault:
    status, lower = error.status_code, text.lower()
    if status == 429 and any(word in f"{error.code} {error.type}".lower() for word in _CREDIT_WORDS):
        return Fault("ModelCreditExhausted", False, text)
    if status == 429:
        return Fault("ModelRateLimited", True, text, _retry_after(error.response.headers))
    if status in (400, 413, 422) and any(word in f"{lower} {error.code}" for word in _LENGTH_WORDS):
        return Fault("ContextOverflow", False, text)
    if status in (400, 422) and any(word in lower for word in _TOOL_WORDS):
        return Fault("ModelWithoutTools", False, text)
    if status in _PERMANENT:
        return Fault(_PERMANENT[status], False, text)
    return Fault("ModelUnreachable", True, text, _retry_after(error.response.headers))


def _body_fault(error: openai.APIError, text: str) -> Fault:
    """An error that came inside a stream has no status, only words."""
    said = f"{text} {error.code} {error.type}".lower()
    if any(word in said for word in _LENGTH_WORDS):
        return Fault("ContextOverflow", False, text)
    return (
        Fault("ModelCreditExhausted", False, text)
        if "insufficient_quota" in said
        else Fault("ModelUnreachable", True, text)
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; a date or nonsense counts as not said."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _without_key(text: str, key: SecretStr) -> str:
    secret = key.get_secret_value()
    return text.replace(secret, "[REDACTED:api-key]") if secret else text


def _converted(fault: Fault, endpoint: Endpoint, attempt: int) -> InquestError:
    """The house's error; `Transient error (attempt n/5)` and `Permanent error` are the words of resources 14.2."""
    said = fault.text[:500]
    if not fault.transient:
        return ModelRefused(f"{fault.kind}: Permanent error: {endpoint.name}: {said}")
    if fault.kind == "ModelRateLimited":
        return RateLimited(f"{fault.kind}: {endpoint.name}", fault.retry_after)
    return Unavailable(f"{fault.kind}: {endpoint.name}", f"Transient error (attempt {attempt}): {said}")


def fault_class(error: BaseException) -> str:
    """The class with which an error of this adapter begins, such as `ModelTimeout`."""
    return str(error).partition(":")[0]
