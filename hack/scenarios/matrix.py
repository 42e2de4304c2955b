"""Every recorded case asked in other ways, with something else beside it: what the diagnosis makes of that.

python -m hack.scenarios.matrix plays all (two minutes on two cores) and writes `matrix.json`

A letter a cell: `R` right · `W` weaker, no cause is named · `H` a fault is called well · `T` turned, another cause is
named · `.` the question does not arise. Six letters a question, one for what stands beside.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

from hack.scenarios.live import SCENARIOS
from inquest.api.refs import TargetRef
from inquest.api.types import SourceType
from inquest.core.cluster.objects import labels_of, template_of
from inquest.core.cluster.relations import is_selected
from inquest.core.diagnosis.detectors.registry import examine
from inquest.core.diagnosis.diagnosis import Diagnosis, diagnose
from inquest.core.diagnosis.health import health_of
from inquest.core.diagnosis.question import about
from inquest.core.diagnosis.target_state import target_state
from inquest.core.evidence.evidence import Gap, Json
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redactor import Redactor
from inquest.replay.case import LogPlace, RecordedCase, case_id, read_case
from inquest.replay.clock import RecordedClock
from inquest.replay.cluster import RecordedCluster
from inquest.replay.player import case_places
from inquest.replay.scoring import Expectation, WantedCause, judge_result
from inquest.replay.target_reader import RecordedTargetReader

MATRIX: Final = SCENARIOS / "matrix.json"
BESIDE: Final = Path(__file__).parent / "beside"
QUESTIONS: Final = ("as asked", "its Service", "its namespace", "a target that is not there")
HERRINGS: Final = ("nothing", "debug-pod", "failed-job", "cordoned-node", "missing-secret", "noisy-log")
RIGHT, WEAKER, WELL, TURNED, NO_QUESTION = "RWHT."
CALM: Final = frozenset({"problem_resolved", "not_actionable"})
"""Outcomes of a diagnosis beside which a cause asks nobody to act."""
ABSENT: Final = TargetRef(api_version="apps/v1", kind="Deployment", name="no-such-workload")


# --- what is asked, and what stands beside --------------------------------------------------------------------------


def asked(case: RecordedCase) -> Iterator[TargetRef | None]:
    """The targets of the four questions, None where one does not arise."""
    target = case.signal.spec.target
    yield target
    service = None if target.kind == "Service" else next(_services(case, target), None)
    yield TargetRef(api_version="v1", kind="Service", name=service, namespace=target.namespace) if service else None
    is_within = target.kind != "Namespace" and target.namespace
    yield TargetRef(api_version="v1", kind="Namespace", name=target.namespace) if is_within else None
    yield ABSENT.model_copy(update={"namespace": home_of(case)})


def home_of(case: RecordedCase) -> str:
    """The namespace that a case is about."""
    target = case.signal.spec.target
    return target.namespace or (target.name if target.kind == "Namespace" else "default")


def _services(case: RecordedCase, target: TargetRef) -> Iterator[str]:
    """Names of the Services that select the pods of the target."""
    for one in case.objects:
        if (one["kind"], one["metadata"]["name"]) != (target.kind, target.name) or _namespace(one) != target.namespace:
            continue
        labels = labels_of(one) if target.kind == "Pod" else labels_of(template_of(one))
        pod = {"metadata": {"namespace": target.namespace, "labels": labels}}
        services = (each for each in case.objects if each["kind"] == "Service" and _namespace(each) == target.namespace)
        yield from sorted(each["metadata"]["name"] for each in services if is_selected(pod, each))


def _namespace(one: Any) -> Any:
    return one["metadata"].get("namespace") or None


def with_target(case: RecordedCase, target: TargetRef) -> RecordedCase:
    spec = case.signal.spec.model_copy(update={"target": target})
    return replace(case, signal=case.signal.model_copy(update={"spec": spec}))


def with_herring(case: RecordedCase, name: str) -> RecordedCase:
    """The case with the objects of `beside/<name>.yaml` in its namespace, and their log."""
    if name == HERRINGS[0]:
        return case
    ago = {"now": timedelta(), "minutes": timedelta(minutes=5), "days": timedelta(days=3)}
    times = {word: f'"{case.taken_at - age:%Y-%m-%dT%H:%M:%SZ}"' for word, age in ago.items()}
    text = Template((BESIDE / f"{name}.yaml").read_text()).substitute(namespace=home_of(case), **times)
    objects = tuple(yaml.load(text, Loader=yaml.CSafeLoader))
    log = BESIDE / f"{name}.log"
    pods = [each["metadata"] for each in objects if each["kind"] == "Pod"] if log.exists() else []
    logs = {LogPlace(home_of(case), pod["name"], _container(objects), False): log.read_text() for pod in pods}
    return replace(case, objects=(*case.objects, *objects), logs={**case.logs, **logs})


def _container(objects: Sequence[Json]) -> str:
    pod = next(each for each in objects if each["kind"] == "Pod")
    return str(pod["spec"]["containers"][0]["name"])


# --- one diagnosis ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """Takes snapshots of recorded cases, as the operator does."""

    redactor: Redactor

    async def snapshot(self, case: RecordedCase) -> Snapshot:
        signal, clock = case.signal.spec, RecordedClock(case.taken_at)
        reader = RecordedTargetReader(case, RecordedCluster(case), self.redactor, clock)
        return about(await reader.snapshot(signal.target, signal.firing_time), signal)


def diagnosed(seen: Snapshot, case: RecordedCase) -> Diagnosis:
    """What the detectors make of a snapshot."""
    found, failed = examine(seen)
    return diagnose(
        found.findings,
        target_state(seen, health_of(seen)),
        seen.evidence,
        (*seen.gaps, *failed),
        by_person=case.signal.spec.source.type is SourceType.MANUAL,
    )


def letter(expected: Expectation, told: Diagnosis) -> str:
    """How a diagnosis compares with what was expected."""
    if expected.cause is None:
        return TURNED if told.causes and told.outcome not in CALM else RIGHT
    if told.causes:
        return RIGHT if judge_result(expected, told.causes, "").at1 else TURNED
    return WELL if told.outcome in CALM else WEAKER


# --- the cells of one case ------------------------------------------------------------------------------------------


NOBODY: Final = Expectation()
"""Of a target that is not there: no cause may be named."""


async def cells(case: RecordedCase, reader: Reader) -> str:
    """The letters of a case, question by question."""
    told = []
    for question, target in zip(QUESTIONS, asked(case), strict=True):
        expected = NOBODY if question == QUESTIONS[-1] else case.expected or NOBODY
        told.append("".join([await _cell(case, target, name, expected, reader) for name in HERRINGS]))
    return " ".join(told)


async def _cell(
    case: RecordedCase, target: TargetRef | None, herring: str, expected: Expectation, reader: Reader
) -> str:
    if target is None:
        return NO_QUESTION
    beside = with_herring(case, herring)
    changed = with_target(beside, target)
    told = diagnosed(await reader.snapshot(changed), changed)
    if expected.cause is None and target.kind == "Namespace" and told.causes and told.outcome not in CALM:
        # The stranger is in the namespace that was asked about, where nothing else is wrong: naming it is right.
        strangers = {str(one["metadata"]["name"]) for one in beside.objects[len(case.objects) :]}
        return RIGHT if told.causes[0].object.name.startswith(tuple(strangers)) else TURNED
    return letter(expected, told)


# --- less evidence, and other names -------------------------------------------------------------------------------


async def without_each(case: RecordedCase, reader: Reader) -> dict[str, int]:
    """How often which letter came, each entry of the evidence taken out in turn, of a case that is answered rightly."""
    seen, expected = await reader.snapshot(case), case.expected or NOBODY
    if expected.cause is None or letter(expected, diagnosed(seen, case)) != RIGHT:
        return {}
    return dict(Counter(letter(expected, diagnosed(_without(seen, one.id), case)) for one in seen.evidence))


def _without(seen: Snapshot, number: str) -> Snapshot:
    """As if this read had failed."""
    return replace(
        seen,
        objects=tuple(one for one in seen.objects if one.evidence != number),
        logs=tuple(one for one in seen.logs if one.evidence != number),
        listings=tuple(one for one in seen.listings if one.evidence != number),
        absent=tuple(one for one in seen.absent if one.evidence != number),
        texts=tuple(one for one in seen.texts if one.evidence != number),
        evidence=tuple(one for one in seen.evidence if one.id != number),
        gaps=(*seen.gaps, Gap(f"entry {number}", "taken out")),
    )


OWN_NAMES: Final = frozenset(
    {"Deployment", "StatefulSet", "DaemonSet", "Service", "ConfigMap", "Job", "CronJob", "Ingress", "Pod", "ReplicaSet"}
)
LEAST_NAME: Final = 3


def renamed(case: RecordedCase) -> RecordedCase:
    """The case with every workload, Service and ConfigMap of its namespace under a name that means nothing."""
    home = home_of(case)
    names = {one["metadata"]["name"] for one in case.objects if one["kind"] in OWN_NAMES and _namespace(one) == home}
    stems = sorted((name for name in names if len(name) > LEAST_NAME), key=lambda name: (-len(name), name))
    others = {name: f"n{number:04d}" + "x" * max(0, len(name) - 5) for number, name in enumerate(stems)}
    if not others:
        return case
    pattern = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, others))})(?![A-Za-z0-9])")

    def new(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return value if key in ("image", "imageID") else pattern.sub(lambda hit: others[hit[0]], value)
        if isinstance(value, Mapping):
            return {new(name): new(each, name) for name, each in value.items()}
        return [new(each) for each in value] if isinstance(value, list | tuple) else value

    logs = {
        replace(place, pod=new(place.pod), container=new(place.container)): new(log) for place, log in case.logs.items()
    }
    signal = type(case.signal).from_object(new(case.signal.to_object()))
    return replace(
        case,
        objects=tuple(new(one) for one in case.objects),
        logs=logs,
        texts=new(case.texts),
        missed=tuple(replace(one, name=new(one.name)) for one in case.missed),
        signal=signal,
        expected=_renamed(case.expected, new),
    )


def _renamed(expected: Expectation | None, new: Any) -> Expectation | None:
    def other(wanted: WantedCause) -> WantedCause:
        return replace(wanted, objects=tuple(replace(one, name=new(one.name)) for one in wanted.objects))

    if expected is None or expected.cause is None:
        return expected
    return replace(
        expected,
        cause=other(expected.cause),
        acceptable=tuple(map(other, expected.acceptable)),
        forbidden=tuple(map(other, expected.forbidden)),
    )


# --- all of them ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What came of one case."""

    cells: str
    renamed: str
    without: Mapping[str, int]


