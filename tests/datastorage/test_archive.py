"""The audit trail outside of the service: checked, exported, retired, on both engines (reference, section 10.6)."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from sqlalchemy import Connection, Update, delete, insert, select, text, update

from inquest.datastorage.store import archive, bundle
from inquest.datastorage.store.audit import AuditLog
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import audit_events
from inquest.datastorage.wire.audit_events import event_from_body
from tests.datastorage.conftest import NOW, Site
from tests.datastorage.samples import hash_computed, llm_request, started, store

YEARS = timedelta(days=2556)
EVENT = str(UUID(int=7 << 90))


def ed25519_key() -> tuple[bytes, bytes]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


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
    before = await archive.check_chains(database)

    await site.database.transaction(edit)
    after = await archive.check_chains(database)

    assert (before.chains, before.events, before.holds) == (2, 6, True)
    assert not after.holds
    assert len(after.findings) == findings
    assert {finding.link.event.correlation_id for finding in after.findings} == {"rr-1"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_row_that_cannot_be_read_is_a_fault_and_no_crash(site: Site) -> None:
    """PostgreSQL's columns take nothing but what they are for."""
    database = await _filled(site)

    await site.database.transaction(
        lambda c: c.execute(text("UPDATE audit_events SET event_ts = 'soon' WHERE seq = 2"))
    )
    found = await archive.check_chains(database)

    assert not found.holds
    assert found.unreadable.startswith("event ")


async def test_an_export_holds_by_itself_and_is_what_the_query_shows(site: Site, tmp_path: Path) -> None:
    database, (private, public) = await _filled(site), ed25519_key()

    manifest = await archive.write_export(
        database, tmp_path / "out", since=None, until=NOW + YEARS, sign=bundle.Signer(private)
    )
    verdict = bundle.verify_bundle(tmp_path / "out", public)

    assert (verdict.faults, verdict.signed, verdict.manifest) == ((), True, manifest)
    assert not bundle.verify_bundle(tmp_path / "out", None).signed
    raw = (tmp_path / "out" / "manifest.json").read_text()
    assert raw == json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert [(entry.correlation_id, entry.events) for entry in manifest.chains] == [("rr-1", 3), ("rr-2", 3)]
    lines = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    shown = (await site.get("/api/v1/audit/events", limit=100)).json()["data"]
    assert sorted(lines, key=lambda line: line["event_id"]) == sorted(shown, key=lambda line: line["event_id"])


async def test_openssl_agrees_about_the_signature(site: Site, tmp_path: Path) -> None:
    database, (private, public) = await _filled(site), ed25519_key()
    (tmp_path / "key.pub").write_bytes(public)
    folder = tmp_path / "out"
    await archive.write_export(database, folder, since=None, until=NOW + YEARS, sign=bundle.Signer(private))

    files = ["-in", str(folder / "manifest.json"), "-sigfile", str(folder / "manifest.sig")]
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", str(tmp_path / "key.pub"), "-rawin", *files]
    done = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    said, _ = await done.communicate()

    assert (done.returncode, said.strip()) == (0, b"Signature Verified Successfully")


async def test_only_whole_chains_whose_end_lies_in_the_time_asked_for(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)
    await store(site, llm_request("rr-3", at=NOW - timedelta(days=2)))

    old = await archive.write_export(database, tmp_path / "old", since=None, until=NOW - timedelta(days=1), sign=None)
    new = await archive.write_export(
        database, tmp_path / "new", since=NOW - timedelta(days=1), until=NOW + YEARS, sign=None
    )

    assert [entry.correlation_id for entry in old.chains] == ["rr-3"]
    assert [entry.correlation_id for entry in new.chains] == ["rr-1", "rr-2"]


async def test_the_time_asked_for_begins_inside_and_ends_outside(site: Site, tmp_path: Path) -> None:
    database, second = site.database, timedelta(seconds=1)
    await store(site, llm_request("rr-1"))

    inside = await archive.write_export(database, tmp_path / "inside", since=NOW, until=NOW + second, sign=None)
    outside = await archive.write_export(database, tmp_path / "outside", since=NOW - second, until=NOW, sign=None)

    assert ([entry.correlation_id for entry in inside.chains], outside.chains) == (["rr-1"], ())


async def test_an_event_with_every_member_holds_in_an_export(site: Site, tmp_path: Path) -> None:
    members: dict[str, Any] = {"namespace": "shop", "cluster_name": "here", "duration_ms": 7, "is_sensitive": True}
    members |= {"error_code": "E7", "error_message": "no", "severity": "high", "retention_days": 30}
    sent = event_from_body(llm_request("rr-1"), now=NOW, new_id=lambda: EVENT)
    database = site.database
    await AuditLog(database).append([replace(sent, **members)])

    await archive.write_export(database, tmp_path / "out", since=None, until=NOW + YEARS, sign=None)

    assert bundle.verify_bundle(tmp_path / "out", None).faults == ()
    (line,) = (tmp_path / "out" / "events.jsonl").read_text().splitlines()
    assert {name: json.loads(line)[name] for name in members} == members


