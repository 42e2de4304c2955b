"""A case on an API server of its own, whose operator may be killed on the way and is started again at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.tools import build
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE, SERVICE_ACCOUNT
from inquest.api.names import INVESTIGATION_LABEL, SIGNAL_LABEL
from tests.support.api import Object, opened, with_token
from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.store import Change
from tests.support.crash.operator import run_armed
from tests.support.crash.oracle import TERMINAL, Seen
from tests.support.crash.points import COUNT_ONLY, Point, killed_at
from tests.support.kube import eventually
from tests.support.memory import in_memory
from tests.support.process import Operator, now
from tests.support.programs import run_operator
from tests.support.world import World, conditions, inhabited, phase_of

SECONDS = 240.0
POLL_SECONDS = 0.2
BEGUN = 3
"""Slots of a case that has read everything and now asks its model."""
OURS = ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution")
MENDED = "128Mi"
"""What the workflow makes of the 64Mi with which the workload is killed."""


@dataclass
class Result:
    """What a run left behind."""

    seen: Seen
    log: Path
    """The calls that its operators made."""
    deaths: int
    beside: list[Seen] = field(default_factory=list)

    @property
    def crashed(self) -> str:
        """The call at which the operator died; empty where it was never reached."""
        return killed_at(self.log) if self.deaths else ""


@dataclass
class Case:
    """A workload that its limit kills, and everything that was ever written about it."""

    world: World
    changes: Sequence[Change]
    """Of all objects of the server, from the first on."""

    def tell(self) -> None:
        """Its Signal."""
        self.world.signal()

    def has_begun(self) -> bool:
        """Whether its model has been asked."""
        return len(self._slots()) >= BEGUN

    def go_on(self) -> None:
        """What people and the cluster do meanwhile, each of it once: approve, run the Job, start the pods."""
        world = self.world
        for request in self._there("RemediationApprovalRequest"):
            if phase_of(request) == "Pending" and not request["spec"].get("decision"):
                # Refused where it was used up since: that is no fault.
                world.decide(request, "Approved", decisionReason="raise it")
        for job in self._jobs():
            if not job["status"].get("conditions"):
                world.give_memory(MENDED)
                world.finish(job)
        for pod in world.pods():
            if _limit(pod) == MENDED and not pod["status"].get("containerStatuses"):
                world.fare(pod, {"running": {"startedAt": now()}})

    def is_over(self) -> bool:
        """The case is ended, recorded and its journal gone; the Signal knows; no Lease holds the fingerprint."""
        case, signal = (next(iter(self._there(kind)), {}) for kind in ("Investigation", "Signal"))
        if phase_of(case) not in TERMINAL:
            return False
        is_told = phase_of(case) == "Failed" or conditions(signal).get("Concluded", ("",))[0] == "True"
        return is_told and conditions(case).get("Recorded", ("",))[0] == "True" and not self._working_state()

    def seen(self) -> Seen:
        """Everything that was written about it, and what of its working state is left."""
        name = self.world.namespace
        found = {kind: [one for one in self._versions(kind) if self._is_ours(one)] for kind in (*OURS, "Job")}
        uids = {one["metadata"]["uid"] for one in found["Investigation"]}
        slots = self._versions("ConfigMap")
        found["ConfigMap"] = [one for one in slots if _label(one, INVESTIGATION_LABEL) in uids]
        deployment = self.world.api.get("Deployment", "shop", name)
        return Seen(name, found, deployment, [f"{left} at the end" for left in self._working_state()])

    def delete(self) -> None:
        """Its Signal, with which everything must go."""
        for signal in self._there("Signal"):
            self.world.api.delete("Signal", signal["metadata"]["name"], self.world.namespace)

    def _there(self, kind: str) -> list[Object]:
        return self.world.api.list(kind, self.world.namespace)

    def _jobs(self) -> list[Object]:
        return [one for one in self.world.api.list("Job", EXECUTION_NAMESPACE) if self._is_ours(one)]

    def objects(self) -> list[str]:
        """Kind and name of all that there is of it."""
        found = {kind: self._there(kind) for kind in OURS} | {"Job": self._jobs()}
        return [f"{kind} {one['metadata']['name']}" for kind, listed in found.items() for one in listed]

    def _working_state(self) -> list[str]:
        """Slots and case Lease, which go at the end."""
        signals = {one["metadata"]["name"] for one in self._there("Signal")}
        leases = [one for one in self.world.api.list("Lease", NAMESPACE) if _label(one, SIGNAL_LABEL) in signals]
        return [f"{one['kind']} {one['metadata']['name']}" for one in leases] + self._slots()

    def _slots(self) -> list[str]:
        uids = [one["metadata"]["uid"] for one in self._there("Investigation")]
        slots = (self.world.api.list("ConfigMap", NAMESPACE, labels=f"{INVESTIGATION_LABEL}={uid}") for uid in uids)
        return [f"ConfigMap {one['metadata']['name']}" for listed in slots for one in listed]

    def _versions(self, kind: str) -> list[Object]:
        """Every version of every object of a kind, in order."""
        changes = [change for change in tuple(self.changes) if change.kind.kind == kind and change.word != "DELETED"]
        return [change.obj for change in changes]

    def _is_ours(self, found: Object) -> bool:
        """An object of the namespace; a Job elsewhere names it as its target's."""
        meta, name = found["metadata"], self.world.namespace
        return name in (meta["namespace"], meta.get("annotations", {}).get("inquest.dev/target", "").partition("/")[0])


