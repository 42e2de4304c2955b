"""The demo's case without a node: the API server and its controllers are real, what a kubelet does is done by hand."""

from __future__ import annotations

import json
from typing import Any

from hack.crash.scene import Scene, until
from hack.demo.stage import EXECUTION_NAMESPACE

KILLED = {
    "exitCode": 137,
    "reason": "OOMKilled",
    "startedAt": "2026-01-01T00:00:00Z",
    "finishedAt": "2026-01-01T00:00:09Z",
}
WORLD_SECONDS = 240.0
MENDED = "64Mi"
"""What the workflow makes of the 32Mi in the example."""

Object = dict[str, Any]


class Puppets(Scene):
    """A scene whose pods are moved by hand."""

    def is_broken(self) -> bool:
        """The pod says what a kubelet would say after the third kill."""
        for pod in self.pods():
            if not pod["status"].get("containerStatuses"):
                self._set(pod, self.name, _killed(pod))
        return any(pod["status"].get("containerStatuses") for pod in self.pods())

    def lend_a_hand(self) -> None:
        """Run the Job's pod: what its workflow changes is changed, then it has succeeded; the new pods get ready."""
        jobs = {job["metadata"]["name"] for job in self.ours("Job")}
        for pod in self.watch.now("Pod"):
            if pod["status"]["phase"] == "Pending" and pod["metadata"]["labels"].get("job-name") in jobs:
                self._mend()
                self._set(pod, EXECUTION_NAMESPACE, _succeeded(pod))
        for pod in self.pods():
            if _limit(pod) == MENDED and not pod["status"].get("containerStatuses"):
                self._set(pod, self.name, _running(pod))

    def let_the_world_go_on(self) -> None:
        """A Job that was made comes to its end."""
        until(self._is_job_done, "the Job to end", WORLD_SECONDS)

    def _is_job_done(self) -> bool:
        self.lend_a_hand()
        return all(job.get("status", {}).get("succeeded") for job in self.ours("Job"))

    def _mend(self) -> None:
        limits = f"--limits=memory={MENDED}"
        self.stage.kubectl("set", "resources", "deployment/checkout", "-n", self.name, "-c", "app", limits)

    def _set(self, pod: Object, namespace: str, status: Object) -> None:
        """What was watched may be gone or set by now; then the next look sees it."""
        arguments = ["patch", "pod", pod["metadata"]["name"], "-n", namespace, "--subresource=status", "--type=merge"]
        self.stage.kubectl(*arguments, "-p", json.dumps({"status": status}), check=False)


def _killed(pod: Object) -> Object:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}}
    container = _container(pod, restarts=3, ready=False) | {"state": waiting, "lastState": {"terminated": KILLED}}
    return {"phase": "Running", "conditions": _conditions(ready=False), "containerStatuses": [container]}


def _running(pod: Object) -> Object:
    container = _container(pod, restarts=0, ready=True) | {"state": {"running": {"startedAt": KILLED["finishedAt"]}}}
    return {"phase": "Running", "conditions": _conditions(ready=True), "containerStatuses": [container]}


def _succeeded(pod: Object) -> Object:
    ended = {**KILLED, "exitCode": 0, "reason": "Completed"}
    container = _container(pod, restarts=0, ready=False) | {"state": {"terminated": ended}}
    return {"phase": "Succeeded", "conditions": _conditions(ready=False), "containerStatuses": [container]}


def _container(pod: Object, *, restarts: int, ready: bool) -> Object:
    spec = pod["spec"]["containers"][0]
    identity = {"name": spec["name"], "image": spec["image"], "imageID": spec["image"]}
    return {**identity, "restartCount": restarts, "ready": ready, "started": ready}


def _conditions(*, ready: bool) -> list[Object]:
    word = "True" if ready else "False"
    return [{"type": kind, "status": word} for kind in ("Ready", "ContainersReady")]


def _limit(pod: Object) -> str:
    return str(pod["spec"]["containers"][0].get("resources", {}).get("limits", {}).get("memory", ""))
