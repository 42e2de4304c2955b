"""A root cause is worth what its quotes prove."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.findings import ClaimRole, ClaimVerdict
from inquest.api.refs import TargetRef
from inquest.core.case.merging import SelectionFacts, merge_results
from inquest.core.case.outcome import decide_outcome
from inquest.core.diagnosis.categories import CATEGORIES, category_from
from inquest.core.diagnosis.claims import (
    CheckedClaims,
    RawClaim,
    check_claims,
    find_contradicting,
    overall_confidence,
    stands,
)
from inquest.core.diagnosis.detectors.registry import detect
from inquest.core.diagnosis.diagnosis import Diagnosis, diagnose
from inquest.core.diagnosis.health import health_of
from inquest.core.diagnosis.target_state import target_state
from inquest.core.evidence.evidence import (
    Citation,
    Evidence,
    EvidenceStatus,
    Finding,
    Gap,
    Health,
    TargetState,
    digest_of,
)
from inquest.core.llm.reply.diagnosis import diagnosis_from_reply, diagnosis_without_verdict
from inquest.core.llm.reply.verdicts import FieldProblem, RcaVerdict
from tests.support.tables import each_row, row
from tests.unit.core.cases import finding_of
from tests.unit.core.diagnosis.detectors.support import snapshot_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
API = TargetRef(kind="Deployment", name="api", namespace="shop", api_version="apps/v1")
CONFIG = TargetRef(kind="ConfigMap", name="cfg", namespace="shop", api_version="v1")


def seen(name: str, text: str, status: EvidenceStatus = EvidenceStatus.OK, **more: Any) -> Evidence:
    return Evidence(name, "kubectl_get", {}, text, digest_of(text), status, NOW, **more)


def claim(*citations: tuple[str, str], role: str = "contributing", statement: str = "s") -> RawClaim:
    return RawClaim(statement, role, tuple(Citation(*citation) for citation in citations))


EVIDENCE = (
    seen("E1", "state:\n  reason: OOMKilled\n  exitCode: 137\n", api_fact=True),
    seen("E2", "forbidden", EvidenceStatus.GAP),
    seen("E3", "line one\nline   two"),
    seen("E4", "", EvidenceStatus.SKIPPED),
    seen("E5", "long text that was cut", EvidenceStatus.TRUNCATED),
)

# --- quotes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quote", "text", "holds"),
    [
        pytest.param("exit code 137", "terminated with exit code 137.", True, id="D01"),
        pytest.param("Exit Code: 137", "Exit Code:    137", True, id="D06"),
        pytest.param("oomkilled", "OOMKilled", False, id="case counts"),
        pytest.param("`OOMKilled`", "reason: OOMKilled", True, id="back-ticks"),
        pytest.param("“OOMKilled”", "reason: OOMKilled", True, id="quotation marks"),
        pytest.param("line one line two", "line one\n\tline two", True, id="over a line break"),
        pytest.param("cafe\u0301", "caf\u00e9", True, id="composed and decomposed"),
        pytest.param("5", "15", False, id="a number inside a number"),
        pytest.param("5", "restarts: 5", True, id="a number as a token"),
        pytest.param("5", "1.5", False, id="a fraction"),
        pytest.param("5", "5.1", False, id="a whole part"),
        pytest.param("1.5", "cpu 1.5 of 2", True, id="a decimal"),
        pytest.param("512", "512Mi", False, id="a number without its unit"),
        pytest.param("-1", "weight -1", True, id="a negative number"),
        pytest.param("code 13", "code 137", False, id="a text that cuts a number at its end"),
        pytest.param("5Mi", "15Mi", False, id="a text that cuts a number at its start"),
        pytest.param("api:1.2", "image api:1.2.3", False, id="a version cut short"),
        pytest.param("code 13", "code 137 then code 13", True, id="a later hit is whole"),
        pytest.param('{"a": 1, "b": [1, 2]}', '{\n "x": {"a":1,"b":[1,2]}\n}', True, id="JSON in compact form"),
        pytest.param('"reason": "OOMKilled"', '{"reason":"OOMKilled"}', True, id="a part of JSON"),
        pytest.param('"a": 1,\n "b": 2', '{"a":1,"b":2}', True, id="two members of JSON"),
        pytest.param("[REDACTED]", "password=[REDACTED]", False, id="a placeholder alone"),
        pytest.param('"[REDACTED]"', 'x: "[REDACTED]"', False, id="a quoted placeholder alone"),
        pytest.param("password=[REDACTED]", "password=[REDACTED] next", True, id="a placeholder with its name"),
        pytest.param("  ", "text", False, id="blank"),
        pytest.param("```", "text", False, id="marks alone"),
    ],
)
def test_a_quote_stands_where_it_was_copied_from(quote: str, text: str, holds: bool) -> None:
    assert stands(quote, seen("E1", text)) is holds


def test_a_quote_may_stand_in_what_was_shown() -> None:
    assert stands("summary: down", seen("E1", "raw", shown="summary: down"))


@given(st.text(min_size=1, max_size=30), st.text(max_size=10))
def test_looking_for_a_quote_never_raises(quote: str, text: str) -> None:
    assert stands(quote, seen("E1", text)) in (True, False)


WORDS = st.text(alphabet="abc xyz", min_size=3, max_size=20).filter(lambda text: len(text.split()) > 0)


@given(WORDS, WORDS, WORDS)
def test_what_was_copied_always_stands(before: str, quote: str, after: str) -> None:
    assert stands(quote, seen("E1", f"{before}\n{quote} {after}"))


# --- verdicts ----------------------------------------------------------------------------------------

SUPPORTED, PARTIAL, UNSUPPORTED = ClaimVerdict.SUPPORTED, ClaimVerdict.PARTIAL, ClaimVerdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("citations", "verdict", "note"),
    [
        pytest.param([("E1", "OOMKilled")], SUPPORTED, "", id="one that holds"),
        pytest.param([("E1", "OOMKilled"), ("E3", "line two")], SUPPORTED, "", id="two that hold"),
        pytest.param([("E5", "text that was")], SUPPORTED, "", id="evidence that was cut"),
        pytest.param([("E1", "OOMKilled"), ("E9", "OOMKilled")], PARTIAL, "E9: no such evidence", id="D11"),
        pytest.param([("E9", "OOMKilled")], UNSUPPORTED, "E9: no such evidence", id="D02"),
        pytest.param([("E2", "forbidden")], UNSUPPORTED, "E2: the read gave nothing (Gap)", id="a gap"),
        pytest.param([("E4", "anything")], UNSUPPORTED, "E4: the read gave nothing (Skipped)", id="skipped"),
        pytest.param([("E1", "Evicted")], UNSUPPORTED, "E1: the quote does not stand there", id="an invented quote"),
    ],
)
def test_a_claim_gets_a_verdict(citations: list[tuple[str, str]], verdict: ClaimVerdict, note: str) -> None:
    checked = check_claims([claim(*citations, role="root_cause")], EVIDENCE)

    assert [(one.verdict, one.note, one.role) for one in checked.claims] == [(verdict, note, ClaimRole.ROOT_CAUSE)]
    assert checked.supported == int(verdict is SUPPORTED)
    assert overall_confidence(0.9, checked) == (0.9 if verdict is SUPPORTED else 0.5)


def taken_by(tool: str, name: str, text: str, **arguments: Any) -> Evidence:
    return replace(seen(name, text), tool=tool, arguments=arguments)


AGAIN: dict[str, tuple[Evidence, str]] = {
    "a page of what was read": (taken_by("read_evidence", "E7", "reason: OOMKilled", id="E1"), ""),
    "a page of a failure": (
        taken_by("read_evidence", "E7", "forbidden: OOMKilled", id="E2"),
        "E7: the read gave nothing (Gap)",
    ),
    "a page of a runbook": (
        taken_by("read_evidence", "E7", "OOMKilled", id="E6"),
        "E7: get_runbook reads nothing of the cluster",
    ),
    "a page of itself": (taken_by("read_evidence", "E7", "OOMKilled", id="E7"), ""),
    "a runbook": (taken_by("get_runbook", "E7", "OOMKilled"), "E7: get_runbook reads nothing of the cluster"),
}


@pytest.mark.parametrize(("again", "note"), AGAIN.values(), ids=AGAIN.keys())
def test_what_an_author_wrote_proves_nothing(again: Evidence, note: str) -> None:
    runbook = taken_by("get_runbook", "E6", "OOMKilled")

    checked = check_claims([claim(("E7", "OOMKilled"), role="root_cause")], [*EVIDENCE, runbook, again])

    assert [one.note for one in checked.claims] == [note]
    assert [one.verdict for one in checked.claims] == [UNSUPPORTED if note else SUPPORTED]


def test_an_unsupported_claim_is_dropped_unless_it_is_the_root_cause() -> None:
    bad = ("E9", "nothing")

    checked = check_claims([claim(bad, role="symptom"), claim(bad, role="root_cause")], EVIDENCE)

    assert [one.role for one in checked.claims] == [ClaimRole.ROOT_CAUSE]
    assert (checked.judged, checked.dropped, checked.root_cause_unsupported) == (2, 1, True)


def test_evidence_that_cannot_be_read_now_keeps_its_claim() -> None:
    checked = check_claims([claim(("E1", "OOMKilled"), role="symptom")], EVIDENCE, unreadable=("E1",))

    assert [(one.verdict, one.note) for one in checked.claims] == [(UNSUPPORTED, "E1: cannot be read now")]
    assert checked.dropped == 0


@pytest.mark.parametrize(("cited", "proven"), [(("E1", "OOMKilled"), True), (("E3", "line two"), False)])
def test_only_an_api_fact_proves_for_execution(cited: tuple[str, str], proven: bool) -> None:
    assert check_claims([claim(cited)], EVIDENCE).proven is proven


# --- confidence --------------------------------------------------------------------------------------

GOOD = ("E1", "OOMKilled")
BAD = ("E9", "nothing")


def checked_of(good: int, bad: int, role: str = "contributing") -> CheckedClaims:
    return check_claims([claim(GOOD)] * good + [claim(BAD, role=role)] * bad, EVIDENCE)


@each_row(
    ("model", "checked", "contradicted", "overall"),
    [
        pytest.param(0.98, checked_of(1, 3), False, 0.625, id="one of four supported"),
        pytest.param(0.9, checked_of(0, 0), False, 0.9, id="no claims"),
        pytest.param(None, checked_of(0, 0), False, None, id="no claims, nothing said"),
        pytest.param(0.9, checked_of(2, 0), False, 0.9, id="all supported"),
        pytest.param(None, checked_of(2, 0), False, 0.5, id="all supported, nothing said"),
        pytest.param(None, checked_of(1, 1), False, None, id="half supported, nothing said"),
        pytest.param(0.9, checked_of(9, 1, "root_cause"), False, 0.5, id="root cause unsupported"),
        pytest.param(0.9, checked_of(1, 0), True, 0.6, id="a finding contradicts"),
        pytest.param(0.4, checked_of(1, 0), True, 0.4, id="a check only lowers"),
        pytest.param(0.0, checked_of(1, 0), False, 0.0, id="zero is a figure"),
    ],
)
def test_overall_confidence(
    model: float | None, checked: CheckedClaims, contradicted: bool, overall: float | None
) -> None:
    assert overall_confidence(model, checked, contradicted=contradicted) == overall


CLAIMS = st.lists(st.tuples(st.sampled_from([GOOD, BAD]), st.sampled_from(["root_cause", "symptom"])), max_size=6)


@given(st.floats(0, 1), CLAIMS, st.booleans())
def test_checks_only_ever_lower_the_confidence(
    model: float, claims: list[tuple[tuple[str, str], str]], contradicted: bool
) -> None:
    checked = check_claims([claim(cited, role=role) for cited, role in claims], EVIDENCE)

    overall = overall_confidence(model, checked, contradicted=contradicted)

    assert overall is not None
    assert 0 <= overall <= model


@each_row(
    ("findings", "category", "against"),
    [
        ([finding_of("ConfigMapMissing")], "OOMKilled", "ConfigMapMissing"),
        ([finding_of("OOMKilled")], "OOMKilled", None),
        ([finding_of("ConfigMapMissing"), finding_of("OOMKilled")], "OOMKilled", None),
        ([finding_of("ConfigMapMissing", confidence=0.8)], "OOMKilled", None),
        ([finding_of("ConfigMapMissing", object=CONFIG)], "OOMKilled", None),
        ([finding_of("CrashLoopBackOff")], "OOMKilled", None),
        ([finding_of("ConfigMapMissing")], "Unknown", None),
    ],
)
def test_a_sure_finding_of_another_cause_contradicts(
    findings: list[Finding], category: str, against: str | None
) -> None:
    found = find_contradicting(findings, category, API)

    assert (found.category if found else None) == against


# --- diagnosis from a reply --------------------------------------------------------------------------

REPLY = RcaVerdict(
    summary="Deployment/api: memory limit too low",
    signal_name="oom",
    target=API,
    cause_field="spec.template.spec.containers[name=app].resources.limits.memory",
    cause_value="128Mi",
    causal_chain=("restarts", "limit"),
    due_diligence={"target_accuracy": "yes"},
    claims=(claim(GOOD, role="root_cause"),),
    confidence=0.9,
    outcome="actionable",
)


def test_a_reply_becomes_a_diagnosis_with_ranked_causes() -> None:
    others = [finding_of("ConfigMapMissing", object=CONFIG, field="data", value=""), finding_of("OOMKilled")]

    found = diagnosis_from_reply(REPLY, check_claims(REPLY.claims, EVIDENCE), others)

    assert (found.signal_type, found.confidence, found.model_confidence) == ("OOMKilled", 0.9, 0.9)
    assert [(cause.category, cause.object, cause.evidence) for cause in found.causes] == [
        ("OOMKilled", API, ("E1",)),
        ("ConfigMapMissing", CONFIG, ("E1",)),
    ]
    assert (found.warnings, found.notes) == ((), ())


@row("D08")
def test_the_models_own_figure_is_kept_apart() -> None:
    found = diagnosis_from_reply(replace(REPLY, confidence=0.98), checked_of(1, 3))

    assert (found.confidence, found.model_confidence) == (0.625, 0.98)


def killed(reason: str) -> Evidence:
    return seen("E1", f"Terminated, reason {reason}, exit code 137", api_fact=True)


@pytest.mark.parametrize("word", ["OOMKilled", "oom", "exit_code_137"])
@pytest.mark.parametrize(
    ("texts", "category"),
    [
        pytest.param(
            [killed("Error"), seen("E2", "Liveness probe failed: timeout")], "Unknown", id="D04 a liveness kill"
        ),
        pytest.param(
            [killed("Error"), seen("E2", "Memory cgroup out of memory")], "OOMKilled", id="the kernel said so"
        ),
        pytest.param([killed("OOMKilled")], "OOMKilled", id="the reason says so"),
        pytest.param([seen("E1", "memory 128Mi")], "OOMKilled", id="nothing speaks against it"),
    ],
)
def test_exit_code_137_alone_is_no_memory_kill(word: str, texts: list[Evidence], category: str) -> None:
    reply = replace(REPLY, signal_name=word, claims=())

    found = diagnosis_from_reply(reply, CheckedClaims(), evidence=texts)

    belied = category == "Unknown"
    assert (found.signal_type, found.causes[0].category) == (category, category)
    assert found.confidence == (0.6 if belied else 0.9)
    assert ("CategoryContradicted" in [warning.code for warning in found.warnings]) is belied


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        pytest.param([seen("E1", "MemoryPressure True", api_fact=True)], "memory_pressure", id="no termination"),
        pytest.param([seen("E1", "worker OOMKilled by the kernel")], "memory_pressure", id="only a log says so"),
        pytest.param([killed("OOMKilled")], "OOMKilled", id="a termination reason says so"),
    ],
)
def test_pressure_on_memory_is_a_kill_only_where_a_termination_says_so(texts: list[Evidence], said: str) -> None:
    found = diagnosis_from_reply(replace(REPLY, signal_name="memory_pressure"), CheckedClaims(), evidence=texts)

    assert found.signal_type == said
    assert found.causes[0].category == (said if said == "OOMKilled" else "Unknown")


WELL = replace(REPLY, summary="All is well", analysis="All is well", signal_name="Healthy", outcome="problem_resolved")


@pytest.mark.parametrize("word", ["Healthy", ""])
def test_a_verdict_that_all_is_well_does_not_stand_against_a_detector(word: str) -> None:
    proof = finding_of("OOMKilled", confidence=0.95)

    found = diagnosis_from_reply(replace(WELL, signal_name=word), CheckedClaims(), [proof])

    assert (found.signal_type, found.summary, found.target) == ("OOMKilled", proof.summary, proof.object)
    assert [cause.category for cause in found.causes] == ["OOMKilled"]
    assert "well" not in f"{found.summary} {found.analysis} {found.contributing_factors} {found.causal_chain}"
    assert found.confidence is not None
    assert found.confidence <= 0.6
    (warning,) = (one.text for one in found.warnings if one.code == "FindingContradicts")
    assert "OOMKilled of" in warning
    assert "All is well" in warning


def test_a_detector_that_only_supposes_leaves_the_verdict_that_all_is_well() -> None:
    found = diagnosis_from_reply(WELL, CheckedClaims(), [finding_of("OOMKilled", confidence=0.6)])

    assert (found.signal_type, found.summary) == ("Healthy", "All is well")


@pytest.mark.parametrize(
    ("model", "detector", "cause"),
    [(0.6, 0.8, 0.92), (0.9, 0.95, 0.97), (None, 0.8, 0.8), (0.99, 0.5, 0.99)],
    ids=["both likely", "both sure", "the model gives none", "one is surer than any agreement"],
)
def test_a_model_and_a_detector_that_agree_make_a_cause_surer(
    model: float | None, detector: float, cause: float
) -> None:
    agreeing = replace(finding_of("OOMKilled"), confidence=detector)
    reply = replace(REPLY, signal_name="OOMKilled", target=API, confidence=model, cause_field="", cause_value="")

    found = diagnosis_from_reply(reply, CheckedClaims(), [agreeing])

    assert [each.confidence for each in found.causes] == [cause]
    assert found.confidence == model


def test_at_most_five_causes_are_named() -> None:
    others = [finding_of("OOMKilled", field=str(n)) for n in range(9)]

    assert len(diagnosis_from_reply(REPLY, CheckedClaims(), others).causes) == 5


def test_a_reply_without_target_is_about_the_signals() -> None:
    found = diagnosis_from_reply(replace(REPLY, target=None), CheckedClaims(), signal_target=API)

    assert (found.target, [cause.object for cause in found.causes]) == (None, [API])


@pytest.mark.parametrize(
    ("named", "further"),
    [pytest.param(API, API, id="pipeline-20.5-03"), pytest.param(None, None, id="none named: the signal's stays")],
)
def test_what_the_root_cause_names_is_investigated_further(named: TargetRef | None, further: TargetRef | None) -> None:
    pod = TargetRef(kind="Pod", name="p-1", namespace="shop")

    assert diagnosis_from_reply(replace(REPLY, target=named), CheckedClaims(), signal_target=pod).target == further


def test_what_is_missing_or_contradictory_is_said() -> None:
    bare = RcaVerdict(
        "s", signal_name="OOMKilled", target=API, actionable=False, outcome="actionable", dropped_claims=2
    )
    problems = (FieldProblem("confidence", "7", "must be a number"),)

    found = diagnosis_from_reply(bare, CheckedClaims(), [finding_of("BadRevision")], problems=problems)

    codes = [warning.code for warning in found.warnings]
    assert codes == ["NoClaims", "FindingContradicts", "ReplyProblems", "ContradictoryVerdict"]
    assert found.notes == ("not given: cause, causal_chain, due_diligence, claims", "2 claims dropped")


@pytest.mark.parametrize(
    ("word", "category"),
    [("OOMKilled", "OOMKilled"), ("oom_killed", "OOMKilled"), ("err_image_pull", "ImagePullFailing"), ("x", "Unknown")],
)
def test_categories_come_from_a_closed_list(word: str, category: str) -> None:
    assert category_from(word) == category
    assert sum(len(names) for names in CATEGORIES.values()) == len({n for names in CATEGORIES.values() for n in names})


# --- without a model ---------------------------------------------------------------------------------


def test_findings_form_the_diagnosis_and_its_claims() -> None:
    second = finding_of("ConfigMapMissing", object=CONFIG, confidence=0.7, citations=(Citation("E3", "line two"),))

    found = diagnose([finding_of(), second], TargetState(Health.UNHEALTHY), EVIDENCE)

    assert [(one.role, one.verdict) for one in found.checked.claims] == [
        (ClaimRole.ROOT_CAUSE, SUPPORTED),
        (ClaimRole.CONTRIBUTING, SUPPORTED),
    ]
    assert (found.target, found.signal_type, found.outcome) == (API, "OOMKilled", "actionable")
    assert (found.confidence, found.model_confidence) == (0.95, None)
    assert [cause.category for cause in found.causes] == ["OOMKilled", "ConfigMapMissing"]


def test_a_finding_that_its_evidence_does_not_bear_loses_confidence() -> None:
    found = diagnose([finding_of(citations=(Citation("E1", "Evicted"),))], TargetState(Health.UNHEALTHY), EVIDENCE)

    assert found.confidence == 0.5


@pytest.mark.parametrize(
    ("findings", "health", "outcome", "confidence"),
    [
        pytest.param([], Health.HEALTHY, "insufficient_data", None, id="healthy, and never seen otherwise"),
        pytest.param([], Health.UNKNOWN, "insufficient_data", None, id="unknown"),
        pytest.param([], Health.UNHEALTHY, "insufficient_data", None, id="unhealthy, no finding"),
        pytest.param([finding_of(act=False)], Health.UNHEALTHY, "not_actionable", 0.95, id="nobody should act"),
    ],
)
def test_no_finding_to_act_on(findings: list[Finding], health: Health, outcome: str, confidence: float | None) -> None:
    found = diagnose(findings, TargetState(health), EVIDENCE, gaps=[Gap("events", "Forbidden")])

    assert (found.outcome, found.confidence) == (outcome, confidence)
    assert found.summary


def test_a_change_on_its_way_needs_nobody_unless_something_was_found() -> None:
    change = "Deployment/api: 1 of 2 pods are of the newest revision and 1 are ready"

    settling = TargetState(Health.UNKNOWN, settling=change)

    found = diagnose([], settling, EVIDENCE)

    assert (found.outcome, found.actionable, found.confidence) == ("not_actionable", False, 0.9)
    assert change in found.summary
    assert diagnose([finding_of()], settling, EVIDENCE).outcome == "actionable"


def a_pod(ready_since: str, **container: Any) -> dict[str, Any]:
    """A case of one Pod that runs and is ready, as the detectors' cases write it."""
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ready_since}],
        "containerStatuses": [{"name": "app", "ready": True, "state": {"running": {}}, **container}],
    }
    metadata = {"name": "api-1", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-11-20T09:00:00Z"}
    spec = {"containers": [{"name": "app", "image": "api:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def by_detectors(*objects: dict[str, Any], by_person: bool = False, **more: Any) -> Diagnosis:
    snapshot = snapshot_of({"objects": list(objects), **more})
    return diagnose(
        detect(snapshot),
        target_state(snapshot, health_of(snapshot)),
        snapshot.evidence,
        snapshot.gaps,
        by_person=by_person,
    )


def warned(reason: str, at: str, pod: str = "api-1") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": pod, "namespace": "shop"},
        "type": "Warning",
        "reason": reason,
        "message": "it did not answer",
        "lastTimestamp": at,
    }


@pytest.mark.parametrize(
    ("at", "is_shown"),
    [
        pytest.param("2026-11-22T09:30:20Z", False, id="while it starts"),
        pytest.param("2026-11-22T09:36:00Z", True, id="minutes later"),
    ],
)
def test_a_probe_that_a_start_leaves_open_is_no_time_of_being_unwell(at: str, is_shown: bool) -> None:
    pod = a_pod("2026-11-22T09:30:25Z", state={"running": {"startedAt": "2026-11-22T09:30:00Z"}})
    snapshot = snapshot_of({"objects": [pod, warned("Unhealthy", at)]})

    assert bool(target_state(snapshot, health_of(snapshot)).unwell_before) is is_shown


REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "api-7d9", "namespace": "shop", "uid": "r-1"},
    "spec": {"replicas": 1},
    "status": {"replicas": 1, "readyReplicas": 1},
}


@pytest.mark.parametrize(
    ("reason", "pod", "ends"),
    [
        pytest.param("BackOff", "api-7d9-old", "problem_resolved", id="it failed"),
        pytest.param("Unhealthy", "api-7d9-old", "insufficient_data", id="it answered no probe while it went"),
        pytest.param("BackOff", "web-5f6-old", "insufficient_data", id="it was another workload's"),
    ],
)
def test_a_warning_about_an_earlier_pod_shows_that_the_target_was_unwell(reason: str, pod: str, ends: str) -> None:
    young = a_pod("2026-11-22T09:30:05Z", state={"running": {"startedAt": "2026-11-22T09:30:00Z"}})
    owner = {"kind": "ReplicaSet", "name": "api-7d9", "uid": "r-1", "controller": True}
    young["metadata"] |= {"ownerReferences": [owner]}

    assert by_detectors(young, REPLICA_SET, warned(reason, "2026-11-22T09:40:00Z", pod)).outcome == ends


@pytest.mark.parametrize(
    ("by_person", "ends"),
    [
        pytest.param(False, "ProblemResolved", id="D05 an alert about a pod that is ready since 20 minutes"),
        pytest.param(True, "Inconclusive", id="a person who asks saw something"),
    ],
)
def test_a_problem_is_over_where_it_was_seen_and_no_person_asks(by_person: bool, ends: str) -> None:
    found = by_detectors(a_pod("2026-11-22T09:40:00Z"), by_person=by_person)

    verdict = decide_outcome(merge_results(found), SelectionFacts(healthy=True))
    assert str(verdict.outcome) == ends


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("2026-11-20T09:00:00Z"), id="T46 ready since days"),
        pytest.param(
            a_pod("2026-11-22T09:40:10Z", state={"running": {"startedAt": "2026-11-22T09:40:00Z"}}),
            id="ready ten seconds after its start",
        ),
    ],
)
def test_what_was_never_seen_unwell_did_not_become_well(pod: dict[str, Any]) -> None:
    found = by_detectors(pod)

    verdict = decide_outcome(merge_results(found), SelectionFacts(healthy=True))
    assert (found.signal_type, str(verdict.outcome)) == ("Healthy", "Inconclusive")
    assert "Kubernetes shows no fault" in found.summary
    assert "unwell" not in found.summary


