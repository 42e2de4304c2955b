"""One run: the lock, the Job, how it failed, whether it helped, and what is left (resources, sections 8, 9.4, 12)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from inquest.api.names import job_name
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.process import now
from tests.support.world import World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-execution")

SETTINGS = {"execution": {"cooldown": "3s"}}


@pytest.fixture
def staging(inhabit: Inhabit) -> World:
    """A namespace in which policy approves by itself."""
    return inhabit("staging")


def running(world: World) -> tuple[Object, Object]:
    """A case whose Job has begun, and its execution."""
    world.broken()
    case = world.case(world.signal(), "Executing")
    return case, world.execution(case, "Running")


def lock(world: World, labels: dict[str, str]) -> Object:
    """A Job under the name that locks the target."""
    container = {"name": "workflow", "image": "registry.example/other:1"}
    return world.api.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(f"{world.namespace}/Deployment/shop"),
                "namespace": EXECUTION_NAMESPACE,
                "labels": labels,
            },
            "spec": {
                "backoffLimit": 0,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"restartPolicy": "Never", "containers": [container]},
                },
            },
        }
    )


def _is_released(seen: Object) -> bool:
    return conditions(seen)["TargetLocked"] == ("False", "Released")


def test_a_fix_that_did_not_help_says_so_and_asks_a_person(staging: World) -> None:
    """The limit was raised, every pod is ready again, and a container was killed for its memory once more."""
    case, execution = running(staging)
    staging.give_memory("128Mi")
    staging.until(lambda: len(staging.pods()) == 2, "the pod of the new revision")
    staging.heal()
    # It ends after the Job, which ends below: whether a look comes before or after a later write is nobody's to say.
    killed = (datetime.now(UTC) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    last = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "startedAt": now(), "finishedAt": killed}}
    staging.fare(staging.pod(), {"running": {"startedAt": now()}}, last=last, restarts=1)

    staging.finish(staging.job(execution))

    done = staging.reaches("Investigation", case, "Completed")
    assert word(done, "reason", "resolution") == ("VerificationCompleted", "Ineffective")
    assert "Did not help: the workflow ran, and a container was OOMKilled again" in done["status"]["message"]
    assert word(done, "needsHumanReview", "humanReviewReason") == (True, "RemediationIneffective")
    staging.tells(done, "RemediationIneffective")
    told = staging.shows("Investigation", case["metadata"]["name"], lambda seen: bool(seen["status"].get("notices")))
    assert [(one["type"], one["priority"]) for one in told["status"]["notices"]] == [("ManualReview", "High")]
    ran = staging.execution(case, "Ineffective")
    assert ran["status"]["message"].startswith("did not help: a container was OOMKilled again")
    assert ran["status"]["effectiveness"]["endsBefore"] == ["app OOMKilled 137"]
    assert conditions(ran)["Ready"] == ("False", "Ineffective")
    staging.tells(ran, "VerificationEnded")
    assert ran["status"]["effectiveness"]["score"] == 0.25


def test_a_fix_that_helped_ends_the_case_and_is_remembered(staging: World) -> None:
    """C-WF-4; in part C-LC-5, first column: from the Job to the history that the next case reads."""
    world = staging
    world.broken()
    signal = world.signal()
    case = world.case(signal, "Executing")
    execution = world.execution(case, "Running")
    world.give_memory("128Mi")
    world.until(lambda: len(world.pods()) == 2, "the pod of the new revision")
    world.heal()

    world.finish(world.job(execution))

    done = world.case(signal)
    assert word(done, "phase", "reason", "resolution") == ("Completed", "VerificationCompleted", "Remediated")
    assert done["status"]["effectiveness"]["score"] == 1
    assert conditions(done)["Executed"] == ("True", "JobSucceeded")
    assert conditions(done)["EffectivenessAssessed"][0] == "True"
    verified = world.execution(case, "Succeeded")
    assert verified["status"]["preSpecHash"] != verified["status"]["postSpecHash"]
    world.tells(done, "RemediationVerified")
    concluded = world.shows(
        "Signal", signal["metadata"]["name"], lambda seen: conditions(seen)["Concluded"][0] == "True"
    )
    assert conditions(concluded)["Concluded"] == ("True", "Remediated")
    assert concluded["status"]["recommendation"]["urgency"] == "None"
    job = execution["status"]["job"]["name"]
    world.until(lambda: world.api.find("Job", job, EXECUTION_NAMESPACE) is None, "its Job is gone")
    world.shows("WorkflowExecution", verified["metadata"]["name"], _is_released)
    stored = world.shows(
        "Investigation", case["metadata"]["name"], lambda seen: conditions(seen)["Recorded"] == ("True", "Stored")
    )
    assert stored["status"]["message"]

    world.kill_for_memory()
    second = world.case(world.signal(), "Executing", "Failed")

    assert second["status"]["context"]["history"]["entries"] == 1
    held = world.execution(second, "Blocked", "Running")
    assert word(held, "phase", "reason") == ("Blocked", "RecentlyRemediated")
    assert held["status"]["blockedUntil"]


def test_a_job_of_somebody_else_is_never_touched(staging: World) -> None:
    """In part C-WF-2, third column."""
    foreign = lock(staging, {"app": "theirs"})
    staging.broken()

    case = staging.case(staging.signal())

    assert word(case, "phase", "reason") == ("Failed", "ExecutionFailed")
    failed = staging.execution(case, "Failed")
    assert failed["status"]["failure"]["reason"] == "Unknown"
    assert failed["status"]["failure"]["ran"] is False
    there = staging.api.get("Job", foreign["metadata"]["name"], EXECUTION_NAMESPACE)
    assert there["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert "deletionTimestamp" not in there["metadata"]
    staging.api.delete("Job", foreign["metadata"]["name"], EXECUTION_NAMESPACE)


def _told(world: World, uid: str) -> list[Object]:
    """The notices about an object, as the log has them."""
    return [line for line in world.operator.lines() if str(line.get("key", "")).startswith(uid)]


def test_a_busy_target_is_waited_for(staging: World) -> None:
    """C-TR-4; in part C-WF-2, second column."""
    holder = lock(
        staging, {"app.kubernetes.io/managed-by": "inquest", "inquest.dev/execution": "another-executions-uid"}
    )
    staging.broken()
    case = staging.case(staging.signal(), "Executing")

    blocked = staging.execution(case, "Blocked")
    assert word(blocked, "reason") == ("ResourceBusy",)
    assert blocked["status"]["blockedBy"]
    staging.tells(blocked, "ExecutionBlocked")
    uid, name = blocked["metadata"]["uid"], blocked["metadata"]["name"]
    staging.until(lambda: bool(_told(staging, uid)), "a notice that it waits")
    (told,) = _told(staging, uid)
    assert told["type"] == "StatusUpdate"
    assert f"kubectl describe wfe {name}" in told["body"]

    staging.api.delete("Job", holder["metadata"]["name"], EXECUTION_NAMESPACE)
    staging.touch("WorkflowExecution", blocked)

    ran = staging.execution(case, "Running")
    assert "blockedBy" not in ran["status"]
    assert staging.job(ran)["metadata"]["uid"] != holder["metadata"]["uid"]


FAILURES = [
    pytest.param(137, "OOMKilled", "", "OOMKilled", True, id="out of memory"),
    pytest.param(1, "", "error: deployments.apps is forbidden: no rights", "Forbidden", True, id="no rights"),
    pytest.param(3, "", "cannot reach the database", "TaskFailed", True, id="anything else"),
]


@pytest.mark.parametrize(("code", "why", "said", "expected", "ran"), FAILURES)
def test_a_job_that_fails_says_why(staging: World, code: int, why: str, said: str, expected: str, ran: bool) -> None:
    case, execution = running(staging)

    staging.finish(staging.job(execution), code=code, reason=why, message=said)

    failure = staging.execution(case, "Failed")["status"]["failure"]
    assert (failure["reason"], failure["ran"], failure["exitCode"]) == (expected, ran, code)
    assert said in failure["summary"]
    ended = staging.reaches("Investigation", case, "Failed")
    assert word(ended, "reason", "resolution") == ("ExecutionFailed", "ManualReviewRequired")
    assert conditions(ended)["Executed"] == ("False", "JobFailed")
    assert ("ManualReview", "Critical") in [(one["type"], one["priority"]) for one in ended["status"]["notices"]]
    staging.tells(ended, "ExecutionFailed")


def test_a_job_without_an_answer_in_its_time_is_a_case_out_of_time(staging: World) -> None:
    """FA-28; in part C-LC-6, third column: the time is that of the workflow, not what the case may use."""
    case, execution = running(staging)
    job = staging.job(execution)

    staging.api.change("Job", job["metadata"]["name"], EXECUTION_NAMESPACE, {"spec": {"activeDeadlineSeconds": 1}})

    failure = staging.execution(case, "Failed")["status"]["failure"]
    assert (failure["reason"], failure["ran"]) == ("DeadlineExceeded", True)
    ended = staging.reaches("Investigation", case, "Failed")
    assert word(ended, "reason", "timeoutPhase", "resolution") == ("TimedOut", "Executing", "ManualReviewRequired")
    assert conditions(ended)["Executed"] == ("False", "JobFailed")
    assert ("Escalation", "Critical") in [(one["type"], one["priority"]) for one in ended["status"]["notices"]]
    staging.tells(ended, "InvestigationTimedOut")


def test_the_result_of_a_job_that_was_made_again_is_not_taken_for_its_own(staging: World) -> None:
    """FA-28: with its name and its labels, as `kubectl replace --force` makes it; nothing runs a second time."""
    case, execution = running(staging)
    own = staging.job(execution)
    staging.api.delete("Job", own["metadata"]["name"], EXECUTION_NAMESPACE)
    staging.until(lambda: staging.api.find("Job", own["metadata"]["name"], EXECUTION_NAMESPACE) is None, "it is gone")
    another = lock(
        staging, {"app.kubernetes.io/managed-by": "inquest", "inquest.dev/execution": execution["metadata"]["uid"]}
    )
    staging.finish(another)
    staging.shows(
        "Job",
        another["metadata"]["name"],
        lambda seen: seen["status"].get("succeeded") == 1,
        namespace=EXECUTION_NAMESPACE,
    )
    staging.touch("WorkflowExecution", execution)

    failed = staging.execution(case, "Failed", "Succeeded", "Verifying")
    assert phase_of(failed) == "Failed"
    assert failed["status"]["failure"]["ran"] is True
    ended = staging.reaches("Investigation", case, "Failed", "Completed")
    assert word(ended, "phase", "reason") == ("Failed", "ExecutionFailed")
    assert len(staging.api.list("WorkflowExecution", staging.namespace)) == 1
    staging.api.delete("Job", another["metadata"]["name"], EXECUTION_NAMESPACE)


@pytest.mark.parametrize(
    ("waits", "expected"),
    [("ImagePullBackOff", "ImagePullBackOff"), ("CreateContainerConfigError", "ConfigurationError")],
)
def test_a_job_that_never_began_has_changed_nothing(staging: World, waits: str, expected: str) -> None:
    """In part C-WF-3: no person is needed for what never ran."""
    case, execution = running(staging)

    staging.fare(staging.job_pod(staging.job(execution)), {"waiting": {"reason": waits, "message": waits}})
    staging.touch("WorkflowExecution", execution)

    failure = staging.execution(case, "Failed")["status"]["failure"]
    assert (failure["reason"], failure["ran"]) == (expected, False)
    ended = staging.reaches("Investigation", case, "Failed")
    assert "resolution" not in ended["status"]


def test_a_run_goes_on_when_its_workflow_is_deleted(staging: World) -> None:
    """C-WF-5: it has its own copy."""
    case, execution = running(staging)
    name = "increase-memory-limit"
    workflow = staging.api.get("RemediationWorkflow", name, NAMESPACE)
    staging.api.delete("RemediationWorkflow", name, NAMESPACE)
    try:
        staging.heal()
        staging.finish(staging.job(execution))

        ended = staging.reaches("Investigation", case, "Completed", "Failed")

        assert phase_of(ended) == "Completed"
    finally:
        metadata = {"name": name, "namespace": NAMESPACE}
        head = {"apiVersion": workflow["apiVersion"], "kind": workflow["kind"], "metadata": metadata}
        staging.api.create({**head, "spec": workflow["spec"]})
        staging.shows(
            "RemediationWorkflow",
            name,
            lambda seen: seen.get("status", {}).get("registration") == "Active",
            namespace=NAMESPACE,
        )


def test_an_execution_that_is_deleted_takes_its_job_along(staging: World) -> None:
    case, execution = running(staging)
    job = execution["status"]["job"]["name"]

    staging.api.delete("WorkflowExecution", execution["metadata"]["name"], staging.namespace)

    staging.until(lambda: staging.api.find("Job", job, EXECUTION_NAMESPACE) is None, "its Job is gone")
    name = execution["metadata"]["name"]
    staging.until(lambda: staging.api.find("WorkflowExecution", name, staging.namespace) is None, "it is gone")
    ended = staging.reaches("Investigation", case, "Failed")
    assert word(ended, "reason", "resolution") == ("ExecutionFailed", "ManualReviewRequired")


@pytest.mark.parametrize("environment", ["staging", "production"])
def test_an_execution_that_is_deleted_before_anything_ran_is_made_again(inhabit: Inhabit, environment: str) -> None:
    """By policy and by a person: the approval that the first has used holds for the one in its place."""
    world = inhabit(environment)
    holder = lock(world, {"app.kubernetes.io/managed-by": "inquest", "inquest.dev/execution": "another-executions-uid"})
    world.broken()
    signal = world.signal()
    if environment == "production":
        world.approve(world.asked(signal))
    case = world.case(signal, "Executing")
    first = world.execution(case, "Blocked")["metadata"]

    world.api.delete("WorkflowExecution", first["name"], world.namespace)

    world.shows("WorkflowExecution", first["name"], lambda seen: seen["metadata"]["uid"] != first["uid"])
    second = world.execution(case, "Blocked")
    world.api.delete("Job", holder["metadata"]["name"], EXECUTION_NAMESPACE)
    world.touch("WorkflowExecution", second)
    ran = world.execution(case, "Running")
    assert ran["metadata"]["uid"] == second["metadata"]["uid"]
    world.heal()
    world.finish(world.job(ran))
    assert word(world.reaches("Investigation", case, "Completed", "Failed"), "phase") == ("Completed",)
    if environment == "production":
        used = world.api.get("RemediationApprovalRequest", f"rar-{case['metadata']['name']}", world.namespace)
        assert used["status"]["consumedBy"] == first["uid"]


def test_a_target_that_is_deleted_during_verification_ends_it(staging: World) -> None:
    """In part C-LC-5, second column."""
    case, execution = running(staging)
    staging.api.delete("Deployment", "shop", staging.namespace)

    staging.finish(staging.job(execution))

    assert phase_of(staging.reaches("Investigation", case, "Completed", "Failed")) == "Completed"


def test_deleting_the_signal_takes_everything_along(staging: World) -> None:
    """C-LC-9."""
    staging.broken()
    signal = staging.signal()
    case = staging.case(signal, "Executing")
    execution = staging.execution(case, "Running")
    job, uid = execution["status"]["job"]["name"], case["metadata"]["uid"]

    staging.api.delete("Signal", signal["metadata"]["name"], staging.namespace)

    def gone() -> bool:
        kinds = ("Investigation", "WorkflowExecution", "RemediationApprovalRequest")
        left = [one for kind in kinds for one in staging.api.list(kind, staging.namespace)]
        return not left and staging.api.find("Job", job, EXECUTION_NAMESPACE) is None

    staging.until(gone, "everything of the case is gone")

    staging.kill_for_memory()
    again = staging.triaged(staging.signal(), "Accepted", "Duplicate")
    assert phase_of(again) == "Accepted", "who is gone holds nobody back"
    staging.operator.stop()
    staging.operator.start()
    staging.until(lambda: not slots(staging, uid), "its journal is gone")


def slots(world: World, uid: str) -> list[Object]:
    """What is left of a case's journal."""
    return world.api.list("ConfigMap", NAMESPACE, labels=f"inquest.dev/investigation={uid}")
