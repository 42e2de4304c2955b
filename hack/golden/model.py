"""A model that answers by rule, so that a conversation has the same words every time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.llm.messages import ModelReply, ModelRequest, ToolCall, Usage
from inquest.core.redaction.redacted import Redacted

Arguments = Mapping[str, Any]

OBJECT: Final = ("kind", "name", "namespace")
READS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubectl_describe": OBJECT,
    "kubectl_get": ("kind", "namespace"),
    "kubectl_get_yaml": OBJECT,
    "kubectl_events": ("namespace",),
    "kubectl_count": ("kind", "namespace"),
    "kubectl_logs": ("name", "namespace"),
    "kubectl_previous_logs": ("name", "namespace"),
    "kubectl_top_pods": ("namespace",),
    "get_namespaced_resource_context": OBJECT,
    "get_cluster_resource_context": ("kind", "name"),
    "read_evidence": ("id",),
}
"""Tool → what it is asked about the target."""
VERDICTS: Final = frozenset({"submit_result", "submit_result_with_workflow", "submit_result_no_workflow"})


@dataclass
class ScriptedModel:
    """The model of one case: it reads about the target, quotes what it read, and takes the first workflow it sees."""

    target: TargetRef
    asked: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        """Tools first, then a verdict; in both invocations."""
        asked = request.value
        self.asked.append(asked)
        offered = {tool.name for tool in asked.tools}
        turn = sum(message.role == "assistant" for message in asked.messages)
        text = "\n".join(message.content for message in asked.messages)
        calls = self._investigate(offered, turn, text) if "submit_result" in offered else _select(offered, turn, text)
        made = tuple(
            ToolCall(f"call-{len(self.asked)}-{number}", name, json.dumps(arguments))
            for number, (name, arguments) in enumerate(calls)
        )
        return ModelReply("", made, "tool_calls", Usage(1000, 0, 100), "golden")

    def _investigate(self, offered: set[str], turn: int, text: str) -> Iterator[tuple[str, Arguments]]:
        if turn == 0 and offered - VERDICTS:
            target = self.target
            about = {"kind": target.kind, "name": target.name, "namespace": target.namespace or "", "id": "E1"}
            yield from ((name, {key: about[key] for key in keys}) for name, keys in READS.items() if name in offered)
            return
        quotes = [{"id": found[1], "quote": found[2]} for found in QUOTED.finditer(text)][:2]
        factor = {"statement": "It stands there.", "role": "contributing_factor", "evidence": quotes[1:]}
        yield (
            "submit_result",
            {
                "root_cause_analysis": {
                    "summary": f"{self.target.kind}/{self.target.name} does not work.",
                    "severity": "high",
                    "signal_name": "Unknown",
                    "contributing_factors": ["one more"],
                    "remediation_target": {"kind": self.target.kind, "name": self.target.name},
                    "claims": [
                        {"statement": "It says so.", "role": "root_cause", "evidence": quotes[:1]},
                        factor,
                        {"statement": "Nobody said so.", "role": "symptom", "evidence": [{"id": "E1", "quote": "~"}]},
                    ],
                },
                "confidence": 0.9,
                "investigation_outcome": "actionable",
            },
        )


QUOTED: Final = re.compile(r"<<\w+ (E\d+) [^>\n]*>>\n([^\n]{4,60})")


def _select(offered: set[str], turn: int, text: str) -> Iterator[tuple[str, Arguments]]:
    if turn == 0 and "list_available_actions" in offered:
        yield "list_available_actions", {}
    elif turn == 1 and "list_workflows" in offered:
        found = re.search(r'"actionType":"(\w+)"', text)
        yield "list_workflows", {"action_type": found[1] if found else "RestartDeployment"}
    else:
        several = re.findall(r'"workflowId":"([^"]+)"', text)
        chosen = {"workflow_id": several[0] if several else "none", "confidence": 0.9, "rationale": "The first."}
        yield (
            "submit_result_with_workflow",
            {
                "root_cause_analysis": {"summary": "It does not work."},
                "selected_workflow": {**chosen, "parameters": {"REPLICAS": "2"} if turn == 2 else {}},
                "confidence": 0.9,
            },
        )
