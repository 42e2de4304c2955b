"""The commands of a reviewer, as they are typed (reference, sections 10.6 and 14)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text

from inquest.cli.app import app
from inquest.datastorage.domain.hash_chain import next_hash
from inquest.datastorage.store.audit import link_of
from inquest.datastorage.store.tables import audit_events
from inquest.errors import Misconfigured, Unavailable
from tests.integration.datastorage.conftest import Site
from tests.integration.datastorage.samples import llm_request, store

OF_THE_FIRST = audit_events.c.correlation_id == "rr-1"


class Shell:
    """Types commands; keeps what they print."""

    def __init__(self, printed: pytest.CaptureFixture[str], set_variable: pytest.MonkeyPatch) -> None:
        self._printed = printed
        self._set = set_variable

    def use(self, database: str) -> None:
        self._set.setenv("INQUEST_DATASTORAGE__DATABASE", database)

    async def __call__(self, *words: str | Path) -> tuple[int, str, str]:
        """Exit status as the command gives it, output, errors; a fault of the tree is raised."""
        given = [str(word) for word in words]
        self._printed.readouterr()  # what the service at hand logged
        status = await asyncio.to_thread(lambda: app(given, result_action="return_value"))
        told = self._printed.readouterr()
        return status or 0, told.out, told.err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


async def test_a_trail_that_holds_is_counted(site: Site, shell: Shell) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"), llm_request("rr-2"))
    shell.use(site.url)

    assert await shell("audit", "verify") == (0, "2 chains, 3 events: all hold\n", "")


async def test_an_edited_row_is_named_and_the_exit_status_says_so(site: Site, shell: Shell) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-2"))
    await site.behind(text("UPDATE audit_events SET severity = 'low' WHERE correlation_id = 'rr-2'"))
    shell.use(site.url)

    status, told, _ = await shell("audit", "verify")

    assert status == 1
    assert told.startswith("rr-2: event ")
    assert told.endswith(": event hash does not match the stored event\n2 chains, 2 events: 1 faults\n")


async def test_what_stands_in_a_trail_drives_no_terminal(site: Site, shell: Shell) -> None:
    await store(site, llm_request("rr-1"))
    await site.behind(audit_events.update().values(event_type="llm\x1b[2J\x9bK\x07"))
    shell.use(site.url)

    status, told, _ = await shell("audit", "verify")

    assert status == 1
    assert "(llm\\u{7}, " in told
    assert not set("\x1b\x9b\x07") & set(told)


@pytest.mark.parametrize("payload", ["[1]", '"text"'])
async def test_a_payload_that_is_no_object_is_named_though_its_hash_holds(
    site: Site, shell: Shell, payload: str
) -> None:
    """Who owns the database can write a hash that fits; what stands behind it is looked at as well."""
    await store(site, llm_request("rr-1"), llm_request("rr-2"))

    def work(connection: Connection) -> None:
        connection.execute(audit_events.update().where(OF_THE_FIRST).values(event_data=json.loads(payload)))
        (row,) = connection.execute(select(audit_events).where(OF_THE_FIRST)).mappings()
        fitting = next_hash("", link_of(row).event)
        connection.execute(audit_events.update().where(OF_THE_FIRST).values(event_hash=fitting))

    await site.database.transaction(work)
    shell.use(site.url)

    status, told, _ = await shell("audit", "verify")

    assert status == 1
    assert told.endswith(": its payload is no object\n2 chains, 2 events: 1 faults\n")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_row_that_cannot_be_read_is_said_and_the_exit_status_says_so(site: Site, shell: Shell) -> None:
    """PostgreSQL's columns take nothing but what they are for."""
    await store(site, llm_request("rr-1"))
    await site.behind(text("UPDATE audit_events SET event_ts = 'soon'"))
    shell.use(site.url)

    status, told, _ = await shell("audit", "verify")

    assert (status, told.splitlines()[-1]) == (1, "0 chains, 0 events: 1 faults")
    assert told.startswith("a row cannot be read, behind the beginning: ")


async def test_a_database_that_is_not_there_is_not_made(shell: Shell, tmp_path: Path) -> None:
    shell.use(f"sqlite:///{tmp_path}/none.db")

    there = r"kubectl exec -n inquest-system deploy/inquest .* audit verify --settings /etc/inquest/settings\.yaml$"
    with pytest.raises(Misconfigured, match=rf"there is no .*none\.db; .* is checked there: {there}"):
        await shell("audit", "verify")

    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("raw", "why"),
    [(b"", "no such table"), (b"no database, and long enough to be looked at" * 99, "file is not a database")],
)
async def test_a_broken_database_is_one_line(shell: Shell, tmp_path: Path, raw: bytes, why: str) -> None:
    (tmp_path / "broken.db").write_bytes(raw)
    shell.use(f"sqlite:///{tmp_path}/broken.db")

    with pytest.raises(Unavailable, match=why) as caught:
        await shell("audit", "verify")

    assert "\n" not in str(caught.value)
