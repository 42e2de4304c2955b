"""What `ports.Model` promises, kept by the OpenAI adapter against a real server, streaming and not."""

from __future__ import annotations

import json

import pytest

from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.errors import fault_class
from inquest.adapters.llm.model import OpenAIModel
from inquest.core.llm.messages import Message, ModelReply, ModelRequest, ToolCall, Usage
from inquest.errors import Misconfigured, ModelRefused, RateLimited, Unavailable
from tests.integration.adapters.llm.conftest import (
    GET,
    KEY,
    QUESTION,
    SUBMIT,
    FakeClock,
    Start,
    both_ways,
    connected,
    redacted,
)
from tests.support.tables import row


@both_ways
async def test_text_calls_usage_and_finish_reason_arrive(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script("""
        model: t
        steps: [{reply: {text: Looking at it, calls: [
          {name: kubectl_get, arguments: {kind: Pod, label_selector: "app=api, tier in (web, worker), x!=y"}, id: a},
          {name: kubectl_get, arguments: '{"kind": "No', id: b}],
          usage: {prompt: 900, cached: 700, completion: 33, reasoning: 11}}}]
        """)

    async with connected(clock, serving, stream=stream) as model:
        reply = await model.ask(redacted())

    arguments = {"kind": "Pod", "label_selector": "app=api, tier in (web, worker), x!=y"}
    assert reply == ModelReply(
        text="Looking at it",
        tool_calls=(ToolCall("a", "kubectl_get", json.dumps(arguments)), ToolCall("b", "kubectl_get", '{"kind": "No')),
        finish_reason="tool_calls",
        usage=Usage(900, 700, 33, 11),
        model="scripted/t",
        endpoint="model m1 at 127.0.0.1",
    )


@both_ways
async def test_a_conversation_is_sent_as_the_protocol_wants_it(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script("steps: [{reply: {text: done}}]")
    call = ToolCall("1-a", "kubectl_get", "{}")
    messages = (*QUESTION.messages, Message("assistant", "", (call,)), Message("tool", "E1", tool_call_id="1-a"))

    async with connected(clock, serving, stream=stream) as model:
        await model.ask(redacted(ModelRequest("m", messages, (GET,), max_tokens=99)))

    sent = serving.requests[0]
    assert sent["messages"][2:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1-a", "type": "function", "function": {"name": "kubectl_get", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1-a", "content": "E1"},
    ]
    assert (sent["model"], sent["max_tokens"], "tool_choice" in sent, "temperature" in sent) == ("m1", 99, False, False)


@pytest.mark.parametrize(
    ("forced", "choice"),
    [
        (("submit_result",), {"type": "function", "function": {"name": "submit_result"}}),
        (("submit_result_with_workflow", "submit_result_no_workflow"), "required"),
    ],
    ids=["one-by-name", "several-required"],
)
async def test_forced_tools_are_forced(
    script: Start, clock: FakeClock, forced: tuple[str, ...], choice: object
) -> None:
    serving = script("steps: [{reply: {text: done}}]")

    async with connected(clock, serving) as model:
        await model.ask(redacted(ModelRequest("m", QUESTION.messages, (SUBMIT,), forced)))

    assert serving.requests[0]["tool_choice"] == choice


@both_ways
async def test_an_endpoint_without_figures_reports_none(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script("steps: [{reply: {text: done, usage: none}}]")

    async with connected(clock, serving, stream=stream) as model:
        reply = await model.ask(redacted())

    assert reply.usage == Usage()


PERMANENT = {
    "400": ("error: {status: 400, message: bad request}", "ModelRejected"),
    "401": (f"error: {{status: 401, message: 'wrong key {KEY}'}}", "ModelUnauthorized"),
    "402": ("error: {status: 402}", "ModelCreditExhausted"),
    "403": ("error: {status: 403}", "ModelUnauthorized"),
    "404": ("error: {status: 404}", "ModelNotFound"),
    "422": ("error: {status: 422}", "ModelRejected"),
    "429-quota": ("error: {status: 429, code: insufficient_quota}", "ModelCreditExhausted"),
    "400-length": ("error: {status: 400, message: maximum context length is 8192 tokens}", "ContextOverflow"),
    "400-tools": ("error: {status: 400, message: this model does not support tools}", "ModelWithoutTools"),
    "refusal": ("reply: {refusal: I will not}", "ModelRefused"),
    "content-filter": ("reply: {text: x, finish_reason: content_filter}", "ModelRefused"),
}


@both_ways
@pytest.mark.parametrize(("step", "kind"), PERMANENT.values(), ids=PERMANENT.keys())
async def test_a_permanent_answer_is_not_asked_again(
    script: Start, clock: FakeClock, stream: bool, step: str, kind: str
) -> None:
    serving = script(f"steps: [{{{step}}}]")

    async with connected(clock, serving, stream=stream) as model:
        with pytest.raises(ModelRefused) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), len(serving.requests), clock.sleeps) == (kind, 1, [])
    assert "Permanent error" in str(raised.value)
    assert KEY not in str(raised.value)
    assert raised.value.__cause__ is not None


