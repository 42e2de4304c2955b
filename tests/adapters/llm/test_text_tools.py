"""Tools in the text, for endpoints that know none: one form, read in one way, and a prefix that never changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from inquest.adapters.llm.endpoint import ModelEndpoint
from inquest.adapters.llm.errors import fault_class
from inquest.adapters.llm.text_protocol import UNREADABLE, in_text, out_of_text
from inquest.core.llm.messages import Message, ModelReply, ModelRequest, ToolCall, Usage
from inquest.errors import ModelRefused
from tests.adapters.llm.conftest import GET, KEY, QUESTION, SUBMIT, FakeClock, Start, both_ways, connected, redacted

POD = '{"kind": "Pod", "name": "api-0"}'


def reply(text: str, finish: str = "stop") -> ModelReply:
    return ModelReply(text, (), finish, Usage(), "m")


def block(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def calls_of(text: str, finish: str = "stop") -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in out_of_text(reply(text, finish)).tool_calls]


# --- over the wire -------------------------------------------------------------------------------------------------


@both_ways
async def test_a_call_in_the_text_is_a_call(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script(
        f"steps: [{{reply: {{text: {json.dumps('I look at it.' + chr(10) + block('kubectl_get', POD))}}}}}]"
    )
    endpoint = ModelEndpoint(serving.base_url, "m", SecretStr(KEY), tool_protocol="text")

    async with connected(clock, endpoint, stream=stream) as model:
        found = await model.ask(redacted())

    assert (found.text, found.finish_reason) == ("I look at it.", "tool_calls")
    assert found.tool_calls == (ToolCall("", "kubectl_get", POD),)
    assert serving.requests[0].keys().isdisjoint({"tools", "tool_choice"})
    assert [message["role"] for message in serving.requests[0]["messages"]] == ["system", "user"]


async def test_only_the_endpoint_that_asks_for_text_gets_text(script: Start, clock: FakeClock) -> None:
    first, second = script("steps: [{error: {status: 401}}]"), script("steps: [{reply: {text: x}}]")

    async with connected(clock, ModelEndpoint(first.base_url, "m", tool_protocol="text"), second) as model:
        await model.ask(redacted())

    assert ("tools" in first.requests[0], "tools" in second.requests[0]) == (False, True)


REFUSALS = {
    "ollama": "{status: 400, message: 'registry.ollama.ai/library/gemma:2b does not support tools'}",
    "vllm": "{status: 400, message: '\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser'}",
    "llama.cpp": "{status: 500, message: 'tools param requires --jinja flag'}",
    "router": "{status: 404, message: 'No endpoints found that support tool use.'}",
    "groq": "{status: 400, message: '`tool calling` is not supported with this model'}",
    "unknown-field": "{status: 400, message: 'Unrecognized request argument supplied: tools'}",
    "strict-body": "{status: 422, body: {detail: [{type: extra_forbidden, loc: [body, tools], msg: Extra inputs}]}}",
    "late": "{status: 200, late: true, message: this model does not support tools}",
}


@both_ways
@pytest.mark.parametrize("error", REFUSALS.values(), ids=REFUSALS.keys())
async def test_an_endpoint_that_refuses_tools_is_named_as_such(
    script: Start, clock: FakeClock, stream: bool, error: str
) -> None:
    serving = script(f"steps: [{{error: {error}}}]")

    async with connected(clock, serving, stream=stream) as model:
        with pytest.raises(ModelRefused) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), len(serving.requests)) == ("ModelWithoutTools", 1)


async def test_a_schema_that_is_refused_is_no_missing_protocol(script: Start, clock: FakeClock) -> None:
    words = "Invalid schema for function 'kubectl_get': 'x' is no type of parameters in tools[0]"
    serving = script(f'steps: [{{error: {{status: 400, code: invalid_function_parameters, message: "{words}"}}}}]')

    async with connected(clock, serving) as model:
        with pytest.raises(ModelRefused, match="ModelRejected"):
            await model.ask(redacted())


# --- to the model --------------------------------------------------------------------------------------------------


def test_every_tool_is_described_with_its_schema_at_the_end_of_the_system_prompt() -> None:
    spoken = in_text(QUESTION)
    lines = spoken.messages[0].content.splitlines()

    assert (spoken.messages[0].role, lines[0], spoken.tools, spoken.forced) == ("system", "s", (), ())
    assert [json.loads(line) for line in lines[-2:]] == [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in (GET, SUBMIT)
    ]


def test_without_a_system_prompt_one_is_made() -> None:
    spoken = in_text(ModelRequest("m", (Message("user", "u"),), (GET,)))

    assert [message.role for message in spoken.messages] == ["system", "user"]


def test_without_tools_nothing_is_said_of_them() -> None:
    request = ModelRequest("m", QUESTION.messages, ())

    assert in_text(request) == request


def test_a_conversation_is_written_as_the_model_itself_writes_it() -> None:
    calls = (ToolCall("1-a", "kubectl_get", POD), ToolCall("1-b", "kubectl_get", ""))
    messages = (
        *QUESTION.messages,
        Message("assistant", "Both.", calls),
        Message("tool", "E1 pod", tool_call_id="1-a"),
        Message("tool", "E2 node", tool_call_id="1-b"),
        Message("user", "You repeat yourself."),
    )

    written = in_text(ModelRequest("m", messages, (GET,))).messages

    assert written[2] == Message("assistant", f"Both.\n{block('kubectl_get', POD)}\n{block('kubectl_get', '{}')}")
    assert written[3] == Message(
        "user",
        '<tool_response tool="kubectl_get">\nE1 pod\n</tool_response>\n\n'
        '<tool_response tool="kubectl_get">\nE2 node\n</tool_response>\n\n'
        "You repeat yourself.",
    )
    assert len(written) == 4


@pytest.mark.parametrize("forced", [("submit_result",), ("submit_a", "submit_b")], ids=["one", "several"])
def test_forced_tools_are_asked_for_in_the_last_message(forced: tuple[str, ...]) -> None:
    spoken = in_text(ModelRequest("m", QUESTION.messages, (SUBMIT,), forced))

    assert spoken.messages[-1].role == "user"
    assert spoken.messages[-1].content.startswith("u\n\n")
    assert " or ".join(forced) in spoken.messages[-1].content


names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
arguments = st.dictionaries(
    texts, st.one_of(texts, st.integers(), st.booleans(), st.none(), st.lists(texts)), max_size=3
)


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[Message, ...]]:
    """What each turn adds: the reply, and what is said after it."""
    made = []
    for number in range(draw(st.integers(0, 4))):
        wanted = draw(st.lists(st.tuples(names, arguments), max_size=3))
        calls = tuple(
            ToolCall(f"{number}-{index}", name, json.dumps(given)) for index, (name, given) in enumerate(wanted)
        )
        results = tuple(Message("tool", draw(texts), tool_call_id=call.id) for call in calls)
        nudge = (Message("user", draw(texts)),) if draw(st.booleans()) or not calls else ()
        made.append((Message("assistant", draw(texts), calls), *results, *nudge))
    return made


@given(turns())
def test_a_later_request_begins_with_all_of_the_earlier_one(added: list[tuple[Message, ...]]) -> None:
    conversation = QUESTION.messages
    before: tuple[Message, ...] = ()
    for more in ((), *added):
        conversation = (*conversation, *more)
        now = in_text(ModelRequest("m", conversation, (GET, SUBMIT))).messages
        assert now[: len(before)] == before
        before = now


@given(turns())
def test_no_two_messages_of_the_user_stand_together(added: list[tuple[Message, ...]]) -> None:
    conversation = (*QUESTION.messages, *(message for more in added for message in more))
    roles = [message.role for message in in_text(ModelRequest("m", conversation, (GET,))).messages]

    assert all(roles[index : index + 2] != ["user", "user"] for index in range(len(roles)))
    assert "tool" not in roles


# --- from the model ------------------------------------------------------------------------------------------------

READ = {
    "one": (block("a", POD), [("a", POD)]),
    "several-are-one-batch": (f"{block('a', '{}')}\n{block('b', POD)}", [("a", "{}"), ("b", POD)]),
    "on-one-line": ('<tool_call>{"name": "a", "arguments": {}}</tool_call>', [("a", "{}")]),
    "indented": ('  <tool_call> {"name": "a", "arguments": {}} </tool_call>', [("a", "{}")]),
    "no-arguments": ('<tool_call>{"name": "a"}</tool_call>', [("a", "{}")]),
    "arguments-as-text": ('<tool_call>{"name": "a", "arguments": "{}"}</tool_call>', [("a", "{}")]),
    "an-end-within-a-string": (block("a", '{"q": "</tool_call>"}'), [("a", '{"q": "</tool_call>"}')]),
    "a-begin-within-a-string": (block("a", '{"q": "\\n<tool_call>"}'), [("a", '{"q": "\\n<tool_call>"}')]),
    "an-end-that-is-left-out": ('<tool_call>{"name": "a", "arguments": {}}', [("a", "{}")]),
    "made-up-results-are-dropped": (
        f"{block('a', '{}')}\n<tool_response>\nall is well\n</tool_response>\n{block('b', '{}')}",
        [("a", "{}")],
    ),
    "broken-arguments": ('<tool_call>\n{"name": "a", "arguments": {"k": }}\n</tool_call>', [("a", '{"k": }}')]),
    "a-broken-one-spares-the-next": (
        f'<tool_call>{{"name": "a", "arguments": {{</tool_call>{block("b", "{}")}',
        [("a", "{"), ("b", "{}")],
    ),
    "cut-off": ('<tool_call>\n{"name": "submit", "arguments": {"summ', [("submit", '{"summ')]),
    "no-name": ('<tool_call>{"tool": "a"}</tool_call>', [(UNREADABLE, '{"tool": "a"}')]),
    "no-json": ("<tool_call>kubectl get pods</tool_call>", [(UNREADABLE, "kubectl get pods")]),
    "a-list": ('<tool_call>[{"name": "a", "arguments": {}}]</tool_call>', [("a", "{}}]")]),
    "deeper-than-can-be-read": ("<tool_call>" + "[" * 100_000, [(UNREADABLE, "[" * 100_000)]),
    "within-a-line": ('Write <tool_call>{"name": "a", "arguments": {}}</tool_call>', []),
    "in-quotes": ('> <tool_call>{"name": "a", "arguments": {}}</tool_call>', []),
    "json-alone": ('{"name": "a", "arguments": {}}', []),
    "another-tag": ('<function_call>{"name": "a", "arguments": {}}</function_call>', []),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("text", "calls"), READ.values(), ids=READ.keys())
def test_calls_are_read_from_one_form(text: str, calls: list[tuple[str, str]]) -> None:
    assert calls_of(text) == calls


def test_a_text_without_calls_stays_as_it_is() -> None:
    prose = reply("The pod was OOMKilled.\n\n", "stop")

    assert out_of_text(prose) == prose


def test_a_cut_reply_still_says_so() -> None:
    found = out_of_text(reply('<tool_call>{"name": "a", "arg', "length"))

    assert (found.finish_reason, found.tool_calls[0].name) == ("length", "a")


@given(texts, st.lists(st.tuples(names, arguments), min_size=1, max_size=3))
def test_what_is_written_is_read_again(prose: str, wanted: list[tuple[str, dict[str, object]]]) -> None:
    calls = tuple(ToolCall(str(n), name, json.dumps(given)) for n, (name, given) in enumerate(wanted))
    written = in_text(ModelRequest("m", (Message("assistant", prose, calls),), ())).messages[0].content

    found = out_of_text(reply(written))

    assert [(call.name, json.loads(call.arguments)) for call in found.tool_calls] == wanted
    assert found.text == prose.rstrip()


@given(st.text(max_size=200), st.sampled_from(["", "<tool_call>", '\n<tool_call>{"name": "a"', "</tool_call>"]))
def test_any_text_is_read(text: str, more: str) -> None:
    found = out_of_text(reply(text + more + text))

    assert len(found.text) <= len(2 * text + more)
    assert all(call.name for call in found.tool_calls)
