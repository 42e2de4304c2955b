"""Effectiveness: the components, their weight, and every way in which looking ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.types import EffectivenessReason, Resolution
from inquest.core.cluster.hashes import drift_hash, spec_hash
from inquest.core.remediation.effectiveness import (
    ALERT_WEIGHT,
    ENDED_AGAIN,
    HEALTH_WEIGHT,
    KILLED_AGAIN,
    METRICS_WEIGHT,
    Assessment,
    Component,
    EffectView,
    MetricChange,
    Timing,
    assess_effect,
    failed_ends,
    health_score,
    improvement,
    look_windows,
    metrics_score,
    resolution_of,
    symptoms_of,
    weighted,
)
from tests.support.tables import row

ENDED = datetime(2026, 5, 13, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CHECK, DEADLINE = ENDED + 5 * MINUTE, ENDED + 30 * MINUTE


def deployment(replicas: int = 3) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "checkout"}, "spec": {"replicas": replicas}}


def pod(
    n: int = 0,
    *,
    ready: bool = True,
    waiting: str = "",
    ended: tuple[str, float] | None = None,
    code: int = 3,
    **metadata: Any,
) -> dict[str, Any]:
    """`ended`: reason and minutes after the run of the last end of its container, with its exit code."""
    container: dict[str, Any] = {"name": "app", "state": {"waiting": {"reason": waiting}} if waiting else {}}
    if ended:
        at = (ENDED + ended[1] * MINUTE).isoformat()
        container["lastState"] = {"terminated": {"reason": ended[0], "exitCode": code, "finishedAt": at}}
    return {
        "metadata": {"name": f"checkout-{n}", **metadata},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [container],
        },
    }


READY = tuple(pod(n) for n in range(3))

HEALTH: dict[str, tuple[str, dict[str, Any] | None, tuple[dict[str, Any], ...], float | None]] = {
    "owns no pods": ("ConfigMap", {}, (), None),
    "datastorage-16.4-09 target missing": ("Deployment", None, (), 0.0),
    "none wanted": ("Deployment", deployment(0), (), 0.0),
    "datastorage-16.4-10 crash loop beats readiness": (
        "Deployment",
        deployment(),
        (*READY, pod(3, waiting="CrashLoopBackOff")),
        0.0,
    ),
    "none ready": ("Deployment", deployment(1), (pod(ready=False),), 0.0),
    "no pods": ("Deployment", deployment(1), (), 0.0),
    "datastorage-16.4-08 2 of 3 ready": ("Deployment", deployment(), (*READY[:2], pod(2, ready=False)), 0.5),
    "an OOM kill since": ("Deployment", deployment(1), (pod(ended=("OOMKilled", 1)),), 0.25),
    "an OOM kill before": ("Deployment", deployment(1), (pod(ended=("OOMKilled", -1)),), 1.0),
    "a restart since": ("Deployment", deployment(1), (pod(ended=("Error", 1)),), 0.75),
    "datastorage-16.4-07 3 of 3 ready": ("Deployment", deployment(), READY, 1.0),
    "an old pod on its way out says nothing": (
        "Deployment",
        deployment(),
        (*READY, pod(3, waiting="CrashLoopBackOff", deletionTimestamp="2026-05-13T12:00:00Z")),
        1.0,
    ),
    "a daemon set wants what its status says": ("DaemonSet", {"status": {"desiredNumberScheduled": 4}}, READY, 0.5),
    "a pod wants itself": ("Pod", {}, (pod(),), 1.0),
}


@pytest.mark.parametrize(("kind", "target", "pods", "expected"), HEALTH.values(), ids=HEALTH.keys())
def test_health(
    kind: str, target: dict[str, Any] | None, pods: tuple[dict[str, Any], ...], expected: float | None
) -> None:
    assert health_score(kind, target, pods, ENDED) == expected


BEFORE = failed_ends((pod(ended=("Error", -1)),), ENDED - 30 * MINUTE)
AGAIN = {
    "for the same reason": (pod(ended=("Error", 1)), ENDED_AGAIN),
    "with another exit code": (pod(ended=("Error", 1), code=137), 0.75),
    "with success": (pod(ended=("Completed", 1), code=0), 0.75),
    "before the run": (pod(ended=("Error", -1)), 1.0),
}


@pytest.mark.parametrize(("found", "expected"), AGAIN.values(), ids=AGAIN.keys())
def test_a_container_that_ends_again_as_before_the_run_is_no_success(found: dict[str, Any], expected: float) -> None:
    assert BEFORE == ("app Error 3",)
    assert health_score("Deployment", deployment(1), (found,), ENDED, BEFORE) == expected


def test_an_assessment_knows_how_the_containers_ended_before_the_run() -> None:
    seen = view(target=deployment(1), pods=(pod(ended=("Error", 1)),))

    assert resolution_of(assess_effect(seen)) is Resolution.REMEDIATED
    assert resolution_of(assess_effect(replace(seen, ended_before=BEFORE))) is Resolution.INEFFECTIVE


def metric(before: float | None, after: float | None, *, lower_is_better: bool = True) -> MetricChange:
    return MetricChange("m", before, after, lower_is_better)


METRICS: dict[str, tuple[tuple[MetricChange, ...], float | None]] = {
    "C-EM-1 datastorage-16.4-07 cpu 0.95 to 0.30": ((metric(0.95, 0.30),), 0.684211),
    "C-EM-1 memory 512 to 128": ((metric(512, 128),), 0.75),
    "C-EM-1 equal": ((metric(1, 1),), 0.0),
    "C-EM-1 worse": ((metric(1, 2),), 0.0),
    "C-EM-1 start 0, lower is better": ((metric(0, 5),), 0.0),
    "C-EM-1 start 0, higher is better": ((metric(0, 5, lower_is_better=False),), 1.0),
    "C-EM-1 start 0, end 0": ((metric(0, 0, lower_is_better=False),), 0.0),
    "C-EM-1 no data": ((metric(None, 1), metric(1, None)), None),
    "datastorage-16.4-08 none": ((), None),
    "throughput up by half": ((metric(100, 150, lower_is_better=False),), 0.5),
    "datastorage-16.4-09 the mean of those with data": ((metric(1, 0.5), metric(0.5, 0.8), metric(None, None)), 0.25),
}


@pytest.mark.parametrize(("metrics", "expected"), METRICS.values(), ids=METRICS.keys())
def test_metrics(metrics: tuple[MetricChange, ...], expected: float | None) -> None:
    assert metrics_score(metrics) == (None if expected is None else pytest.approx(expected, abs=1e-6))


def view(minutes: float = 6, **changes: Any) -> EffectView:
    base = EffectView(
        windows=look_windows(ENDED, Timing()),
        now=ENDED + minutes * MINUTE,
        started_at=ENDED - MINUTE,
        ended_at=ENDED,
        kind="Deployment",
        target=deployment(),
        pods=READY,
        post_hash="sha256:after",
        current_hash="sha256:after",
    )
    return replace(base, **changes)


FIRING = ({"alertname": "KubePodCrashLooping", "pod": "checkout-0"},)
GONE = ({"alertname": "KubePodCrashLooping", "pod": "checkout-old"},)

ALERTS: dict[str, tuple[EffectView, Component]] = {
    "C-EM-2 resolved": (view(resolved_at=ENDED, firing=FIRING), Component(True, 1.0)),
    "C-EM-2 active": (view(firing=FIRING), Component(True, 0.0)),
    "C-EM-2 none": (view(firing=()), Component(True, 1.0)),
    "C-EM-2 Alertmanager away": (view(firing=None), Component()),
    "C-EM-2 only of a deleted pod": (view(firing=GONE), Component(True, 1.0)),
    "pods unknown, so every alert counts": (view(firing=GONE, pods=None), Component(True, 0.0)),
    "not looked at yet": (view(1, firing=FIRING), Component()),
    "resolved before the run": (view(resolved_at=ENDED - 9 * MINUTE, firing=FIRING), Component(True, 0.0)),
}


@pytest.mark.parametrize(("seen", "expected"), ALERTS.values(), ids=ALERTS.keys())
def test_alert(seen: EffectView, expected: Component) -> None:
    assert assess_effect(seen).alert == expected


ENDINGS: dict[str, tuple[EffectView, EffectivenessReason | None]] = {
    "too early": (view(1), None),
    "C-LC-5 everything assessed": (
        view(alert_in_scope=True, firing=(), metrics_in_scope=True, metrics=(metric(1, 0.5),)),
        EffectivenessReason.FULL,
    ),
    "only health in scope": (view(), EffectivenessReason.PARTIAL),
    "the alert may decay": (view(alert_in_scope=True, firing=FIRING), None),
    "the alert did not decay": (view(30, alert_in_scope=True, firing=FIRING), EffectivenessReason.ALERT_DECAY_TIMEOUT),
    "an alert over a sick target is no decay": (
        view(alert_in_scope=True, firing=FIRING, pods=READY[:1]),
        EffectivenessReason.FULL,
    ),
    "decay ends when health drops": (
        view(
            alert_in_scope=True,
            firing=FIRING,
            pods=(*READY[:2], pod(2, ended=("Error", 5))),
            previous=Assessment(health=Component(True, 1.0)),
        ),
        EffectivenessReason.FULL,
    ),
    "decay ends when metrics fall": (
        view(
            alert_in_scope=True,
            firing=FIRING,
            metrics_in_scope=True,
            metrics=(metric(1, 0.9),),
            previous=Assessment(metrics=Component(True, 0.5)),
        ),
        EffectivenessReason.FULL,
    ),
    "metrics never came": (
        view(30, alert_in_scope=True, firing=(), metrics_in_scope=True),
        EffectivenessReason.METRICS_TIMED_OUT,
    ),
    "only the alert is missing": (view(30, alert_in_scope=True), EffectivenessReason.PARTIAL),
    "C-LC-5 nothing by the deadline": (
        view(30, pods=None, alert_in_scope=True, metrics_in_scope=True),
        EffectivenessReason.EXPIRED,
    ),
    "metrics are awaited before the deadline": (view(29, alert_in_scope=True, firing=(), metrics_in_scope=True), None),
    "C-LC-5 target deleted": (view(1, target=None, pods=()), EffectivenessReason.UNRECOVERABLE),
    "the spec changed since": (view(1, current_hash="sha256:other"), EffectivenessReason.SPEC_DRIFT),
    "no hash after, no drift": (view(1, post_hash="", current_hash="sha256:other"), None),
    "nothing ran": (view(1, executed=False), EffectivenessReason.NO_EXECUTION),
}


@pytest.mark.parametrize(("seen", "reason"), ENDINGS.values(), ids=ENDINGS.keys())
def test_endings(seen: EffectView, reason: EffectivenessReason | None) -> None:
    found = assess_effect(seen)

    assert (found.reason, found.done) == (reason, reason is not None)
    assert (found.next_look is None) == found.done


RESOLUTIONS: dict[str, tuple[Assessment, Resolution]] = {
    "all well": (Assessment(Component(True, 1.0), reason=EffectivenessReason.FULL), Resolution.REMEDIATED),
    "the alert fires": (
        Assessment(Component(True, 1.0), Component(True, 0.0), reason=EffectivenessReason.FULL),
        Resolution.INEFFECTIVE,
    ),
    "health is 0": (Assessment(Component(True, 0.0), reason=EffectivenessReason.PARTIAL), Resolution.INEFFECTIVE),
    "killed for memory again": (
        Assessment(Component(True, KILLED_AGAIN), reason=EffectivenessReason.PARTIAL),
        Resolution.INEFFECTIVE,
    ),
    "killed for memory again, and the alert fell silent": (
        Assessment(Component(True, KILLED_AGAIN), Component(True, 1.0), reason=EffectivenessReason.FULL),
        Resolution.INEFFECTIVE,
    ),
    "ended again as before, and the alert fell silent": (
        Assessment(Component(True, ENDED_AGAIN), Component(True, 1.0), reason=EffectivenessReason.FULL),
        Resolution.INEFFECTIVE,
    ),
    "half of the pods are ready": (
        Assessment(Component(True, 0.5), reason=EffectivenessReason.PARTIAL),
        Resolution.INEFFECTIVE,
    ),
    "half of the pods are ready, and the alert fell silent": (
        Assessment(Component(True, 0.5), Component(True, 1.0), reason=EffectivenessReason.FULL),
        Resolution.REMEDIATED,
    ),
    "a restart since": (Assessment(Component(True, 0.75), reason=EffectivenessReason.PARTIAL), Resolution.REMEDIATED),
    "decay timed out": (Assessment(reason=EffectivenessReason.ALERT_DECAY_TIMEOUT), Resolution.INEFFECTIVE),
    "others changed it while its alert fires": (
        Assessment(Component(True, 0.0), Component(True, 0.0), reason=EffectivenessReason.SPEC_DRIFT),
        Resolution.INCONCLUSIVE,
    ),
    "the target is gone": (
        Assessment(Component(True, 0.0), reason=EffectivenessReason.UNRECOVERABLE),
        Resolution.INCONCLUSIVE,
    ),
    "C-LC-5 expired": (Assessment(reason=EffectivenessReason.EXPIRED), Resolution.VERIFICATION_TIMED_OUT),
    "spec drift": (Assessment(reason=EffectivenessReason.SPEC_DRIFT), Resolution.INCONCLUSIVE),
    "nothing that tells": (Assessment(Component(True), reason=EffectivenessReason.PARTIAL), Resolution.NOT_VERIFIED),
    "no pods, and the alert fell silent": (
        Assessment(Component(True), Component(True, 1.0), reason=EffectivenessReason.FULL),
        Resolution.REMEDIATED,
    ),
}


@pytest.mark.parametrize(("found", "expected"), RESOLUTIONS.values(), ids=RESOLUTIONS.keys())
def test_resolutions(found: Assessment, expected: Resolution) -> None:
    assert resolution_of(found) is expected
    assert bool(symptoms_of(found)) is (expected is Resolution.INEFFECTIVE)


UNREAD = {
    "the alert fell silent": view(30, pods=None, alert_in_scope=True, firing=()),
    "the source says it is over": view(30, pods=None, alert_in_scope=True, resolved_at=ENDED + MINUTE),
    "the metrics are better": view(30, pods=None, metrics_in_scope=True, metrics=(metric(1, 0.1),)),
    "nothing was read at all": view(30, pods=None, alert_in_scope=True),
}


@pytest.mark.parametrize("seen", UNREAD.values(), ids=[f"T30+T31 {name}" for name in UNREAD])
def test_what_is_no_longer_seen_is_not_well_until_it_was_looked_at(seen: EffectView) -> None:
    """A complaint that ends, and a read that fails, say nothing of the target (behaviours, section 17)."""
    found = assess_effect(seen)

    assert found.done
    assert resolution_of(found) is not Resolution.REMEDIATED
    assert resolution_of(assess_effect(replace(seen, pods=READY))) is Resolution.REMEDIATED


def test_the_score_is_a_weighted_mean_of_what_is_there() -> None:
    example = Assessment(Component(True, 1.0), Component(True, 1.0), Component(True, 0.25))

    assert example.score == pytest.approx(0.8125)
    assert Assessment(Component(True), Component(True, 1.0)).score == 1.0
    assert Assessment().score is None


def test_spec_drift_makes_the_score_nothing() -> None:
    assert Assessment(Component(True, 1.0), reason=EffectivenessReason.SPEC_DRIFT).score == 0.0


def test_the_first_look_and_the_deadline() -> None:
    found = look_windows(ENDED, Timing())

    assert (found.check_after, found.alert_check_after, found.deadline) == (CHECK, CHECK, DEADLINE)


@row("C-EM-4")
def test_the_deadline_moves_behind_the_first_check() -> None:
    found = look_windows(ENDED, Timing(stabilization=40 * MINUTE), proactive=True)

    assert found.alert_check_after == ENDED + 45 * MINUTE
    assert found.deadline > found.alert_check_after


def test_what_others_reconcile_is_given_more_time() -> None:
    found = look_windows(ENDED, Timing(), gitops=True, by_operator=True)

    assert (found.check_after, found.deadline) == (CHECK + 4 * MINUTE, DEADLINE + 4 * MINUTE)


def test_it_looks_every_half_minute_from_the_first_check_and_once_at_the_deadline() -> None:
    waiting = {"alert_in_scope": True, "firing": None}

    assert assess_effect(view(1, **waiting)).next_look == CHECK
    assert assess_effect(view(6, **waiting)).next_look == ENDED + 6.5 * MINUTE
    assert assess_effect(view(29.9, **waiting)).next_look == DEADLINE


def spec_with(image: str) -> dict[str, Any]:
    volumes = [{"name": "c", "configMap": {"name": "settings"}}]
    return {"kind": "Deployment", "spec": {"template": {"spec": {"image": image, "volumes": volumes}}}}


@row("C-EM-3")
def test_hashes_compare_specs_and_only_the_drift_hash_sees_config_maps() -> None:
    before, after = {"settings": {"data": {"a": "1"}}}, {"settings": {"data": {"a": "2"}}}

    assert spec_hash(spec_with("a")) == spec_hash(spec_with("a")) != spec_hash(spec_with("b"))
    assert spec_hash(None) == spec_hash({})
    assert drift_hash(spec_with("a"), before) != drift_hash(spec_with("a"), after)


numbers = st.none() | st.floats(min_value=-1e6, max_value=1e6)
shares = st.none() | st.floats(min_value=0, max_value=1)


@given(numbers, numbers, st.booleans())
def test_an_improvement_is_a_share(before: float | None, after: float | None, lower: bool) -> None:
    found = improvement(before, after, lower_is_better=lower)

    assert found is None or 0 <= found <= 1


@given(shares, shares, shares)
def test_the_score_lies_between_its_components(
    health: float | None, alert: float | None, metrics: float | None
) -> None:
    parts = ((HEALTH_WEIGHT, health), (ALERT_WEIGHT, alert), (METRICS_WEIGHT, metrics))
    known = [score for _, score in parts if score is not None]

    found = weighted((weight, Component(score is not None, score)) for weight, score in parts)

    assert (found is None) == (not known)
    assert found is None or min(known) - 1e-9 <= found <= max(known) + 1e-9
