"""The pages about a cluster, typed as they stand on a control plane with nothing on it.

There is no node: the test says how pods fare. All else is what a reader meets, the operator with its own account too.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from hack.cluster import local
from hack.tools import build
from tests.e2e.docs.commands import BY_HAND
from tests.e2e.docs.desk import Desk
from tests.e2e.docs.pages import blocks, kind_of, pages, steps
from tests.support.api import Object, opened
from tests.support.kube import Cluster, Kubectl, eventually
from tests.support.world import World

CLUSTER: Final = "docs"
NAMESPACE: Final = "inquest-system"
APPROVE: Final = "docs/how-to/approve-a-request.md"
DOOR: Final = "docs/how-to/connect-alertmanager.md"
FOLLOW: Final = "docs/how-to/follow-a-case.md"
SIGNAL: Final = "docs/how-to/create-a-signal.md"
INSTALL: Final = "docs/how-to/install-by-hand.md"
LABEL: Final = "docs/how-to/label-a-namespace.md"
READ: Final = "docs/how-to/read-an-investigation.md"
RECOVER: Final = "docs/how-to/recover.md"
TRAIL: Final = "docs/how-to/keep-the-audit-trail.md"
WORKFLOW: Final = "docs/how-to/write-a-workflow.md"
IMAGE: Final = "0" * 63 + "1"
HASTE: Final = {
    "INQUEST_EFFECTIVENESS__STABILIZATION": "1s",
    "INQUEST_SERVER__HEALTH_PORT": "0",
    "INQUEST_SERVER__METRICS_PORT": "0",
}
"""What no reader sets: a settled workload at once, and ports that no other test holds."""
START_SECONDS: Final = 240


@dataclass
class Reader:
    """A desk, and the cluster that it stands before."""

    desk: Desk
    cluster: Cluster
    world: World
    """The namespace `shop`."""

    def does(self, page: str, part: str, *, other_case: bool = False, **names: Any) -> str:
        return self.desk.does(page, part, other_case=other_case, **names)

    def name(self, kind: str, target: str, phase: str = "") -> str:
        """The object of ours about a target, once it is in that phase."""
        found: list[str] = []

        def look() -> bool:
            them = self.world.api.list(kind, NAMESPACE)
            found[:] = [one["metadata"]["name"] for one in them if _is_about(one, target, phase)]
            return bool(found)

        eventually(look, what=f"{kind} of {target} in phase {phase or 'any'}")
        return found[0]

    def object(self, kind: str, name: str) -> Object:
        return self.world.api.get(kind, name, NAMESPACE)


def _is_about(one: Object, target: str, phase: str) -> bool:
    spec = one["spec"]
    named = spec.get("target") or spec.get("signal", {}).get("target") or {}
    return named.get("name") == target and (not phase or one.get("status", {}).get("phase") == phase)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    kubeconfig = local.up(name=CLUSTER).kubeconfig
    tools = build(["kubectl", "opa"])
    try:
        mine = tmp_path / "kubeconfig"
        mine.write_text(kubeconfig.read_text())
        path = f"{tmp_path}/desk/.venv/bin:{tools}:{os.environ['PATH']}"
        (tmp_path / "desk").mkdir()
        desk = Desk(tmp_path / "desk", BY_HAND, {"PATH": path, "KUBECONFIG": str(mine)})
        kubectl = Kubectl(tools / "kubectl", kubeconfig)
        with opened(kubeconfig) as api:
            world = World(api, None, "shop", kubectl.within("shop"))  # type: ignore[arg-type]  # the operator is the desk's
            yield Reader(desk, Cluster(kubeconfig, kubectl), world)
    finally:
        local.down(name=CLUSTER)


@pytest.mark.timeout(900)
def test_who_types_the_pages_comes_from_an_empty_cluster_to_a_verified_fix_and_its_trail(reader: Reader) -> None:
    _installs(reader)
    with _running(reader) as port:
        names: dict[str, Any] = {"8081": port}
        said = reader.does(INSTALL, "curl -s", **names)
        assert "[-]" not in said
        eventually(lambda: _is_registered(reader), what="the catalogue is registered")
        reader.does(INSTALL, "kubectl get rwf,at")
        _snippets_are_accepted(reader)
        _writes_a_workflow(reader)
        _breaks_two_workloads_and_tells(reader)
        _reads_and_decides(reader)
        _looks_back(reader)
        _recovers(reader)
    _keeps_the_trail(reader)
    assert reader.desk.left_out() == []


def _installs(reader: Reader) -> None:
    reader.desk.write_files_of(INSTALL)
    reader.does(INSTALL, "kubectl create namespace")
    reader.does(INSTALL, "kubectl apply --server-side")
    digest: dict[str, Any] = {"sha256:...": f"sha256:{IMAGE}"}
    reader.does(INSTALL, "IMAGE=registry.example", **digest)
    reader.does(INSTALL, "kubectl create rolebinding approver")
    reader.does(INSTALL, "umask 077")
    reader.does(DOOR, "kubectl create rolebinding alertmanager")
    reader.does(DOOR, "openssl req")
    reader.does(DOOR, "kubectl create secret generic inquest-intake-token")
    reader.does("docs/how-to/serve-datastorage.md", "kubectl create secret")
    reader.does("docs/how-to/serve-datastorage.md", "kubectl apply")
    reader.does("docs/how-to/serve-datastorage.md", "kubectl create rolebinding")
    (reader.desk.folder / "address-of-the-webhook").write_text("https://chat.example/hook")
    reader.does("docs/how-to/tell-people.md", "kubectl create secret")


@contextmanager
def _running(reader: Reader) -> Iterator[str]:
    """The operator, by the command of the page; the port of its health."""
    (step,) = [step for step in steps(INSTALL) if "inquest run" in step.command]
    reader.desk.typed.add(step)
    log = reader.desk.folder / "operator.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            step.command.split(),
            cwd=reader.desk.folder,
            env=os.environ | reader.desk.environment | HASTE,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(lambda: _is_ready(process, log), what="the operator is ready", seconds=START_SECONDS)
        found = re.search(r'"health": (\d+)', log.read_text())
        assert found
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def _is_ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    said = log.read_text(errors="replace")
    assert process.poll() is None, said[-3000:]
    return "operator is ready" in said


def _is_registered(reader: Reader) -> bool:
    found = [one for kind in ("ActionType", "RemediationWorkflow") for one in reader.world.api.list(kind, NAMESPACE)]
    return bool(found) and all(one.get("status", {}).get("registration") == "Active" for one in found)


def _snippets_are_accepted(reader: Reader) -> None:
    """Every object on any page is one that this API server takes."""
    reader.desk.runs("kubectl create namespace shop")
    for page in pages():
        for block in blocks(page):
            if block.language == "yaml" and kind_of(block) == "object":
                (reader.desk.folder / "snippet.yaml").write_text(block.text)
                said, code = reader.desk.runs("kubectl create --dry-run=server -f snippet.yaml")
                there = "already exists" in said
                assert code == 0 or there, f"{block}: {said}"


def _writes_a_workflow(reader: Reader) -> None:
    reader.desk.write_files_of(WORKFLOW)
    reader.does(WORKFLOW, "kubectl apply -f account.yaml")
    eventually(lambda: _is_registered(reader) and _is_used(reader), what="the workflow is registered")
    reader.does(WORKFLOW, "kubectl get at,rwf")


def _is_used(reader: Reader) -> bool:
    # Counted by a look after the one that registers the workflow.
    return bool(reader.object("ActionType", "extend-rollout-deadline").get("status", {}).get("activeWorkflows") == 1)


def _breaks_two_workloads_and_tells(reader: Reader) -> None:
    reader.does(LABEL, "inquest.dev/managed")
    reader.does(LABEL, "inquest.dev/environment")
    reader.world.broken("checkout")
    reader.world.broken("billing")
    reader.desk.write_files_of(SIGNAL)
    reader.does(SIGNAL, "kubectl create -f signal.yaml")
    page = next(block for block in blocks(SIGNAL) if block.file == "signal.yaml")
    (reader.desk.folder / "signal.yaml").write_text(page.text.replace("checkout", "billing"))
    said, code = reader.desk.runs("kubectl create -f signal.yaml")
    assert code == 0, said


def _reads_and_decides(reader: Reader) -> None:
    first = reader.name("RemediationApprovalRequest", "checkout", "Pending")
    second = reader.name("RemediationApprovalRequest", "billing", "Pending")
    case = reader.name("Investigation", "checkout")
    assert "checkout" in reader.does(READ, "kubectl get inv -n inquest-system            #", NAME=case)
    assert '"fact":"SnapshotTaken"' in reader.does(READ, "ID=", NAME=case)
    reader.does(APPROVE, "kubectl create rolebinding oncall-approves")
    reader.does(APPROVE, "kubectl create rolebinding ops-approves")
    assert "128Mi" in reader.does(APPROVE, "kubectl get rar -n", NAME=first)
    reader.does(APPROVE, '"decision":"Approved","decisionReason":"raise it"', NAME=first)
    reader.does(APPROVE, '"decision":"Rejected"', NAME=second)
    reader.name("Investigation", "billing", "Failed")
    execution = reader.object("WorkflowExecution", reader.name("WorkflowExecution", "checkout", "Running"))
    reader.world.api.change(
        "Deployment", "checkout", "shop", {"spec": {"template": {"metadata": {"annotations": {"fixed": "yes"}}}}}
    )
    reader.world.heal("checkout")
    reader.world.finish(reader.world.job(execution))
    reader.name("Investigation", "checkout", "Completed")


def _looks_back(reader: Reader) -> None:
    case = reader.name("Investigation", "checkout", "Completed")
    conditions = "{.status.conditions[?(@.type=='Recorded')].status}"
    recorded = f'kubectl get inv {case} -n {NAMESPACE} -o jsonpath="{conditions}"'
    eventually(lambda: reader.desk.runs(recorded)[0] == "True", what="the case is recorded")
    reader.does(READ, ".status.conditions", NAME=case)
    assert "durationSeconds" in reader.does(FOLLOW, ".status.usage", other_case=True, NAME=f"{case} -n {NAMESPACE}")
    assert "correlationId" in reader.does(FOLLOW, ".status.transcript", other_case=True, NAME=f"{case} -n {NAMESPACE}")
    me = reader.desk.runs("kubectl auth whoami -o jsonpath='{.status.userInfo.username}'")[0]
    reader.does(READ, '"feedback"', NAME=case, jane=me)
    reader.does(READ, "inquest.dev/reviewed", NAME=reader.name("Investigation", "billing"))
    reader.does(
        "docs/how-to/replay-a-case.md",
        "inquest export",
        other_case=True,
        **{"inv-api-restarts-1": case, "shop": NAMESPACE},
    )
    reader.does("docs/how-to/replay-a-case.md", "inquest replay ./case")


def _recovers(reader: Reader) -> None:
    reader.does("docs/how-to/freeze-changes.md", "kubectl create configmap")
    reader.desk.runs(f"kubectl delete configmap inquest-freeze -n {NAMESPACE}")
    reader.does(RECOVER, "kubectl create configmap")
    policies = "kubectl get validatingadmissionpolicies"
    assert "inquest-approval-decision" in reader.does(RECOVER, policies, USER="jane", GROUP="oncall")
    told = reader.name("Signal", "billing")
    reader.does(SIGNAL, "kubectl patch signal", NAME=told)
    eventually(lambda: _is_over(reader, told), what="the Signal is resolved")
    again = reader.does(READ, "| jq", NAME=reader.name("Investigation", "billing"))
    assert "again-" in again
    started = next(block for block in blocks(READ) if "billing-is-down" in block.text and kind_of(block) == "object")
    (reader.desk.folder / "billing-is-down.yaml").write_text(started.text)
    assert reader.desk.runs("kubectl create -f billing-is-down.yaml")[1] == 0
    reader.does(READ, '"cancel":true')
    reader.does("docs/how-to/answer-an-alert.md", "| jq")
    execution = reader.name("WorkflowExecution", "checkout")
    uid = reader.object("WorkflowExecution", execution)["metadata"]["uid"]
    reader.does(RECOVER, "kubectl delete job", NAME=execution, UID_OF_THE_EXECUTION=uid)
    case = reader.object("Investigation", reader.name("Investigation", "checkout"))["metadata"]["uid"]
    reader.does(RECOVER, "kubectl delete cm", UID_OF_THE_INVESTIGATION=case)
    reader.does(WORKFLOW, "kubectl create -f -")


def _is_over(reader: Reader, name: str) -> bool:
    return bool(reader.object("Signal", name).get("status", {}).get("phase") == "Resolved")


def _keeps_the_trail(reader: Reader) -> None:
    """The commands of the database, beside it."""
    reader.does(TRAIL, "inquest audit verify\n")
