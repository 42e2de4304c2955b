"""The case as people see it: status, conditions, events, notices, records, and the byte budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.api.conditions import set_conditions
from inquest.api.findings import Claim, ClaimRole, ClaimVerdict, PlanStep, ProgressEntry
from inquest.api.investigation import InvestigationStatus
from inquest.api.refs import ObjectRef
from inquest.api.types import (
    TERMINAL_PHASES,
    ApprovalState,
    EffectivenessReason,
    ExecutionPhase,
    Phase,
    Reason,
    Resolution,
    VoidReason,
)
from inquest.core.case import endings, outcome
from inquest.core.case.case import Case
from inquest.core.case.facts import (
    Closed,
    Diagnosed,
    ExecutionCreated,
    Fact,
    NothingSelected,
    PolicyRuled,
    Proposed,
    RcaReplied,
    SnapshotTaken,
)
from inquest.core.case.merging import merge_results
from inquest.core.case.outcome import Conclusion
from inquest.core.case.steps import ObservedExecution
from inquest.core.case.transitions import ENDS, advance_case, fold_case
from inquest.core.cluster.detected_labels import Quota
from inquest.core.diagnosis.claims import CheckedClaim, CheckedClaims
from inquest.core.diagnosis.diagnosis import Cause, Diagnosis
from inquest.core.diagnosis.playbooks import PlaybookMatch
from inquest.core.evidence.evidence import CaseWarning, Citation, Gap, Health
from inquest.core.history.history import UNAVAILABLE, History, HistoryEntry
from inquest.core.remediation.approval import ApprovalStanding
from inquest.core.remediation.policy import after_ruling
from inquest.core.reporting import conditions as reporting_conditions
from inquest.core.reporting import metrics, notices
from inquest.core.reporting.events import case_events
from inquest.core.reporting.metrics import Measure
from inquest.core.reporting.status import MAX_EVIDENCE, status_changes
from inquest.core.reporting.status_budget import status_size, trim_status
from inquest.core.reporting.transcript import NO_TOOLS
from inquest.core.text import make_visible
from tests.support.tables import each_row
from tests.unit.core import cases

OPEN = tuple(phase for phase in Phase if phase not in TERMINAL_PHASES)
LATER = cases.AT + timedelta(hours=1)


def status_of(case: Case) -> InvestigationStatus:
    """Made with validation, and read again as the API server would have it."""
    made = InvestigationStatus(**status_changes(case))
    return InvestigationStatus.from_object(made.to_object())


def conditions_of(case: Case) -> dict[str, tuple[str, str]]:
    made = set_conditions((), "Investigation", reporting_conditions.condition_values(case), generation=1, now=LATER)
    return {found.type: (found.status, found.reason) for found in made}


# --- every end of every phase -------------------------------------------------------------------------------------


def _nine() -> Iterator[tuple[str, Case]]:
    """The ends that the inquiry itself comes to."""
    for name, world in {
        "nothing to do": cases.World(findings=(), health=Health.HEALTHY),
        "nothing known": cases.World(findings=(), health=Health.UNKNOWN, gaps=(Gap("pods", "forbidden"),)),
        "not verified": cases.World(contexts=lambda target: cases.context(target=target, verified=False)),
        "deleted": cases.World(contexts=lambda target: cases.context(target=target, verified=False, deleted=True)),
        "no workflow": cases.World(code=lambda: NothingSelected("nothing fits", cases.AT)),
        "not valid": cases.World(code=lambda: cases.tried(1, cases.invalid())),
        "low confidence": cases.World(code=lambda: cases.tried(choice=cases.choice(confidence=0.5))),
    }.items():
        yield name, world.run(cases.view())


def _rulings() -> Iterator[tuple[str, Case]]:
    for name, world in {
        "denied": cases.World(decision="Denied"),
        "dry run": cases.World({"dry_run": True}, decision="AutoApproved"),
        "dry run that asks": cases.World({"dry_run": True}),
    }.items():
        yield name, world.run(cases.view())
    yield "a guard halts", cases.World(decision="AutoApproved").run(cases.view(halt=cases.halt()))
    yield (
        "resolved at the last moment",
        cases.World(decision="AutoApproved").run(cases.view(halt=cases.resolved_halt())),
    )


def _decisions() -> Iterator[tuple[str, Case]]:
    waiting = cases.reached(Phase.AWAITING_APPROVAL)
    for standing, void in (
        (ApprovalStanding.REJECTED, None),
        (ApprovalStanding.EXPIRED, None),
        (ApprovalStanding.TAMPERED, None),
        (ApprovalStanding.USED, None),
        *((ApprovalStanding.VOIDED, void) for void in VoidReason),
    ):
        seen = cases.view(stand=cases.stand(standing, "said", void))
        yield f"{standing} {void or ''}".strip(), cases.World().run(seen, waiting)


def _runs() -> Iterator[tuple[str, Case]]:
    running, verifying = cases.reached(Phase.EXECUTING), cases.reached(Phase.VERIFYING)
    for ran in (True, False):
        seen = ObservedExecution(ExecutionPhase.FAILED, "OOMKilled", ran)
        yield f"failed, ran {ran}", cases.World().run(cases.view(execution=seen), running)
    yield "gone while executing", cases.World().run(cases.view(), running)
    yield "gone while verifying", cases.World().run(cases.view(), verifying)
    yield "verification cancelled", cases.World().run(cases.view(cancelled=True), verifying)
    for reason in (*EffectivenessReason, None):
        done = endings.VerifiedEffect(Resolution.REMEDIATED, reason, 0.5)
        seen = ObservedExecution(ExecutionPhase.SUCCEEDED, done=done)
        yield f"verified {reason}", cases.World().run(cases.view(execution=seen), verifying)
    for case in (running, verifying):
        seen = ObservedExecution(ExecutionPhase.ROLLED_BACK)
        yield f"rolled back in {case.phase}", cases.World().run(cases.view(execution=seen), case)


def _from_outside() -> Iterator[tuple[str, Case]]:
    verdicts: dict[str, Conclusion] = {
        "cancelled": endings.end_cancelled("jane"),
        "timed out": endings.timed_out(Phase.INVESTIGATING),
        "queue timeout": endings.queue_timeout("1h"),
        "model refused": endings.model_unavailable("401", permanent=True),
        "model away": endings.model_unavailable("503", permanent=False),
        "catalogue away": endings.catalogue_unavailable("503"),
        "lost": endings.internal_error("the runner was lost 5 times"),
        "tampered": endings.end_tampered("slot 3"),
        "signal resolved": outcome.signal_resolved(),
    }
    for phase in OPEN:
        for name, verdict in verdicts.items():
            if verdict.phase in ENDS[phase]:
                yield f"{name} in {phase}", cases.closing(verdict, cases.reached(phase))


ENDED: Mapping[str, Case] = dict(
    pair for pairs in (_nine(), _rulings(), _decisions(), _runs(), _from_outside()) for pair in pairs
)
every_end = each_row("case", ENDED.values(), ids=ENDED.keys())


@every_end
def test_an_ended_case_fits_into_the_status(case: Case) -> None:
    found = status_of(case)

    assert found.phase in TERMINAL_PHASES
    assert found.message
    assert found.completed_at is not None
    assert found.duration_seconds is not None
    assert found.consecutive_failures == 0
    assert not found.needs_human_review or found.human_review_reason


@every_end
def test_every_condition_of_an_ended_case_is_decided(case: Case) -> None:
    found = conditions_of(case)

    del found["Recorded"]
    assert {name: said for name, said in found.items() if said[0] == "Unknown"} == {}
    assert found["Ready"] == (("True", "Completed") if case.phase is Phase.COMPLETED else ("False", str(case.phase)))


@every_end
def test_where_nothing_ran_nothing_was_executed(case: Case) -> None:
    found = conditions_of(case)

    ran = case.last(ExecutionCreated) is not None
    assert (found["Executed"][1] in ("NotApplicable", "RemediationBlocked")) is not ran


@every_end
def test_c_ar_7_an_end_never_takes_its_outcome_back(case: Case) -> None:
    stages = tuple(accumulate(case.facts, advance_case, initial=Case()))

    told = [status_of(stage).outcome for stage in stages]
    known = [word for word in told if word is not None]
    assert len(set(known)) <= 1
    assert not known or told[-1] is known[0]


@every_end
def test_what_cannot_change_is_written_once(case: Case) -> None:
    told = [status_of(stage) for stage in accumulate(case.facts, advance_case, initial=Case())]

    contexts = [found.context for found in told if found.context is not None]
    assert all(context == contexts[0] for context in contexts)
    assert len({found.fingerprint for found in told if found.fingerprint}) <= 1


@every_end
def test_telling_of_an_end_never_fails(case: Case) -> None:
    said = [word.message for word in case_events(case)]
    told = notices.case_notice(case)

    assert all(said)
    assert told is None or told.body
    verdict = case.closed.verdict if case.closed else None
    assert verdict is not None
    assert not verdict.needs_review or told is not None


# --- stages -------------------------------------------------------------------------------------------------------


@each_row("phase", OPEN)
def test_an_open_case_fits_into_the_status(phase: Phase) -> None:
    case = cases.reached(phase)

    assert status_of(case).phase is phase
    assert not case.facts or conditions_of(case)["Ready"] in (("False", str(phase)), ("True", "Verifying"))


def test_a_case_without_facts_waits() -> None:
    assert status_changes(Case()) == {"phase": Phase.PENDING, "target_display": None}
    assert reporting_conditions.condition_values(Case()) == {}


CAUSE = "Container app is killed because its limit of 128Mi is too low; "
MESSAGES = {
    Phase.INVESTIGATING: "looking for the root cause",
    Phase.SELECTING: f"{CAUSE}looking for a workflow that fits",
    Phase.ANALYZING: f"{CAUSE}Investigation complete, starting analysis",
    Phase.AWAITING_APPROVAL: f"{CAUSE}Workflow raise-memory selected with confidence 95%",
    Phase.EXECUTING: f"{CAUSE}Workflow raise-memory selected with confidence 95%",
}


@pytest.mark.parametrize(("phase", "message"), MESSAGES.items())
def test_the_message_says_the_cause_and_where_the_case_stands(phase: Phase, message: str) -> None:
    assert status_of(cases.reached(phase)).message == message


def test_c_ar_1_all_that_was_found_is_kept() -> None:
    found = status_of(cases.reached(Phase.ANALYZING))

    assert found.outcome == "WorkflowSelected"
    assert found.root_cause is not None
    assert found.selected_workflow is not None
    assert [other.id for other in found.alternatives] == ["restart-api"]
    assert found.warnings == ("outside",)
    assert found.context is not None
    assert found.context.set_at is not None
    assert found.workflow_display == "IncreaseMemoryLimits:raise-memory"


def test_c_ar_9_a_choice_below_the_gate_is_kept_for_people() -> None:
    found = status_of(ENDED["low confidence"])

    assert (found.phase, found.outcome) == (Phase.FAILED, "LowConfidence")
    assert found.selected_workflow is not None
    assert (found.selected_workflow.id, found.selected_workflow.confidence) == ("raise-memory", 0.5)
    assert [other.id for other in found.alternatives] == ["restart-api"]


def test_c_er_2_what_was_seen_stays_when_the_model_is_away() -> None:
    found = status_of(ENDED["model refused in Investigating"])
    said = conditions_of(ENDED["model refused in Investigating"])

    assert found.reason is Reason.MODEL_UNAVAILABLE
    assert said["ModelAvailable"] == ("False", "PermanentError")


def test_a_case_that_never_began_took_no_time() -> None:
    found = status_of(ENDED["cancelled in Pending"])

    assert (found.duration_seconds, found.started_at, found.message) == (0, None, "Cancelled by jane")


def test_c_lc_6_the_phase_that_used_the_time_up_is_named() -> None:
    case = cases.World().run(cases.view(16 * 60), cases.reached(Phase.SELECTING))

    assert status_of(case).timeout_phase is Phase.SELECTING


def test_a_stopped_run_was_a_run_and_its_ruling_stands() -> None:
    found = conditions_of(ENDED["cancelled in Executing"])

    assert found["Executed"] == ("False", "Cancelled")
    assert found["ApprovalRequired"] == ("True", "PolicyRequiresApproval")
    assert found["WorkflowResolved"] == ("True", "WorkflowSelected")


def test_an_execution_is_named_in_the_status() -> None:
    found = status_of(cases.reached(Phase.EXECUTING)).execution

    assert found is not None
    assert found.ref == ObjectRef(name="wfe-inv-1", uid="u-wfe")


APPROVALS = {
    "AutoApproved": ApprovalState.AUTO,
    "Denied": ApprovalState.DENIED,
    "ApprovalRequired": ApprovalState.PENDING,
}


@pytest.mark.parametrize(("decision", "state"), APPROVALS.items())
def test_the_approval_follows_the_ruling(decision: str, state: ApprovalState) -> None:
    case = advance_case(cases.reached(Phase.ANALYZING), PolicyRuled(cases.ruling(decision), cases.AT))

    approval = status_of(case).approval
    assert approval is not None
    assert approval.state is state


def test_an_approval_says_who_decided() -> None:
    approval = status_of(advance_case(cases.reached(Phase.AWAITING_APPROVAL), cases.decided())).approval

    assert approval is not None
    assert (approval.state, approval.decided_by) == (ApprovalState.APPROVED, "jane")
    assert approval.ref == ObjectRef(name="rar-inv-1", uid="u-rar")


# --- texts without an end -------------------------------------------------------------------------------------------


def huge(word: str = "x") -> Case:
    """A case in which every text and list is longer than the status may hold."""
    text = word * 10_000
    many = tuple(f"E{number}" for number in range(1, 100))
    citations = tuple(Citation(name, text) for name in many)
    finding = cases.finding(
        field=text, value=text, summary=text, citations=citations, explains=tuple(f"{n}{text}" for n in range(30))
    )
    claim = CheckedClaim(text, ClaimRole.ROOT_CAUSE, citations, ClaimVerdict.SUPPORTED, text)
    cause = Cause("OOMKilled", cases.DEPLOYMENT, text, text, text, 0.9, many, tuple(f"{n}{text}" for n in range(30)))
    diagnosis = Diagnosis(
        summary=text,
        severity="critical",
        signal_type=text,
        contributing_factors=(text,) * 30,
        analysis=text,
        target=cases.DEPLOYMENT,
        causes=(cause,) * 9,
        checked=CheckedClaims((claim,) * 40, 40, 40),
        confidence=0.9,
        outcome="actionable",
        warnings=tuple(CaseWarning("A", f"{number}{text}") for number in range(40)),
    )
    evidence = tuple(cases.evidence(number, tool=text) for number in range(1, 120))
    gaps = tuple(Gap(f"{number}{text}", text) for number in range(60))
    quota = {f"r{number}": Quota(text, text) for number in range(70)}
    choice = replace(cases.choice(), rationale=text)
    other = replace(choice, workflow_id="restart-api")
    attempt = cases.tried(1, replace(cases.invalid(), faults=cases.invalid(text=text).faults * 30))
    selection = cases.selection(choice=choice, alternatives=(other,) * 9, reasoning=text)
    merged = merge_results(diagnosis, selection)
    parameters = {f"P{number}": text for number in range(80)}
    return fold_case(
        [
            cases.opened(),
            SnapshotTaken(cases.snapshot(evidence=evidence, gaps=gaps), (finding,) * 40, Health.UNHEALTHY),
            cases.resolved(quota=quota, gaps=gaps),
            RcaReplied(cases.reply(text, model=text), cases.AT),
            Diagnosed(diagnosis, cases.AT),
            *(replace(attempt, number=number) for number in (1, 2, 3, 3)),
            Proposed(outcome.decide_outcome(merged), cases.proposal(parameters=parameters, rationale=text), cases.AT),
            PolicyRuled(cases.ruling(reason="r" * 512), cases.AT),
        ]
    )


def ended(case: Case) -> Case:
    ruling = cases.ruling("Denied", reason="r" * 512)
    selected = case.last(Proposed)
    assert selected is not None
    verdict = endings.after_ruling(selected.verdict, ruling, after_ruling(ruling, dry_run=False))
    return cases.closing(replace(verdict, message="m" * 9000), case)


def test_no_text_is_too_long_for_the_status() -> None:
    found = status_of(ended(huge()))

    assert len(found.message or "") == 1024
    assert len(found.evidence) == MAX_EVIDENCE
    assert [attempt.attempt for attempt in found.validation_attempts] == [1, 2, 3]


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x00", "a\U000e0041\x1b[31m"])
def test_nothing_in_the_status_is_hidden_from_who_reads_it(hidden: str) -> None:
    found = tuple(texts_in(status_of(ended(huge(hidden))).to_object()))

    assert [text for text in found if make_visible(text) != text] == []
    assert any(make_visible(hidden) in text for text in found)


def texts_in(value: Any) -> Iterator[str]:
    """Every text of an object, wherever it stands."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    yield from (text for one in inner for text in texts_in(one))
    if isinstance(value, str):
        yield value


