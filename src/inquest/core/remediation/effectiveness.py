"""Did it help? Health, alert and metrics after the run, weighed, until a deadline.

`assess_effect` is asked every 30 s with what is seen now and answers whether the looking is over. A service that is
away gives no component instead of a bad one, and the assessment ends all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from inquest.api.execution import MAX_ENDS
from inquest.api.types import EffectivenessReason, Resolution
from inquest.core.cluster.objects import is_true, metadata_of, spec_of, status_of
from inquest.core.cluster.pods import state_of
from inquest.core.evidence.evidence import Json

HEALTH_WEIGHT: Final = 0.40
ALERT_WEIGHT: Final = 0.35
METRICS_WEIGHT: Final = 0.25
LOOK: Final = timedelta(seconds=30)
LOOK_BACK: Final = timedelta(minutes=30)
"""How far before the run metrics are read."""
HEALTHY: Final = 0.7
"""From here on a firing alert is given time to decay, and below it the target is not well."""
KILLED_AGAIN: Final = 0.25
"""Health of a target of which a container was killed for its memory after the run."""
ENDED_AGAIN: Final = 0.4
"""Health of a target of which a container ended after the run as it did before."""

POD_OWNERS: Final = frozenset(
    {"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"}
)


@dataclass(frozen=True)
class Timing:
    """Settings of the assessment."""

    stabilization: timedelta = timedelta(minutes=5)
    validity: timedelta = timedelta(minutes=30)
    gitops_delay: timedelta = timedelta(minutes=3)
    operator_delay: timedelta = timedelta(minutes=1)
    proactive_delay: timedelta = timedelta(minutes=5)


@dataclass(frozen=True)
class Windows:
    """When things are looked at."""

    check_after: datetime
    alert_check_after: datetime
    deadline: datetime


def look_windows(
    ended_at: datetime, timing: Timing, *, gitops: bool = False, by_operator: bool = False, proactive: bool = False
) -> Windows:
    """The times of 12.2; a target that others reconcile moves all of them."""
    start = ended_at + timing.gitops_delay * gitops + timing.operator_delay * by_operator
    check = start + timing.stabilization
    alert = check + timing.proactive_delay * proactive
    deadline = start + timing.validity
    # A deadline before the last first look would end an assessment that never began.
    return Windows(check, alert, deadline if deadline > alert else alert + LOOK)


def is_custom(api_version: str) -> bool:
    """Whether objects of this version are made by somebody's operator, and not by Kubernetes itself."""
    group = api_version.rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


@dataclass(frozen=True)
class HealthBefore:
    """How a target fared right before a run."""

    score: float | None = None
    ends: tuple[str, ...] = ()
    """As `failed_ends` writes them."""


NOT_KNOWN: Final = HealthBefore()


@dataclass(frozen=True)
class Component:
    """One part of the score; assessed without a score where the question does not arise."""

    assessed: bool = False
    score: float | None = None


NOT_ASSESSED: Final = Component()


@dataclass(frozen=True)
class MetricChange:
    """First sample against last; None where there was none."""

    name: str
    before: float | None
    after: float | None
    lower_is_better: bool = True


@dataclass(frozen=True)
class EffectView:
    """All that an assessment may look at; None says that it could not be read."""

    windows: Windows
    now: datetime
    started_at: datetime
    ended_at: datetime
    kind: str
    target: Json | None
    """None: deleted."""
    pods: tuple[Json, ...] | None = None
    ended_before: tuple[str, ...] = ()
    """How its containers ended before the run, as `failed_ends` writes it."""
    executed: bool = True
    post_hash: str = ""
    current_hash: str = ""
    resolved_at: datetime | None = None
    """When the source said that the Signal is over."""
    alert_in_scope: bool = False
    firing: tuple[Mapping[str, str], ...] | None = None
    """Labels of the alerts that Alertmanager shows for the Signal."""
    metrics_in_scope: bool = False
    metrics: tuple[MetricChange, ...] | None = None
    previous: Assessment | None = None


@dataclass(frozen=True)
class Assessment:
    """What is known so far; `done` with a reason, or the next look."""

    health: Component = NOT_ASSESSED
    alert: Component = NOT_ASSESSED
    metrics: Component = NOT_ASSESSED
    reason: EffectivenessReason | None = None
    next_look: datetime | None = None

    @property
    def done(self) -> bool:
        return self.reason is not None

    @property
    def score(self) -> float | None:
        """The weighted mean of what has a score; 0 where the target changed under the assessment."""
        if self.reason is EffectivenessReason.SPEC_DRIFT:
            return 0.0
        return weighted(((HEALTH_WEIGHT, self.health), (ALERT_WEIGHT, self.alert), (METRICS_WEIGHT, self.metrics)))


def weighted(parts: Iterable[tuple[float, Component]]) -> float | None:
    """The mean over the components that have a score, with their weights."""
    scored = [(weight, part.score) for weight, part in parts if part.score is not None]
    total = sum(weight for weight, _ in scored)
    return sum(weight * score for weight, score in scored) / total if total else None


