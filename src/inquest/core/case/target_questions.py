"""What a remedy may act on: the one group that is meant, and the one object (pipeline, sections 9 and 10)."""

from __future__ import annotations

from inquest.api.types import TargetRef
from inquest.core.case import facts
from inquest.core.case.concluding import circumstances, conclude
from inquest.core.case.facts import Case
from inquest.core.case.investigating import rca_inquiry
from inquest.core.case.known_facts import (
    answer_about_group,
    choices_of,
    context_of,
    diagnosis_of,
    doubtful_target,
    is_near,
    placed,
)
from inquest.core.case.steps import AskGroup, Record, SeekTarget, Step, View
from inquest.core.llm.conversation import AskModel, Inquiry
from inquest.core.llm.loop import correct, next_move, with_reply
from inquest.core.llm.reply.reading import SelectionReply
from inquest.core.selection import selection


def named_target(case: Case) -> TargetRef | None:
    """What the diagnosis names, with the API group that the one question brought."""
    said, answer = diagnosis_of(case).target or doubtful_target(case), answer_about_group(case)
    named = placed(case, said) if said else None
    if named is None or answer is None:
        return named
    group = selection.group_named(answer.reply, choices_of(case))
    return named.model_copy(update={"api_version": group}) if group else named


def gate(case: Case, view: View) -> Step | None:
    """Before invocation 2: one question where several groups serve the kind, then a person; None: it is clear."""
    named, choices = named_target(case), choices_of(case)
    if named is None or not choices or _is_said(case, named, choices):
        return None
    asking = _question(case, view) if case.opened.pinned.model else None
    return asking or conclude(case, view, None, circumstances(case, groups=choices))


def _is_said(case: Case, named: TargetRef, choices: tuple[str, ...]) -> bool:
    """Code names the group that it took, which says nothing of what is meant."""
    return named.api_version in choices and bool(case.opened.pinned.model)


def _question(case: Case, view: View) -> AskGroup | None:
    """Asked once, as one more turn of the conversation that named the target."""
    if answer_about_group(case) is not None:
        return None
    move = next_move(conversation(case, view))
    return AskGroup(move) if isinstance(move, AskModel) else None


def conversation(case: Case, view: View) -> Inquiry:
    """All of invocation 1: with the one question that came after its verdict, and the answer."""
    inquiry, choices = rca_inquiry(case, view), choices_of(case)
    named = (diagnosis_of(case).target or doubtful_target(case)) if choices else None
    if named is None or named.api_version in choices:
        return inquiry
    asked = correct(inquiry, selection.group_question(named, choices), turns=1)
    answer = answer_about_group(case)
    return with_reply(asked, answer.reply) if answer else asked


def sought_target(case: Case, view: View, reply: SelectionReply) -> Step | None:
    """The look-up of a target of a kind of its own, where there was none yet (pipeline, section 9, cases 4 and 5)."""
    named = _own_kind(case, reply)
    if named is None or _sought(case, named) is not None:
        return None
    refused = _refusal(case, named)
    return Record(facts.TargetSought(named, False, refused, view.now)) if refused else SeekTarget(named)


def missing_target(case: Case, reply: SelectionReply) -> str:
    """Why what a reply names is no target; empty where there is one."""
    named = _own_kind(case, reply)
    sought = _sought(case, named) if named is not None else None
    return sought.why if sought is not None and not sought.found else ""


def _own_kind(case: Case, reply: SelectionReply) -> TargetRef | None:
    context, named = context_of(case), reply.target
    known = (context.target, case.target, *context.chain)
    own = named is not None and selection.needs_lookup(root=context.root, named=named, known=known)
    return placed(case, named) if named is not None and own else None


def _sought(case: Case, named: TargetRef) -> facts.TargetSought | None:
    return next((fact for fact in case.all(facts.TargetSought) if fact.named == named), None)


def _refusal(case: Case, named: TargetRef) -> str:
    if selection.is_secret(named):
        return f"NotResolved: {named.display} is never read, so nothing about it can be verified"
    return "" if is_near(case, named) else f"NotResolved: {named.display} is outside the namespaces of this case"
