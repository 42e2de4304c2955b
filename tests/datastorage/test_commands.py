"""The commands of a reviewer, as they are typed (reference, sections 10.6 and 14)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from sqlalchemy import Connection, select, text

from inquest.cli.app import app
from inquest.datastorage.domain.hash_chain import next_hash
from inquest.datastorage.store.audit import link_of
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.store.tables import audit_events
from inquest.errors import InquestError, Misconfigured, Unavailable
from tests.datastorage.conftest import Site
from tests.datastorage.samples import llm_request, store

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


async def test_a_trail_is_verified_exported_and_verified_again_without_it(
    site: Site, shell: Shell, tmp_path: Path
) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"), llm_request("rr-2"))
    shell.use(site.url)
    out = tmp_path / "out"

    assert await shell("audit", "verify") == (0, "2 chains, 3 events: all hold\n", "")
    assert await shell("audit", "export", out, "--until", "2027-01-01T00:00:00Z") == (
        *(0, f"2 chains, 3 events in {out}, not signed\n", ""),
    )
    assert (await shell("audit", "verify", "--against", out))[0] == 0
    shell.use("sqlite:////nowhere")
    status, told, unsaid = await shell("audit", "verify", out)
    assert (status, told) == (0, "2 chains, 3 events: all hold\n")
    assert "signature was not checked" in unsaid


async def test_an_export_is_signed_with_the_key_of_the_settings(
    site: Site, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "key").write_bytes(private)
    (tmp_path / "key.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    monkeypatch.setenv("INQUEST_AUDIT__SIGNING_KEY_FILE", str(tmp_path / "key"))
    await store(site, llm_request("rr-1"))
    shell.use(site.url)

    _, told, _ = await shell("audit", "export", tmp_path / "out")
    checked = await shell("audit", "verify", tmp_path / "out", "--public-key", tmp_path / "key.pub")

    assert told == f"1 chains, 1 events in {tmp_path / 'out'}, signed\n"
    assert checked == (0, "1 chains, 1 events: all hold\n", "")


async def test_a_public_key_that_is_none_is_one_line(site: Site, shell: Shell, tmp_path: Path) -> None:
    shell.use(site.url)
    await shell("audit", "export", tmp_path / "out")
    (tmp_path / "key.pub").write_text("no key")

    with pytest.raises(Misconfigured, match=r"key\.pub: the public key is no key in PEM"):
        await shell("audit", "verify", tmp_path / "out", "--public-key", tmp_path / "key.pub")


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


async def test_an_export_that_does_not_hold_is_a_fault_and_nothing_to_compare_with(
    site: Site, shell: Shell, tmp_path: Path
) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"))
    shell.use(site.url)
    out = tmp_path / "out"
    await shell("audit", "export", out, "--until", "2027-01-01T00:00:00Z")
    events = (out / "events.jsonl").read_text()
    (out / "events.jsonl").write_text(events.replace('"severity":"info"', '"severity":"low"', 1))

    status, told, _ = await shell("audit", "verify", out)

    assert (status, told.splitlines()[-1]) == (1, "1 chains, 2 events: 2 faults")
    with pytest.raises(Misconfigured, match="event hash does not match"):
        await shell("audit", "verify", "--against", out)


async def test_a_chain_that_lost_its_end_is_named_against_an_export(site: Site, shell: Shell, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-1"))
    shell.use(site.url)
    await shell("audit", "export", tmp_path / "out", "--until", "2027-01-01T00:00:00Z")
    await site.behind(text("DELETE FROM audit_events WHERE seq = (SELECT max(seq) FROM audit_events)"))

    alone, against = await shell("audit", "verify"), await shell("audit", "verify", "--against", tmp_path / "out")

    assert alone == (0, "1 chains, 1 events: all hold\n", "")
    assert against == (1, "rr-1: its last exported event is gone\n1 chains, 1 events: 1 faults\n", "")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_row_that_cannot_be_read_is_said_and_the_exit_status_says_so(site: Site, shell: Shell) -> None:
    """PostgreSQL's columns take nothing but what they are for."""
    await store(site, llm_request("rr-1"))
    await site.behind(text("UPDATE audit_events SET event_ts = 'soon'"))
    shell.use(site.url)

    status, told, _ = await shell("audit", "verify")

    assert (status, told.splitlines()[-1]) == (1, "0 chains, 0 events: 1 faults")
    assert told.startswith("a row cannot be read, behind the beginning: ")


async def test_only_what_ended_since_then_is_exported(site: Site, shell: Shell, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"))
    shell.use(site.url)
    asked = ("--since", "2026-05-13T12:00:01Z", "--until", "2027-01-01T00:00:00Z")

    _, told, _ = await shell("audit", "export", tmp_path / "out", *asked)

    assert told == f"0 chains, 0 events in {tmp_path / 'out'}, not signed\n"


async def test_a_chain_that_is_kept_as_evidence_is_named(site: Site, shell: Shell, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"), llm_request("rr-2"))
    await site.behind(text("UPDATE audit_events SET severity = 'low' WHERE correlation_id = 'rr-2'"))
    shell.use(site.url)

    _, _, unsaid = await shell("audit", "retire", tmp_path / "out", "--older-than-days", "1")

    assert unsaid == "inquest: kept, for its hashes do not hold: rr-2\n"


async def test_what_is_past_its_time_is_retired_into_a_folder(site: Site, shell: Shell, tmp_path: Path) -> None:
    await store(site, llm_request("rr-1"))
    shell.use(site.url)

    status, told, _ = await shell("audit", "retire", tmp_path / "out", "--older-than-days", "1")

    assert (status, told) == (0, f"1 chains, 1 events in {tmp_path / 'out'}, not signed\n")
    assert (await shell("audit", "verify"))[1] == "1 chains, 1 events: all hold\n"


async def test_a_backup_is_put_back(shell: Shell, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    database = open_database(url)
    await migrate_database(database)
    await database.close()
    shell.use(url)

    status, told, _ = await shell("datastorage", "backup", tmp_path / "copy")
    restored = await shell("datastorage", "restore", tmp_path / "copy")

    assert (status, told) == (0, f"{(tmp_path / 'copy').stat().st_size} bytes in {tmp_path / 'copy'}\n")
    assert restored == (0, f"{tmp_path / 'copy'} is in place: start the service\n", "")
    assert (tmp_path / "store.db.before-restore").exists()
    with pytest.raises(Misconfigured, match="already"):
        await shell("datastorage", "backup", tmp_path / "copy")


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


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "export", "out", "--since", "yesterday"),
        ("audit", "export", "out", "--key", "no-such-file"),
        ("audit", "verify", "out", "--public-key", "no-such-file"),
        ("audit", "export", ".", "--until", "2027-01-01T00:00:00Z"),
        ("audit", "verify", "--against", "no-such-folder"),
        ("audit", "retire", "out", "--older-than-days", "0"),
    ],
)
async def test_what_cannot_be_done_is_said_before_anything_is_written(
    site: Site, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    shell.use(site.url)

    with pytest.raises(InquestError):
        await shell(*words)

    assert not (tmp_path / "out").exists()
