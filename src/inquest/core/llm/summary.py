"""A long result in a model's words, where that is switched on.

The stored evidence stays whole and can be read page by page; only what the next turn sees is shorter. Whatever goes
wrong with a summary, the text itself is shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from inquest.core.evidence.evidence import Evidence
from inquest.core.llm.messages import Invocation, Message, ModelReply, ModelRequest, ToolResult
from inquest.core.llm.tool_calls import boundary_of
from inquest.core.text import frame_text, make_visible
from inquest.tables import read_text

SUMMARY_READS: Final = 100_000
"""Most characters that are given to be summarised."""
SUMMARY_TOKENS: Final = 2_048
SUMMARISED: Final = frozenset(
    {
        *("kubectl_describe", "kubectl_get", "kubectl_get_yaml", "kubectl_find_resource", "kubectl_events"),
        *("kubectl_logs", "kubectl_previous_logs", "kubectl_top_pods", "kubectl_memory_requests"),
        *("query_prometheus", "query_loki"),
    }
)
"""Tools whose results may be told in other words; pages of evidence are asked for to be read as they are."""
TASK: Final = read_text(__package__, "prompts/texts/summary.md")


def wants_summary(result: ToolResult, above: int) -> bool:
    """Whether a result is long enough, and of a kind that may be shortened; `above` 0: never."""
    found = result.evidence
    fits = above > 0 and result.tool in SUMMARISED and not result.error
    return fits and found is not None and found.holds and found.size > above


def summary_request(model: str, evidence: Evidence, seed: str) -> ModelRequest:
    """One question without tools: the task, which never changes, and the text in a frame."""
    text = make_visible(evidence.text[:SUMMARY_READS])
    framed = frame_text(text, evidence.id, evidence.tool, boundary_of(seed, f"{evidence.id}/summary"))
    messages = (Message("system", TASK), Message("user", framed))
    return ModelRequest(model, messages, (), max_tokens=SUMMARY_TOKENS, phase=str(Invocation.RCA))


def summarise_result(result: ToolResult, reply: ModelReply, seed: str) -> ToolResult:
    """The result as the model of the inquiry sees it; its tokens count, whether the summary is of use or not."""
    found, text = result.evidence, make_visible(reply.text.strip())
    counted = replace(result, usage=result.usage + reply.usage)
    if found is None or not text or reply.finish_reason == "length" or len(text) >= len(found.shown):
        return counted
    head = f'{found.id} {found.tool}, summary of {found.size} characters; the whole: read_evidence("{found.id}")\n'
    content = head + frame_text(text, found.id, found.tool, boundary_of(seed, f"{found.id}/summarised"))
    return replace(counted, content=content, evidence=replace(found, shown=text))
