"""Conversations in a few words; no model, no tool, no clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from inquest.core.evidence.evidence import Evidence, EvidenceStatus, digest_of
from inquest.core.llm.conversation import AskModel, Budgets, Concluded, Conversation, RunTools, ToolRun
from inquest.core.llm.loop import begin_conversation, next_move, with_reply
from inquest.core.llm.messages import Invocation, Message, ModelReply, ToolCall, ToolResult, ToolSchema, Usage
from inquest.core.llm.tool_calls import error_text
from inquest.core.llm.tool_results import with_results
from inquest.core.llm.window import estimate_tokens

AT = datetime(2026, 11, 22, tzinfo=UTC)
TOOLS = tuple(
    ToolSchema(
        name,
        "",
        {
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "name": {"type": "string", "default": ""},
                "limit": {"type": "integer"},
                "offset": {"type": "integer", "default": 0},
                "a": {},
                "b": {},
            },
        },
    )
    for name in ("kubectl_get", "kubectl_describe", "read_evidence", "list_workflows")
)
VERDICT: Mapping[str, Any] = {"root_cause_analysis": {"summary": "The limit is too low"}, "confidence": 0.9}


def inquiry(invocation: Invocation = Invocation.RCA, **more: Any) -> Conversation:
    budgets = Budgets(
        **{key: more.pop(key) for key in list(more) if key in Budgets.__dataclass_fields__ and key != "calls"}
    )
    opening = (Message("system", "s"), Message("user", "u"))
    return begin_conversation(invocation, model="m", opening=opening, tools=TOOLS, seed="00", budgets=budgets, **more)


def roomy(tokens: int, **more: Any) -> Conversation:
    """A conversation with room for so many tokens beside prompt and schemas."""
    return inquiry(window=16_000 + estimate_tokens(inquiry()) + tokens, **more)


def call(name: str = "kubectl_get", /, **arguments: Any) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments))


def submit(name: str = "submit_result", /, **more: Any) -> ToolCall:
    return ToolCall("", name, json.dumps({**VERDICT, **more}))


USAGE = Usage(100, 0, 10)


def says(*calls: ToolCall, text: str = "", finish: str = "", usage: Usage = USAGE) -> ModelReply:
    return ModelReply(text, calls, finish or ("tool_calls" if calls else "stop"), usage, "m")


def found(run: ToolRun, text: str | None = None, *, empty: bool = False) -> ToolResult:
    """What a tool found; another text for every run unless one is given."""
    said = f"found by {run.evidence_id}" if text is None else text
    evidence = Evidence(
        run.evidence_id,
        run.call.name,
        json.loads(run.call.arguments or "{}"),
        said,
        digest_of(said),
        EvidenceStatus.OK,
        AT,
        said,
        empty,
    )
    return ToolResult(run.call.id, run.call.name, f"{run.evidence_id} {said}", evidence)


def failed(run: ToolRun, *, terminal: bool = False) -> ToolResult:
    return ToolResult(run.call.id, run.call.name, error_text("boom"), error=True, terminal=terminal)


def asked(state: Conversation, elapsed: float = 0.0) -> AskModel:
    move = next_move(state, elapsed=elapsed)
    assert isinstance(move, AskModel), move
    return move


def running(state: Conversation) -> tuple[ToolRun, ...]:
    move = next_move(state)
    assert isinstance(move, RunTools), move
    return move.runs


def ended(state: Conversation) -> Concluded:
    move = next_move(state)
    assert isinstance(move, Concluded), move
    return move


def turn(state: Conversation, *calls: ToolCall, text: str | None = None) -> Conversation:
    """One whole turn: the model asks for these calls, the tools find something."""
    state = with_reply(state, asked(state).stamp(says(*calls)))
    return with_results(state, tuple(found(run, text) for run in running(state)))
