"""One case of the demo on the real cluster, with an operator that may be killed on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hack import HackError
from hack.crash.oracle import TERMINAL, Seen
from hack.crash.points import ARMED_OPERATOR, NOWHERE, Point, deaths_in, killed_at
from hack.crash.watch import Watch, watching
from hack.demo.stage import NAMESPACE, OPERATOR, REPOSITORY, Stage, start_operator, stop_operator, tail
from inquest.api.names import INVESTIGATION_LABEL, SIGNAL_LABEL

CASE_SECONDS = 480.0
WORKLOAD_SECONDS = 300.0
CLEAN_SECONDS = 180.0
STOP_SECONDS = 120.0
FIRST_WAIT = 10.0
"""Seconds that the kubelet waits before the second restart; doubled for each further one, up to five minutes."""
STILL_SECONDS = 50.0
BEGUN = 3
"""Slots of a case that has read everything and now asks its model."""
OBJECTS = ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution", "Job")
POLL_SECONDS = 0.25
KILLED = -9
APPROVAL = '{"spec":{"decision":"Approved","decisionReason":"raise it"}}'
SETTINGS = {"INQUEST_EFFECTIVENESS__STABILIZATION": "3s"}
"""A few seconds: what is looked at here is the crash, not the effect."""


class Dead:
    """An operator that came to its point before it had said that it was ready."""

    def poll(self) -> int:
        """How it ended."""
        return KILLED

    def wait(self, seconds: float) -> int:
        """The same; it is over already."""
        return KILLED


@dataclass
class Result:
    """What a run left behind."""

    seen: Seen
    crashed: str = ""
    """The call at which the operator died; empty where it was never reached."""
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    deaths: int = 0
    beside: list[Seen] = field(default_factory=list)


@dataclass
class Scene:
    """A workload of its own, its Signal, and the operator."""

    stage: Stage
    model: Mapping[str, str]
    name: str
    """Namespace of the workload."""
    home: Path
    settings: Mapping[str, str] = field(default_factory=lambda: SETTINGS)
    """Of the operator, as variables."""
    elder: bool = False
    """Beside another one: begins before it."""
    operator: subprocess.Popen[bytes] | Dead | None = None
    watch: Watch = field(init=False)

    @property
    def log(self) -> Path:
        """Where the operator writes its calls down."""
        return self.home / "calls"

    def prepare(self) -> None:
        """Bring the workload in, so that the kernel kills it; nobody waits for it here."""
        text = (REPOSITORY / "examples/oom/workload.yaml").read_text()
        self.stage.kubectl("apply", "-f", "-", stdin=self._renamed(text))

    def play(self, point: Point, *beside: Scene, every_time: bool = False) -> Result:
        """The whole case with the operator armed, then all of it deleted; the folder keeps what was seen.

        `beside` are further cases, elder ones begin before this one and the others after the first death;
        `every_time`: this very case goes on killing the operator.
        """
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        kubectl = [str(self.stage.kubectl_path), f"--kubeconfig={self.stage.cluster.kubeconfig}"]
        with watching(kubectl, self.home) as watch:
            for scene in (self, *beside):
                scene.watch = watch
                until(scene.is_broken, f"the kernel to kill {scene.name}", WORKLOAD_SECONDS)
            self._start(point)
            begun = time.monotonic()
            try:
                for scene in beside:
                    scene._begin()
                self._tell()
                deaths = self._drive(point if every_time else NOWHERE, beside)
                crashed = killed_at(self.log) if deaths else ""
                result = Result(self._seen(), crashed, time.monotonic() - begun, deaths=deaths)
                result.beside = [scene._seen() for scene in beside]
                for scene, seen in zip((self, *beside), (result.seen, *result.beside), strict=True):
                    seen.left += scene._clean()
            finally:
                self._stop()
        return result

    # --- parts ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.elder:
            self._tell()
            until(lambda: len(self._slots()) >= BEGUN, "the elder case to be under way", CASE_SECONDS)

    def _tell(self) -> None:
        text = (REPOSITORY / "examples/oom/signal.yaml").read_text().replace("checkout-crashlooping", self.name)
        self.stage.kubectl("apply", "-f", "-", stdin=self._renamed(text))

    def _drive(self, again: Point, beside: Sequence[Scene]) -> int:
        """Approve as soon as there is a request, start the operator again as soon as it is dead, until the end."""
        deaths, end = 0, time.monotonic() + CASE_SECONDS
        while not all(scene._is_over() for scene in (self, *beside)) and time.monotonic() < end:
            if self._has_died():
                deaths += 1
                self._keep_log(f"killed-{deaths}")
                self.let_the_world_go_on()
                self._next_start(again, [one for one in beside if deaths == 1 and not one.elder])
            for scene in (self, *beside):
                scene._approve()
                scene.lend_a_hand()
            time.sleep(POLL_SECONDS)
        return deaths

    def _next_start(self, again: Point, newcomers: Sequence[Scene]) -> None:
        for scene in newcomers:
            scene._tell()
        case = next((one["metadata"]["name"] for one in self.ours("Investigation")), "")
        self._start(replace(again, at=1, case=case) if again.at else NOWHERE)

    def _has_died(self) -> bool:
        """Whether it was killed; an operator that ends in another way is a fault of its own."""
        code = self.operator.poll() if self.operator else None
        if code not in (None, KILLED):
            raise HackError(f"the operator ended by itself:\n{tail(self.stage.folder / 'operator.log')}")
        return code == KILLED

    def _approve(self) -> None:
        for request in self.ours("RemediationApprovalRequest"):
            if request.get("status", {}).get("phase") == "Pending" and not request["spec"].get("decision"):
                name = request["metadata"]["name"]
                # What was watched may be old: a second approval is refused, and that is no fault.
                self.stage.kubectl("patch", "rar", name, "-n", NAMESPACE, "--type=merge", "-p", APPROVAL, check=False)

    def _is_over(self) -> bool:
        """The case is ended, recorded and its journal gone; the Signal knows; no Lease holds the fingerprint."""
        case = next(iter(self.ours("Investigation")), {})
        if case.get("status", {}).get("phase") not in TERMINAL:
            return False
        signal = next(iter(self.ours("Signal")), {})
        is_told = _condition(signal, "Concluded") == "True" or case["status"]["phase"] == "Failed"
        return _condition(case, "Recorded") == "True" and is_told and not self._left()

    def _seen(self) -> Seen:
        """Everything of this case that was watched."""
        versions = {kind: [one for one in self.watch.versions(kind) if self.is_ours(one)] for kind in OBJECTS}
        cases = {one["metadata"]["uid"] for one in versions["Investigation"]}
        slots = self.watch.versions("ConfigMap")
        versions["ConfigMap"] = [one for one in slots if one["metadata"]["labels"][INVESTIGATION_LABEL] in cases]
        deployment = self.stage.read("deployment", "checkout", self.name)
        return Seen(self.name, versions, deployment, [f"{name} at the end" for name in self._left()])

    def _left(self) -> list[str]:
        """Slots and case Lease, which go at the end."""
        leases = [one for one in self.watch.now("Lease") if one["metadata"]["labels"][SIGNAL_LABEL] == self.name]
        return [f"{one['kind']} {one['metadata']['name']}" for one in (*self._slots(), *leases)]

    def _slots(self) -> list[dict[str, Any]]:
        cases = {one["metadata"]["uid"] for one in self.ours("Investigation")}
        return [one for one in self.watch.now("ConfigMap") if one["metadata"]["labels"][INVESTIGATION_LABEL] in cases]

    def _clean(self) -> list[str]:
        """Delete the Signal with the operator running: everything must go with it; says what stayed (I9)."""
        self.stage.kubectl("delete", "signal", self.name, "-n", NAMESPACE, "--wait=false")
        self.stage.kubectl("delete", "namespace", self.name, "--wait=false")
        try:
            until(lambda: not self._remains(), "everything to go", CLEAN_SECONDS)
        except HackError:
            return [f"{name} after its Signal was deleted" for name in self._remains()]
        return []

    def _remains(self) -> list[str]:
        return [f"{kind} {one['metadata']['name']}" for kind in OBJECTS for one in self.ours(kind)]

    def _stop(self) -> None:
        """End the operator as a rollout does."""
        self._keep_log("last")
        stop_operator(self.stage.folder)
        if self.operator is not None:
            self.operator.wait(STOP_SECONDS)

    def ours(self, kind: str) -> list[dict[str, Any]]:
        """The objects of this run that are there, as last watched."""
        return [one for one in self.watch.now(kind) if self.is_ours(one)]

    def is_ours(self, found: dict[str, Any]) -> bool:
        """Whether an object belongs to this run: all of them name the target's namespace somewhere."""
        target = found["metadata"].get("annotations", {}).get("inquest.dev/target", "")
        spec = found.get("spec") or {}
        named = (spec.get("target") or spec.get("signal", {}).get("target") or {}).get("namespace", "")
        return self.name in (named, target.partition("/")[0])

    def is_broken(self) -> bool:
        """The kernel has killed it so often that the next try is most of a minute away: two runs see the same."""
        return any(_is_still(container) for pod in self.pods() for container in _containers(pod))

    def pods(self) -> list[dict[str, Any]]:
        """The pods of the workload."""
        return [pod for pod in self.watch.now("Pod") if pod["metadata"]["namespace"] == self.name]

    def lend_a_hand(self) -> None:
        """What the world does while the case runs; a real node needs no help."""

    def let_the_world_go_on(self) -> None:
        """What happens while the operator is dead; a real node asks nobody."""

    def _renamed(self, text: str) -> str:
        return text.replace("name: shop", f"name: {self.name}").replace("namespace: shop", f"namespace: {self.name}")

    def _start(self, point: Point) -> None:
        crash = {} if point == NOWHERE else point.environment(self.log)
        before = deaths_in(self.log)
        with environment({**self.settings, **crash}):
            try:
                program = OPERATOR if point == NOWHERE else ARMED_OPERATOR
                self.operator = start_operator(self.stage, self.model, program=program)
            except HackError:
                if deaths_in(self.log) == before:
                    raise
                self.operator = Dead()

    def _keep_log(self, which: str) -> None:
        shutil.copyfile(self.stage.folder / "operator.log", self.home / f"operator-{which}.log")


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that start inside."""
    before = dict(os.environ)
    os.environ.update({name: value for name, value in values.items() if value})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def until(holds: Callable[[], Any], what: str, seconds: float) -> None:
    """Wait, for a bounded time, until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise HackError(f"waited {seconds:.0f} s for {what}")
        time.sleep(POLL_SECONDS)


def _condition(found: Mapping[str, Any], kind: str) -> str:
    conditions = found.get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == kind), "")


def _containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(pod.get("status", {}).get("containerStatuses", []))


def _is_still(container: Mapping[str, Any]) -> bool:
    """Whether the kubelet will not start it again for as long as an investigation takes."""
    ended = container.get("lastState", {}).get("terminated", {}).get("finishedAt")
    if not ended or "CrashLoopBackOff" not in str(container["state"]):
        return False
    waited = (datetime.now(UTC) - datetime.fromisoformat(ended)).total_seconds()
    restarts = int(container["restartCount"])
    return min(300.0, FIRST_WAIT * 2.0 ** (restarts - 1)) - waited > STILL_SECONDS
