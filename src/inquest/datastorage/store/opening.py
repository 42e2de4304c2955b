"""Which engine a URL names; only that one is loaded."""

from __future__ import annotations

from sqlalchemy.engine import make_url

from inquest.datastorage.store.database import Database


def open_database(url: str) -> Database:
    """`sqlite:///file` or `postgresql://…`; opens no connection. ValueError for another, or for one without a file."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        from inquest.datastorage.store.sqlite import SqliteDatabase

        return SqliteDatabase(parsed)
    from inquest.datastorage.store.postgres import PostgresDatabase

    return PostgresDatabase(parsed)
