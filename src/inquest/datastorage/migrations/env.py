"""Alembic's entry: the caller hands its connection over, so nothing is opened here."""

from __future__ import annotations

from alembic import context

from inquest.datastorage.indexes import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
