"""One fault of each family in every kind of workload: whoever owns the pod, the same is found of whoever owns it."""

from __future__ import annotations

from typing import Any

from inquest.core.diagnosis.detectors.registry import detect
from tests.support.tables import each_row
from tests.unit.core.diagnosis.detectors.support import snapshot_of

Found = dict[str, Any]

OWNERS: dict[str, tuple[tuple[str, str], ...]] = {
    "Deployment": (("apps/v1", "ReplicaSet"), ("apps/v1", "Deployment")),
    "StatefulSet": (("apps/v1", "StatefulSet"),),
    "DaemonSet": (("apps/v1", "DaemonSet"),),
    "Job": (("batch/v1", "Job"),),
    "CronJob": (("batch/v1", "Job"), ("batch/v1", "CronJob")),
    "ReplicaSet": (("apps/v1", "ReplicaSet"),),
    "a bare Pod": (),
    "a custom resource": (("argoproj.io/v1alpha1", "Rollout"),),
}
"""Owners of the pod, the nearest first."""
LOG = {
    "Python": "Traceback (most recent call last):\n  File \"/app/a.py\", line 3\nKeyError: 'DATABASE_URL'\n",
    "Go": "panic: required env var DATABASE_URL is not set\n\ngoroutine 1 [running]:\nmain.main()\n",
    "Node": "/app/index.js:4\n    throw new Error('DATABASE_URL is not defined')\n",
    "Java": 'Exception in thread "main" java.lang.Error: Environment variable DATABASE_URL is not set\n',
    ".NET": "Unhandled exception. System.ArgumentException: Environment variable 'DATABASE_URL' is not set.\n",
    "Ruby": "/app/config.rb:3:in `fetch': Missing required environment variable DATABASE_URL (KeyError)\n",
    "Rust": "thread 'main' panicked at src/main.rs:3:5:\nenvironment variable DATABASE_URL not found\n",
    "shell": "/entrypoint.sh: line 4: DATABASE_URL: unbound variable\n",
}


def waiting(reason: str, message: str = "", last: Found | None = None) -> Found:
    ended = {"lastState": {"terminated": last}} if last else {}
    restarts = 7 if last else 0
    return {
        "ready": False,
        "restartCount": restarts,
        "state": {"waiting": {"reason": reason, "message": message}},
        **ended,
    }


ENDED = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-22T09:58:00Z"}
STATES: dict[str, tuple[str, Found]] = {
    "memory": (
        "OOMKilled",
        waiting("CrashLoopBackOff", last={**ENDED, "exitCode": 137, "reason": "OOMKilled"}),
    ),
    "image": ("ImagePullFailing", waiting("ImagePullBackOff", 'Back-off pulling image "a:1": not found')),
    "secret": ("SecretMissing", waiting("CreateContainerConfigError", 'secret "db" not found')),
    "config map": ("ConfigMapMissing", waiting("CreateContainerConfigError", 'configmap "app" not found')),
    "command": (
        "CommandFailing",
        waiting("RunContainerError", 'exec: "serve": executable file not found in $PATH: unknown'),
    ),
    "root": (
        "CommandFailing",
        waiting("CreateContainerConfigError", 'container has runAsNonRoot and image will run as root (pod: "x")'),
    ),
}
OF_THEIR_OWN = frozenset({"SecretMissing", "ConfigMapMissing"})
"""Categories that blame what is missing rather than who misses it."""


def family(owner: str) -> list[Found]:
    """The owners as they were read, each controlled by the next."""
    chain = OWNERS[owner]
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {
                "name": "app" if place == len(chain) - 1 else "app-1",
                "namespace": "shop",
                "uid": f"u-{place}",
                "ownerReferences": _above(owner, place + 1),
            },
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "app"}]}}},
        }
        for place, (version, kind) in enumerate(chain)
    ]


def _above(owner: str, place: int) -> list[Found]:
    chain = OWNERS[owner]
    if place >= len(chain):
        return []
    name = "app" if place == len(chain) - 1 else "app-1"
    return [
        {"apiVersion": chain[place][0], "kind": chain[place][1], "name": name, "uid": f"u-{place}", "controller": True}
    ]


def pod(owner: str, state: Found, *, init: bool = False) -> Found:
    listed, statuses = ("initContainers", "initContainerStatuses") if init else ("containers", "containerStatuses")
    container = {
        "name": "app",
        "image": "a:1",
        "resources": {"limits": {"memory": "64Mi"}},
        "envFrom": [{"secretRef": {"name": "db"}}, {"configMapRef": {"name": "app"}}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app-x", "namespace": "shop", "ownerReferences": _above(owner, 0)},
        "spec": {"nodeName": "n-1", "containers": [{"name": "main", "image": "m:1"}], listed: [container]},
        "status": {"phase": "Pending" if init else "Running", statuses: [{"name": "app", **state}]},
    }


def first_cause(owner: str, found: Found, log: str = "") -> tuple[str, str]:
    logs = [{"pod": "app-x", "previous": True, "text": log}] if log else []
    findings = detect(snapshot_of({"objects": [found, *family(owner)], "logs": logs}))
    return (findings[0].category, findings[0].object.kind) if findings else ("", "")


def top(owner: str) -> str:
    return OWNERS[owner][-1][1] if OWNERS[owner] else "Pod"


@each_row("owner", OWNERS)
@each_row("init", [False, True], ids=["container", "init container"])
@each_row("fault", STATES)
def test_a_fault_is_found_whoever_owns_the_pod(fault: str, init: bool, owner: str) -> None:
    category, state = STATES[fault]

    found = first_cause(owner, pod(owner, state, init=init))

    assert found[0] == category
    assert category in OF_THEIR_OWN or found[1] == top(owner)


@each_row("owner", OWNERS)
@each_row("language", LOG)
def test_a_missing_variable_is_found_in_whatever_language_it_is_missed(language: str, owner: str) -> None:
    found = first_cause(owner, pod(owner, waiting("CrashLoopBackOff", last=ENDED)), LOG[language])

    assert found == ("EnvVarMissing", top(owner))
