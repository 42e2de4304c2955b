"""Legal holds are gone, and with them their columns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from inquest.datastorage.store.tables import Instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What was held is an event as any other."""
    for name in ("legal_hold", "legal_hold_reason", "legal_hold_placed_by", "legal_hold_placed_at"):
        op.drop_column("audit_events", name)


def downgrade() -> None:
    """Nothing is held."""
    op.add_column("audit_events", sa.Column("legal_hold", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("audit_events", sa.Column("legal_hold_reason", sa.Text(), nullable=True))
    op.add_column("audit_events", sa.Column("legal_hold_placed_by", sa.Text(), nullable=True))
    op.add_column("audit_events", sa.Column("legal_hold_placed_at", Instant(), nullable=True))
