"""Endings by cluster and owner, and targets by cluster: what two clusters did is told apart (section 14)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """New columns are empty: no earlier version wrote what they are about."""
    for name in ("memory_cluster", "memory_owner"):
        op.add_column("audit_events", sa.Column(name, sa.Text(), nullable=True))
    where = sa.text("memory_cluster IS NOT NULL")
    op.create_index(
        "ix_memory",
        "audit_events",
        ["memory_cluster", "event_ts", "event_id", "memory_owner"],
        unique=False,
        sqlite_where=where,
        postgresql_where=where,
    )
    # Others may have named their cluster before: their key is derived anew, or their chain would not hold any more.
    op.execute(
        "UPDATE audit_events SET target_key = target_key || '@' || cluster_name "
        "WHERE target_key <> '' AND cluster_name <> ''"
    )


def downgrade() -> None:
    """Keys lose their cluster again."""
    op.execute(
        "UPDATE audit_events SET target_key = replace(target_key, '@' || cluster_name, '') "
        "WHERE target_key <> '' AND cluster_name <> ''"
    )
    op.drop_index("ix_memory", "audit_events")
    for name in ("memory_cluster", "memory_owner"):
        op.drop_column("audit_events", name)
