"""What the four specialists of a divided investigation are told, and who joins their findings."""

from __future__ import annotations

from typing import Final

from inquest.core.llm.prompts.rca import DATA, PARTS, VERDICT, RcaContext
from inquest.core.text import join_parts, prompt_section

STREAM: Final = """\
You look at one part of an incident in a Kubernetes cluster; others look at the rest of it at the same time. You only
read; nothing you do changes the cluster.
- What the snapshot below shows already you need not ask for again.
- Make every call that does not wait for another's answer in one message.
- A tool that failed, or a list that was cut, is no finding: absence is proven by complete reads only.
- Say nothing of what lies outside your part.
End by calling `submit_finding`, once, as in
{"signals": ["reason: OOMKilled"], "hypothesis": "app needs more memory than its limit", "confidence": 0.7, \
"evidence": ["E3"]}
Signals are copied unchanged from the evidence that you name. Confidence: 0.9, proven · 0.5, one of several · 0, \
nothing wrong here."""

SYNTHESIS: Final = """\
You find the root cause of one incident in a Kubernetes cluster. Four others have looked, each at one part, and told
what they found; no more can be read.
- Weigh what was found, not how it was said. Where two of them contradict each other, say so in
  `investigation_analysis`; do not settle it by the middle.
- Name the object and the direction of the dependency: the callee that is slow, not the caller that waits.
- Every claim cites evidence ids (E1, E2, …) and copies a value or line from that evidence unchanged. Code looks for
  each quote; what does not stand there is dropped and lowers the confidence."""


def stream_prompt(context: RcaContext, *, looks: str, calls: int) -> str:
    """The system message of one stream: the incident and the snapshot, nothing of what was said or done before."""
    part = prompt_section("Your part", f"Look at {looks}.", f"You have {calls} calls.")
    return join_parts(STREAM, DATA, part, *_shared_parts(context))


def synthesis_prompt(context: RcaContext, told: str) -> str:
    """The system message of the call that makes one verdict of what the streams found."""
    return join_parts(SYNTHESIS, VERDICT, DATA, *_shared_parts(context), told)


def _shared_parts(context: RcaContext) -> list[str]:
    names = ("prediction", "incident", "technical", "context", "snapshot")
    return [part.text(context) for part in PARTS if part.name in names]
