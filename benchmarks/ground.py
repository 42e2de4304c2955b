"""Where cases are played: a control plane with simulated nodes, everything Inquest needs in it, and broken workloads.

The cluster is the benchmarks' own and goes with the block. A workload is a Deployment in a namespace of its own whose
one pod is said to have been killed for its memory; the Job of a workflow ends by itself, as simulated pods do.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client, config

from benchmarks import kubelet
from hack import HackError
from hack.cluster import local
from hack.cluster.state import Size
from hack.tools import build
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE, SERVICE_ACCOUNT

NAME: Final = "bench"
REPOSITORY: Final = Path(__file__).resolve().parents[1]
GROUP: Final = ("inquest.dev", "v1alpha1")
LABEL: Final = "inquest.dev/benchmark=case"
WAIT_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.2
THREADS: Final = 16

Object = dict[str, Any]


@dataclass(frozen=True)
class Ground:
    """The running cluster, as its administrator."""

    cluster: local.Cluster
    folder: Path
    api: client.ApiClient

    def kubectl(self, *arguments: str, stdin: str = "", seconds: float = 120.0) -> str:
        """Output of a kubectl command."""
        command = [str(self.cluster.bin / "kubectl"), f"--kubeconfig={self.cluster.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)
        if done.returncode != 0:
            raise HackError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *objects: Object) -> None:
        """Server-side apply."""
        manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)

    # --- workloads and people ---------------------------------------------------------------------------------

    def break_workloads(self, cases: Sequence[str]) -> None:
        """For each case a namespace in Inquest's care with a workload that is killed for its memory."""
        self.apply(*(made for case in cases for made in (namespace_of(case), _approvers(case), _deployment(case))))
        until(lambda: len(self._running(cases)) == len(cases), "every workload has a pod on a node")
        each(self._kill, self._running(cases))

    def name_kubelet(self, port: int) -> None:
        """Let every node say that its kubelet is on that port of this machine."""
        for node in self._core.list_node().items:
            self._core.patch_node_status(node.metadata.name, {"status": kubelet.status(port)})

    def tell(self, case: str) -> float:
        """Something fires; gives the moment right before."""
        begun = time.monotonic()
        self._ours.create_namespaced_custom_object(*GROUP, case, "signals", _signal(case))
        return begun

    def approve(self, case: str, investigation: str) -> None:
        """A person approves what is asked for that Investigation, once it is open."""
        body = {"spec": {"decision": "Approved", "decisionReason": "raise it"}}
        place = (case, "remediationapprovalrequests", f"rar-{investigation}")
        self._ours.patch_namespaced_custom_object(*GROUP, *place, body)

    def listed(self, plural: str, cases: Sequence[str]) -> list[Object]:
        """Every object of a kind of ours in these namespaces."""
        found: list[Object] = self._ours.list_cluster_custom_object(*GROUP, plural)["items"]
        return [one for one in found if one["metadata"]["namespace"] in cases]

    def left(self) -> list[str]:
        """Journal slots and case Leases: what must be gone once every case is recorded."""
        leases: Any = client.CoordinationV1Api(self.api)
        found = self._core.list_namespaced_config_map(NAMESPACE, label_selector="inquest.dev/journal=true").items
        found += leases.list_namespaced_lease(NAMESPACE, label_selector="inquest.dev/signal").items
        return [one.metadata.name for one in found]

    def jobs(self) -> int:
        """Jobs in the execution namespace."""
        return len(client.BatchV1Api(self.api).list_namespaced_job(EXECUTION_NAMESPACE).items)

    def clear(self) -> None:
        """Delete every case with all that is in it; the operator has to run, for its finalizers."""
        self.kubectl("delete", "namespaces", f"--selector={LABEL}", "--wait=false")
        self.kubectl("delete", "jobs", "--all", f"--namespace={EXECUTION_NAMESPACE}", "--wait=false")
        until(lambda: not self._core.list_namespace(label_selector=LABEL).items, "every namespace to go")

    @property
    def _ours(self) -> Any:
        return client.CustomObjectsApi(self.api)

    @property
    def _core(self) -> Any:
        return client.CoreV1Api(self.api)

    def _running(self, cases: Sequence[str]) -> list[Any]:
        found = self._core.list_pod_for_all_namespaces(label_selector=LABEL).items
        return [pod for pod in found if pod.metadata.namespace in cases and pod.status.phase == "Running"]

    def _kill(self, pod: Any) -> None:
        body = {"status": _killed(pod)}
        self._core.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, body)


