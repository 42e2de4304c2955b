"""Whether a run helped, where a real Alertmanager can be asked (resources, section 12)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest

from hack.ports import free_port
from tests.integration.adapters.monitoring import servers
from tests.integration.story.conftest import Inhabit
from tests.support.world import word

pytestmark = pytest.mark.xdist_group("story-verification")

PORT = free_port()
SETTINGS = {"alertmanager": {"url": f"http://127.0.0.1:{PORT}"}}


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.alertmanager(tmp_path_factory.mktemp("alertmanager"), PORT) as url:
        yield url


def tell(url: str, labels: dict[str, str], *, over: bool = False) -> None:
    now = datetime.now(UTC)
    ends = now - timedelta(seconds=1) if over else now + timedelta(hours=1)
    alert = {"labels": labels, "startsAt": (now - timedelta(hours=1)).isoformat(), "endsAt": ends.isoformat()}
    httpx2.post(f"{url}/api/v2/alerts", json=[alert], timeout=30, trust_env=False).raise_for_status()


def test_an_alert_over_a_healthy_target_gets_time_until_it_is_over(alertmanager: str, inhabit: Inhabit) -> None:
    """In part C-EM-2: it fires, which is 0, and once it does not that is 1."""
    world = inhabit("staging")
    labels = {"alertname": "KubePodCrashLooping", "namespace": world.namespace, "deployment": "shop"}
    tell(alertmanager, labels)
    world.broken()
    case = world.case(world.signal(source={"type": "Alertmanager"}, labels=labels), "Executing")
    execution = world.execution(case, "Running")
    world.give_memory("128Mi")
    world.until(lambda: len(world.pods()) == 2, "the pod of the new revision")
    world.heal()

    world.finish(world.job(execution))

    seen = world.shows(
        "WorkflowExecution",
        execution["metadata"]["name"],
        lambda one: one["status"].get("effectiveness", {}).get("alert") is not None,
    )
    assert (seen["status"]["phase"], seen["status"]["effectiveness"]["alert"]) == ("Verifying", 0)
    tell(alertmanager, labels, over=True)
    world.touch("WorkflowExecution", seen)
    done = world.reaches("Investigation", case, "Completed")
    assert word(done, "reason", "resolution") == ("VerificationCompleted", "Remediated")
    assert done["status"]["effectiveness"] == {"score": 1, "reason": "Full"}
