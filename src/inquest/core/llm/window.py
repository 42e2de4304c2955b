"""How much of a conversation is sent: the estimate, and what gives way when there is no room.

What gave way is remembered outside the messages, which never change: a replay folds to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from inquest.core.evidence.evidence import Evidence
from inquest.core.evidence.short_forms import reread_form
from inquest.core.llm.conversation import Conversation, ShownAs, Turn, gives_way
from inquest.core.llm.messages import Invocation, Message, ToolCall, ToolResult
from inquest.core.llm.tool_calls import all_tools, arguments_of, boundary_of, canonical_arguments
from inquest.core.text import frame_text

TOKENS_PER_CHARACTER: Final = 0.5
"""Deliberately high, since no tokenizer is at hand."""
ROOM_SHARE: Final = 0.75
"""So far below the ceiling the conversation goes at once: every change of an old message costs the endpoint's cache."""
PINNED_TURNS: Final = 2
KEPT_CHARACTERS: Final = 2_000
"""Least that is left of a message: 1,000 tokens."""
EVICTED: Final = '[evicted, read_evidence("{id}")]'
EVICTED_FOR_GOOD: Final = "[evicted, call it again if you need it]"
"""In invocation 2, which has no evidence to read."""
CUT: Final = "[truncated to fit context budget]"


def estimate_tokens(inquiry: Conversation) -> int:
    """Tokens that the next request would take; high on purpose, and raised by reported usage."""
    text = sum(_characters(message) for message in (*inquiry.opening, *render_messages(inquiry)))
    return int((text + inquiry.schema_characters) * TOKENS_PER_CHARACTER * inquiry.correction)


def schema_characters(inquiry: Conversation) -> int:
    """Of all that is offered; the same on every turn."""
    return sum(len(tool.description) + len(canonical_arguments(tool.parameters)) for tool in all_tools(inquiry))


def _characters(message: Message) -> int:
    return len(message.content) + sum(len(call.name) + len(call.arguments) for call in message.tool_calls)


# --- what is shown ---------------------------------------------------------------------------------------------


def render_messages(inquiry: Conversation) -> Iterator[Message]:
    """The messages as the next request holds them."""
    if not inquiry.forms and not inquiry.cuts:
        yield from inquiry.messages
        return
    answers = {
        result.call_id: (number, result)
        for number, turn in enumerate(inquiry.turns, start=1)
        for result in turn.results
    }
    gone = inquiry.evicted
    for message in inquiry.messages:
        if any(call.id in gone for call in message.tool_calls):
            # A whole exchange goes together: what was said beside the calls too.
            yield replace(message, content="")
        else:
            yield _shown(inquiry, message, *answers.get(message.tool_call_id, (0, None)))


def _shown(inquiry: Conversation, message: Message, number: int, result: ToolResult | None) -> Message:
    if result is None or not gives_way(result):
        return message
    form, room = inquiry.forms.get(number, ShownAs.WHOLE), inquiry.cuts.get(result.call_id)
    if form is ShownAs.GONE:
        return replace(message, content=_gone(inquiry, result))
    if result.evidence is None or (form is ShownAs.WHOLE and room is None):
        return message
    short = _in_short(inquiry, result.evidence, None if form is ShownAs.REREAD else room)
    # What only says that it is the same as before is shorter than any form of it.
    return replace(message, content=short) if len(short) < len(message.content) else message


def _gone(inquiry: Conversation, result: ToolResult) -> str:
    if inquiry.invocation is not Invocation.RCA:
        return EVICTED_FOR_GOOD
    return EVICTED.format(id=result.evidence.id if result.evidence else _repeated_id(inquiry, result))


def _repeated_id(inquiry: Conversation, result: ToolResult) -> str:
    """A replay names the evidence that it replayed."""
    known = (seen.evidence for seen in inquiry.seen.values())
    return next((name for name in known if f" {name} " in result.content[:80]), "")


def _in_short(inquiry: Conversation, evidence: Evidence, room: int | None) -> str:
    boundary = boundary_of(inquiry.seed, f"{evidence.id}/again")
    return _framed(evidence.shown or evidence.text, evidence.id, evidence.tool, boundary, room, inquiry.names)


