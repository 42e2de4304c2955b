"""What invocation 1 begins with, decided once and journalled: habits, tools, what to look at first, the gate's word.

A later look at the case folds the same conversation from it, whatever the clock says and whatever is offered then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from inquest.api.investigation import PinnedSignal
from inquest.api.types import Mode
from inquest.core.diagnosis.playbooks import PlaybookMatch
from inquest.core.evidence.evidence import EvidenceStatus, Finding, ObservedObject
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.llm.messages import Invocation, ToolSchema
from inquest.core.llm.planning.sufficiency import Include, SnapshotQuestion, Sufficiency, judge_sufficiency
from inquest.core.llm.planning.tools import TOOL_BUDGET, ToolPlan, offer_tools, plan_tools
from inquest.core.llm.reply.schemas import SUBMIT_TOOLS
from inquest.core.llm.tool_calls import PrefetchedCall


@dataclass(frozen=True)
class RcaOptions:
    """How invocation 1 goes about its work; each may be changed alone."""

    error_hints: bool = True
    """Say what a known failure of a read means, beside its own words."""
    visible_plan: bool = True
    sufficiency: Sufficiency = Sufficiency.LENIENT
    freshness: timedelta = timedelta(seconds=30)
    """A snapshot that is older is stale."""
    tool_budget: int = TOOL_BUDGET
    max_schemas: int = 32
    stagnant_turns: int = 2
    model_timeout: timedelta = timedelta(seconds=120)
    summarize_above: int = 0
    """Characters above which a result is shortened by the model; 0: never."""
    streams: bool = False
    """Let four looks at one thing each follow where the root cause stays open."""


@dataclass(frozen=True)
class Preparation:
    """What was decided before the first turn."""

    tools: tuple[ToolSchema, ...]
    plan: ToolPlan = field(default_factory=ToolPlan)
    sufficiency: str = ""
    """The sentence for the prompt; empty where nothing is said."""
    doubt: str = ""
    """Why nothing is said."""
    playbooks: tuple[PlaybookMatch, ...] = ()
    known: tuple[PrefetchedCall, ...] = ()
    """Calls that are not run, for the snapshot read the same."""


READ_BY: Final = {
    "target": "kubectl_describe",
    "pods": "kubectl_get",
    "warning events": "kubectl_events",
    "log": "kubectl_logs",
    "previous log": "kubectl_previous_logs",
}
"""Reads of the snapshot and the tool that would read the same."""


def prepare_case(
    signal: PinnedSignal,
    snapshot: Snapshot,
    findings: tuple[Finding, ...],
    tools: tuple[ToolSchema, ...],
    habits: RcaOptions,
    *,
    now: datetime,
    playbooks: tuple[PlaybookMatch, ...] = (),
) -> Preparation:
    """Everything that is decided once for a case."""
    said = (signal.signal_name, signal.name, signal.message, signal.description, *(each.category for each in findings))
    words = " ".join(text for text in said if text)
    plan = plan_tools(
        words,
        tools,
        predicted=signal.mode is Mode.PROACTIVE,
        known=tools_of_snapshot(snapshot),
        labels=signal.labels,
        budget=habits.tool_budget,
    )
    question = SnapshotQuestion(
        signal.message or "", signal.source.type, signal.target.kind, snapshot, now, freshness=habits.freshness
    )
    choice = judge_sufficiency(question, habits.sufficiency)
    most = habits.max_schemas - len(SUBMIT_TOOLS[Invocation.RCA])
    return Preparation(
        tools=offer_tools(tools, plan, most),
        plan=plan,
        sufficiency=choice.text if isinstance(choice, Include) else "",
        doubt="" if isinstance(choice, Include) else str(choice.reason),
        playbooks=playbooks,
        known=tuple(known_calls(snapshot)),
    )


def tools_of_snapshot(snapshot: Snapshot) -> frozenset[str]:
    """Tools whose first answer is there already."""
    reads = {str(item.arguments.get("read", "")) for item in snapshot.evidence if item.holds}
    return frozenset(tool for read, tool in READ_BY.items() if read in reads)


WHOLE_READS: Final = frozenset({"target", "owner"})
"""Reads of one object. Of logs and events the tools read more than a snapshot does, so these are other calls; and who
asks for a form by its name, such as YAML in full, is given that."""
WARNINGS: Final = "warning events"


def known_calls(snapshot: Snapshot) -> Iterator[PrefetchedCall]:
    """Calls that would read target and owners again; what was cut, or failed, may be asked for."""
    whole = {item.id: item.arguments.get("read") for item in snapshot.evidence if item.status is EvidenceStatus.OK}
    warnings = next((name for name, read in whole.items() if read == WARNINGS), "")
    for seen in snapshot.objects:
        if whole.get(seen.evidence) not in WHOLE_READS:
            continue
        arguments, optional = _named(seen, snapshot.target.namespace or "")
        if warnings:
            yield PrefetchedCall("kubectl_describe", arguments, seen.evidence, optional, warnings)
        yield PrefetchedCall("kubectl_get", arguments, seen.evidence, optional)


def _named(seen: ObservedObject, home: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """How a call names it, and which of the words it may leave out."""
    version = str(seen.object.get("apiVersion", ""))
    group = version.rpartition("/")[0]
    words = {"kind": seen.kind, "name": seen.name, "namespace": seen.namespace, "api_version": version}
    is_home = seen.namespace == home
    # Of a kind that somebody added there may be another one of the same name.
    is_built_in = "." not in group or group.endswith(".k8s.io")
    optional = (("namespace", is_home), ("api_version", is_built_in))
    return {key: word for key, word in words.items() if word}, tuple(key for key, may in optional if may)