def assess_effect(view: EffectView) -> Assessment:
    """One look; the first ending that applies ends it."""
    so_far = Assessment(_health(view), _alert(view), _metrics(view))
    reason = next((word for ending in ENDINGS if (word := ending(view, so_far))), None)
    return Assessment(so_far.health, so_far.alert, so_far.metrics, reason, None if reason else _next_look(view))


def resolution_of(found: Assessment) -> Resolution:
    """How the case ends; without a look at its health nothing is called well."""
    if found.reason is EffectivenessReason.EXPIRED:
        return Resolution.VERIFICATION_TIMED_OUT
    if symptoms_of(found):
        return Resolution.INEFFECTIVE
    if found.reason in _NOTHING_SAID or not found.health.assessed:
        return Resolution.INCONCLUSIVE
    return Resolution.REMEDIATED if found.score is not None else Resolution.NOT_VERIFIED


_NOTHING_SAID: Final = (
    EffectivenessReason.SPEC_DRIFT,
    EffectivenessReason.NO_EXECUTION,
    EffectivenessReason.UNRECOVERABLE,
)
"""The target was changed by others, never changed at all, or is gone: the figures are not the run's."""


def symptoms_of(found: Assessment) -> tuple[str, ...]:
    """What was found again after the run, in words; empty where it helped and where nobody can tell."""
    if found.reason in _NOTHING_SAID:
        return ()
    firing = found.alert.score == 0 or found.reason is EffectivenessReason.ALERT_DECAY_TIMEOUT
    unwell = _unwell(found.health.score, found.score)
    return (*((unwell,) if unwell else ()), *(("its alert still fires",) if firing else ()))


def _unwell(health: float | None, score: float | None) -> str:
    """Pods that are on their way may be left to an alert that fell silent; crashing and killed ones may not."""
    if health is None or health >= HEALTHY:
        return ""
    if health == 0:
        return "its pods crash or are not ready"
    if health <= KILLED_AGAIN:
        return "a container was OOMKilled again"
    if health <= ENDED_AGAIN:
        return "a container ended again for the reason for which it ended before"
    return "not all of its pods are ready" if (score or 0.0) < HEALTHY else ""


# --- endings (12.3) -------------------------------------------------------------------------------------


def never_ran(view: EffectView, found: Assessment) -> EffectivenessReason | None:
    """There is nothing to assess."""
    return None if view.executed else EffectivenessReason.NO_EXECUTION


def gone(view: EffectView, found: Assessment) -> EffectivenessReason | None:
    """The target was deleted."""
    return EffectivenessReason.UNRECOVERABLE if view.target is None else None


def drifted(view: EffectView, found: Assessment) -> EffectivenessReason | None:
    """Somebody changed the target since: the data say nothing."""
    changed = view.post_hash and view.current_hash and view.current_hash != view.post_hash
    return EffectivenessReason.SPEC_DRIFT if changed else None


def complete(view: EffectView, found: Assessment) -> EffectivenessReason | None:
    """Everything in scope is known; a firing alert over a healthy target gets time to decay."""
    if not all(part.assessed for part in _in_scope(view, found)) or _decays(view, found):
        return None
    alone = not (view.alert_in_scope or view.metrics_in_scope)
    return EffectivenessReason.PARTIAL if alone else EffectivenessReason.FULL


def out_of_time(view: EffectView, found: Assessment) -> EffectivenessReason | None:
    """The deadline: the word says what is missing."""
    if view.now < view.windows.deadline:
        return None
    missing = [part for part in _in_scope(view, found) if not part.assessed]
    words = (
        (len(missing) == len(_in_scope(view, found)), EffectivenessReason.EXPIRED),
        (_decays(view, found), EffectivenessReason.ALERT_DECAY_TIMEOUT),
        (missing == [found.metrics] and view.metrics_in_scope, EffectivenessReason.METRICS_TIMED_OUT),
    )
    return next((word for holds, word in words if holds), EffectivenessReason.PARTIAL)


ENDINGS: Final[tuple[Callable[[EffectView, Assessment], EffectivenessReason | None], ...]] = (
    never_ran,
    gone,
    drifted,
    complete,
    out_of_time,
)


def _in_scope(view: EffectView, found: Assessment) -> tuple[Component, ...]:
    chosen = ((True, found.health), (view.alert_in_scope, found.alert), (view.metrics_in_scope, found.metrics))
    return tuple(part for wanted, part in chosen if wanted)


def _decays(view: EffectView, found: Assessment) -> bool:
    """The target is well and stays so: the alert may only be slow."""
    well = found.health.score is not None and found.health.score >= HEALTHY
    before = view.previous or found
    sinks = _fell(before.health, found.health) or _fell(before.metrics, found.metrics)
    return found.alert.score == 0 and well and not sinks


