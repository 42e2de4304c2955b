"""The indexes of the tables, as the migrations leave them (section 14).

Apart from the tables: no statement names an index, and a condition of PostgreSQL's loads all that is known about it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index

from inquest.datastorage.tables import audit_events, metadata, workflows


def _partial(name: str, *columns: str, where: Any, unique: bool = False) -> Index:
    owner = workflows if name.startswith("ux_wf") else audit_events
    chosen = [owner.c[column] for column in columns]
    return Index(name, *chosen, unique=unique, sqlite_where=where, postgresql_where=where)


Index("ux_event_id", audit_events.c.event_id, unique=True)
Index("ix_corr", audit_events.c.correlation_id, audit_events.c.event_ts, audit_events.c.event_id)
Index("ix_time", audit_events.c.event_ts, audit_events.c.event_id)
Index("ix_type_time", audit_events.c.event_type, audit_events.c.event_ts, audit_events.c.event_id)
Index("ix_wf_type", workflows.c.action_type, workflows.c.status, workflows.c.is_latest, workflows.c.workflow_id)
_partial("ux_wf_active", "workflow_name", "version", where=workflows.c.status == "Active", unique=True)
_partial(
    "ix_hist_target",
    *("target_key", "event_ts", "event_id", "correlation_id", "pre_spec_hash"),
    where=audit_events.c.target_key.is_not(None),
)
_partial(
    "ix_hist_pre",
    *("pre_spec_hash", "event_ts", "event_id", "correlation_id", "target_key"),
    where=audit_events.c.pre_spec_hash.is_not(None),
)
_partial(
    "ix_hist_corr",
    *("correlation_id", "event_ts", "event_id", "target_key", "pre_spec_hash"),
    where=audit_events.c.target_key.is_not(None),
)
_partial("ix_eff_post", "post_spec_hash", "correlation_id", where=audit_events.c.post_spec_hash.is_not(None))
_partial(
    "ix_eff_corr", "correlation_id", "event_ts", "event_id", where=audit_events.c.event_category == "effectiveness"
)
_partial("ix_life", "correlation_id", "event_ts", "lifecycle", where=audit_events.c.lifecycle.is_not(None))
_partial("ix_chain", "correlation_id", "seq", "event_hash", where=audit_events.c.event_hash.is_not(None))
_partial(
    "ix_memory",
    *("memory_cluster", "event_ts", "event_id", "memory_owner"),
    where=audit_events.c.memory_cluster.is_not(None),
)

__all__ = ["metadata"]
