"""The tools that a model may call: one registry, read only, checked when a call runs.

    tools = Toolset(Backends(cluster, redactor, clock, datastorage))
    tools.schemas(Invocation.RCA)                         # what invocation 1 is offered
    results = await tools.run(Invocation.RCA, runs, Reach("shop", evidence=…))

A result is redacted by structure, rendered, redacted as text, numbered as evidence, cut, framed. A failing call is a
gap with a reason, and its neighbours do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from inquest.computing import compute
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, digest_of
from inquest.core.evidence.short_forms import condense_log
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ToolCall, ToolResult, ToolSchema
from inquest.core.llm.tool_calls import arguments_of, error_text
from inquest.core.text import frame_text, make_visible, suspicious_lines
from inquest.errors import Invalid, NotConfigured, Retryable
from inquest.gather.tools import arguments as args
from inquest.gather.tools import evidence as notes
from inquest.gather.tools import kubernetes, monitoring, resource_context, workflows
from inquest.gather.tools.context import SHOWN_CHARACTERS, Backends, Output, Runner, Tool, ToolContext
from inquest.gather.tools.hints import CallRefused, failure_of
from inquest.gather.tools.scope import Scope
from inquest.ports.model import Reach

CALL_SECONDS: Final = 60.0
AT_ONCE: Final = 8
LONG_CHARACTERS: Final = 32_768
"""What is longer is worked on in a thread."""
WITHHELD: Final = "output withheld: it could not be redacted"

READ: Final = (
    Tool(
        "kubectl_describe",
        "One object in words: containers with states and reasons, resources, owner, conditions, 20 newest events.",
        args.OneObject,
        kubernetes.kubectl_describe,
    ),
    Tool(
        "kubectl_get",
        "One object (YAML), or without a name a list (table) of at most 200; output json, yaml or table.",
        args.GetArguments,
        kubernetes.kubectl_get,
    ),
    Tool("kubectl_get_yaml", "One object in full, as YAML.", args.OneObject, kubernetes.kubectl_get_yaml),
    Tool(
        "kubectl_find_resource",
        "Objects of a kind whose name, namespace or labels hold a word or match a glob.",
        args.FindArguments,
        kubernetes.kubectl_find_resource,
    ),
    Tool(
        "kubectl_events",
        "Events, newest first; with kind and name only those of that object.",
        args.EventArguments,
        kubernetes.kubectl_events,
    ),
    Tool("kubectl_count", "How many objects there are, and ten names.", args.CountArguments, kubernetes.kubectl_count),
    Tool(
        "kubectl_logs",
        "Log of a pod's present run; all containers unless one is named.",
        args.LogArguments,
        kubernetes.kubectl_logs,
    ),
    Tool(
        "kubectl_previous_logs",
        "Log of the run before the last restart; look here first when a container crashed.",
        args.LogArguments,
        kubernetes.kubectl_previous_logs,
    ),
    Tool("kubectl_top_pods", "CPU and memory that pods use now.", args.TopPods, kubernetes.kubectl_top_pods),
    Tool("kubectl_top_nodes", "CPU and memory that nodes use now.", args.NoArguments, kubernetes.kubectl_top_nodes),
    Tool(
        "kubectl_memory_requests",
        "Memory requests of pods, largest first.",
        args.InNamespace,
        kubernetes.kubectl_memory_requests,
    ),
    Tool(
        "get_namespaced_resource_context",
        "Root owner, spec hash, detected labels, quota and remediation history of an object; call it for the final "
        "target before the verdict.",
        args.NamespacedContext,
        resource_context.get_namespaced_resource_context,
        lambda backends: backends.context is not None,
    ),
    Tool(
        "get_cluster_resource_context",
        "The same for a cluster-scoped object.",
        args.ClusterContext,
        resource_context.get_cluster_resource_context,
        lambda backends: backends.context is not None,
    ),
    Tool("read_evidence", "A page of stored evidence, such as E3.", args.ReadEvidence, notes.read_evidence),
    Tool(
        "get_runbook",
        "The text of a playbook.",
        args.Runbook,
        notes.get_runbook,
        lambda backends: bool(backends.runbooks),
    ),
)


def _of_metrics(name: str, description: str, arguments: type[args.Arguments], run: Runner) -> Tool:
    return Tool(
        name,
        description,
        arguments,
        run,
        lambda backends: backends.metrics is not None,
        monitoring.PROMETHEUS,
        monitoring.METRIC_CHARACTERS,
        monitoring.NARROWER,
    )


STACK: Final = (
    _of_metrics(
        "query_prometheus",
        "A PromQL query: an instant, or with range_minutes or start a range. Prometheus JSON.",
        args.QueryPrometheus,
        monitoring.query_prometheus,
    ),
    _of_metrics("get_metric_names", "Names of metrics that there are.", args.Match, monitoring.get_metric_names),
    _of_metrics("get_label_values", "Values of a label.", args.LabelValues, monitoring.get_label_values),
    _of_metrics("get_all_labels", "Names of labels.", args.Match, monitoring.get_all_labels),
    _of_metrics(
        "get_metric_metadata", "Type, unit and help of metrics.", args.MetricArguments, monitoring.get_metric_metadata
    ),
    _of_metrics(
        "list_prometheus_rules",
        "Alerting and recording rules, with the alerts that fire for this case.",
        args.NoArguments,
        monitoring.list_prometheus_rules,
    ),
    _of_metrics(
        "get_series", "Label sets of the series that a selector means.", args.SeriesArguments, monitoring.get_series
    ),
    Tool(
        "query_loki",
        "A LogQL query: log lines, newest last; also of pods that are gone.",
        args.QueryLoki,
        monitoring.query_loki,
        lambda backends: backends.logs is not None,
        monitoring.LOKI,
    ),
)
DISCOVER: Final = (
    Tool(
        "list_available_actions",
        "Step 1: action types that fit this incident; page while hasMore.",
        args.Paged,
        workflows.list_available_actions,
    ),
    Tool(
        "list_workflows",
        "Step 2: workflows of an action type; page while hasMore.",
        args.ListWorkflows,
        workflows.list_workflows,
    ),
    Tool(
        "get_workflow",
        "Step 3: one workflow in full, with its parameter schema.",
        args.GetWorkflow,
        workflows.get_workflow,
    ),
)
REGISTRY: Final[Mapping[Invocation, Mapping[str, Tool]]] = {
    Invocation.RCA: {tool.name: tool for tool in (*READ, *STACK)},
    Invocation.SELECTION: {tool.name: tool for tool in DISCOVER},
    Invocation.STREAM: {tool.name: tool for tool in (*READ, *STACK)},
}


class Toolset:
    """Runs the calls of a batch in parallel, each bounded in time."""

    def __init__(self, backends: Backends, *, seconds: float = CALL_SECONDS, at_once: int = AT_ONCE) -> None:
        self._backends, self._seconds, self._at_once = backends, seconds, at_once

    def schemas(self, invocation: Invocation) -> tuple[ToolSchema, ...]:
        """What is offered; a tool without its backend is not."""
        return tuple(tool.schema for tool in REGISTRY[invocation].values() if tool.available(self._backends))

    async def run(self, invocation: Invocation, runs: tuple[ToolRun, ...], reach: Reach) -> tuple[ToolResult, ...]:
        """One batch, with what this case may reach."""
        context = ToolContext(
            self._backends,
            Scope(reach.namespace, reach.others),
            reach.filters,
            reach.infrastructure,
            {item.id: item for item in reach.evidence},
            window=reach.window,
            contexts=dict(resource_context.known_answers(reach)),
            hints=reach.hints,
        )
        return await self.batch(invocation, runs, context, seconds=reach.seconds)

    async def batch(
        self, invocation: Invocation, runs: tuple[ToolRun, ...], context: ToolContext, *, seconds: float | None = None
    ) -> tuple[ToolResult, ...]:
        """Results in the order of the runs; evidence of the batch can be read from the next turn on.

        After `seconds` what has not answered, or found no place yet, is a failed call like any other.
        """
        places = asyncio.Semaphore(self._at_once)
        end = None if seconds is None else asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._placed(invocation, run, context, places, end)) for run in runs]
        results = tuple(task.result() for task in tasks)
        context.evidence.update({result.evidence.id: result.evidence for result in results if result.evidence})
        return results

    async def _placed(
        self, invocation: Invocation, run: ToolRun, context: ToolContext, places: asyncio.Semaphore, end: float | None
    ) -> ToolResult:
        async with places:
            return await self._result(invocation, run, context, end)

    async def _result(
        self, invocation: Invocation, run: ToolRun, context: ToolContext, end: float | None
    ) -> ToolResult:
        try:
            async with asyncio.timeout_at(end), asyncio.timeout(self._seconds):
                output = await _run(invocation, run.call, context)
                return await self._success(run, context, output)
        except Exception as error:  # one call's failure is its own: a gap, whatever it was
            return await self._failure(run, context, error)

    async def _success(self, run: ToolRun, context: ToolContext, output: Output) -> ToolResult:
        text = await self._redacted(context, output.text)
        status = EvidenceStatus.TRUNCATED if output.cut else EvidenceStatus.OK
        evidence = await self._evidence(run, context, text, status, output.resolved)
        found = replace(evidence, empty=output.empty, api_fact=output.api_fact)
        if found.size <= LONG_CHARACTERS:
            return _shown(run, found)
        return await compute(_shown, run, found)

    async def _failure(self, run: ToolRun, context: ToolContext, error: Exception) -> ToolResult:
        row = _row_of(run)
        system = row.system if row else ""
        failure = failure_of(error, seconds=self._seconds, system=system)
        try:
            said = failure.hint if context.hints or not failure.interpreted else ""
            text = error_text(await self._redacted(context, failure.error), said)
        except Exception:  # fails closed: what cannot be redacted is not shown
            text = error_text(WITHHELD)
        evidence = await self._evidence(run, context, text, EvidenceStatus.GAP, {})
        away = isinstance(error, (Retryable, TimeoutError))
        return replace(_shown(run, evidence), error=True, terminal=failure.terminal, away=away)

    async def _redacted(self, context: ToolContext, text: str) -> str:
        """In a thread when the text is long, so that leases are renewed meanwhile."""
        redactor = context.backends.redactor
        if len(text) <= LONG_CHARACTERS:
            return redactor.text(text).value
        return await compute(lambda: redactor.text(text).value)

    async def _evidence(
        self, run: ToolRun, context: ToolContext, text: str, status: EvidenceStatus, resolved: Mapping[str, Any]
    ) -> Evidence:
        long = len(run.call.arguments) > LONG_CHARACTERS
        arguments = await compute(_arguments, run, context, resolved) if long else _arguments(run, context, resolved)
        now = context.backends.clock.now()
        return Evidence(run.evidence_id, run.call.name, arguments, text, digest_of(text), status, now)


async def _run(invocation: Invocation, call: ToolCall, context: ToolContext) -> Output:
    """Whatever was listed: phase, backend and schema are checked here, now."""
    tool = REGISTRY[invocation].get(call.name)
    if tool is not None and tool.system and not tool.available(context.backends):
        raise NotConfigured(f"NotConfigured: {tool.system} is not configured")
    if tool is None or not tool.available(context.backends):
        raise CallRefused(f"tool not found: {call.name}", f"offered: {', '.join(REGISTRY[invocation])}")
    given = arguments_of(call)
    if given is None:
        raise Invalid("arguments.: not a JSON object")
    return await tool.run(context, args.parse_arguments(tool.arguments, given))


def _arguments(run: ToolRun, context: ToolContext, resolved: Mapping[str, Any]) -> Mapping[str, Any]:
    said = {key: value for key, value in (arguments_of(run.call) or {}).items() if value is not None}
    try:
        return context.backends.redactor.strings({**said, **resolved}).value
    except Exception:  # fails closed
        return {"withheld": WITHHELD}


def _shown(run: ToolRun, evidence: Evidence) -> ToolResult:
    """Cut, invisible characters made visible, framed; the evidence itself stays byte for byte.

    Where rows of like lines are told once and all of it fits, nothing is cut.
    """
    row, short = _row_of(run), condense_log(evidence.text, evidence.id, tool=evidence.tool)
    most, narrower = (row.most, row.narrower) if row else (SHOWN_CHARACTERS, "")
    shown = make_visible(short if len(short) <= most else _cut(evidence, most, narrower))
    head = f"{evidence.id} {evidence.tool}, {evidence.size} characters, {evidence.status}\n"
    content = head + frame_text(shown, evidence.id, evidence.tool, run.boundary)
    lines = suspicious_lines(shown, run.boundary)
    return ToolResult(run.call.id, run.call.name, content, replace(evidence, shown=shown), suspect=lines)


def _cut(evidence: Evidence, most: int, narrower: str) -> str:
    if evidence.size <= most:
        return evidence.text
    less = f"{narrower} " if narrower else ""
    return (
        f"{evidence.text[:most]}\n... [TRUNCATED] {evidence.tool} output was {evidence.size} chars "
        f'(limit: {most}). {less}Read the rest with read_evidence("{evidence.id}", offset={most}).'
    )


def _row_of(run: ToolRun) -> Tool | None:
    """The row of a call's tool, in whichever phase."""
    return next((tools[run.call.name] for tools in REGISTRY.values() if run.call.name in tools), None)
