"""What a model reads of each kind of tool result: twelve calls on three recorded cases, counted by characters.

The same call on the same case gives the same text, so each figure is exact, and a change of what is shown changes it.
`benchmarks/ranges.yaml` holds what each may be (reliability, section 15.2); `--check` fails where one is above.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.ranges import Section
from benchmarks.report import Row
from inquest.adapters.playbooks.reader import read_library
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ToolCall
from inquest.core.llm.tool_calls import boundary_of
from inquest.core.redaction.redactor import Redactor
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.scope import Scope
from inquest.gather.tools.toolset import Toolset
from inquest.replay.case import read_case
from inquest.replay.clock import RecordedClock
from inquest.replay.cluster import RecordedCluster
from inquest.replay.metrics import RecordedMetrics

SCENARIOS: Final = Path(__file__).resolve().parents[1] / "tests" / "scenarios"
RANGES: Final = Section("tool results", "characters", 1.05)
"""Limit of tokens and bytes over their mean (reliability, section 15.2)."""


@dataclass(frozen=True)
class Input:
    """One call on one recorded case."""

    case: str
    tool: str
    arguments: Mapping[str, Any]


KILLED: Final = {"kind": "Pod", "name": "pricing-569dd47947-kzrcm", "namespace": "music-eu"}
THROTTLED: Final = (
    'rate(container_cpu_cfs_throttled_periods_total{namespace="shop",container="search"}[5m]) / '
    'rate(container_cpu_cfs_periods_total{namespace="shop",container="search"}[5m])'
)
INPUTS: Final = (
    Input("memory-cpu/memory-limit-too-low", "kubectl_describe", KILLED),
    Input("memory-cpu/memory-limit-too-low", "kubectl_get", {"kind": "Pod"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_get_yaml", {**KILLED, "kind": "Deployment", "name": "pricing"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_find_resource", {"kind": "Pod", "keyword": "pricing"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_events", {"namespace": "music-eu"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_count", {"kind": "ConfigMap"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_logs", {"name": KILLED["name"]}),
    Input("storage/volume-full", "kubectl_previous_logs", {"name": "mysql-0"}),
    Input("memory-cpu/cpu-throttled", "kubectl_top_pods", {"namespace": "shop"}),
    Input("memory-cpu/memory-limit-too-low", "kubectl_memory_requests", {"namespace": "music-eu"}),
    Input("memory-cpu/cpu-throttled", "query_prometheus", {"query": THROTTLED}),
    Input("memory-cpu/memory-limit-too-low", "get_runbook", {"name": "OOMKilled"}),
)


async def _shown(asked: Input) -> str:
    recorded = read_case(SCENARIOS / asked.case)
    runbooks = {book.name: book.text for book in read_library().books}
    backends = Backends(
        RecordedCluster(recorded),
        Redactor(),
        RecordedClock(recorded.taken_at),
        runbooks=runbooks,
        metrics=RecordedMetrics(recorded),
    )
    target = recorded.signal.spec.target
    run = ToolRun(ToolCall("call-1", asked.tool, json.dumps(asked.arguments)), "E1", boundary_of("seed", "E1"))
    desk = ToolContext(backends, Scope(target.namespace or ""))
    (result,) = await Toolset(backends).batch(Invocation.RCA, (run,), desk)
    if result.error:
        raise RuntimeError(f"{asked.tool} on {asked.case}: {result.content}")
    return result.content


def counted() -> dict[str, int]:
    """Characters of each kind of result."""
    return {asked.tool: len(asyncio.run(_shown(asked))) for asked in INPUTS}


def rows() -> Iterator[Row]:
    """Each figure beside its limit."""
    limits = RANGES.limits()
    for tool, characters in counted().items():
        yield Row(tool, characters, "characters", limits[tool]["limit"])


if __name__ == "__main__":
    sys.exit(RANGES.main("python -m benchmarks.tokens", counted))