@pytest.mark.parametrize("diagnosed", [False, True], ids=["before the diagnosis", "after it"])
def test_what_is_uncertain_about_the_target_is_a_warning(diagnosed: bool) -> None:
    unsure = cases.resolved(warnings=("scope of Gadget is not known",))
    facts: list[Fact] = [cases.opened(), unsure, cases.taken()]
    facts += [Diagnosed(Diagnosis("s", warnings=(CaseWarning("A", "a"),)), cases.AT)] if diagnosed else []

    warnings = status_of(fold_case(facts)).warnings

    assert warnings == ("scope of Gadget is not known", *(("a",) if diagnosed else ()))


def test_no_event_hides_a_character() -> None:
    case = fold_case([cases.opened(), cases.taken(), cases.resolved()])
    diagnosed = advance_case(case, Diagnosed(Diagnosis("too\u200blow"), cases.AT))

    assert [said.message for said in case_events(diagnosed)][-1] == "too\\u{200b}low"


def test_a_citation_that_names_no_evidence_is_left_out_of_the_claim() -> None:
    citations = (Citation("E1", "reason: OOMKilled"), Citation("pod/api-1", "the log"), Citation("E0", "zero"))
    claim = CheckedClaim("killed", ClaimRole.ROOT_CAUSE, citations, ClaimVerdict.PARTIAL, "pod/api-1: no such evidence")
    diagnosis = Diagnosis("killed", checked=CheckedClaims((claim,), 1, 0))

    case = fold_case([cases.opened(), cases.taken(), cases.resolved(), Diagnosed(diagnosis, cases.AT)])

    assert [shown.evidence for shown in status_of(case).claims] == [("E1",)]


