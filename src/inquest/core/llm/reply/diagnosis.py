"""A checked verdict of a model as a diagnosis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from inquest.api.findings import ClaimVerdict
from inquest.api.refs import TargetRef
from inquest.core.diagnosis.categories import UNKNOWN, category_from, squeeze_word
from inquest.core.diagnosis.claims import (
    HIGH_CERTAINTY,
    PROSE_CONFIDENCE,
    CheckedClaims,
    find_contradicting,
    overall_confidence,
    speaks_against,
)
from inquest.core.diagnosis.diagnosis import (
    MAX_DOUBTS,
    MAX_FACTORS,
    Cause,
    Diagnosis,
    agreement_of_findings,
    ranked_causes,
)
from inquest.core.evidence.evidence import CaseWarning, Evidence, Finding
from inquest.core.llm.reply.contradictions import find_contradictions
from inquest.core.llm.reply.reading import labelled_summary
from inquest.core.llm.reply.verdicts import FieldProblem, RcaVerdict


def diagnosis_from_reply(
    reply: RcaVerdict,
    checked: CheckedClaims,
    findings: Sequence[Finding] = (),
    *,
    signal_target: TargetRef | None = None,
    problems: Sequence[FieldProblem] = (),
    evidence: Iterable[Evidence] = (),
) -> Diagnosis:
    """A model's verdict as the checks leave it; `problems` are those that the corrective turn did not heal."""
    if (proof := _disproof(reply, findings)) is not None:
        return _unwell(reply, checked, proof, findings, problems)
    target, evidence = reply.target or signal_target, tuple(evidence)
    said = _said(reply.signal_name, evidence)
    is_belied = speaks_against(said, evidence)
    category = UNKNOWN if is_belied else said
    against = find_contradicting(findings, category, target)
    figure = overall_confidence(reply.confidence, checked, contradicted=is_belied or against is not None)
    return replace(
        _of_reply(reply, checked),
        signal_type=reply.signal_name if said == UNKNOWN else category,
        contributing_factors=reply.contributing_factors[:MAX_FACTORS],
        analysis=reply.analysis,
        causal_chain=reply.causal_chain,
        target=reply.target,
        causes=ranked_causes(_cause_of(reply, checked, category, target, figure), findings),
        confidence=figure,
        warnings=(
            *_cautions(checked, against),
            *((_belied_caution(said),) if is_belied else ()),
            *cautions_from(problems, find_contradictions(reply)),
        ),
    )


def _of_reply(reply: RcaVerdict, checked: CheckedClaims) -> Diagnosis:
    """What stays the model's own whatever code thinks of its cause."""
    return Diagnosis(
        reply.summary,
        severity=reply.severity,
        checked=checked,
        model_confidence=reply.confidence,
        outcome=reply.outcome,
        actionable=reply.actionable,
        needs_review=reply.needs_review or bool(reply.review_reason),
        review_reason=reply.review_reason,
        notes=_notes(reply, checked),
    )


def _said(word: str, evidence: Iterable[Evidence]) -> str:
    """The category of a model's word; pressure on memory is a kill for memory only where a termination says so."""
    category = category_from(word)
    is_pressure = squeeze_word(word) == "memorypressure"
    killed = (item for item in evidence if item.holds and item.api_fact and _KILLED.search(item.text))
    return UNKNOWN if is_pressure and next(killed, None) is None else category


_KILLED: Final = re.compile(r"\bOOMKilled\b")
WELL: Final = "Healthy"


def _disproof(reply: RcaVerdict, findings: Sequence[Finding]) -> Finding | None:
    """The finding of high certainty that is there although the model says that all is well."""
    said = category_from(reply.signal_name)
    says_well = said == WELL or (said == UNKNOWN and reply.outcome == "problem_resolved")
    sure = (found for found in findings if found.act and found.confidence >= HIGH_CERTAINTY)
    return next(sure, None) if says_well else None


