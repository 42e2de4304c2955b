"""What DataStorage keeps of a case: its transcript, verdict and run.

Made from the facts alone; the id of an event derives from investigation and step, so that a repeated step is one event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from inquest.api.base import rfc3339
from inquest.api.investigation import Feedback
from inquest.api.refs import TargetRef
from inquest.api.types import ApprovalState, EffectivenessReason, Phase, Reason, Resolution
from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.outcome import Conclusion
from inquest.core.case.transitions import case_before, fold_case
from inquest.core.diagnosis.categories import NO_FAULT, category_from
from inquest.core.evidence.evidence import digest_of
from inquest.core.history.history import is_good
from inquest.core.history.lessons import EffectCheck, EffectLook, check_effect
from inquest.core.llm.conversation import AskModel, BudgetSpent
from inquest.core.llm.loop import next_move
from inquest.core.llm.messages import Invocation, Message, ModelReply
from inquest.core.remediation.proposal import Drift
from inquest.core.reporting.status import claims_of
from inquest.core.reporting.transcript import (
    NO_TOOLS,
    CallOutcome,
    Offered,
    ToolCallRecord,
    TranscriptTurn,
    fate_of,
    inquiry_of,
    transcript_turns,
)
from inquest.core.selection.selection import MAX_TRIES

PREVIEW: Final = 500
"""Characters of a text; the whole stands in the facts, which are stored beside the events."""
AGENT: Final = "aiagent"
OWN: Final = "inquest."
"""Types that begin so are ours alone; another service refuses them."""


@dataclass(frozen=True)
class AuditRecord:
    """One event of the audit trail, before it is addressed."""

    step: str
    event_type: str
    category: str
    action: str
    outcome: str
    at: datetime
    data: Mapping[str, Any]


def event_id(uid: str, step: str) -> str:
    """The same step gives the same id, so that a repeat is one record."""
    return str(uuid5(NAMESPACE_URL, f"inquest:{uid}:{step}"))


def audit_records(case: Case, uid: str, run: Mapping[str, Any], tools: Offered = NO_TOOLS) -> tuple[AuditRecord, ...]:
    """Everything of an ended case that DataStorage keeps, in the order in which it happened.

    `run` holds what the execution's status says, `tools` what the conversations were offered.
    """
    audited = _AuditedCase(case, uid, tools, {one.fact: one for one in transcript_turns(case, tools)})
    told = (one for number, fact in enumerate(case.facts) for one in _told(audited, number, fact))
    return (*told, *_run_records(case, uid, run), *_ending(audited, run))


def feedback_record(case: str, uid: str, said: Feedback, at: datetime) -> AuditRecord:
    """What a person said of an ended case, once; `at` is when it was heard."""
    kind = f"{OWN}feedback.given"
    data = {
        "event_type": kind,
        "event_id": event_id(uid, "feedback"),
        "incident_id": uid,
        "rr_name": case,
        "verdict": str(said.verdict),
        "cause": said.cause or "",
        "by": said.by,
    }
    return AuditRecord("feedback", kind, AGENT, "feedback_given", "success", at, data)


def digest_of_records(found: Sequence[AuditRecord]) -> str:
    """One hash over steps and payloads, for the status to name."""
    lines = (json.dumps([one.step, one.event_type, one.data], sort_keys=True, default=str) for one in found)
    return digest_of("\n".join(lines))


@dataclass(frozen=True)
class _AuditedCase:
    """What a record is made from."""

    case: Case
    uid: str
    tools: Offered
    exchanges: Mapping[int, TranscriptTurn]
    memory: dict[str, object] = field(default_factory=dict)
    """Of the case as it stood at each turn: one goes on from the turn before."""

    def agent(
        self, step: str, name: str, action: str, at: datetime, data: Mapping[str, Any], *, ok: bool
    ) -> AuditRecord:
        """An event of the investigation itself."""
        kind = name if name.startswith(OWN) else f"{AGENT}.{name}"
        head = {"event_type": kind, "event_id": event_id(self.uid, step), "incident_id": self.uid}
        return AuditRecord(step, kind, AGENT, action, "success" if ok else "failure", at, head | dict(data))

    def asked_by(self, place: int) -> TranscriptTurn | None:
        """The exchange to which a batch of tools belongs: the newest before it."""
        before = [number for number in self.exchanges if number < place]
        return self.exchanges[max(before)] if before else None


def _told(audited: _AuditedCase, number: int, fact: facts.Fact) -> Iterator[AuditRecord]:
    tell = _TELLERS.get(type(fact))
    return tell(audited, number, fact) if tell else iter(())


# --- looking --------------------------------------------------------------------------------------------------


def _snapshot(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    """What the snapshot read is evidence like any tool's."""
    for index, item in enumerate(fact.snapshot.evidence):
        data = {
            "tool_call_index": index,
            "tool_name": item.tool,
            "tool_result": item.text[:PREVIEW],
            "tool_arguments": dict(item.arguments) | {"evidence": item.id},
            "evidence_id": item.id,
            "digest": item.digest,
            "size": item.size,
            "status": str(item.status),
        }
        step = f"snapshot:{item.id}"
        yield audited.agent(step, "llm.tool_call", "llm_tool_call", item.observed_at, data, ok=item.holds)


