"""What a person says of an ended case is kept once, and the next of its kind hears of it (behaviours, section 17).

Who does not believe a case has another look taken, by hand.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.support.api import Object
from tests.support.world import World, conditions, word

pytestmark = [pytest.mark.xdist_group("story-feedback"), pytest.mark.timeout(900)]


def kept(world: World, case: Object) -> list[dict[str, Any]]:
    """What people have told the operator's store of a case."""
    with closing(sqlite3.connect(f"file:{world.operator.database}?mode=ro", uri=True)) as store:
        asked = "select event_data from audit_events where correlation_id = ? and event_type = 'inquest.feedback.given'"
        return [json.loads(data) for (data,) in store.execute(asked, (case["metadata"]["uid"],))]


def is_recorded(seen: Object) -> bool:
    """Whether its records are stored, and what was said since."""
    stored = [one for one in seen["status"].get("conditions", []) if one["type"] == "Recorded"]
    heard = stored[0].get("observedGeneration") if stored else None
    return conditions(seen).get("Recorded") == ("True", "Stored") and heard == seen["metadata"]["generation"]


def diagnosed(world: World) -> Object:
    """A case with a cause and a proposal that nobody wants; ended and stored."""
    world.kill_for_memory()
    waiting = world.case(world.signal(), "AwaitingApproval")
    meta = waiting["metadata"]
    world.api.change("Investigation", meta["name"], meta["namespace"], {"spec": {"cancel": True}})
    world.reaches("Investigation", waiting, "Cancelled")
    return world.shows("Investigation", meta["name"], lambda seen: conditions(seen)["Recorded"][0] == "True")


def test_what_a_person_says_of_a_diagnosis_is_kept_once_and_told_to_the_next(world: World) -> None:
    """A kill stores nothing twice."""
    world.broken()
    case = diagnosed(world)
    meta = case["metadata"]
    feedback = {"verdict": "Wrong", "cause": "the database was away: password=hunter2hunter2", "by": "admin"}

    world.api.change("Investigation", meta["name"], meta["namespace"], {"spec": {"feedback": feedback}})

    world.shows("Investigation", meta["name"], is_recorded)
    (told,) = kept(world, case)
    assert (told["verdict"], told["by"], told["rr_name"]) == ("Wrong", "admin", meta["name"])
    assert told["cause"].startswith("the database was away")
    assert "hunter2" not in told["cause"]

    world.operator.kill()
    world.operator.start()
    world.touch("Investigation", case)
    lessons = diagnosed(world)["status"]["context"]["lessons"]

    assert [line for line in lessons if "OOMKilled, a person said that this was not the cause" in line]
    assert len(kept(world, case)) == 1


def test_a_case_that_was_called_wrong_is_looked_into_again_by_hand(world: World) -> None:
    """A copy without Signal, wish to cancel and feedback is a case of its own; the first stays as it ended."""
    world.broken()
    first = diagnosed(world)
    meta = first["metadata"]
    change = {"spec": {"feedback": {"verdict": "Wrong", "by": "admin"}}}
    world.api.change("Investigation", meta["name"], meta["namespace"], change)
    before = world.shows("Investigation", meta["name"], is_recorded)

    spec = {key: value for key, value in before["spec"].items() if key not in ("signalRef", "cancel", "feedback")}
    body = {"apiVersion": before["apiVersion"], "kind": "Investigation", "spec": spec}
    copy = world.api.create(body | {"metadata": {"name": f"again-{meta['name']}", "namespace": meta["namespace"]}})
    again = world.reaches("Investigation", copy, "AwaitingApproval")

    names = ("fingerprint", "outcome", "workflowDisplay")
    assert word(again, *names) == word(before, *names)
    assert again["spec"]["signal"] == before["spec"]["signal"]
    world.shows("Investigation", meta["name"], lambda seen: seen["status"] == before["status"])
