"""The status of an Investigation. All of it follows from the facts, nothing is decided here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from inquest.api import findings as api_findings
from inquest.api import investigation as api
from inquest.api.findings import SnapshotSummary
from inquest.api.names import target_display, workflow_display
from inquest.api.refs import ObjectRef, OwnerRef, TargetRef
from inquest.api.types import ApprovalState, InvestigationOutcome, Phase, Severity, SubReason
from inquest.core.case import facts
from inquest.core.case.case import Case, replies_in, results_in, told_diagnosis
from inquest.core.case.investigating import stream_findings
from inquest.core.case.merging import MergedResult
from inquest.core.case.outcome import selected_message
from inquest.core.cluster.objects import spec_of
from inquest.core.diagnosis.claims import CheckedClaim
from inquest.core.diagnosis.diagnosis import Cause
from inquest.core.diagnosis.health import flags_of
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, Finding, Gap, Health, digest_of
from inquest.core.history.history import ineffective_count
from inquest.core.history.lessons import memory_lines
from inquest.core.history.warnings import history_warnings
from inquest.core.llm.messages import Invocation, ModelReply, Usage, total_cost
from inquest.core.llm.planning.visible_plan import STEP_ARGUMENT, plan_of
from inquest.core.llm.streams import StreamFinding
from inquest.core.llm.tool_calls import arguments_of
from inquest.core.reporting.message import message_with_cause
from inquest.core.reporting.transcript import (
    NO_TOOLS,
    CallOutcome,
    Offered,
    ToolCallRecord,
    TranscriptTurn,
    transcript_turns,
)
from inquest.core.selection.parameters import parameter_texts
from inquest.core.selection.selection import wanted_actions
from inquest.core.text import shorten

MAX_EVIDENCE: Final = 64
MAX_QUOTAS: Final = 50
MAX_PARAMETERS: Final = 50
MAX_FINDINGS: Final = 24
MAX_GAPS: Final = 32
MAX_PROGRESS: Final = 50
PREVIEW: Final = 200
"""Characters of a result in the progress: enough to see what came, little enough for fifty of them."""

OUTCOME_WORDS: Final[Mapping[str, InvestigationOutcome]] = {
    "actionable": InvestigationOutcome.ACTIONABLE,
    "not_actionable": InvestigationOutcome.NOT_ACTIONABLE,
    "problem_resolved": InvestigationOutcome.PROBLEM_RESOLVED,
    "insufficient_data": InvestigationOutcome.INSUFFICIENT_DATA,
    "inconclusive": InvestigationOutcome.INCONCLUSIVE,
}


# --- status ---------------------------------------------------------------------------------------------------


Turns = tuple[TranscriptTurn, ...]
"""The conversations, told once for all parts."""


def status_changes(case: Case, tools: Offered = NO_TOOLS) -> dict[str, Any]:
    """The status of an Investigation by attribute name; what is not known yet is left out.

    `tools` are what its conversations were offered.
    """
    if not case.facts:
        return {"phase": Phase.PENDING, "target_display": None}
    turns: Turns = ()
    if case.first(facts.Opened) is None:
        return {"phase": case.phase, "message": _message(case), **_end(case, turns)}
    turns = transcript_turns(case, tools)
    changes: dict[str, Any] = {"truncated": ()}
    for part in _PARTS:
        changes |= part(case, turns)
    return changes


def _opening(case: Case, turns: Turns) -> dict[str, Any]:
    opened = case.opened
    return {
        "phase": case.phase,
        "fingerprint": case.fingerprint or None,
        "started_at": opened.at,
        "deadline": opened.at + opened.pinned.timeout,
        "target_display": target_display(shown_target(case)),
        "message": _message(case),
    }


def _message(case: Case) -> str:
    """The cause in one sentence, as soon as it is known, then what was done about it or is being done."""
    known = case.last(facts.Diagnosed)
    cause = known.diagnosis.summary if known and known.diagnosis.causes else ""
    return shorten(message_with_cause(_step(case), cause), 1024)


def _step(case: Case) -> str:
    if case.closed is not None:
        return case.closed.verdict.message
    selected = case.last(facts.Proposed)
    if selected is None:
        return _WAITING[case.phase]
    if case.last(facts.PolicyRuled) is None:
        return selected.verdict.message
    return selected_message(selected.proposal.pin.id, selected.proposal.confidence)


_WAITING: Final[Mapping[Phase, str]] = {
    Phase.PENDING: "waiting for a free place",
    Phase.INVESTIGATING: "looking for the root cause",
    Phase.SELECTING: "looking for a workflow that fits",
    Phase.ANALYZING: "asking the policy",
    Phase.AWAITING_APPROVAL: "waiting for a person",
    Phase.EXECUTING: "the workflow runs",
    Phase.VERIFYING: "looking whether it helped",
}


def _seen(case: Case, turns: Turns) -> dict[str, Any]:
    taken = case.first(facts.SnapshotTaken)
    if taken is None:
        return {}
    snapshot = taken.snapshot
    streams = tuple(map(_of_stream, stream_findings(case)))
    findings = (*map(_finding, taken.findings[: MAX_FINDINGS - len(streams)]), *streams)
    return {
        "findings": findings,
        "observations": tuple(shorten(found.summary, 500) for found in taken.observations),
        "playbooks": tuple(book.name for book in taken.playbooks[:10]),
        "evidence": tuple(_entry(item) for item in _listed(case)),
        "gaps": tuple(_gap(gap) for gap in _gaps(case, turns)[:MAX_GAPS]),
        "snapshot": SnapshotSummary(
            taken_at=snapshot.taken_at,
            has_issues=taken.health is Health.UNHEALTHY,
            has_warnings=any(event.object.get("type") == "Warning" for event in snapshot.of_kind("Event")),
            pod_count=flags_of(snapshot).pod_count,
            complete=snapshot.complete,
            digest=digest_of("".join(item.digest for item in snapshot.evidence)),
        ),
    }


def _listed(case: Case) -> list[Evidence]:
    """As much evidence as the status holds, in its order; what is cited comes before what is not."""
    taken = case.first(facts.SnapshotTaken)
    findings = (name for found in (taken.findings if taken else ()) for name in found.evidence)
    cited = {name for claim in claims_of(case) for name in claim.evidence} | set(findings)
    first = sorted(case.evidence, key=lambda item: item.id not in cited)[:MAX_EVIDENCE]
    chosen = {item.id for item in first}
    return [item for item in case.evidence if item.id in chosen]


def _gaps(case: Case, turns: Turns) -> tuple[Gap, ...]:
    """Every read that gave nothing: of the snapshot, of the context, of the tools; a refusal is one too."""
    taken = case.first(facts.SnapshotTaken)
    contexts = (gap for fact in case.all(facts.ContextResolved) for gap in fact.context.gaps)
    calls = (_gap_of(asked) for one in turns for asked in one.calls if asked.error)
    memory = (Gap("outcome memory", taken.memory.why),) if taken and not taken.memory.available else ()
    return tuple(dict.fromkeys((*(taken.snapshot.gaps if taken else ()), *memory, *contexts, *calls)))


def _gap(gap: Gap) -> api_findings.GapEntry:
    return api_findings.GapEntry(what=shorten(gap.what, 253), why=shorten(gap.why, 500))


def _gap_of(asked: ToolCallRecord) -> Gap:
    named = " ".join(str(value) for value in asked.arguments.values() if isinstance(value, str))
    why = asked.error if asked.error.startswith("[") else f"{asked.fate}: {asked.error}"
    return Gap(f"{shorten(asked.tool, 63)} {named}".strip(), why)


def _context(case: Case, turns: Turns) -> dict[str, Any]:
    resolved = case.last(facts.ContextResolved)
    if resolved is None:
        return {}
    context = resolved.context
    owner = OwnerRef(**_ref(context.root), uid=context.root_uid or None)
    if case.phase is Phase.INVESTIGATING:
        return {"root_owner": owner}
    quota = {
        name: api_findings.QuotaEntry(hard=shorten(found.hard, 63), used=shorten(found.used, 63))
        for name, found in islice(context.quota.items(), MAX_QUOTAS)
    }
    known = api_findings.ContextSummary(
        set_at=resolved.at,
        root_owner=owner,
        spec_hash=context.spec_hash or None,
        drift_hash=context.drift_hash or None,
        detected_labels=context.labels,
        quota_details=quota,
        history=_history(resolved, case.opened.pinned.repeat_threshold),
        lessons=tuple(shorten(line, 500) for line in _lessons(case)),
    )
    # The status keeps the context of the diagnosis: it is written once, when selection has ended.
    settled = case.last(facts.Proposed) is not None or case.closed is not None
    return {"root_owner": owner} | ({"context": known} if settled else {})


def _lessons(case: Case) -> tuple[str, ...]:
    taken = case.first(facts.SnapshotTaken)
    return memory_lines(taken.memory) if taken is not None else ()


def _history(resolved: facts.ContextResolved, repeat_threshold: int) -> api_findings.HistorySummary | None:
    found = resolved.history
    if not found.available:
        return None
    warnings = history_warnings(found, repeat_threshold=repeat_threshold)
    return api_findings.HistorySummary(
        regression_detected=found.regression_detected,
        entries=len(found.recent) + len(found.older),
        ineffective=ineffective_count(found),
        warnings=tuple(shorten(warning.text, 500) for warning in warnings)[:10],
    )


def _diagnosis(case: Case, turns: Turns) -> dict[str, Any]:
    found, merged = told_diagnosis(case), _merged(case)
    if found is None:
        return {}
    confidence = merged.confidence if merged is not None else found.confidence
    resolved = case.last(facts.ContextResolved)
    target_verified = resolved is not None and resolved.context.verified
    return {
        "confidence": confidence,
        "model_confidence": found.model_confidence,
        "root_cause": api_findings.RootCause(
            summary=shorten(found.summary, 2000) or None,
            severity=Severity(found.severity) if found.severity else None,
            signal_type=shorten(found.signal_type, 253) or None,
            contributing_factors=tuple(shorten(text, 500) for text in found.contributing_factors[:10]),
            analysis=shorten(found.analysis, 4000) or None,
            investigation_outcome=OUTCOME_WORDS.get(found.outcome),
            remediation_target=_bare(found.target) if found.target else None,
            target_verified=target_verified,
        ),
        "causes": tuple(_cause(cause) for cause in found.causes[:5]),
        "claims": tuple(_claim(claim) for claim in found.checked.claims[:24]),
    }


def _cautions(case: Case, turns: Turns) -> dict[str, Any]:
    found = tuple(dict.fromkeys(shorten(text, 500) for text in _warnings(case)))[:20]
    return {"warnings": found} if found else {}


def _merged(case: Case) -> MergedResult | None:
    selected = case.last(facts.Proposed)
    verdict = case.closed.verdict if case.closed else (selected.verdict if selected else None)
    return verdict.merged if verdict else None


def _warnings(case: Case) -> Iterator[str]:
    """What a reader should know, then what was asked for and not given."""
    yield from (text for fact in case.all(facts.ContextResolved) for text in fact.context.warnings)
    merged, fact = _merged(case), case.last(facts.Diagnosed)
    of_rca = fact.diagnosis.warnings if fact else ()
    yield from (warning.text for warning in (merged.warnings if merged is not None else of_rca))
    yield from fact.diagnosis.notes if fact else ()


def _choice(case: Case, turns: Turns) -> dict[str, Any]:
    tries = tuple(
        api_findings.ValidationAttempt(
            attempt=min(number, 3),
            workflow_id=shorten(tried.reply.choice.workflow_id, 253) if tried.reply.choice else None,
            valid=tried.validation.valid,
            errors=tuple(shorten(error, 500) for error in tried.validation.errors[:10]),
            timestamp=tried.at,
        )
        for number, tried in enumerate(case.all(facts.SelectionTried), start=1)
    )
    changes = {"validation_attempts": tries[:3], "alternatives": alternatives_of(case)}
    chosen = _selected_workflow(case)
    if chosen is None:
        return changes
    display = workflow_display(chosen.action_type, chosen.id)
    return changes | {"selected_workflow": chosen, "workflow_display": display}


def alternatives_of(case: Case) -> tuple[api_findings.AlternativeWorkflow, ...]:
    """What was not chosen, for people; a word that can be no id names nothing."""
    merged = _merged(case)
    named = [other for other in merged.alternatives if _WORKFLOW_ID.fullmatch(other.workflow_id)] if merged else []
    return tuple(
        api_findings.AlternativeWorkflow(
            id=other.workflow_id, confidence=_figure(other.confidence), rationale=shorten(other.rationale, 500) or None
        )
        for other in named[:5]
    )


_WORKFLOW_ID: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _figure(confidence: float | None) -> float | None:
    return None if confidence is None else min(1.0, max(0.0, confidence))


def _selected_workflow(case: Case) -> api_findings.SelectedWorkflow | None:
    selected = case.last(facts.Proposed)
    if selected is None:
        return _kept_workflow(case)
    proposal = selected.proposal
    return api_findings.SelectedWorkflow(
        **proposal.pin.model_dump(),
        parameters=_shown_parameters(proposal.parameters),
        confidence=proposal.confidence,
        rationale=shorten(proposal.rationale, 2000) or None,
    )


def _kept_workflow(case: Case) -> api_findings.SelectedWorkflow | None:
    """What an ended case would have run stays for the person; no record, no exact workflow."""
    tried, merged = case.last(facts.SelectionTried), _merged(case)
    workflow = merged.workflow if merged else None
    if tried is None or workflow is None or tried.validation.record is None or not tried.validation.valid:
        return None
    found = tried.validation.record
    try:
        return api_findings.SelectedWorkflow(
            id=spec_of(found.content).get("id") or found.name,
            version=found.version,
            workflow_id=found.workflow_id,
            action_type=found.action_type,
            content_hash=found.content_hash,
            engine="job",
            image=found.bundle or None,
            parameters=_shown_parameters(parameter_texts(tried.validation.parameters)),
            confidence=workflow.confidence or 0.0,
            rationale=shorten(workflow.rationale, 2000) or None,
        )
    except ValidationError:
        # A catalogue of another make may keep what no workflow of ours can be.
        return None


def _shown_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: shorten(text, 4096) for name, text in islice(parameters.items(), MAX_PARAMETERS)}


def _decision(case: Case, turns: Turns) -> dict[str, Any]:
    ruled = case.last(facts.PolicyRuled)
    if ruled is None:
        return {}
    ruling = ruled.ruling
    changes: dict[str, Any] = {
        "ruling": ruling.to_status(),
        "approval_required": ruling.asks,
        "approval_reason": shorten(ruling.reason, 512) or None,
        "degraded": ruling.degraded,
    }
    created = case.last(facts.ExecutionCreated)
    if created is not None:
        changes["execution"] = api.ExecutionSummary(ref=ObjectRef(name=created.name, uid=created.uid))
    return changes | {"approval": _approval(case)}


def _approval(case: Case) -> api.ApprovalSummary:
    asked, decided = case.last(facts.ApprovalRequested), case.last(facts.ApprovalDecided)
    if asked is None:
        ruled = case.last(facts.PolicyRuled)
        denied = ruled is not None and ruled.ruling.decision == "Denied"
        return api.ApprovalSummary(state=ApprovalState.DENIED if denied else _unasked(case))
    ref = ObjectRef(name=asked.name, uid=asked.uid)
    if decided is None:
        # A case that ends takes its open request along.
        return api.ApprovalSummary(ref=ref, state=ApprovalState.VOIDED if case.closed else ApprovalState.PENDING)
    return api.ApprovalSummary(
        ref=ref, state=decided.state, decided_by=decided.by or None, decided_at=decided.decided_at
    )


def _unasked(case: Case) -> ApprovalState:
    ruled = case.last(facts.PolicyRuled)
    return ApprovalState.PENDING if ruled is not None and ruled.ruling.asks else ApprovalState.AUTO


def _cost(case: Case, turns: Turns) -> dict[str, Any]:
    """Derived from the journal, so that it is right after any number of restarts."""
    replies = replies_of(case)
    usage = sum((reply.usage for reply in replies), Usage())
    batches = [results_in(fact) for fact in case.facts]
    worked = sum(reply.milliseconds for reply in replies)
    worked += sum(max((result.milliseconds for result in results), default=0) for results in batches)
    # As text without an exponent; an unknown cost is not 0.
    cost = total_cost(replies)
    return {
        "usage": api.UsageSummary(
            model=shorten(replies[-1].model, 253) if replies else None,
            turns=len(replies),
            tool_calls=sum(len(results) for results in batches),
            prompt_tokens=usage.prompt,
            cached_tokens=usage.cached,
            completion_tokens=usage.completion,
            total_tokens=usage.total,
            cost=None if cost is None else f"{cost:.6f}".rstrip("0").rstrip("."),
            duration_seconds=round(worked / 1000),
        )
    }


def _progress(case: Case, turns: Turns) -> dict[str, Any]:
    """The last calls as they happened."""
    calls = [(one, asked) for one in turns for asked in one.calls]
    entries = (_entry_of_call(number, one, asked) for number, (one, asked) in enumerate(calls, start=1))
    # What the model set out to look at in invocation 1, and how far it came.
    ended = case.closed is not None or case.last(facts.Diagnosed) is not None
    found = plan_of((one for one in turns if one.invocation is Invocation.RCA), ended=ended)
    plan = tuple(api_findings.PlanStep(step=shorten(step.text, 200), state=step.state) for step in found)
    return {
        "progress": tuple(islice(entries, max(0, len(calls) - MAX_PROGRESS), None)),
        "plan": plan,
    }


def _entry_of_call(number: int, one: TranscriptTurn, asked: ToolCallRecord) -> api_findings.ProgressEntry:
    arguments = json.dumps(dict(asked.arguments), sort_keys=True, ensure_ascii=False, default=str)
    running = asked.fate is CallOutcome.RUNNING
    # The step of the plan that the call itself names.
    said = (arguments_of(asked.call) or {}).get(STEP_ARGUMENT)
    step = said if type(said) is int and 1 <= said <= 12 else None
    return api_findings.ProgressEntry(
        id=number,
        at=one.at,
        tool=shorten(asked.tool, 63) or None,
        arguments=shorten(arguments, PREVIEW),
        step=step,
        ok=None if running else asked.fate in (CallOutcome.OK, CallOutcome.DUPLICATE),
        milliseconds=asked.result.milliseconds if asked.result else None,
        evidence=asked.evidence if _EVIDENCE_ID.fullmatch(asked.evidence) else None,
        preview=shorten(asked.error or asked.text, PREVIEW) or None,
    )


def _end(case: Case, turns: Turns) -> dict[str, Any]:
    selected = case.last(facts.Proposed)
    if case.closed is None:
        return {"outcome": selected.verdict.outcome} if selected else {}
    verdict, at = case.closed.verdict, case.closed.at
    # What a workflow would have to do; none where one was found, or none was looked for.
    is_unmatched = verdict.sub_reason is SubReason.NO_MATCHING_WORKFLOWS
    wanted = wanted_actions(case.findings)[:10] if is_unmatched else ()
    # Whole seconds of work; 0 where it never began.
    opened = case.first(facts.Opened)
    duration = max(0, int((at - opened.at).total_seconds())) if opened else 0
    return {
        "outcome": verdict.outcome or (selected.verdict.outcome if selected else None),
        "resolution": verdict.resolution,
        "reason": verdict.reason,
        "sub_reason": verdict.sub_reason,
        "needs_human_review": verdict.needs_review,
        "human_review_reason": verdict.review_reason,
        "wanted_actions": wanted,
        "actionability": verdict.actionability,
        "completed_at": at,
        "duration_seconds": duration,
        "timeout_phase": case.closed.timeout_phase,
        "next_allowed": case.closed.next_allowed,
        "effectiveness": _effectiveness(case.closed),
        "consecutive_failures": 0,
    }


def _effectiveness(closed: facts.Closed) -> api.EffectivenessSummary | None:
    return api.EffectivenessSummary(score=closed.score, reason=closed.assessed) if closed.assessed else None


_PARTS: Final = (_opening, _seen, _context, _diagnosis, _cautions, _choice, _decision, _progress, _cost, _end)


def shown_target(case: Case) -> TargetRef:
    resolved = case.first(facts.ContextResolved)
    return resolved.context.root if resolved else case.target


def _finding(found: Finding) -> api_findings.FindingEntry:
    return api_findings.FindingEntry(
        detector=found.detector,
        category=found.category,
        object=_bare(found.object),
        field=shorten(found.field, 253) or None,
        value=shorten(found.value, 253) or None,
        summary=shorten(found.summary, 500),
        evidence=found.evidence[:16],
        confidence=found.confidence,
    )


def _of_stream(found: StreamFinding) -> api_findings.FindingEntry:
    """Beside the detectors', under a name of its own: the words are a model's."""
    return api_findings.FindingEntry(
        detector=f"stream/{found.domain}",
        summary=shorten(found.hypothesis, 500),
        evidence=found.evidence[:16],
        confidence=found.confidence,
    )


def _cause(found: Cause) -> api_findings.CauseEntry:
    return api_findings.CauseEntry(
        category=found.category or None,
        object=_bare(found.object),
        field=shorten(found.field, 253) or None,
        value=shorten(found.value, 253) or None,
        summary=shorten(found.summary, 500) or None,
        confidence=found.confidence,
        evidence=found.evidence[:16],
        explains=tuple(shorten(text, 253) for text in found.explains[:10]),
    )


def _claim(found: CheckedClaim) -> api_findings.Claim:
    return api_findings.Claim(
        text=shorten(found.text, 500),
        role=found.role,
        evidence=tuple(name for name in found.evidence if _EVIDENCE_ID.fullmatch(name))[:16],
        quote=shorten(found.quote, 300) or None,
        verdict=found.verdict,
        note=shorten(found.note, 200) or None,
    )


_EVIDENCE_ID: Final = re.compile(r"E[1-9][0-9]{0,14}")
"""A model may cite what was never shown to it; the claim's note says so."""


