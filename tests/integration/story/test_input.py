"""Bad input: what a schema cannot refuse becomes a condition and an event, never a crash and never silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from inquest.api.installation import NAMESPACE
from tests.support.api import Object
from tests.support.world import World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-input")

IMAGE = "registry.example/fix@sha256:" + "a" * 64


@pytest.fixture
def made(world: World) -> Iterator[list[Object]]:
    """What a test has put into the catalogue; it goes at the end."""
    found: list[Object] = []
    yield found
    for one in found:
        world.api.delete(one["kind"], one["metadata"]["name"], NAMESPACE)


def workflow(made: list[Object], world: World, id_: str, **more: Any) -> Object:
    words = {"what": "does something", "whenToUse": "now and then"}
    labels = {key: ["*"] for key in ("severity", "environment", "component", "priority")}
    spec = {"id": id_, "version": "1.0.0", "actionType": "RestartDeployment", "description": words, "labels": labels}
    spec |= {"parameters": [], "execution": {"engine": "job", "image": IMAGE}} | more
    meta = {"name": f"{id_}-{uuid4().hex[:6]}", "namespace": NAMESPACE}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "RemediationWorkflow", "metadata": meta, "spec": spec}
    made.append(world.api.create(body))
    return made[-1]


def registered(world: World, found: Object, *words: str) -> Object:
    return world.shows(
        "RemediationWorkflow",
        found["metadata"]["name"],
        lambda seen: seen.get("status", {}).get("registration") in words,
        namespace=NAMESPACE,
    )


def test_a_workflow_of_an_unknown_action_is_invalid_until_the_action_comes(world: World, made: list[Object]) -> None:
    id_ = f"w-{uuid4().hex[:6]}"
    action = f"Action{uuid4().hex[:6]}"
    found = workflow(made, world, id_, actionType=action)

    invalid = registered(world, found, "Invalid")
    assert conditions(invalid)["ActionTypeFound"] == ("False", "NotFound")
    assert action in invalid["status"]["message"]

    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "ActionType"}
    spec = {"name": action, "what": "does it", "whenToUse": "now"}
    made.append(world.api.create({**body, "metadata": {"name": action.lower(), "namespace": NAMESPACE}, "spec": spec}))
    assert conditions(registered(world, found, "Active"))["Ready"][0] == "True"


def test_an_action_says_who_uses_it_and_who_is_left_when_it_goes(world: World, made: list[Object]) -> None:
    id_, action = f"w-{uuid4().hex[:6]}", f"Action{uuid4().hex[:6]}"
    resource = _action(world, made, action, action.lower())
    assert _use(world, action, 0) == ("False", "NotInUse")
    found = workflow(made, world, id_, actionType=action)
    before = registered(world, found, "Active")["status"]["workflowId"]
    assert _use(world, action, 1) == ("True", "InUse")

    world.api.delete("ActionType", resource["metadata"]["name"], NAMESPACE)

    assert conditions(registered(world, found, "Invalid"))["ActionTypeFound"] == ("False", "NotFound")
    world.tells(found, "InUse")
    _action(world, made, action, action.lower())
    assert registered(world, found, "Active")["status"]["workflowId"] == before
    assert _use(world, action, 1) == ("True", "InUse")
    world.api.delete("RemediationWorkflow", found["metadata"]["name"], NAMESPACE)
    assert _use(world, action, 0) == ("False", "NotInUse")


def _use(world: World, action: str, count: int) -> tuple[str, str]:
    """The condition InUse of an action, once so many workflows use it."""

    def counts(seen: Object) -> bool:
        return bool(seen.get("status", {}).get("activeWorkflows") == count)

    seen = world.shows("ActionType", action.lower(), counts, namespace=NAMESPACE)
    status, reason = conditions(seen)["InUse"]
    return status, reason


def test_other_content_under_the_same_version_is_a_conflict(world: World, made: list[Object]) -> None:
    id_ = f"w-{uuid4().hex[:6]}"
    older = registered(world, workflow(made, world, id_), "Active")

    younger = registered(world, workflow(made, world, id_, parameters=[_parameter("REASON")]), "Invalid", "Active")

    assert word(younger, "registration") == ("Invalid",)
    assert conditions(younger)["Valid"] == ("False", "VersionConflict")
    assert younger["status"]["message"]
    assert word(registered(world, older, "Active"), "registration") == ("Active",)


def test_a_new_version_supersedes_the_old_one(world: World, made: list[Object]) -> None:
    id_ = f"w-{uuid4().hex[:6]}"
    first = registered(world, workflow(made, world, id_), "Active")

    second = registered(world, workflow(made, world, id_, version="1.1.0"), "Active")

    assert second["status"]["workflowId"] != first["status"]["workflowId"]
    world.touch("RemediationWorkflow", first)
    assert word(registered(world, first, "Superseded"), "registration") == ("Superseded",)


def test_a_tenants_workflow_is_registered_by_nobody_and_takes_no_place(world: World, made: list[Object]) -> None:
    """With the id of the starter catalogue's, a later version, and an account that may do more."""
    home = world.api.get("RemediationWorkflow", "increase-memory-limit", NAMESPACE)
    execution = {**home["spec"]["execution"], "serviceAccountName": "workflow-cordon-node"}
    spec = {**home["spec"], "version": "99.0.0", "execution": execution}
    meta = {"name": "mine-is-better", "namespace": world.namespace}
    head = {"apiVersion": home["apiVersion"], "kind": "RemediationWorkflow", "metadata": meta}
    made.append(world.api.create({**head, "spec": spec}))
    action = {"apiVersion": home["apiVersion"], "kind": "ActionType", "metadata": {**meta, "name": "tenants-own"}}
    words = {"name": "TenantsOwn", "what": "anything", "whenToUse": "always"}
    made.append(world.api.create({**action, "spec": words}))

    for kind, name in (("RemediationWorkflow", "mine-is-better"), ("ActionType", "tenants-own")):
        told = world.shows(kind, name, lambda seen: "registration" in seen.get("status", {}))["status"]
        assert (told["registration"], told["message"]) == (
            "Invalid",
            f"metadata.namespace: the catalogue is read from {NAMESPACE} only; apply it there",
        )
    world.broken()
    case = world.case(world.signal(), "AwaitingApproval", "Executing")

    assert case["status"]["selectedWorkflow"]["version"] == home["spec"]["version"]
    again = world.api.get("RemediationWorkflow", "increase-memory-limit", NAMESPACE)
    assert again["status"]["registration"] == "Active"


