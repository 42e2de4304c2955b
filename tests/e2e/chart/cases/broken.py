"""Workloads that really fail on a node, each for a reason of its own: its words, its way to come about, its mark.

Every one but the two that outgrow their memory comes up well first and fails in its second revision, whose pods stand
in the place of the first ones: nothing serves any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Object = dict[str, Any]

NAME: Final = "shop"
IMAGE: Final = "localhost/inquest/busybox:local"
SERVE: Final = "mkdir -p /tmp/www/healthz && touch /tmp/www/healthz/index.html && exec httpd -f -p 8080 -h /tmp/www"


@dataclass(frozen=True)
class Broken:
    """One workload and how it fails."""

    fails: str
    """What stands in the status of its pods once it really does."""
    container: Mapping[str, Any] = field(default_factory=dict)
    """Of the first revision, beside what all have in common."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Of the pods' spec, from the first revision to the second; none: the first one fails."""
    beside: tuple[Object, ...] = ()
    """Objects that are there before it."""
    gone: tuple[str, str] | None = None
    """Kind and name of one of them that goes with the first revision."""

    def deployment(self, namespace: str) -> Object:
        """The first revision."""
        container = {"name": "app", "image": IMAGE, "imagePullPolicy": "IfNotPresent", **_runs(SERVE), **self.container}
        pod = {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False, "containers": [container]}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app": NAME}},
                "template": {"metadata": {"labels": {"app": NAME}}, "spec": pod},
            },
        }


def _runs(script: str) -> Object:
    return {"command": ["/bin/sh", "-c"], "args": [script]}


def _app(**change: Any) -> Object:
    return {"containers": [{"name": "app", **change}]}


def _hungry(script: str) -> Broken:
    """Killed before it is ready, whenever it starts."""
    ready = {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1}
    limits = {"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}}
    return Broken("OOMKilled", {**_runs(script), "readinessProbe": ready, "resources": limits})


def _asks(kind: str, path: str, **more: Any) -> Object:
    return {f"{kind}Probe": {"httpGet": {"path": path, "port": 8080}, "periodSeconds": 1, **more}}


_NEEDS_URL: Final = (
    'if [ -z "$LEDGER_URL" ]; then echo "Error: required environment variable LEDGER_URL is not set" >&2; exit 2; fi; '
)
_LOADS: Final = "dd if=/dev/zero of=/dev/null bs=48M count=1 2>/dev/null && touch /tmp/ready && exec sleep 86400"
_GROWS: Final = "x=0123456789abcdef; while true; do x=$x$x; done"

LIMIT_TOO_LOW: Final = _hungry(_LOADS)
OUTGROWS_EVERY_LIMIT: Final = _hungry(_GROWS)
WRONG_IMAGE: Final = Broken("ImagePullBackOff", change=_app(image="registry.example.test/shop/checkout:2.0.0-rc9"))
WRONG_COMMAND: Final = Broken("CrashLoopBackOff", change=_app(command=["httpdd"], args=["-f"]))
VARIABLE_MISSING: Final = Broken(
    "CrashLoopBackOff",
    _runs(_NEEDS_URL + SERVE) | {"env": [{"name": "LEDGER_URL", "value": "http://ledger:8080"}]},
    _app(env=[{"name": "LEDGER_URL", "$patch": "delete"}]),
)
WRONG_PROBE_PATH: Final = Broken(
    "CrashLoopBackOff", _asks("startup", "/healthz/"), _app(**_asks("startup", "/up", failureThreshold=1))
)
WRONG_PROBE_PORT: Final = Broken(
    "CrashLoopBackOff",
    _asks("liveness", "/healthz/"),
    _app(livenessProbe={"httpGet": {"path": "/healthz/", "port": 8081}, "failureThreshold": 1}),
)
WRONG_OPTION: Final = Broken("CrashLoopBackOff", change=_app(command=["httpd", "--listen=8080"], args=["-f"]))
MOUNT_OVER_A_FILE: Final = Broken(
    "to rootfs at",
    change={
        **_app(volumeMounts=[{"name": "cache", "mountPath": "/etc/passwd"}]),
        "volumes": [{"name": "cache", "emptyDir": {}}],
    },
)
INIT_FAILS: Final = Broken(
    "CrashLoopBackOff",
    change={
        "initContainers": [
            {"name": "migrate", "image": IMAGE, **_runs("echo 'ERROR: relation \"orders\" does not exist' >&2; exit 3")}
        ]
    },
)
MUST_NOT_BE_ROOT: Final = Broken("CreateContainerConfigError", change=_app(securityContext={"runAsNonRoot": True}))
NO_WAY_BACK: Final = Broken(
    "seccomp",
    {"envFrom": [{"configMapRef": {"name": "settings"}}]},
    _app(envFrom=None, securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "shop.json"}}),
    beside=({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"MODE": "fast"}},),
    gone=("ConfigMap", "settings"),
)
"""A profile that the node does not have; and what it ran with before is gone, so that going back does not help."""
