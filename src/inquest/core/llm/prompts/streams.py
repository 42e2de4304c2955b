"""What the four specialists of a divided investigation are told, and who joins their findings."""

from __future__ import annotations

from typing import Final

from inquest.core.llm.prompts.rca import DATA, PARTS, VERDICT, RcaContext
from inquest.core.text import join_parts, prompt_section
from inquest.tables import read_text

STREAM: Final = read_text(__package__, "texts/stream.md")
SYNTHESIS: Final = read_text(__package__, "texts/synthesis.md")


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
