"""`inquest audit …`: what a reviewer does with the audit trail, with the service away or beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cyclopts import App
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from inquest.cli.cases.records import in_pod
from inquest.cli.output import print_lines
from inquest.datastorage.domain.hash_chain import BrokenLink
from inquest.datastorage.store.chain_check import check_chains
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.opening import open_database
from inquest.datastorage.wire.types import instant_text
from inquest.errors import Misconfigured, Unavailable
from inquest.settings.settings import Settings

audit = App(name="audit", help="Check the audit trail.")


@audit.command
def verify(*, settings: Path | None = None) -> int:
    """Check every hash chain of the database.

    Exits with 0 where all holds, 1 where something does not, 5 where the database is away.

    Parameters
    ----------
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    return asyncio.run(_verified(_database_of(Settings.load(settings))))


def _database_of(settings: Settings) -> Database:
    """The database of the settings; one that is not there is never made."""
    url = settings.datastorage.database
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        command = in_pod("audit verify", settings.kubernetes.namespace)
        raise Misconfigured(
            f"datastorage.database: there is no {parsed.database}; the trail lies where the operator, or the served "
            f"DataStorage, runs, and is checked there: {command}"
        )
    return open_database(url)


async def _verified(database: Database) -> int:
    try:
        found = await check_chains(database)
    except (SQLAlchemyError, OSError) as error:
        raise Unavailable("the database", str(getattr(error, "orig", None) or error).partition("\n")[0]) from error
    finally:
        await database.close()
    print_lines(*map(_line, found.broken))
    if found.unreadable:
        print_lines(f"a row cannot be read, behind {found.unreadable}")
    faults = len(found.broken) + bool(found.unreadable)
    print_lines(f"{found.chains} chains, {found.events} events: {f'{faults} faults' if faults else 'all hold'}")
    return 1 if faults else 0


def _line(finding: BrokenLink) -> str:
    event = finding.link.event
    at = instant_text(event.event_timestamp)
    return f"{event.correlation_id}: event {event.event_id} ({event.event_type}, {at}): {finding.message}"