def test_a_history_that_could_not_be_read_is_not_an_empty_one() -> None:
    unread = replace(cases.resolved(), history=UNAVAILABLE)
    facts = [cases.opened(), cases.taken(), unread, Closed(endings.end_cancelled(), cases.AT)]

    context = status_of(fold_case(facts)).context

    assert context is not None
    assert context.history is None


def test_the_history_warns_after_as_many_repeats_as_the_case_was_opened_with() -> None:
    entries = tuple(
        HistoryEntry(
            f"rr-{number}",
            cases.AT - timedelta(hours=number),
            action_type="RestartDeployment",
            workflow_type="RestartDeployment",
            signal_type="OOMKilled",
            outcome="Remediated",
            effectiveness_score=0.3,
        )
        for number in (1, 2)
    )
    resolved = replace(cases.resolved(), history=History(available=True, recent=entries))

    def warnings(threshold: int) -> int:
        first, end = cases.opened(repeat_threshold=threshold), Closed(endings.end_cancelled(), cases.AT)
        context = status_of(fold_case([first, cases.taken(), resolved, end])).context
        assert context is not None
        assert context.history is not None
        return len(context.history.warnings)

    assert (warnings(2), warnings(3)) == (1, 0)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=40), st.text(max_size=300))
def test_any_words_of_a_cluster_fit(summary: str, detail: str) -> None:
    found = cases.finding(summary=summary * 30, field=detail, value=detail * 2)
    world = cases.World(findings=(found,), gaps=(Gap(summary * 9, detail * 2),))

    assert status_of(world.run(cases.view())).phase is Phase.AWAITING_APPROVAL


