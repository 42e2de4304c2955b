"""Whatever comes over the wire, a call ends in a reply or in an error of the product."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from inquest.adapters.llm.client import MOST_COMPRESSED, MOST_STREAMED, MOST_WHOLE
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.errors import fault_class
from inquest.adapters.llm.model import OpenAIModel
from inquest.adapters.llm.response import MOST_CHARACTERS
from inquest.core.llm.messages import ModelReply, Usage
from inquest.errors import InquestError, ModelRefused, Unavailable
from tests.integration.adapters.llm.conftest import KEY, FakeClock, both_ways, redacted
from tests.support.tables import row

CLASSES = {
    "ModelTimeout",
    "ModelUnreachable",
    "ModelRateLimited",
    "ModelUnauthorized",
    "ModelNotFound",
    "ModelRejected",
    "ModelWithoutTools",
    "ContextOverflow",
    "ModelRefused",
    "ModelCreditExhausted",
}


ONCE = ModelTimeouts(attempts=1)


@asynccontextmanager
async def saying(parts: Sequence[bytes]) -> AsyncIterator[str]:
    """A server that answers every request with these bytes, then hangs up."""
    running: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running.add(task := asyncio.create_task(_say(reader, writer)))
        await asyncio.wait([task])

    async def _say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            for part in parts:
                writer.write(part)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        await asyncio.gather(*running, return_exceptions=True)


async def asked(*parts: bytes, stream: bool, patience: ModelTimeouts = ONCE) -> ModelReply | InquestError:
    """What the adapter makes of these bytes; anything but its own errors goes up."""
    async with saying(parts) as url:
        model = OpenAIModel(
            [ModelEndpoint(url, "m", SecretStr(KEY))], clock=FakeClock(), stream=stream, patience=patience
        )
        try:
            return await model.ask(redacted())
        except InquestError as error:
            return error
        finally:
            await model.aclose()


@dataclass
class Wire:
    """One server and its clients for many examples: making them anew is most of the time of a call."""

    runner: asyncio.Runner
    clock: FakeClock
    parts: list[bytes]
    models: dict[bool, OpenAIModel]

    def asked(self, *parts: bytes, stream: bool) -> ModelReply | InquestError:
        self.parts[:] = parts
        self.clock.seconds += 1000
        try:
            return self.runner.run(self.models[stream].ask(redacted()))
        except InquestError as error:
            return error


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with asyncio.Runner() as runner:
        parts: list[bytes] = []
        clock, server = FakeClock(), saying(parts)
        endpoint = ModelEndpoint(runner.run(server.__aenter__()), "m", SecretStr(KEY))
        models = {
            stream: OpenAIModel([endpoint], clock=clock, stream=stream, patience=ONCE) for stream in (True, False)
        }
        yield Wire(runner, clock, parts, models)
        for model in models.values():
            runner.run(model.aclose())
        runner.run(server.__aexit__(None, None, None))


def response(body: bytes, kind: str, status: int = 200, *more: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}", *more, "connection: close"]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


JSON, EVENTS = "application/json", "text/event-stream"
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.just("tool_calls"), st.just({})
)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def fields(**known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with these fields, some left out, some with anything in them."""
    return st.fixed_dictionaries({}, optional={name: found | values for name, found in known.items()})


functions = fields(name=st.just("kubectl_get"), arguments=st.text(max_size=20))
tool_calls = st.lists(fields(index=st.integers(0, 2), id=st.text(max_size=3), function=functions), max_size=3)
said = fields(content=st.text(max_size=20), refusal=st.just(""), tool_calls=tool_calls, reasoning_content=st.text())
choices = st.lists(fields(message=said, delta=said, finish_reason=st.sampled_from(["stop", "length", "x"])), max_size=2)
figures = fields(prompt_tokens=st.integers(), completion_tokens=st.integers(0, 99), prompt_tokens_details=fields())
completions = fields(
    model=st.text(max_size=5), choices=choices, usage=figures, error=fields(code=st.integers(399, 600))
)