TRANSIENT = {
    "C-ER-4 500": "error: {status: 500}",
    "C-ER-4 502": "error: {status: 502}",
    "C-ER-4 503": "error: {status: 503}",
    "C-ER-4 504": "error: {status: 504}",
    "529": "error: {status: 529}",
    "C-ER-4 599": "error: {status: 599}",
    "redirect": "error: {status: 302}",
    "late": "error: {status: 200, late: true, message: the engine died}",
    "FA-12-garbage": "garbage: '<html>proxy</html>'",
    "FA-12-cut": "{cut: true, reply: {text: this answer is long enough to be cut in two, calls: []}}",
    "FA-12-empty": "empty: true",
}


@both_ways
@pytest.mark.parametrize("step", TRANSIENT.values(), ids=TRANSIENT.keys())
async def test_a_transient_answer_is_tried_five_times(script: Start, clock: FakeClock, stream: bool, step: str) -> None:
    serving = script(f"steps: [{step if step.startswith('{') else '{' + step + '}'}]")

    async with connected(clock, serving, stream=stream) as model:
        with pytest.raises(Unavailable, match="attempt 5/5"):
            await model.ask(redacted())

    assert (len(serving.requests), clock.sleeps) == (5, [1.0, 2.0, 4.0, 8.0])


@both_ways
async def test_what_comes_back_is_used(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script("steps: [{error: {status: 503}, times: 2}, {reply: {text: back}}]")

    async with connected(clock, serving, stream=stream) as model:
        reply = await model.ask(redacted())

    assert (reply.text, clock.sleeps) == ("back", [1.0, 2.0])


async def test_retry_after_is_obeyed_where_it_is_longer(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 429, retry_after: 30}, times: 1}, {reply: {text: back}}]")

    async with connected(clock, serving) as model:
        await model.ask(redacted())

    assert clock.sleeps == [30.0]


async def test_a_retry_after_beyond_the_wait_budget_goes_to_the_next_endpoint(script: Start, clock: FakeClock) -> None:
    busy = script("steps: [{error: {status: 429, retry_after: 300}}]")
    free = script("steps: [{reply: {text: second}}]")

    async with connected(clock, busy, free) as model:
        reply = await model.ask(redacted())

    assert (reply.text, clock.sleeps) == ("second", [])


async def test_a_wait_that_is_too_long_keeps_the_class_of_the_error(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 503, retry_after: 300}}]")

    async with connected(clock, serving) as model:
        with pytest.raises(Unavailable, match="attempt 1/5"):
            await model.ask(redacted())

    assert clock.sleeps == []


@row("L29")
async def test_rate_limited_for_ever_ends_within_the_wait_budget(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 429, retry_after: 20}}]")

    async with connected(clock, serving) as model:
        with pytest.raises(RateLimited) as raised:
            await model.ask(redacted())

    assert fault_class(raised.value) == "ModelRateLimited"
    assert raised.value.retry_after == 20
    assert sum(clock.sleeps) <= 60


