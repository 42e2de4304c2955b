"""One call of the model as the controller makes it: squeezed, late, or in vain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from inquest.api.types import HumanReviewReason, Phase, Reason
from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case import facts
from inquest.core.case.steps import CallModel
from inquest.core.case.transitions import fold_case
from inquest.core.llm.conversation import AskModel
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import ContextOverflow, ModelRefused, Unavailable
from tests.unit.core import cases

REQUEST = ModelRequest("m-1", (), ())
SHORTER = ModelRequest("m-1", (), (), max_tokens=1)
REPLY = cases.submitted()


@dataclass
class Spoken:
    """A model that does what the next function does."""

    turns: list[Callable[[], ModelReply]]
    heard: list[ModelRequest] = field(default_factory=list)
    slow: bool = False

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        self.heard.append(request.value)
        if self.slow:
            await asyncio.Event().wait()
        return self.turns.pop(0)()


def raising(error: Exception) -> Callable[[], ModelReply]:
    def speak() -> ModelReply:
        raise error

    return speak


async def plain(data: Any) -> Redacted[Any]:
    """The redaction of texts that hold no secret."""
    return seal(data)


async def now() -> datetime:
    return cases.AT


def ask(model: Spoken, move: AskModel, invocation: Invocation = Invocation.RCA) -> facts.Fact:
    ports = SimpleNamespace(model=model, redacted=plain, now=now)
    case = fold_case([cases.opened(model="m-1"), cases.resolved(), cases.taken(), cases.briefed()])
    work = SimpleNamespace(case=case, investigation=SimpleNamespace(name="inv-1"))
    return asyncio.run(Inquiries(cast(Any, ports)).ask(cast(Any, work), CallModel(invocation, move)))


OVERFLOW = ContextOverflow("ContextOverflow: too long", 8_000)


ERRORS = [ModelRefused("ModelRefused: no"), Unavailable("model")]


def test_a_conversation_that_is_too_long_is_asked_once_more_in_its_shorter_form() -> None:
    model = Spoken([raising(OVERFLOW), lambda: REPLY])
    fact = ask(model, AskModel(REQUEST, "TurnBudgetSpent", shorter=lambda: SHORTER))

    assert model.heard == [REQUEST, replace(SHORTER, squeezed=True)]
    assert fact == facts.RcaReplied(replace(REPLY, squeezed=True, reserved="TurnBudgetSpent"), cases.AT)


@pytest.mark.parametrize(
    ("turns", "shorter"),
    [([raising(OVERFLOW)], None), ([raising(OVERFLOW), raising(OVERFLOW)], SHORTER)],
    ids=["nothing can give way", "still too long"],
)
def test_after_that_it_is_permanent(turns: list[Callable[[], ModelReply]], shorter: ModelRequest | None) -> None:
    fact = ask(Spoken(turns), AskModel(REQUEST, shorter=lambda: shorter))

    assert isinstance(fact, facts.Closed)
    assert fact.verdict.reason is Reason.MODEL_UNAVAILABLE
    assert "ContextOverflow" in fact.verdict.message


@pytest.mark.parametrize(
    "error", [ModelRefused("ModelRefused: no"), Unavailable("model")], ids=["permanent", "transient"]
)
def test_no_answer_of_any_endpoint_fails_the_case(error: Exception) -> None:
    fact = ask(Spoken([raising(error)]), AskModel(REQUEST))

    assert isinstance(fact, facts.Closed)
    assert fact.verdict.reason is Reason.MODEL_UNAVAILABLE
    assert fact.verdict.review_reason is HumanReviewReason.INFRASTRUCTURE_FAILURE


@pytest.mark.parametrize(
    "error", [ModelRefused("ModelRefused: no"), Unavailable("model")], ids=["permanent", "transient"]
)
def test_where_a_verdict_stands_a_failed_call_is_only_silence(error: Exception) -> None:
    fact = ask(Spoken([raising(error)]), AskModel(REQUEST, stands=True))

    assert isinstance(fact, facts.RcaReplied)
    assert (fact.reply.text, fact.reply.finish_reason, fact.reply.usage.total) == ("", "failed", 0)


def test_an_answer_that_comes_too_late_is_not_waited_for() -> None:
    fact = ask(Spoken([], slow=True), AskModel(REQUEST, seconds=0.01))

    assert isinstance(fact, facts.Closed)
    assert (fact.verdict.phase, fact.verdict.reason) == (Phase.FAILED, Reason.TIMED_OUT)
    assert fact.timeout_phase is Phase.INVESTIGATING


def test_a_late_second_thought_leaves_the_first_verdict() -> None:
    fact = ask(Spoken([], slow=True), AskModel(REQUEST, seconds=0.01, stands=True), Invocation.SELECTION)

    assert isinstance(fact, facts.SelectionReplied)
    assert fact.reply.finish_reason == "failed"


def test_the_choice_of_the_gate_is_logged_with_its_reason() -> None:
    with capture_logs() as lines:
        ask(Spoken([lambda: REPLY]), AskModel(REQUEST))

    (line,) = [line for line in lines if line["event"] == "sufficiency"]
    assert (line["included"], line["reason"], line["topic"]) == (False, "NoQuestion", "memory")
