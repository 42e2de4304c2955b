"""The indexes of the tables, as the migrations leave them.

Apart from the tables: no statement names an index. For one engine at a time: a condition of PostgreSQL's loads all that
is known about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Index, MetaData, text

from inquest.datastorage.store.tables import audit_events, metadata, workflows

_EVENTS: Final = audit_events.name
_WORKFLOWS: Final = workflows.name


@dataclass(frozen=True)
class _Index:
    name: str
    table: str
    columns: tuple[str, ...]
    where: str = ""
    unique: bool = False

    def of(self, tables: MetaData, engine: str) -> Index:
        """Itself on its table, in the words of that engine."""
        table = tables.tables[self.table]
        condition: dict[str, Any] = {f"{engine}_where": text(self.where)} if self.where else {}
        return Index(self.name, *(table.c[column] for column in self.columns), unique=self.unique, **condition)


_INDEXES: Final = (
    _Index("ix_chain", _EVENTS, ("correlation_id", "seq", "event_hash"), where="event_hash IS NOT NULL"),
    _Index("ix_corr", _EVENTS, ("correlation_id", "event_ts", "event_id")),
    _Index(
        "ix_eff_corr", _EVENTS, ("correlation_id", "event_ts", "event_id"), where="event_category = 'effectiveness'"
    ),
    _Index("ix_eff_post", _EVENTS, ("post_spec_hash", "correlation_id"), where="post_spec_hash IS NOT NULL"),
    _Index(
        "ix_hist_corr",
        _EVENTS,
        ("correlation_id", "event_ts", "event_id", "target_key", "pre_spec_hash"),
        where="target_key IS NOT NULL",
    ),
    _Index(
        "ix_hist_pre",
        _EVENTS,
        ("pre_spec_hash", "event_ts", "event_id", "correlation_id", "target_key"),
        where="pre_spec_hash IS NOT NULL",
    ),
    _Index(
        "ix_hist_target",
        _EVENTS,
        ("target_key", "event_ts", "event_id", "correlation_id", "pre_spec_hash"),
        where="target_key IS NOT NULL",
    ),
    _Index("ix_life", _EVENTS, ("correlation_id", "event_ts", "lifecycle"), where="lifecycle IS NOT NULL"),
    _Index("ix_time", _EVENTS, ("event_ts", "event_id")),
    _Index("ix_type_time", _EVENTS, ("event_type", "event_ts", "event_id")),
    _Index("ux_event_id", _EVENTS, ("event_id",), unique=True),
    _Index("ix_wf_type", _WORKFLOWS, ("action_type", "status", "is_latest", "workflow_id")),
    _Index("ux_wf_active", _WORKFLOWS, ("workflow_name", "version"), where="status = 'Active'", unique=True),
    _Index(
        "ix_memory",
        _EVENTS,
        ("memory_cluster", "event_ts", "event_id", "memory_owner"),
        where="memory_cluster IS NOT NULL",
    ),
)
"""As the revisions make them: between two that serve a question alike SQLite decides by their order."""


def indexes_of(engine: str) -> tuple[Index, ...]:
    """In the order to make them in, for `sqlite` or `postgresql`, each on its table."""
    tables = MetaData()
    for table in metadata.sorted_tables:
        table.to_metadata(tables)
    return tuple(index.of(tables, engine) for index in _INDEXES)


def indexed_tables(engine: str) -> MetaData:
    """The tables with all their indexes."""
    table = indexes_of(engine)[0].table
    assert table is not None
    return table.metadata