def _line_edited(folder: Path) -> None:
    path = folder / "events.jsonl"
    path.write_text(path.read_text().replace('"event_outcome":"success"', '"event_outcome":"failure"', 1))


def _line_removed(folder: Path) -> None:
    path = folder / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


def _end_removed(folder: Path) -> None:
    path = folder / "events.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _no_json(folder: Path) -> None:
    (folder / "events.jsonl").write_text("{\n" + (folder / "events.jsonl").read_text())


def _too_deep(folder: Path) -> None:
    (folder / "events.jsonl").write_text("[" * 100_000 + "\n")


def _manifest_laid_out_anew(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))


def _manifest_with_more(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"note": "all is well"}))


def _manifest_edited(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"to":"2', '"to":"3'))


FORGERIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a line is edited": (_line_edited, "event hash does not match"),
    "a line is removed": (_line_removed, "previous hash does not name"),
    "the end is removed": (_end_removed, "SHA-256 differs"),
    "a line is no event": (_no_json, "line 1: no event"),
    "a line is too deep": (_too_deep, "line 1: no event"),
    "the manifest is edited": (_manifest_edited, "does not fit manifest.json"),
    "the manifest is laid out anew": (_manifest_laid_out_anew, "does not fit manifest.json"),
    "the manifest says more": (_manifest_with_more, "no manifest: note"),
    "the signature is gone": (lambda folder: (folder / "manifest.sig").unlink(), "manifest.sig is missing"),
    "the events are gone": (lambda folder: (folder / "events.jsonl").unlink(), "events.jsonl cannot be read"),
    "the manifest is gone": (lambda folder: (folder / "manifest.json").unlink(), "was not finished"),
    "the manifest is something else": (lambda folder: (folder / "manifest.json").write_text("[]"), "no manifest"),
}


@pytest.mark.parametrize(("forge", "said"), FORGERIES.values(), ids=FORGERIES)
async def test_a_changed_export_does_not_hold(
    site: Site, tmp_path: Path, forge: Callable[[Path], Any], said: str
) -> None:
    database, (private, public) = await _filled(site), ed25519_key()
    await archive.write_export(database, tmp_path / "out", since=None, until=NOW + YEARS, sign=bundle.Signer(private))

    forge(tmp_path / "out")

    assert said in bundle.verify_bundle(tmp_path / "out", public).faults[0]


def _without(name: str) -> Callable[[list[str]], list[str]]:
    return lambda lines: [line for line in lines if name not in line]


SUMS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "the end of a chain": (lambda lines: lines[:-1], "rr-1: ends with event"),
    "a whole chain": (_without('"correlation_id":"rr-2"'), "rr-2: no event of this chain is there"),
}


def _summed_again(folder: Path) -> None:
    """As somebody without the key would, who knows the format."""
    said = json.loads((folder / "manifest.json").read_text())
    said["eventsSha256"] = sha256((folder / "events.jsonl").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(said))


@pytest.mark.parametrize(("cut", "said"), SUMS.values(), ids=SUMS)
async def test_what_was_left_out_is_found_though_the_sum_is_right(
    site: Site, tmp_path: Path, cut: Callable[[list[str]], list[str]], said: str
) -> None:
    await archive.write_export(await _filled(site), tmp_path / "out", since=None, until=NOW + YEARS, sign=None)

    events = tmp_path / "out" / "events.jsonl"
    events.write_text("".join(cut(events.read_text().splitlines(keepends=True))))
    _summed_again(tmp_path / "out")

    assert [fault.startswith(said) for fault in bundle.verify_bundle(tmp_path / "out", None).faults] == [True]


async def test_a_chain_that_the_manifest_does_not_name_is_found(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)
    await archive.write_export(database, tmp_path / "out", since=None, until=NOW + YEARS, sign=None)
    await store(site, llm_request("rr-3"))
    await archive.write_export(database, tmp_path / "more", since=None, until=NOW + YEARS, sign=None)

    (tmp_path / "out" / "events.jsonl").write_bytes((tmp_path / "more" / "events.jsonl").read_bytes())
    _summed_again(tmp_path / "out")

    faults = ("rr-3: manifest.json does not name this chain",)
    assert bundle.verify_bundle(tmp_path / "out", None).faults == faults


async def test_another_key_and_no_key(site: Site, tmp_path: Path) -> None:
    database, (_, public) = await _filled(site), ed25519_key()
    await archive.write_export(
        database, tmp_path / "signed", since=None, until=NOW + YEARS, sign=bundle.Signer(ed25519_key()[0])
    )
    await archive.write_export(database, tmp_path / "bare", since=None, until=NOW + YEARS, sign=None)

    assert "names another key" in bundle.verify_bundle(tmp_path / "signed", public).faults[0]
    assert "names another key: none" in bundle.verify_bundle(tmp_path / "bare", public).faults[0]
    assert bundle.verify_bundle(tmp_path / "bare", None).faults == ()


