"""Workflows and action types in the database; discovery reads them from memory, keyed by one counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select, update

from inquest.datastorage.domain.content import ParsedWorkflow
from inquest.datastorage.domain.registration import (
    ACTIVE,
    DISABLED,
    SUPERSEDED,
    RegistrationAct,
    RegistrationDecision,
    StoredRow,
    decide_registration,
)
from inquest.datastorage.domain.scoring import Offer, TaxonomyEntry, WorkflowLabelSet, texts_of
from inquest.datastorage.problems import WireProblem, not_found, validation_error
from inquest.datastorage.store.database import Database
from inquest.datastorage.store.tables import Stored, action_types, catalog_revision, workflows
from inquest.datastorage.wire.parameters import PlainListQuestion
from inquest.datastorage.wire.types import instant_text

ENABLED_AGAIN = "reenabled"  # codespell:ignore
"""The wire's word."""

UPDATABLE_STATUSES = ("Active", "Disabled", "Deprecated", "Archived")


_REVISION = select(catalog_revision.c.revision)
_BY_ID = select(workflows).where(workflows.c.workflow_id == bindparam("id"))


@dataclass(frozen=True)
class CatalogueCache:
    """What discovery needs of the catalogue at one revision."""

    revision: int
    types: tuple[TaxonomyEntry, ...]
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class Registered:
    """The answer to a registration: HTTP status and the record."""

    status: int
    record: Mapping[str, Any]


class CatalogueStore:
    """Reads and writes of the catalogue."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached: CatalogueCache | None = None

    async def cached(self) -> CatalogueCache:
        """The offers of the present revision; the counter is read on every call, so that replicas agree."""
        cached = self._cached = await self._database.read(lambda connection: _present(connection, self._cached))
        return cached

    async def workflow(self, workflow_id: str) -> Stored | None:
        """The stored row."""
        return await self._database.read(
            lambda connection: connection.execute(_BY_ID, {"id": workflow_id}).mappings().one_or_none()
        )

    async def plain_list(self, question: PlainListQuestion) -> tuple[list[dict[str, Any]], int]:
        """A page of records, newest first, and the number of all that fit."""
        order = workflows.c.created_at.desc(), workflows.c.workflow_id
        exact = ((workflows.c.status, question.status), (workflows.c.workflow_name, question.workflow_name))
        wanted = select(workflows).where(*[column == wanted for column, wanted in exact if wanted]).order_by(*order)
        rows = await self._database.read(lambda connection: connection.execute(wanted).mappings().all())
        fitting = [row for row in rows if _fits_labels(row["labels"] or {}, question)]
        return [full_record(row) for row in fitting[question.offset : question.offset + question.limit]], len(fitting)

    async def register(self, workflow: ParsedWorkflow, *, source: str, by: str, now: datetime) -> Registered:
        """The duplicate decision and what follows from it, in one transaction."""

        def work(connection: Connection) -> Registered:
            _take_turn(connection)
            _check_action_type(connection, workflow.action_type)
            held = _held(connection, workflow.workflow_name)
            decision = decide_registration(
                held, workflow_id=workflow.workflow_id, version=workflow.version, content_hash=workflow.content_hash
            )
            _refuse_clash(decision, workflow)
            if decision.act is not RegistrationAct.KEEP:
                _carry_out(connection, decision, workflow, source=source, by=by, now=now)
            return Registered(decision.status, full_record(_existing(connection, workflow.workflow_id)))

        return await self._database.write(work)

    async def change(self, workflow_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Set columns of a workflow; 404 `not-found` when there is none."""

        def work(connection: Connection) -> dict[str, Any]:
            _take_turn(connection)
            if connection.execute(_BY_ID, {"id": workflow_id}).first() is None:
                raise not_found("not-found", f"Workflow not found: {workflow_id}")
            connection.execute(update(workflows).where(workflows.c.workflow_id == workflow_id).values(**values))
            _raise_revision(connection)
            return full_record(_existing(connection, workflow_id))

        return await self._database.write(work)

    async def register_type(
        self, name: str, description: Mapping[str, str], *, by: str, now: datetime
    ) -> tuple[str, Mapping[str, Any]]:
        """`created`, `exists` or `ENABLED_AGAIN`, and the description now in force."""

        def work(connection: Connection) -> tuple[str, Mapping[str, Any]]:
            _take_turn(connection)
            row = _type(connection, name)
            if row is not None and row.status == ACTIVE:
                return "exists", row.description
            values = {"description": dict(description), "status": ACTIVE, "updated_at": now, "updated_by": by}
            if row is None:
                made = action_types.insert().values(action_type=name, created_at=now, created_by=by, **values)
            else:
                made = _type_update(name, disabled_at=None, disabled_by=None, **values)
            connection.execute(made)
            _raise_revision(connection)
            return "created" if row is None else ENABLED_AGAIN, description

        return await self._database.write(work)

    async def describe_type(
        self, name: str, description: Mapping[str, str], *, by: str, now: datetime
    ) -> Mapping[str, Any]:
        """Replace a description; the old one is returned."""

        def work(connection: Connection) -> Mapping[str, Any]:
            _take_turn(connection)
            row = _existing_type(connection, name)
            if row.status != ACTIVE:
                detail = f'Action type "{name}" is disabled and cannot be updated'
                raise WireProblem(409, "action-type-disabled", detail, title="Action Type Disabled")
            if row.description != description:
                connection.execute(_type_update(name, description=dict(description), updated_at=now, updated_by=by))
                _raise_revision(connection)
            old: Mapping[str, Any] = row.description
            return old

        return await self._database.write(work)

    async def disable_type(self, name: str, *, by: str, now: datetime) -> list[str]:
        """Disable a type; the names of active workflows that forbid it, none when it is disabled now."""

        def work(connection: Connection) -> list[str]:
            _take_turn(connection)
            row = _existing_type(connection, name)
            names = sorted(connection.scalars(_using(name)).all())
            if not names and row.status == ACTIVE:
                connection.execute(
                    _type_update(name, status=DISABLED, disabled_at=now, disabled_by=by, updated_at=now, updated_by=by)
                )
                _raise_revision(connection)
            return names

        return await self._database.write(work)

    async def workflow_count(self, name: str) -> int:
        """Active workflows of a type; 0 for an unknown one."""
        return len(await self._database.read(lambda connection: connection.scalars(_using(name)).all()))

    async def types(self) -> list[dict[str, Any]]:
        """All action types with their state, by name."""
        rows = await self._database.read(lambda connection: connection.execute(select(action_types)).all())
        listed = [{"actionType": row.action_type, "description": row.description, "status": row.status} for row in rows]
        return sorted(listed, key=lambda entry: str(entry["actionType"]).encode())


