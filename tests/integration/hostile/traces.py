"""Every place where Inquest leaves words, read back as text; slots are unpacked, tables dumped."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from typing import Any

from inquest.api.installation import NAMESPACE
from tests.integration.cases.theatre import Played
from tests.support.api import Api, Object
from tests.support.process import Operator

OURS = (
    "Signal",
    "Investigation",
    "RemediationApprovalRequest",
    "WorkflowExecution",
    "ActionType",
    "RemediationWorkflow",
)


def slots(api: Api, uid: str) -> list[str]:
    """The payloads of an open case's journal, unpacked; an entry over several slots is put together."""
    parts: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for slot in api.list("ConfigMap", NAMESPACE, labels=f"inquest.dev/investigation={uid}"):
        head = json.loads(slot["data"]["head"])
        packed = base64.b64decode(slot.get("binaryData", {}).get("payload", ""))
        parts[head["payload"]["digest"]].append((int(head["seq"]), packed))
    return [gzip.decompress(b"".join(chunk for _, chunk in sorted(found))).decode() for found in parts.values()]


def rows(operator: Operator) -> str:
    """Everything in its database, as statements."""
    with closing(sqlite3.connect(f"file:{operator.database}?mode=ro", uri=True)) as store:
        return "\n".join(store.iterdump())


def tools_run(operator: Operator, uid: str) -> list[tuple[str, str]]:
    """Name and outcome of each call of a tool that the audit trail of a case holds, snapshot included."""
    with closing(sqlite3.connect(f"file:{operator.database}?mode=ro", uri=True)) as store:
        found = store.execute(
            "select event_data, event_outcome from audit_events "
            "where correlation_id = ? and event_type = 'aiagent.llm.tool_call'",
            (uid,),
        )
        return [(str(json.loads(data)["tool_name"]), str(outcome)) for data, outcome in found]


def events(api: Api, namespace: str) -> list[Object]:
    """Events that Inquest has posted in a namespace."""
    return [one for one in api.list("Event", namespace) if "inquest" in json.dumps(one.get("source", {})).lower()]


def answers(asked: list[Object], turn: int) -> list[str]:
    """What the model was told in answer to the calls of a turn, from 1, of the conversation of the last request."""
    said = [index for index, message in enumerate(asked[-1]["messages"]) if message["role"] == "assistant"]
    start = said[turn - 1] + 1
    end = said[turn] if turn < len(said) else None
    return [str(one["content"]) for one in asked[-1]["messages"][start:end] if one["role"] == "tool"]


def conversations(asked: list[Object]) -> tuple[list[Object], list[Object]]:
    """The requests of invocation 1 and those of invocation 2."""
    first = [one for one in asked if _offers(one, "submit_result")]
    return first, [one for one in asked if _offers(one, "submit_result_with_workflow")]


def _offers(request: Object, name: str) -> bool:
    return any(tool["function"]["name"] == name for tool in request.get("tools", []))


def traces(found: Played, operator: Operator) -> dict[str, str]:
    """By place, everything that was written about a case or sent because of it."""
    return words_of(found) | {"log": operator.log, "DataStorage": rows(operator)}


def words_of(found: Played) -> dict[str, str]:
    """The places that are a case's own."""
    api, namespace, uid = found.world.api, found.world.namespace, found.case["metadata"]["uid"]
    return {
        "prompts": _text(found.asked),
        "objects": _text([[_seen(one) for one in api.list(kind, namespace)] for kind in OURS]),
        "journal": "\n".join(slots(api, uid)),
        "events": _text(events(api, namespace)),
    }


def _seen(found: Object) -> Any:
    """What Inquest itself has written: the spec of a Signal is its sender's."""
    return found["status"] if found["kind"] == "Signal" and "status" in found else found


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