@dataclass
class Scene:
    """Cases and their operator."""

    server: ApiServer
    operator: Operator
    cases: list[Case]
    """The first is the one that may kill it."""
    point: Point = COUNT_ONLY
    every_time: bool = False
    """The case goes on killing it."""

    @property
    def log(self) -> Path:
        """Where the operator writes its calls down."""
        return self.operator.folder / "calls"

    def arm(self, point: Point) -> None:
        """The operator dies at this point the next time that it runs."""
        self.operator.run, self.operator.environment = run_armed, point.environment(self.log)

    def drive(self, later: Sequence[Case] = ()) -> int:
        """All cases to their end; those that come later are told at the first death. How often the operator died."""
        deaths, end = 0, time.monotonic() + SECONDS
        while not all(case.is_over() for case in self.cases) and time.monotonic() < end:
            if self._has_died():
                deaths += 1
                # A Job that was made comes to its end also while nobody watches.
                self.cases[0].go_on()
                for case in later if deaths == 1 else ():
                    case.tell()
                self._start_again()
            for case in self.cases:
                case.go_on()
            time.sleep(POLL_SECONDS)
        return deaths

    def clear(self) -> int:
        """Delete the Signals, until everything has gone with them (I9). How often the operator died meanwhile."""
        deaths, end = 0, time.monotonic() + SECONDS
        for case in self.cases:
            case.delete()
        while any(case.objects() for case in self.cases) and time.monotonic() < end:
            if self._has_died():
                deaths += 1
                self._start_again()
            time.sleep(POLL_SECONDS)
        return deaths

    def _has_died(self) -> bool:
        """Whether it was killed; an operator that ends in another way is a fault of its own."""
        assert self.operator.is_running() or self.operator.was_killed(), f"it has ended:\n{self.operator.log}"
        return self.operator.was_killed()

    def _start_again(self) -> None:
        self.operator.run = run_operator
        if self.every_time:
            killer = self.cases[0].world
            names = [one["metadata"]["name"] for one in killer.api.list("Investigation", killer.namespace)]
            self.arm(Point(1, self.point.side, call=self.point.call, case=names[0]))
        self.operator.launch()


def play(
    folder: Path,
    point: Point = COUNT_ONLY,
    *,
    beside: str = "",
    every_time: bool = False,
    **settings: Any,
) -> Result:
    """One case with the operator armed, to the end, then all of it deleted.

    `beside`: another case, `elder` or `later` than the one that kills.
    """
    with scene_of(folder, 2 if beside else 1, **settings) as scene:
        killer, others = scene.cases[0], scene.cases[1:]
        scene.point, scene.every_time = point, every_time
        scene.arm(point)
        scene.operator.launch()
        for case in others if beside == "elder" else ():
            case.tell()
            eventually(case.has_begun, what="the elder case is under way", seconds=SECONDS)
        killer.tell()
        deaths = scene.drive(others if beside == "later" else ())
        seen = [case.seen() for case in scene.cases]
        deaths += scene.clear()
        for case, found in zip(scene.cases, seen, strict=True):
            found.left += [f"{left} after its Signal was deleted" for left in case.objects()]
        return Result(seen[0], scene.log, deaths, seen[1:])


@contextmanager
def scene_of(folder: Path, count: int = 1, **settings: Any) -> Iterator[Scene]:
    """So many cases on a server of their own; nothing has been told, and the operator does not run."""
    with in_memory(folder) as cluster, opened(cluster.kubeconfig) as api, ExitStack() as worlds:
        changes: list[Change] = []
        assert cluster.memory is not None
        cluster.memory.store.listeners.append(changes.append)
        kubeconfig = with_token(cluster.kubeconfig, api.token(SERVICE_ACCOUNT, NAMESPACE), folder / "operator")
        operator = Operator(folder, kubeconfig, build(["opa"]) / "opa", settings)
        labels = {"inquest.dev/environment": "production"}
        made = [worlds.enter_context(inhabited(api, operator, cluster.kubectl, labels)) for _ in range(count)]
        for world in made:
            world.broken()
        try:
            yield Scene(cluster.memory, operator, [Case(world, changes) for world in made])
        finally:
            operator.stop()


def _label(found: Object, name: str) -> str:
    return str(found["metadata"].get("labels", {}).get(name, ""))


def _limit(pod: Object) -> str:
    return str(pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", ""))
