"""Whole cases, one alone and many at once, from the Signal over a person's approval to the record.

    idle      the operator with its workloads and nothing to do: what it asks the API server for anyway
    alone     one case after the other
    N         N Signals at once, each of another workload

Each of N has an operator of its own, so that its memory is its own. A run gives figures, `report` judges them.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks import bare, prompts
from benchmarks.ground import Ground, each, until
from benchmarks.model import Model, Span
from benchmarks.process import Asked, Notes, Operator, running
from benchmarks.watching import Machine, Sample, Sampler, Timeline, machine, watching

SETTLE_SECONDS: Final = 8.0
"""After the workloads broke, before anything is measured."""
CASE_SECONDS: Final = 400.0
EXPECTED: Final = "Completed, NotVerified"
"""Phase and resolution of a case whose workflow was chosen, approved and run; on simulated nodes nothing heals."""

Target = tuple[str, str, str]


@dataclass(frozen=True)
class Case:
    """One case; moments of the monotonic clock, seconds."""

    name: str
    told: float
    ruled: float | None
    recorded: float | None
    ending: str
    """Phase and resolution, or reason."""
    turns: int
    model: float
    """Time inside the model, as the model's side has it."""
    first_turn: float | None

    @property
    def overhead(self) -> float:
        """From the Signal to the ruling, without the model."""
        return (self.ruled or float("inf")) - self.told - self.model

    @property
    def reaction(self) -> float:
        """From the Signal to the first request to the model."""
        return (self.first_turn or float("inf")) - self.told


@dataclass(frozen=True)
class Played:
    """A run of cases and what it cost; `background` is what an idle operator needs in the same time."""

    size: int
    cases: tuple[Case, ...]
    begin: float
    ruled: float
    end: float
    to_ruling: dict[str, dict[str, float]]
    """Requests of a case up to the ruling, by effect and verb with resource."""
    to_record: dict[str, dict[str, float]]
    cpu: float
    policy_cpu: float
    resident_before: int
    resident_peak: int
    policy_resident: int
    waits: tuple[float, ...]
    """Seconds that each request waited for its place."""
    late: tuple[float, ...]
    failed: dict[str, int]
    """Requests that failed, by error."""
    bare: dict[str, float]
    prompts: tuple[prompts.Prompts, ...]
    reported: tuple[int, ...]
    """Prompt tokens of each case as the model's side reported them."""
    cached: tuple[int, ...]
    others: float
    """Cores that other work on this machine took."""
    objects: dict[str, int]
    left: tuple[str, ...]
    warnings: dict[str, int]
    profile: Mapping[str, Any]
    """Of the operator's CPU; without a sample where none was asked for."""


@dataclass(frozen=True)
class Idle:
    """The operator at rest."""

    seconds: float
    requests: dict[str, float]
    """A second, by verb and resource."""
    targets: dict[Target, float]
    """A second, by what was asked for."""
    cpu_share: float
    resident: int
    ready: float
    """Seconds from the start to readiness."""


@dataclass
class Course:
    """What a run has gone through; filled while it runs, read when the operator has stopped."""

    timeline: Timeline
    sampler: Sampler
    told: dict[str, float] = field(default_factory=dict)
    windows: list[tuple[float, float, float]] = field(default_factory=list)
    """Begin, last ruling, end."""
    machine: list[Machine] = field(default_factory=list)
    """Before and after."""
    objects: dict[str, int] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    reported: dict[str, tuple[int, int]] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)
    bare: dict[str, float] = field(default_factory=dict)


def idle_and_alone(
    ground: Ground, model: Model, count: int, rest_seconds: float, say: Callable[[str], None]
) -> tuple[Idle, Played]:
    """The operator at rest, and then one case after the other."""
    cases = names(count)
    with _operator(ground, model, "alone", at_once=20) as (operator, course):
        ground.break_workloads(cases)
        time.sleep(SETTLE_SECONDS)
        say(f"at rest for {rest_seconds:.0f} s")
        rest = (time.monotonic(), time.monotonic() + rest_seconds)
        time.sleep(rest_seconds)
        say(f"{count} cases, one after the other")
        for case in cases:
            _play(ground, course, [case])
        _finish(ground, course, model, cases, say, one_by_one=True)
    notes = operator.notes()
    idle = _idle(notes, course.sampler, rest, operator)
    return idle, _played(1, operator, notes, course, model, cases, idle)


