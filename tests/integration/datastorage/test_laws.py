"""What holds however writers interleave, batches repeat, and whatever is asked (reference, sections 6, 10, 17)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inquest.datastorage.domain.scoring import Offer, Query, WorkflowLabelSet, is_gated, ranked_offers
from inquest.datastorage.store.audit import AuditLog
from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.wire.audit_events import StoredEvent
from tests.integration.datastorage.conftest import NOW, Site

FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
"""Each example is a database at work."""


def _event(correlation_id: str, number: int) -> StoredEvent:
    data = {"event_type": "aiagent.llm.request", "n": number}
    kind = ("aiagent.llm.request", "1.0", "aiagent", "llm_request", "success")
    return StoredEvent(str(UUID(int=number + 1)), NOW, *kind, correlation_id, data)


def _renamed(event: StoredEvent, run: str) -> StoredEvent:
    """Of this example alone: a database is shared by all of them."""
    own = UUID(int=UUID(run).int ^ UUID(event.event_id).int)
    return StoredEvent(**{**vars(event), "event_id": str(own), "correlation_id": f"{run}/{event.correlation_id}"})


batches = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=8)
"""Each number names a chain."""


@FEW
@given(written=batches, order=st.randoms(use_true_random=False))
async def test_the_chains_hold_after_any_interleaving_of_writers(
    site: Site, written: list[list[int]], order: Any
) -> None:
    """Two replicas, each with a pool of its own."""
    run, numbers = str(uuid4()), iter(range(1000))
    database = open_database(site.url)
    ledgers = [AuditLog(site.database), AuditLog(database)]
    sent = [[_renamed(_event(f"rr-{chain}", next(numbers)), run) for chain in batch] for batch in written]
    order.shuffle(sent)

    await asyncio.gather(*(ledgers[place % 2].append(batch) for place, batch in enumerate(sent)))
    found = await check_chains(database)
    kept = [len(await ledgers[0].links(f"{run}/rr-{chain}")) for chain in range(3)]
    await database.close()

    assert found.holds, found.broken[:1]
    assert kept == [sum(batch.count(chain) for batch in written) for chain in range(3)]


@FEW
@given(
    count=st.integers(1, 12),
    repeats=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), min_size=1, max_size=6),
    at_once=st.booleans(),
)
async def test_a_batch_counts_once_however_often_and_however_cut_it_is_sent(
    site: Site, count: int, repeats: Sequence[tuple[int, int]], at_once: bool
) -> None:
    run, ledger = str(uuid4()), AuditLog(site.database)
    whole = [_renamed(_event("rr", number), run) for number in range(count)]
    again = [cut for start, size in repeats if (cut := whole[start : start + size])]

    await ledger.append(whole)
    if at_once:
        await asyncio.gather(*(ledger.append(cut) for cut in (*again, whole)))
    else:
        for cut in (*again, whole):
            await ledger.append(cut)

    links = await ledger.links(f"{run}/rr")
    assert [link.event.event_id for link in links] == [event.event_id for event in whole]
    assert (await check_chains(site.database)).holds


texts = st.sampled_from(["critical", "CRITICAL", "low", "*", "", "prod", "Node"])
shapes = st.one_of(st.none(), texts, st.lists(texts, max_size=3), st.integers())
labels = st.builds(
    WorkflowLabelSet,
    mandatory=st.dictionaries(st.sampled_from(["severity", "component", "environment", "priority"]), shapes),
    detected=st.dictionaries(
        st.sampled_from(["gitOpsManaged", "gitOpsTool", "serviceMesh"]), st.one_of(st.booleans(), texts)
    ),
    custom=st.dictionaries(texts, st.one_of(texts, st.lists(texts, max_size=3))),
)
questions = st.builds(
    Query,
    *(texts for _ in range(4)),
    detected=st.dictionaries(st.sampled_from(["gitOpsManaged", "gitOpsTool"]), st.one_of(st.booleans(), texts)),
    custom=st.dictionaries(texts, st.lists(texts, max_size=3)),
)


@given(stored=st.lists(st.tuples(st.uuids(), labels), max_size=6, unique_by=lambda pair: pair[0]), query=questions)
def test_what_is_offered_passes_the_gate_and_what_is_not_never_does(
    stored: list[tuple[UUID, WorkflowLabelSet]], query: Query
) -> None:
    offers = [Offer(str(key), "A", held) for key, held in stored]

    offered = [offer.workflow_id for offer, _ in ranked_offers(offers, "A", query)]
    again = [offer.workflow_id for offer, _ in ranked_offers(offers[::-1], "A", query)]
    gated = {offer.workflow_id for offer in offers if is_gated(offer.labels, query)}

    assert offered == again
    assert not gated & set(offered)
    if any(query.filters.values()):
        assert gated | set(offered) == {offer.workflow_id for offer in offers}
