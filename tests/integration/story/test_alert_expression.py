"""The alert's own query is answered before the model's first turn, by a real Prometheus (behaviours, section 11.5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from hack.scripted_model.script import Script
from hack.scripted_model.server import Serving, serve
from tests.integration.adapters.monitoring import servers
from tests.integration.story.test_model import FINDS_NOTHING, KEY
from tests.support.ports import own_port
from tests.support.world import World

pytestmark = pytest.mark.xdist_group("story-alert-expression")

MODEL, PROMETHEUS = own_port(), own_port()
SETTINGS = {
    "model": {
        "provider": "openai",
        "endpoint": f"http://127.0.0.1:{MODEL}/v1",
        "name": "scripted",
        "api_key": KEY,
    },
    "prometheus": {"url": f"http://127.0.0.1:{PROMETHEUS}"},
}


@pytest.fixture(scope="module", autouse=True)
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with servers.prometheus(tmp_path_factory.mktemp("prometheus"), PROMETHEUS):
        yield


@pytest.fixture
def model() -> Iterator[Serving]:
    steps = [{"when": {}, "reply": {"calls": [FINDS_NOTHING]}}]
    with serve(Script.model_validate({"steps": steps}), port=MODEL) as found:
        yield found


@pytest.mark.parametrize(
    ("expression", "shown"),
    [("vector(4711) > 1", "4711"), ('up{namespace="somebody-else"}', "namespace 'somebody-else' is not part of")],
    ids=["answered", "of another namespace"],
)
def test_a_model_reads_what_the_alert_asks_before_its_first_turn(
    world: World, model: Serving, expression: str, shown: str
) -> None:
    world.broken()
    link = f"http://prometheus.example/graph?g0.expr={quote(expression)}"

    world.case(world.signal(source={"type": "Alertmanager", "name": "am", "generatorURL": link}))

    first = json.dumps(model.requests[0], ensure_ascii=False)
    assert "alert expression" in first
    assert shown in first
