"""What the API server thinks of a status stops no case, and nothing happens in the dark.

Text of the cluster and of whoever sends a Signal comes in every alphabet; a stranger's admission policy may refuse what
Inquest writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from inquest.api.installation import EXECUTION_NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import World, phase_of

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True

ODD = "\U0001f4a5 \U00010348 e\u0301 \u202egnp.exe\u202c \u2028 \x85 \ufeff \ufffe \x7f"
"""Beyond the basic plane, combining, bidirectional, line separators, a byte order mark, no character, a control."""


@pytest.fixture
def world(inhabit: Inhabit) -> World:
    """Where the policy asks nobody: what is ruled runs at once."""
    return inhabit("staging")


def test_a_case_full_of_odd_characters_comes_to_its_end(world: World) -> None:
    """In the name of the Signal, its message, its labels, an argument and a variable of the target."""
    container: dict[str, Any] = {"args": [ODD], "env": [{"name": "GREETING", "value": ODD}]}
    world.broken(**container)
    told: dict[str, Any] = {
        "name": f"Crash {ODD}",
        "message": ODD,
        "labels": {"pod": ODD},
        "annotations": {"summary": ODD},
    }

    case = world.case(world.signal(**told), "Executing")
    execution = world.execution(case, "Running")
    world.heal()
    world.finish(world.job(execution))

    assert phase_of(world.reaches("Investigation", case, "Completed", "Failed")) == "Completed"


@pytest.mark.parametrize("odd", [ODD, "\U0001f4a5" * 1000], ids=["every kind", "a thousand of one"])
def test_a_case_full_of_odd_characters_can_be_cancelled(world: World, odd: str) -> None:
    world.deployment(args=[odd])
    world.crash()
    case = world.opened(world.signal(message=odd[:4000]))

    world.api.change("Investigation", case["metadata"]["name"], world.namespace, {"spec": {"cancel": True}})

    assert phase_of(world.reaches("Investigation", case, "Cancelled", "Completed")) in ("Cancelled", "Completed")


@contextmanager
def refusing(world: World, expression: str, kind: str = "investigations", reason: str = "Invalid") -> Iterator[None]:
    """Somebody's admission policy does not take a status of this kind in this namespace."""
    name = f"stranger-{world.namespace}"
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    rules = [
        {"apiGroups": ["inquest.dev"], "operations": ["UPDATE"], "resources": [f"{kind}/status"]},
        {"apiGroups": [""], "operations": ["CREATE"], "resources": ["configmaps"]},
    ]
    unwanted = f"request.resource.resource == 'configmaps' ? false : {expression}"
    policy: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{**rule, "apiVersions": ["*"]} for rule in rules],
            "namespaceSelector": only_here,
        },
        "validations": [{"expression": unwanted, "message": "this status is not wanted", "reason": reason}],
    }
    made = [
        world.api.create(_policy("ValidatingAdmissionPolicy", name, policy)),
        world.api.create(
            _policy("ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": ["Deny"]})
        ),
    ]
    try:
        world.until(lambda: not _is_made(world), "the policy is in effect")
        yield
    finally:
        for one in reversed(made):
            world.api.delete(one["kind"], name, "")


def _is_made(world: World) -> bool:
    return world.kubectl.ask("create", "configmap", "probe", "--dry-run=server").accepted


def _policy(kind: str, name: str, spec: dict[str, Any]) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize("reason", ["Invalid", "Forbidden"])
def test_nothing_is_done_for_a_case_whose_status_is_refused_and_it_can_be_cancelled(world: World, reason: str) -> None:
    world.broken()

    with refusing(world, "!has(object.status.rootCause)", reason=reason):
        case = world.opened(world.signal())
        name = case["metadata"]["name"]
        held = world.shows(
            "Investigation", name, lambda seen: "not wanted" in seen.get("status", {}).get("message", "")
        )
        world.tells(held, "StatusRefused")
        held = world.reaches("Investigation", case, "Analyzing")
        world.api.change("Investigation", name, world.namespace, {"spec": {"cancel": True}})
        ended = world.reaches("Investigation", case, "Cancelled")

    assert "rootCause" not in held["status"]
    assert world.api.list("WorkflowExecution", world.namespace) == []
    assert phase_of(ended) == "Cancelled"


def test_a_case_goes_on_when_its_status_is_taken_again(world: World) -> None:
    world.broken()

    with refusing(world, "!has(object.status.rootCause)"):
        case = world.opened(world.signal())
        world.reaches("Investigation", case, "Analyzing")
        assert world.api.list("WorkflowExecution", world.namespace) == []

    shown = world.reaches("Investigation", case, "Executing")
    assert shown["status"]["rootCause"]["summary"]


def test_no_job_is_made_for_an_execution_whose_status_cannot_be_written(world: World) -> None:
    """Not even its least form is taken; as soon as one is, it runs."""
    world.broken()

    with refusing(world, "false", "workflowexecutions"):
        case = world.case(world.signal(), "Executing")
        made = world.api.get("WorkflowExecution", f"wfe-{case['metadata']['name']}", world.namespace)
        for _ in range(5):
            world.touch("WorkflowExecution", made)
            time.sleep(1)
        label = f"inquest.dev/execution={made['metadata']['uid']}"
        assert world.api.list("Job", EXECUTION_NAMESPACE, labels=label) == []

    world.touch("WorkflowExecution", made)
    running = world.execution(case, "Running")
    assert world.job(running)["metadata"]["labels"]["inquest.dev/execution"] == made["metadata"]["uid"]
