"""The catalogue and the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from inquest.datastorage.store import tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, their indices and the one row of the revision counter."""
    op.create_table(
        "action_types",
        sa.Column("action_type", sa.Text(), nullable=False),
        sa.Column("description", tables.Document(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("disabled_at", tables.Instant(), nullable=True),
        sa.Column("disabled_by", sa.Text(), nullable=True),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("updated_at", tables.Instant(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("action_type"),
    )
    op.create_table(
        "audit_events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("event_id", tables.Identifier(), nullable=False),
        sa.Column("event_ts", tables.Instant(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("event_category", sa.Text(), nullable=False),
        sa.Column("event_action", sa.Text(), nullable=False),
        sa.Column("event_outcome", sa.Text(), nullable=False),
        sa.Column("correlation_id", sa.Text(), nullable=False),
        sa.Column("parent_event_id", tables.Identifier(), nullable=True),
        sa.Column("actor_type", sa.Text(), nullable=True),
        sa.Column("actor_id", sa.Text(), nullable=True),
        sa.Column("resource_type", sa.Text(), nullable=True),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("severity", sa.Text(), nullable=True),
        sa.Column("namespace", sa.Text(), nullable=True),
        sa.Column("cluster_name", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("retention_days", sa.Integer(), nullable=False),
        sa.Column("is_sensitive", sa.Boolean(), nullable=False),
        sa.Column("event_data", tables.Document(), nullable=False),
        sa.Column("event_hash", sa.Text(), nullable=True),
        sa.Column("previous_event_hash", sa.Text(), nullable=True),
        sa.Column("legal_hold", sa.Boolean(), nullable=False),
        sa.Column("legal_hold_reason", sa.Text(), nullable=True),
        sa.Column("legal_hold_placed_by", sa.Text(), nullable=True),
        sa.Column("legal_hold_placed_at", tables.Instant(), nullable=True),
        sa.Column("target_key", sa.Text(), nullable=True),
        sa.Column("pre_spec_hash", sa.Text(), nullable=True),
        sa.Column("post_spec_hash", sa.Text(), nullable=True),
        sa.Column("lifecycle", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_chain",
        "audit_events",
        ["correlation_id", "seq", "event_hash"],
        unique=False,
        sqlite_where=sa.text("event_hash IS NOT NULL"),
        postgresql_where=sa.text("event_hash IS NOT NULL"),
    )
    op.create_index("ix_corr", "audit_events", ["correlation_id", "event_ts", "event_id"], unique=False)
    op.create_index(
        "ix_eff_corr",
        "audit_events",
        ["correlation_id", "event_ts", "event_id"],
        unique=False,
        sqlite_where=sa.text("event_category = 'effectiveness'"),
        postgresql_where=sa.text("event_category = 'effectiveness'"),
    )
    op.create_index(
        "ix_eff_post",
        "audit_events",
        ["post_spec_hash", "correlation_id"],
        unique=False,
        sqlite_where=sa.text("post_spec_hash IS NOT NULL"),
        postgresql_where=sa.text("post_spec_hash IS NOT NULL"),
    )
    op.create_index(
        "ix_hist_corr",
        "audit_events",
        ["correlation_id", "event_ts", "event_id", "target_key", "pre_spec_hash"],
        unique=False,
        sqlite_where=sa.text("target_key IS NOT NULL"),
        postgresql_where=sa.text("target_key IS NOT NULL"),
    )
    op.create_index(
        "ix_hist_pre",
        "audit_events",
        ["pre_spec_hash", "event_ts", "event_id", "correlation_id", "target_key"],
        unique=False,
        sqlite_where=sa.text("pre_spec_hash IS NOT NULL"),
        postgresql_where=sa.text("pre_spec_hash IS NOT NULL"),
    )
    op.create_index(
        "ix_hist_target",
        "audit_events",
        ["target_key", "event_ts", "event_id", "correlation_id", "pre_spec_hash"],
        unique=False,
        sqlite_where=sa.text("target_key IS NOT NULL"),
        postgresql_where=sa.text("target_key IS NOT NULL"),
    )
    op.create_index(
        "ix_life",
        "audit_events",
        ["correlation_id", "event_ts", "lifecycle"],
        unique=False,
        sqlite_where=sa.text("lifecycle IS NOT NULL"),
        postgresql_where=sa.text("lifecycle IS NOT NULL"),
    )
    op.create_index("ix_time", "audit_events", ["event_ts", "event_id"], unique=False)
    op.create_index("ix_type_time", "audit_events", ["event_type", "event_ts", "event_id"], unique=False)
    op.create_index("ux_event_id", "audit_events", ["event_id"], unique=True)
    op.create_table(
        "catalog_revision",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "workflows",
        sa.Column("workflow_id", tables.Identifier(), nullable=False),
        sa.Column("workflow_name", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("action_type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("is_latest", sa.Boolean(), nullable=False),
        sa.Column("previous_version", sa.Text(), nullable=True),
        sa.Column("description", tables.Document(), nullable=False),
        sa.Column("labels", tables.Document(), nullable=False),
        sa.Column("custom_labels", tables.Document(), nullable=False),
        sa.Column("detected_labels", tables.Document(), nullable=False),
        sa.Column("parameters", tables.Document(), nullable=False),
        sa.Column("engine_config", tables.Document(), nullable=True),
        sa.Column("dependencies", tables.Document(), nullable=True),
        sa.Column("execution_engine", sa.Text(), nullable=False),
        sa.Column("execution_bundle", sa.Text(), nullable=True),
        sa.Column("execution_bundle_digest", sa.Text(), nullable=True),
        sa.Column("service_account_name", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("maintainer", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("total_executions", sa.Integer(), nullable=False),
        sa.Column("successful_executions", sa.Integer(), nullable=False),
        sa.Column("actual_success_rate", sa.Float(), nullable=True),
        sa.Column("disabled_at", tables.Instant(), nullable=True),
        sa.Column("disabled_by", sa.Text(), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("updated_at", tables.Instant(), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["action_type"],
            ["action_types.action_type"],
        ),
        sa.PrimaryKeyConstraint("workflow_id"),
    )
    op.create_index("ix_wf_type", "workflows", ["action_type", "status", "is_latest", "workflow_id"], unique=False)
    op.create_index(
        "ux_wf_active",
        "workflows",
        ["workflow_name", "version"],
        unique=True,
        sqlite_where=sa.text("status = 'Active'"),
        postgresql_where=sa.text("status = 'Active'"),
    )

    op.execute("INSERT INTO catalog_revision (id, revision) VALUES (1, 0)")
    if op.get_bind().dialect.name == "postgresql":
        # Index-only scans need a fresh visibility map, and this table only ever grows (section 15).
        op.execute("ALTER TABLE audit_events SET (autovacuum_vacuum_insert_scale_factor = 0.02)")


def downgrade() -> None:
    """Nothing goes back behind the first revision: it would drop the audit trail."""
    raise NotImplementedError("the audit trail is not dropped")
