"""The order of it all: the fail-over list, and on each of its lines attempts, waits and the circuit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import openai
from openai import AsyncOpenAI, AsyncStream

from inquest.adapters.llm.client import EndpointClient
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts, check_allowed
from inquest.adapters.llm.errors import CallFailed, EndpointFault, complaint_of, fault_of, shown_cause
from inquest.adapters.llm.limiter import Limiter
from inquest.adapters.llm.price import cost_of
from inquest.adapters.llm.request import Dialect, body_of, dialect_of
from inquest.adapters.llm.response import reply_from_body, reply_from_stream
from inquest.core.llm.messages import ModelReply, ModelRequest, Retry
from inquest.core.redaction.redacted import Redacted
from inquest.errors import ContextOverflow, InquestError, Misconfigured, ModelRefused, RateLimited, Unavailable
from inquest.ports.clock import Clock
from inquest.ports.model import MODEL_TROUBLE

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 300.0
"""Of a back-off, and of what an endpoint may ask of everybody; seconds."""
JITTER: Final = 0.1
REST: Final = 60.0
"""Seconds for which an endpoint without credit is not asked by anybody, and one that was given up is asked last."""
SYSTEMIC: Final = frozenset({"ModelUnauthorized", "ModelNotFound", "ModelWithoutTools", "ModelCreditExhausted"})
"""Permanent faults that another request would meet too."""

PATH: Final = "/chat/completions"

PATIENT: Final = ModelTimeouts()
OnRetry = Callable[[str, Retry], None]


@dataclass
class _EndpointState:
    """An endpoint and what is known of it: shared by all cases of the process."""

    endpoint: ModelEndpoint
    connection: EndpointClient = field(repr=False)
    limiter: Limiter
    dialect: Dialect
    not_before: float = 0.0
    """The endpoint asked for so much time, of everybody."""
    no_credit_until: float = 0.0
    rests_until: float = 0.0


@dataclass
class _Waits:
    """What is left of the waits of one call of the port; seconds."""

    left: float


@dataclass(frozen=True)
class _GivenUp:
    """Why a line was left, after how many calls."""

    line: _EndpointState
    fault: EndpointFault
    attempt: int
    cause: BaseException


@dataclass
class _PortCall:
    """One call of the port while it runs: what has been waited, repeated and given up."""

    request: ModelRequest
    waits: _Waits
    retries: list[Retry] = field(default_factory=list)
    given_up: list[_GivenUp] = field(default_factory=list)


class OpenAIModel:
    """`ports.Model` over a list of endpoints."""

    def __init__(
        self,
        endpoints: Sequence[ModelEndpoint],
        *,
        clock: Clock,
        patience: ModelTimeouts = PATIENT,
        stream: bool = True,
        temperature: float | None = None,
        jitter: Callable[[], float] = random.random,
        on_retry: OnRetry = lambda _phase, _retry: None,
    ) -> None:
        if not endpoints:
            raise Misconfigured("model: no endpoint is set")
        for endpoint in endpoints:
            check_allowed(endpoint)
        self._lines = tuple(_line(endpoint, patience) for endpoint in endpoints)
        self._clock, self._patience, self._stream = clock, patience, stream
        self._temperature, self._jitter, self._on_retry = temperature, jitter, on_retry

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        """Ask the endpoints in order until one answers; raises what the last one said, with what the others did.

        ContextOverflow comes at once when the request was not squeezed yet, so that the loop can do that first.
        """
        call = _PortCall(request.value, _Waits(self._patience.total_wait))
        for line in self._in_order(call.request.model):
            if call.given_up:
                self._repeat(call, call.given_up[-1])
            found = await self._ask_line(line, call)
            if isinstance(found, ModelReply):
                return self._completed(found, line, call)
            call.given_up.append(found)
            if found.fault.kind == "ContextOverflow" and not call.request.squeezed:
                break
        raise _error(call.given_up, self._patience.attempts) from call.given_up[-1].cause

    async def aclose(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.connection.aclose()

    def _in_order(self, wanted: str) -> list[_EndpointState]:
        """The wanted model first; an endpoint that has just been given up last, but never left out."""
        now = self._clock.monotonic()
        return sorted(self._lines, key=lambda line: (now < line.rests_until, line.endpoint.model != wanted))

    def _completed(self, reply: ModelReply, line: _EndpointState, call: _PortCall) -> ModelReply:
        cost = cost_of(line.endpoint.price, reply.usage)
        line.rests_until = 0.0
        return replace(reply, endpoint=line.endpoint.name, cost=cost, retries=tuple(call.retries))

    def _repeat(self, call: _PortCall, failed: _GivenUp) -> None:
        """Another call follows one that failed: count it."""
        retry = Retry(failed.line.endpoint.model, failed.fault.kind)
        call.retries.append(retry)
        self._on_retry(call.request.phase, retry)

    # --- one endpoint ------------------------------------------------------------------------------------------

    async def _ask_line(self, line: _EndpointState, call: _PortCall) -> ModelReply | _GivenUp:
        """Transient faults are tried again, at most so often; permanent ones are not (14.2)."""
        attempt = 1
        while True:
            try:
                return await self._attempt(line, call, attempt)
            except CallFailed as failed:
                cause = shown_cause(failed.__cause__ or failed, line.endpoint)
                given_up = _GivenUp(line, failed.fault, attempt, cause)
            wait = self._wait_after(given_up.fault, attempt)
            if not self._may_try_again(given_up.fault, attempt) or wait > call.waits.left:
                self._rest(line, given_up.fault)
                return given_up
            self._repeat(call, given_up)
            MODEL_TROUBLE.get()(given_up.fault.kind, attempt, self._patience.attempts)
            await self._wait(wait, call.waits)
            attempt += 1

    def _may_try_again(self, fault: EndpointFault, attempt: int) -> bool:
        return fault.transient and fault.again and attempt < self._patience.attempts

    async def _attempt(self, line: _EndpointState, call: _PortCall, attempt: int) -> ModelReply:
        """One call in its place; Failed says what it ended with, whatever it was (12.4)."""
        try:
            async with line.limiter.place(call.request.urgency, self._patience.place_wait):
                await self._hold_back(line, call.waits)
                return await self._noted(line, call.request, attempt)
        except TimeoutError as error:
            text = f"no free place for {self._patience.place_wait:g} s"
            raise CallFailed(EndpointFault("ModelRateLimited", True, text, again=False)) from error

    async def _noted(self, line: _EndpointState, request: ModelRequest, attempt: int) -> ModelReply:
        try:
            reply = await self._call(line, request)
        except Exception as error:  # unknown errors of the call are permanent, never a diagnosis (12.4)
            fault = fault_of(error, line.endpoint.secrets(), self._clock.now())
            self._note(line, fault, attempt)
            raise CallFailed(fault) from error
        line.limiter.answered()
        return reply

    async def _hold_back(self, line: _EndpointState, waits: _Waits) -> None:
        """Wait where the endpoint asked everybody to wait; not at all where its credit is gone."""
        now = self._clock.monotonic()
        if now < line.no_credit_until:
            raise CallFailed(EndpointFault("ModelCreditExhausted", False, "left alone until it may have credit again"))
        if (left := line.not_before - now) <= 0:
            return
        if left > waits.left:
            raise CallFailed(
                EndpointFault("ModelRateLimited", True, "it asked for more time than there is", left, again=False)
            )
        await self._wait(left, waits)

    def _note(self, line: _EndpointState, fault: EndpointFault, attempt: int) -> None:
        """What one case met holds for all."""
        now = self._clock.monotonic()
        if fault.kind == "ModelCreditExhausted":
            line.no_credit_until = now + REST
        if fault.busy:
            line.not_before = now + min(self._wait_after(fault, attempt), LONGEST_WAIT)
        if fault.busy or fault.kind == "ModelCreditExhausted":
            line.limiter.slow_down()

    def _rest(self, line: _EndpointState, fault: EndpointFault) -> None:
        if fault.transient or fault.kind in SYSTEMIC:
            line.rests_until = self._clock.monotonic() + REST

    def _wait_after(self, fault: EndpointFault, attempt: int) -> float:
        """Doubling from one second, or what the endpoint asked for where that is longer."""
        plain = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)
        return max(plain * (1 - JITTER + 2 * JITTER * self._jitter()), fault.retry_after or 0.0)

    async def _wait(self, seconds: float, waits: _Waits) -> None:
        waits.left -= seconds
        await self._clock.sleep(seconds)

    # --- one call ----------------------------------------------------------------------------------------------

    async def _call(self, line: _EndpointState, request: ModelRequest) -> ModelReply:
        """Asked once more at once where the endpoint only did not know a field."""
        while True:
            dialect = line.dialect
            try:
                return await self._send(line, request, dialect)
            except openai.APIStatusError as error:
                said = complaint_of(error)
                learned = dialect.after(said.words) if said.status in (400, 422) else None
                if learned is None:
                    raise
                line.dialect = learned

    async def _send(self, line: _EndpointState, request: ModelRequest, dialect: Dialect) -> ModelReply:
        check_allowed(line.endpoint)
        body = body_of(request, line.endpoint, dialect, stream=self._stream, temperature=self._temperature)
        client = line.connection.client
        async with asyncio.timeout(self._patience.whole):
            return await (_in_pieces(client, body) if self._stream else _at_once(client, body))


def _line(endpoint: ModelEndpoint, patience: ModelTimeouts) -> _EndpointState:
    return _EndpointState(endpoint, EndpointClient(endpoint, patience), Limiter(endpoint.places), dialect_of(endpoint))


async def _at_once(client: AsyncOpenAI, body: dict[str, Any]) -> ModelReply:
    return reply_from_body(await client.post(PATH, body=body, cast_to=object))


async def _in_pieces(client: AsyncOpenAI, body: dict[str, Any]) -> ModelReply:
    """A stream shows a dead connection after the idle limit, long before the whole answer would be due."""
    stream = await client.post(PATH, body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object])
    try:
        if "json" in stream.response.headers.get("content-type", ""):
            # Some servers answer in one piece although they were asked for a stream.
            await stream.response.aread()
            return reply_from_body(stream.response.json())
        return await reply_from_stream(stream)
    finally:
        await stream.close()


def _error(given_up: Sequence[_GivenUp], most: int) -> InquestError:
    """An error of ours; `Transient error (attempt n/5)` and `Permanent error` are the words of resources 14.2."""
    last = given_up[-1]
    name, fault = last.line.endpoint.name, last.fault
    said = "; ".join([fault.text, *_earlier(given_up[:-1])])
    if fault.kind == "ContextOverflow":
        return ContextOverflow(f"{fault.kind}: Permanent error: {name}: {said}", last.line.endpoint.context_window)
    if not fault.transient:
        return ModelRefused(f"{fault.kind}: Permanent error: {name}: {said}")
    if fault.kind == "ModelRateLimited":
        return RateLimited(f"{fault.kind}: {name}", fault.retry_after)
    return Unavailable(f"{fault.kind}: {name}", f"Transient error (attempt {last.attempt}/{most}): {said}")


def _earlier(given_up: Sequence[_GivenUp]) -> Iterator[str]:
    yield from (f"before it {failed.line.endpoint.name}: {failed.fault.kind}" for failed in given_up)
