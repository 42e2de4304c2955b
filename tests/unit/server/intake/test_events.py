"""What an event of the cluster does to a Signal, and what its sender is answered (resources, section 11.5)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.unit.server.intake.conftest import Server

Json = dict[str, Any]
EVENTS = "/api/v1/signals/kubernetes-event"
POD = {"apiVersion": "v1", "kind": "Pod", "name": "cart-1", "namespace": "shop"}


def event(**changes: Any) -> Json:
    known = {"type": "Warning", "reason": "BackOff", "involvedObject": POD, "message": "Back-off", "count": 7}
    return known | {"firstTimestamp": "2026-11-22T09:30:00Z", "lastTimestamp": "2026-11-22T09:59:00Z"} | changes


async def sent(http: httpx2.AsyncClient, told: Any) -> tuple[int, Json]:
    answer = await http.post(EVENTS, json=told)
    return answer.status_code, answer.json()


def signals(server: Server) -> list[Json]:
    return [found for (kind, _), found in server.held.items() if kind == "Signal"]


async def test_an_event_makes_a_signal_that_has_its_count(http: httpx2.AsyncClient, server: Server) -> None:
    status, said = await sent(http, event())

    made = server.signal()
    assert (status, said["signal"]) == (201, made["metadata"]["name"])
    assert made["spec"]["source"]["type"] == "KubernetesEvent"
    assert made["status"]["occurrences"] == 7


async def test_one_event_that_is_sent_at_its_first_sighting_is_taken(http: httpx2.AsyncClient, server: Server) -> None:
    """Who sends it may never send it again: waiting for more is the watch's, which sees whether more come."""
    once = event(count=1, firstTimestamp="2026-11-22T09:59:55Z", lastTimestamp="2026-11-22T09:59:55Z")

    assert (await sent(http, once))[0] == 201


async def test_the_same_event_told_twice_is_counted_once(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, event())
    server.calls.clear()

    status, _ = await sent(http, event())

    assert (status, server.signal()["status"]["occurrences"]) == (202, 7)
    assert "apply Signal" not in server.calls


async def test_a_later_sighting_raises_the_counter(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, event())
    server.tell(phase="Accepted", lastSeen="2026-11-22T09:59:00Z")

    status, _ = await sent(http, event(count=9, lastTimestamp="2026-11-22T09:59:30Z"))

    assert (status, server.signal()["status"]["occurrences"]) == (202, 9)
    assert server.signal()["status"]["lastSeen"] == "2026-11-22T09:59:30Z"


async def test_another_event_of_the_target_and_reason_joins_the_signal_that_is_open(
    http: httpx2.AsyncClient, server: Server
) -> None:
    await sent(http, event())

    status, said = await sent(http, event(message="another container", firstTimestamp="2026-11-22T09:45:00Z", count=2))

    assert (status, said["signal"], len(signals(server))) == (202, server.signal()["metadata"]["name"], 1)


@pytest.mark.parametrize("phase", ["Resolved", "Ignored", "Failed"])
async def test_what_has_just_ended_holds_further_signals_off_for_ten_minutes(
    http: httpx2.AsyncClient, server: Server, phase: str
) -> None:
    await sent(http, event())
    server.tell(phase=phase, lastSeen="2026-11-22T09:49:30Z")

    held, _ = await sent(http, event(lastTimestamp="2026-11-22T09:59:29Z", count=8))
    new, _ = await sent(http, event(lastTimestamp="2026-11-22T09:59:30Z", count=9))
    again, _ = await sent(http, event(lastTimestamp="2026-11-22T09:59:50Z", count=10))

    assert (held, new, again) == (200, 201, 202)
    assert [found["spec"]["firingTime"] for found in signals(server)] == [
        "2026-11-22T09:30:00Z",
        "2026-11-22T09:59:30Z",
    ]


async def test_a_label_that_somebody_set_joins_nothing(http: httpx2.AsyncClient, server: Server) -> None:
    await sent(http, event())
    labels = server.signal()["metadata"]["labels"]
    server.signal()["spec"]["name"] = "Other"

    status, _ = await sent(http, event(firstTimestamp="2026-11-22T09:45:00Z"))

    assert (status, {tuple(found["metadata"]["labels"].items()) for found in signals(server)}) == (
        201,
        {tuple(labels.items())},
    )


@pytest.mark.parametrize("row", ["C-IN-5"])
async def test_normal_events_are_refused_and_old_ones_dropped_in_words(
    http: httpx2.AsyncClient, server: Server, row: str
) -> None:
    normal, old = await sent(http, event(type="Normal")), await sent(http, event(lastTimestamp="2026-11-22T09:40:00Z"))

    assert (normal[0], normal[1]["field"]) == (400, "type")
    assert (old[0], old[1]["message"]) == (200, "it was last seen more than 5 minutes ago")
    assert signals(server) == []


async def test_a_list_of_events_is_answered_one_by_one(http: httpx2.AsyncClient) -> None:
    status, said = await sent(http, [event(), event(type="Normal")])

    assert (status, [one["status"] for one in said["results"]]) == (207, [201, 400])
