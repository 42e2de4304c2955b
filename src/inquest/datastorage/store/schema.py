"""The revision of the tables: a new database gets the newest at once, Alembic is asked where an earlier one stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, select, text

from inquest.datastorage.store.indexes import indexes_of
from inquest.datastorage.store.tables import audit_counter, catalog_revision, metadata
from inquest.errors import Misconfigured

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST: Final = "0004"
"""The last of `migrations/versions`."""

MIGRATIONS: Final = "inquest.datastorage.store:migrations"
VERSIONS: Final = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own bookkeeping, as it makes it."""


def upgrade_schema(connection: Connection) -> None:
    """Bring the tables to the newest revision; raises `Misconfigured` for one that this version does not know."""
    found = revision_of(connection)
    if found == NEWEST:
        return
    if not found:
        # What all revisions together leave in an empty database.
        engine = connection.dialect.name
        metadata.create_all(connection, checkfirst=False)
        for index in indexes_of(engine):
            index.create(connection)
        VERSIONS.create(connection)
        connection.execute(catalog_revision.insert().values(id=1, revision=0))
        connection.execute(audit_counter.insert().values(id=1, events=0))
        connection.execute(VERSIONS.insert().values(version_num=NEWEST))
        if engine == "postgresql":
            # Index-only scans need a fresh visibility map, and this table only ever grows.
            connection.execute(text("ALTER TABLE audit_events SET (autovacuum_vacuum_insert_scale_factor = 0.02)"))
        return
    from alembic import command  # imported late: with what it needs it is a twelfth of the memory at rest
    from alembic.util import CommandError

    try:
        command.upgrade(migrations(connection), "head")
    except CommandError as error:
        raise Misconfigured(f"datastorage.database: its schema is not one of this version's: {error}") from error


def revision_of(connection: Connection) -> str:
    """What the database says of itself; empty without tables."""
    if not inspect(connection).has_table(VERSIONS.name):
        return ""
    return connection.scalar(select(VERSIONS.c.version_num)) or ""


def migrations(connection: Connection | None = None) -> Config:
    """Where Alembic finds the revisions, and the connection that they run on; without one they can be listed."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", MIGRATIONS)
    config.set_main_option("path_separator", "os")
    return config