bodies = st.one_of(
    st.binary(max_size=400),
    values.map(lambda value: json.dumps(value).encode()),
    completions.map(lambda value: json.dumps(value).encode()),
)
events = st.lists(
    st.one_of(
        completions.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n"),
        values.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n"),
        st.binary(max_size=60).map(lambda raw: b"data: " + raw + b"\n\n"),
        st.sampled_from([b": ping\n\n", b"data: [DONE]\n\n", b"event: error\ndata: {}\n\n", b"id: \xff\n", b"\n\n"]),
    ),
    max_size=6,
).map(b"".join)
statuses = st.sampled_from([200, 200, 200, 201, 204, 302, 400, 401, 402, 404, 413, 422, 429, 500, 503, 529, 599])
kinds = st.sampled_from([JSON, EVENTS, "text/html", "application/json; charset=utf-16", "x"])


def check(found: ModelReply | InquestError) -> None:
    if isinstance(found, ModelReply):
        assert found.finish_reason
        assert 0 <= found.usage.total <= 2 * 10**9
    else:
        assert fault_class(found) in CLASSES
        assert KEY not in str(found)


@row("RV-18")
@settings(max_examples=120)
@given(bodies | events, kinds, statuses, st.booleans())
def test_any_body_ends_in_a_reply_or_a_typed_error(
    wire: Wire, body: bytes, kind: str, status: int, stream: bool
) -> None:
    check(wire.asked(response(body, kind, status), stream=stream))


@row("RV-18")
@settings(max_examples=60)
@given(events, st.booleans())
def test_any_stream_that_breaks_off_ends_in_a_reply_or_a_typed_error(wire: Wire, body: bytes, stream: bool) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {EVENTS}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n" if body else b""

    check(wire.asked(head, chunk, stream=stream))


@row("RV-18")
@settings(max_examples=60)
@given(st.binary(max_size=300), st.booleans())
def test_bytes_that_are_no_http_end_in_a_typed_error(wire: Wire, raw: bytes, stream: bool) -> None:
    found = wire.asked(raw, stream=stream)

    assert isinstance(found, InquestError)
    check(found)


def completion(**more: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]} | more


ODD = {
    "no-finish-reason": ({"choices": [{"message": {"content": "x"}}]}, "x"),
    "content-in-parts": (
        {"choices": [{"message": {"content": [{"type": "thinking", "text": "no"}, {"type": "text", "text": "x"}]}}]},
        "x",
    ),
    "usage-that-cannot-be": (completion(usage={"prompt_tokens": -1, "completion_tokens": 10**30}), "x"),
    "usage-of-another-shape": (completion(usage="many"), "x"),
    "fields-of-tomorrow": (completion(service_tier="x", choices_filter=[1]), "x"),
}


@pytest.mark.parametrize(("body", "text"), ODD.values(), ids=ODD.keys())
async def test_what_differs_without_meaning_is_read(body: dict[str, Any], text: str) -> None:
    found = await asked(response(json.dumps(body).encode(), JSON), stream=False)

    assert isinstance(found, ModelReply)
    assert (found.text, found.usage) == (text, Usage())


