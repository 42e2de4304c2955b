"""Every answer that was recorded from the peer, through the client's own line: understood, or refused as what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from inquest.adapters.datastorage.http_client import CallTimeouts, CircuitBreaker, ServiceClient, parse_response
from inquest.adapters.datastorage.responses import (
    ActionPage,
    ActionTypeAnswer,
    EventPage,
    HistoryAnswer,
    PlainList,
    RecordResponse,
    ScoreAnswer,
    WorkflowPage,
)
from inquest.errors import AlreadyExists, Forbidden, InquestError, Invalid, NotFound, Unavailable
from tests.support.tables import each_row

RECORDED = {entry["name"]: entry for entry in json.loads((Path(__file__).parent / "kubernaut-1.4.json").read_text())}

READERS: tuple[tuple[str, type[BaseModel]], ...] = (
    (r"GET /api/v1/workflows/actions", ActionPage),
    (r"GET /api/v1/workflows/actions/[^/]+", WorkflowPage),
    (r"GET /api/v1/workflows", PlainList),
    (r"GET /api/v1/workflows/[0-9a-f-]{36}", RecordResponse),
    (r"POST /api/v1/workflows", RecordResponse),
    (r"POST /api/v1/action-types", ActionTypeAnswer),
    (r"GET /api/v1/audit/events", EventPage),
    (r"GET /api/v1/effectiveness/[^/]+", ScoreAnswer),
    (r"GET /api/v1/remediation-history/context", HistoryAnswer),
)
"""Who reads the answer; of the others only the status counts."""

REFUSALS: dict[int, type[InquestError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: AlreadyExists,
    500: Unavailable,
}


def _line(answer: dict[str, Any]) -> ServiceClient:
    body, headers = answer["body"], answer["headers"]
    raw = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    reply = httpx2.Response(answer["status"], content=raw.encode(), headers=headers)
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: reply), base_url="http://peer")
    return ServiceClient(http, CircuitBreaker(lambda: 0.0), CallTimeouts())


def _reader(method: str, path: str) -> type[BaseModel] | None:
    asked = f"{method} {path}"
    return next((model for pattern, model in READERS if re.fullmatch(pattern, asked)), None)


@each_row("name", RECORDED)
async def test_a_recorded_answer(name: str) -> None:
    request, answer = RECORDED[name]["request"], RECORDED[name]["response"]
    line, status = _line(answer), answer["status"]

    if status >= 400:
        with pytest.raises(REFUSALS[status]) as caught:
            await line.write(request["method"], request["path"], request["body"])
        assert type(caught.value) is REFUSALS[status]
        assert _detail(answer["body"]) in str(caught.value)
        return
    found = await line.write(request["method"], request["path"], request["body"])
    model = _reader(request["method"], request["path"])
    if model is not None:
        assert _agrees(parse_response(model, found).model_dump(mode="json", by_alias=True), answer["body"]) == []


def _detail(body: Any) -> str:
    return str(body.get("detail", ""))[:100] if isinstance(body, dict) else ""


def _agrees(read: Any, recorded: Any, path: str = "$") -> list[str]:
    """Paths at which something else was read than stands there; what is not read is not looked at."""
    if isinstance(read, dict) and isinstance(recorded, dict):
        return [
            fault
            for key in read.keys() & recorded.keys()
            for fault in _agrees(read[key], recorded[key], f"{path}.{key}")
        ]
    if isinstance(read, list) and isinstance(recorded, list):
        pairs = zip(read, recorded, strict=True)
        return [fault for n, pair in enumerate(pairs) for fault in _agrees(*pair, f"{path}[{n}]")]
    return [] if _plain(read) == _plain(recorded) else [f"{path}: {read!r} != {recorded!r}"]


def _plain(value: Any) -> Any:
    """Times of the wire go down to nanoseconds."""
    return re.sub(r"\.\d+Z$", "Z", value) if isinstance(value, str) else value


def test_all_of_them_are_here() -> None:
    assert len(RECORDED) == 114