async def test_nothing_is_written_over(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)

    with pytest.raises(bundle.NotWhole, match="already"):
        await archive.write_export(database, tmp_path, since=None, until=NOW, sign=None)


async def test_retired_chains_are_exported_deleted_and_named_in_a_tombstone(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)
    later = NOW + YEARS

    early = await archive.retire_chains(database, tmp_path / "early", now=NOW, older_than=None, sign=None)
    done = await archive.retire_chains(database, tmp_path / "out", now=later, older_than=None, sign=None)
    after = await archive.check_chains(database)

    assert early.manifest.chains == ()
    assert [entry.correlation_id for entry in done.manifest.chains] == ["rr-1", "rr-2"]
    assert bundle.verify_bundle(tmp_path / "out", None).faults == ()
    assert (after.chains, after.events, after.holds) == (1, 1, True)
    left = (await site.get("/api/v1/audit/events")).json()
    (stone,) = left["data"]
    assert (stone["correlation_id"], left["pagination"]["total"]) == (archive.TOMBSTONES, 1)
    said = stone["event_data"]
    assert said["manifest_sha256"] == sha256((tmp_path / "out" / "manifest.json").read_bytes()).hexdigest()
    heads = {entry["correlation_id"]: entry["head_hash"] for entry in said["chains"]}
    assert heads == {entry.correlation_id: entry.head_hash for entry in done.manifest.chains}
    assert await archive.missing_heads(database, done.manifest) == ()
    again = await archive.retire_chains(database, tmp_path / "again", now=later + YEARS, older_than=None, sign=None)
    assert again.manifest.chains == ()


STONE = f"UPDATE audit_events SET event_data = '{{payload}}' WHERE correlation_id = '{archive.TOMBSTONES}'"


@pytest.mark.parametrize("payload", ["null", "[1]", '{"chains": 7}', '{"chains": [1]}'])
async def test_a_tombstone_that_cannot_be_read_names_no_chain(site: Site, tmp_path: Path, payload: str) -> None:
    database = await _filled(site)
    done = await archive.retire_chains(database, tmp_path / "out", now=NOW + YEARS, older_than=None, sign=None)

    await site.database.transaction(lambda c: c.exec_driver_sql(STONE.format(payload=payload)))

    assert await archive.missing_heads(database, done.manifest) == ("rr-1", "rr-2")


async def test_a_shorter_time_and_what_stays_in_spite_of_it(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)
    await store(site, llm_request("rr-3", parent_event_id=EVENT))
    await store(site, *(llm_request(f"rr-{number}") for number in (4, 5, 6)))
    await site.behind(_of("rr-4").values(legal_hold=True), _of("rr-5").values(severity="x"))

    done = await archive.retire_chains(
        database, tmp_path / "out", now=NOW + timedelta(days=31), older_than=timedelta(days=30), sign=None
    )

    assert done.broken == ("rr-5",)
    names = (await _names(site)) - {archive.TOMBSTONES}
    assert names == {"rr-1", "rr-4", "rr-5"}, "a parent elsewhere, a hold, and evidence"


def _of(correlation_id: str) -> Update:
    return update(audit_events).where(audit_events.c.correlation_id == correlation_id)


async def _names(site: Site) -> set[str]:
    names = select(audit_events.c.correlation_id)
    return await site.database.read(lambda connection: set(connection.scalars(names)))


async def test_a_chain_that_lost_its_end_is_found_against_an_earlier_export(site: Site, tmp_path: Path) -> None:
    database = await _filled(site)
    manifest = await archive.write_export(database, tmp_path / "out", since=None, until=NOW + YEARS, sign=None)
    whole = await archive.missing_heads(database, manifest)
    await store(site, llm_request("rr-2"))
    grown = await archive.missing_heads(database, manifest)

    await site.database.transaction(lambda c: c.execute(delete(audit_events).where(audit_events.c.event_id == EVENT)))

    assert (whole, grown) == ((), ())
    assert (await archive.check_chains(database)).holds
    assert await archive.missing_heads(database, manifest) == ("rr-1",)


@pytest.mark.parametrize("kind", ["nothing", "another kind"])
async def test_a_public_key_that_cannot_be_used_is_said(site: Site, tmp_path: Path, kind: str) -> None:
    await archive.write_export(await _filled(site), tmp_path / "out", since=None, until=NOW + YEARS, sign=None)
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    pem = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) if kind == "another kind" else b""

    with pytest.raises(bundle.NotWhole, match="public key is no"):
        bundle.verify_bundle(tmp_path / "out", pem)


def test_a_key_of_another_kind_signs_nothing() -> None:
    key = ec.generate_private_key(ec.SECP256R1())

    with pytest.raises(bundle.NotWhole, match="no Ed25519 key"):
        bundle.Signer(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_said(pem: bytes) -> None:
    with pytest.raises(bundle.NotWhole, match="key"):
        bundle.Signer(pem)
