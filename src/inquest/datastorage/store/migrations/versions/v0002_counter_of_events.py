"""A counter of the audit events, so that nobody has to count them (section 15)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the counter and let it begin with what is there."""
    if op.get_bind().dialect.name == "postgresql":
        # Whoever appends meanwhile waits, or its event would be missed; SQLite has one writer.
        op.execute("LOCK TABLE audit_events IN SHARE ROW EXCLUSIVE MODE")
    op.create_table(
        "audit_counter",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.execute("INSERT INTO audit_counter (id, events) SELECT 1, count(*) FROM audit_events")


def downgrade() -> None:
    """Nothing but the counter goes."""
    op.drop_table("audit_counter")
