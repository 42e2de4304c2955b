"""What happens around the operator: workloads that break and heal, Signals, people, and the kubelet's part of it.

The control plane is real, controllers included; there is no node. So a Deployment gets its ReplicaSet and its pods,
and a test says how these pods fare.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from tests.support.api import Api, Object, Said
from tests.support.kube import Kubectl, eventually
from tests.support.process import Operator, now

IMAGE = "registry.example/shop:1.0"
ENDED = ("Completed", "Failed", "Cancelled")
JANE = "jane"
PREFIX = "story-"
"""Of the namespaces that tests make."""
SECONDS = 150.0
"""Longest wait for anything, on a machine that is many times slower."""


@dataclass(frozen=True)
class World:
    """One namespace with a team's workloads, and the operator that looks after it."""

    api: Api
    operator: Operator
    namespace: str
    kubectl: Kubectl
    """In the namespace, as the administrator."""

    # --- workloads ------------------------------------------------------------------------------------------

    def deployment(self, name: str = "shop", *, image: str = IMAGE, memory: str = "64Mi", **more: Any) -> Object:
        """A Deployment whose one pod was made by its controllers."""
        container = {"name": "app", "image": image, "resources": {"limits": {"memory": memory}}, **more}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        made = self.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
            }
        )
        self.pod(name)
        return made

    def give_memory(self, limit: str, name: str = "shop") -> None:
        """A person raises, or lowers, what the container of a Deployment may have."""
        self.give(name, resources={"limits": {"memory": limit}})

    def give(self, name: str = "shop", **fields: Any) -> None:
        """A person changes the container of a Deployment."""
        containers = self.api.get("Deployment", name, self.namespace)["spec"]["template"]["spec"]["containers"]
        containers[0] |= fields
        change = {"spec": {"template": {"spec": {"containers": containers}}}}
        self.api.change("Deployment", name, self.namespace, change)

    def pods(self, app: str = "shop") -> list[Object]:
        """Pods of a workload that are not going, newest first."""
        found = self.api.list("Pod", self.namespace, labels=f"app={app}")
        there = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(there, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)

    def pod(self, app: str = "shop") -> Object:
        """Its newest pod, as soon as there is one."""
        self.until(lambda: bool(self.pods(app)), f"{app} has a pod")
        return self.pods(app)[0]

    def fare(self, pod: Object, state: Object, *, last: Object | None = None, restarts: int = 0) -> None:
        """Play the kubelet: its one container is in this state, and its last run ended like that."""
        ready, name = "running" in state, pod["spec"]["containers"][0]["name"]
        image = pod["spec"]["containers"][0]["image"]
        container = {"name": name, "image": image, "imageID": "", "ready": ready, "restartCount": restarts}
        container |= {"state": state, "lastState": last or {}}
        word, at = str(ready), now()
        conditions = [{"type": kind, "status": word, "lastTransitionTime": at} for kind in ("Ready", "ContainersReady")]
        conditions += [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
        status = {"phase": "Running" if ready or last else "Pending", "startTime": at, "conditions": conditions}
        meta = pod["metadata"]
        change = {"status": {**status, "containerStatuses": [container]}}
        said = self.api.merge("Pod", meta["name"], meta["namespace"], change, part="status")
        assert said.accepted or said.code == 404, said

    def kill_for_memory(self, app: str = "shop") -> None:
        """Its container is killed at its limit again and again."""
        last = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "startedAt": now(), "finishedAt": now()}}
        self.fare(self.pod(app), _waits("CrashLoopBackOff"), last=last, restarts=4)

    def crash(self, app: str = "shop", code: int = 1) -> None:
        """Its container ends by itself again and again."""
        last = {"terminated": {"reason": "Error", "exitCode": code, "startedAt": now(), "finishedAt": now()}}
        self.fare(self.pod(app), _waits("CrashLoopBackOff"), last=last, restarts=4)

    def miss_image(self, pod: Object) -> None:
        """The registry does not have its image."""
        image = pod["spec"]["containers"][0]["image"]
        self.fare(pod, _waits("ImagePullBackOff", f'Back-off pulling image "{image}": manifest unknown: not found'))

    def heal(self, app: str = "shop") -> None:
        """Every pod of it is ready, also one that comes meanwhile, and its Deployment knows."""

        def healed() -> bool:
            for pod in self.pods(app):
                if not _is_ready(pod):
                    self.fare(pod, {"running": {"startedAt": now()}})
            return self._available(app)

        self.until(healed, f"{app} is available")

    def _available(self, app: str) -> bool:
        found = self.api.get("Deployment", app, self.namespace)
        status, wanted = found.get("status", {}), found["spec"]["replicas"]
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        counts = [status.get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        return current and counts == [wanted] * 3

    def broken(self, name: str = "shop", **more: Any) -> Object:
        """A Deployment that needs more memory than it may have."""
        made = self.deployment(name, **more)
        self.kill_for_memory(name)
        return made

    # --- Signals and cases ------------------------------------------------------------------------------------

    def target(self, name: str = "shop", kind: str = "Deployment") -> Object:
        """A target in the namespace."""
        return {"apiVersion": "apps/v1", "kind": kind, "name": name, "namespace": self.namespace}

    def signal(self, target: Object | None = None, *, namespace: str = "", **more: Any) -> Object:
        """Something fires; as a person or intake would create it."""
        where = namespace or self.namespace
        spec = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}}
        spec |= {"target": target or self.target(), "message": "it does not work", **more}
        meta = {"name": f"sig-{uuid4().hex[:16]}", "namespace": where}
        return self.api.create({"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": meta, "spec": spec})

    def handed_on(self, **more: Any) -> Object:
        """The same of a program, which hands on what it got."""
        bot = self.api.named(f"system:serviceaccount:{self.namespace}:bot", "system:masters")
        return replace(self, api=bot).signal(**more)

    def triaged(self, signal: Object, *phases: str) -> Object:
        """The Signal, once it is in one of these phases."""
        return self.reaches("Signal", signal, *phases)

    def opened(self, signal: Object) -> Object:
        """The Investigation of an accepted Signal."""
        accepted = self.triaged(signal, "Accepted")
        meta = accepted["metadata"]
        return self.api.get("Investigation", accepted["status"]["investigationRef"]["name"], meta["namespace"])

    def case(self, signal: Object, *phases: str) -> Object:
        """The Investigation of an accepted Signal, once it is in one of these phases; ended unless told."""
        return self.reaches("Investigation", self.opened(signal), *(phases or ENDED))

    def case_of(self, request: Object, *phases: str) -> Object:
        """The case that a request belongs to, once it is in one of these phases."""
        meta = request["metadata"]
        name = request["spec"]["investigationRef"]["name"]
        return self.shows("Investigation", name, lambda seen: phase_of(seen) in phases, namespace=meta["namespace"])

    def reaches(self, kind: str, found: Object, *phases: str, seconds: float = SECONDS) -> Object:
        """Any object of ours, once it is in one of these phases; an end that was not asked for is told at once."""
        name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
        return self.shows(kind, name, lambda seen: phase_of(seen) in phases, namespace=namespace, seconds=seconds)

    def shows(
        self,
        kind: str,
        name: str,
        holds: Callable[[Object], bool],
        *,
        namespace: str = "",
        seconds: float = SECONDS,
    ) -> Object:
        """An object, once something holds of it."""
        seen: Object = {}

        def look() -> bool:
            seen.clear()
            seen.update(self.api.find(kind, name, namespace or self.namespace) or {})
            return bool(seen) and holds(seen)

        try:
            eventually(look, what=f"{kind} {name}", seconds=seconds)
        except AssertionError as error:
            status = seen.get("status") or {}
            brief = {key: value for key, value in status.items() if isinstance(value, str | int)}
            raise AssertionError(f"{error}; {brief}; {conditions(seen)}") from None
        return seen

    def touch(self, kind: str, found: Object) -> None:
        """Something about it changes, so that it is looked at now and not by and by."""
        meta = found["metadata"]
        change = {"metadata": {"annotations": {"example.com/touched": uuid4().hex}}}
        self.api.change(kind, meta["name"], meta["namespace"], change)

    # --- approval and execution -------------------------------------------------------------------------------

    def asked(self, signal: Object) -> Object:
        """The open approval request of the case."""
        waiting = self.case(signal, "AwaitingApproval")
        name = f"rar-{waiting['metadata']['name']}"
        return self.shows("RemediationApprovalRequest", name, lambda seen: phase_of(seen) == "Pending")

    def decide(self, request: Object, decision: str, *, by: str = JANE, name: str = "", **more: str) -> Said:
        """Somebody decides, in a name that should be their own."""
        meta = request["metadata"]
        spec = {"decision": decision, "decidedBy": name or by, **more}
        return self.api.named(by).merge("RemediationApprovalRequest", meta["name"], meta["namespace"], {"spec": spec})

    def decide_as(self, who: Api, request: Object, **spec: Any) -> Said:
        """Somebody decides; the API server writes down who."""
        meta = request["metadata"]
        return who.merge("RemediationApprovalRequest", meta["name"], meta["namespace"], {"spec": spec})

    def approve(self, request: Object) -> None:
        """Jane approves."""
        said = self.decide(request, "Approved")
        assert said.accepted, said

    def execution(self, case: Object, *phases: str) -> Object:
        """The execution of a case, once it is in one of these phases."""
        name = f"wfe-{case['metadata']['name']}"
        return self.shows("WorkflowExecution", name, lambda seen: phase_of(seen) in phases)

    def job(self, execution: Object) -> Object:
        """The Job of an execution that runs."""
        return self.api.get("Job", execution["status"]["job"]["name"], EXECUTION_NAMESPACE)

    def job_pod(self, job: Object) -> Object:
        """The pod that the Job's controller has made; one of a Job that had its name before may still be there."""
        labels = f"batch.kubernetes.io/controller-uid={job['metadata']['uid']}"
        self.until(lambda: bool(self.api.list("Pod", EXECUTION_NAMESPACE, labels=labels)), "the Job has a pod")
        return self.api.list("Pod", EXECUTION_NAMESPACE, labels=labels)[0]

    def finish(self, job: Object, *, code: int = 0, reason: str = "", message: str = "") -> None:
        """The workflow's container ends; the Job's controller draws its conclusion."""
        pod, at = self.job_pod(job), now()
        ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": message}
        ended |= {"startedAt": at, "finishedAt": at}
        container = {"name": "workflow", "image": "", "imageID": "", "ready": False, "restartCount": 0}
        container |= {"state": {"terminated": ended}, "lastState": {}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container], "startTime": at}
        meta = pod["metadata"]
        self.api.change("Pod", meta["name"], meta["namespace"], {"status": status}, part="status")

    # --- looking ------------------------------------------------------------------------------------------------

    def events(self, found: Object) -> list[str]:
        """Reasons of the events about an object."""
        uid = found["metadata"]["uid"]
        every = self.api.list("Event", found["metadata"]["namespace"])
        return [event["reason"] for event in every if event["involvedObject"].get("uid") == uid]

    def tells(self, found: Object, reason: str) -> None:
        """An event with that reason is there, or comes."""
        self.until(lambda: reason in self.events(found), f"event {reason} of {found['metadata']['name']}")

    def age_past(self, moment: str) -> bool:
        """Whether a time is over, with a second to spare."""
        return time.time() > datetime.fromisoformat(moment).timestamp() + 1

    def until(self, holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        """Wait, for a bounded time."""
        eventually(holds, what=what, seconds=seconds)


def columns(text: str) -> dict[str, str]:
    """The one row of a table of kubectl, by the heads."""
    head, row = text.splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    return {head[a:b].strip(): row[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)}


def phase_of(found: Object) -> str:
    """Phase, empty before the first status."""
    return str(found.get("status", {}).get("phase", ""))


def conditions(found: Object) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    listed = found.get("status", {}).get("conditions", [])
    return {one["type"]: (one["status"], one["reason"]) for one in listed}


def word(found: Object, *names: str) -> tuple[Any, ...]:
    """These words of the status."""
    return tuple(found["status"].get(name) for name in names)


def age(found: Object) -> float:
    """Seconds since it was created."""
    return time.time() - datetime.fromisoformat(found["metadata"]["creationTimestamp"]).timestamp()


def _is_ready(pod: Object) -> bool:
    listed = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in listed)


def _waits(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message or reason}}


@contextmanager
def inhabited(
    api: Api, operator: Operator, kubectl: Kubectl, labels: Mapping[str, str], name: str = ""
) -> Iterator[World]:
    """A namespace with these labels, in which jane may approve; it goes at the end."""
    name = name or f"{PREFIX}{uuid4().hex[:10]}"
    meta = {"name": name, "labels": {"inquest.dev/managed": "true", **labels}}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    api.create(may_approve(name, JANE))
    try:
        yield World(api, operator, name, kubectl.within(name))
    finally:
        api.delete("Namespace", name)


def may_approve(namespace: str, name: str, kind: str = "User") -> Object:
    """The binding, `approver-<name>`, that lets somebody, or a group, approve there."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"approver-{name}", "namespace": namespace},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "inquest-approver"},
    }


__all__ = [
    "ENDED",
    "EXECUTION_NAMESPACE",
    "JANE",
    "NAMESPACE",
    "World",
    "age",
    "columns",
    "conditions",
    "inhabited",
    "may_approve",
    "phase_of",
    "word",
]
