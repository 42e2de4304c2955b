"""What becomes of a case whose model does not answer: every class of failure, and what stays (behaviours, 12.4)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from pydantic import SecretStr

from hack.scripted_model.server import Serving
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.model import OpenAIModel
from inquest.api.investigation import InvestigationStatus
from inquest.api.types import HumanReviewReason, Phase, Reason
from inquest.controllers.investigation.gather import Inquiries
from inquest.core.case.case import Case
from inquest.core.case.steps import CallModel
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.evidence.evidence import Finding
from inquest.core.llm.conversation import AskModel
from inquest.core.llm.messages import Invocation
from inquest.core.redaction.redacted import seal
from inquest.core.reporting.conditions import condition_values
from inquest.core.reporting.status import status_changes
from tests.integration.adapters.llm.conftest import KEY, QUESTION, FakeClock, Start, connected, redacted
from tests.support.tables import row
from tests.unit.core import cases

SLOW = "steps: [{delay: 2, reply: {text: late}}]"
HELLO = "steps: [{reply: {text: hello}}]"
CRASH = "Container app ends with exit code 1 again and again"
FOUND = (cases.finding_of("CrashLoopBackOff", summary=CRASH),)
SAID = "boom inside the library"


async def asked(model: OpenAIModel, found: tuple[Finding, ...] = FOUND) -> Case:
    """A case whose snapshot is taken, after its first question."""
    case = fold_case([cases.opened(model="m1"), cases.resolved(), cases.taken(*found), cases.briefed()])
    ports = SimpleNamespace(model=model, redacted=_sealed, now=_now)
    work = SimpleNamespace(case=case, investigation=SimpleNamespace(name="inv-1"))
    step = CallModel(Invocation.RCA, AskModel(QUESTION, seconds=60.0))
    return advance_case(case, await Inquiries(cast(Any, ports)).ask(cast(Any, work), step))


async def _sealed(data: Any) -> Any:
    return seal(data)


async def _now() -> Any:
    return cases.AT


def status_of(case: Case) -> InvestigationStatus:
    return InvestigationStatus(**status_changes(case))


@row("L14")
async def test_where_no_model_answers_in_time_the_detectors_word_stays(script: Start, clock: FakeClock) -> None:
    async with connected(clock, script(SLOW), script(SLOW), patience=ModelTimeouts(whole=0.05, attempts=2)) as model:
        case = await asked(model)

    status, conditions = status_of(case), condition_values(case)
    assert (status.phase, status.reason) == (Phase.FAILED, Reason.MODEL_UNAVAILABLE)
    assert status.human_review_reason is HumanReviewReason.INFRASTRUCTURE_FAILURE
    assert "ModelTimeout" in (status.message or "")
    assert (conditions["ModelAvailable"].status, conditions["ModelAvailable"].reason) == ("False", "TransientError")
    assert "ModelTimeout" in conditions["ModelAvailable"].message
    assert status.root_cause is not None
    assert (status.root_cause.summary, status.root_cause.signal_type) == (CRASH, "CrashLoopBackOff")
    assert [found.category for found in status.findings] == ["CrashLoopBackOff"]
    assert [item.id for item in status.evidence] == ["E1"]
    assert status.snapshot is not None


class Breaking:
    """What is told of a key, and fails in a way that nobody foresaw."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, key: str) -> None:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError(SAID)


def breaking(serving: Serving) -> ModelEndpoint:
    return ModelEndpoint(serving.base_url, "m1", SecretStr(KEY), on_key=Breaking())


@row("L15")
async def test_an_unknown_error_of_the_call_is_permanent_and_the_next_model_is_asked(
    script: Start, clock: FakeClock
) -> None:
    first = script(HELLO)
    async with connected(clock, breaking(first), script(HELLO)) as model:
        reply = await model.ask(redacted())

    assert (reply.text, reply.endpoint, clock.sleeps) == ("hello", "model m2 at 127.0.0.1", [])
    assert first.requests == []


@row("L15")
async def test_the_text_of_an_unknown_error_is_in_the_message_and_in_no_diagnosis(
    script: Start, clock: FakeClock
) -> None:
    async with connected(clock, breaking(script(HELLO))) as model:
        case = await asked(model)

    status, conditions = status_of(case), condition_values(case)
    assert (status.phase, status.reason) == (Phase.FAILED, Reason.MODEL_UNAVAILABLE)
    assert conditions["ModelAvailable"].reason == "PermanentError"
    assert SAID in (status.message or "")
    assert SAID not in str(status.root_cause)
    assert status.root_cause is not None
    assert status.root_cause.summary == CRASH


async def test_with_nothing_found_the_cause_is_not_determined(script: Start, clock: FakeClock) -> None:
    """Not even then is the error's text a cause: the class is named, nothing else."""
    async with connected(clock, breaking(script(HELLO))) as model:
        case = await asked(model, found=())

    cause = status_of(case).root_cause
    assert cause is not None
    assert cause.summary == "not determined: ModelRejected"
    assert status_of(case).confidence == 0.0