@lru_cache(maxsize=256)
def _framed(text: str, evidence_id: str, tool: str, boundary: str, room: int | None, names: tuple[str, ...]) -> str:
    """The same for the same text: the estimate asks for it again and again."""
    short = reread_form(text, evidence_id, tool=tool, names=names) if room is None else f"{text[:room]}\n{CUT}"
    return f"{evidence_id} {tool}, shortened\n" + frame_text(short, evidence_id, tool, boundary)


# --- what gives way ---------------------------------------------------------------------------------------------


def within_window(inquiry: Conversation) -> Conversation:
    """The conversation in a form that fits the ceiling, as far as that can be."""
    if estimate_tokens(inquiry) <= inquiry.ceiling:
        return inquiry
    shorter = _folded(inquiry, int(inquiry.ceiling * ROOM_SHARE))
    return _cut(shorter, inquiry.ceiling)


def squeeze_conversation(inquiry: Conversation) -> Conversation | None:
    """The conversation after the endpoint found it too long: half of it, and never as long again.

    None when nothing can give way.
    """
    before = estimate_tokens(inquiry)
    shorter = _cut(_folded(inquiry, before // 2), before // 2)
    if (shorter.forms, shorter.cuts) == (inquiry.forms, inquiry.cuts):
        return None
    return replace(shorter, narrowed=max(1, before * 3 // 4))


def _folded(inquiry: Conversation, target: int) -> Conversation:
    """Exchanges of nothing but repeats first; then the largest, to their short form, then altogether."""
    for wanted, form in _STEPS:
        for number in _largest_first(inquiry):
            if estimate_tokens(inquiry) <= target:
                return inquiry
            if wanted(inquiry.turns[number - 1]) and inquiry.forms.get(number, ShownAs.WHOLE) < form:
                inquiry = replace(inquiry, forms={**inquiry.forms, number: form})
    return inquiry


def _is_repetition(turn: Turn) -> bool:
    return all(result.repeat for result in turn.results)


_STEPS: Final[tuple[tuple[Callable[[Turn], bool], ShownAs], ...]] = (
    (_is_repetition, ShownAs.GONE),
    (lambda turn: True, ShownAs.REREAD),
    (lambda turn: True, ShownAs.GONE),
)


def _largest_first(inquiry: Conversation) -> list[int]:
    """Numbers of the turns that may give way; of equal ones the oldest first."""
    last = len(inquiry.turns) - PINNED_TURNS
    free = [
        number
        for number, turn in enumerate(inquiry.turns[: max(0, last)], start=1)
        if turn.results and not _is_cited(inquiry, turn)
    ]
    return sorted(free, key=lambda number: -sum(len(result.content) for result in inquiry.turns[number - 1].results))


def _is_cited(inquiry: Conversation, turn: Turn) -> bool:
    """A finding rests on what was read here."""
    made = {result.evidence.id for result in turn.results if result.evidence is not None}
    read = {_read_id(call) for call in turn.reply.tool_calls}
    return not inquiry.cited.isdisjoint(made | read)


def _read_id(call: ToolCall) -> str:
    return str((arguments_of(call) or {}).get("id", "")) if call.name == "read_evidence" else ""


def _cut(inquiry: Conversation, target: int) -> Conversation:
    """The largest results that are left, those of the last turns too: nobody could be asked otherwise."""
    while (excess := estimate_tokens(inquiry) - target) > 0:
        found = _largest_result(inquiry)
        if found is None:
            break
        call_id, size = found
        room = size - int(excess / TOKENS_PER_CHARACTER / inquiry.correction) - len(CUT)
        inquiry = replace(inquiry, cuts={**inquiry.cuts, call_id: max(KEPT_CHARACTERS, room)})
    return inquiry


def _largest_result(inquiry: Conversation) -> tuple[str, int] | None:
    sizes = [
        (inquiry.cuts.get(result.call_id, len(result.evidence.shown)), result.call_id)
        for number, turn in enumerate(inquiry.turns, start=1)
        for result in turn.results
        if result.evidence is not None
        and len(result.content) > KEPT_CHARACTERS
        and inquiry.forms.get(number, ShownAs.WHOLE) is ShownAs.WHOLE
    ]
    size, call_id = max(sizes, default=(0, ""))
    return (call_id, size) if size > KEPT_CHARACTERS else None
