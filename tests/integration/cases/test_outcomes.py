"""Every outcome of the two invocations, and every end outside them, as a person reads it at last (pipeline, 5.4, 5.5).

A case is a file of `cases/`, the status that it must end in the file of the same name in `golden/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from tests.integration.cases.golden import brief, compare, normal
from tests.integration.cases.scenes import Scene, names, scene
from tests.integration.cases.stage import Stage
from tests.integration.cases.theatre import AT_ONCE, Played, Theatre
from tests.support.api import Api, Object
from tests.support.kube import Cluster, eventually
from tests.support.process import Operator
from tests.support.world import conditions

pytestmark = pytest.mark.xdist_group("outcomes")

GROUPS = ("first.example.com", "second.example.com")
SETTINGS = {"runner": {"max_concurrent": 60}}


@pytest.fixture(scope="module")
def gadgets(api: Api) -> Iterator[None]:
    """A kind that two groups serve; it is there before the operator is."""
    wanted = [_gadget(group) for group in GROUPS]
    for one in wanted:
        api.create(one)
    for one in wanted:
        eventually(partial(_is_established, api, one["metadata"]["name"]), what="the kind is there")
    yield
    for one in wanted:
        api.delete("CustomResourceDefinition", one["metadata"]["name"])


def _is_established(api: Api, name: str) -> bool:
    return conditions(api.get("CustomResourceDefinition", name)).get("Established", ("",))[0] == "True"


def _gadget(group: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, api: Api, cluster: Cluster, stage: Stage, gadgets: None, process: Operator
) -> Iterator[dict[str, Future[Played]]]:
    """Every case that this run has selected, under way."""
    found = (getattr(item, "callspec", None) for item in request.session.items)
    wanted = {call.params["name"] for call in found if call and call.params.get("name") in names()}
    with ExitStack() as worlds, ThreadPoolExecutor(AT_ONCE) as pool:
        theatre = Theatre(api, process, cluster, stage, worlds)
        # In the order in which the tests wait for them: none waits for the whole file.
        slow_first = sorted(map(scene, wanted), key=lambda found: (-_delay(found), found.name))
        yield {one.name: pool.submit(theatre.play, one) for one in slow_first}
        pool.shutdown(cancel_futures=True)


def _delay(found: Scene) -> float:
    return float(sum(step.get("delay", 0) for step in found.steps))


@pytest.mark.parametrize("name", [name for name in names() if name != "x-cancelled-pending"])
def test_a_case_ends_as_the_tables_say(played: dict[str, Future[Played]], name: str) -> None:
    found, told = played[name].result(), scene(name)
    meta = found.case["metadata"]
    words = {found.world.namespace: "NAMESPACE", meta["name"]: "CASE", meta["uid"]: "UID"}
    status = {key: value for key, value in brief(found.case["status"]).items() if key not in told.unsettled}
    asked = {} if told.errs else {"requests": len(found.asked)}
    compare(name, {"status": normal(status, words), **asked})


@pytest.mark.parametrize("name", ["x-unauthorized", "x-server-errors"])
def test_without_a_model_the_detectors_have_the_word(played: dict[str, Future[Played]], name: str) -> None:
    """What they have proven is the root cause that a person reads (behaviours, 12.4)."""
    status = played[name].result().case["status"]

    assert status["rootCause"]["summary"] == status["findings"][0]["summary"]
    assert status["causes"][0]["category"] == "OOMKilled"


@pytest.mark.parametrize("name", ["x-cancelled-awaiting", "x-cancelled-executing"])
def test_a_cancelled_case_keeps_its_confidence(played: dict[str, Future[Played]], name: str) -> None:
    """The overall one, as it stood while a person was asked."""
    assert played[name].result().case["status"]["confidence"] == 0.92


@pytest.mark.parametrize("name", ["x-cancelled-executing"])
def test_a_cancelled_case_is_no_completion(played: dict[str, Future[Played]], name: str) -> None:
    """No row of the table of notices is for it (resources, section 13)."""
    notices = played[name].result().case["status"].get("notices", [])

    assert "Completion" not in [notice["type"] for notice in notices]


@pytest.mark.parametrize("name", ["x-cancelled-pending"])
def test_a_case_that_is_cancelled_before_it_starts_ends(played: dict[str, Future[Played]], name: str) -> None:
    """Nothing was read and nobody was asked; the duration is 0 (resources, 3.2)."""
    found = played[name].result()
    status = found.case["status"]

    assert (status["phase"], status["reason"], status["durationSeconds"]) == ("Cancelled", "Cancelled", 0)
    assert status["message"]
    assert found.asked == []