def _present(connection: Connection, cached: CatalogueCache | None) -> CatalogueCache:
    revision = connection.scalar(_REVISION) or 0
    return cached if cached is not None and cached.revision == revision else _load(connection, revision)


def _load(connection: Connection, revision: int) -> CatalogueCache:
    types = connection.execute(select(action_types))
    offered = workflows.c.status == ACTIVE, workflows.c.is_latest
    columns = [column for column in workflows.c if column.name != "content"]
    rows = connection.execute(select(*columns).where(*offered)).mappings()
    return CatalogueCache(
        revision,
        tuple(TaxonomyEntry(row.action_type, described(row.description), row.status == ACTIVE) for row in types),
        tuple(Offer(row["workflow_id"], row["action_type"], labels_of(row), summary(row)) for row in rows),
    )


_LABEL_COLUMNS = ("labels", "custom_labels", "detected_labels")


def labels_of(row: Stored) -> WorkflowLabelSet:
    """The three label sets of a stored row."""
    return WorkflowLabelSet(*(row[name] if isinstance(row[name], dict) else {} for name in _LABEL_COLUMNS))


def described(stored: object) -> dict[str, Any]:
    """A description as an object; a plain text is read as `what`."""
    return {"what": stored} if isinstance(stored, str) else dict(stored) if isinstance(stored, dict) else {}


def summary(row: Stored) -> dict[str, Any]:
    """What discovery step 2 shows of a workflow."""
    members = {
        "workflowId": row["workflow_id"],
        "workflowName": row["workflow_name"],
        "name": row["name"],
        "description": described(row["description"]),
        "version": row["version"],
        "actionType": row["action_type"],
        "contentHash": row["content_hash"],
        "executionBundle": row["execution_bundle"],
        "executionEngine": row["execution_engine"],
        "serviceAccountName": row["service_account_name"],
        "parameters": {"schema": {"parameters": row["parameters"] or []}},
    }
    return {name: value for name, value in members.items() if value is not None}


def full_record(row: Stored) -> dict[str, Any]:
    """The full record; what is unset is left out."""
    times = {name: row[column] for name, column in _TIMES.items()}
    people = {
        **{name: instant_text(at) if at else None for name, at in times.items()},
        "disabledBy": row["disabled_by"],
        "disabledReason": row["disabled_reason"],
        "createdBy": row["created_by"],
        "updatedBy": row["updated_by"],
    }
    members = {
        **summary(row),
        "schemaVersion": row["schema_version"],
        "isLatestVersion": row["is_latest"],
        "previousVersion": row["previous_version"],
        "content": row["content"],
        "owner": row["owner"],
        "maintainer": row["maintainer"],
        "executionBundleDigest": row["execution_bundle_digest"],
        "engineConfig": row["engine_config"],
        "labels": row["labels"],
        "customLabels": row["custom_labels"] or None,
        "detectedLabels": row["detected_labels"] or {},
        "status": row["status"],
        "statusReason": row["status_reason"],
        "source": row["source"],
        "totalExecutions": row["total_executions"],
        "successfulExecutions": row["successful_executions"],
        "actualSuccessRate": row["actual_success_rate"],
        **people,
    }
    return {name: value for name, value in members.items() if value is not None}


