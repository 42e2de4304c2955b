"""The chat completions protocol over HTTP, streaming and not, from a script; Azure's routes of it too.

`GET /requests` lists what was asked, `GET /v1/models` names the script; the header `x-scripted-model` stands in every
answer, so that nobody takes one for a model's.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hack.scripted_model.script import Call, Failure, Reply, Script, ScriptError, Step, choose, filled, load, values_of
from inquest.core.llm.recommendation import TASK

MARK: Final = {"x-scripted-model": "these replies come from a script, not from a model"}
CHARACTERS_PER_TOKEN: Final = 4
PIECE: Final = 24
"""Characters of a streamed piece."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Head:
    """What came with a body."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    running: int
    """Requests in work, this one included."""


@dataclass
class Play:
    """A script being played: what was asked so far, and how often each step answered."""

    script: Script
    requests: list[Json] = field(default_factory=list)
    used: Counter[int] = field(default_factory=Counter)
    heads: list[Head] = field(default_factory=list)
    advised: list[Json] = field(default_factory=list)
    running: int = 0
    arrivals: asyncio.Condition = field(default_factory=asyncio.Condition)

    def take(self, request: Json) -> Step | None:
        self.requests.append(request)
        index = choose(self.script, request, self.used)
        if index is None:
            return None
        self.used[index] += 1
        return self.script.steps[index]

    def cached(self, request: Json) -> int:
        """Characters of the prefix that an earlier request had too, as a provider's cache would count."""
        return max((_common(earlier["messages"], request["messages"]) for earlier in self.requests[:-1]), default=0)


@dataclass(frozen=True)
class Serving:
    """A running server."""

    base_url: str
    requests: list[Json]
    """Bodies in the order in which they came."""
    heads: list[Head]
    """What came with each of them."""
    advised: list[Json]
    """Bodies of questions for a recommendation."""

    @property
    def azure_url(self) -> str:
        """The same server as an Azure resource."""
        return self.base_url.removesuffix("/v1")


@dataclass(frozen=True)
class Tls:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


