"""The store of the trail goes in the middle of a case and comes back: same end, each record once (resources, 6.3)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
import yaml

from hack import postgres
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.kube import eventually
from tests.support.ports import own_port
from tests.support.world import SECONDS, World, conditions, word

pytestmark = [pytest.mark.xdist_group("story-datastorage-away"), pytest.mark.timeout(900)]

PORT = own_port()
URL = f"http://127.0.0.1:{PORT}"
SETTINGS = {"datastorage": {"mode": "external", "url": URL}}


@dataclass
class Store:
    """`inquest datastorage serve` on a PostgreSQL; either may die and come back."""

    folder: Path
    database: postgres.Postgres
    _server: subprocess.Popen[bytes] | None = field(default=None)

    def start_server(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "inquest.cli.main", "datastorage", "serve", "--settings", self._settings()],
                stdout=log,
                stderr=log,
                env=os.environ,
            )
        eventually(self._answers, what="DataStorage answers", seconds=SECONDS)

    def kill_server(self) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGKILL)
            self._server.wait()
            self._server = None

    def crash_database(self) -> None:
        self.database.stop("immediate")

    def start_database(self) -> None:
        self.database.start()

    def events_of(self, case: str) -> list[Object]:
        """The trail of a case, whole."""
        answer = httpx2.get(f"{URL}/api/v1/audit/events", params={"correlation_id": case, "limit": 1000}, timeout=30)
        answer.raise_for_status()
        found: list[Object] = answer.json()["data"]
        return found

    def _settings(self) -> str:
        path = self.folder / "settings.yaml"
        if not path.exists():
            server = {"port": PORT, "authentication": "none"}
            chosen = {"database": self.database.create("trail"), "server": server}
            ports = {"health_port": 0, "metrics_port": 0}
            path.write_text(yaml.safe_dump({"server": ports, "datastorage": chosen}))
        return str(path)

    def _answers(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, (self.folder / "server.log").read_text()
        try:
            return httpx2.get(f"{URL}/api/v1/audit/events", params={"limit": 1}, timeout=5).is_success
        except httpx2.TransportError:
            return False


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Up before the operator of this file."""
    with postgres.running(durable=True) as database:
        found = Store(tmp_path_factory.mktemp("store"), database)
        try:
            found.start_server()
            yield found
        finally:
            found.kill_server()


Disturb = Callable[[Store], None]


def nothing(_: Store) -> None:
    """An undisturbed case."""


def play(world: World, store: Store, *, goes: Disturb, comes: Disturb) -> tuple[Object, Counter[str]]:
    """A case that is asked about and approved; something goes while a person thinks, and comes after its end."""
    world.broken()
    asked = world.asked(world.signal())
    goes(store)
    world.approve(asked)
    case = world.case_of(asked, "Executing", "Verifying")
    execution = world.execution(case, "Running")
    world.give_memory("128Mi")
    world.until(lambda: len(world.pods()) == 2, "the pod of the new revision")
    world.heal()
    world.finish(world.job(execution))
    ended = world.case_of(asked, "Completed", "Failed", "Cancelled")
    comes(store)
    name = case["metadata"]["name"]
    world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))
    events = store.events_of(case["metadata"]["uid"])
    assert len({event["event_id"] for event in events}) == len(events)
    return ended, Counter(event["event_type"] for event in events)


AWAY = {
    "the-database-crashes": (Store.crash_database, Store.start_database),
    "the-server-is-killed": (Store.kill_server, Store.start_server),
}


@pytest.mark.parametrize(("goes", "comes"), AWAY.values(), ids=[f"FA-14 {name}" for name in AWAY])
def test_a_case_ends_the_same_and_its_trail_is_whole_when_the_store_is_away(
    inhabit: Inhabit, store: Store, goes: Disturb, comes: Disturb
) -> None:
    calm, whole = play(inhabit(), store, goes=nothing, comes=nothing)

    disturbed, trail = play(inhabit(), store, goes=goes, comes=comes)

    assert word(disturbed, "phase", "reason", "resolution") == word(calm, "phase", "reason", "resolution")
    assert word(calm, "phase", "resolution") == ("Completed", "Remediated")
    assert trail == whole
