"""What the catalogue disables while people apply, and what stands while its store is away (resources, 7.3 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inquest.api.catalogue import RemediationWorkflow
from inquest.api.refs import WorkflowPin
from inquest.api.types import VoidReason
from inquest.controllers.catalogue.controller import CatalogueController
from inquest.controllers.catalogue.live import (
    LiveCatalogue,
    WorkflowSources,
    content_hash,
    content_of,
    find_unsettled,
)
from inquest.controllers.guards import Guards
from inquest.controllers.ports import ControllerPorts
from inquest.core.cluster.context import ResourceContext
from inquest.core.remediation.proposal import Drift
from inquest.core.selection.catalogue import CatalogueFilters, Page, Workflow
from inquest.errors import Conflict, NotFound, Retryable, Unavailable
from inquest.ports.datastorage import RegisteredEntry
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.settings.settings import Settings
from tests.support.kube import proposal
from tests.support.tables import each_row
from tests.unit.controllers.signal.test_signals import HOME, World, as_served
from tests.unit.core import cases

ACTION = proposal("RemediationWorkflow")["spec"]["actionType"]
WITHOUT_ACTION = {
    "type": "Valid",
    "status": "False",
    "reason": "ActionTypeNotFound",
    "message": "no ActionType is named so",
    "lastTransitionTime": "2026-11-22T10:00:00Z",
    "observedGeneration": 1,
}


@dataclass
class Busy(World):
    """Right after the first of any two reads somebody applies a workflow, and another worker registers it."""

    coming: bool = True
    is_store_away: bool = False
    names_rung: list[str] = field(default_factory=list)
    registrations: list[RegisteredEntry] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        places = [place for place in self.held if place[0] == kind.kind and namespace in ("", place[1])]
        found = tuple(as_served(self.held[place]) for place in places)
        self._somebody_applies()
        return found

    async def registered(self) -> tuple[RegisteredEntry, ...]:
        found = tuple(self.registrations)
        self._somebody_applies()
        return found

    async def disable_workflow(self, id: str, reason: str) -> None:  # noqa: A002 - the port's word
        self.disabled.append(id)

    async def workflow(self, workflow_id: str, filters: CatalogueFilters) -> Workflow:
        raise Unavailable("DataStorage", "connection refused")

    def _somebody_applies(self) -> None:
        if self.coming:
            self.coming = False
            self.apply("new")

    def apply(self, name: str, **spec: Any) -> None:
        spec = proposal("RemediationWorkflow")["spec"] | {"id": name} | spec
        body = self.put("RemediationWorkflow", name, HOME, apiVersion="inquest.dev/v1alpha1", spec=spec)
        digest = content_hash(content_of(RemediationWorkflow.from_object(body)))
        self.registrations.append(RegisteredEntry(name, digest, "Active"))

    def register(self, name: str, kind: str = "RemediationWorkflow", **status: Any) -> None:
        """As the operator says of what is applied once it is in force, but for `status`."""
        body = self.held[kind, HOME, name]
        generation = body["metadata"].setdefault("generation", 1)
        told = {"registration": "Active", "workflowId": name, "observedGeneration": generation}
        if kind == "RemediationWorkflow":
            told["contentHash"] = content_hash(content_of(RemediationWorkflow.from_object(body)))
        body["status"] = told | status

    def of(self, name: str) -> Json:
        """The status of a workflow."""
        found: Json = self.held["RemediationWorkflow", HOME, name]["status"]
        return found

    def ringing(self) -> ControllerPorts:
        """The ports, with a list of who was rung."""

        def offer(kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
            self.names_rung.append(f"{kind.kind} {name}")

        return replace(self.ports(), offer=offer)

    async def register_action_type(self, name: str, description: Any) -> RegisteredEntry:
        return self._registered(name, "")

    async def register_workflow(self, content: str) -> RegisteredEntry:
        return self._registered("uuid", content_hash(content))

    def _registered(self, name: str, digest: str) -> RegisteredEntry:
        if self.is_store_away:
            raise Unavailable("DataStorage", "connection refused")
        return RegisteredEntry(name, digest, "Active")

    def act(self, **spec: Any) -> None:
        """The ActionType of what is applied."""
        spec = proposal("ActionType")["spec"] | {"name": ACTION} | spec
        self.put("ActionType", "action", HOME, apiVersion="inquest.dev/v1alpha1", spec=spec)


async def test_what_is_applied_during_a_sweep_is_no_orphan() -> None:
    world = Busy()
    world.act()
    world.apply("old")
    world.registrations.append(RegisteredEntry("gone", "0" * 64, "Active"))

    await CatalogueController(world.ports()).sweep()

    assert world.disabled == ["gone"]


async def test_what_has_lost_its_action_is_withdrawn() -> None:
    world = Busy(coming=False)
    world.act(name="AnotherAction")
    world.apply("left")

    await CatalogueController(world.ports()).sweep()

    assert world.disabled == ["left"]


async def test_an_action_that_cannot_be_read_is_not_taken_for_gone() -> None:
    world = Busy(coming=False)
    world.act(what=7)
    world.apply("kept")
    catalogue = CatalogueController(world.ports())

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
    catalogue = CatalogueController(world.ports())

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
    world.register("restart")

    assert await Guards(world.ports()).drift(TARGET, chosen(world, "restart"), SAME) is None


@pytest.mark.parametrize("change", [{"version": "9.0.0"}, {"description": {"what": "other", "whenToUse": "never"}}])
async def test_a_chosen_workflow_that_changed_is_seen_while_the_store_is_away(change: dict[str, Any]) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.register("restart")
    pin, told = chosen(world, "restart"), world.held["RemediationWorkflow", HOME, "restart"]["status"]

    world.apply("restart", **change)
    world.held["RemediationWorkflow", HOME, "restart"]["status"] = told

    found = await Guards(world.ports()).drift(TARGET, pin, SAME)
    changed = next(one.content_hash for one in reversed(world.registrations))
    assert found == Drift(VoidReason.WORKFLOW_CHANGED, pin.content_hash, changed)


@pytest.mark.parametrize("stands", ["Disabled", "Superseded", "Invalid"])
async def test_what_the_catalogue_had_taken_out_stays_out_while_the_store_is_away(stands: str) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.register("restart", registration=stands)
    pin = chosen(world, "restart")

    found = await Guards(world.ports()).drift(TARGET, pin, SAME)

    assert found == Drift(VoidReason.WORKFLOW_CHANGED, pin.content_hash, pin.content_hash)


@pytest.mark.parametrize("stands", [{"registration": "Pending"}, {"observedGeneration": 0}])
async def test_a_workflow_that_is_not_registered_yet_is_waited_for(stands: dict[str, Any]) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.register("restart", **stands)

    with pytest.raises(Retryable, match="inquest-system/restart is not registered yet"):
        await Guards(world.ports()).drift(TARGET, chosen(world, "restart"), SAME)


@pytest.mark.parametrize("marked", [False, True], ids=["gone", "being deleted"])
async def test_a_deleted_workflow_is_not_used_though_the_store_still_offers_it(marked: bool) -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.register("restart")
    pin = chosen(world, "restart")
    if marked:
        world.held["RemediationWorkflow", HOME, "restart"]["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    else:
        world.held.clear()

    found = await Guards(world.ports()).drift(TARGET, pin, SAME)

    assert found == Drift(VoidReason.WORKFLOW_CHANGED, pin.content_hash, "")


# --- who waits for what -------------------------------------------------------------------------------------------


async def test_an_action_type_that_comes_rings_the_workflows_that_wait_for_it() -> None:
    world = Busy(coming=False)
    world.apply("restart")
    world.apply("other", actionType="AnotherAction")
    catalogue = CatalogueController(world.ringing())
    assert await catalogue.workflow(HOME, "restart") is None, "nothing polls for an ActionType"
    assert world.of("restart")["registration"] == "Invalid"

    world.act()
    await catalogue.action_type(HOME, "action")

    assert world.names_rung == ["RemediationWorkflow restart"]
    await catalogue.workflow(HOME, "restart")
    assert world.of("restart")["registration"] == "Active"


async def test_an_action_type_that_was_active_already_rings_nobody() -> None:
    world = Busy(coming=False)
    world.act()
    world.apply("restart")
    catalogue = CatalogueController(world.ringing())
    await catalogue.action_type(HOME, "action")
    world.names_rung.clear()

    await catalogue.action_type(HOME, "action")

    assert world.names_rung == []


async def test_a_workflow_that_registers_rings_the_signals_that_wait_for_a_person() -> None:
    world = Busy(coming=False)
    world.act()
    world.apply("restart")
    for name, reason in (("held", "ManualReviewPending"), ("cooling", "Cooldown")):
        world.signal(name)["status"] = {"phase": "Blocked", "reason": reason}

    await CatalogueController(world.ringing()).workflow(HOME, "restart")

    assert [one for one in world.names_rung if one.startswith("Signal")] == ["Signal held"]


@pytest.mark.parametrize(
    ("before", "is_new"),
    [
        pytest.param({"registration": "Active"}, False, id="in force all along"),
        pytest.param({"registration": "Pending"}, False, id="its store was away"),
        pytest.param({"registration": "Active", "contentHash": "0" * 64}, True, id="another content"),
        pytest.param({"registration": "Invalid"}, True, id="refused before"),
    ],
)
async def test_what_was_in_force_with_this_content_keeps_the_time_of_its_registration(
    before: dict[str, Any], is_new: bool
) -> None:
    world = Busy(coming=False)
    world.act()
    world.apply("restart")
    world.register("restart", registeredAt="2026-11-01T00:00:00Z", **before)

    await CatalogueController(world.ports()).workflow(HOME, "restart")

    assert (world.of("restart")["registeredAt"] != "2026-11-01T00:00:00Z") is is_new


@each_row(
    ("change", "waits_for"),
    [
        pytest.param({}, "", id="settled"),
        pytest.param({"observedGeneration": 0}, "RemediationWorkflow inquest-system/restart", id="not looked at yet"),
        pytest.param({"registration": "Pending"}, "RemediationWorkflow inquest-system/restart", id="pending"),
        pytest.param({"registration": "Superseded"}, "", id="superseded"),
        pytest.param({"registration": "Invalid"}, "", id="refused for a fault of its own"),
        pytest.param(
            {"registration": "Invalid", "conditions": [WITHOUT_ACTION]},
            "RemediationWorkflow inquest-system/restart",
            id="refused for want of an ActionType that is there",
        ),
    ],
)
async def test_a_catalogue_is_settled_when_all_that_is_wanted_of_it_is(change: dict[str, Any], waits_for: str) -> None:
    world = Busy(coming=False)
    world.act()
    world.register("action", "ActionType")
    world.apply("restart")
    world.register("restart", **change)

    assert await find_unsettled(world.ports().status, WorkflowSources(HOME), "", (ACTION,)) == waits_for
    assert await find_unsettled(world.ports().status, WorkflowSources(HOME), "", ()) == waits_for
    assert await find_unsettled(world.ports().status, WorkflowSources(HOME), "", ("RestartPod",)) == "", (
        "nobody waits for what is not wanted"
    )


async def test_a_workflow_without_its_action_type_is_not_waited_for() -> None:
    world = Busy(coming=False)
    world.apply("restart")
    conditions = [WITHOUT_ACTION]
    world.register("restart", registration="Invalid", conditions=conditions)

    assert await find_unsettled(world.ports().status, WorkflowSources(HOME), "", ()) == ""


async def test_the_first_fill_names_what_is_not_registered_yet_and_stops_at_nothing_else() -> None:
    world = Busy(coming=False)
    world.act()
    world.apply("restart")
    world.put("RemediationWorkflow", "broken", HOME, apiVersion="inquest.dev/v1alpha1", spec={"id": 7})
    catalogue = CatalogueController(world.ports())

    world.is_store_away = True
    assert "ActionType inquest-system/action: DataStorage is unavailable" in await catalogue.fill()
    world.is_store_away = False
    assert await catalogue.fill() == ""


async def test_what_another_writes_during_the_first_fill_keeps_the_rest_from_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Busy(coming=False)
    world.act()
    world.apply("restart")
    catalogue = CatalogueController(world.ports())
    look, conflicts = catalogue.action_type, [Conflict("the object has been modified")]

    async def look_late(namespace: str, name: str) -> Any:
        if conflicts:
            raise conflicts.pop()
        return await look(namespace, name)

    monkeypatch.setattr(CatalogueController, "action_type", lambda _, *place: look_late(*place))

    assert await catalogue.fill() == "ActionType inquest-system/action: the object has been modified"
    assert world.held["RemediationWorkflow", HOME, "restart"]["status"]["registration"] == "Active"
    assert await catalogue.fill() == ""


async def test_what_is_deleted_keeps_nobody_waiting() -> None:
    world = Busy(coming=False, is_store_away=True)
    world.act()
    catalogue = CatalogueController(world.ports())
    await catalogue.fill()
    assert catalogue.unsettled()

    world.held.clear()
    await catalogue.deleted(HOME, "action")

    assert catalogue.unsettled() == ""


# --- workflows that teams keep ------------------------------------------------------------------------------------

LISTING = Settings(execution={"workflow_namespaces": ["shop", "pay"]})


def keep(world: Busy, namespace: str, name: str, made: str, **spec: Any) -> Json:
    """A workflow of a team, applied on that day of November, and as the operator says of it by now."""
    spec = proposal("RemediationWorkflow")["spec"] | {"id": "restart", "actionType": ACTION} | spec
    meta = {"name": name, "namespace": namespace, "creationTimestamp": f"2026-11-{made}T10:00:00Z"}
    return world.put(
        "RemediationWorkflow", name, namespace, apiVersion="inquest.dev/v1alpha1", metadata=meta, spec=spec
    )


async def looked_at(world: Busy, *kept: Json) -> list[tuple[str, str]]:
    """What the operator says of each: registration, and what is valid about it."""
    catalogue = CatalogueController(world.ports())
    for found in kept:
        await catalogue.workflow(found["metadata"]["namespace"], found["metadata"]["name"])
    statuses = [RemediationWorkflow.from_object(found).status for found in kept]
    valid = [status.condition("Valid") for status in statuses]
    return [(str(one.registration), why.reason if why else "") for one, why in zip(statuses, valid, strict=True)]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (("shop", "21"), ("pay", "20"), [("Invalid", "IdTaken"), ("Active", "Valid")]),
        (("shop", "20"), ("pay", "21"), [("Active", "Valid"), ("Invalid", "IdTaken")]),
        (("shop", "20"), (HOME, "21"), [("Invalid", "IdTaken"), ("Active", "Valid")]),
        (("elsewhere", "20"), ("shop", "21"), [("Invalid", "Pending"), ("Active", "Valid")]),
    ],
    ids=["the older has it", "the older has it, the other way round", "the operator's has it", "nobody reads that one"],
)
async def test_an_id_belongs_to_one_namespace(
    first: tuple[str, str], second: tuple[str, str], told: list[tuple[str, str]]
) -> None:
    world = Busy(coming=False, settings=LISTING)
    world.act()
    kept = [keep(world, first[0], "one", first[1]), keep(world, second[0], "two", second[1], version="9.0.0")]

    assert await looked_at(world, *kept) == told


async def test_whose_id_the_operators_namespace_takes_is_looked_at_again_and_withdrawn() -> None:
    world = Busy(coming=False, settings=LISTING)
    world.act()
    theirs = keep(world, "shop", "theirs", "20")
    assert await looked_at(world, theirs) == [("Active", "Valid")]
    world.registrations.append(RegisteredEntry("theirs", theirs["status"]["contentHash"], "Active"))
    ours = keep(world, HOME, "ours", "21", version="9.0.0")

    await CatalogueController(world.ringing()).workflow(HOME, ours["metadata"]["name"])
    await CatalogueController(world.ports()).sweep()

    assert "RemediationWorkflow theirs" in world.names_rung
    assert world.disabled == ["theirs"]
    assert await looked_at(world, theirs) == [("Invalid", "IdTaken")]
    del world.held["RemediationWorkflow", HOME, "ours"]
    world.names_rung.clear()
    await CatalogueController(world.ringing()).sweep()
    assert world.names_rung == ["RemediationWorkflow theirs"]


@pytest.mark.parametrize(("namespace", "is_in_force"), [("shop", True), ("pay", False), (None, False)])
async def test_a_teams_workflow_is_used_for_what_stands_in_its_own_namespace_alone(
    namespace: str | None, is_in_force: bool
) -> None:
    world = Busy(coming=False, settings=LISTING)
    world.act()
    theirs = keep(world, "shop", "theirs", "20")
    await looked_at(world, theirs)
    digest = theirs["status"]["contentHash"]
    pin = WorkflowPin(id="restart", version="1.0.0", action_type=ACTION, content_hash=digest, engine="job")
    target = TARGET.model_copy(update={"namespace": namespace})
    filters = CatalogueFilters("high", "Deployment", "production", "P1", namespace=namespace or "")
    offered = LiveCatalogue(cast(Any, Store(digest)), world.ports().status, world.ports().workflow_sources)

    drift = await Guards(world.ports()).drift(target, pin, replace(SAME, target=target, root=target, target_pin=target))

    assert (drift is None) is is_in_force
    assert bool((await offered.workflows(ACTION, filters)).items) is is_in_force
    found = offered.workflow("uuid", filters)
    if is_in_force:
        assert (await found).content_hash == digest
    else:
        with pytest.raises(NotFound, match="no active RemediationWorkflow in inquest-system"):
            await found


@dataclass(frozen=True)
class Store:
    """DataStorage, which finds the one workflow for everybody."""

    digest: str

    async def workflow(self, workflow_id: str, filters: CatalogueFilters | None) -> Any:
        return SimpleNamespace(content_hash=self.digest)

    async def workflows(self, action: str, filters: CatalogueFilters, offset: int, limit: int) -> Page[Any]:
        return Page((SimpleNamespace(workflow_id="uuid"),), 0, 10, False)