# --- the byte budget ----------------------------------------------------------------------------------------------

CONTRACT = tuple(InvestigationStatus.model_fields)
CONTRACT = CONTRACT[CONTRACT.index("phase") : CONTRACT.index("root_cause")]
ORDER = (
    "progress",
    "plan",
    "claims",
    "findings",
    "evidence",
    "alternatives",
    "warnings",
    "rootCause",
    "gaps",
    "validationAttempts",
    "selectedWorkflow",
    "causes",
)


def full() -> InvestigationStatus:
    """A status with something under every name that can be cut."""
    case = ended(huge())
    made = set_conditions((), "Investigation", reporting_conditions.condition_values(case), generation=1, now=LATER)
    return status_of(case).model_copy(
        update={
            "conditions": made,
            "progress": tuple(ProgressEntry(id=number, preview="p" * 500) for number in range(1, 51)),
            "plan": (PlanStep(step="look"),) * 12,
        }
    )


FULL = full()
SIZE = status_size(FULL)


@settings(deadline=None, max_examples=40)
@given(st.integers(min_value=0, max_value=SIZE))
def test_the_contract_is_never_cut(budget: int) -> None:
    found = trim_status(FULL, budget)

    assert all(getattr(found, name) == getattr(FULL, name) for name in (*CONTRACT, "conditions", "context"))


