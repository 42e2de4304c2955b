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
from tests.support.world import conditions, word

pytestmark = pytest.mark.xdist_group("faults-datastorage")

PORT, ROAD = own_port(), own_port()
SETTINGS = {"datastorage": {"mode": "external", "url": f"http://127.0.0.1:{ROAD}"}}
EVENTS = f"http://127.0.0.1:{PORT}/api/v1/audit/events"
HISTORY = "GET /api/v1/remediation-history/context"


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
def test_a_case_that_never_met_the_service_ends_and_is_recorded_later_once(
    trouble: Trouble, road: Proxy, process: Operator
) -> None:
    """Away before the operator started, and until the case has ended."""
    process.stop()
    road.leave()
    process.start()
    found = trouble()
    case = found.world.case(found.world.signal())
    assert word(case, "phase", "reason", "resolution") == ("Failed", "APIError", "ManualReviewRequired")
    assert case["status"]["rootCause"]["summary"].startswith("The memory limit")
    assert trail(case) == []

    road.come_back()

    name = case["metadata"]["name"]
    found.world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))
    told = trail(case)
    assert told
    assert len(told) == len(set(told))
