"""What a reader of a running case is told, and where they go on (behaviours, 9.2 and 19.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.investigation import Investigation
from inquest.cli.cases.watch import MAX_FAILURES, _json_line, following, text_line
from inquest.errors import Unavailable
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.presentation.stream import FollowEvent, FollowKind, Reader, news_for, resume_reader


def entry(number: int, *, ok: bool | None = True) -> Json:
    done = {} if ok is None else {"ok": ok, "milliseconds": 3, "evidence": f"E{number}"}
    return {"id": number, "tool": "kubectl_get", "arguments": '{"kind": "Pod"}', **done}


def case(*progress: Json, phase: str = "Investigating", **status: Any) -> Investigation:
    signal = {"name": "n", "severity": "high", "source": {"type": "Manual"}, "target": {"kind": "Pod", "name": "p"}}
    body = {"phase": phase, "message": "looking for the root cause", "progress": list(progress), **status}
    meta = {"name": "inv-1", "namespace": "shop", "uid": "u"}
    return Investigation.from_object({"metadata": meta, "spec": {"signal": signal}, "status": body})


def upto(last: int, first: int = 1) -> list[Json]:
    return [entry(number) for number in range(first, last + 1)]


def names(told: tuple[FollowEvent, ...]) -> list[str]:
    return [f"{one.event} {one.id}" if one.event is FollowKind.CALL else str(one.event) for one in told]


@pytest.mark.parametrize("row", ["R16"])
def test_a_reader_goes_on_where_they_were(row: str) -> None:
    reader, told = news_for(case(*upto(50)), resume_reader(30))

    assert names(told) == ["status", *(f"tool_result {number}" for number in range(31, 51))]
    assert told[0].body == {"phase": "Investigating", "message": "looking for the root cause"}
    assert told[1].body["evidence"] == "E31"
    assert news_for(case(*upto(50)), reader) == (reader, ())


def test_a_late_reader_is_told_how_it_stands_then_everything() -> None:
    assert names(news_for(case(*upto(2)), Reader())[1]) == ["status", "tool_result 1", "tool_result 2"]


def test_a_call_is_told_once_it_has_an_answer_and_none_before_those_ahead_of_it() -> None:
    reader, told = news_for(case(entry(1), entry(2, ok=None), entry(3)), Reader())
    assert names(told) == ["status", "tool_result 1"]

    _, told = news_for(case(entry(1), entry(2, ok=False), entry(3)), reader)

    assert names(told) == ["tool_result 2", "tool_result 3"]
    assert told[0].body["ok"] is False


def test_what_the_status_holds_no_more_is_said_to_be_missing() -> None:
    _, told = news_for(case(*upto(70, first=21)), resume_reader(5))

    assert names(told)[:3] == ["status", "missed", "tool_result 21"]
    assert told[1].body == {"from": 6, "to": 20}


def test_progress_that_was_cut_away_is_said_to_be_missing() -> None:
    _, told = news_for(case(truncated=["progress"]), resume_reader(5))

    assert names(told) == ["status", "missed"]
    assert told[1].body == {"from": 6, "to": None}


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Cancelled"])
def test_the_end_is_told_last_and_once_with_calls_that_never_came_back(phase: str) -> None:
    ended = case(entry(1), entry(2, ok=None), phase=phase, reason="Cancelled")

    reader, told = news_for(ended, resume_reader(1))

    assert names(told) == ["status", "tool_result 2", "end"]
    assert told[-1].body == {"phase": phase, "reason": "Cancelled"}
    assert news_for(ended, reader) == (reader, ())


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 60))
def test_whoever_comes_and_goes_is_told_every_call_once_and_in_order(looks: list[int], last: int) -> None:
    """Each look sees so many calls; between two of them the reader keeps nothing but a number."""
    heard: list[int] = []
    for count in [*sorted(looks), max([last, *looks])]:
        _, told = news_for(case(*upto(count, first=max(1, count - 49))), resume_reader(heard[-1] if heard else 0))
        for one in told:
            missed = range(one.body["from"], one.body["to"] + 1) if one.event is FollowKind.MISSED else ()
            heard += [*missed, *([one.id] if one.event is FollowKind.CALL else [])]

    assert heard == list(range(1, max([last, *looks]) + 1))


# --- the command ------------------------------------------------------------------------------------------------


class Shelf:
    """Gives one state after the other, the last for ever; an exception is raised."""

    def __init__(self, *states: Investigation | Exception) -> None:
        self.states = list(states)
        self.slept = 0.0

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        found = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(found, Exception):
            raise found
        return found.to_object()

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds


def followed(shelf: Shelf, reader: Reader) -> list[FollowEvent]:
    async def gather() -> list[FollowEvent]:
        return [one async for one in following(shelf, shelf, "shop", "inv-1", reader)]  # type: ignore[arg-type]

    return asyncio.run(gather())


def test_following_ends_with_the_case(capsys: pytest.CaptureFixture[str]) -> None:
    away = Unavailable("the API server")
    shelf = Shelf(case(*upto(31)), away, case(*upto(32)), case(*upto(33), phase="Completed", outcome="ProblemResolved"))

    told = followed(shelf, resume_reader(30))

    assert [one.id for one in told if one.event is FollowKind.CALL] == [31, 32, 33]
    assert told[-1].body == {"phase": "Completed", "outcome": "ProblemResolved"}
    assert shelf.slept == 3.0
    assert "API server" in capsys.readouterr().err


def test_an_api_server_that_stays_away_is_given_up() -> None:
    shelf = Shelf(Unavailable("the API server"))

    with pytest.raises(Unavailable):
        followed(shelf, Reader())
    assert shelf.slept == MAX_FAILURES


LINES: Mapping[str, tuple[FollowEvent, str, str]] = {
    "status": (
        FollowEvent(FollowKind.STATUS, {"phase": "Selecting", "message": ""}),
        "Selecting",
        '{"event": "status", "phase": "Selecting", "message": ""}',
    ),
    "call": (
        FollowEvent(FollowKind.CALL, {"tool": "kubectl_get", "arguments": "{}", "ok": True, "evidence": "E7"}, 31),
        "  31  kubectl_get  {}  ok  E7",
        '{"event": "tool_result", "id": 31, "tool": "kubectl_get", "arguments": "{}", "ok": true, "evidence": "E7"}',
    ),
    "hostile": (
        FollowEvent(FollowKind.STATUS, {"phase": "Selecting", "message": "a\nend: Completed\x9b"}),
        "Selecting: a end: Completed\x9b",
        '{"event": "status", "phase": "Selecting", "message": "a\\nend: Completed\\u009b"}',
    ),
    "missed": (
        FollowEvent(FollowKind.MISSED, {"from": 6, "to": 20}, 20),
        "      calls 6 to 20 are not in the status any more; the transcript holds them",
        '{"event": "missed", "from": 6, "to": 20}',
    ),
    "end": (
        FollowEvent(FollowKind.END, {"phase": "Failed", "reason": "TimedOut"}),
        "end: Failed, TimedOut",
        '{"event": "end", "phase": "Failed", "reason": "TimedOut"}',
    ),
}


@pytest.mark.parametrize(("told", "text", "line"), LINES.values(), ids=LINES.keys())
def test_an_event_is_one_line(told: FollowEvent, text: str, line: str) -> None:
    assert (text_line(told), _json_line(told)) == (text, line)
