"""The six kinds in one table: names, columns, selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.base import GROUP, Resource
from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.signal import Signal
from inquest.tables import read_table

CATEGORY: Final = "inquest"


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`; a wide one shows with `-o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "date"] = "string"
    wide: bool = False


@dataclass(frozen=True)
class KindEntry:
    """What the API server is told about one kind beside its schema."""

    model: type[Resource]
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """Paths that a field selector may name (Kubernetes 1.31 and later)."""

    @property
    def kind(self) -> str:
        return self.model.__name__

    @property
    def plural(self) -> str:
        return self.model.PLURAL

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"


def _entry(model: type[Resource], row: Mapping[str, Any]) -> KindEntry:
    columns = tuple(Column(**column) for column in row["columns"])
    return KindEntry(model, row["short"], columns, row.get("selectable", ()))


_TABLE: Final = read_table(__package__, "kinds.yaml")
_MODELS: Final = (
    Signal,
    Investigation,
    RemediationApprovalRequest,
    WorkflowExecution,
    ActionType,
    RemediationWorkflow,
)
KINDS: Final[tuple[KindEntry, ...]] = tuple(_entry(model, _TABLE[model.__name__]) for model in _MODELS)
BY_KIND: Final[Mapping[str, KindEntry]] = {entry.kind: entry for entry in KINDS}
PLURALS: Final[tuple[str, ...]] = tuple(entry.plural for entry in KINDS)