def _fell(before: Component, now: Component) -> bool:
    return before.score is not None and now.score is not None and now.score < before.score


def _next_look(view: EffectView) -> datetime:
    first = view.windows.check_after
    return first if view.now < first else min(view.now + LOOK, view.windows.deadline)


# --- components (12.1) ------------------------------------------------------------------------------------


def _health(view: EffectView) -> Component:
    if view.target is None:
        return Component(assessed=True, score=0.0)
    if view.now < view.windows.check_after or (view.kind in POD_OWNERS and view.pods is None):
        return NOT_ASSESSED
    score = health_score(view.kind, view.target, view.pods or (), view.ended_at, view.ended_before)
    return Component(assessed=True, score=score)


def health_score(
    kind: str, target: Json | None, pods: Sequence[Json], since: datetime, ended_before: Sequence[str] = ()
) -> float | None:
    """The first situation that fits; None for a kind that owns no pods."""
    if kind not in POD_OWNERS:
        return None
    if target is None:
        return 0.0
    living, wanted = [pod for pod in pods if _lives(pod)], desired(kind, target)
    ready = sum(1 for pod in living if is_true(status_of(pod), "Ready"))
    situations = (
        (wanted == 0, 0.0),
        (any(_crash_loops(pod) for pod in living), 0.0),
        (ready == 0, 0.0),
        (ready < wanted, 0.5),
        (any(end.get("reason") == "OOMKilled" for _, end in _ends(living, since)), KILLED_AGAIN),
        (not set(ended_before).isdisjoint(failed_ends(living, since)), ENDED_AGAIN),
        (any(True for _ in _ends(living, since)), 0.75),
    )
    return next((score for holds, score in situations if holds), 1.0)


def desired(kind: str, target: Json) -> int:
    """How many pods there should be."""
    spec, status = spec_of(target), status_of(target)
    if kind == "DaemonSet":
        return int(status.get("desiredNumberScheduled", 0))
    if kind in ("Job", "CronJob"):
        return int(spec.get("parallelism", 1))
    return int(spec.get("replicas", 1)) if kind != "Pod" else 1


def _lives(pod: Json) -> bool:
    ended = status_of(pod).get("phase") in ("Succeeded", "Failed")
    return not ended and not metadata_of(pod).get("deletionTimestamp")


def _containers(pod: Json) -> Sequence[Mapping[str, Any]]:
    return status_of(pod).get("containerStatuses") or ()


def _crash_loops(pod: Json) -> bool:
    waiting = (state_of(one, "waiting").get("reason") for one in _containers(pod))
    return "CrashLoopBackOff" in waiting


def failed_ends(pods: Iterable[Json], since: datetime) -> tuple[str, ...]:
    """Container, reason and exit code of ends since then that were no success; each once."""
    failed = ((name, end) for name, end in _ends(pods, since) if end.get("exitCode"))
    return tuple(sorted({f"{name} {end.get('reason') or '-'} {end['exitCode']}" for name, end in failed}))[:MAX_ENDS]


def _ends(pods: Iterable[Json], since: datetime) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Runs of containers that ended since then, by the container's name; each stands for a restart."""
    for pod in pods:
        for one in _containers(pod):
            end = state_of(one, "terminated", last=True)
            if end.get("finishedAt") and datetime.fromisoformat(end["finishedAt"]) > since:
                yield str(one.get("name")), end


def _alert(view: EffectView) -> Component:
    if view.resolved_at is not None and view.resolved_at >= view.started_at:
        return Component(assessed=True, score=1.0)
    if view.firing is None or view.now < view.windows.alert_check_after:
        return NOT_ASSESSED
    return Component(assessed=True, score=0.0 if any(_is_alive(alert, view) for alert in view.firing) else 1.0)


def _is_alive(alert: Mapping[str, str], view: EffectView) -> bool:
    """An alert of a pod that no longer exists says nothing about those that do."""
    names = {metadata_of(pod).get("name") for pod in view.pods or ()}
    return view.pods is None or "pod" not in alert or alert["pod"] in names


def _metrics(view: EffectView) -> Component:
    if view.metrics is None or view.now < view.windows.check_after:
        return NOT_ASSESSED
    score = metrics_score(view.metrics)
    return Component(assessed=score is not None, score=score)


def metrics_score(metrics: Iterable[MetricChange]) -> float | None:
    """The mean of the relative improvements; None where no metric has both samples."""
    scores = [improvement(one.before, one.after, lower_is_better=one.lower_is_better) for one in metrics]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


def improvement(before: float | None, after: float | None, *, lower_is_better: bool) -> float | None:
    """Change by the start value, 0 to 1; from 0 everything is a rise, and no change is 0."""
    if before is None or after is None:
        return None
    if before == 0:
        return 1.0 if after > 0 and not lower_is_better else 0.0
    gain = (before - after) if lower_is_better else (after - before)
    return max(0.0, min(1.0, gain / abs(before)))
