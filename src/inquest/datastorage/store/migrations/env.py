"""Alembic's entry: the caller hands its connection over, so nothing is opened here."""

from __future__ import annotations

from alembic import context

from inquest.datastorage.store.indexes import indexed_tables

_connection = context.config.attributes["connection"]
context.configure(connection=_connection, target_metadata=indexed_tables(_connection.dialect.name))
with context.begin_transaction():
    context.run_migrations()
