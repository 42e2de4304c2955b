"""A case that meets a catalogue which has just come, or comes back, gets its workflow; what is gone is never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inquest.api.installation import NAMESPACE
from tests.support.api import Object
from tests.support.control_plane import CATALOGUE
from tests.support.world import World, phase_of, word

pytestmark = [pytest.mark.xdist_group("story-catalogue"), pytest.mark.timeout(900)]

KINDS = ("RemediationWorkflow", "ActionType")
INSTALLS = 6
WAITING = 8
"""Signals that wait for the operator to come back."""
OURS = "increase-memory-limit"


def shipped(kind: str) -> list[Object]:
    """The objects of this kind of the starter catalogue."""
    texts = (path.read_text() for path in sorted(CATALOGUE.glob("*.yaml")))
    bodies = [body for text in texts for body in yaml.safe_load_all(text) if body["kind"] == kind]
    return [body | {"metadata": body["metadata"] | {"namespace": NAMESPACE}} for body in bodies]


def uninstall(world: World) -> None:
    """Take the whole catalogue away."""
    for kind in KINDS:
        for found in world.api.list(kind, NAMESPACE):
            world.api.delete(kind, found["metadata"]["name"], NAMESPACE)
    world.until(lambda: not any(world.api.list(kind, NAMESPACE) for kind in KINDS), "the catalogue is gone")


def install(world: World, *kinds: str) -> None:
    """Bring it, each workflow before its ActionType unless told: the order in which it is worst."""
    for kind in kinds or KINDS:
        for body in shipped(kind):
            world.api.create(body)


def our_workflow(world: World) -> Object:
    return next(one for one in world.api.list("RemediationWorkflow", NAMESPACE) if one["spec"]["id"] == OURS)


def is_in_force(world: World) -> bool:
    return bool(our_workflow(world).get("status", {}).get("registration") == "Active")


def test_a_signal_in_the_second_of_the_install_gets_its_workflow(world: World) -> None:
    for number in range(INSTALLS):
        name = f"shop-{number}"
        world.broken(name)
        uninstall(world)

        install(world)
        signal = world.signal(world.target(name))

        case = world.case(signal, "AwaitingApproval")
        assert case["status"]["selectedWorkflow"]["id"] == OURS


@pytest.mark.parametrize("keeps", [True, False], ids=["a full store", "an empty store"])
def test_signals_right_after_a_restart_get_their_workflow(world: World, keeps: bool) -> None:
    names = [f"shop-{number}" for number in range(WAITING)]
    for name in names:
        world.broken(name)
    world.operator.stop()
    if not keeps:
        for path in world.operator.folder.glob("inquest.db*"):
            path.unlink()
    signals = [world.signal(world.target(name)) for name in names]

    world.operator.start()

    for signal in signals:
        assert world.case(signal, "AwaitingApproval")["status"]["selectedWorkflow"]["id"] == OURS


def test_a_hold_for_want_of_a_workflow_ends_when_it_comes(world: World) -> None:
    world.broken()
    uninstall(world)
    ended = world.case(world.handed_on())
    assert word(ended, "subReason", "wantedActions") == ("NoMatchingWorkflows", ["IncreaseMemoryLimits"])
    held = world.handed_on()
    assert world.triaged(held, "Blocked")["status"]["reason"] == "ManualReviewPending"

    install(world, "ActionType", "RemediationWorkflow")

    # The hold is for a day.
    assert world.case(held, "AwaitingApproval")["status"]["selectedWorkflow"]["id"] == OURS


def deleted(world: World) -> None:
    world.api.delete("RemediationWorkflow", our_workflow(world)["metadata"]["name"], NAMESPACE)


def edited(world: World) -> None:
    change = {"spec": {"version": "99.0.0", "execution": {"args": ["something", "else"]}}}
    world.api.change("RemediationWorkflow", our_workflow(world)["metadata"]["name"], NAMESPACE, change)


def without_its_action(world: World) -> None:
    found = world.api.list("ActionType", NAMESPACE)
    name = next(one["metadata"]["name"] for one in found if one["spec"]["name"] == "IncreaseMemoryLimits")
    world.api.delete("ActionType", name, NAMESPACE)
    world.until(lambda: not is_in_force(world), "the workflow is withdrawn")


CHANGES: dict[str, tuple[Callable[[World], None], str]] = {
    "deleted": (deleted, f"workflow {OURS} is gone from the catalogue"),
    "edited": (edited, f"workflow {OURS} has changed since this was proposed"),
    "withdrawn": (without_its_action, f"workflow {OURS} is no longer offered by the catalogue"),
}


@pytest.fixture
def restored(world: World) -> Any:
    """The catalogue as it ships, afterwards too."""
    yield
    uninstall(world)
    install(world)
    world.until(lambda: is_in_force(world), "the catalogue is back")


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES.keys())
def test_what_was_chosen_and_is_no_longer_there_is_never_run(
    world: World, restored: None, change: Callable[[World], None], said: str
) -> None:
    world.broken()
    request = world.asked(world.signal())

    change(world)
    # Refused where the request has been voided meanwhile.
    world.decide(request, "Approved")

    ended = world.case_of(request, "Completed", "Failed", "Cancelled", "Executing")
    assert word(ended, "phase", "subReason") == ("Failed", "WorkflowChanged")
    shown = world.api.get("RemediationApprovalRequest", request["metadata"]["name"], request["metadata"]["namespace"])
    assert word(shown, "phase", "voidReason") == ("Voided", "WorkflowChanged")
    voided = next(one for one in shown["status"]["conditions"] if one["type"] == "ApprovalVoided")
    assert voided["message"] == said
    assert ended["status"]["message"].endswith(f"; {said}")
    assert world.api.list("WorkflowExecution", world.namespace) == []


@pytest.mark.parametrize("change", [deleted, edited], ids=["deleted", "edited"])
def test_what_was_approved_and_is_no_longer_there_is_never_run(
    world: World, restored: None, change: Callable[[World], None]
) -> None:
    """An approval is held by the switch; the workflow goes meanwhile."""
    world.broken()
    request = world.asked(world.signal())
    world.api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inquest-freeze", "namespace": NAMESPACE}}
    )
    try:
        world.approve(request)
        case = world.case_of(request, "AwaitingApproval")
        world.tells(case, "EffectsFrozen")

        change(world)
    finally:
        world.api.delete("ConfigMap", "inquest-freeze", NAMESPACE)
    world.touch("Investigation", case)

    ended = world.case_of(request, "Completed", "Failed", "Cancelled", "Executing")
    assert word(ended, "phase", "subReason") == ("Failed", "WorkflowChanged")
    assert [phase_of(one) for one in world.api.list("WorkflowExecution", world.namespace)] == []
