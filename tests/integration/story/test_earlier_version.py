"""A case that an earlier version began, met after an upgrade: it ends, says what to do, and holds nothing."""

from __future__ import annotations

import json

import pytest

from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from inquest.api.names import INVESTIGATION_LABEL
from inquest.controllers.journal import JOURNAL_VERSION
from tests.support.world import World, word

pytestmark = pytest.mark.xdist_group("story-earlier-version")


def test_a_case_of_an_earlier_version_ends_and_asks_for_its_signal_again(world: World) -> None:
    world.broken()
    case = world.case(world.signal(), "AwaitingApproval")
    world.operator.stop()
    operator = world.api.named(f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}")
    labels = f"{INVESTIGATION_LABEL}={case['metadata']['uid']}"
    for slot in world.api.list("ConfigMap", NAMESPACE, labels=labels):
        meta = slot["metadata"]
        world.api.delete("ConfigMap", meta["name"], NAMESPACE)
        head = {**json.loads(slot["data"]["head"]), "v": JOURNAL_VERSION - 1, "minReader": 1}
        kept = {key: meta[key] for key in ("name", "namespace", "labels", "ownerReferences") if key in meta}
        older = {key: slot[key] for key in ("binaryData", "immutable") if key in slot}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept, "data": {"head": json.dumps(head)}}
        operator.create(body | older)
    world.operator.start()

    ended = world.reaches("Investigation", case, "Failed")
    assert word(ended, "reason", "resolution") == ("InternalError", None)
    assert ended["status"]["message"].startswith("An earlier version of Inquest began this case")
    assert ended["status"]["message"].endswith("Create its Signal again")
    world.tells(ended, "JournalOfEarlierVersion")
    world.case(world.signal(), "AwaitingApproval")
