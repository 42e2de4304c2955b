"""The submit tools: in which form a model hands in its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from inquest.core.llm.messages import Invocation, ToolSchema
from inquest.tables import read_table

_SUBMIT: Final = read_table(__package__, "submit.yaml")
_PARTS: Final[Mapping[str, Any]] = _SUBMIT["parts"]
SEVERITIES: Final[tuple[str, ...]] = _PARTS["severity"]["enum"]
OUTCOME_WORDS: Final[tuple[str, ...]] = _PARTS["outcome"]["enum"]
OUTCOME_ALIASES: Final[Mapping[str, str]] = {
    "resolved": "problem_resolved",
    "self_resolved": "problem_resolved",
    "predictive_no_action": "not_actionable",
}
ROLES: Final[tuple[str, ...]] = _PARTS["role"]["enum"]
DUE_DILIGENCE: Final = tuple(_PARTS["due_diligence"])


def _tool(name: str) -> ToolSchema:
    return ToolSchema(name=name, **_SUBMIT["tools"][name])


SUBMIT_RESULT: Final = _tool("submit_result")
SUBMIT_WITH_WORKFLOW: Final = _tool("submit_result_with_workflow")
SUBMIT_NO_WORKFLOW: Final = _tool("submit_result_no_workflow")
SUBMIT_FINDING: Final = _tool("submit_finding")
SUBMIT_TOOLS: Final[Mapping[Invocation, tuple[ToolSchema, ...]]] = {
    Invocation.RCA: (SUBMIT_RESULT,),
    Invocation.SELECTION: (SUBMIT_WITH_WORKFLOW, SUBMIT_NO_WORKFLOW),
    Invocation.STREAM: (SUBMIT_FINDING,),
}
SUBMIT_NAMES: Final = frozenset(tool.name for tools in SUBMIT_TOOLS.values() for tool in tools)
