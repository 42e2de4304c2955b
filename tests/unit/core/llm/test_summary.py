"""A long result in fewer words: what is shown changes, what is stored does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case import facts
from inquest.core.case.steps import RunToolBatch
from inquest.core.case.transitions import fold_case
from inquest.core.llm.conversation import RunTools, ToolRun
from inquest.core.llm.loop import with_reply
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest, ToolResult, Usage
from inquest.core.llm.planning.prepare import RcaOptions
from inquest.core.llm.summary import SUMMARY_READS, summarise_result, summary_request, wants_summary
from inquest.core.llm.tool_results import with_results
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import Unavailable
from tests.unit.core import cases
from tests.unit.core.llm.conftest import call, inquiry, running, says

LONG = "\n".join(f"line {number} of a long log" for number in range(1_000))


def result(text: str = LONG, tool: str = "kubectl_logs", **changes: Any) -> ToolResult:
    found = replace(cases.evidence(3, text), tool=tool)
    return replace(ToolResult("c", tool, f"E3 {text}", found), **changes)


SAYS = ModelReply("exit code 137, out of memory\n999 lines left out", (), "stop", Usage(900, 0, 20), "m")


@pytest.mark.parametrize(
    ("found", "above", "expected"),
    [
        (result(), 8_000, True),
        (result(), 0, False),
        (result("short"), 8_000, False),
        (result(error=True), 8_000, False),
        (result(tool="read_evidence"), 8_000, False),
    ],
    ids=["long", "switched off", "short", "an error", "a page that was asked for"],
)
def test_which_results_are_shortened(found: ToolResult, above: int, expected: bool) -> None:
    assert wants_summary(found, above) is expected


def test_the_summary_is_shown_and_the_evidence_stays_whole() -> None:
    short = summarise_result(result(), SAYS, "00")

    assert short.evidence is not None
    assert (short.evidence.text, short.evidence.digest) == (LONG, cases.evidence(3, LONG).digest)
    assert short.evidence.shown == SAYS.text
    assert f'summary of {len(LONG)} characters; the whole: read_evidence("E3")' in short.content
    assert "line 500" not in short.content
    assert short.usage == SAYS.usage


@pytest.mark.parametrize(
    "reply",
    [replace(SAYS, text=" "), replace(SAYS, finish_reason="length"), replace(SAYS, text=LONG + LONG)],
    ids=["nothing", "cut", "longer than the text"],
)
def test_a_summary_of_no_use_is_not_shown_but_counted(reply: ModelReply) -> None:
    assert summarise_result(result(), reply, "00") == replace(result(), usage=reply.usage)


def test_the_question_holds_the_text_in_a_frame_and_no_tool() -> None:
    request = summary_request("m", result("x" * 200_000).evidence, "00")  # type: ignore[arg-type]
    system, user = request.messages

    assert request.tools == ()
    assert SUMMARY_READS < len(user.content) < SUMMARY_READS + 200
    assert system == summary_request("m", result().evidence, "01").messages[0]  # type: ignore[arg-type]


def test_its_tokens_count_in_the_budget() -> None:
    state = with_reply(inquiry(), says(call(kind="Pod")))
    (run,) = running(state)
    before = state.usage
    answered = with_results(state, (replace(summarise_result(result(), SAYS, "00"), call_id=run.call.id),))

    assert answered.usage == before + SAYS.usage


# --- in the controller -----------------------------------------------------------------------------------------------


@dataclass
class Spoken:
    speak: Callable[[], ModelReply]
    heard: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        self.heard.append(request.value)
        return self.speak()


async def plain(data: Any) -> Redacted[Any]:
    """The redaction of texts that hold no secret."""
    return seal(data)


async def now() -> Any:
    return cases.AT


async def ran(*_: Any) -> tuple[ToolResult, ...]:
    return (result(), result("short", call_id="d"))


def batch(model: Spoken, **habits: Any) -> facts.ToolsRan:
    ports = SimpleNamespace(model=model, redacted=plain, now=now, tools=SimpleNamespace(run=ran))
    case = fold_case([cases.opened(model="m-1", habits=RcaOptions(**habits)), cases.resolved(), cases.taken()])
    work = SimpleNamespace(case=case, investigation=SimpleNamespace(name="inv-1"))
    runs = (ToolRun(call("kubectl_logs"), "E3", "00"),)
    step = RunToolBatch(Invocation.RCA, RunTools(runs, 100.0))
    fact = asyncio.run(Inquiries(cast(Any, ports)).batch(cast(Any, work), step))
    assert isinstance(fact, facts.ToolsRan)
    return fact


def test_only_what_is_long_is_shortened_and_only_where_it_is_switched_on() -> None:
    on, off = Spoken(lambda: SAYS), Spoken(lambda: SAYS)
    long, short = batch(on, summarize_above=8_000).results

    assert (long.usage.total, short) == (920, result("short", call_id="d"))
    assert len(on.heard) == 1
    assert batch(off).results == (result(), result("short", call_id="d"))
    assert off.heard == []


def test_where_the_summary_fails_the_text_itself_is_shown() -> None:
    def speak() -> ModelReply:
        raise Unavailable("model")

    assert batch(Spoken(speak), summarize_above=8_000).results[0] == result()