@contextmanager
def serve(
    script: Script | str | Path, *, host: str = "127.0.0.1", port: int = 0, tls: Tls | None = None
) -> Iterator[Serving]:
    """Run the server for a script, or for the file that holds one, in a thread; it listens when this returns."""
    play = Play(script if isinstance(script, Script) else load(script))
    with socket.create_server((host, port)) as listening:
        config = uvicorn.Config(
            application(play),
            log_config=None,
            lifespan="off",
            access_log=False,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            scheme = "https" if tls else "http"
            url = f"{scheme}://{host}:{listening.getsockname()[1]}/v1"
            yield Serving(url, play.requests, play.heads, play.advised)
        finally:
            server.should_exit = True
            server.force_exit = True
            thread.join()


def application(play: Play) -> Starlette:
    """The routes."""

    async def complete(http: Request) -> Response:
        request = await http.json()
        if _asks_for_advice(request):
            play.advised.append(request)
            return _answer(play, Step(reply=Reply(text=play.script.advice)), request)
        play.running += 1
        play.heads.append(Head(http.url.path, dict(http.query_params), dict(http.headers), play.running))
        async with play.arrivals:
            play.arrivals.notify_all()
        try:
            return await _played(play, request)
        finally:
            play.running -= 1

    async def complete_on_azure(http: Request) -> Response:
        """A deployment, a version and a key in a header of its own are asked for; the model is the deployment's."""
        if "api-version" not in http.query_params:
            return _failed(Failure(status=404, message="Resource not found", code="404"))
        if not http.headers.get("api-key"):
            return _failed(Failure(status=401, message="Access denied due to invalid subscription key", code="401"))
        return await complete(http)

    async def asked(_: Request) -> Response:
        return JSONResponse(play.requests, headers=MARK)

    async def models(_: Request) -> Response:
        model = {"id": _model(play.script), "object": "model", "created": 0, "owned_by": "script"}
        return JSONResponse({"object": "list", "data": [model]}, headers=MARK)

    return Starlette(
        routes=[
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/openai/deployments/{deployment}/chat/completions", complete_on_azure, methods=["POST"]),
            Route("/v1/models", models),
            Route("/requests", asked),
        ]
    )


def _asks_for_advice(request: Json) -> bool:
    first: Json = next(iter(request.get("messages") or ()), {})
    return str(first.get("content") or "").startswith(TASK)


async def _played(play: Play, request: Json) -> Response:
    step = play.take(request)
    if step is None:
        return _failed(Failure(status=500, message="no step of the script fits this request"))
    await asyncio.sleep(step.delay)
    async with play.arrivals:
        await play.arrivals.wait_for(lambda: max(head.running for head in play.heads) >= step.crowd)
    try:
        return _answer(play, step, request)
    except ScriptError as error:
        return _failed(Failure(status=500, message=str(error)))


def _answer(play: Play, step: Step, request: Json) -> Response:
    if step.error is not None and step.error.late:
        return _late(step.error, streaming=bool(request.get("stream")))
    if step.error is not None:
        return _failed(step.error)
    if step.garbage is not None:
        return Response(step.garbage, media_type="text/html", headers=MARK)
    if step.empty:
        return JSONResponse({"id": "x", "object": "chat.completion", "model": "m", "created": 0, "choices": []})
    completion = _completion(play, step.reply or Reply(), request)
    if request.get("stream") and not step.whole:
        pieces = _pieces(completion, cut=step.cut, pause=step.pause)
        return StreamingResponse(pieces, media_type="text/event-stream", headers=MARK)
    if step.cut:
        return _short(completion)
    return JSONResponse(completion, headers=MARK)


def _failed(failure: Failure) -> Response:
    headers = dict(MARK)
    if failure.retry_after is not None:
        said = failure.retry_after
        headers["retry-after"] = said if isinstance(said, str) else f"{said:g}"
    if failure.retry_after_ms is not None:
        headers["retry-after-ms"] = f"{failure.retry_after_ms:g}"
    return JSONResponse(_error(failure), failure.status, headers=headers)


def _error(failure: Failure) -> Any:
    if failure.body is not None:
        return failure.body
    return {"error": {"message": failure.message, "type": "scripted", "code": failure.code or None}}


def _late(failure: Failure, *, streaming: bool) -> Response:
    if streaming:
        event = f"data: {json.dumps(_error(failure))}\n\ndata: [DONE]\n\n"
        return Response(event, media_type="text/event-stream", headers=MARK)
    return JSONResponse(_error(failure), headers=MARK)


def _short(completion: Json) -> Response:
    """Half of the body: valid HTTP, but the JSON breaks off."""
    text = json.dumps(completion)
    return Response(text[: len(text) // 2], media_type="application/json", headers=MARK)


def _model(script: Script) -> str:
    return f"scripted/{script.model}"


def _completion(play: Play, reply: Reply, request: Json) -> Json:
    values = values_of(play.script, request)
    message: Json = {"role": "assistant", "content": filled(reply.text, values) or None}
    plain = [call.model_dump(by_alias=True, exclude_none=True) for call in reply.calls]
    calls = [_call(Call.model_validate(call), index, request) for index, call in enumerate(filled(plain, values))]
    message |= ({"tool_calls": calls} if calls else {}) | ({"refusal": reply.refusal} if reply.refusal else {})
    message |= {reply.reasoning_field: reply.reasoning} if reply.reasoning else {}
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason or _reason(calls)}
    head = {"id": f"scripted-{len(play.requests)}", "object": "chat.completion", "created": 0}
    usage = _usage(play, reply, request, message)
    return head | {"model": _model(play.script), "choices": [choice], "usage": usage, "system_fingerprint": "script"}


def _reason(calls: list[Json]) -> str:
    return "tool_calls" if calls else "stop"


def _call(call: Call, index: int, request: Json) -> Json:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id or f"call-{len(request['messages'])}-{index}", "type": "function", "function": function}


def _usage(play: Play, reply: Reply, request: Json, message: Json) -> Json | None:
    """Counted by characters where the script names no figures."""
    if reply.usage == "none":
        return None
    prompt = _size(request["messages"]) + len(json.dumps(request.get("tools") or []))
    figures = [prompt, play.cached(request), _size([message])]
    tokens = [*(number // CHARACTERS_PER_TOKEN for number in figures), len(reply.reasoning) // CHARACTERS_PER_TOKEN]
    if reply.usage is not None:
        tokens = [reply.usage.prompt, reply.usage.cached, reply.usage.completion, reply.usage.reasoning]
    return {
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[2],
        "total_tokens": tokens[0] + tokens[2],
        "prompt_tokens_details": {"cached_tokens": tokens[1]},
        "completion_tokens_details": {"reasoning_tokens": tokens[3]},
    }


def _size(messages: list[Json]) -> int:
    return len(json.dumps(messages, ensure_ascii=False))


def _common(earlier: list[Json], later: list[Json]) -> int:
    same = next(
        (i for i, (a, b) in enumerate(zip(earlier, later, strict=False)) if a != b), min(len(earlier), len(later))
    )
    return _size(later[:same]) if same else 0


async def _pieces(completion: Json, *, cut: bool, pause: float) -> AsyncIterator[bytes]:
    """The same answer in pieces, arguments in fragments; a cut one ends before its finish reason."""
    choice, usage = completion["choices"][0], completion["usage"]
    deltas = list(_deltas(choice["message"]))
    for number, delta in enumerate(deltas[: len(deltas) // 2] if cut else deltas):
        await asyncio.sleep(pause if number == len(deltas) // 2 else 0)
        yield _event(completion, [{"index": 0, "delta": delta, "finish_reason": None}])
    if cut:
        return
    yield _event(completion, [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    if usage is not None:
        yield _event(completion, [], usage=usage)
    yield b"data: [DONE]\n\n"


def _deltas(message: Mapping[str, Any]) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for name in ("reasoning", "reasoning_content"):
        for piece in _cut_up(message.get(name) or ""):
            yield {name: piece}
    for piece in _cut_up(message["content"] or ""):
        yield {"content": piece}
    if message.get("refusal"):
        yield {"refusal": message["refusal"]}
    for index, call in enumerate(message.get("tool_calls", ())):
        yield {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
        for piece in _cut_up(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _cut_up(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _event(completion: Json, choices: list[Json], **more: Any) -> bytes:
    head = {key: completion[key] for key in ("id", "created", "model", "system_fingerprint")}
    chunk = head | {"object": "chat.completion.chunk", "choices": choices} | more
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
