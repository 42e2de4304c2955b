"""Cases in which a model talks: scripted replies, and the batches that follow from them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Final

from inquest.api.types import Phase
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.steps import RunToolBatch, Step, Wait
from inquest.core.evidence.evidence import EvidenceStatus, digest_of
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ModelReply, ToolCall, ToolResult, ToolSchema
from inquest.core.llm.tool_calls import error_text
from tests.unit.core import cases

PARAMETERS: Final = {"type": "object", "properties": {"kind": {"type": "string"}, "name": {"type": "string"}}}
TOOLS: Final = {
    Invocation.RCA: (ToolSchema("get", "reads", PARAMETERS), ToolSchema("logs", "reads logs", PARAMETERS)),
    Invocation.SELECTION: (ToolSchema("list_workflows", "lists", {"type": "object", "properties": {}}),),
}
REFUSED: Final = error_text("[refused] kind Secret is blocked", "look at the pod")
LATE: Final = error_text("[timed out after 60 s]", "ask for less")


def answered(run: ToolRun) -> ToolResult:
    """What the tools would say: a Secret is refused, `logs` takes too long, all else is read in 40 ms."""
    made = replace(cases.ran(run), milliseconds=40)
    assert made.evidence is not None
    made = replace(made, evidence=replace(made.evidence, arguments=json.loads(run.call.arguments)))
    if '"Secret"' in run.call.arguments:
        return _failed(made, REFUSED)
    if run.call.name == "logs":
        return _failed(made, LATE)
    return made


def _failed(made: ToolResult, text: str) -> ToolResult:
    assert made.evidence is not None
    gap = replace(made.evidence, text=text, digest=digest_of(text), status=EvidenceStatus.GAP)
    return replace(made, content=f"framed {text}", evidence=gap, error=True)


def calling(*calls: ToolCall, text: str = "", milliseconds: int = 1500) -> ModelReply:
    return replace(cases.reply(text, *calls), milliseconds=milliseconds)


def asks(number: int, tool: str = "get", **arguments: str | int) -> ToolCall:
    return ToolCall(f"call-{number}", tool, json.dumps(arguments))


class Talking(cases.World):
    """The world of a case with a model, whose tools answer as `answered` says; a second passes with every step."""

    def perform(self, step: Step, now: datetime) -> facts.Fact:
        if isinstance(step, RunToolBatch):
            return facts.ToolsRan(step.invocation, tuple(answered(run) for run in step.move.runs), now)
        return super().perform(step, now)


def talked(*replies: ModelReply, until: int = 100) -> Case:
    """The case after these replies, or as far as so many steps lead."""
    world = Talking(settings={"model": "m-1"}, replies=iter(replies))
    case = Case()
    for number in range(until):
        if case.closed is not None or case.phase is Phase.AWAITING_APPROVAL:
            break
        try:
            case, step = world.step(case, cases.view(5 + number, tools=TOOLS))
        except StopIteration:
            break
        if isinstance(step, Wait):
            break
    return case


WHOLE: Final = (
    calling(asks(1, kind="pod", name="api-1"), asks(2, kind="Secret", name="db"), text="I look at the pod."),
    calling(asks(3, kind="pod", name="api-1"), asks(4, "logs", kind="pod"), asks(5, "invented")),
    cases.submitted(),
    calling(asks(6, "list_workflows")),
    cases.chose(),
)
"""Read, refused; repeated, too late, not offered; verdict; a workflow."""


def whole() -> Case:
    """A case with everything in it that can become of a call, up to the request for approval."""
    return talked(*WHOLE)


__all__ = ["TOOLS", "WHOLE", "asks", "calling", "talked", "whole"]
