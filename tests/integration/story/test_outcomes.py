"""Each kind of fault to its end without a model: the detectors' path (resources, sections 4 and 5)."""

from __future__ import annotations

import pytest

from inquest.api.installation import NAMESPACE
from inquest.core.diagnosis.detectors.scheduling.unschedulable import GRACE
from tests.integration.story.conftest import Inhabit
from tests.support.process import now
from tests.support.world import ENDED, World, age, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-outcomes")


def test_a_container_killed_for_memory_leads_to_a_request_for_a_higher_limit(world: World) -> None:
    """C-LC-2, C-RG-4: in production a person is asked, with the reason of the rule that scored 70."""
    target = world.broken(memory="64Mi")

    request = world.asked(world.signal())

    spec = request["spec"]
    assert (spec["workflow"]["id"], spec["workflow"]["actionType"]) == ("increase-memory-limit", "IncreaseMemoryLimits")
    assert spec["target"]["uid"] == target["metadata"]["uid"]
    assert spec["parameters"]["CONTAINER"] == "app"
    assert spec["parameters"]["MEMORY_LIMIT"] == "128Mi"
    assert spec["reason"] == "Production environment"
    assert spec["riskFactors"][0]["score"] == 70
    assert "64Mi" in spec["previewDiff"]
    assert "128Mi" in spec["previewDiff"]
    assert spec["evidence"]
    case = world.case_of(request, "AwaitingApproval")
    assert word(case, "outcome", "approvalRequired") == ("WorkflowSelected", True)
    assert conditions(case)["ApprovalRequired"] == ("True", "PolicyRequiresApproval")
    assert conditions(case)["ModelAvailable"] == ("True", "NotNeeded")
    world.tells(case, "ApprovalRequired")
    assert [(one["type"], one["priority"]) for one in case["status"]["notices"]] == [("Approval", "Critical")]


def test_a_crash_loop_without_a_rollout_is_for_a_person(world: World) -> None:
    world.deployment()
    world.crash()

    case = world.case(world.signal())

    assert word(case, "phase", "outcome", "resolution") == ("Completed", "NoMatchingWorkflows", "ManualReviewRequired")
    assert word(case, "needsHumanReview", "humanReviewReason") == (True, "NoMatchingWorkflows")
    assert conditions(case)["WorkflowResolved"] == ("False", "NoMatchingWorkflows")
    assert case["status"]["rootCause"]["summary"]
    world.tells(case, "HumanReviewRequired")


def test_an_image_that_cannot_be_pulled_is_rolled_back(world: World) -> None:
    world.deployment(image="registry.example/shop:1.0")
    world.heal()
    old = world.pod()["metadata"]["name"]
    world.give(image="registry.example/shop:2.0")
    world.until(lambda: len(world.pods()) == 2, "the pod of the new revision")
    world.miss_image(next(pod for pod in world.pods() if pod["metadata"]["name"] != old))

    request = world.asked(world.signal())

    assert request["spec"]["workflow"]["actionType"] == "RollbackDeployment"
    assert request["spec"]["parameters"]["REVISION"] == "1"


def test_a_pod_that_no_node_takes_is_for_a_person(world: World) -> None:
    world.deployment()
    pod = world.pod()
    world.until(lambda: age(pod) > GRACE.total_seconds(), "the scheduler had its time")
    message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available"
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    status = {"phase": "Pending", "conditions": [scheduled | {"lastTransitionTime": "2026-11-20T10:00:00Z"}]}
    world.api.change("Pod", pod["metadata"]["name"], world.namespace, {"status": status}, part="status")

    case = world.case(world.signal())

    assert word(case, "resolution", "needsHumanReview") == ("ManualReviewRequired", True)
    assert "Insufficient cpu" in str(case["status"]["findings"])


def test_a_target_that_has_healed_needs_nothing(world: World) -> None:
    """C-AR-7: no request, no execution, no policy; in part C-LC-3: with a hold of 24 h."""
    world.deployment()
    world.heal()
    pod = {"apiVersion": "v1", "kind": "Pod", "name": world.pod()["metadata"]["name"], "namespace": world.namespace}
    seen = {
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container",
        "lastTimestamp": now(),
    }
    meta = {"name": "unready", "namespace": world.namespace}
    world.api.create({"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": pod, **seen})

    case = world.case(world.signal(source={"type": "Alertmanager"}))

    assert word(case, "phase", "outcome", "resolution") == ("Completed", "ProblemResolved", "NoActionRequired")
    assert case["status"]["nextAllowed"][:10] > case["status"]["completedAt"][:10]
    assert case["status"].get("consecutiveFailures", 0) == 0
    assert "ruling" not in case["status"]
    assert world.api.list("RemediationApprovalRequest", world.namespace) == []
    assert world.api.list("WorkflowExecution", world.namespace) == []
    assert word(world.triaged(world.handed_on(), "Blocked", "Accepted"), "phase", "reason") == ("Blocked", "Cooldown")


def test_a_person_who_asks_about_a_healthy_target_is_told_what_was_looked_at(world: World) -> None:
    world.deployment()
    world.heal()

    case = world.case(world.signal())

    assert word(case, "phase", "outcome", "resolution") == ("Completed", "Inconclusive", "ManualReviewRequired")
    assert "Kubernetes shows no fault of the target" in case["status"]["message"]


