"""The audit trail is checked outside of the service, on both engines (reference, section 10.6)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import audit_events
from tests.integration.datastorage.conftest import NOW, Site
from tests.integration.datastorage.samples import hash_computed, llm_request, started, store

DOCS = Path(__file__).parents[3] / "docs"
EVENT = str(UUID(int=7 << 90))


async def _filled(site: Site) -> Database:
    """Two chains of three, one of them with all that history asks by."""
    await store(site, started("rr-1", pre="A"), hash_computed("rr-1", post_remediation_spec_hash="B"))
    await store(site, *(llm_request("rr-2", at=NOW - timedelta(seconds=age)) for age in (1, 3, 2)))
    await store(site, llm_request("rr-1", event_id=EVENT))
    return site.database


def _edit(**values: Any) -> Callable[[Connection], Any]:
    """Edit the row that opened the remediation."""
    row = audit_events.c.event_type == "remediation.workflow_created"
    return lambda connection: connection.execute(update(audit_events).where(row).values(values))


def _remove(connection: Connection) -> Any:
    return connection.execute(delete(audit_events).where(audit_events.c.event_type == "effectiveness.hash.computed"))


def _plant(connection: Connection) -> None:
    """An event that nobody sent, as a copy of another."""
    row = connection.execute(select(audit_events).limit(1)).mappings().one()
    copy = {name: value for name, value in row.items() if name != "seq"}
    unhashed = {"event_id": str(UUID(int=9)), "event_hash": None, "previous_event_hash": None}
    connection.execute(insert(audit_events).values(copy | unhashed))


EDITS = {
    "payload": (_edit(event_data={"event_type": "remediation.workflow_created", "target_resource": "a/B/c"}), 1),
    "outcome": (_edit(event_outcome="failure"), 1),
    "time": (_edit(event_ts=NOW - timedelta(days=3)), 1),
    "hash": (_edit(event_hash="0" * 64), 2),
    "the column that history finds it by": (_edit(target_key=None), 1),
    "the hash that history finds it by": (_edit(pre_spec_hash="C"), 1),
    "removed": (_remove, 1),
    "planted": (_plant, 1),
}


@pytest.mark.parametrize(("edit", "findings"), EDITS.values(), ids=EDITS)
async def test_what_was_changed_behind_the_services_back_is_found(
    site: Site, edit: Callable[[Connection], Any], findings: int
) -> None:
    database = await _filled(site)
    before = await check_chains(database)

    await site.database.transaction(edit)
    after = await check_chains(database)

    assert (before.chains, before.events, before.holds) == (2, 6, True)
    assert not after.holds
    assert len(after.broken) == findings
    assert {finding.link.event.correlation_id for finding in after.broken} == {"rr-1"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_row_that_cannot_be_read_is_a_fault_and_no_crash(site: Site) -> None:
    """PostgreSQL's columns take nothing but what they are for."""
    database = await _filled(site)

    await site.database.transaction(
        lambda c: c.execute(text("UPDATE audit_events SET event_ts = 'soon' WHERE seq = 2"))
    )
    found = await check_chains(database)

    assert not found.holds
    assert found.unreadable.startswith("event ")


async def test_deleting_whole_chains_as_the_docs_say_leaves_a_trail_that_holds(site: Site) -> None:
    database = await _filled(site)
    await store(site, llm_request("rr-3"))
    _, _, block = (DOCS / "how-to" / "keep-the-audit-trail.md").read_text().partition("```sql\n")
    said = block.partition("```")[0]
    if not site.database.is_postgres:
        _, _, said_of_sqlite = block.partition("write `")
        said = said.replace("'2026-01-01'", said_of_sqlite.partition("`")[0])
    statements = said.split(";\n")[:-1]

    old = audit_events.c.correlation_id == "rr-3"
    await site.behind(update(audit_events).where(old).values(event_ts=NOW - timedelta(days=400)))
    await site.behind(*(text(statement) for statement in statements))
    after = await check_chains(database)

    assert (after.chains, after.events, after.holds) == (2, 6, True)
    assert (await site.get("/api/v1/audit/events")).json()["pagination"]["total"] == 6
