"""What one case taught is told to the next of the same trouble, and a failure takes the trust away (behaviours, 17)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
import yaml

from tests.support.api import Api, Object
from tests.support.kube import eventually
from tests.support.ports import own_port
from tests.support.world import SECONDS, World, conditions, word

pytestmark = [pytest.mark.xdist_group("story-memory"), pytest.mark.timeout(900)]

PORT = own_port()
URL = f"http://127.0.0.1:{PORT}/api/v1"
SETTINGS = {
    "datastorage": {"mode": "external", "url": f"http://127.0.0.1:{PORT}"},
    "execution": {"cooldown": "1s"},
}
ENDED = "inquest.case.ended"


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`inquest datastorage serve` on SQLite, up before the operator of this file."""
    folder = tmp_path_factory.mktemp("store")
    server = {"port": PORT, "authentication": "none"}
    chosen = {"database": f"sqlite:///{folder}/store.db", "server": server}
    ports = {"health_port": 0, "metrics_port": 0}
    (folder / "settings.yaml").write_text(yaml.safe_dump({"server": ports, "datastorage": chosen}))
    command = [sys.executable, "-m", "inquest.cli.main", "datastorage", "serve"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--settings", str(folder / "settings.yaml")], stdout=log, stderr=log, env=os.environ
        )
    try:
        eventually(lambda: _answers(process), what="DataStorage answers", seconds=SECONDS)
        yield folder
    finally:
        process.kill()
        process.wait()


def _answers(process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    try:
        return httpx2.get(f"{URL}/audit/events", params={"limit": 1}, timeout=5).is_success
    except httpx2.TransportError:
        return False


def endings() -> list[Object]:
    """What cases left, the newest first."""
    answer = httpx2.get(f"{URL}/audit/events", params={"event_type": ENDED}, timeout=30)
    answer.raise_for_status()
    found: list[Object] = answer.json()["data"]
    return found


def as_another_case(ending: Object, *, ago: timedelta, check: str = "Resolved") -> None:
    """The same trouble, as a case that ended some time ago would have left it."""
    at, uid = (datetime.now(UTC) - ago).isoformat().replace("+00:00", "Z"), str(uuid4())
    data = ending["event_data"] | {"event_id": uid, "incident_id": uid, "ended_at": at, "check": check}
    names = ("version", "event_type", "event_category", "event_action", "event_outcome", "namespace", "cluster_name")
    body = {name: ending[name] for name in names}
    body |= {"event_id": uid, "correlation_id": uid, "event_timestamp": at, "event_data": data}
    httpx2.post(f"{URL}/audit/events", json=body, timeout=30).raise_for_status()


def lessons(case: Object) -> list[str]:
    found: list[str] = case["status"]["context"].get("lessons", [])
    return found


def recorded(world: World, case: Object) -> None:
    name = case["metadata"]["name"]
    world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))


def fixed(world: World) -> Object:
    """A case whose fix helped, stored."""
    world.broken()
    asked = world.asked(world.signal())
    world.approve(asked)
    case = world.case_of(asked, "Executing", "Verifying")
    execution = world.execution(case, "Running")
    world.give_memory("128Mi")
    world.until(lambda: len(world.pods()) == 2, "the pod of the new revision")
    world.heal()
    world.finish(world.job(execution))
    ended = world.case_of(asked, "Completed", "Failed", "Cancelled")
    recorded(world, ended)
    return ended


def again(world: World) -> Object:
    """The next case of the same trouble, as far as its proposal; nobody wants it."""
    world.kill_for_memory()
    waiting = world.case(world.signal(), "AwaitingApproval")
    meta = waiting["metadata"]
    world.api.change("Investigation", meta["name"], meta["namespace"], {"spec": {"cancel": True}})
    recorded(world, world.reaches("Investigation", waiting, "Cancelled"))
    return waiting


def test_a_second_case_is_told_what_the_first_taught_until_it_is_contradicted(world: World, api: Api) -> None:
    first = fixed(world)

    assert word(first, "phase", "resolution") == ("Completed", "Remediated")
    assert lessons(first) == []
    (ending,) = endings()
    assert ending["cluster_name"] == api.get("Namespace", "kube-system")["metadata"]["uid"]
    assert [ending["event_data"][name] for name in ("category", "check", "action")] == [
        "OOMKilled",
        "Resolved",
        "IncreaseMemoryLimits",
    ]

    as_another_case(ending, ago=timedelta(hours=3))
    (pattern, *outcomes) = lessons(again(world))

    assert pattern.startswith("CrashLoopBackOff, OOMKilled / OOMKilled: seen 2 times")
    assert "confidence 0.9, verified, on this target; IncreaseMemoryLimits" in pattern
    assert [("OOMKilled, verified afterwards; IncreaseMemoryLimits" in line) for line in outcomes] == [True, True]

    as_another_case(ending, ago=timedelta(0), check="Partial")
    after = lessons(again(world))

    assert [line for line in after if "seen" in line] == []
    assert "OOMKilled, the trouble stayed; IncreaseMemoryLimits" in after[0] + after[1]
