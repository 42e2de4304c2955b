"""Which calls of a batch are made, and which are repeats or refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Any, Final

from inquest.core.evidence.short_forms import cut_marker
from inquest.core.llm.conversation import (
    BEFORE,
    AnsweredCall,
    CallCounts,
    Conversation,
    Planned,
    RepeatedCall,
    SeenResult,
    ToolRun,
)
from inquest.core.llm.messages import Invocation, ToolCall, ToolResult, ToolSchema
from inquest.core.llm.reply.schemas import SUBMIT_TOOLS
from inquest.core.text import frame_text

REPLAY_CHARACTERS: Final = 8_000
PAGING_TOOLS: Final = frozenset({"list_workflows", "list_available_actions", "read_evidence"})
MARKER_ROOM: Final = 60
TRUNCATED: Final = "[truncated]"


def plan_calls(inquiry: Conversation, calls: tuple[ToolCall, ...]) -> tuple[Planned, ...]:
    """What becomes of each call, in order."""
    return plan_batch(inquiry, calls)[0]


def plan_batch(inquiry: Conversation, calls: tuple[ToolCall, ...]) -> tuple[tuple[Planned, ...], Conversation]:
    """What becomes of each call, and the conversation with all of them counted."""
    plans: list[Planned] = []
    batch: dict[str, str] = {}
    for call in calls:
        plan, inquiry = _plan_one(inquiry, call, batch)
        plans.append(plan)
    return tuple(plans), inquiry


def _plan_one(inquiry: Conversation, call: ToolCall, batch: dict[str, str]) -> tuple[Planned, Conversation]:
    """Repeats are free; all else counts, what is refused too."""
    key = key_of(inquiry, call)
    if key in inquiry.seen:
        seen = inquiry.seen[key]
        head = f"{_when(seen)}\n"
        room = REPLAY_CHARACTERS - len(head) - 200
        boundary = boundary_of(inquiry.seed, f"{seen.evidence}/{call.id}")
        text = head + frame_text(_fitted(inquiry, seen, room), seen.evidence, call.name, boundary)
        replay = ToolResult(call.id, call.name, text, repeat=True)
        return AnsweredCall(replay), inquiry
    if key in batch:
        return RepeatedCall(call, batch[key]), inquiry
    counted = replace(inquiry, calls=_counted(inquiry.calls, call))
    refused = next((result for rule in REFUSALS if (result := rule(counted, call)) is not None), None)
    if refused is not None:
        over = counted.calls.total > counted.budgets.calls
        return AnsweredCall(refused), replace(counted, overspent=counted.overspent or over)
    batch[key] = call.id
    evidence_id = f"E{counted.first_evidence + counted.runs}"
    return ToolRun(call, evidence_id, boundary_of(counted.seed, evidence_id)), replace(counted, runs=counted.runs + 1)


def boundary_of(seed: str, evidence_id: str) -> str:
    """128 bits in hex that nobody can guess who does not know the seed."""
    return hashlib.sha256(f"{seed}/{evidence_id}".encode()).hexdigest()[:32]


def _counted(calls: CallCounts, call: ToolCall) -> CallCounts:
    if _is_next_page(call):
        return replace(calls, total=calls.total + 1)
    return CallCounts(calls.total + 1, {**calls.by_tool, call.name: calls.by_tool.get(call.name, 0) + 1})


def _is_next_page(call: ToolCall) -> bool:
    offset = (arguments_of(call) or {}).get("offset")
    return call.name in PAGING_TOOLS and type(offset) is int and offset > 0


# --- refusals -------------------------------------------------------------------------------------------------


def _above_total(inquiry: Conversation, call: ToolCall) -> ToolResult | None:
    most = inquiry.budgets.calls
    if inquiry.calls.total <= most:
        return None
    return error_result(call, f"limit reached: {most} tool calls", "give your verdict from what is known")


def _not_offered(inquiry: Conversation, call: ToolCall) -> ToolResult | None:
    names = [tool.name for tool in all_tools(inquiry)]
    if call.name in names:
        return None
    return error_result(call, f"tool not found: {call.name}", f"offered: {', '.join(names)}")


def _unreadable(inquiry: Conversation, call: ToolCall) -> ToolResult | None:
    if arguments_of(call) is not None:
        return None
    hint = "write one complete JSON object that fits the tool's schema"
    return error_result(call, "arguments: not a JSON object", hint)


def _hopeless(inquiry: Conversation, call: ToolCall) -> ToolResult | None:
    key = key_of(inquiry, call)
    if key in inquiry.blocked:
        return replace(error_result(call, "[unavailable] not run again", "it is recorded as a gap"), repeat=True)
    if inquiry.failures.get(key, 0) < inquiry.budgets.identical_failures:
        return None
    return replace(error_result(call, "repeated failure: not run again", "do something else"), repeat=True)


def _above_tool(inquiry: Conversation, call: ToolCall) -> ToolResult | None:
    most = inquiry.budgets.calls_per_tool
    if inquiry.calls.by_tool.get(call.name, 0) <= most or _is_next_page(call):
        return None
    return error_result(call, f"limit reached: {most} calls of {call.name}", "use another tool, or give your verdict")


REFUSALS: Final[tuple[Callable[[Conversation, ToolCall], ToolResult | None], ...]] = (
    _above_total,
    _not_offered,
    _unreadable,
    _hopeless,
    _above_tool,
)


def error_result(call: ToolCall, error: str, hint: str) -> ToolResult:
    """The answer to a call that was not made."""
    return ToolResult(call.id, call.name, error_text(error, hint), error=True)


def error_text(error: str, hint: str = "") -> str:
    """The form of every failure that a model is shown."""
    shown = {"status": "error", "error": error} | ({"hint": hint} if hint else {})
    return json.dumps(shown, ensure_ascii=False)


def _fitted(inquiry: Conversation, seen: SeenResult, room: int) -> str:
    """What is cut says so; where the rest can be read, it says how."""
    if len(seen.text) <= room:
        return seen.text
    kept = seen.text[: room - MARKER_ROOM]
    is_readable = any(tool.name == "read_evidence" for tool in inquiry.tools)
    note = cut_marker(len(seen.text) - len(kept), seen.evidence) if is_readable else TRUNCATED
    return f"{kept}\n{note}"


def _when(seen: SeenResult) -> str:
    if seen.turn != BEFORE:
        return f"already returned as {seen.evidence} in turn {seen.turn}"
    rest = f"; its warning events are {seen.beside}" if seen.beside else ""
    return f"already read as {seen.evidence} before the first turn{rest}"


# --- the tools of a conversation ---------------------------------------------------------------------------------


def submit_tools(invocation: Invocation) -> tuple[ToolSchema, ...]:
    """The tools through which a verdict comes."""
    return SUBMIT_TOOLS[invocation]


def all_tools(inquiry: Conversation) -> tuple[ToolSchema, ...]:
    """Everything that is offered on an ordinary turn."""
    return (*inquiry.tools, *submit_tools(inquiry.invocation))


def submit_names(inquiry: Conversation) -> str:
    """The submit tools in words."""
    return " or ".join(tool.name for tool in submit_tools(inquiry.invocation))


# --- equality of calls ----------------------------------------------------------------

KIND_WORDS: Final[Mapping[str, str]] = {
    "po": "pod", "pods": "pod", "no": "node", "nodes": "node", "ns": "namespace", "namespaces": "namespace",
    "svc": "service", "services": "service", "cm": "configmap", "configmaps": "configmap",
    "deploy": "deployment", "deployments": "deployment", "rs": "replicaset", "replicasets": "replicaset",
    "sts": "statefulset", "statefulsets": "statefulset", "ds": "daemonset", "daemonsets": "daemonset",
    "jobs": "job", "cj": "cronjob", "cronjobs": "cronjob", "ev": "event", "events": "event",
    "pvc": "persistentvolumeclaim", "persistentvolumeclaims": "persistentvolumeclaim",
    "pv": "persistentvolume", "persistentvolumes": "persistentvolume",
    "hpa": "horizontalpodautoscaler", "horizontalpodautoscalers": "horizontalpodautoscaler",
    "pdb": "poddisruptionbudget", "poddisruptionbudgets": "poddisruptionbudget",
    "ing": "ingress", "ingresses": "ingress", "quota": "resourcequota", "resourcequotas": "resourcequota",
    "netpol": "networkpolicy", "networkpolicies": "networkpolicy",
}  # fmt: skip


def canonical_arguments(value: object) -> str:
    """Keys sorted, order of lists kept; true, 1 and 1.0 stay three things."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as an object; None when they are none. Nothing at all counts as the empty object."""
    if not call.arguments.strip():
        return {}
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def key_of(inquiry: Conversation, call: ToolCall) -> str:
    """Equal for calls that ask the same: defaults filled, nulls and surplus keys out, the kind's word resolved."""
    arguments = arguments_of(call)
    if arguments is None:
        return f"{call.name} {call.arguments}"
    known = next((tool.parameters.get("properties", {}) for tool in inquiry.tools if tool.name == call.name), None)
    given = {name: value for name, value in arguments.items() if value is not None and (known is None or name in known)}
    full = {
        name: schema["default"] for name, schema in (known or {}).items() if schema.get("default") is not None
    } | given
    if isinstance(full.get("kind"), str):
        word = full["kind"].strip().lower()
        full["kind"] = KIND_WORDS.get(word, word)
    return f"{call.name} {canonical_arguments(full)}"


@dataclass(frozen=True)
class PrefetchedCall:
    """A call that would read again what stands in this evidence."""

    tool: str
    arguments: Mapping[str, Any]
    evidence: str
    optional: tuple[str, ...] = ()
    """Arguments that a call may leave out and mean the same."""
    beside: str = ""
    """Evidence that holds the rest of what the call would give; empty: there is no rest."""


def add_prefetched(inquiry: Conversation, known: Iterable[tuple[PrefetchedCall, str]]) -> Conversation:
    """The conversation in which these calls are repeats; each with the text of its evidence."""
    offered = {tool.name for tool in inquiry.tools}
    seen = {
        key_of(inquiry, call): SeenResult(one.evidence, BEFORE, text, one.beside)
        for one, text in known
        if one.tool in offered
        for call in _spellings(one)
    }
    return replace(inquiry, seen={**inquiry.seen, **seen})


def _spellings(one: PrefetchedCall) -> Iterator[ToolCall]:
    sizes = range(len(one.optional) + 1)
    for left_out in chain.from_iterable(combinations(one.optional, size) for size in sizes):
        said = {key: value for key, value in one.arguments.items() if key not in left_out}
        yield ToolCall("", one.tool, canonical_arguments(said))
