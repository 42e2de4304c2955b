"""Record scenarios from a running cluster: apply, wait for the fault, write down what the API server and kubelet say.

    python -m hack.cluster up --size real --name scenarios --simulated-nodes 3
    python -m hack.record --name scenarios tests/scenarios/probes/*.yaml

How a scenario is brought about, and what its file says of that, stands in `hack.scenarios.staging`. What is recorded
is added to what a person wrote.

Written down is little: no Secrets, managed fields, image lists; all of it passes the product's own redactor.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hack import HackError
from hack.cluster import local
from hack.scenarios.staging import (
    AGE_SECONDS,
    Kubectl,
    Object,
    Scenario,
    clear,
    let_stand,
    scenario_of,
    stage,
    wait_until_gone,
)
from inquest.core.redaction.redactor import Redactor
from inquest.replay.case import PREVIOUS
from inquest.replay.one_file import case_text

LOG_LINES = 200
ELSEWHERE = {"events": "default", "leases.coordination.k8s.io": "kube-node-lease"}
"""What tells of nodes lives in namespaces of the system."""

NOT_RECORDED = frozenset({"secrets", "events.events.k8s.io", "pods.metrics.k8s.io", "podtemplates"})
"""Namespaced kinds left out: never read, told twice, told elsewhere, of no use."""

CLUSTER_KINDS = (
    "nodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "ingressclasses.networking.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "runtimeclasses.node.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
)

WRITTEN = ("signal", "expected", "live")
"""Keys of the head that a recording leaves alone."""


def main(arguments: list[str] | None = None) -> int:
    """Record each scenario; one that fails is named and the others go on."""
    parser = argparse.ArgumentParser(prog="python -m hack.record", description="Record scenarios from a cluster.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--name", default="scenarios", help="the cluster, as python -m hack.cluster names it")
    parser.add_argument("--age", type=float, default=AGE_SECONDS, help="seconds that a fault stands before it is told")
    options = parser.parse_args(arguments)
    failed = 0
    for file in options.files:
        started = time.monotonic()
        try:
            record(scenario_of(file), options.name, age=options.age)
        except (HackError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{file}: {error}", file=sys.stderr, flush=True)
        else:
            print(f"{file}: recorded in {time.monotonic() - started:.0f} s", flush=True)
    return 1 if failed else 0


def record(scenario: Scenario, cluster_name: str, *, age: float = AGE_SECONDS) -> None:
    """Bring the fault about, let it grow old enough to be one, write it down, clear it away."""
    cluster = local.find(name=cluster_name)
    if not cluster:
        raise HackError(f"there is no cluster named {cluster_name}: bring it up first")
    kubectl = Kubectl(cluster)
    local.load_images(scenario.needs.get("images", ()), name=cluster_name)
    wait_until_gone(kubectl, scenario)
    try:
        stage(kubectl, scenario)
        if scenario.is_broken:
            let_stand(kubectl, scenario, age)
        _write(kubectl, scenario)
    finally:
        clear(kubectl, scenario)


# --- writing it down ------------------------------------------------------------------------------


def _write(kubectl: Kubectl, scenario: Scenario) -> None:
    namespaced = _namespaced_kinds(kubectl)
    cluster_kinds = [*CLUSTER_KINDS, *scenario.needs.get("record", ())]
    objects = kubectl.list(cluster_kinds)
    everywhere = scenario.needs.get("everywhere", ())
    for kind in everywhere:
        objects += kubectl.list([kind], "--all-namespaces")
    for namespace in scenario.namespaces:
        objects += kubectl.list(set(namespaced).difference(everywhere), "-n", namespace)
    for kind in set(ELSEWHERE).difference(everywhere):
        objects += kubectl.list([kind], "-n", ELSEWHERE[kind])
    taken = datetime.now(UTC).replace(microsecond=0)
    metrics = list(_metrics(kubectl, scenario)) if scenario.needs.get("metrics") else []
    recorded = [
        *({"kind": kind, "namespaces": _listed_in(kind, scenario)} for kind in namespaced if kind not in everywhere),
        *({"kind": kind} for kind in (*everywhere, *cluster_kinds)),
    ]
    head = {
        "name": scenario.name,
        "description": scenario.text,
        "takenAt": taken.isoformat().replace("+00:00", "Z"),
        "kubernetesVersion": json.loads(kubectl.run("version", "-o", "json"))["serverVersion"]["gitVersion"],
        "source": "recorded",
        **{key: scenario.head[key] for key in WRITTEN if key in scenario.head},
        "recorded": recorded,
        "logs": dict(_logs(kubectl, objects)),
    }
    scenario.place.write_text(case_text(head, [*in_order(map(cleaned, objects)), *metrics]))


def _listed_in(kind: str, scenario: Scenario) -> list[str]:
    return [*scenario.namespaces, *([ELSEWHERE[kind]] if kind in ELSEWHERE else [])]


def _namespaced_kinds(kubectl: Kubectl) -> list[str]:
    listed = kubectl.run("api-resources", "--verbs=list", "--namespaced=true", "-o", "name").split()
    return sorted(set(listed) - NOT_RECORDED)


def cleaned(found: Object) -> Object:
    """The object as it may be kept: nothing secret, nothing that is bulk only."""
    kept: Object = json.loads(json.dumps(Redactor().data(found).value))
    kept.get("metadata", {}).pop("managedFields", None)
    kept.get("status", {}).pop("images", None)
    return kept


def in_order(objects: Iterable[Object]) -> list[Object]:
    """By namespace, kind and name, so that two recordings can be compared."""
    return sorted(objects, key=_place)


def _place(found: Object) -> tuple[str, str, str]:
    metadata = found["metadata"]
    return metadata.get("namespace", "cluster"), str(found["kind"]).lower(), str(metadata["name"])


def _logs(kubectl: Kubectl, objects: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """Namespace, pod and container, and what it logged."""
    simulated = {found["metadata"]["name"] for found in objects if is_simulated(found)}
    for pod in sorted((found for found in objects if found["kind"] == "Pod"), key=_place):
        for name, previous in logs_of(pod):
            text = "" if pod["spec"].get("nodeName") in simulated else _log(kubectl, pod, name, previous)
            if text is not None:
                place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}/{name}"
                yield f"{place}{PREVIOUS}" if previous else place, text


def is_simulated(found: Object) -> bool:
    """Whether it is a node that exists in the API only: what runs there says nothing, and that is all it says."""
    return found["kind"] == "Node" and ("type", "kwok") in found["metadata"].get("labels", {}).items()


def logs_of(pod: Object) -> Iterator[tuple[str, bool]]:
    """Containers that ran, and whether it is their previous run."""
    status = pod["status"]
    for container in [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]:
        if "waiting" not in container.get("state", {}) or container.get("restartCount"):
            yield container["name"], False
        if container.get("restartCount"):
            yield container["name"], True


def _log(kubectl: Kubectl, pod: Object, container: str, previous: bool) -> str | None:
    """None where the kubelet does not give it: then it has no place, and what is not recorded proves nothing."""
    where = [pod["metadata"]["name"], "-n", pod["metadata"]["namespace"], "-c", container]
    try:
        text = kubectl.run("logs", *where, f"--tail={LOG_LINES}", *(["--previous"] if previous else []))
    except HackError:
        return None
    return Redactor().text(text).value


def _metrics(kubectl: Kubectl, scenario: Scenario) -> Iterator[Object]:
    api = "/apis/metrics.k8s.io/v1beta1"
    for path in (f"{api}/nodes", *(f"{api}/namespaces/{name}/pods" for name in scenario.namespaces)):
        for item in json.loads(kubectl.run("get", "--raw", path))["items"]:
            kind = "PodMetrics" if "containers" in item else "NodeMetrics"
            yield {"apiVersion": "metrics.k8s.io/v1beta1", "kind": kind, **cleaned(item)}


if __name__ == "__main__":
    sys.exit(main())