def at_once(
    ground: Ground, model: Model, size: int, idle: Idle, say: Callable[[str], None], *, profile: bool = False
) -> Played:
    """That many Signals at once."""
    cases = names(size)
    with _operator(ground, model, f"at-once-{size}", at_once=max(size, 20), profile=profile) as (operator, course):
        ground.break_workloads(cases)
        time.sleep(SETTLE_SECONDS)
        say(f"{size} cases at once")
        _play(ground, course, cases)
        _finish(ground, course, model, cases, say, one_by_one=False)
    return _played(size, operator, operator.notes(), course, model, cases, idle)


def names(count: int) -> list[str]:
    """Names that no earlier run has used; the scripted model's notes are sorted by them."""
    run = secrets.token_hex(2)
    return [f"case-{run}-{number:03}" for number in range(count)]


# --- playing --------------------------------------------------------------------------------------------------


@contextmanager
def _operator(
    ground: Ground, model: Model, name: str, *, at_once: int, profile: bool = False
) -> Iterator[tuple[Operator, Course]]:
    with ExitStack() as stack:
        operator = stack.enter_context(running(ground, name, model.url, at_once=at_once, profile=profile))
        sampler = stack.enter_context(Sampler(operator.pid))
        timeline = stack.enter_context(watching(ground))
        yield operator, Course(timeline, sampler)
        ground.clear()


def _play(ground: Ground, course: Course, cases: Sequence[str]) -> None:
    """Signals, then approvals once every case waits for one, then the rest."""
    timeline, mark = course.timeline, ground.cluster.kubeconfig.parents[1].name
    course.machine.append(machine(mark))
    begin = time.monotonic()
    course.told |= dict(zip(cases, each(ground.tell, cases), strict=True))
    until(lambda: all(timeline.settled(case) for case in cases), "every ruling", CASE_SECONDS)
    ruled = time.monotonic()
    waiting = [case for case in cases if timeline.asked(case)]
    each(ground.approve, waiting, [timeline.names[case] for case in waiting])
    until(lambda: all(timeline.recorded(case) for case in cases), "every record", CASE_SECONDS)
    until(lambda: not ground.left(), "every journal to go", CASE_SECONDS)
    course.windows.append((begin, ruled, time.monotonic()))
    course.machine.append(machine(mark))


def _finish(
    ground: Ground, course: Course, model: Model, cases: Sequence[str], say: Callable[[str], None], *, one_by_one: bool
) -> None:
    """Count what is there, and play the baseline while the operator rests."""
    kinds = ("signals", "investigations", "remediationapprovalrequests", "workflowexecutions")
    listed = {kind: ground.listed(kind, cases) for kind in kinds}
    course.objects = {kind: len(found) for kind, found in listed.items()} | {"jobs": ground.jobs()}
    course.left = tuple(ground.left())
    course.endings = {one["metadata"]["namespace"]: _ending(one) for one in listed["investigations"]}
    course.reported = {one["metadata"]["namespace"]: _reported(one) for one in listed["investigations"]}
    if not model.url:
        return
    say("the baseline: the same requests, sent by a bare loop")
    sent = _by_case(model.spans())
    conversations = {case: [span.body for span in sent[case]] for case in cases}
    begun = time.monotonic()
    walls: dict[str, float] = {}
    for batch in [[case] for case in cases] if one_by_one else [list(cases)]:
        walls |= bare.replay(model.url, {case: conversations[case] for case in batch})
    inside = {case: sum(span.seconds for span in found) for case, found in _by_case(model.spans(begun)).items()}
    course.bare = {case: wall - inside[case] for case, wall in walls.items()}


def _by_case(spans: Sequence[Span]) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        found[span.case].append(span)
    return found


def _ending(investigation: dict[str, Any]) -> str:
    status = investigation.get("status", {})
    return f"{status.get('phase', 'no phase')}, {status.get('resolution') or status.get('reason') or '-'}"


def _reported(investigation: dict[str, Any]) -> tuple[int, int]:
    usage = investigation.get("status", {}).get("usage") or {}
    return int(usage.get("promptTokens") or 0), int(usage.get("cachedTokens") or 0)


# --- reckoning ------------------------------------------------------------------------------------------------