_TIMES = {"disabledAt": "disabled_at", "createdAt": "created_at", "updatedAt": "updated_at"}


def _fits_labels(labels: Mapping[str, Any], question: PlainListQuestion) -> bool:
    exact = (("environment", question.environment), ("priority", question.priority))
    if not all(not wanted or {wanted, "*"} & set(texts_of(labels.get(name))) for name, wanted in exact):
        return False
    kinds = {text.lower() for text in texts_of(labels.get("component"))}
    return not question.component or bool({question.component.lower(), "*"} & kinds)


def _check_action_type(connection: Connection, name: str) -> None:
    row = _type(connection, name)
    if row is None or row.status != ACTIVE:
        raise validation_error(f"action_type '{name}' is not in the action type taxonomy (DD-WORKFLOW-016)")


def _held(connection: Connection, name: str) -> list[StoredRow]:
    columns = workflows.c.workflow_id, workflows.c.version, workflows.c.content_hash, workflows.c.status
    newest_first = workflows.c.updated_at.desc(), workflows.c.workflow_id
    rows = connection.execute(select(*columns).where(workflows.c.workflow_name == name).order_by(*newest_first))
    return [StoredRow(*row) for row in rows]


def _refuse_clash(decision: RegistrationDecision, workflow: ParsedWorkflow) -> None:
    if decision.clash is None:
        return
    change = f"{decision.clash.content_hash[:12]}→{workflow.content_hash[:12]}"
    raise WireProblem(
        409,
        "content-integrity-violation",
        f'active workflow "{workflow.workflow_name}" version "{workflow.version}" already has different content '
        f"(hash {change}); bump the version to register new content",
        title="Content Changed Without Version Bump",
    )


def _carry_out(
    connection: Connection,
    decision: RegistrationDecision,
    workflow: ParsedWorkflow,
    *,
    source: str,
    by: str,
    now: datetime,
) -> None:
    of_name = workflows.c.workflow_name == workflow.workflow_name
    connection.execute(update(workflows).where(of_name).values(is_latest=False))
    superseded = workflows.c.workflow_id.in_(decision.superseded)
    why = f"superseded: new version {workflow.version} registered (was {decision.previous})"
    gone = {"status": SUPERSEDED, "status_reason": why, "updated_at": now}
    connection.execute(update(workflows).where(superseded).values(**gone))
    state = {"status": ACTIVE, "is_latest": True, "updated_at": now, "updated_by": by}
    if decision.act is RegistrationAct.REVIVE:
        connection.execute(_workflow_update(workflow.workflow_id, {**state, **NOT_DISABLED}))
    else:
        created = {"created_at": now, "created_by": by, "source": source, "previous_version": decision.previous}
        connection.execute(workflows.insert().values(**_columns(workflow), **state, **created))
    _raise_revision(connection)


NOT_DISABLED: Mapping[str, Any] = {
    "disabled_at": None,
    "disabled_by": None,
    "disabled_reason": None,
    "status_reason": None,
}
"""What leaves a row when it is Active again."""


def _columns(workflow: ParsedWorkflow) -> dict[str, Any]:
    same = (
        "workflow_id",
        "workflow_name",
        "name",
        "version",
        "schema_version",
        "action_type",
        "content",
        "content_hash",
    )
    labels = (
        "description",
        "labels",
        "custom_labels",
        "detected_labels",
        "parameters",
        "engine_config",
        "dependencies",
    )
    more = ("execution_engine", "execution_bundle", "service_account_name", "owner", "maintainer")
    return {
        **{name: getattr(workflow, name) for name in (*same, *labels, *more)},
        "execution_bundle_digest": workflow.bundle_digest,
        "total_executions": 0,
        "successful_executions": 0,
    }


def _workflow_update(workflow_id: str, values: Mapping[str, Any]) -> Any:
    return update(workflows).where(workflows.c.workflow_id == workflow_id).values(**values)


def _existing(connection: Connection, workflow_id: str) -> Stored:
    return (connection.execute(_BY_ID, {"id": workflow_id})).mappings().one()


def _type(connection: Connection, name: str) -> Row[Any] | None:
    return (connection.execute(select(action_types).where(action_types.c.action_type == name))).one_or_none()


def _existing_type(connection: Connection, name: str) -> Row[Any]:
    row = _type(connection, name)
    if row is None:
        raise not_found("not-found", f'Action type "{name}" not found')
    return row


def _type_update(name: str, **values: Any) -> Any:
    return update(action_types).where(action_types.c.action_type == name).values(**values)


def _using(name: str) -> Select[str]:
    return select(workflows.c.workflow_name).where(workflows.c.action_type == name, workflows.c.status == ACTIVE)


def _take_turn(connection: Connection) -> None:
    """One catalogue change at a time: two versions posted together must not both become the latest."""
    connection.execute(select(catalog_revision.c.id).with_for_update())


def _raise_revision(connection: Connection) -> None:
    connection.execute(update(catalog_revision).values(revision=catalog_revision.c.revision + 1))
