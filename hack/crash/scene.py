"""One case of the demo on the real cluster, with an operator that may be killed on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack import HackError
from hack.crash.oracle import TERMINAL, Seen
from hack.crash.points import Point, killed_at
from hack.crash.watch import Watch, watching
from hack.demo.stage import EXECUTION_NAMESPACE, NAMESPACE, REPOSITORY, Stage, start_operator, tail

CASE_SECONDS = 240.0
WORKLOAD_SECONDS = 120.0
CLEAN_SECONDS = 60.0
STILL_AFTER = 3
"""Restarts after which the kubelet waits 40 s and more."""
POLL_SECONDS = 0.25
KILLED = -9
APPROVAL = '{"spec":{"decision":"Approved","decisionReason":"raise it"}}'
SETTINGS = {"INQUEST_EFFECTIVENESS__STABILIZATION": "3s"}
"""A few seconds: what is looked at here is the crash, not the effect."""


@dataclass
class Result:
    """What a run left behind."""

    seen: Seen
    crashed: str = ""
    """The call at which the operator died; empty where it was never reached."""
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


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

    @property
    def log(self) -> Path:
        """Where the operator writes its calls down."""
        return self.home / "calls"

    def prepare(self) -> None:
        """Bring the workload in, so that the kernel kills it; nobody waits for it here."""
        text = (REPOSITORY / "examples/oom/workload.yaml").read_text()
        self.stage.kubectl("apply", "-f", "-", stdin=self._renamed(text))

    def play(self, point: Point) -> Result:
        """The whole case with the operator armed; it is started again, unarmed, once it is dead."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        until(self.is_broken, f"the kernel to kill {self.name}", WORKLOAD_SECONDS)
        kubectl = [str(self.stage.kubectl_path), f"--kubeconfig={self.stage.cluster.kubeconfig}"]
        process = self._start(point.environment(self.log))
        begun = time.monotonic()
        with watching(kubectl, self.home) as watch:
            self._tell()
            crashed = self._drive(process)
            seen = self._seen(watch)
        self._keep_log("last")
        return Result(seen, killed_at(self.log) if crashed else "", time.monotonic() - begun)

    def clean(self) -> list[str]:
        """Delete the Signal with the operator running: everything must go with it; says what stayed (I9)."""
        self.stage.kubectl("delete", "signal", self.name, "-n", NAMESPACE, "--wait=false")
        self.stage.kubectl("delete", "namespace", self.name, "--wait=false")
        try:
            until(lambda: not self._remains(), "everything to go", CLEAN_SECONDS)
        except HackError:
            return self._remains()
        return []

    # --- parts ------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        text = (REPOSITORY / "examples/oom/signal.yaml").read_text().replace("checkout-crashlooping", self.name)
        self.stage.kubectl("apply", "-f", "-", stdin=self._renamed(text))

    def _drive(self, process: subprocess.Popen[bytes]) -> bool:
        """Approve as soon as there is a request, start the operator again as soon as it is dead, until the end."""
        crashed, end = False, time.monotonic() + CASE_SECONDS
        while not self._is_over():
            if not crashed and process.poll() is not None:
                if process.returncode != KILLED:
                    raise HackError(f"the operator ended by itself:\n{tail(self.stage.folder / 'operator.log')}")
                crashed = True
                self._keep_log("killed")
                process = self._start({})
            self._approve()
            self.lend_a_hand()
            if time.monotonic() > end:
                break
            time.sleep(POLL_SECONDS)
        return crashed

    def _approve(self) -> None:
        for request in self.stage.list("rar"):
            is_open = request.get("status", {}).get("phase") == "Pending" and not request["spec"].get("decision")
            if is_open and self._is_ours(request):
                name = request["metadata"]["name"]
                self.stage.kubectl("patch", "rar", name, "-n", NAMESPACE, "--type=merge", "-p", APPROVAL)

    def _is_over(self) -> bool:
        """The case is ended, recorded and its journal gone; the Signal knows; no Lease holds the fingerprint."""
        case = next((one for one in self.stage.list("inv") if self._is_ours(one)), None)
        if case is None or case.get("status", {}).get("phase") not in TERMINAL:
            return False
        signal = self.stage.read("signal", self.name)
        is_told = _condition(signal, "Concluded") == "True" or bool(case["status"].get("failure"))
        return _condition(case, "Recorded") == "True" and is_told and not self._left(case["metadata"]["uid"])

    def _seen(self, watch: Watch) -> Seen:
        """Everything of this case that was watched."""
        cases = {one["metadata"]["uid"]: one for one in watch.versions("Investigation") if self._is_ours(one)}
        seen = Seen(self.name, deployment=self.stage.read("deployment", "checkout", self.name))
        for kind in ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution", "Job"):
            seen.versions[kind] = [one for one in watch.versions(kind) if self._is_ours(one)]
        slots = watch.versions("ConfigMap")
        seen.versions["ConfigMap"] = [s for s in slots if s["metadata"]["labels"]["inquest.dev/investigation"] in cases]
        seen.left = [name for uid in cases for name in self._left(uid)]
        return seen

    def _left(self, uid: str) -> list[str]:
        """Slots and case Lease, which go at the end."""
        slots = self.stage.kubectl("get", "cm", "-n", NAMESPACE, "-l", f"inquest.dev/investigation={uid}", "-o", "name")
        leases = self.stage.kubectl(
            "get", "lease", "-n", NAMESPACE, "-l", f"inquest.dev/signal={self.name}", "-o", "name"
        )
        return [*slots.split(), *leases.split()]

    def _remains(self) -> list[str]:
        found = [one for kind in ("sig", "inv", "rar", "wfe") for one in self.stage.list(kind) if self._is_ours(one)]
        jobs = [one for one in self.stage.list("jobs", EXECUTION_NAMESPACE) if self._is_ours(one)]
        return [f"{one['kind']}/{one['metadata']['name']}" for one in (*found, *jobs)]

    def _is_ours(self, found: dict[str, Any]) -> bool:
        """Whether an object belongs to this run: all of them name the target's namespace somewhere."""
        target = found["metadata"].get("annotations", {}).get("inquest.dev/target", "")
        spec = found.get("spec") or {}
        named = (spec.get("target") or spec.get("signal", {}).get("target") or {}).get("namespace", "")
        return self.name in (named, target.partition("/")[0])

    def is_broken(self) -> bool:
        """The kernel has killed it so often that the next try is most of a minute away: two runs see the same."""
        pods = self.stage.list("pods", self.name)
        statuses = (one for pod in pods for one in pod.get("status", {}).get("containerStatuses", []))
        return any(one["restartCount"] >= STILL_AFTER and "CrashLoopBackOff" in str(one["state"]) for one in statuses)

    def lend_a_hand(self) -> None:
        """What the world does while the case runs; a real node needs no help."""

    def _renamed(self, text: str) -> str:
        return text.replace("name: shop", f"name: {self.name}").replace("namespace: shop", f"namespace: {self.name}")

    def _start(self, crash: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with environment({**self.settings, **crash}):
            return start_operator(self.stage, self.model)

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
