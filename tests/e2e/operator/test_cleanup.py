"""What keeps Inquest from being removed, on a real API server: it is named, and only what is safe is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from inquest.api.names import EXECUTION_LABEL
from inquest.cli.app import app
from tests.support.kube import Cluster, Kubectl, proposal

pytestmark = pytest.mark.xdist_group("doctor")

Told = dict[tuple[str, str], dict[str, str]]
Cleaned = Callable[..., Told]


@pytest.fixture
def cleaned(cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]) -> Cleaned:
    """What is in the way, by kind and name; one namespace plays all of them, for the others are other tests'."""
    places = [f"--{role}namespace={namespace}" for role in ("", "operator-", "execution-")]

    def clean(*options: str) -> Told:
        status = app(
            ["cleanup", f"--kubeconfig={cluster.kubeconfig}", "-o", "json", *places, *options],
            result_action="return_value",
        )
        found = json.loads(capsys.readouterr().out)["blocking"]
        assert status == (1 if found else 0)
        return {(one["kind"], one["object"].rpartition("/")[2]): one for one in found}

    return clean


@pytest.fixture
def case(kubectl: Kubectl) -> str:
    """An open case that nobody works on."""
    body = proposal("Investigation")
    kubectl.apply(body)
    return str(body["metadata"]["name"])


def test_an_open_case_is_named_and_its_end_asked_for_when_told_so(
    cleaned: Cleaned, kubectl: Kubectl, case: str
) -> None:
    before = cleaned()["Investigation", case]
    untouched = kubectl.get("inv", case)
    cleaned("--yes")
    after = cleaned()["Investigation", case]

    assert (before["done"], untouched["spec"]["cancel"]) == ("", False)
    assert "patch inv" in before["command"]
    assert kubectl.get("inv", case)["spec"]["cancel"] is True
    assert after["why"].endswith("its end was asked for; no operator runs")


@pytest.fixture
def execution(operator: Kubectl) -> dict[str, Any]:
    """An execution with its finalizer."""
    body = proposal("WorkflowExecution")
    body["metadata"]["finalizers"] = ["inquest.dev/job-cleanup"]
    answer = operator.create(body)
    assert answer.accepted, answer.err
    return operator.get("wfe", str(body["metadata"]["name"]))


@pytest.fixture
def job(kubectl: Kubectl, execution: dict[str, Any]) -> str:
    """The Job of that execution, which nobody ends."""
    name = "cleanup-job"
    container = {"name": "workflow", "image": "registry.example/none:1"}
    kubectl.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": {EXECUTION_LABEL: execution["metadata"]["uid"]}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        }
    )
    return name


def test_a_job_that_runs_is_killed_by_nothing_but_the_word_for_it(
    cleaned: Cleaned, kubectl: Kubectl, operator: Kubectl, execution: dict[str, Any], job: str
) -> None:
    name = execution["metadata"]["name"]
    told = cleaned("--yes")
    still = kubectl("get", "job", job, "-o", "name").strip()
    kept = operator.get("wfe", name)["metadata"]["finalizers"]
    killed = cleaned("--yes", "--kill-jobs")

    assert (told["Job", job]["done"], still, kept) == ("", f"job.batch/{job}", ["inquest.dev/job-cleanup"])
    assert told["WorkflowExecution", name]["done"] == ""
    assert killed["Job", job]["done"] == "delete Job"


def test_a_finalizer_that_nobody_will_take_off_goes(
    cleaned: Cleaned, operator: Kubectl, execution: dict[str, Any]
) -> None:
    name = execution["metadata"]["name"]
    assert cleaned("--yes")["WorkflowExecution", name]["done"] == "free"

    assert not operator.get("wfe", name)["metadata"].get("finalizers")
    assert ("WorkflowExecution", name) not in cleaned()


@pytest.fixture
def leases(kubectl: Kubectl) -> None:
    """A replica that lives and one that does not."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    for name, renewed in (("alive", now), ("dead", "2026-01-01T00:00:00.000000Z")):
        body = {"metadata": {"name": f"inquest-replica-{name}"}, "spec": {"renewTime": renewed}}
        kubectl.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body})


def test_a_replica_that_lives_keeps_its_lease_and_its_work(
    cleaned: Cleaned, leases: None, operator: Kubectl, execution: dict[str, Any]
) -> None:
    told = cleaned("--yes")

    assert told["Lease", "inquest-replica-dead"]["done"] == "delete Lease"
    assert told["Lease", "inquest-replica-alive"]["done"] == ""
    assert told["WorkflowExecution", execution["metadata"]["name"]]["command"].startswith("kubectl delete wfe")
    assert ("Lease", "inquest-replica-dead") not in cleaned()
