"""The tables, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    UUID,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from inquest.datastorage.wire.types import EPOCH, instant_of

Stored = Mapping[Any, Any]
"""A row as read, by column name."""

_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """UTC to the microsecond: `timestamptz` on PostgreSQL, microseconds since 1970 elsewhere."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type on this engine."""
        return dialect.type_descriptor(TIMESTAMP(timezone=True) if dialect.name == "postgresql" else BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """To the engine."""
        if value is None or dialect.name == "postgresql":
            return value
        return (value - EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """From the engine."""
        if value is None:
            return None
        return value.astimezone(UTC) if isinstance(value, datetime) else instant_of(value)


class Document(TypeDecorator[Any]):
    """JSON: `jsonb` on PostgreSQL, text elsewhere; a text that is no JSON any more reads as None."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type on this engine."""
        if dialect.name != "postgresql":
            return dialect.type_descriptor(Text())
        from sqlalchemy.dialects.postgresql import JSONB  # imported late: 2.4 MB that SQLite does without

        return dialect.type_descriptor(JSONB(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """To the engine."""
        if value is None or dialect.name == "postgresql":
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """From the engine."""
        if value is None or dialect.name == "postgresql":
            return value
        try:
            return json.loads(value)
        except ValueError:
            return None


class Identifier(TypeDecorator[str]):
    """A UUID in canonical text: `uuid` on PostgreSQL, text elsewhere; both sort alike."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type on this engine."""
        return dialect.type_descriptor(UUID(as_uuid=False) if dialect.name == "postgresql" else Text())


metadata = MetaData()

action_types = Table(
    "action_types",
    metadata,
    Column("action_type", Text, primary_key=True),
    Column("description", Document, nullable=False),
    Column("status", Text, nullable=False),
    Column("disabled_at", Instant),
    Column("disabled_by", Text),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text),
    Column("updated_at", Instant, nullable=False),
    Column("updated_by", Text),
)

workflows = Table(
    "workflows",
    metadata,
    Column("workflow_id", Identifier, primary_key=True),
    Column("workflow_name", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("action_type", Text, ForeignKey("action_types.action_type"), nullable=False),
    Column("status", Text, nullable=False),
    Column("status_reason", Text),
    Column("is_latest", Boolean, nullable=False),
    Column("previous_version", Text),
    Column("description", Document, nullable=False),
    Column("labels", Document, nullable=False),
    Column("custom_labels", Document, nullable=False),
    Column("detected_labels", Document, nullable=False),
    Column("parameters", Document, nullable=False),
    Column("engine_config", Document),
    Column("dependencies", Document),
    Column("execution_engine", Text, nullable=False),
    Column("execution_bundle", Text),
    Column("execution_bundle_digest", Text),
    Column("service_account_name", Text),
    Column("owner", Text),
    Column("maintainer", Text),
    Column("content", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("source", Text),
    Column("total_executions", Integer, nullable=False),
    Column("successful_executions", Integer, nullable=False),
    Column("actual_success_rate", Float),
    Column("disabled_at", Instant),
    Column("disabled_by", Text),
    Column("disabled_reason", Text),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text),
    Column("updated_at", Instant, nullable=False),
    Column("updated_by", Text),
)

catalog_revision = Table(
    "catalog_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("event_id", Identifier, nullable=False),
    Column("event_ts", Instant, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("event_category", Text, nullable=False),
    Column("event_action", Text, nullable=False),
    Column("event_outcome", Text, nullable=False),
    Column("correlation_id", Text, nullable=False),
    Column("parent_event_id", Identifier),
    Column("actor_type", Text),
    Column("actor_id", Text),
    Column("resource_type", Text),
    Column("resource_id", Text),
    Column("severity", Text),
    Column("namespace", Text),
    Column("cluster_name", Text),
    Column("duration_ms", Integer),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("retention_days", Integer, nullable=False),
    Column("is_sensitive", Boolean, nullable=False),
    Column("event_data", Document, nullable=False),
    Column("event_hash", Text),
    Column("previous_event_hash", Text),
    Column("target_key", Text),
    Column("pre_spec_hash", Text),
    Column("post_spec_hash", Text),
    Column("lifecycle", Text),
    Column("memory_cluster", Text),
    Column("memory_owner", Text),
    sqlite_autoincrement=True,
)

audit_counter = Table(
    "audit_counter",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("events", BigInteger, nullable=False),
)