@settings(deadline=None, max_examples=40)
@given(st.integers(min_value=0, max_value=SIZE))
def test_cuts_come_in_their_order(budget: int) -> None:
    found = trim_status(FULL, budget)

    assert found.truncated == ORDER[: len(found.truncated)]


@settings(deadline=None, max_examples=40)
@given(st.integers(min_value=0, max_value=SIZE))
def test_evidence_of_a_claim_that_stands_is_never_dropped(budget: int) -> None:
    cited = replace_claims(FULL, ("E1", "E7"))

    found = trim_status(cited, budget)

    assert {"E1", "E7"} <= {item.id for item in found.evidence}


def replace_claims(status: InvestigationStatus, names: tuple[str, ...]) -> InvestigationStatus:
    claims = (
        Claim(text="holds", evidence=names, verdict=ClaimVerdict.SUPPORTED),
        Claim(text="does not", evidence=("E9",), verdict=ClaimVerdict.UNSUPPORTED),
    )
    return status.model_copy(update={"claims": claims})


@settings(deadline=None, max_examples=40)
@given(st.integers(min_value=0, max_value=SIZE))
def test_no_more_is_cut_than_has_to_be(budget: int) -> None:
    found = trim_status(FULL, budget)

    assert (found == FULL) is (budget >= SIZE)
    assert trim_status(FULL, max(budget, status_size(found))) == found


