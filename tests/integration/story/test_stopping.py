"""A person stops a model in its third turn, and somebody follows from another place (behaviours, 14.3 and 9.2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

from hack.scripted_model.script import Script
from hack.scripted_model.server import serve
from tests.support.ports import own_port
from tests.support.world import SECONDS, World, word

pytestmark = pytest.mark.xdist_group("story-stopping")

PORT = own_port()
SETTINGS = {
    "model": {
        "provider": "openai",
        "endpoint": f"http://127.0.0.1:{PORT}/v1",
        "name": "scripted",
        "api_key": "sk-" + "t" * 40,
        "timeout": "10m",
        "idle_timeout": "10m",
    }
}
THINKS = 2 * SECONDS
"""Seconds of the third turn: a case that waited for its end would not have ended within any bound here."""


def script() -> Script:
    """Two turns with a look each, and a third that takes its time."""
    pods = {"name": "kubectl_get", "arguments": {"kind": "Pod", "namespace": "{{ namespace }}"}}
    events = {"name": "kubectl_events", "arguments": {"namespace": "{{ namespace }}"}}
    looks = [{"when": {"turn": turn}, "reply": {"calls": [call]}} for turn, call in ((1, pods), (2, events))]
    thinks = {"when": {"turn": 3}, "delay": THINKS, "reply": {"text": "too late"}}
    lookups = {"namespace": {"find": r"(story-[0-9a-f]{10})"}}
    return Script.model_validate({"let": lookups, "steps": [*looks, thinks]})


def follow(world: World, name: str, after: int) -> list[dict[str, Any]]:
    """What `inquest follow` tells until the end."""
    options = ("-n", world.namespace, "--after", str(after), "-o", "json")
    done = subprocess.run(
        [sys.executable, "-m", "inquest.cli.main", "follow", name, *options],
        env=os.environ | {"KUBECONFIG": str(world.operator.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("row", ["R07+R16"])
def test_a_case_that_is_cancelled_in_its_third_turn_keeps_what_the_two_before_it_found(row: str, world: World) -> None:
    world.deployment()
    world.crash()
    with serve(script(), port=PORT) as model:
        case = world.case(world.signal(), "Investigating")
        name = case["metadata"]["name"]
        world.until(lambda: len(model.requests) == 3, "the model thinks about its third turn")

        world.api.change("Investigation", name, world.namespace, {"spec": {"cancel": True}})
        asked = time.monotonic()
        ended = world.reaches("Investigation", case, "Cancelled", "Failed", "Completed")

        assert time.monotonic() - asked < THINKS
        assert len(model.requests) == 3

    assert word(ended, "phase", "reason") == ("Cancelled", "Cancelled")
    progress = ended["status"]["progress"]
    assert [(entry["id"], entry["tool"], entry["ok"]) for entry in progress] == [
        (1, "kubectl_get", True),
        (2, "kubectl_events", True),
    ]
    kept = {item["id"] for item in ended["status"]["evidence"]}
    assert {entry["evidence"] for entry in progress} <= kept
    assert ended["status"]["usage"]["turns"] == 2
    told = follow(world, name, after=1)
    assert [one["event"] for one in told] == ["status", "tool_result", "end"]
    assert (told[1]["id"], told[1]["tool"]) == (2, "kubectl_events")
    assert told[-1] == {"event": "end", "phase": "Cancelled", "reason": "Cancelled"}
