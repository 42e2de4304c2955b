"""What the catalogue disables while people apply, and what stands while its store is away (resources, 7.3 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from inquest.api.catalogue import RemediationWorkflow
from inquest.api.shared import VoidReason, WorkflowPin
from inquest.conductor.catalogue import Catalogue, content_hash, content_of
from inquest.conductor.guards import Guards
from inquest.errors import Unavailable
from inquest.ports import Json, Registration, ResourceKind
from inquest.story.context import ResourceContext
from inquest.story.remedy import Drift
from inquest.story.selection import CatalogueFilters, WorkflowRecord
from tests.cluster.kube import proposal
from tests.story import cases
from tests.story.test_signals import HOME, World


@dataclass
class Busy(World):
    """Right after the first of any two reads somebody applies a workflow, and another worker registers it."""

    coming: bool = True
    registrations: list[Registration] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        found = tuple(obj for place, obj in self.held.items() if place[0] == kind.kind and namespace in ("", place[1]))
        self._somebody_applies()
        return found

    async def registered(self) -> tuple[Registration, ...]:
        found = tuple(self.registrations)
        self._somebody_applies()
        return found

    async def disable_workflow(self, id: str, reason: str) -> None:  # noqa: A002 - the port's word
        self.disabled.append(id)

    async def workflow(self, workflow_id: str, filters: CatalogueFilters) -> WorkflowRecord:
        raise Unavailable("DataStorage", "connection refused")

    def _somebody_applies(self) -> None:
        if self.coming:
            self.coming = False
            self.apply("new")

    def apply(self, name: str, **spec: Any) -> None:
        spec = proposal("RemediationWorkflow")["spec"] | {"id": name} | spec
        body = self.put("RemediationWorkflow", name, HOME, apiVersion="inquest.dev/v1alpha1", spec=spec)
        digest = content_hash(content_of(RemediationWorkflow.from_object(body)))
        self.registrations.append(Registration(name, digest, "Active"))

    def act(self, **spec: Any) -> None:
        """The ActionType of what is applied."""
        spec = proposal("ActionType")["spec"] | {"name": proposal("RemediationWorkflow")["spec"]["actionType"]} | spec
        self.put("ActionType", "action", HOME, apiVersion="inquest.dev/v1alpha1", spec=spec)


async def test_what_is_applied_during_a_sweep_is_no_orphan() -> None:
    world = Busy()
    world.act()
    world.apply("old")
    world.registrations.append(Registration("gone", "0" * 64, "Active"))

    await Catalogue(world.house()).sweep()

    assert world.disabled == ["gone"]


async def test_what_has_lost_its_action_is_withdrawn() -> None:
    world = Busy(coming=False)
    world.act(name="AnotherAction")
    world.apply("left")

    await Catalogue(world.house()).sweep()

    assert world.disabled == ["left"]


async def test_an_action_that_cannot_be_read_is_not_taken_for_gone() -> None:
    world = Busy(coming=False)
    world.act(what=7)
    world.apply("kept")
    catalogue = Catalogue(world.house())

    await catalogue.sweep()
    with pytest.raises(Unavailable, match="cannot be read"):
        await catalogue.workflow(HOME, "kept")

    assert world.disabled == []
    assert "registration" not in world.held["RemediationWorkflow", HOME, "kept"].get("status", {})


async def test_what_stands_in_another_namespace_is_not_registered_and_hides_nothing_that_is_missing() -> None:
    world = Busy(coming=False)
    world.apply("ours")
    ours, spec = world.held["RemediationWorkflow", HOME, "ours"], proposal("ActionType")["spec"]
    action = ours["spec"]["actionType"]
    world.put("ActionType", "theirs", "shop", apiVersion="inquest.dev/v1alpha1", spec={**spec, "name": action})
    world.put("RemediationWorkflow", "theirs", "shop", apiVersion="inquest.dev/v1alpha1", spec=ours["spec"])
    catalogue = Catalogue(world.house())

    await catalogue.workflow("shop", "theirs")
    await catalogue.action_type("shop", "theirs")
    await catalogue.workflow(HOME, "ours")

    for kind in ("RemediationWorkflow", "ActionType"):
        told = world.held[kind, "shop", "theirs"]["status"]
        assert told["message"] == f"metadata.namespace: the catalogue is read from {HOME} only; apply it there"
    assert "no ActionType is named" in world.held["RemediationWorkflow", HOME, "ours"]["status"]["message"]


def chosen(world: Busy, name: str) -> WorkflowPin:
    """What a case has chosen, as it stands in the catalogue now."""
    found = next(one for one in world.registrations if one.name == name or one.id == name)
    return WorkflowPin(
        id=name,
        version="1.0.0",
        action_type="IncreaseMemoryLimits",
        content_hash=found.content_hash,
        engine="job",
    )


TARGET = cases.PINNED_DEPLOYMENT
SAME = ResourceContext(target=TARGET, root=TARGET, target_pin=TARGET)


async def test_a_chosen_workflow_that_stands_as_it_was_may_be_used_while_the_store_is_away() -> None:
    world = Busy(coming=False)
    world.apply("restart")

    assert await Guards(world.house()).drift(TARGET, chosen(world, "restart"), SAME) is None


@pytest.mark.parametrize("change", [{"version": "9.0.0"}, {"description": {"what": "other", "whenToUse": "never"}}])
async def test_a_chosen_workflow_that_changed_is_seen_while_the_store_is_away(change: dict[str, Any]) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    pin = chosen(world, "restart")

    world.apply("restart", **change)

    found = await Guards(world.house()).drift(TARGET, pin, SAME)
    changed = next(one.content_hash for one in reversed(world.registrations))
    assert found == Drift(VoidReason.WORKFLOW_CHANGED, pin.content_hash, changed)


@pytest.mark.parametrize(
    ("stands", "usable"), [("Pending", True), ("Active", True), ("Disabled", False), ("Superseded", False)]
)
async def test_what_the_catalogue_had_taken_out_stays_out_while_the_store_is_away(stands: str, usable: bool) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.held["RemediationWorkflow", HOME, "restart"]["status"] = {"registration": stands}

    found = await Guards(world.house()).drift(TARGET, chosen(world, "restart"), SAME)

    assert (found is None) is usable


async def test_a_workflow_that_is_registered_from_elsewhere_waits_for_the_store() -> None:
    world = Busy(coming=False)
    world.apply("restart")
    pin = chosen(world, "restart")
    world.held.clear()

    with pytest.raises(Unavailable, match="connection refused"):
        await Guards(world.house()).drift(TARGET, pin, SAME)