def test_the_fullest_status_fits_into_its_budget() -> None:
    budget = 65_536

    found = trim_status(FULL, budget)

    assert budget < SIZE
    assert status_size(found) <= budget


def test_what_is_not_there_is_not_said_to_be_cut() -> None:
    small = status_of(cases.reached(Phase.AWAITING_APPROVAL))

    found = trim_status(small, 0)

    assert {"progress", "plan"} & set(found.truncated) == set()


def test_cut_names_go_when_nothing_is_cut_any_more() -> None:
    assert status_changes(cases.reached(Phase.SELECTING))["truncated"] == ()


# --- events, notices -------------------------------------------------------------------------------------------------

WITHHELD = History(
    available=True, broken=(HistoryEntry("rr-1", cases.AT),), unchecked=(HistoryEntry("rr-2", cases.AT),)
)
EVENTS: dict[str, tuple[Case, Fact, list[str]]] = {
    "the work begins": (Case(), cases.opened(), []),
    "an approval is needed": (
        advance_case(cases.reached(Phase.ANALYZING), PolicyRuled(cases.ruling(), cases.AT)),
        cases.requested(),
        ["ApprovalRequired"],
    ),
    "policy was degraded": (
        cases.reached(Phase.ANALYZING),
        PolicyRuled(cases.ruling(fault="no policy"), cases.AT),
        ["PolicyDegraded"],
    ),
    "policy denies": (
        cases.reached(Phase.ANALYZING),
        PolicyRuled(cases.ruling("Denied"), cases.AT),
        ["PolicyDenied"],
    ),
    "jane approves": (cases.reached(Phase.AWAITING_APPROVAL), cases.decided(), []),
    "C-RA-3 jane rejects": (
        cases.reached(Phase.AWAITING_APPROVAL),
        cases.decided(ApprovalState.REJECTED),
        ["ApprovalRejected"],
    ),
    "the run begins": (
        cases.reached(Phase.AWAITING_APPROVAL),
        cases.created(),
        ["ExecutionStarted"],
    ),
    "the time is spent": (
        cases.reached(Phase.SELECTING),
        Closed(endings.timed_out(Phase.SELECTING), cases.AT),
        ["InvestigationTimedOut"],
    ),
    "C-TR-9 a guard blocks": (
        cases.reached(Phase.AWAITING_APPROVAL),
        Closed(endings.end_halted(endings.end_cancelled(), cases.halt()), cases.AT),
        ["HumanReviewRequired", "RemediationBlocked"],
    ),
    "history cannot be read": (
        fold_case([cases.opened()]),
        replace(cases.resolved(), history=UNAVAILABLE),
        ["HistoryUnavailable"],
    ),
    "history still cannot be read": (
        fold_case([cases.opened(), replace(cases.resolved(), history=UNAVAILABLE)]),
        replace(cases.resolved(), history=UNAVAILABLE),
        [],
    ),
    "an audit trail does not hold, another could not be checked": (
        fold_case([cases.opened()]),
        replace(cases.resolved(), history=WITHHELD),
        ["AuditTrailBroken", "HistoryUnavailable"],
    ),
    "an audit trail still does not hold": (
        fold_case([cases.opened(), replace(cases.resolved(), history=WITHHELD)]),
        replace(cases.resolved(), history=WITHHELD),
        [],
    ),
    "a budget is spent": (
        cases.reached(Phase.INVESTIGATING),
        RcaReplied(cases.reply("", reserved="TokenBudgetSpent"), cases.AT),
        ["BudgetExhausted"],
    ),
    "it helped": (
        cases.reached(Phase.VERIFYING),
        Closed(
            endings.end_verified(endings.end_cancelled(), cases.effect()), cases.AT, assessed=EffectivenessReason.FULL
        ),
        ["RemediationVerified"],
    ),
    "it did not help": (
        cases.reached(Phase.VERIFYING),
        Closed(
            endings.end_verified(endings.end_cancelled(), cases.effect(resolution=Resolution.INEFFECTIVE)),
            cases.AT,
            assessed=EffectivenessReason.FULL,
        ),
        ["HumanReviewRequired", "RemediationIneffective"],
    ),
    "the signal is over": (
        cases.reached(Phase.ANALYZING),
        Closed(outcome.signal_resolved(), cases.AT),
        ["SignalResolved"],
    ),
    "the runner was lost too often": (
        cases.reached(Phase.INVESTIGATING),
        Closed(endings.internal_error("the runner was lost 5 times"), cases.AT),
        ["HumanReviewRequired", "MaxRestartsExceeded"],
    ),
    "a read tells nothing": (cases.reached(Phase.INVESTIGATING), cases.taken(), []),
}


