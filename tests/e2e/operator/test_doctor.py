"""The doctor on a real API server: what is installed counts as well, and what was taken away is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from inquest import __version__
from inquest.cli.admin.doctor_checks import Level
from inquest.cli.app import app
from tests.support.kube import Cluster, Kubectl, proposal

pytestmark = pytest.mark.xdist_group("doctor")

HOME = "inquest-system"
WORK = ("signals", "cases", "requests", "executions", "deciders")
"""What other tests leave in the cluster."""
Asked = Callable[..., tuple[int, list[dict[str, str]]]]


@pytest.fixture
def asked(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Asked:
    """Exit status and findings, all that is well left out."""

    def ask(*options: str) -> tuple[int, list[dict[str, str]]]:
        arguments = ["doctor", f"--kubeconfig={cluster.kubeconfig}", "-o", "json", *options]
        status = app(arguments, result_action="return_value")
        found = json.loads(capsys.readouterr().out)["findings"]
        return status, [one for one in found if one["level"] != Level.OK]

    return ask


def parts(found: list[dict[str, str]]) -> dict[str, str]:
    return {one["part"]: one["message"] for one in found}


def test_kinds_policies_and_rights_as_they_were_installed_are_well(asked: Asked, cluster: Cluster) -> None:
    status, found = asked()

    # Here nobody installed workflows or people, and no operator of the chart runs.
    assert parts(found).keys() <= {"operator", "catalogue", "namespaces", "approvers", *WORK}
    assert status == (1 if found else 0)


@pytest.fixture
def lease(cluster: Cluster) -> Any:
    """A replica that has just said what is wrong with it."""
    notes = {"inquest.dev/version": __version__, "inquest.dev/faults": "settings: needs restart: cluster_name"}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "inquest-replica-doctor", "namespace": HOME, "annotations": notes},
        "spec": {"holderIdentity": "doctor/1", "renewTime": now},
    }
    cluster.kubectl.apply(body)
    yield
    cluster.kubectl("delete", "lease", "inquest-replica-doctor", "-n", HOME)


def test_what_a_replica_says_of_itself_is_told(asked: Asked, lease: None) -> None:
    _, found = asked()

    (own,) = [one for one in found if one["message"].startswith("doctor: ")]
    assert own["message"] == "doctor: settings: needs restart: cluster_name"
    assert own["fix"] == "kubectl rollout restart deployment/inquest -n inquest-system"


def test_an_account_that_may_too_much_is_found_with_the_operator_away(asked: Asked) -> None:
    _, found = asked("--service-account", "nobody")
    _, mighty = asked("--service-account", "generic-garbage-collector", "--operator-namespace", "kube-system")

    assert not [one for one in found if one["part"] == "rights"]
    assert "delete secrets" in "".join(one["message"] for one in mighty if one["part"] == "rights")


def test_an_open_request_that_only_an_administrator_may_decide_is_a_fault(
    asked: Asked, operator: Kubectl, kubectl: Kubectl, namespace: str
) -> None:
    """As where a case is opened beside its target, and the approvers are bound elsewhere."""
    request = proposal("RemediationApprovalRequest")
    request["spec"]["expiresAt"] = "2099-01-01T00:00:00Z"
    name = f"{namespace}/{request['metadata']['name']}"
    assert operator.create(request).accepted
    assert operator.status("rar", request["metadata"]["name"], {"phase": "Pending"}).accepted

    def told() -> list[tuple[str, str]]:
        return [(one["level"], one["fix"]) for one in asked()[1] if one["message"].startswith(f"{name} is open")]

    fix = f"kubectl create rolebinding approver -n {namespace} --clusterrole=inquest-approver --user=NAME"
    assert told() == [(Level.FAULT, fix)]
    kubectl(*fix.removeprefix("kubectl ").replace("--user=NAME", "--group=oncall").split())
    assert told() == []


def test_who_may_read_little_is_told_what_was_not_looked_at(asked: Asked, kubectl: Kubectl) -> None:
    status, found = asked("--as=jane")

    assert {"operator", "namespaces", "kinds", "rights", "approvers"} <= {
        one["part"] for one in found if one["level"] == Level.UNKNOWN
    }
    assert not [one for one in found if one["level"] == Level.FAULT], "what was not read is not missing"
    assert status == 4
