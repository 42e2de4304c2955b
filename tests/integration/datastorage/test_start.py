"""What an operator does first: an empty database is filled from the resources before anything is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.controllers.catalogue.controller import CatalogueController
from inquest.controllers.runtime.dispatcher import Dispatcher
from inquest.controllers.runtime.request import ReconcileKey
from inquest.core.redaction.redactor import Redactor
from inquest.datastorage.store.database import prepare
from inquest.datastorage.store.opening import open_database
from inquest.errors import Misconfigured
from inquest.operator.process import Process
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.settings.settings import Settings
from tests.integration.datastorage.served import embedded
from tests.unit.controllers.signal.test_signals import HOME, World

SHIPPED = Path(__file__).resolve().parents[3] / "catalogue"
BOUND = 60.0


@dataclass
class Cluster(World):
    """The shipped catalogue as it was applied."""

    workflows: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        bodies = (body for path in sorted(SHIPPED.glob("*.yaml")) for body in yaml.safe_load_all(path.read_text()))
        for body in bodies:
            if body["kind"] in ("ActionType", "RemediationWorkflow"):
                self.put(body["kind"], body["metadata"]["name"], HOME, spec=body["spec"])
            if body["kind"] == "RemediationWorkflow":
                self.workflows.add(body["spec"]["id"])

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        return tuple(obj for place, obj in self.held.items() if place[0] == kind.kind)


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[DataStorageClient]:
    """The bundled service on a database that holds nothing yet."""
    async with embedded(f"sqlite:///{tmp_path}/empty.db") as found:
        yield found.client


async def test_a_case_that_waits_at_the_start_meets_a_full_catalogue(empty: DataStorageClient) -> None:
    cluster, met, looked, triaged = Cluster(), set[str](), asyncio.Event(), asyncio.Event()
    catalogue = CatalogueController(replace(cluster.ports(), datastorage=empty))

    async def look(namespace: str, name: str) -> timedelta | None:
        met.update(held.name for held in await empty.registered())
        looked.set()
        return None

    async def triage(namespace: str, name: str) -> timedelta | None:
        triaged.set()
        return None

    async def never(namespace: str, name: str) -> timedelta | None:
        raise AssertionError(f"nobody rang for {name}")

    async def recall() -> None:
        assert not looked.is_set()

    kinds = ("RemediationApprovalRequest", "Advice", "WorkflowExecution", "Catalogue")
    looks = {"ActionType": catalogue.action_type, "RemediationWorkflow": catalogue.workflow}
    looks = {**dict.fromkeys(kinds, never), **looks, "Signal": triage, "Investigation": look}
    reconcilers = SimpleNamespace(looks=looks, catalogue=catalogue, recall=recall)
    adapters: Any = SimpleNamespace(reconcilers=reconcilers, clock=SystemClock())
    process = Process(Settings(), Redactor(), too_many=())
    dispatcher = Dispatcher(process._lanes(adapters), SystemClock())

    for kind in ("Investigation", "Signal"):
        dispatcher.offer(ReconcileKey(kind, f"uid-{kind}", HOME, kind.lower()))
    await process.begin(adapters, dispatcher)
    async with asyncio.timeout(BOUND):
        await triaged.wait()
        assert not looked.is_set(), "only cases wait for the catalogue"
        filling = asyncio.create_task(process._fill_catalogue(adapters))
        await looked.wait()
    filling.cancel()
    await dispatcher.stop()

    assert met == cluster.workflows
    assert len(met) > 5


async def test_a_database_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    nowhere, garbage = tmp_path / "absent" / "inquest.db", tmp_path / "garbage.db"
    garbage.write_bytes(b"not a database at all, but long enough to have a header of its own " * 20)

    for place, why in ((nowhere, "unable to open database file"), (garbage, "file is not a database")):
        database = open_database(f"sqlite:///{place}")
        with pytest.raises(Misconfigured) as raised:
            await prepare(database)
        await database.close()
        assert str(place) in str(raised.value)
        assert why in str(raised.value)
        assert ("has to be there" in str(raised.value)) is (place == nowhere)