def claims_of(case: Case) -> tuple[api_findings.Claim, ...]:
    """The checked claims as they stand in the status."""
    fact = case.last(facts.Diagnosed)
    return tuple(_claim(claim) for claim in fact.diagnosis.checked.claims[:24]) if fact else ()


def _entry(item: Evidence) -> api_findings.EvidenceEntry:
    arguments = json.dumps(dict(item.arguments), sort_keys=True, default=str)
    return api_findings.EvidenceEntry(
        id=item.id,
        tool=shorten(item.tool, 63),
        args_digest=digest_of(arguments),
        digest=item.digest or None,
        size=item.size,
        truncated=item.status is EvidenceStatus.TRUNCATED,
        at=item.observed_at,
    )


def _ref(ref: TargetRef) -> dict[str, Any]:
    place = shorten(ref.namespace, 63) if ref.namespace else ref.namespace
    version = shorten(ref.api_version, 253) if ref.api_version else ref.api_version
    return {"api_version": version, "kind": ref.kind, "name": shorten(ref.name, 253), "namespace": place}


def _bare(ref: TargetRef) -> TargetRef:
    return TargetRef(**_ref(ref))


def replies_of(case: Case) -> tuple[ModelReply, ...]:
    """Every reply of a model in both invocations and in the streams."""
    return tuple(reply for fact in case.facts for reply in replies_in(fact))
