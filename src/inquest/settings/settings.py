"""Every setting and its default, in one place; everything else quotes it.

Read from a YAML file, then `INQUEST_…` environment variables (`INQUEST_APPROVAL__TIMEOUT=5m`), then secret files.
Frozen, and checked as a whole: a start with bad ones fails and names the fields. What is marked `LIVE` is taken up from
a file that changed while the operator runs (`inquest.operator.reload`); everything else waits for a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from inquest.errors import Misconfigured
from inquest.settings.backends import (
    AlertmanagerSettings,
    DataStorageSettings,
    KubernetesSettings,
    LokiSettings,
    PrometheusSettings,
)
from inquest.settings.base import LIVE, Span
from inquest.settings.cases import (
    ApprovalSettings,
    ClassificationSettings,
    EffectivenessSettings,
    ExecutionSettings,
    FreezeWindowSettings,
    HistorySettings,
    LimitSettings,
    PolicySettings,
    RcaSettings,
    RedactionSettings,
    RunnerSettings,
    ScopeSettings,
    TriageSettings,
)
from inquest.settings.model import BudgetSettings, ModelSettings
from inquest.settings.notifications import NotificationSettings
from inquest.settings.server import EvidenceSettings, IntakeSettings, ServerSettings, TelemetrySettings


class Settings(BaseSettings):
    """The whole of it, frozen."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="INQUEST_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    kubernetes: KubernetesSettings = KubernetesSettings()
    model: ModelSettings = ModelSettings()
    limits: Annotated[LimitSettings, LIVE] = LimitSettings()
    budget: Annotated[BudgetSettings, LIVE] = BudgetSettings()
    rca: RcaSettings = RcaSettings()
    runner: RunnerSettings = RunnerSettings()
    policy: PolicySettings = PolicySettings()
    approval: Annotated[ApprovalSettings, LIVE] = ApprovalSettings()
    triage: Annotated[TriageSettings, LIVE] = TriageSettings()
    scope: Annotated[ScopeSettings, LIVE] = ScopeSettings()
    classification: Annotated[ClassificationSettings, LIVE] = ClassificationSettings()
    history: Annotated[HistorySettings, LIVE] = HistorySettings()
    redaction: RedactionSettings = RedactionSettings()
    execution: ExecutionSettings = ExecutionSettings()
    effectiveness: Annotated[EffectivenessSettings, LIVE] = EffectivenessSettings()
    datastorage: DataStorageSettings = DataStorageSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    loki: LokiSettings = LokiSettings()
    alertmanager: AlertmanagerSettings = AlertmanagerSettings()
    herald: NotificationSettings = NotificationSettings()
    server: ServerSettings = ServerSettings()
    intake: IntakeSettings = IntakeSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    freeze: Annotated[bool, LIVE] = False
    """The kill switch: nothing is asked and no effect begins. A ConfigMap `inquest-freeze` does the same at once."""
    freeze_windows: Annotated[tuple[FreezeWindowSettings, ...], LIVE] = ()
    """Recurring times in which nothing is asked and no effect begins: `name`, `schedule`, `duration`, `time_zone`, …"""
    cluster_name: str = "default"
    """Named in notices and in the policy input."""
    replica: str = "inquest-0"
    """Name of this replica, unique among the living; a pod's name in a cluster."""
    retention: Annotated[Span, LIVE] = timedelta(days=7)
    """How long an ended Investigation and its Signal stay once DataStorage holds the case; 0 keeps them."""
    retention_count: Annotated[int, Field(ge=0), LIVE] = 500
    """Ended Investigations that one namespace keeps; 0: any number. What ended within a day stays."""
    status_max_bytes: Annotated[int, Field(ge=4096), LIVE] = 65536
    """Largest status of an Investigation."""
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LIVE] = "info"
    """Least severity that is logged."""
    log_format: Literal["json", "text"] = "json"
    """One line for each unit of work."""
    access_allow_excess: tuple[str, ...] = ()
    """Rights that Inquest should not have and that are tolerated, `verb resource`."""

    @model_validator(mode="after")
    def _windows_have_names_of_their_own(self) -> Self:
        names = [window.name for window in self.freeze_windows]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"freeze_windows: {', '.join(twice)}: a name stands for one window")
        return self

    @model_validator(mode="after")
    def _workflows_are_read(self) -> Self:
        read = {self.kubernetes.namespace, *self.kubernetes.namespaces}
        unread = sorted(set(self.execution.workflow_namespaces) - read)
        if self.kubernetes.namespaces and unread:
            names = ", ".join(unread)
            raise ValueError(f"execution.workflow_namespaces: {names} must be among kubernetes.namespaces, to be read")
        return self

    def secrets(self) -> tuple[str, ...]:
        """Every secret value that this process itself holds; never logged."""
        stack = (*self.prometheus.secrets(), *self.loki.secrets(), *self.alertmanager.secrets())
        return (*self.model.secrets(), *self.datastorage.secrets(), *self.herald.secrets(), *stack)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment beats the file, which arrives as init values."""
        return env_settings, init_settings

    @classmethod
    def load(cls, file: Path | None = None) -> Self:
        """Read and validate the whole; Misconfigured names the field and the rule."""
        try:
            return cls(**_values_of(file))
        except ValidationError as error:
            raise Misconfigured("settings: " + "; ".join(map(_fault, error.errors()))) from error
        except SettingsError as error:
            raise Misconfigured(f"settings: {error}; a group is set by its members, as INQUEST_MODEL__NAME") from error


def is_live(field: FieldInfo) -> bool:
    """Whether it is taken up while the process runs."""
    return LIVE in field.metadata


@dataclass(frozen=True)
class Leaf:
    """One setting, where it stands in the whole."""

    path: str
    """`approval.timeout`."""
    group: type[BaseModel]
    """In which it is a field."""
    field: FieldInfo
    live: bool

    def of(self, settings: Settings) -> object:
        """Its value."""
        return reduce(getattr, self.path.split("."), cast(object, settings))


def list_settings(group: type[BaseModel] = Settings, prefix: str = "", *, live: bool = False) -> Iterator[Leaf]:
    """Every single setting, in the order in which they are written here."""
    for name, field in group.model_fields.items():
        taken_up = live or is_live(field)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from list_settings(field.annotation, f"{prefix}{name}.", live=taken_up)
        else:
            yield Leaf(f"{prefix}{name}", group, field, taken_up)


def _values_of(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        found = yaml.safe_load(file.read_bytes()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise Misconfigured(f"settings file {file.name} cannot be read: {error}") from error
    if not isinstance(found, Mapping):
        raise Misconfigured(f"settings file {file.name} must hold a mapping")
    return dict(found)


def _fault(fault: ErrorDetails) -> str:
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] != "extra_forbidden":
        return f"{name}: {fault['msg']}"
    paths = (one.path.split(".") for one in list_settings())
    names = dict.fromkeys(".".join(parts[:deep]) for parts in paths for deep in range(1, len(parts) + 1))
    near = get_close_matches(name, list(names), n=1)
    return f"{name}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