def played(name: str) -> Row:
    """One case in all its cells."""
    return asyncio.run(_played(SCENARIOS / name))


async def _played(place: Path) -> Row:
    case, reader = read_case(place), Reader(Redactor(()))
    other = renamed(case)
    name = letter(other.expected or NOBODY, diagnosed(await reader.snapshot(other), other))
    return Row(await cells(case, reader), name, await without_each(case, reader))


def play(names: Sequence[str]) -> dict[str, Row]:
    """The rows of these cases, on every core."""
    with ProcessPoolExecutor() as pool:
        return dict(zip(names, pool.map(played, names, chunksize=8), strict=True))


def written() -> dict[str, Row]:
    """The rows of the last run."""
    return {name: Row(**row) for name, row in json.loads(MATRIX.read_text()).items()}


def as_text(rows: Mapping[str, Row]) -> str:
    lines = (
        f"{json.dumps(name)}: {json.dumps(vars(row) | {'without': dict(sorted(row.without.items()))})}"
        for name, row in sorted(rows.items())
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def names_of_cases() -> list[str]:
    return [str(case_id(place).relative_to(SCENARIOS)) for place in case_places([SCENARIOS])]


# --- the table ------------------------------------------------------------------------------------------------------


def shares(rows: Iterable[Row]) -> list[list[Counter[str]]]:
    """How often which letter came, by question and by what stood beside."""
    parts = [row.cells.split(" ") for row in rows]
    return [
        [
            Counter(each[question][herring] for each in parts if each[question] != NO_QUESTION * len(HERRINGS))
            for herring in range(len(HERRINGS))
        ]
        for question in range(len(QUESTIONS))
    ]


def main() -> int:
    MATRIX.write_text(as_text(play(names_of_cases())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