def _idle(notes: Notes, sampler: Sampler, rest: tuple[float, float], operator: Operator) -> Idle:
    begin, end = rest
    seconds = end - begin
    asked = [one for one in notes.requests if begin <= one.begin < end]
    samples = sampler.between(begin, end)
    return Idle(
        seconds,
        {word: number / seconds for word, number in Counter(map(_word, asked)).items()},
        {target: number / seconds for target, number in Counter(map(_target, asked)).items()},
        (samples[-1].cpu - samples[0].cpu) / seconds,
        max(sample.resident for sample in samples),
        operator.ready_seconds,
    )


def _played(
    size: int, operator: Operator, notes: Notes, course: Course, model: Model, cases: Sequence[str], idle: Idle
) -> Played:
    begin, _, end = course.windows[0][0], course.windows[0][1], course.windows[-1][2]
    first_bare = course.windows[-1][2]
    sent = _by_case([span for span in model.spans() if span.begin < first_bare])
    samples = course.sampler.between(begin, end)
    busy = sum(stop - start for start, _, stop in course.windows)
    inside = [one for one in notes.requests if begin <= one.begin < end]
    return Played(
        size=size,
        cases=tuple(_case(case, course, sent[case]) for case in cases),
        begin=begin,
        ruled=course.windows[-1][1],
        end=end,
        to_ruling=_a_case(notes, [(start, ruled) for start, ruled, _ in course.windows], idle, len(cases)),
        to_record=_a_case(notes, [(start, stop) for start, _, stop in course.windows], idle, len(cases)),
        cpu=(_spent(course, lambda one: one.cpu) - busy * idle.cpu_share) / len(cases),
        policy_cpu=_spent(course, lambda one: one.children_cpu) / len(cases),
        resident_before=samples[0].resident,
        resident_peak=max(sample.resident for sample in samples),
        policy_resident=max(sample.children_resident for sample in samples),
        waits=tuple(seconds for at, seconds in notes.waits if begin <= at < end),
        late=tuple(seconds for at, seconds in notes.late if begin <= at < end),
        failed=dict(Counter(one.result for one in inside if one.result != "ok")),
        bare=course.bare,
        prompts=tuple(prompts.look([span.body for span in sent[case]]) for case in cases),
        reported=tuple(course.reported[case][0] for case in cases),
        cached=tuple(course.reported[case][1] for case in cases),
        others=course.machine[0].others_until(course.machine[-1]),
        objects=course.objects,
        left=course.left,
        warnings=dict(
            Counter(line["event"][:80] for line in operator.lines() if line.get("level") in ("warning", "error"))
        ),
        profile=notes.profile,
    )


def _case(name: str, course: Course, spans: Sequence[Span]) -> Case:
    timeline = course.timeline
    return Case(
        name,
        course.told[name],
        timeline.settled(name),
        timeline.recorded(name),
        course.endings.get(name, "no Investigation"),
        len(spans),
        sum(span.seconds for span in spans),
        spans[0].begin if spans else None,
    )


def _spent(course: Course, part: Callable[[Sample], float]) -> float:
    """CPU seconds while cases were played."""
    spent = 0.0
    for begin, _, end in course.windows:
        samples = course.sampler.between(begin, end)
        spent += part(samples[-1]) - part(samples[0])
    return spent


def _a_case(
    notes: Notes, windows: Sequence[tuple[float, float]], idle: Idle, count: int
) -> dict[str, dict[str, float]]:
    """Requests of one case by effect and word; what an idle operator asks for in the same time is taken off."""
    seconds = sum(end - begin for begin, end in windows)
    asked = [one for one in notes.requests if any(begin <= one.begin < end for begin, end in windows)]
    sorts = {_target(one): one for one in asked}
    found: dict[str, dict[str, float]] = {"write": defaultdict(float), "read": defaultdict(float)}
    for target, number in Counter(map(_target, asked)).items():
        own = max(0.0, number - idle.targets.get(target, 0.0) * seconds)
        effect = "write" if sorts[target].writes else "read"
        found[effect][_word(sorts[target])] += own / count
    return {effect: {word: number for word, number in words.items() if number} for effect, words in found.items()}


def _target(one: Asked) -> Target:
    return one.verb, one.resource, one.path


def _word(one: Asked) -> str:
    return f"{one.verb} {one.resource}"


def percentile(values: Sequence[float], share: float) -> float:
    """With the values between two ranks taken by their distance; the one value where there is one."""
    if len(values) < 2:
        return values[0] if values else float("nan")
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]
