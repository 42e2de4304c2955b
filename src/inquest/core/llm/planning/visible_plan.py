"""What a model set out to look at, and how far it came.

The plan is read out of its first message; what became of a step follows
from the calls that are booked to it and from nothing that the model says about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from inquest.api.findings import StepState
from inquest.core.llm.messages import ModelReply, ToolResult
from inquest.core.llm.reply.schemas import SUBMIT_TOOLS
from inquest.core.llm.tool_calls import arguments_of
from inquest.core.text import abbreviate, make_visible

MIN_STEPS: Final = 3
MAX_STEPS: Final = 12
STEP_CHARACTERS: Final = 200
STEP_ARGUMENT: Final = "step"
"""Number with which a call may say to which step it belongs; no tool reads it."""
SUBMIT_NAMES: Final = frozenset(tool.name for tools in SUBMIT_TOOLS.values() for tool in tools)


class PlannedTurn(Protocol):
    """One reply and the answers to its calls, as `inquiry.Turn` has them."""

    @property
    def reply(self) -> ModelReply: ...

    @property
    def results(self) -> tuple[ToolResult, ...]: ...


@dataclass(frozen=True)
class Step:
    """One step of the plan; `evidence` holds the ids that its calls gave."""

    text: str
    state: StepState = StepState.PENDING
    evidence: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.state in (StepState.PENDING, StepState.IN_PROGRESS)


@dataclass(frozen=True)
class PlanBlock:
    """A plan as it stands in a text, and the text without it."""

    steps: tuple[str, ...]
    rest: str


# --- the block -------------------------------------------------------------------------------------------------

_HEADING: Final = re.compile(r"^[\s#*_>`]*INVESTIGATION_PLAN[\s*_`]*:[\s*_`]*$", re.IGNORECASE)
_ITEM: Final = re.compile(r"^\s{0,3}(?:[-*•]|\d{1,3}[.)])\s+(?P<text>\S.*)$")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)\w*\s*$")
_MORE: Final = re.compile(r"^(?:\s{4,}|\t\s*)(?P<text>\S.*)$")


def plan_block(text: str, *, least: int = MIN_STEPS) -> PlanBlock | None:
    """The block at the start of a text; None where there is none, or one of fewer than `least` items."""
    lines = text.splitlines()
    start = _after_heading(lines)
    if start is None:
        return None
    fenced = any(_FENCE.match(line) for line in lines[:start])
    items, end = _items(lines, start)
    if len(items) < least:
        return None
    if fenced and end < len(lines) and _FENCE.match(lines[end]):
        end += 1
    return PlanBlock(tuple(map(_shown, items[:MAX_STEPS])), "\n".join(lines[end:]).strip())


def without_plan(text: str) -> str:
    """What a reader sees of a message: the plan has a place of its own."""
    block = plan_block(text)
    return text if block is None else block.rest


def _after_heading(lines: Sequence[str]) -> int | None:
    """Number of the line after the heading, which must be the first that says anything."""
    for number, line in enumerate(lines):
        if _HEADING.match(line):
            return number + 1
        if line.strip() and not _FENCE.match(line):
            return None
    return None


def _items(lines: Sequence[str], start: int) -> tuple[list[str], int]:
    items: list[str] = []
    for number, line in enumerate(lines[start:], start=start):
        item, more = _ITEM.match(line), _MORE.match(line)
        if item:
            items.append(item["text"])
        elif more and items:
            items[-1] += f" {more['text']}"
        elif line.strip() or items:
            return items, number
    return items, len(lines)


def _shown(text: str) -> str:
    return abbreviate(make_visible(" ".join(text.split())).strip("*_` "), STEP_CHARACTERS)


# --- the plan of a conversation -----------------------------------------------------------------------------------


def plan_of(turns: Iterable[PlannedTurn], *, ended: bool = False) -> tuple[Step, ...]:
    """The steps with their states; after the end what nobody touched is Skipped."""
    plan: tuple[Step, ...] = ()
    for number, turn in enumerate(turns):
        plan = _revised(plan, turn.reply.text, first=not number)
        plan = _booked(plan, turn)
    if len(plan) < MIN_STEPS:
        return ()
    return tuple(replace(step, state=StepState.SKIPPED) if step.is_open else step for step in plan) if ended else plan


def _revised(plan: tuple[Step, ...], text: str, *, first: bool) -> tuple[Step, ...]:
    """A later block replaces what is open; only the first message can begin a plan."""
    finished = tuple(step for step in plan if not step.is_open)
    least = MIN_STEPS if first else max(1, MIN_STEPS - len(finished))
    block = plan_block(text, least=least) if first or plan else None
    if block is None:
        return plan
    known = {step.text for step in finished}
    return (*finished, *(Step(text) for text in block.steps if text not in known))[:MAX_STEPS]


# --- booking -----------------------------------------------------------------------------------------------------


def _booked(plan: tuple[Step, ...], turn: PlannedTurn) -> tuple[Step, ...]:
    """Every call of the turn on its step; a verdict's turn looks at nothing."""
    calls = turn.reply.tool_calls
    if any(call.name in SUBMIT_NAMES for call in calls):
        return plan
    default = next((index for index, step in enumerate(plan) if step.is_open), None)
    answers = {result.call_id: result for result in turn.results}
    for call in calls:
        said = (arguments_of(call) or {}).get(STEP_ARGUMENT)
        at = said - 1 if type(said) is int and 1 <= said <= len(plan) else default
        if at is not None:
            plan = (*plan[:at], _after_call(plan[at], answers.get(call.id)), *plan[at + 1 :])
    return plan


def _after_call(step: Step, result: ToolResult | None) -> Step:
    """Done by one success, an authoritative "none" included; Failed while every call failed."""
    if result is None:
        return replace(step, state=StepState.IN_PROGRESS) if step.is_open else step
    if result.error:
        return replace(step, state=StepState.FAILED) if step.is_open else step
    found = (result.evidence.id,) if result.evidence is not None else ()
    return replace(step, state=StepState.DONE, evidence=tuple(dict.fromkeys((*step.evidence, *found))))
