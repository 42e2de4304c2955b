"""Nodes and pods that only exist in the API: hundreds of workloads, healthy or broken, at no cost."""

from pathlib import Path

from hack.cluster.certificates import Subject
from hack.cluster.controlplane import START_SECONDS, serving_files
from hack.cluster.process import Program
from hack.cluster.site import LOOPBACK, Site, plain_answer

TOOLS = ("kube-scheduler",)
NODE_TOOLS = ("kwok",)
DEFAULT_NODES = 3
STAGES = Path(__file__).with_name("stages.yaml")
LABEL = {"type": "kwok"}
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110"}
LEASE_SECONDS = 40

SCHEDULER = Subject("kube-scheduler", "system:kube-scheduler")
SIMULATOR = Subject("kwok", "kwok", "system:masters")


def ensure_scheduler(site: Site) -> None:
    """Have pods placed on nodes, of either kind."""
    site.processes.ensure(_scheduler(site))
    site.processes.wait_ready("kube-scheduler", lambda: site.answers("kube-scheduler", "/healthz"), START_SECONDS)


def ensure_simulated_nodes(site: Site, count: int, *, beside_real: bool) -> None:
    """Have that many simulated nodes. Beside a real one they are tainted, so that pods run for real unless they ask."""
    site.processes.ensure(_kwok(site))
    port = site.identity.ports["kwok"]
    site.processes.wait_ready("kwok", lambda: plain_answer(port, "/healthz"), START_SECONDS)
    nodes = [_node(number, [TAINT] if beside_real else []) for number in range(count)]
    site.apply(*nodes, proof=f"/api/v1/nodes/simulated-{count - 1}")
    site.kubectl("wait", "node", "--selector=type=kwok", "--for=condition=Ready", "--timeout=30s")


def _scheduler(site: Site) -> Program:
    command = [
        str(site.bin / "kube-scheduler"),
        f"--kubeconfig={site.kubeconfig(SCHEDULER)}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={site.identity.ports['kube-scheduler']}",
        *serving_files(site),
        "--leader-elect=false",
        "--profiling=false",
    ]
    return Program("kube-scheduler", command)


def _kwok(site: Site) -> Program:
    command = [
        str(site.bin / "kwok"),
        f"--kubeconfig={site.kubeconfig(SIMULATOR)}",
        f"--config={STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-label-selector=type=kwok",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        f"--server-address={LOOPBACK}:{site.identity.ports['kwok']}",
    ]
    return Program("kwok", command)


def _node(number: int, taints: list[dict[str, str]]) -> dict[str, object]:
    name = f"simulated-{number}"
    labels = {
        **LABEL,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": taints},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY},
    }