def test_two_action_types_of_one_name_are_a_conflict(world: World, made: list[Object]) -> None:
    name = f"Action{uuid4().hex[:6]}"
    found = [_action(world, made, name, f"{name.lower()}-{number}") for number in range(2)]

    seen = [
        world.shows(
            "ActionType",
            one["metadata"]["name"],
            lambda seen: "registration" in seen.get("status", {}),
            namespace=NAMESPACE,
        )
        for one in found
    ]

    assert sorted(conditions(one)["Registered"] for one in seen) == [("False", "Conflict"), ("True", "Registered")]


def test_a_workflow_that_went_while_nobody_watched_is_not_offered_any_more(world: World, made: list[Object]) -> None:
    id_ = f"w-{uuid4().hex[:6]}"
    found = workflow(made, world, id_)
    before = registered(world, found, "Active")["status"]["workflowId"]
    world.operator.stop()
    world.api.delete("RemediationWorkflow", found["metadata"]["name"], NAMESPACE)
    world.operator.start()

    again = workflow(made, world, id_)

    assert registered(world, again, "Active")["status"]["workflowId"] == before
    disabled = [line for line in world.operator.lines() if "disable" in str(line.get("event", "")).lower()]
    assert disabled


def test_an_investigation_of_a_person_needs_no_signal(world: World) -> None:
    world.broken()
    signal = {"name": "shop is slow", "severity": "high", "source": {"type": "Manual"}, "target": world.target()}
    meta = {"name": "by-hand", "namespace": world.namespace}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta}

    world.api.create({**body, "spec": {"signal": signal}})

    case = world.shows("Investigation", "by-hand", lambda seen: phase_of(seen) in ("AwaitingApproval", "Failed"))
    assert phase_of(case) == "AwaitingApproval"


def test_an_unknown_model_is_told(world: World) -> None:
    world.broken()
    signal = {"name": "shop is slow", "severity": "high", "source": {"type": "Manual"}, "target": world.target()}
    meta = {"name": "by-hand", "namespace": world.namespace}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta}

    world.api.create({**body, "spec": {"signal": signal, "model": "nobody-knows-it"}})

    case = world.shows("Investigation", "by-hand", lambda seen: phase_of(seen) in ("AwaitingApproval", "Failed"))
    assert conditions(case)["ModelAvailable"] == ("False", "UnknownModel")


def test_an_execution_that_no_case_made_is_not_run(world: World) -> None:
    """Reliability 12: one without its slot ends as a configuration error."""
    world.broken()
    request = world.asked(world.signal())
    world.approve(request)
    case = world.case_of(request, "Executing")
    real = world.execution(case, "Running")
    meta = {"name": "forged", "namespace": world.namespace}
    spec = real["spec"] | {"target": real["spec"]["target"] | {"name": "other"}}

    world.api.create({"apiVersion": real["apiVersion"], "kind": real["kind"], "metadata": meta, "spec": spec})

    forged = world.shows("WorkflowExecution", "forged", lambda seen: phase_of(seen) in ("Failed", "Running"))
    assert word(forged, "phase", "reason") == ("Failed", "ConfigurationError")


def _parameter(name: str) -> Object:
    return {"name": name, "type": "string", "required": False, "description": "said why"}


def _action(world: World, made: list[Object], name: str, resource: str) -> Object:
    spec = {"name": name, "what": f"does it {resource}", "whenToUse": "now"}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "ActionType"}
    made.append(world.api.create({**body, "metadata": {"name": resource, "namespace": NAMESPACE}, "spec": spec}))
    world.shows("ActionType", resource, lambda seen: "registration" in seen.get("status", {}), namespace=NAMESPACE)
    return made[-1]


def test_a_pattern_that_does_not_run_in_linear_time_is_refused_with_its_fault(world: World, made: list[Object]) -> None:
    """The attack itself runs in linear time, and is nothing to refuse."""
    one = {"name": "WORD", "type": "string", "required": False, "description": "a word"}
    ahead = workflow(made, world, f"w-{uuid4().hex[:6]}", parameters=[{**one, "pattern": "^(?=a)a*b$"}])
    slow = workflow(made, world, f"w-{uuid4().hex[:6]}", parameters=[{**one, "pattern": "^a*a*a*a*a*b$"}])

    invalid = registered(world, ahead, "Invalid", "Active")
    assert conditions(invalid)["Valid"] == ("False", "ParametersInvalid")
    assert "the pattern of WORD is no expression of RE2" in invalid["status"]["message"]
    assert registered(world, slow, "Invalid", "Active")["status"]["registration"] == "Active"
