"""Triage: the first reason wins, and each of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.refs import ObjectRef
from inquest.api.signal import SignalContent
from inquest.api.types import EffectivenessReason, Phase, Reason, Resolution, SignalPhase, SubReason
from inquest.core.history.history import History, HistoryEntry
from inquest.core.signals.holds import MAX_BACK_OFF, back_off, failures_in_a_row, next_allowed
from inquest.core.signals.triage import TRIAGE, earlier_answer, triage_signal
from inquest.core.signals.triage_input import AcceptedSignal, EndedCase, OpenCase, TriageInput, TriageRules
from tests.support.tables import each_row, row

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
MANAGED = ({"inquest.dev/managed": "true"},)
POD = {"kind": "Pod", "name": "checkout-1", "namespace": "shop"}


def content(**changes: Any) -> SignalContent:
    base = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": POD}
    return SignalContent.model_validate(base | changes)


def observed(**changes: Any) -> TriageInput:
    base = TriageInput(
        name="sig-1",
        namespace="inquest-system",
        spec=content(),
        now=NOW,
        fingerprint="f" * 64,
        scope_labels=MANAGED,
        spec_hash="sha256:now",
    )
    return replace(base, **changes)


def failed(minutes: float, **changes: Any) -> EndedCase:
    base = EndedCase(Phase.FAILED, NOW - minutes * MINUTE, Reason.MODEL_UNAVAILABLE, namespace="shop")
    return replace(base, **changes)


def completed(resolution: Resolution, hours: float = 1, **changes: Any) -> EndedCase:
    base = EndedCase(Phase.COMPLETED, NOW - hours * HOUR, resolution=resolution, namespace="shop")
    return replace(base, **changes)


def tried(minutes: float, **changes: Any) -> HistoryEntry:
    base = HistoryEntry(f"rr-{minutes}", NOW - minutes * MINUTE, action_type="RestartDeployment")
    return replace(base, **changes)


def history(*entries: HistoryEntry) -> History:
    return History(available=True, recent=entries)


SAME_START = history(*(tried(m, pre_spec_hash="sha256:now") for m in (10, 20, 30)))
OTHER_CASE = OpenCase(ObjectRef(name="inv-other"), "sig-0", NOW - HOUR)

REASONS: dict[str, tuple[TriageInput, str, str, datetime | None]] = {
    "an unknown kind": (observed(kind_known=False), "Failed", "Malformed", None),
    "no namespace for a namespaced kind": (
        observed(spec=content(target={"kind": "Pod", "name": "a"})),
        "Failed",
        "Malformed",
        None,
    ),
    "C-CX-1 the namespace is missing": (observed(namespace_exists=False), "Failed", "Malformed", None),
    "over already": (observed(spec=content(resolvedTime="2026-05-13T11:00:00Z")), "Resolved", "Resolved", None),
    "a heartbeat": (observed(spec=content(name="Watchdog")), "Ignored", "Noise", None),
    "severity none": (observed(spec=content(labels={"severity": "None"})), "Ignored", "Noise", None),
    "C-IN-5 a normal event": (
        observed(spec=content(source={"type": "KubernetesEvent"}), event_type="Normal"),
        "Ignored",
        "Noise",
        None,
    ),
    "an event about one of our Jobs": (
        observed(
            spec=content(source={"type": "KubernetesEvent"}),
            scope_labels=({"app.kubernetes.io/managed-by": "inquest"},),
        ),
        "Ignored",
        "Noise",
        None,
    ),
    "C-IN-2 its pod is gone": (observed(target_exists=False), "Ignored", "TargetGone", None),
    "nobody put it into our care": (
        observed(scope_labels=({},)),
        "Blocked",
        "OutOfScope",
        NOW + timedelta(seconds=5),
    ),
    "another namespace's target": (observed(namespace="team-a"), "Blocked", "OutOfScope", NOW + timedelta(seconds=5)),
    "a target in a namespace that is not looked after": (
        observed(rules=TriageRules(namespaces=frozenset({"pay", "till"}))),
        "Blocked",
        "OutOfScope",
        NOW + timedelta(seconds=5),
    ),
    "a target of the cluster where single namespaces are looked after": (
        observed(
            spec=content(target={"kind": "Node", "name": "worker-1"}),
            namespaced=False,
            rules=TriageRules(namespaces=frozenset({"shop"})),
        ),
        "Blocked",
        "OutOfScope",
        NOW + timedelta(seconds=5),
    ),
    "the labels cannot be read": (
        observed(scope_unknown=True, blocked_count=3),
        "Blocked",
        "ScopeUnknown",
        NOW + timedelta(seconds=40),
    ),
    "looked at again after 5 min at most": (
        observed(scope_labels=({},), blocked_count=1000),
        "Blocked",
        "OutOfScope",
        NOW + timedelta(minutes=5),
    ),
    "C-TR-11 out of scope and duplicate": (
        observed(scope_labels=({},), open_cases=(OTHER_CASE,)),
        "Blocked",
        "OutOfScope",
        NOW + timedelta(seconds=5),
    ),
    "an older case is open": (observed(open_cases=(OTHER_CASE,)), "Duplicate", "DuplicateOpen", None),
    "tried three times from here": (
        observed(history=SAME_START),
        "Blocked",
        "IneffectiveChain",
        NOW - 10 * MINUTE + 4 * HOUR,
    ),
    "tried five times": (
        observed(history=history(*(tried(m) for m in (10, 20, 30, 40, 50)))),
        "Blocked",
        "RecurrenceLimit",
        NOW - 10 * MINUTE + 4 * HOUR,
    ),
    "a person was asked": (
        observed(ended=(completed(Resolution.MANUAL_REVIEW_REQUIRED),)),
        "Blocked",
        "ManualReviewPending",
        NOW + 23 * HOUR,
    ),
    "failed a moment ago": (
        observed(ended=(failed(0.5, next_allowed=NOW + MINUTE),)),
        "Blocked",
        "ExponentialBackoff",
        NOW + MINUTE,
    ),
    "found nothing to do": (
        observed(ended=(completed(Resolution.NO_ACTION_REQUIRED, next_allowed=NOW + 23 * HOUR),)),
        "Blocked",
        "Cooldown",
        NOW + 23 * HOUR,
    ),
    "too many in a minute": (
        observed(accepted=tuple(AcceptedSignal(NOW - timedelta(seconds=s), "other") for s in range(1, 31))),
        "Blocked",
        "RateLimited",
        NOW + timedelta(seconds=30),
    ),
    "too many in its namespace": (
        observed(accepted=tuple(AcceptedSignal(NOW - timedelta(seconds=s), "shop") for s in range(1, 11))),
        "Blocked",
        "RateLimited",
        NOW + timedelta(seconds=50),
    ),
}


@pytest.mark.parametrize(("seen", "phase", "reason", "until"), REASONS.values(), ids=REASONS.keys())
def test_each_reason(seen: TriageInput, phase: str, reason: str, until: datetime | None) -> None:
    decision = triage_signal(seen)

    assert (decision.phase, decision.reason, decision.until) == (SignalPhase(phase), reason, until)
    assert decision.message


FREE: dict[str, TriageInput] = {
    "nothing objects": observed(),
    "C-CX-1 a Deployment that is missing": observed(
        spec=content(target={"kind": "Deployment", "name": "a", "namespace": "shop"}), target_exists=False
    ),
    "an unknown target": observed(spec=content(target={"kind": "Unknown", "name": "unknown"}), kind_known=False),
    "C-TR-10 a Node": observed(
        spec=content(target={"kind": "Node", "name": "n1"}), namespaced=False, target_exists=True
    ),
    "a namespace of ours is triaged like others": observed(
        spec=content(target={"kind": "Pod", "name": "a", "namespace": "kube-system"})
    ),
    "a reviewed case": observed(ended=(completed(Resolution.MANUAL_REVIEW_REQUIRED, reviewed=True),)),
    "a person did not answer for a day": observed(ended=(completed(Resolution.MANUAL_REVIEW_REQUIRED, hours=24),)),
    "C-TR-5 no back-off": observed(ended=(failed(5),)),
    "C-TR-5 a back-off that is over": observed(ended=(failed(5, next_allowed=NOW - MINUTE),)),
    "C-TR-8 the history cannot be read": observed(history=History(available=False)),
    "C-TR-3 our own open case is the older one": observed(
        open_cases=(
            OpenCase(ObjectRef(name="inv-mine"), "sig-1", NOW - 2 * HOUR),
            OpenCase(ObjectRef(name="inv-other"), "sig-0", NOW - HOUR),
        )
    ),
    "C-TR-7 two from here": observed(history=history(*(tried(m, pre_spec_hash="sha256:now") for m in (10, 20)))),
    "C-TR-7 one foreign between": observed(
        history=history(
            tried(10, pre_spec_hash="sha256:now"),
            tried(20, pre_spec_hash="sha256:other"),
            tried(30, pre_spec_hash="sha256:now"),
        )
    ),
    "C-TR-7 three without hashes": observed(history=history(*(tried(m) for m in (10, 20, 30)))),
    "C-TR-7 three older than 4 h": observed(
        history=history(*(tried(m, pre_spec_hash="sha256:now") for m in (240, 250, 260)))
    ),
    "29 in a minute": observed(accepted=tuple(AcceptedSignal(NOW, str(n)) for n in range(29))),
    "30 of which one is a minute old": observed(
        accepted=(AcceptedSignal(NOW - MINUTE, "a"), *(AcceptedSignal(NOW, str(n)) for n in range(29)))
    ),
}


@pytest.mark.parametrize("seen", FREE.values(), ids=FREE.keys())
def test_accepted(seen: TriageInput) -> None:
    assert triage_signal(seen).phase is SignalPhase.ACCEPTED


BLOCKERS: dict[str, Any] = {
    "open_cases": (OTHER_CASE,),
    "history": SAME_START,
    "ended": (failed(1), failed(2), failed(3)),
}


@pytest.mark.parametrize("change", ["fingerprint", "target name"])
@row("C-TR-10")
def test_without_fingerprint_or_name_nothing_earlier_blocks(change: str) -> None:
    seen = observed(**BLOCKERS)
    nameless = seen.spec.model_copy(update={"target": seen.spec.target.model_copy(update={"name": ""})})

    free = replace(seen, fingerprint="") if change == "fingerprint" else replace(seen, spec=nameless)

    assert triage_signal(seen).reason == "DuplicateOpen"
    assert triage_signal(free).phase is SignalPhase.ACCEPTED


@row("C-TR-10")
def test_the_rules_work_for_a_node() -> None:
    node = content(target={"kind": "Node", "name": "n1"})
    ended = tuple(replace(failed(minutes), namespace="") for minutes in (1, 2, 3))

    assert triage_signal(observed(spec=node, namespaced=False, ended=ended)).reason == "ConsecutiveFailures"


@row("C-TR-3")
def test_the_younger_signal_joins_the_oldest_case() -> None:
    older = OpenCase(ObjectRef(name="inv-oldest"), "sig-9", NOW - 3 * HOUR)
    mine = OpenCase(ObjectRef(name="inv-mine"), "sig-1", NOW)

    decision = triage_signal(observed(open_cases=(OTHER_CASE, mine, older)))

    assert decision.duplicate_of == ObjectRef(name="inv-oldest")


@pytest.mark.parametrize("count", [0, 1, 2], ids=lambda n: f"C-TR-1 {n} failures")
def test_few_failures_do_not_block(count: int) -> None:
    assert triage_signal(observed(ended=tuple(failed(10 + n) for n in range(count)))).phase is SignalPhase.ACCEPTED


@pytest.mark.parametrize("count", [3, 4, 10], ids=lambda n: f"C-TR-1 {n} failures")
def test_failures_in_a_row_block_for_an_hour(count: int) -> None:
    decision = triage_signal(observed(ended=tuple(failed(10 + n) for n in range(count))))

    assert (decision.phase, decision.reason) == (SignalPhase.BLOCKED, "ConsecutiveFailures")
    assert decision.until == NOW - 10 * MINUTE + HOUR


def test_after_the_hour_the_blocked_signal_fails_and_the_next_is_a_probe() -> None:
    ended = tuple(failed(60 + n) for n in range(3))

    assert triage_signal(observed(ended=ended, blocked_for="ConsecutiveFailures")).phase is SignalPhase.FAILED
    assert triage_signal(observed(ended=ended)).phase is SignalPhase.ACCEPTED


UNCOUNTED = {
    "C-TR-2 cancelled": failed(3, phase=Phase.CANCELLED),
    "C-TR-2 voided": failed(3, reason=Reason.APPROVAL_VOIDED),
    "C-RA-7 drifted": failed(3, sub_reason=SubReason.TARGET_DRIFTED),
    "spec drift": completed(Resolution.INCONCLUSIVE, effectiveness=EffectivenessReason.SPEC_DRIFT),
}


@pytest.mark.parametrize("case", UNCOUNTED.values(), ids=UNCOUNTED.keys())
def test_what_is_not_counted_does_not_end_the_count(case: EndedCase) -> None:
    assert len(failures_in_a_row((failed(1), failed(2), case, failed(4)))) == 3


def test_an_inconclusive_end_counts_and_another_completion_ends_the_count() -> None:
    inconclusive, fixed = completed(Resolution.INCONCLUSIVE), completed(Resolution.REMEDIATED)

    assert len(failures_in_a_row((inconclusive, failed(90), fixed, failed(99)))) == 2


def test_failures_of_another_namespace_are_not_counted() -> None:
    ended = tuple(replace(failed(1 + n), namespace="other") for n in range(5))

    assert triage_signal(observed(ended=ended)).phase is SignalPhase.ACCEPTED


@row("C-TR-6")
def test_the_label_frees_a_blocked_signal_at_the_next_look() -> None:
    blocked = observed(scope_labels=({},), blocked_for="OutOfScope", blocked_count=2)

    assert triage_signal(blocked).reason == "OutOfScope"
    assert triage_signal(replace(blocked, scope_labels=MANAGED)).phase is SignalPhase.ACCEPTED


HOLDS: dict[str, tuple[EndedCase, int, timedelta | None]] = {
    "the first failure": (failed(0), 0, MINUTE),
    "the second failure": (failed(0), 1, 2 * MINUTE),
    "none at the threshold": (failed(0), 2, None),
    "C-LC-3 nothing to do": (completed(Resolution.NO_ACTION_REQUIRED, hours=0), 0, 24 * HOUR),
    "dry run": (completed(Resolution.DRY_RUN, hours=0), 0, HOUR),
    "a person has to look": (completed(Resolution.MANUAL_REVIEW_REQUIRED, hours=0), 0, None),
    "remediated": (completed(Resolution.REMEDIATED, hours=0), 0, None),
    "C-RA-7 voided": (failed(0, reason=Reason.APPROVAL_VOIDED), 0, None),
}


@pytest.mark.parametrize(("case", "failures", "wait"), HOLDS.values(), ids=HOLDS.keys())
def test_when_the_next_case_is_allowed(case: EndedCase, failures: int, wait: timedelta | None) -> None:
    earlier = tuple(failed(10 + n) for n in range(failures))

    assert next_allowed(case, earlier, TriageRules()) == (NOW + wait if wait else None)


@row("C-LC-3")
def test_the_hold_can_be_switched_off() -> None:
    case = completed(Resolution.NO_ACTION_REQUIRED)

    assert next_allowed(case, (), TriageRules(no_action_hold=timedelta(0))) is None


@given(st.integers(min_value=0, max_value=10_000), st.floats(min_value=-5, max_value=5))
def test_a_back_off_is_never_longer_than_its_bound_and_a_tenth(failures: int, jitter: float) -> None:
    assert timedelta(0) < back_off(failures, jitter) <= MAX_BACK_OFF * 1.1


def test_the_rules_stand_in_the_order_of_the_table() -> None:
    assert [rule.__name__ for rule in TRIAGE] == [
        "out_of_reach",
        "malformed",
        "resolved",
        "noise",
        "target_gone",
        "out_of_scope",
        "scope_unknown",
        "duplicate_open",
        "chain",
        "manual_review_pending",
        "consecutive_failures",
        "exponential_backoff",
        "cooldown",
        "rate_limited",
    ]


SMALL_TALK = content(message="again")
ASKED: dict[str, tuple[TriageInput, str]] = {
    "small talk": (observed(spec=SMALL_TALK), "Noise"),
    "a name on the noise list": (observed(spec=content(name="Watchdog")), "Noise"),
    "a person was asked": (observed(ended=(completed(Resolution.MANUAL_REVIEW_REQUIRED),)), "ManualReviewPending"),
    "nothing to do": (
        observed(ended=(completed(Resolution.NO_ACTION_REQUIRED, next_allowed=NOW + HOUR),)),
        "Cooldown",
    ),
    "it failed three times": (observed(ended=tuple(failed(minutes) for minutes in (1, 2, 3))), "ConsecutiveFailures"),
    "it failed just now": (observed(ended=(failed(1, next_allowed=NOW + MINUTE),)), "ExponentialBackoff"),
}


@each_row(("seen", "reason"), ASKED.values(), ids=ASKED.keys())
def test_what_holds_an_alert_does_not_hold_a_person(seen: TriageInput, reason: str) -> None:
    assert triage_signal(seen).reason == reason
    assert triage_signal(replace(seen, by_person=True)).reason == "Accepted"
    assert bool(earlier_answer(replace(seen, by_person=True))) is bool(seen.ended)
    assert earlier_answer(seen) == ""


def test_a_person_is_held_by_scope_by_an_open_case_and_by_the_rate() -> None:
    limited = observed(
        accepted=tuple(AcceptedSignal(NOW, "shop") for _ in range(10)), rules=TriageRules(rate_per_namespace=10)
    )
    joined = observed(open_cases=(OpenCase(ObjectRef(name="inv-1"), "sig-0", NOW - MINUTE),))

    for seen, reason in (
        (observed(scope_labels=({},)), "OutOfScope"),
        (joined, "DuplicateOpen"),
        (limited, "RateLimited"),
    ):
        assert triage_signal(replace(seen, by_person=True)).reason == reason


def test_an_alert_is_not_held_for_a_person_once_a_workflow_for_its_cause_has_come() -> None:
    unmatched = completed(Resolution.MANUAL_REVIEW_REQUIRED, sub_reason=SubReason.NO_MATCHING_WORKFLOWS)

    assert triage_signal(observed(ended=(unmatched,))).reason == "ManualReviewPending"
    assert triage_signal(observed(ended=(replace(unmatched, workflow_came=True),))).reason == "Accepted"


def test_what_a_person_has_to_do_is_the_command_to_type() -> None:
    place = ("inquest-system", "inv-1")
    held = triage_signal(observed(ended=(completed(Resolution.MANUAL_REVIEW_REQUIRED, place=place),)))

    assert "kubectl annotate investigation -n inquest-system inv-1 inquest.dev/reviewed=yes" in held.message