@pytest.mark.parametrize(("before", "fact", "expected"), EVENTS.values(), ids=EVENTS.keys())
def test_an_event_says_what_has_just_happened(before: Case, fact: Fact, expected: list[str]) -> None:
    assert [said.reason for said in case_events(advance_case(before, fact))] == expected


@pytest.mark.parametrize("spent", ["TurnBudgetSpent", "TokenBudgetSpent"], ids=["T51 turns", "T51 tokens"])
def test_a_spent_budget_is_visible_in_condition_and_metric(spent: str) -> None:
    turned = RcaReplied(cases.reply("", reserved=spent), cases.AT)

    case = advance_case(fold_case([cases.opened(model="m-1"), cases.taken(), cases.resolved()]), turned)

    assert conditions_of(case)["EvidenceComplete"] == ("False", "BudgetExhausted")
    assert list(metrics.case_measures(case, NO_TOOLS)) == [Measure("guardrail", {"guard": spent})]


def test_evidence_that_is_cited_is_listed_before_what_is_not() -> None:
    many = tuple(cases.evidence(number) for number in range(1, 101))
    found = cases.finding(citations=(Citation("E90", "reason: OOMKilled"),))

    listed = [item.id for item in status_of(fold_case([cases.opened(), cases.taken(found, evidence=many)])).evidence]

    assert len(listed) == 64
    assert listed == [*(f"E{number}" for number in range(1, 64)), "E90"]


def test_the_status_names_the_playbooks_that_match() -> None:
    books = tuple(PlaybookMatch(name, ("look",)) for name in ("OOMKilled", "CrashLoopBackOff"))
    taken = replace(cases.taken(), playbooks=books)

    case = fold_case([cases.opened(), taken, cases.resolved()])

    assert status_of(case).playbooks == ("OOMKilled", "CrashLoopBackOff")