def _enrichment(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    """Failed only where neither owner chain nor history could be read."""
    context, step = fact.context, f"{number}:{fact.SLOT}"
    if context.failure and not fact.history.available:
        target: TargetRef = context.target
        failed = {
            "reason": "NotResolved",
            "detail": context.failure,
            "affected_resource_kind": target.kind,
            "affected_resource_name": target.name,
        }
        yield audited.agent(step, "enrichment.failed", "enrichment", fact.at, failed, ok=False)
        return
    data = {
        "root_owner_kind": context.root.kind,
        "root_owner_name": context.root.name,
        "owner_chain_length": len(context.chain),
        "remediation_history_fetched": fact.history.available,
        "spec_hash": context.spec_hash,
        "failed_detections": [gap.what for gap in context.gaps],
    }
    yield audited.agent(step, "enrichment.completed", "enrichment", fact.at, data, ok=True)


# --- the conversations ----------------------------------------------------------------------------------------


def _turn(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    found = audited.exchanges.get(number)
    if found is None:
        return
    step = f"{number}:{fact.SLOT}"
    yield audited.agent(f"{step}:request", "llm.request", "llm_request", fact.at, _request(audited, found), ok=True)
    response = {"phase": str(found.invocation), "turn": found.turn, **_said(found.reply)}
    yield audited.agent(step, "llm.response", "llm_response", fact.at, response, ok=True)
    if fact.reply.reserved:
        yield _tripped(audited, f"{step}:guard", fact.at, fact.reply.reserved)
    for index, asked in enumerate(found.calls):
        if asked.result is not None and not asked.made:
            yield from _call(audited, f"{step}:{index}", found, index, asked, fact.at)


def _streams(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    """What each stream said, or read: claims may cite it."""
    for name, slot in fact.moves:
        step, phase = f"{number}:{fact.SLOT}:{name}", {"phase": f"stream/{name}"}
        if isinstance(slot, ModelReply):
            yield audited.agent(step, "llm.response", "llm_response", fact.at, phase | _said(slot), ok=True)
            continue
        for index, result in enumerate(slot):
            stored = result.evidence
            text = stored.text if stored else result.content
            data = phase | {
                "tool_call_index": index,
                "tool_name": result.tool,
                "tool_result": text[:PREVIEW],
                "tool_arguments": dict(stored.arguments) if stored else {},
                "evidence_id": stored.id if stored else "",
                "digest": stored.digest if stored else "",
                "size": len(text),
                "status": str(fate_of(result)),
                "duration_ms": result.milliseconds,
            }
            yield audited.agent(f"{step}:{index}", "llm.tool_call", "llm_tool_call", fact.at, data, ok=not result.error)


def _request(audited: _AuditedCase, found: TranscriptTurn) -> dict[str, Any]:
    """How much the model was shown, and the beginning of what came last; the facts hold the whole."""
    messages, tools = _shown(audited, found)
    return {
        "model": found.reply.model or audited.case.opened.pinned.model,
        "phase": str(found.invocation),
        "turn": found.turn,
        "prompt_length": sum(len(message.content) for message in messages),
        "prompt_preview": messages[-1].content[:PREVIEW] if messages else "",
        "tools": list(tools),
    }


def _shown(audited: _AuditedCase, found: TranscriptTurn) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Messages of the request that this reply answered, and the tools that it offered."""
    until = case_before(audited.case, found.fact, audited.memory)
    inquiry = inquiry_of(until, audited.tools, found.invocation)
    late = float("inf") if found.reply.reserved == BudgetSpent.TIME else 0.0
    move = next_move(inquiry, elapsed=late)
    if not isinstance(move, AskModel):
        return (), ()
    return move.request.messages, tuple(tool.name for tool in move.request.tools)


def _said(reply: ModelReply) -> dict[str, Any]:
    return {
        "model": reply.model,
        "has_analysis": bool(reply.text),
        "analysis_length": len(reply.text),
        "analysis_preview": reply.text[:PREVIEW],
        "tokens_used": reply.usage.total,
        "prompt_tokens": reply.usage.prompt,
        "cached_tokens": reply.usage.cached,
        "completion_tokens": reply.usage.completion,
        "tool_call_count": len(reply.tool_calls),
        "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        "truncation_detected": reply.finish_reason == "length",
        "duration_ms": reply.milliseconds,
    }


def _batch(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    found, step = audited.asked_by(number), f"{number}:{fact.SLOT}"
    known = {asked.result.call_id: asked for asked in found.calls if asked.result} if found else {}
    for index, result in enumerate(fact.results):
        asked = known.get(result.call_id)
        if found is not None and asked is not None:
            yield from _call(audited, f"{step}:{index}", found, index, replace(asked, result=result), fact.at)
        if result.suspect and result.evidence is not None:
            suspect = {"evidence_id": result.evidence.id, "tool_name": result.tool, "lines": list(result.suspect)}
            own = f"{step}:{index}:suspect"
            yield audited.agent(own, f"{OWN}injection.suspected", "injection_suspected", fact.at, suspect, ok=False)


def _call(
    audited: _AuditedCase, step: str, found: TranscriptTurn, index: int, asked: ToolCallRecord, at: datetime
) -> Iterator[AuditRecord]:
    stored = asked.result.evidence if asked.result else None
    data = {
        "phase": str(found.invocation),
        "turn": found.turn,
        "tool_call_index": index,
        "tool_name": asked.tool,
        "tool_result": asked.text[:PREVIEW],
        "tool_arguments": dict(asked.arguments),
        "evidence_id": asked.evidence,
        "digest": stored.digest if stored else "",
        "size": stored.size if stored else len(asked.text),
        "status": str(asked.fate),
        "duration_ms": asked.result.milliseconds if asked.result else 0,
    }
    ok = asked.fate in (CallOutcome.OK, CallOutcome.DUPLICATE)
    yield audited.agent(step, "llm.tool_call", "llm_tool_call", at, data, ok=ok)
    if asked.fate is CallOutcome.REFUSED:
        yield _tripped(audited, f"{step}:guard", at, asked.error or str(CallOutcome.REFUSED), asked.tool)


def _tripped(audited: _AuditedCase, step: str, at: datetime, guard: str, tool: str = "") -> AuditRecord:
    pinned = audited.case.opened.pinned
    budget = {
        "maxTurns": pinned.max_turns,
        "maxToolCalls": pinned.max_tool_calls,
        "tokenBudget": pinned.token_budget,
        "timeoutSeconds": int(pinned.timeout.total_seconds()),
    }
    data = {"guard": guard[:PREVIEW], "tool_name": tool, "budget": budget}
    return audited.agent(step, f"{OWN}guardrail.tripped", "guardrail_tripped", at, data, ok=False)


# --- the verdict ----------------------------------------------------------------------------------------------


def _diagnosed(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    found = fact.diagnosis
    of_rca = [one.reply.usage.total for one in audited.exchanges.values() if one.invocation is Invocation.RCA]
    answer = {
        "incidentId": audited.uid,
        "analysis": found.analysis or found.summary,
        "rootCauseAnalysis": {
            "summary": found.summary,
            "signalType": found.signal_type,
            "contributingFactors": list(found.contributing_factors),
            "causalChain": list(found.causal_chain),
        },
        "confidence": found.confidence or 0.0,
        "timestamp": rfc3339(fact.at),
        "claims": [claim.to_object() for claim in claims_of(audited.case)],
        "tokens": sum(of_rca),
    }
    yield audited.agent("rca", "rca.complete", "rca_complete", fact.at, {"response_data": answer}, ok=True)


def _tried(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    choice, found = fact.reply.choice, fact.validation
    final = found.valid or fact.number >= MAX_TRIES
    data = {
        "attempt": fact.number,
        "max_attempts": MAX_TRIES,
        "is_valid": found.valid,
        "errors": list(found.errors),
        "workflow_id": choice.workflow_id if choice else "",
        "is_final_attempt": final,
    }
    step = f"{number}:{fact.SLOT}"
    yield audited.agent(step, "workflow.validation_attempt", "validation_attempt", fact.at, data, ok=found.valid)


def _selected(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    yield _complete(audited, fact.verdict, fact.at)


def _closed(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    """One result for a case: told when a workflow was selected, or at the end."""
    # A request that was open, or an approval that was given, when the case ended without a run.
    asked, decided = audited.case.last(facts.ApprovalRequested), audited.case.last(facts.ApprovalDecided)
    is_open = asked is not None and (decided is None or decided.state is ApprovalState.APPROVED)
    if is_open and audited.case.last(facts.ExecutionCreated) is None:
        verdict = fact.verdict
        word = fact.drift.reason if fact.drift else verdict.sub_reason or verdict.reason
        yield _voided(audited, str(word or verdict.phase), verdict.message, fact.drift, fact.at)
    if fact.timeout_phase is not None:
        yield _tripped(audited, "timeout:guard", fact.at, str(Reason.TIMED_OUT))
    if audited.case.last(facts.Proposed) is not None:
        return
    if fact.verdict.outcome is not None:
        yield _complete(audited, fact.verdict, fact.at)
        return
    opened = audited.case.first(facts.Opened)
    milliseconds = max(0, int((fact.at - opened.at).total_seconds() * 1000)) if opened else 0
    data = {
        "error_message": fact.verdict.message,
        "phase": str(fold_case(audited.case.facts[:-1]).phase),
        "reason": str(fact.verdict.reason),
        "duration_ms": milliseconds,
    }
    yield audited.agent("response", "response.failed", "response_failed", fact.at, data, ok=False)


def _complete(audited: _AuditedCase, verdict: Conclusion, at: datetime) -> AuditRecord:
    merged = verdict.merged
    workflow = merged.workflow if merged else None
    answer = {
        "incidentId": audited.uid,
        "analysis": verdict.message,
        "rootCauseAnalysis": {"summary": merged.summary if merged else ""},
        "confidence": (merged.confidence if merged else None) or 0.0,
        "timestamp": rfc3339(at),
        "outcome": str(verdict.outcome),
        "needsHumanReview": verdict.needs_review,
        "humanReviewReason": str(verdict.review_reason or ""),
        "selectedWorkflow": workflow.workflow_id if workflow else "",
        "warnings": [warning.text for warning in merged.warnings] if merged else [],
    }
    return audited.agent("response", "response.complete", "response_complete", at, {"response_data": answer}, ok=True)


# --- ruling and approval --------------------------------------------------------------------------------------


def _ruled(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    kind = "aianalysis.rego.evaluation"
    data = {
        "event_type": kind,
        "outcome": str(fact.ruling.decision),
        "degraded": fact.ruling.degraded,
        "duration_ms": 0,
        "reason": fact.ruling.reason,
    }
    yield AuditRecord("ruling", kind, "analysis", "policy_evaluation", "success", fact.at, data)


def _requested(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    if fact != audited.case.first(facts.ApprovalRequested):
        return
    kind = "orchestrator.approval.requested"
    data = {"event_type": kind, "rar_name": fact.name, **_case_names(audited.case)}
    yield AuditRecord("asked", kind, "orchestration", "approval_requested", "pending", fact.at, data)


def _decided(audited: _AuditedCase, number: int, fact: Any) -> Iterator[AuditRecord]:
    if fact.state not in (ApprovalState.APPROVED, ApprovalState.REJECTED):
        # It says no time of its own: the case ends with it.
        at = audited.case.closed.at if audited.case.closed else fact.decided_at or audited.case.opened.at
        yield _voided(audited, str(fact.void or fact.state), fact.reason, fact.drift, at)
        return
    word = str(fact.state).lower()
    who = "approved_by" if fact.state is ApprovalState.APPROVED else "rejected_by"
    kind = f"orchestrator.approval.{word}"
    data = {"event_type": kind, "decision": str(fact.state), who: fact.by, **_case_names(audited.case)}
    at = fact.decided_at or audited.case.opened.at
    yield AuditRecord("decision", kind, "orchestration", f"approval_{word}", "success", at, data)


def _voided(audited: _AuditedCase, reason: str, message: str, drift: Drift | None, at: datetime) -> AuditRecord:
    """Once in a case: what is void is not decided again."""
    asked, decided = audited.case.last(facts.ApprovalRequested), audited.case.last(facts.ApprovalDecided)
    selected = audited.case.last(facts.Proposed)
    pin, kind = selected.proposal.pin if selected else None, f"{OWN}approval.voided"
    data = {
        "event_type": kind,
        **_case_names(audited.case),
        "rar_name": asked.name if asked else "",
        "workflow_id": (pin.workflow_id or pin.id) if pin else "",
        "decided_by": decided.by if decided else "",
        "reason": reason,
        "message": message,
        "approved_digest": drift.approved if drift else "",
        "found_digest": drift.found if drift else "",
    }
    return AuditRecord("void", kind, "orchestration", "approval_voided", "failure", at, data)


Teller = Callable[[_AuditedCase, int, Any], Iterator[AuditRecord]]
_TELLERS: Final[Mapping[type[facts.Fact], Teller]] = {
    facts.SnapshotTaken: _snapshot,
    facts.ContextResolved: _enrichment,
    facts.RcaReplied: _turn,
    facts.SelectionReplied: _turn,
    facts.ToolsRan: _batch,
    facts.StreamsMoved: _streams,
    facts.Diagnosed: _diagnosed,
    facts.SelectionTried: _tried,
    facts.Proposed: _selected,
    facts.PolicyRuled: _ruled,
    facts.ApprovalRequested: _requested,
    facts.ApprovalDecided: _decided,
    facts.Closed: _closed,
}


# --- the run --------------------------------------------------------------------------------------------------


def _run_records(case: Case, uid: str, run: Mapping[str, Any]) -> Iterator[AuditRecord]:
    selected, created = case.last(facts.Proposed), case.last(facts.ExecutionCreated)
    if selected is None or created is None or case.closed is None:
        return
    pin, target = selected.proposal.pin, selected.proposal.target
    data = {
        "event_type": "remediation.workflow_created",
        **_case_names(case),
        "pre_remediation_spec_hash": run.get("preSpecHash") or target.spec_hash or "",
        "target_resource": f"{target.namespace or ''}/{target.kind}/{target.name}",
        "action_type": pin.action_type,
        "signal_type": case.opened.spec.signal.name,
        "signal_fingerprint": case.fingerprint,
        "workflow_id": pin.workflow_id or pin.id,
        "workflow_version": pin.version,
    }
    kind = "remediation.workflow_created"
    yield AuditRecord("workflow_created", kind, "orchestration", "workflow_created", "success", created.at, data)
    yield from _effect_records(case, uid, run)
    done = case.phase is Phase.COMPLETED
    ended = f"orchestrator.lifecycle.{'completed' if done else 'failed'}"
    body = {"event_type": ended, **_case_names(case), "outcome": "Success" if done else "Failed"}
    verb = "lifecycle_completed" if done else "lifecycle_failed"
    yield AuditRecord("lifecycle", ended, "orchestration", verb, "success" if done else "failure", case.closed.at, body)


def _effect_records(case: Case, uid: str, run: Mapping[str, Any]) -> Iterator[AuditRecord]:
    found, at = run.get("effectiveness") or {}, case.closed.at if case.closed else case.opened.at
    common = {"correlation_id": uid, "namespace": case.opened.namespace}
    if run.get("postSpecHash"):
        data = {
            "component": "hash",
            "pre_remediation_spec_hash": run.get("preSpecHash") or "",
            "post_remediation_spec_hash": run["postSpecHash"],
            "hash_match": run.get("preSpecHash") == run["postSpecHash"],
        }
        yield _effect("hash.computed", common | data, at)
    for component, more in _COMPONENTS.items():
        score = found.get(component)
        if score is not None:
            data = {"component": component, "assessed": True, "score": score, **more(score)}
            yield _effect(f"{component}.assessed", common | data, at)
    if found.get("reason"):
        data = {"component": "completed", "reason": found["reason"]}
        yield _effect("assessment.completed", common | data, at)


def _score_alone(score: float) -> dict[str, Any]:
    return {}


def _alert_resolution(score: float) -> dict[str, Any]:
    return {"alert_resolution": {"alert_resolved": score >= 1.0}}


_COMPONENTS: Final[Mapping[str, Callable[[float], dict[str, Any]]]] = {
    "health": _score_alone,
    "alert": _alert_resolution,
    "metrics": _score_alone,
}
"""What is assessed, and what its event says besides the score."""


def _effect(name: str, data: Mapping[str, Any], at: datetime) -> AuditRecord:
    kind = f"effectiveness.{name}"
    verb = name.replace(".", "_")
    return AuditRecord(kind, kind, "effectiveness", verb, "success", at, {"event_type": kind, **data})


# --- what later cases learn -------------------------------------------------------------


def _ending(audited: _AuditedCase, run: Mapping[str, Any]) -> Iterator[AuditRecord]:
    """How a case with a cause ended: names and words of closed lists, no text and no parameter."""
    case, diagnosed, taken = audited.case, audited.case.last(facts.Diagnosed), audited.case.first(facts.SnapshotTaken)
    category = category_from(diagnosed.diagnosis.signal_type) if diagnosed else ""
    if case.closed is None or taken is None or not case.fingerprint or not category or category in NO_FAULT:
        return
    selected, created = case.last(facts.Proposed), case.last(facts.ExecutionCreated)
    check = check_of(case, run)
    data = {
        "owner": case.fingerprint,
        "playbooks": sorted(one.name for one in taken.playbooks),
        "category": category,
        "check": str(check),
        "ended_at": rfc3339(case.closed.at),
        "action": selected.proposal.pin.action_type if selected and created else "",
    }
    ok = check is not EffectCheck.REGRESSION
    yield audited.agent("ending", f"{OWN}case.ended", "case_ended", case.closed.at, data, ok=ok)


def check_of(case: Case, run: Mapping[str, Any]) -> EffectCheck:
    """What the look after the change said; where nothing was changed, or nobody could look, nothing is known."""
    taken = case.first(facts.SnapshotTaken)
    issues = frozenset(found.category for found in taken.findings) if taken else None
    return check_effect(EffectLook(issues), _after(case, run))


def _after(case: Case, run: Mapping[str, Any]) -> EffectLook:
    closed = case.closed
    if case.last(facts.ExecutionCreated) is None or closed is None:
        return EffectLook(None)
    if closed.verdict.reason in FAILED_RUNS:
        ran = (run.get("failure") or {}).get("ran", True)
        return EffectLook(frozenset({str(closed.verdict.reason)}) if ran else None)
    if closed.assessed not in LOOKED or closed.score is None:
        return EffectLook(None)
    health = (run.get("effectiveness") or {}).get("health")
    clean = closed.verdict.resolution is Resolution.REMEDIATED and is_good(closed.score) and health in (None, 1)
    issues = frozenset[str]() if clean else frozenset({str(closed.verdict.resolution)})
    return EffectLook(issues, complete=closed.assessed in COMPLETE)


FAILED_RUNS: Final = frozenset({Reason.EXECUTION_FAILED, Reason.TIMED_OUT, Reason.ROLLED_BACK})
"""Of a case that had begun its run: what failed or was taken back did not help."""
COMPLETE: Final = frozenset({EffectivenessReason.FULL, EffectivenessReason.PARTIAL})
"""All that was in scope was seen."""
LOOKED: Final = COMPLETE | {EffectivenessReason.METRICS_TIMED_OUT, EffectivenessReason.ALERT_DECAY_TIMEOUT}
"""The other words say that the target was gone, changed by others, or never seen."""


def _case_names(case: Case) -> dict[str, str]:
    return {"rr_name": case.opened.name, "namespace": case.opened.namespace}
