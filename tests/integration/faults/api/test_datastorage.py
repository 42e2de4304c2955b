"""DataStorage is away or slow: a case loses what it asked for and no more, and every record follows, once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx2
import pytest
import yaml

from tests.integration.faults.api.conftest import Trouble
from tests.integration.faults.api.proxy import Proxy, serving
from tests.support.api import Object
from tests.support.kube import eventually
from tests.support.ports import own_port
from tests.support.process import Operator
from tests.support.tables import row
from tests.support.world import conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("faults-datastorage")

PORT, ROAD = own_port(), own_port()
SETTINGS = {"datastorage": {"mode": "external", "url": f"http://127.0.0.1:{ROAD}"}}
EVENTS = f"http://127.0.0.1:{PORT}/api/v1/audit/events"
HISTORY = "GET /api/v1/remediation-history/context"
WAITING = "no case is worked on until the catalogue is registered"


@pytest.fixture(scope="module", autouse=True)
def road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The way to a service on SQLite; both are up before the operator of this file."""
    folder = tmp_path_factory.mktemp("store")
    chosen = {"database": f"sqlite:///{folder}/store.db", "server": {"port": PORT, "authentication": "none"}}
    settings = {"server": {"health_port": 0, "metrics_port": 0}, "datastorage": chosen}
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "inquest.cli.main", "datastorage", "serve"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--settings", str(folder / "settings.yaml")], stdout=log, stderr=log, env=os.environ
        )
    try:
        eventually(_answers, what="DataStorage answers")
        with serving(Proxy(f"http://127.0.0.1:{PORT}", "", ROAD)) as found:
            yield found
    finally:
        process.kill()
        process.wait()


def _answers() -> bool:
    try:
        return httpx2.get(EVENTS, params={"limit": 1}, timeout=5, trust_env=False).is_success
    except httpx2.TransportError:
        return False


def trail(case: Object) -> list[str]:
    """Ids of what stands there of a case."""
    asked = {"correlation_id": case["metadata"]["uid"], "limit": 1000}
    answer = httpx2.get(EVENTS, params=asked, timeout=30, trust_env=False)
    return [str(one["event_id"]) for one in answer.raise_for_status().json()["data"]]


def asks_without_history(case: Object) -> None:
    """A person is asked, though in this namespace policy would have approved, and told why."""
    assert word(case, "phase", "outcome") == ("AwaitingApproval", "WorkflowSelected")
    assert "history" not in case["status"]["context"]
    assert conditions(case)["ApprovalRequired"] == ("True", "PolicyRequiresApproval")
    assert "the remediation history is unavailable" in case["status"]["ruling"]["reason"]


SLOW = {
    "FA-15 a second more than the box": 3.0,
    "FA-15 five seconds": 5.0,
    "FA-15 a minute": 60.0,
    "FA-15 a connection that is half open": 3_600.0,
}


@pytest.mark.parametrize("seconds", SLOW.values(), ids=SLOW)
def test_a_history_that_comes_late_is_not_waited_for(seconds: float, trouble: Trouble, road: Proxy) -> None:
    """Its box is two seconds; the rest of the case asks the same service and is answered."""
    found, began = trouble("staging"), time.monotonic()

    with road.ruled(HISTORY, after=seconds) as late:
        case = found.world.case(found.world.signal(), "AwaitingApproval", "Executing", "Failed", "Completed")

    assert late.met
    asks_without_history(case)
    assert seconds < 60 or time.monotonic() - began < seconds


@row("FA-14")
def test_a_history_that_cannot_be_read_is_a_gap_and_a_warning(trouble: Trouble, road: Proxy) -> None:
    found = trouble("staging")

    with road.ruled(HISTORY, 503):
        case = found.world.case(found.world.signal(), "AwaitingApproval", "Executing", "Failed", "Completed")

    asks_without_history(case)
    found.world.tells(case, "HistoryUnavailable")


@pytest.mark.long
@row("FA-14")
def test_a_case_waits_for_a_service_that_was_away_from_the_start_and_is_recorded_once(
    trouble: Trouble, road: Proxy, process: Operator
) -> None:
    """Without its catalogue a case would end as if nothing fitted: none is worked on, and none is lost."""
    process.stop()
    road.leave()
    said = process.log.count(WAITING)
    process.launch()
    found = trouble()
    world = found.world
    opened = world.opened(world.signal())
    name = opened["metadata"]["name"]
    eventually(lambda: process.log.count(WAITING) > said, what="the operator says what it waits for")
    time.sleep(3)
    assert "phase" not in world.shows("Investigation", name, bool).get("status", {})
    assert found.asked() == 0

    road.come_back()

    world.shows("RemediationApprovalRequest", f"rar-{name}", lambda seen: phase_of(seen) == "Pending")
    world.api.change("Investigation", name, world.namespace, {"spec": {"cancel": True}})
    world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))
    told = trail(opened)
    assert told
    assert len(told) == len(set(told))
