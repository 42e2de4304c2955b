"""`inquest audit …`: what a reviewer does with the audit trail, with the service away or beside it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from cyclopts import App
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from inquest.cli.cases.records import in_pod
from inquest.cli.output import print_lines, print_warning
from inquest.datastorage.domain.hash_chain import BrokenLink
from inquest.datastorage.store import archive, bundle
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.wire.types import instant_from_text, instant_text
from inquest.errors import Misconfigured, Unavailable
from inquest.settings.settings import Settings

audit = App(name="audit", help="Check, export and retire the audit trail.")

Outcome = TypeVar("Outcome")


@audit.command
def verify(
    export: Path | None = None,
    *,
    public_key: Path | None = None,
    against: Path | None = None,
    settings: Path | None = None,
) -> int:
    """Check every hash chain of the database, or of an export.

    Exits with 0 where all holds, 1 where something does not, 5 where the database is away.

    Parameters
    ----------
    export
        Folder of an export, which needs no service; the database of the settings unless given.
    public_key
        PEM file of the key whose signature the export must carry.
    against
        Folder of an earlier export: its chains must still be there, or have a tombstone. Only so is a chain found that
        lost its end.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    if export is not None:
        return _told(_verdict(export, public_key), public_key)
    return _with_database(Settings.load(settings), lambda database: _verified(database, _manifest(against)))


@audit.command
def export(
    folder: Path,
    *,
    since: str = "",
    until: str = "",
    key: Path | None = None,
    settings: Path | None = None,
) -> None:
    """Write whole chains into a new folder that proves itself; `inquest audit verify FOLDER` checks it.

    Parameters
    ----------
    folder
        Folder to make; nothing is written over.
    since
        Only chains whose last event is not before this RFC 3339 time.
    until
        Only chains whose last event is before this RFC 3339 time; now unless given.
    key
        PEM file of the Ed25519 key that signs; that of the settings unless given.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    begin, end = _instant(since, "since"), _instant(until, "until") or datetime.now(UTC)
    chosen = Settings.load(settings)
    signer = _signer(key or chosen.audit.signing_key_file)
    manifest = _with_database(
        chosen, lambda database: archive.write_export(database, folder, since=begin, until=end, sign=signer)
    )
    print(_sum(manifest, folder))


@audit.command
def retire(
    folder: Path,
    *,
    older_than_days: int | None = None,
    key: Path | None = None,
    settings: Path | None = None,
) -> None:
    """Export the chains that are past their retention, check the export, then delete them and leave a tombstone.

    Parameters
    ----------
    folder
        Folder to make for the export; keep it.
    older_than_days
        Days after its last event, where that is less than what the events themselves say (7 years).
    key
        PEM file of the Ed25519 key that signs the export; that of the settings unless given.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    chosen = Settings.load(settings)
    signer = _signer(key or chosen.audit.signing_key_file)
    shorter = None if older_than_days is None else timedelta(days=older_than_days)
    if older_than_days is not None and older_than_days < 1:
        raise Misconfigured("older-than-days: at least 1")
    now = datetime.now(UTC)
    done = _with_database(
        chosen, lambda database: archive.retire_chains(database, folder, now=now, older_than=shorter, sign=signer)
    )
    print(_sum(done.manifest, folder))
    for name in done.broken:
        print_warning(f"kept, for its hashes do not hold: {name}")


# --- parts ------------------------------------------------------------------------------------------------------


def _with_database(settings: Settings, work: Callable[[Database], Awaitable[Outcome]]) -> Outcome:
    """The database of the settings; one that is not there is never made."""
    url = settings.datastorage.database
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        command = in_pod("audit verify", settings.kubernetes.namespace)
        raise Misconfigured(
            f"datastorage.database: there is no {parsed.database}; the trail lies where the operator, or the served "
            f"DataStorage, runs, and is checked there: {command}"
        )
    return asyncio.run(_opened(url, work))


async def _opened(url: str, work: Callable[[Database], Awaitable[Outcome]]) -> Outcome:
    database = open_database(url)
    try:
        return await work(database)
    except bundle.NotWhole as error:
        raise Misconfigured(str(error)) from error
    except (SQLAlchemyError, OSError) as error:
        raise Unavailable("the database", str(getattr(error, "orig", None) or error).partition("\n")[0]) from error
    finally:
        await database.close()


async def _verified(database: Database, earlier: bundle.Manifest | None) -> int:
    found = await archive.check_chains(database)
    for finding in found.findings:
        print_lines(_line(finding))
    if found.unreadable:
        print_lines(f"a row cannot be read, behind {found.unreadable}")
    lost = await archive.missing_heads(database, earlier) if earlier else ()
    for name in lost:
        print_lines(f"{name}: its last exported event is gone")
    faults = len(found.findings) + len(lost) + bool(found.unreadable)
    print_lines(f"{found.chains} chains, {found.events} events: {f'{faults} faults' if faults else 'all hold'}")
    return 1 if faults else 0


def _line(finding: BrokenLink) -> str:
    event = finding.link.event
    at = instant_text(event.event_timestamp)
    return f"{event.correlation_id}: event {event.event_id} ({event.event_type}, {at}): {finding.message}"


def _verdict(folder: Path, public_key: Path | None) -> bundle.BundleCheck:
    try:
        return bundle.verify_bundle(folder, _bytes(public_key))
    except bundle.NotWhole as error:
        raise Misconfigured(f"{public_key}: {error}") from error


def _told(verdict: bundle.BundleCheck, public_key: Path | None) -> int:
    print_lines(*verdict.faults)
    manifest = verdict.manifest
    if manifest is not None:
        end = f"{len(verdict.faults)} faults" if verdict.faults else "all hold"
        print(f"{len(manifest.chains)} chains, {manifest.count} events: {end}")
    if public_key is None:
        print("the signature was not checked: no --public-key", file=sys.stderr)
    return 1 if verdict.faults else 0


def _manifest(folder: Path | None) -> bundle.Manifest | None:
    if folder is None:
        return None
    verdict = bundle.verify_bundle(folder, None, signed=False)
    if verdict.manifest is None or verdict.faults:
        raise Misconfigured(f"{folder}: {verdict.faults[0]}")
    return verdict.manifest


def _sum(manifest: bundle.Manifest, folder: Path) -> str:
    signed = "signed" if manifest.public_key_fingerprint else "not signed"
    return f"{len(manifest.chains)} chains, {manifest.count} events in {folder}, {signed}"


def _signer(key: Path | None) -> bundle.Signer | None:
    raw = _bytes(key)
    try:
        return bundle.Signer(raw) if raw is not None else None
    except bundle.NotWhole as error:
        raise Misconfigured(f"{key}: {error}") from error


def _bytes(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}") from error


def _instant(text: str, name: str) -> datetime | None:
    try:
        return instant_from_text(text) if text else None
    except ValueError as error:
        raise Misconfigured(f"{name}: {error}") from error