@pytest.mark.parametrize(
    "unread", [{"gaps": ["list pods in shop"]}, {"cut": ["pods of Deployment/api"]}], ids=["T32 failed", "T32 cut"]
)
def test_what_was_not_read_in_full_is_not_healthy(unread: dict[str, Any]) -> None:
    found = by_detectors(a_pod("2026-11-20T09:00:00Z"), **unread)

    assert (found.signal_type, found.outcome) == ("Unknown", "insufficient_data")


@row("T33")
def test_no_detector_reads_names() -> None:
    pod = a_pod("2026-11-20T09:00:00Z")

    found = by_detectors({**pod, "metadata": {**pod["metadata"], "name": "oomkilled-demo"}})

    assert found.signal_type == "Healthy"


@row("D04")
def test_no_detector_calls_a_liveness_kill_a_memory_kill() -> None:
    ended = {"reason": "Error", "exitCode": 137, "finishedAt": "2026-11-22T09:58:00Z"}
    pod = a_pod("2026-11-22T09:59:00Z", lastState={"terminated": ended}, restartCount=4)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e-1", "namespace": "shop"},
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "Liveness probe failed: HTTP probe failed with statuscode: 500",
        "involvedObject": {"kind": "Pod", "name": "api-1", "namespace": "shop"},
        "lastTimestamp": "2026-11-22T09:58:00Z",
    }

    found = by_detectors(pod, event)

    assert "OOMKilled" not in (found.signal_type, *(cause.category for cause in found.causes))


def test_without_a_verdict_the_findings_stay_but_decide_nothing() -> None:
    found = diagnosis_without_verdict([finding_of()], EVIDENCE, "unreadable", "llm_parsing_error")

    assert (found.summary, found.outcome, found.review_reason) == (finding_of().summary, "", "llm_parsing_error")


@pytest.mark.parametrize(
    ("prose", "summary", "confidence"),
    [
        pytest.param("Root cause: the limit is too low", "the limit is too low", 0.5, id="a labelled section"),
        pytest.param("no idea", "not determined: unreadable", 0.0, id="nothing said"),
    ],
)
def test_without_findings_prose_is_for_people(prose: str, summary: str, confidence: float) -> None:
    found = diagnosis_without_verdict([], EVIDENCE, "unreadable", prose=prose)

    assert (found.summary, found.confidence) == (summary, confidence)
