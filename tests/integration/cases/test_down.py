"""What a case says when a service it cannot do without has gone: the catalogue, then the model.

Where DataStorage is away when the operator starts, no case is worked on at all: the catalogue is registered first.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import yaml

from tests.integration.cases.scenes import Scene
from tests.integration.cases.stage import Stage, staged
from tests.integration.cases.theatre import Theatre
from tests.support.api import Api, Object
from tests.support.kube import Cluster, eventually
from tests.support.ports import own_port
from tests.support.process import Operator
from tests.support.world import World, conditions, word

pytestmark = pytest.mark.xdist_group("outcomes-down")

PORT = own_port()
SETTINGS = {"datastorage": {"mode": "external", "url": f"http://127.0.0.1:{PORT}"}}


@pytest.fixture(scope="module", autouse=True)
def datastorage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    """Up before the operator of this file; whoever kills it takes the catalogue away."""
    folder = tmp_path_factory.mktemp("store")
    server = {"port": PORT, "authentication": "none"}
    chosen = {"database": f"sqlite:///{folder}/store.db", "server": server}
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump({"server": {"health_port": 0, "metrics_port": 0}, "datastorage": chosen}))
    command = [sys.executable, "-m", "inquest.cli.main", "datastorage", "serve", "--settings", str(path)]
    with (folder / "server.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as found:
        eventually(lambda: '"serving"' in (folder / "server.log").read_text(), what="DataStorage listens")
        yield found
        found.kill()


@pytest.fixture(scope="module")
def curtain() -> Iterator[ExitStack]:
    """Closed, and the model's server is gone."""
    with ExitStack() as found:
        yield found


@pytest.fixture(scope="module")
def stage(curtain: ExitStack) -> Stage:
    """Where the scripts of this file are played, until the curtain falls."""
    return curtain.enter_context(staged(Stage(own_port())))


@pytest.fixture
def theatre(api: Api, process: Operator, cluster: Cluster, stage: Stage) -> Iterator[Theatre]:
    with ExitStack() as worlds:
        yield Theatre(api, process, cluster, stage, worlds)


def ended(world: World) -> Object:
    """The case of a Signal for a workload that is killed for its memory."""
    world.broken()
    name = world.opened(world.signal())["metadata"]["name"]
    return world.shows("Investigation", name, lambda seen: "completedAt" in seen.get("status", {}), seconds=240)


def test_without_its_catalogue_a_case_keeps_its_root_cause(
    theatre: Theatre, stage: Stage, datastorage: subprocess.Popen[bytes]
) -> None:
    """Failed, APIError; no try of the model is counted (pipeline, 8.1, check 2); the record is sent later."""
    world = theatre.inhabit("production")
    datastorage.kill()
    datastorage.wait()
    stage.play(world.namespace, Scene("", "", choice={"selected_workflow": {"workflow_id": "any"}}).script())

    case = ended(world)

    assert word(case, "phase", "reason", "subReason") == ("Failed", "APIError", "MaxRetriesExceeded")
    assert word(case, "humanReviewReason", "resolution") == ("InfrastructureFailure", "ManualReviewRequired")
    assert case["status"]["rootCause"]["summary"].startswith("The memory limit")
    assert "validationAttempts" not in case["status"]
    assert conditions(case)["Recorded"][0] != "True"
    assert conditions(case)["ModelAvailable"] == ("True", "Reachable")


def test_where_nobody_listens_a_case_keeps_its_findings(theatre: Theatre, curtain: ExitStack) -> None:
    """Failed, ModelUnavailable, after the retries of a refused connection on both endpoints."""
    world = theatre.inhabit("production")
    curtain.close()

    case = ended(world)

    assert word(case, "phase", "reason", "subReason") == ("Failed", "ModelUnavailable", "MaxRetriesExceeded")
    assert word(case, "humanReviewReason", "resolution") == ("InfrastructureFailure", "ManualReviewRequired")
    assert conditions(case)["ModelAvailable"] == ("False", "TransientError")
    assert case["status"]["findings"]
    assert case["status"]["evidence"]
    world.tells(case, "ModelUnavailable")
