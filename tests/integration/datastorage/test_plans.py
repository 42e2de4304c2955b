"""No question walks the whole audit trail: the plans of what is asked, on both engines (reference, section 15)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event, text

from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import API, hash_computed, llm_request, started, store
from tests.support.tables import each_row

TARGET = {"targetKind": "Deployment", "targetName": "my-app", "targetNamespace": "production", "currentSpecHash": "A"}
HISTORY = f"{API}/remediation-history/context"
QUESTIONS: list[tuple[str, dict[str, str], set[str]]] = [
    (HISTORY, {**TARGET, "scope": "target"}, {"ix_hist_target", "ix_eff_post", "ix_eff_corr", "ix_life"}),
    (HISTORY, {**TARGET, "scope": "chain"}, {"ix_hist_target", "ix_eff_post", "ix_eff_corr", "ix_life"}),
    (HISTORY, {**TARGET, "scope": "hash"}, {"ix_hist_pre", "ix_eff_post", "ix_eff_corr"}),
    (f"{API}/effectiveness/rr-1", {}, {"ix_eff_corr"}),
    (
        f"{API}/outcome-memory/context",
        {"cluster": "c-1", "owner": "o-1", "playbooks": "oom"},
        {"ix_memory"},
    ),
    (f"{API}/audit/events", {}, {"ix_time"}),
    (f"{API}/audit/events", {"correlation_id": "rr-1"}, {"ix_corr"}),
    (f"{API}/audit/events", {"event_type": "aiagent.llm.request"}, {"ix_type_time"}),
]


@contextmanager
def _statements(site: Site) -> Iterator[list[tuple[str, Any]]]:
    """Reads of the audit trail as the engine gets them."""
    seen: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if statement.startswith(("SELECT", "WITH")) and "audit_events" in statement:
            seen.append((statement, parameters))

    engines = {site.database.writers, site.database.readers}
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


async def _plans(site: Site, statements: list[tuple[str, Any]]) -> str:
    """Small tables are walked gladly by PostgreSQL, so walking is made dear: what remains is what indices can do."""
    postgres = site.database.is_postgres
    explain = "EXPLAIN" if postgres else "EXPLAIN QUERY PLAN"

    def work(connection: Connection) -> list[str]:
        if postgres:
            connection.execute(text("SET LOCAL enable_seqscan = off"))
        explained = [connection.exec_driver_sql(f"{explain} {asked}", given) for asked, given in statements]
        return [str(row[-1]) for rows in explained for row in rows]

    return "\n".join(await site.database.transaction(work))


@each_row(("path", "asked", "indices"), QUESTIONS)
async def test_every_question_is_answered_by_its_index(
    site: Site, path: str, asked: dict[str, str], indices: set[str]
) -> None:
    await store(
        site, started("rr-1", pre="A"), hash_computed("rr-1", post_remediation_spec_hash="A"), llm_request("rr-1")
    )

    with _statements(site) as statements:
        answer = await site.get(path, **asked)
    plan = await _plans(site, statements)

    assert asked or not [statement for statement, _ in statements if "count(" in statement]
    assert answer.status_code == 200
    assert not re.search(r"Seq Scan on audit_events|SCAN audit_events(?! USING)", plan), plan
    assert {name for name in indices if name not in plan} == set(), plan


async def test_the_predecessor_of_an_event_comes_from_the_index_alone(site: Site) -> None:
    await store(site, llm_request("rr-1"))

    with _statements(site) as statements:
        await store(site, llm_request("rr-1"))
    plan = await _plans(site, [entry for entry in statements if "LIMIT" in entry[0]])

    assert re.search(r"COVERING INDEX ix_chain|Index Only Scan Backward using ix_chain", plan), plan
