"""The revision of the tables. Alembic is asked only where one has to run, which few starts of a process meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, inspect, text

from inquest.errors import Misconfigured

if TYPE_CHECKING:
    from alembic.config import Config

NEWEST: Final = "0003"
"""The last of `migrations/versions`."""

MIGRATIONS: Final = "inquest.datastorage:migrations"
VERSIONS: Final = "alembic_version"


def upgrade(connection: Connection) -> None:
    """Bring the tables to the newest revision; raises `Misconfigured` for one that this version does not know."""
    if revision_of(connection) == NEWEST:
        return
    from alembic import command  # imported late: with what it needs it is a twelfth of the memory at rest
    from alembic.util import CommandError

    try:
        command.upgrade(migrations(connection), "head")
    except CommandError as error:
        raise Misconfigured(f"datastorage.database: its schema is not one of this version's: {error}") from error


def revision_of(connection: Connection) -> str:
    """What the database says of itself; empty without tables."""
    if not inspect(connection).has_table(VERSIONS):
        return ""
    return str(connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalar() or "")


def migrations(connection: Connection | None = None) -> Config:
    """Where Alembic finds the revisions, and the connection that they run on; without one they can be listed."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", MIGRATIONS)
    config.set_main_option("path_separator", "os")
    return config
