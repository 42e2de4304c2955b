"""A round of the streams: each is asked, or its tools run, and what fails in one touches no other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case import facts
from inquest.core.case.steps import MoveStreams
from inquest.core.case.transitions import fold_case
from inquest.core.llm.conversation import AskModel, RunTools, ToolRun
from inquest.core.llm.messages import ModelReply, ModelRequest, ToolResult
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import Unavailable
from tests.unit.core import cases

READ = ToolResult("c", "kubectl_logs", "nothing")
ANSWER = cases.reply("the limit is too low")


class Outspoken:
    """Answers every stream but the one about logs."""

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        if request.value.phase == "logs":
            raise Unavailable("model")
        return ANSWER


async def moved(model: Outspoken | None) -> facts.Fact:
    async def plain(data: Any) -> Redacted[Any]:
        return seal(data)

    async def now() -> Any:
        return cases.AT

    async def run(*_: Any) -> tuple[ToolResult, ...]:
        return (READ,)

    ports = SimpleNamespace(model=model, redacted=plain, now=now, tools=SimpleNamespace(run=run))
    case = fold_case([cases.opened(model="m-1"), cases.resolved(), cases.taken()])
    work = SimpleNamespace(case=case, investigation=SimpleNamespace(name="inv-1"))
    asks = tuple((name, AskModel(ModelRequest("m-1", (), (), phase=name))) for name in ("pod", "logs"))
    runs = ("events", RunTools((ToolRun(cases.call("kubectl_events"), "E3", "00"),)))
    return await Inquiries(cast(Any, ports)).move_streams(cast(Any, work), MoveStreams((*asks, runs)))


async def test_all_streams_move_in_one_round_and_a_failed_call_is_silence_in_its_own() -> None:
    fact = await moved(Outspoken())

    assert isinstance(fact, facts.StreamsMoved)
    slots = dict(fact.moves)
    assert list(slots) == ["pod", "logs", "events"]
    assert slots["pod"] == ANSWER
    assert isinstance(slots["logs"], ModelReply)
    assert (slots["logs"].finish_reason, slots["logs"].text) == ("failed", "")
    assert slots["events"] == (READ,)


async def test_without_a_model_a_round_ends_the_case() -> None:
    fact = await moved(None)

    assert isinstance(fact, facts.Closed)
    assert "none is configured" in fact.verdict.message