async def test_arguments_that_come_as_an_object_are_read() -> None:
    calls = [{"function": {"name": "kubectl_get", "arguments": {"kind": "Pod"}}}]
    body = {"choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]}

    found = await asked(response(json.dumps(body).encode(), JSON), stream=False)

    assert isinstance(found, ModelReply)
    assert [(call.name, call.arguments) for call in found.tool_calls] == [("kubectl_get", '{"kind": "Pod"}')]


def called(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return completion(choices=[{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}])


def event(*calls: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"delta": {"tool_calls": list(calls)}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


FRAGMENTS = {
    "the-same-index-with-every-call": [
        event({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{}"}}),
        event({"index": 0, "id": "2", "function": {"name": "b", "arguments": "{}"}}),
    ],
    "no-index": [
        event({"id": "1", "function": {"name": "a", "arguments": "{"}}, {"function": {"arguments": "}"}}),
        event({"id": "2", "function": {"name": "b", "arguments": "{}"}}),
    ],
    "an-id-with-every-fragment": [
        event({"index": 0, "id": "1", "function": {"name": "a", "arguments": "{"}}),
        event({"index": 0, "id": "other", "function": {"arguments": "}"}}),
        event({"index": 1, "id": "2", "function": {"name": "b", "arguments": "{}"}}),
    ],
    "mixed": [
        event({"index": 0, "id": "1", "function": {"name": "a"}}, {"index": 1, "id": "2", "function": {"name": "b"}}),
        event({"index": 1, "function": {"arguments": "{}"}}, {"index": 0, "function": {"arguments": "{}"}}),
    ],
}


@pytest.mark.parametrize("parts", FRAGMENTS.values(), ids=FRAGMENTS.keys())
async def test_calls_are_put_together_however_they_come(parts: list[bytes]) -> None:
    found = await asked(response(b"".join([*parts, event(finish="tool_calls")]), EVENTS), stream=True)

    assert isinstance(found, ModelReply)
    assert [(call.id, call.name, call.arguments) for call in found.tool_calls] == [("1", "a", "{}"), ("2", "b", "{}")]


LATE = {
    "rate": ({"message": "Rate limit reached", "code": 429}, "ModelRateLimited"),
    "bad-gateway": ({"message": "Provider returned error", "code": 502}, "ModelUnreachable"),
    "no-credit": ({"message": "no", "code": "insufficient_quota"}, "ModelCreditExhausted"),
    "too-long": ({"message": "the request exceeds the available context size"}, "ContextOverflow"),
    "invalid": ({"message": "no", "type": "invalid_request_error"}, "ModelRejected"),
    "filtered": ({"message": "no", "code": "content_filter"}, "ModelRefused"),
    "text": ("engine died", "ModelUnreachable"),
    "unlike-anything": ([[1]], "ModelUnreachable"),
}


@both_ways
@pytest.mark.parametrize(("error", "kind"), LATE.values(), ids=LATE.keys())
async def test_an_error_in_the_place_of_an_answer_has_its_class(stream: bool, error: Any, kind: str) -> None:
    body = json.dumps({"error": error}).encode()
    found = await asked(response(b"data: " + body + b"\n\n", EVENTS) if stream else response(body, JSON), stream=stream)

    assert isinstance(found, InquestError)
    assert fault_class(found) == kind


async def endless(stream: bool) -> ModelReply | InquestError:
    body = b" " * 65_000 if not stream else b": " + b" " * 65_000 + b"\n\n"
    count = 2 * MOST_STREAMED // len(body)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {EVENTS if stream else JSON}\r\nconnection: close\r\n\r\n".encode()
    return await asked(head, *([body] * count), stream=stream)


@both_ways
async def test_an_answer_without_end_is_ended(stream: bool) -> None:
    found = await endless(stream)

    assert isinstance(found, Unavailable)
    assert f"longer than {MOST_STREAMED if stream else MOST_WHOLE} bytes" in str(found)


@both_ways
async def test_arguments_that_no_model_writes_are_no_answer(stream: bool) -> None:
    """Before anything is made of them: what is parsed, compared and stored is bounded."""
    calls = [{"index": n, "id": f"{n}", "function": {"name": "a", "arguments": "x" * 100_000}} for n in range(11)]
    body = b"".join(event(call) for call in calls) if stream else json.dumps(called(calls)).encode()

    found = await asked(response(body, EVENTS if stream else JSON), stream=stream)

    assert isinstance(found, Unavailable)
    assert f"longer than {MOST_CHARACTERS} characters" in str(found)


async def test_a_compressed_answer_is_no_bomb() -> None:
    packer, megabyte = zlib.compressobj(wbits=31), b" " * 1024 * 1024
    body = b"".join([*(packer.compress(megabyte) for _ in range(80)), packer.flush()])

    found = await asked(response(body, JSON, 200, "content-encoding: gzip"), stream=False)

    assert MOST_COMPRESSED < len(body) < MOST_WHOLE
    assert isinstance(found, Unavailable)
    assert "longer than" in str(found)


async def test_a_short_compressed_answer_is_read() -> None:
    body = gzip.compress(json.dumps(completion()).encode())

    found = await asked(response(body, JSON, 200, "content-encoding: gzip"), stream=False)

    assert isinstance(found, ModelReply)


async def test_pings_keep_a_stream_alive() -> None:
    pings = [b": ping\n\n"] * 20
    done = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\n'
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {EVENTS}\r\nconnection: close\r\n\r\n".encode()

    found = await asked(head, *pings, done, stream=True, patience=ModelTimeouts(idle=5, attempts=1))

    assert isinstance(found, ModelReply)


async def test_a_refusal_keeps_its_words() -> None:
    body = {"choices": [{"message": {"content": None, "refusal": "I will not"}, "finish_reason": "stop"}]}

    found = await asked(response(json.dumps(body).encode(), JSON), stream=False)

    assert isinstance(found, ModelRefused)
    assert "I will not" in str(found)
