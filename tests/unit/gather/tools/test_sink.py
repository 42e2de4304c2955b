"""What the tools made passes the redactor once more on its way to the model, and must come out as it went in."""

from __future__ import annotations

from collections.abc import Callable

from inquest.core.llm.conversation import AskModel, RunTools
from inquest.core.llm.loop import begin_conversation, next_move, with_reply
from inquest.core.llm.messages import Invocation, Message, ModelReply, ToolCall, Usage
from inquest.core.llm.tool_results import with_results
from inquest.core.redaction.redactor import Redactor
from tests.unit.gather.tools.conftest import Bench, event, pod


async def test_a_whole_request_is_unchanged_by_the_second_redaction(bench: Callable[..., Bench]) -> None:
    make = bench(pod(), event("one"))
    opening = (Message("system", "You look for causes."), Message("user", "Investigate: critical x in shop — y"))
    tools = make.tools.schemas(Invocation.RCA)
    state = begin_conversation(Invocation.RCA, model="m", opening=opening, tools=tools, seed="9f" * 16)
    calls = tuple(
        ToolCall("", name, arguments)
        for name, arguments in (
            ("kubectl_describe", '{"kind": "Pod", "name": "checkout-6d5f7c9b8-x2x4q"}'),
            ("kubectl_get", '{"kind": "Pod", "output": "json"}'),
            ("kubectl_events", "{}"),
            ("kubectl_get", '{"kind": "Secret"}'),
        )
    )
    state = with_reply(state, ModelReply("", calls, "tool_calls", Usage(), "m"))
    move = next_move(state)
    assert isinstance(move, RunTools)
    state = with_results(state, await make.tools.batch(Invocation.RCA, move.runs, make.context))
    ask = next_move(state)
    assert isinstance(ask, AskModel)

    assert Redactor().strings(ask.request).value == ask.request
