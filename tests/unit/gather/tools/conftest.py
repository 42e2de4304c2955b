"""Tools on a cluster of a few lines; the real one has its contract in tests/e2e."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ToolCall, ToolResult
from inquest.core.llm.tool_calls import boundary_of, canonical_arguments
from inquest.core.redaction.redactor import Redactor
from inquest.errors import InquestError, Invalid, NotFound, UnknownKind
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.scope import Scope
from inquest.gather.tools.toolset import Toolset
from inquest.ports.kubernetes import Json, Listing, ResourceKind
from inquest.replay.clock import RecordedClock

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
KINDS = (
    ResourceKind("", "v1", "Pod", "pods", True),
    ResourceKind("", "v1", "Event", "events", True),
    ResourceKind("", "v1", "ConfigMap", "configmaps", True),
    ResourceKind("", "v1", "Node", "nodes", False),
    ResourceKind("", "v1", "Namespace", "namespaces", False),
    ResourceKind("", "v1", "Secret", "secrets", True),
    ResourceKind("apps", "v1", "Deployment", "deployments", True),
    ResourceKind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True),
    ResourceKind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False),
    ResourceKind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False),
)


@dataclass
class FakeCluster:
    """Objects in memory; what was asked stands in `asked`, what is in `broken` is raised."""

    objects: list[Json] = field(default_factory=list)
    texts: dict[tuple[str, bool], str] = field(default_factory=dict)
    broken: dict[str, InquestError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        self.asked.append(f"kind {word}")
        fitting = [
            k for k in KINDS if word.lower() in (k.kind.lower(), k.plural) and api_version in ("", k.api_version)
        ]
        if not fitting:
            raise UnknownKind(f"the cluster serves no kind {word!r}")
        return fitting[0]

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        self._note("get", kind, namespace)
        found = [o for o in self._of(kind, namespace) if o["metadata"]["name"] == name]
        if not found:
            raise NotFound(f'get {kind.plural}: {kind.plural} "{name}" not found')
        return found[0]

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Listing:
        self._note("list", kind, namespace)
        found = self._of(kind, namespace)
        return Listing(tuple(found[:limit]), len(found) <= limit)

    async def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, **_: Any) -> str:
        self.asked.append(f"logs {namespace}/{pod}/{container}")
        if (container, previous) not in self.texts:
            raise Invalid(f'get pods/log: previous terminated container "{container}" in pod "{pod}" not found')
        return self.texts[container, previous]

    def _note(self, verb: str, kind: ResourceKind, namespace: str) -> None:
        self.asked.append(f"{verb} {kind.kind} {namespace}")
        if kind.kind in self.broken:
            raise self.broken[kind.kind]

    def _of(self, kind: ResourceKind, namespace: str) -> Sequence[Json]:
        return [
            o for o in self.objects if o["kind"] == kind.kind and namespace in ("", o["metadata"].get("namespace", ""))
        ]


def configured(_: FakeCluster) -> Sequence[ResourceKind]:
    return KINDS


def run_of(name: str, number: int = 1, /, **arguments: Any) -> ToolRun:
    evidence_id = f"E{number}"
    call = ToolCall(f"call-{number}", name, canonical_arguments(arguments))
    return ToolRun(call, evidence_id, boundary_of("seed", evidence_id))


@dataclass
class Bench:
    """A cluster, its tools and a desk in the namespace `shop`."""

    cluster: FakeCluster
    tools: Toolset
    context: ToolContext

    async def __call__(self, name: str, /, **arguments: Any) -> ToolResult:
        (result,) = await self.tools.batch(Invocation.RCA, (run_of(name, **arguments),), self.context)
        return result

    def text_of(self, result: ToolResult) -> str:
        assert result.evidence is not None
        return result.evidence.text


@pytest.fixture
def bench() -> Callable[..., Bench]:
    def make(*objects: Json, blocked: frozenset[str] = frozenset(), **more: Any) -> Bench:
        cluster = FakeCluster(list(objects), **more)
        backends = Backends(cluster, Redactor(), RecordedClock(NOW), blocked=blocked)
        return Bench(cluster, Toolset(backends), ToolContext(backends, Scope("shop")))

    return make


def pod(name: str = "checkout-6d5f7c9b8-x2x4q", namespace: str = "shop", **status: Any) -> Json:
    """A pod whose container was killed for its memory."""
    ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": "2026-11-22T11:58:00Z"}
    container = {
        "name": "app",
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s"}},
        "lastState": {"terminated": ended | {"finishedAt": "2026-11-22T11:58:02Z"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": "2026-11-22T11:50:00Z",
            "labels": {"app": "checkout"},
            "managedFields": [{"manager": "kubelet"}],
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-6d5f7c9b8", "controller": True}
            ],
        },
        "spec": {
            "nodeName": "worker-1",
            "restartPolicy": "Always",
            "containers": [
                {
                    "name": "app",
                    "image": "example.org/checkout:1.4.2",
                    "resources": {"limits": {"memory": "32Mi"}, "requests": {"cpu": "10m", "memory": "16Mi"}},
                    "env": [
                        {"name": "DB_PASSWORD", "value": "hunter2-canary"},
                        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "checkout", "key": "token"}}},
                    ],
                }
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [container],
        }
        | status,
    }


def event(name: str, about: str = "checkout-6d5f7c9b8-x2x4q", kind: str = "Pod", **more: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-22T11:59:00Z"},
        "involvedObject": {"kind": kind, "name": about},
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container app in pod",
        "count": 12,
        "lastTimestamp": "2026-11-22T11:59:00Z",
        "source": {"component": "kubelet"},
    } | more


def deployment() -> Json:
    template = {"metadata": {"labels": {"app": "checkout"}}, "spec": pod()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "checkout", "namespace": "shop", "creationTimestamp": "2026-11-20T12:00:00Z"},
        "spec": {"replicas": 1, "template": template},
        "status": {"replicas": 1, "unavailableReplicas": 1},
    }
