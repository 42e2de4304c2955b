"""Scenarios on clusters that run: the fault, a Signal, and what the operator made of it.

Real and simulated nodes are two clusters, as they were when the scenarios were recorded. On each, faults are brought
about side by side, each in its own namespaces. The Signals are given one at a time: so the operator's own counter of
API requests tells how many reads a case took.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from hack import HackError
from hack.cluster import local
from hack.cluster.state import Size
from hack.demo.__main__ import forget_earlier_run, traffic
from hack.demo.play import TERMINAL
from hack.demo.stage import NAMESPACE, Stage, folder, install, load_images, start_operator, stop_operator
from hack.images import build_image
from hack.rights.judging import Run
from hack.rights.standing import Standing
from hack.scenarios.staging import AGE_SECONDS, Kubectl, Scenario, clear, head_of, let_stand, stage, wait_until_gone
from hack.tools import build
from inquest.api.refs import TargetRef
from inquest.core.diagnosis.diagnosis import Cause

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "tests" / "scenarios"
SIMULATED_NODES = 3
"""As many as there were when the scenarios were recorded."""
PATIENCE = 4.0
"""Many faults at once make a machine slow; a wait that is in vain ends nevertheless."""
VERDICT_SECONDS = 240.0
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.2
REFUSED = {"Ignored", "Duplicate", "Blocked", "Resolved", "Failed"}
"""Phases in which a Signal ends without a case."""
SETTINGS: Mapping[str, Any] = {
    "scope": {"require_label": False},
    "execution": {"dry_run": True},
    "triage": {"rate": 1000, "rate_per_namespace": 1000},
}
"""No scenario has to opt in, none is mended, and a hundred faults in a row are no flood; all else is as installed."""


@dataclass(frozen=True)
class Told:
    """What the operator said of one scenario."""

    name: str
    outcome: str = ""
    """One of the nine; the case's reason where it ended outside them."""
    causes: tuple[Cause, ...] = ()
    action: str = ""
    """Action type of the workflow that was chosen."""
    seconds: float = 0.0
    """From the Signal to the end of the case."""
    reads: int = 0
    """Reads of the API server, the operator's own counting."""
    staged: float = 0.0
    """Seconds that the fault took, standing included."""
    trouble: str = ""
    """Why there is no verdict: the fault did not come about, or the case did not end."""


@dataclass
class Theatre:
    """A cluster with the operator beside it, and the locks that keep scenarios out of each other's way."""

    place: Stage
    kubectl: Kubectl
    standing: Standing
    age: float = AGE_SECONDS
    patience: float = PATIENCE
    _asking: Lock = field(default_factory=Lock)
    _taken: dict[str, Lock] = field(default_factory=lambda: defaultdict(Lock))
    """By namespace: two scenarios of one name there go one after the other."""

    def play_all(self, scenarios: Iterable[Scenario], jobs: int) -> Iterator[Told]:
        """Each scenario's verdict as it comes: those that may run beside others, then the rest, one by one."""
        some, alone = _apart(scenarios)
        with ThreadPoolExecutor(jobs) as pool:
            for played in as_completed([pool.submit(self.play, scenario) for scenario in some]):
                yield played.result()
        for scenario in alone:
            yield self.play(scenario)

    def play(self, scenario: Scenario) -> Told:
        """Bring the fault about, ask, clear away; whatever goes wrong is told of this scenario alone."""
        begun = time.monotonic()
        with self._alone_in(scenario.namespaces):
            try:
                wait_until_gone(self.kubectl, scenario)
                stage(self.kubectl, scenario, patience=self.patience)
                if scenario.is_broken and self.age:
                    let_stand(self.kubectl, scenario, self.age, patience=self.patience)
                staged = time.monotonic() - begun
                return replace(self._ask(scenario), staged=staged)
            except (HackError, subprocess.TimeoutExpired) as error:
                return Told(scenario.name, trouble=str(error)[:500], staged=time.monotonic() - begun)
            finally:
                clear(self.kubectl, scenario)

    @contextmanager
    def _alone_in(self, namespaces: Sequence[str]) -> Iterator[None]:
        with ExitStack() as stack:
            for namespace in sorted(namespaces):
                stack.enter_context(self._taken[namespace])
            yield

    def _ask(self, scenario: Scenario) -> Told:
        signal = signal_of(scenario, datetime.now(UTC))
        name = signal["metadata"]["name"]
        with self._asking:
            reads, begun = self._reads(), time.monotonic()
            self.place.kubectl("apply", "-f", "-", stdin=json.dumps(signal))
            found = _until(lambda: self._ended(name), f"the end of the case of {name}")
            seconds = time.monotonic() - begun
            _until(lambda: self._is_closed(found["metadata"]["name"]), f"the case of {name} to be closed")
            return replace(told(scenario.name, found["status"]), seconds=seconds, reads=self._reads() - reads)

    def _ended(self, name: str) -> dict[str, Any] | None:
        status = self.place.read("signal", name).get("status", {})
        if status.get("phase") in REFUSED:
            reason = f"{status['phase']}: {status.get('reason', '')} {status.get('message', '')}"
            raise HackError(f"the Signal was not taken up: {reason}")
        case = status.get("investigationRef", {}).get("name")
        found = self.place.read("investigation", case) if case else {}
        return found if found.get("status", {}).get("phase") in TERMINAL else None

    def _is_closed(self, case: str) -> bool:
        """Whether its journal is archived: until then it may still be read for."""
        log = (self.place.folder / "operator.log").read_text(errors="replace")
        return any('"case closed"' in line and f'"{case}"' in line for line in log.splitlines())

    def _reads(self) -> int:
        return traffic(self.place).get("read", 0)


