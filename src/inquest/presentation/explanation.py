"""Why a case came to what it came to: cause and proof, what was ruled out, the workflow, the person, the end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from inquest.api.findings import Claim, ClaimRole, SelectedWorkflow
from inquest.api.investigation import PinnedSignal
from inquest.api.refs import Business
from inquest.api.types import BusinessRank, RulingDecision
from inquest.core.reporting.message import what_was_done
from inquest.core.selection.parameter_rules import PARAMETER_RULES
from inquest.presentation.branches import (
    Node,
    Section,
    State,
    join_present,
    text_after,
    text_nodes,
    text_of,
    two_decimals,
)
from inquest.presentation.case import CaseObjects, cause_line, cause_of, is_refuted, place_of_target

MAX_GAPS_SHOWN: Final = 3


def explanation_of(told: CaseObjects) -> tuple[Section, ...]:
    """The cause in one sentence and what was done about it, then every question to which there is an answer.

    Each thing stands once: what the heading says is said nowhere below.
    """
    found = (
        Section(_heading(told), _happened(told)),
        Section("What it rests on", tuple(_proof(told))),
        Section("What was ruled out", tuple(_ruled_out(told))),
        Section("What else was seen, and is no cause", text_nodes(*told.status.observations)),
        Section("What could not be read", tuple(_unread(told))),
        Section("Why this workflow", tuple(_workflow(told))),
        Section("Why a person was asked" if _asks(told) else "Why nobody was asked", tuple(_ruling(told))),
        Section("What was decided", tuple(_decision(told))),
        Section("What happened then", tuple(_then(told))),
    )
    return tuple(section for section in found if section.body)


def _heading(told: CaseObjects) -> str:
    """The cause, else what the analysis came to, else where the case stands."""
    return cause_of(told) or f"{told.investigation.spec.signal.name}: {told.phase}"


def _happened(told: CaseObjects) -> tuple[Node, ...]:
    signal, status, heading = told.investigation.spec.signal, told.status, _heading(told)
    asked = [f"{signal.severity} {signal.name} of {place_of_target(signal.target)}", *_ranks(signal)]
    why = (status.sub_reason or status.reason, status.human_review_reason)
    words = [str(told.phase), *map(text_of, (status.outcome, status.resolution, *why))]
    took = f" after {status.duration_seconds} s" if told.has_ended and status.duration_seconds is not None else ""
    end = f"{join_present(list(dict.fromkeys(words)))}{took}"
    return (
        Node(f"{end}{text_after(': ', what_was_done(status.message or '', heading, text_of(status.resolution)))}"),
        Node(f"asked: {join_present(asked)}{text_after(': ', signal.message)}"),
        *_cause(told, heading),
    )


def _ranks(signal: PinnedSignal) -> list[str]:
    """The environment, and the ranks: what nobody wrote down is said to follow from it."""
    business, environment = signal.business or Business(), text_of(signal.environment)
    ranks = {
        BusinessRank.CRITICALITY: text_after("criticality ", business.criticality),
        BusinessRank.SLA_REQUIREMENT: text_after("service level ", business.sla_requirement),
    }
    written = [text for rank, text in ranks.items() if rank not in business.derived]
    derived = join_present([text for rank, text in ranks.items() if rank in business.derived], " and ")
    return [environment, *written, f"{derived} derived from {environment}" if derived else ""]


def _unread(told: CaseObjects) -> Iterator[Node]:
    gaps = told.status.gaps
    yield from (Node(f"{gap.what}: {gap.why}") for gap in gaps[:MAX_GAPS_SHOWN])
    if len(gaps) > MAX_GAPS_SHOWN:
        yield Node(f"and {len(gaps) - MAX_GAPS_SHOWN} more in status.gaps")


# --- the cause --------------------------------------------------------------------------------------------------


def _cause(told: CaseObjects, heading: str) -> tuple[Node, ...]:
    status, root = told.status, told.status.root_cause
    first = next(iter(status.causes), None)
    field = f"{first.field} is {first.value}" if first and first.field and first.value else None
    what = join_present([first.category, place_of_target(first.object)], " of ") if first else None
    factors = root.contributing_factors if root else ()
    others = {each.summary for each in status.causes[1:]}
    return text_nodes(
        join_present([join_present([what, field], ": "), _sureness(told)]),
        first.summary if first and first.summary != heading else None,
        text_after("explains: ", join_present(first.explains) if first else None),
        root.analysis if root and root.analysis not in (heading, status.message) else None,
        *(f"contributes: {factor}" for factor in factors if factor != heading and factor not in others),
    )


def _sureness(told: CaseObjects) -> str | None:
    """The figure that code computed; what the model said of itself stands beside it."""
    status = told.status
    if status.confidence is None:
        return None
    own = text_after("the model itself said ", two_decimals(status.model_confidence)) if told.by_model else ""
    return f"confidence {join_present([two_decimals(status.confidence), own])}"


def _proof(told: CaseObjects) -> Iterator[Node]:
    """What was claimed and what detectors found, with what it rests on; the heading is not repeated."""
    known = {cause_of(told), *(each.summary for each in told.status.causes)}
    for claim in told.status.claims:
        if not is_refuted(claim) and claim.role is not ClaimRole.RULED_OUT:
            yield _claim(claim, known)
    for finding in told.status.findings:
        said = "" if finding.summary in known else f": {finding.summary or finding.category}"
        cites = text_after(", rests on ", join_present(finding.evidence))
        yield Node(f"detector {finding.detector} {two_decimals(finding.confidence)}{said}{cites}")


def _claim(claim: Claim, known: Collection[str | None] = ()) -> Node:
    words = join_present([claim.verdict, claim.role])
    quoted = text_after(f"{join_present(claim.evidence)}: ", f"“{claim.quote}”" if claim.quote else None)
    cites = quoted or text_after("rests on ", join_present(claim.evidence))
    if claim.text in known:
        return Node(f"{words}: {cites}", text_nodes(claim.note))
    return Node(f"{words}: {claim.text}", text_nodes(cites, claim.note))


def _ruled_out(told: CaseObjects) -> Iterator[Node]:
    for claim in told.status.claims:
        if is_refuted(claim):
            why = claim.note or "what it cites does not say so"
            yield Node(f"dropped: {claim.text}", text_nodes(why))
        elif claim.role is ClaimRole.RULED_OUT:
            yield _claim(claim)
    for number, cause in enumerate(told.status.causes[1:], start=2):
        yield Node(
            f"place {number}: {cause_line(cause)}", text_nodes(text_after("rests on ", join_present(cause.evidence)))
        )


# --- the workflow ------------------------------------------------------------------------------------------------


def _workflow(told: CaseObjects) -> Iterator[Node]:
    status, chosen = told.status, told.status.selected_workflow
    if chosen is not None:
        first = next(iter(status.causes), None)
        calls = f"{first.category} calls for {chosen.action_type}" if first and not told.by_model else None
        yield Node(
            f"{join_present([chosen.id, chosen.version], ' ')}, confidence {two_decimals(chosen.confidence)}: "
            f"{calls or chosen.action_type}"
        )
        yield from text_nodes(chosen.rationale if told.by_model else None)
        yield from _parameters(told, chosen)
    for attempt in status.validation_attempts:
        if not attempt.valid:
            yield Node(f"refused: {attempt.workflow_id}", text_nodes(*attempt.errors))
    for other in status.alternatives:
        yield Node(
            join_present([f"not chosen: {other.id}", two_decimals(other.confidence)], " "),
            text_nodes(other.rationale),
        )
    yield from text_nodes(
        *(f"earlier cases: {lesson}" for lesson in (status.context.lessons if status.context else ()))
    )


def _parameters(told: CaseObjects, chosen: SelectedWorkflow) -> Iterator[Node]:
    """One line each; those that name the target share one."""
    target = [f"{name}={value}" for name, value in chosen.parameters.items() if name.startswith(_OF_TARGET)]
    yield from (_parameter(told, chosen, name) for name in chosen.parameters if not name.startswith(_OF_TARGET))
    if target:
        yield Node(f"{' '.join(target)} (set by code: the verified target)")


_OF_TARGET: Final = "TARGET_RESOURCE_"


def _parameter(told: CaseObjects, chosen: SelectedWorkflow, name: str) -> Node:
    return Node(f"{name}={chosen.parameters[name]} ({_source(told, name)})")


def _source(told: CaseObjects, name: str) -> str:
    """Which rule gave a parameter."""
    wish = told.investigation.spec.workflow
    if wish is not None and name in wish.parameters:
        return "named by the person who asked"
    if told.by_model and wish is None:
        return "named by the model, checked against the workflow's schema"
    rule = PARAMETER_RULES.get(name)
    return f"rule: {rule.says}" if rule else "the workflow's own default"


# --- the person --------------------------------------------------------------------------------------------------


def _asks(told: CaseObjects) -> bool:
    return told.status.ruling is None or told.status.ruling.decision is not RulingDecision.AUTO_APPROVED


def _ruling(told: CaseObjects) -> Iterator[Node]:
    status, ruling = told.status, told.status.ruling
    if ruling is None:
        yield from text_nodes(*status.warnings) if status.needs_human_review else ()
        return
    yield Node(join_present([ruling.decision, ruling.reason], ": "))
    yield from (Node(f"risk {one.score}: {one.reason}") for one in ruling.risk_factors)
    if ruling.degraded:
        yield Node("the policy could not be asked properly, so a person is asked", mark=State.ATTENTION)
    policy = text_after("policy ", ruling.query)
    digest = text_after("hash ", ruling.policy_hash)
    yield from text_nodes(join_present([policy, digest]))


def _decision(told: CaseObjects) -> Iterator[Node]:
    approval, request = told.status.approval, told.request
    if approval is None or approval.ref is None:
        return
    by = text_after(" by ", approval.decided_by)
    reason = text_after(": ", request.spec.decision_reason if request else None)
    yield Node(f"{text_of(approval.state)}{by}{reason}")
    if request is not None:
        yield from text_nodes(*(f"agreed: {one.user}{text_after(': ', one.reason)}" for one in request.spec.approvals))
        if request.spec.preview_diff:
            yield Node(request.spec.preview_diff, quote=True)


def _then(told: CaseObjects) -> Iterator[Node]:
    status, run = told.status, told.execution
    if run is not None:
        took = f"{run.status.duration_seconds} s" if run.status.duration_seconds is not None else ""
        yield Node(join_present([f"{run.name}: {text_of(run.status.phase)}", took]), text_nodes(*_run_lines(told)))
    elif status.execution is not None and status.execution.ref is not None:
        yield Node(f"{status.execution.ref.name} ran")
    if status.effectiveness is not None:
        score = text_after("score ", two_decimals(status.effectiveness.score))
        yield Node(f"effect: {join_present([status.effectiveness.reason, score])}")
    if (said := told.investigation.spec.feedback) is not None:
        yield Node(f"{said.by} says that the diagnosis was {said.verdict}", text_nodes(said.cause))


def _run_lines(told: CaseObjects) -> Sequence[str | None]:
    run = told.execution
    failure = run.status.failure.summary if run and run.status.failure else None
    undo = f"{told.undo.name}: {text_of(told.undo.status.phase)}" if told.undo else None
    return failure, undo
