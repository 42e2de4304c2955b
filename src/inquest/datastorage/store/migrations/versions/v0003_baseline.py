"""Where the revisions begin: a new database is made by `schema`, at the newest one."""

from __future__ import annotations

revision = "0003"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody comes from before."""


def downgrade() -> None:
    """Nobody goes further back."""