@row("FA-11")
async def test_an_endpoint_that_asked_for_time_gets_it_from_every_case(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 429, retry_after: 50}, times: 1}, {reply: {text: back}}]")

    async with connected(clock, serving, patience=ModelTimeouts(attempts=1)) as model:
        with pytest.raises(RateLimited):
            await model.ask(redacted())
        reply = await model.ask(redacted())

    assert (reply.text, clock.sleeps) == ("back", [50.0])


@row("L28")
async def test_the_next_endpoint_answers_when_the_first_refuses_the_key(script: Start, clock: FakeClock) -> None:
    first, second = script("steps: [{error: {status: 401}}]"), script("steps: [{reply: {text: two}}]")

    async with connected(clock, first, second) as model:
        reply = await model.ask(redacted())

    assert (reply.text, len(first.requests), second.requests[0]["model"]) == ("two", 1, "m2")


@row("L16")
async def test_without_credit_an_endpoint_is_left_alone_by_all(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 402}, times: 1}, {reply: {text: paid}}]")

    async with connected(clock, serving) as model:
        for _ in range(2):
            with pytest.raises(ModelRefused, match="ModelCreditExhausted"):
                await model.ask(redacted())
        before = len(serving.requests)
        await clock.sleep(61)
        reply = await model.ask(redacted())

    assert (before, reply.text) == (1, "paid")


@row("C-ER-4")
async def test_429_is_tried_five_times(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{error: {status: 429}}]")

    async with connected(clock, serving) as model:
        with pytest.raises(RateLimited):
            await model.ask(redacted())

    assert (len(serving.requests), clock.sleeps) == (5, [1.0, 2.0, 4.0, 8.0])


NOBODY = {
    "FA-10 C-ER-4 refused": "http://127.0.0.1:9/v1",
    "FA-10 C-ER-4 dns": "http://model.localhost.invalid/v1",
}


@pytest.mark.parametrize("url", NOBODY.values(), ids=NOBODY.keys())
async def test_an_endpoint_that_is_not_there_is_transient(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("INQUEST_FORBID_REAL_MODELS", "")
    async with connected(clock, url) as model:
        with pytest.raises(Unavailable) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), len(clock.sleeps)) == ("ModelUnreachable", 4)


SILENT = {
    "before-a-stream": ("{delay: 2, reply: {text: late}}", True, ModelTimeouts(whole=0.1, attempts=2)),
    "before-a-whole-answer": ("{delay: 2, reply: {text: late}}", False, ModelTimeouts(whole=0.1, attempts=2)),
    "in-the-middle": ("{pause: 2, reply: {text: late}}", True, ModelTimeouts(idle=0.1, attempts=2)),
}


@row("C-ER-4")
@pytest.mark.parametrize(("step", "stream", "patience"), SILENT.values(), ids=SILENT.keys())
async def test_silence_is_a_timeout(
    script: Start, clock: FakeClock, step: str, stream: bool, patience: ModelTimeouts
) -> None:
    serving = script(f"steps: [{step}]")

    async with connected(clock, serving, stream=stream, patience=patience) as model:
        with pytest.raises(Unavailable) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), len(serving.requests), clock.sleeps) == ("ModelTimeout", 2, [1.0])


@both_ways
async def test_a_model_may_think_longer_than_it_may_fall_silent_later(
    script: Start, clock: FakeClock, stream: bool
) -> None:
    serving = script("steps: [{delay: 0.3, reply: {text: thought about it}}]")

    async with connected(clock, serving, stream=stream, patience=ModelTimeouts(idle=0.1)) as model:
        reply = await model.ask(redacted())

    assert reply.text == "thought about it"


REASONED = {
    "reasoning_content": "{text: the answer, reasoning: 'perhaps {\"confidence\": 1}'}",
    "reasoning": "{text: the answer, reasoning: perhaps, reasoning_field: reasoning}",
    "think-block": "{text: '<think>perhaps {\"confidence\": 1}</think> the answer'}",
    "end-of-a-think-block": '{text: "perhaps\\n</think>\\n\\nthe answer"}',
}