def _unwell(
    reply: RcaVerdict,
    checked: CheckedClaims,
    proof: Finding,
    findings: Sequence[Finding],
    problems: Sequence[FieldProblem],
) -> Diagnosis:
    """What code has proven stands in the place of a verdict that denies it; a warning keeps the model's words."""
    said = f"A detector proves the contrary of the verdict: {proof.category} of {proof.object.display}"
    against = CaseWarning("FindingContradicts", f"{said}; the model said: {reply.summary}"[:MAX_DOUBTS])
    return replace(
        _of_reply(reply, checked),
        summary=proof.summary,
        signal_type=proof.category,
        contributing_factors=tuple(found.summary for found in findings if found is not proof)[:MAX_FACTORS],
        causal_chain=(*proof.explains[:1], proof.summary),
        target=proof.object,
        causes=ranked_causes((), findings),
        confidence=overall_confidence(reply.confidence, checked, contradicted=True),
        warnings=(against, *cautions_from(problems, find_contradictions(reply))),
    )


def _cautions(checked: CheckedClaims, against: Finding | None) -> tuple[CaseWarning, ...]:
    found = []
    if not checked.judged:
        found.append(
            CaseWarning("NoClaims", "No claim that could be checked was made; the confidence is the model's own")
        )
    if against:
        text = f"A detector names another cause: {against.category} of {against.object.display}"
        found.append(CaseWarning("FindingContradicts", text))
    return tuple(found)


def _belied_caution(said: str) -> CaseWarning:
    return CaseWarning("CategoryContradicted", f"Exit code 137 without a word of memory in the evidence is not {said}")


def cautions_from(problems: Sequence[FieldProblem], conflicts: Sequence[FieldProblem]) -> tuple[CaseWarning, ...]:
    """What is left of a reply's problems after the corrective turn."""
    paths = tuple(dict.fromkeys(problem.path for problem in problems if problem not in conflicts))
    found = []
    if paths:
        found.append(CaseWarning("ReplyProblems", f"Parts of the reply could not be used: {', '.join(paths)}"))
    if conflicts:
        found.append(warn_contradictory(conflicts))
    return tuple(found)


def warn_contradictory(conflicts: Sequence[FieldProblem]) -> CaseWarning:
    """The warning that policy sees when a verdict contradicts itself."""
    texts = "; ".join(f"{conflict.path} {conflict.value} {conflict.rule}" for conflict in conflicts)
    return CaseWarning("ContradictoryVerdict", f"Contradictory verdict: {texts}")


def _notes(reply: RcaVerdict, checked: CheckedClaims) -> tuple[str, ...]:
    asked = (
        ("cause", reply.cause_field),
        ("causal_chain", len(reply.causal_chain) > 1),
        ("due_diligence", reply.due_diligence),
        ("claims", reply.claims),
    )
    missing = [name for name, given in asked if not given]
    notes = [f"not given: {', '.join(missing)}"] if missing else []
    dropped = reply.dropped_claims + checked.dropped
    return tuple(notes + ([f"{dropped} claims dropped"] if dropped else []))


def _cause_of(
    reply: RcaVerdict, checked: CheckedClaims, category: str, target: TargetRef | None, figure: float | None
) -> tuple[Cause, ...]:
    if target is None:
        return ()
    proofs = [claim for claim in checked.claims if claim.verdict is ClaimVerdict.SUPPORTED]
    evidence = tuple(dict.fromkeys(name for claim in proofs for name in claim.evidence))
    return (Cause(category, target, reply.cause_field, reply.cause_value, reply.summary, figure, evidence),)


def diagnosis_without_verdict(
    findings: Sequence[Finding], evidence: Iterable[Evidence], why: str, reason: str = "", *, prose: str = ""
) -> Diagnosis:
    """What stays when a model gave nothing usable: the findings, else its prose, else that nothing is known."""
    if findings:
        found = agreement_of_findings(findings, evidence)
        notes = (f"by detectors alone: {why}",)
        return replace(found, outcome="", actionable=None, review_reason=reason, notes=notes, stopped=why)
    said = labelled_summary(prose)
    if said:
        notes = (f"from prose: {why}",)
        return Diagnosis(said, confidence=PROSE_CONFIDENCE, review_reason=reason, notes=notes, stopped=why)
    return Diagnosis(
        f"not determined: {why}",
        signal_type=UNKNOWN,
        confidence=0.0,
        review_reason=reason,
        causal_chain=(why,),
        stopped=why,
    )