def test_a_stranger_beside_a_healthy_target_is_no_cause(world: World) -> None:
    """A bare pod whose image does not exist; three of three times it was the root cause of what was well."""
    world.deployment()
    world.heal()
    container = {"name": "shell", "image": "docker.io/library/busybox:latst"}
    meta = {"name": "debug-shell", "namespace": world.namespace}
    shell = world.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}})
    world.miss_image(shell)

    case = world.case(world.signal())

    assert case["status"].get("causes", []) == case["status"].get("claims", []) == []
    assert case["status"]["outcome"] == "Inconclusive"
    assert "debug-shell" in case["status"]["observations"][0]


def test_a_target_that_is_not_there_has_no_verified_root(world: World) -> None:
    """In part C-LC-4: nothing is proposed for what nobody has seen."""
    case = world.case(world.signal(world.target("absent")))

    assert phase_of(case) in ("Completed", "Failed")
    assert word(case, "resolution", "needsHumanReview") == ("ManualReviewRequired", True)
    assert conditions(case)["TargetVerified"][0] == "False"
    assert world.api.list("RemediationApprovalRequest", world.namespace) == []


def test_a_protected_namespace_is_diagnosed_and_never_touched(inhabit: Inhabit) -> None:
    """kube-system, labelled managed and staging: whatever policy and label say, code refuses."""
    world = inhabit("staging")
    inside = World(world.api, world.operator, "kube-system", world.kubectl)
    labels = {"inquest.dev/managed": "true", "inquest.dev/environment": "staging"}
    inside.api.change("Namespace", "kube-system", "", {"metadata": {"labels": labels}})
    name = f"dns-{world.namespace[-6:]}"
    try:
        inside.broken(name)

        case = inside.case(inside.signal(inside.target(name)))

        assert word(case, "phase", "reason", "subReason") == ("Failed", "RemediationBlocked", "ProtectedNamespace")
        assert word(case, "resolution", "humanReviewReason") == ("ManualReviewRequired", "RemediationBlocked")
        assert case["status"]["rootCause"]["summary"]
        assert conditions(case)["Executed"] == ("False", "RemediationBlocked")
        inside.tells(case, "RemediationBlocked")
    finally:
        inside.api.delete("Deployment", name, "kube-system")


@pytest.mark.parametrize("of_namespace", [{"env": "production"}, {}], ids=["production", "silent"])
@pytest.mark.parametrize("sender", ["", NAMESPACE], ids=["tenant", "home"])
def test_no_owner_of_a_workload_talks_it_out_of_an_approval(
    inhabit: Inhabit, of_namespace: dict[str, str], sender: str
) -> None:
    """With every label there is, on a Deployment of their own."""
    world = inhabit("", **of_namespace)
    target = world.broken()
    words = {"environment": "development", "priority": "P3", "criticality": "low", "risk-tolerance": "high"}
    labels = {f"{prefix}/{key}": word for prefix in ("inquest.dev", "kubernaut.ai") for key, word in words.items()}
    labels |= {"environment": "development", "env": "development", "inquest.dev/team": "mallory"}
    world.api.change("Deployment", target["metadata"]["name"], world.namespace, {"metadata": {"labels": labels}})

    signal = world.signal(namespace=sender)
    case = world.case(signal, "AwaitingApproval", "Executing", *ENDED)

    assert phase_of(case) == "AwaitingApproval"
    assert case["status"]["ruling"]["reason"] == (
        "Production environment" if of_namespace else "Environment is unknown"
    )


def test_staging_runs_by_itself(inhabit: Inhabit) -> None:
    """No request; one Job with exactly what was ruled on, and no right too many."""
    world = inhabit("staging")
    target = world.broken()

    case = world.case(world.signal(), "Executing")
    execution = world.execution(case, "Running")

    assert world.api.list("RemediationApprovalRequest", world.namespace) == []
    assert conditions(world.api.get("Investigation", case["metadata"]["name"], world.namespace))[
        "ApprovalRequired"
    ] == ("False", "AutoApproved")
    assert "approvalRef" not in execution["spec"]
    job = world.job(execution)
    template = job["spec"]["template"]["spec"]
    container = template["containers"][0]
    env = {one["name"]: one["value"] for one in container["env"]}
    assert env == {
        "CONTAINER": "app",
        "MEMORY_LIMIT": "128Mi",
        "TARGET_RESOURCE": f"{world.namespace}/Deployment/shop",
        "TARGET_RESOURCE_KIND": "Deployment",
        "TARGET_RESOURCE_NAME": "shop",
        "TARGET_RESOURCE_NAMESPACE": world.namespace,
        "TARGET_RESOURCE_API_VERSION": "apps/v1",
        "INQUEST_INVESTIGATION": case["metadata"]["name"],
        "INQUEST_EXECUTION": execution["metadata"]["name"],
        "INQUEST_WORKFLOW": "increase-memory-limit",
    }
    labels = job["metadata"]["labels"]
    assert labels["inquest.dev/execution"] == execution["metadata"]["uid"]
    assert labels["app.kubernetes.io/managed-by"] == "inquest"
    assert (template["restartPolicy"], template["serviceAccountName"]) == ("Never", "increase-memory-limit")
    security = container["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["readOnlyRootFilesystem"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 120
    assert execution["spec"]["target"]["uid"] == target["metadata"]["uid"]
