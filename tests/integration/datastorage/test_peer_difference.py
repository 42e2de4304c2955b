"""What the peer was seen to answer, our own service answers too: more members, never others (reference, section 13).

`kubernaut-1.4.json` holds exchanges recorded from Kubernaut DataStorage 1.4.1, whose output is under Apache-2.0.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import add_action_type

RECORDED = {entry["name"]: entry for entry in json.loads((Path(__file__).parent / "kubernaut-1.4.json").read_text())}

CATALOGUE = (
    "action-type-create",
    "action-type-create-again",
    "workflow-create",
    "workflow-create-same-content",
    "workflow-create-other-content",
    "action-type-disable-in-use",
    "workflow-create-unknown-action-type",
    "workflow-create-inexpressible",
    "actions-parameter-missing",
    "workflows-unknown-action",
    "history-hash-empty",
    "history-none",
    "history-window-order",
    "score-unknown",
)
PAST = (
    "history-write-start",
    "history-write-end",
    "history-write-assessment",
    "score-full",
    "history-one-post",
    "history-one-pre-regression",
)
VOLATILE = {"createdAt", "updatedAt", "disabledAt", "computed_at", "event_id", "event_ids", "event_timestamp"}


async def test_the_catalogue_answers_as_recorded(site: Site) -> None:
    await add_action_type(site, "RestartPod")

    for name in CATALOGUE:
        await _ask(site, name)


async def test_history_and_score_answer_as_recorded(site: Site) -> None:
    site.clock.at = datetime(2026, 11, 22, 0, 1, 30, tzinfo=UTC)

    for name in PAST:
        await _ask(site, name)


async def _ask(site: Site, name: str) -> None:
    request, expected = RECORDED[name]["request"], RECORDED[name]["response"]
    query = {**request["query"], **({"scope": "hash"} if "history/" in request["path"] else {})}
    answer = await site.http.request(request["method"], request["path"], params=query, json=request["body"])

    assert answer.status_code == expected["status"], (name, answer.text)
    assert _missing(expected["body"], answer.json()) == [], name


def _missing(expected: Any, actual: Any, path: str = "$") -> list[str]:
    """Paths at which what was recorded does not stand in the answer; volatile ones only have to be there."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [fault for key, value in expected.items() for fault in _member(key, value, actual, path)]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            fault
            for index, pair in enumerate(zip(expected, actual, strict=True))
            for fault in _missing(*pair, f"{path}[{index}]")
        ]
    return [] if expected == actual else [f"{path}: {expected!r} != {actual!r}"]


def _member(key: str, expected: Any, actual: dict[str, Any], path: str) -> list[str]:
    if key in VOLATILE and key in actual:
        return []
    if key == "completedAt":
        return [] if str(actual[key])[:19] == expected[:19] else [f"{path}.{key}"]
    return _missing(expected, actual.get(key), f"{path}.{key}")