@contextmanager
def raised(folder: Path) -> Iterator[Ground]:
    """Bring the cluster up, with CRDs, policies, roles and the catalogue; it goes with the block, the folder stays."""
    local.down(name=NAME)
    try:
        cluster = local.up(Size.SIMULATED, name=NAME)
        build(["opa"])
        log_in: Any = config.new_client_from_config
        ground = Ground(cluster, folder, log_in(str(cluster.kubeconfig)))
        _install(ground)
        with kubelet.served(cluster.certificate_authority) as port:
            ground.name_kubelet(port)
            yield ground
    finally:
        local.down(name=NAME)


def operator_kubeconfig(ground: Ground) -> Path:
    """A kubeconfig with a token of the operator's own account."""
    token = ground.kubectl("create", "token", SERVICE_ACCOUNT, f"--namespace={NAMESPACE}", "--duration=4h").strip()
    found = yaml.safe_load(ground.cluster.kubeconfig.read_text())
    found["users"] = [{"name": user["name"], "user": {"token": token}} for user in found["users"]]
    path = ground.folder / "operator.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(found))
    return path


def until(holds: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Wait, for a bounded time, until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise HackError(f"waited {seconds:.0f} s for {what}")
        time.sleep(POLL_SECONDS)


def each(work: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
    """Do it for all at once; gives the results in order."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, *columns))


# --- objects --------------------------------------------------------------------------------------------------


def _install(ground: Ground) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    ground.apply(
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in (NAMESPACE, EXECUTION_NAMESPACE)),
        account | {"metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}},
    )
    folders = [f"-f={REPOSITORY / name}" for name in ("crds", "policies/admission", "policies/rbac")]
    ground.kubectl("apply", "--server-side", *folders)
    ground.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    for path in sorted((REPOSITORY / "catalogue").glob("*.yaml")):
        place = () if path.name == "rbac.yaml" else (f"--namespace={NAMESPACE}",)
        ground.kubectl("apply", "--server-side", *place, f"-f={path}")


def namespace_of(case: str) -> Object:
    """A namespace in Inquest's care, of production."""
    labels = {"inquest.dev/managed": "true", "inquest.dev/environment": "production", **_labels()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case, "labels": labels}}


def _labels() -> dict[str, str]:
    key, _, value = LABEL.partition("=")
    return {key: value}


def _approvers(case: str) -> Object:
    rbac = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "approvers", "namespace": case},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "admin"}],
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "inquest-approver"},
    }


def _deployment(case: str) -> Object:
    resources = {"requests": {"memory": "16Mi", "cpu": "10m"}, "limits": {"memory": "64Mi"}}
    container = {"name": "app", "image": "registry.example/shop:1.0", "resources": resources}
    labels = {"app": case, **_labels()}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": case, "namespace": case},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": case}}, "template": template},
    }


def _signal(case: str) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": case, "namespace": case}
    spec = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": target}
    spec["message"] = f"Pods of {case} restart again and again"
    return {
        "apiVersion": "/".join(GROUP),
        "kind": "Signal",
        "metadata": {"name": "crash-looping", "namespace": case},
        "spec": spec,
    }


def _killed(pod: Any) -> Object:
    """Killed at its limit four times; the kubelet waits before the next start."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": at, "finishedAt": at}
    waits = {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container"}
    container = {"name": "app", "image": "registry.example/shop:1.0", "imageID": "", "ready": False, "restartCount": 4}
    container |= {"state": {"waiting": waits}, "lastState": {"terminated": ended}}
    kinds = ("Ready", "ContainersReady")
    conditions = [{"type": kind, "status": "False", "lastTransitionTime": at} for kind in kinds]
    return {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}
