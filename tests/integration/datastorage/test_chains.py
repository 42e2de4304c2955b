"""A history is used as far as its hash chains hold (datastorage, 10.5)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from inquest.adapters.datastorage.client import DataStorageClient
from inquest.adapters.datastorage.verify import KEPT_SECONDS
from inquest.core.history.history import History, HistoryEntry
from inquest.errors import Unavailable
from inquest.telemetry.metrics import HISTORY_CHAINS
from tests.integration.datastorage.conftest import NOW, Site
from tests.integration.datastorage.samples import API, assessed, hash_computed, started, store
from tests.integration.datastorage.test_client import TARGET, Time

TAMPERED = {
    "a score is altered": "UPDATE audit_events SET event_data = '{\"score\": 1}' WHERE event_type LIKE '%health%'",
    "an assessment is taken out": "DELETE FROM audit_events WHERE event_type LIKE '%health%'",
    "a row is put in without a hash": "UPDATE audit_events SET event_hash = NULL WHERE event_type LIKE '%hash.comp%'",
}


async def two_remediations(site: Site) -> None:
    """`rr-1` and `rr-2` of one target; of `rr-1` more is known."""
    await store(site, started("rr-1", pre="B"), started("rr-2", pre="A", at=NOW - timedelta(days=2)))
    await store(site, assessed("rr-1", "health.assessed", component="health", assessed=True, score=0.0))
    await store(site, hash_computed("rr-1", post_remediation_spec_hash="A"))


def uids(entries: tuple[HistoryEntry, ...]) -> list[str]:
    return [entry.remediation_uid for entry in entries]


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
async def test_an_entry_whose_chain_does_not_hold_is_not_believed(site: Site, statement: str) -> None:
    await two_remediations(site)
    client = DataStorageClient.in_process(site.app, clock=Time())
    assert (await client.history(TARGET, "A")).whole
    await site.behind(text(statement.replace(":", r"\:")))

    found = await DataStorageClient.in_process(site.app, clock=Time()).history(TARGET, "A")

    assert (found.available, found.whole) == (True, False)
    assert (uids(found.recent), uids(found.older)) == ([], ["rr-2"])
    assert (uids(found.broken), uids(found.unchecked)) == (["rr-1"], [])


async def test_an_entry_that_was_moved_to_another_target_is_not_believed(site: Site) -> None:
    await store(site, started("rr-9", pre="A", target="other/Deployment/my-app"))
    await site.behind(text("UPDATE audit_events SET target_key = 'production/Deployment/my-app'"))

    found = await DataStorageClient.in_process(site.app, clock=Time()).history(TARGET, "A")

    assert (uids(found.recent), uids(found.broken)) == ([], ["rr-9"])


class Peer:
    """A service with three entries; what it says of their chains is the test's."""

    def __init__(self, *said: httpx2.Response | Exception) -> None:
        self.said = list(said)
        self.asked: list[str] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/context"):
            return httpx2.Response(200, json=_history("rr-1", "rr-2", "rr-3"))
        self.asked.append(json.loads(request.content)["correlation_id"])
        answer = self.said[min(len(self.asked), len(self.said)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


def _history(*names: str) -> dict[str, Any]:
    """The first is the oldest."""
    chain = [
        {"remediationUID": name, "completedAt": f"2026-05-13T08:00:0{index}Z", "hashMatch": "none"}
        for index, name in enumerate(names)
    ]
    tiers = {"tier1": {"window": "24h0m0s", "chain": chain}, "tier2": {"window": "x", "chain": []}}
    return {"targetResource": "a/B/c", "currentSpecHash": "A", "regressionDetected": False, "scope": "chain", **tiers}


def verdict(valid: bool, events: int = 5) -> httpx2.Response:
    return httpx2.Response(200, json={"correlation_id": "x", "is_valid": valid, "total_events": events})


def client_of(peer: Peer, time: Time | None = None, profile: Any = "native") -> DataStorageClient:
    transport = httpx2.MockTransport(peer)
    return DataStorageClient.remote("http://ds", clock=time or Time(), transport=transport, profile=profile)


async def looked(peer: Peer) -> History:
    return await client_of(peer).history(TARGET, "A")


NO_ANSWERS = {
    "it fails": httpx2.Response(500),
    "it cannot be reached": httpx2.ConnectError("refused"),
    "it refuses": httpx2.Response(403, json={"detail": "no"}),
    "it does not know the question": httpx2.Response(404),
    "its answer is not understood": httpx2.Response(200, json={"is_valid": "perhaps"}),
}


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
async def test_what_could_not_be_checked_is_not_believed_and_the_rest_not_asked_for(answer: Any) -> None:
    peer = Peer(verdict(True), answer)

    found = await looked(peer)

    assert (uids(found.recent), uids(found.unchecked), found.broken) == (["rr-3"], ["rr-1", "rr-2"], ())
    assert set(peer.asked) == {"rr-3", "rr-2"}, "newest first, and nobody knocks at a closed door"


async def test_a_chain_that_is_gone_is_not_a_chain_that_holds() -> None:
    found = await looked(Peer(verdict(True, events=0)))

    assert (uids(found.recent), len(found.unchecked)) == ([], 3)


async def test_the_time_for_all_chains_is_bounded(monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
    await two_remediations(site)
    monkeypatch.setattr("inquest.adapters.datastorage.verify.CHAIN_SECONDS", 0.0)

    found = await DataStorageClient.in_process(site.app, clock=Time()).history(TARGET, "A")

    assert (found.available, uids(found.unchecked)) == (True, ["rr-2", "rr-1"])


async def test_a_chain_that_held_is_asked_about_again_after_a_minute_and_a_broken_one_at_once() -> None:
    peer, time = Peer(verdict(True), verdict(True), verdict(False)), Time()
    client = client_of(peer, time)

    await client.history(TARGET, "A")
    await client.history(TARGET, "A")
    assert peer.asked == ["rr-3", "rr-2", "rr-1", "rr-1"]
    time.seconds += KEPT_SECONDS
    await client.history(TARGET, "A")

    assert peer.asked[4:] == ["rr-3", "rr-2", "rr-1"]


async def test_the_peer_is_not_asked_for_what_it_cannot_answer() -> None:
    peer = Peer(httpx2.Response(500))

    found = await client_of(peer, profile="kubernaut-1.4").history(TARGET, "A")

    assert (found.whole, len(found.recent), peer.asked) == (True, 3, [])


async def test_chains_are_counted_by_what_was_found() -> None:
    def counted() -> list[float]:
        return [HISTORY_CHAINS.labels(result)._value.get() for result in ("held", "broken", "unchecked")]

    before = counted()
    await looked(Peer(verdict(True), verdict(False), Unavailable("x", "y")))

    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, 1, 1]


async def test_an_event_that_was_put_in_past_the_service_is_one_finding(site: Site) -> None:
    await store(site, started("rr-1"), hash_computed("rr-1"), hash_computed("rr-2"))
    forged = "correlation_id = 'rr-1', event_hash = NULL, previous_event_hash = NULL"
    await site.behind(text(f"UPDATE audit_events SET {forged} WHERE correlation_id = 'rr-2'"))
    await store(site, hash_computed("rr-1", post_remediation_spec_hash="A"))

    answer = await site.post(f"{API}/audit/verify-chain", {"correlation_id": "rr-1"})

    body = answer.json()
    assert (body["is_valid"], body["total_events"], body["verified_events"]) == (False, 4, 3)
    assert [found["message"] for found in body["tampered_events"]] == ["event carries no hash"]