def run(
    scenarios: Iterable[Scenario], rights: list[Run], *, cluster: str, jobs: int, age: float = AGE_SECONDS
) -> Iterator[Told]:
    """Each scenario's verdict as it comes, on the clusters that they need; those are left up.

    To `rights` is added, at the end, what each cluster's API server says of the operator's account.
    """
    several = list(scenarios)
    halves = {size: [one for one in several if size_of(one) is size] for size in (Size.REAL, Size.SIMULATED)}
    seen: SimpleQueue[Told | None] = SimpleQueue()
    with ThreadPoolExecutor(len(halves)) as pool:
        playing = [
            pool.submit(_play, half, size, cluster, jobs, age, seen, rights) for size, half in halves.items() if half
        ]
        for _ in playing:
            yield from iter(seen.get, None)
        for half in playing:
            half.result()


def _play(
    half: list[Scenario],
    size: Size,
    cluster: str,
    jobs: int,
    age: float,
    seen: SimpleQueue[Told | None],
    rights: list[Run],
) -> None:
    try:
        with opened(cluster_of(cluster, size), size, age=age) as theatre:
            for one in theatre.play_all(half, jobs):
                seen.put(one)
            rights.append(theatre.standing.run())
    finally:
        seen.put(None)


def size_of(scenario: Scenario) -> Size:
    """The cluster that it was recorded on."""
    return Size.REAL if scenario.needs["tier"] == "node" else Size.SIMULATED


def cluster_of(name: str, size: Size) -> str:
    """The name of the one of the two clusters."""
    return name if size is Size.REAL else f"{name}-{size.word}"


def down(cluster: str) -> None:
    """Stop both."""
    for size in (Size.REAL, Size.SIMULATED):
        local.down(name=cluster_of(cluster, size))


@contextmanager
def opened(cluster: str, size: Size, *, age: float = AGE_SECONDS) -> Iterator[Theatre]:
    """A cluster with its nodes, and the operator as installed, without a model."""
    nodes = SIMULATED_NODES if size is Size.SIMULATED else None
    place = Stage(local.up(size, name=cluster, simulated_nodes=nodes), folder(cluster))
    build(["opa"])
    images = load_images(cluster) if size is Size.REAL else {"kubectl": build_image("kubectl")}
    forget_earlier_run(place)
    standing = Standing(place.cluster)
    install(place, images)
    operator = start_operator(place, {"provider": "none"}, SETTINGS)
    try:
        yield Theatre(place, Kubectl(place.cluster), standing, age)
    finally:
        stop_operator(place.folder)
        operator.wait(STOP_SECONDS)


def has_recipe(place: Path) -> bool:
    """Whether a real cluster came into its fault once; what was written by hand has no way there."""
    head = head_of(place)
    return "live" in head and head.get("source") == "recorded"


def signal_of(scenario: Scenario, now: datetime) -> dict[str, Any]:
    """The Signal as it is applied: named after the scenario, firing since now."""
    found = scenario.head["signal"]
    spec = dict(found["spec"])
    if "firingTime" in spec:
        spec["firingTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**found, "metadata": {"name": scenario.name.replace("/", "-"), "namespace": NAMESPACE}, "spec": spec}


def told(name: str, status: Mapping[str, Any]) -> Told:
    """The verdict in the status of an Investigation."""
    chosen = status.get("selectedWorkflow", {})
    causes = tuple(cause_of(found) for found in status.get("causes", ()))
    return Told(
        name,
        outcome=str(status.get("outcome") or status.get("reason") or ""),
        causes=causes,
        action=str(chosen.get("actionType", "")),
    )


def cause_of(found: Mapping[str, Any]) -> Cause:
    """A cause as the status writes it."""
    return Cause(
        category=str(found.get("category", "")),
        object=TargetRef.model_validate(found["object"]),
        field=str(found.get("field", "")),
        value=str(found.get("value", "")),
        summary=str(found.get("summary", "")),
        confidence=found.get("confidence"),
    )


def _apart(scenarios: Iterable[Scenario]) -> tuple[list[Scenario], list[Scenario]]:
    several = list(scenarios)
    return [one for one in several if not one.is_alone], [one for one in several if one.is_alone]


def _until(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + VERDICT_SECONDS
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise HackError(f"waited {VERDICT_SECONDS:g} s for {what}")
        time.sleep(LOOK_SECONDS)
    return seen