@both_ways
@pytest.mark.parametrize("reply", REASONED.values(), ids=REASONED.keys())
async def test_reasoning_is_never_the_answer(script: Start, clock: FakeClock, stream: bool, reply: str) -> None:
    serving = script(f"steps: [{{reply: {reply}}}]")

    async with connected(clock, serving, stream=stream) as model:
        found = await model.ask(redacted())

    assert found.text == "the answer"


@both_ways
async def test_reasoning_without_an_answer_is_an_empty_answer(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script("steps: [{reply: {text: '<think>{\"confidence\": 1}', finish_reason: length}}]")

    async with connected(clock, serving, stream=stream) as model:
        found = await model.ask(redacted())

    assert (found.text, found.finish_reason) == ("", "length")


async def test_a_server_that_does_not_stream_is_read_in_one_piece(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{whole: true, reply: {text: all at once}}]")

    async with connected(clock, serving, stream=True) as model:
        found = await model.ask(redacted())

    assert (found.text, serving.requests[0]["stream"]) == ("all at once", True)


DIALECTS = {
    "max_tokens": (
        "{when: {sends: [max_tokens]}, error: {status: 400, code: unsupported_parameter, message: "
        "\"Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.\"}}",
        "max_completion_tokens",
        "max_tokens",
    ),
    "stream_options": (
        "{when: {sends: [stream_options]}, error: {status: 422, body: {detail: [{type: extra_forbidden, "
        "loc: [body, stream_options], msg: Extra inputs are not permitted}]}}}",
        "max_tokens",
        "stream_options",
    ),
    "temperature": (
        "{when: {sends: [temperature]}, error: {status: 400, message: "
        "\"Unsupported value: 'temperature' does not support "
        '0.2 with this model. Only the default (1) value is supported."}}',
        "max_tokens",
        "temperature",
    ),
}


@pytest.mark.parametrize(("step", "kept", "gone"), DIALECTS.values(), ids=DIALECTS.keys())
async def test_a_field_that_an_endpoint_does_not_know_is_left_out_from_then_on(
    script: Start, clock: FakeClock, step: str, kept: str, gone: str
) -> None:
    serving = script(f"steps: [{step}, {{reply: {{text: understood}}}}]")

    async with connected(clock, serving, temperature=0.2) as model:
        replies = [await model.ask(redacted()) for _ in range(2)]

    assert [reply.text for reply in replies] == ["understood", "understood"]
    assert [gone in sent for sent in serving.requests] == [True, False, False]
    assert (kept in serving.requests[-1], clock.sleeps) == (True, [])


async def test_a_field_that_is_refused_in_every_dialect_ends_the_call(script: Start, clock: FakeClock) -> None:
    words = "Unsupported parameter: 'max_tokens' and 'max_completion_tokens' are not supported"
    serving = script(f'steps: [{{error: {{status: 400, message: "{words}"}}}}]')

    async with connected(clock, serving) as model:
        with pytest.raises(ModelRefused, match="ModelRejected"):
            await model.ask(redacted())

    assert len(serving.requests) < 5


async def test_the_switch_forbids_every_address_but_this_machine(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setenv("INQUEST_FORBID_REAL_MODELS", "1")

    with pytest.raises(Misconfigured, match="forbidden"):
        OpenAIModel([ModelEndpoint("https://api.example.com/v1", "m")], clock=clock)
    async with connected(clock, "http://localhost:9/v1", "http://[::1]:9/v1") as model:
        assert model is not None


async def test_the_switch_holds_for_a_model_that_was_made_before_it(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setenv("INQUEST_FORBID_REAL_MODELS", "")
    async with connected(clock, "http://model.invalid/v1") as model:
        monkeypatch.setenv("INQUEST_FORBID_REAL_MODELS", "1")
        with pytest.raises(ModelRefused, match="forbidden"):
            await model.ask(redacted())


async def test_the_key_is_sent_and_never_shown(script: Start, clock: FakeClock) -> None:
    endpoint = ModelEndpoint("http://127.0.0.1:9/v1", "m")

    async with connected(clock, script("steps: [{reply: {text: x}}]")) as model:
        shown = f"{model!r} {vars(model)!r} {endpoint!r}"

    assert KEY not in shown
