"""Every setting and its default, in one place; everything else quotes it.

Read from a YAML file, then `INQUEST_…` environment variables (`INQUEST_APPROVAL__TIMEOUT=5m`), then secret files.
Frozen, and checked as a whole: a start with bad ones fails and names the fields. What is marked `LIVE` is taken up from
a file that changed while the operator runs (`inquest.operator.reload`); everything else waits for a restart.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from email.errors import MessageError
from email.headerregistry import Address
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from inquest.api.base import timedelta_from_duration
from inquest.api.manifests.rbac import DATASTORAGE_SERVICE
from inquest.api.notices import NoticePriority, NoticeType
from inquest.api.types import Environment
from inquest.core.history.history import REPEAT_THRESHOLD
from inquest.core.remediation.freeze import FreezeWindow, overlap_fault, schedule_fault
from inquest.core.signals.classification import DEFAULT_CUSTOM_LABELS, MAX_CUSTOM_LABELS, PROACTIVE_NAMES
from inquest.errors import Misconfigured


def _span(value: object) -> object:
    return timedelta_from_duration(value) if isinstance(value, str) else value


Span = Annotated[timedelta, BeforeValidator(_span), Field(ge=timedelta(0))]
"""A Go duration such as `15m`; never negative."""
PositiveSpan = Annotated[timedelta, BeforeValidator(_span), Field(gt=timedelta(0))]
"""A Go duration above zero."""

LIVE: Final = "live"
"""Marks a setting, or a group, that is asked for anew wherever it is used: nothing was opened or built from it."""


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class PriceSettings(_Group):
    """What tokens cost, in any one currency, for a million of them."""

    prompt: Annotated[Decimal, Field(ge=0)]
    """Prompt tokens."""
    cached: Annotated[Decimal, Field(ge=0)] | None = None
    """Prompt tokens that the provider had cached; unset: as others."""
    completion: Annotated[Decimal, Field(ge=0)]
    """Completion tokens, reasoning included."""


class _Endpoint(_Group):
    endpoint: str = ""
    """Base URL of the endpoint."""
    name: str = ""
    """Name of the model; with `azure` the name of the deployment."""
    azure_api_version: str = "2024-10-21"
    """Version of Azure's API; read with `azure` only."""
    api_key: SecretStr = SecretStr("")
    """Key of the endpoint; better given as `api_key_file`."""
    api_key_file: Path | None = None
    """File that holds the key, as a mounted Secret does; read before every call."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that the endpoint is believed with; unset: those of the system."""
    proxy: SecretStr = SecretStr("")
    """`http://[user:password@]host:port`; unset: as `HTTPS_PROXY` and `NO_PROXY` say."""
    tool_protocol: Literal["native", "text"] = "native"
    """`text`: for endpoints without tool calls, tools are described in the prompt and called in the text."""
    context_window: Annotated[int, Field(ge=8000)] = 128_000
    """Tokens that the model can read."""
    price: PriceSettings | None = None
    """Currency units for a million tokens: `prompt`, `cached`, `completion`; unset: cost stays unknown."""
    max_concurrent: Annotated[int, Field(ge=1, le=1000)] = 50
    """Calls of this process at a time; fewer after the endpoint said that it has too much to do."""

    def key(self) -> str:
        """The key itself; never logged. Misconfigured where its file cannot be read."""
        if self.api_key_file is None:
            return self.api_key.get_secret_value()
        try:
            return self.api_key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Misconfigured(f"settings: model.api_key_file: {self.api_key_file} cannot be read: {error}") from error

    def _check(self, *, azure: bool) -> None:
        _check_url("endpoint", self.endpoint)
        if not self.name:
            raise ValueError("name: must be set")
        if azure and not self.azure_api_version:
            raise ValueError("azure_api_version: must be set")
        if proxy := self.proxy.get_secret_value():
            _check_url("proxy", proxy)


def _check_public(field: str, url: str) -> None:
    """The URL of a service that is logged in to with a file."""
    _check_url(field, url)
    if urlsplit(url).password or urlsplit(url).username:
        raise ValueError(f"{field}: must hold no user and no password; give a token_file")


PublicUrl = Annotated[str, Field(json_schema_extra={"pattern": "^([a-z]+://[^@/]+(/.*)?)?$"})]
"""One that may stand in a ConfigMap: the schema of the chart's values refuses a login in it as well."""


def _check_url(field: str, url: str) -> None:
    """The URL itself is not shown: it may hold a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{field}: must be a URL that begins with http:// or https://")


class EndpointSettings(_Endpoint):
    """A further endpoint; it inherits nothing from the first."""

    provider: Literal["openai", "azure"] = "openai"
    """`openai`: any endpoint that speaks its chat protocol."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self._check(azure=self.provider == "azure")
        return self


class ModelSettings(_Endpoint):
    """The model, or none: detectors and playbooks then give the diagnosis alone."""

    provider: Literal["none", "openai", "azure"] = "none"
    """`none` needs no key and no network; `openai`: any endpoint that speaks its chat protocol."""
    failover: tuple[EndpointSettings, ...] = ()
    """Further endpoints, asked in order when those before do not answer; each has the settings of the first."""
    temperature: float | None = None
    """Sent only when set."""
    timeout: PositiveSpan = timedelta(seconds=120)
    """Whole time of one call."""
    connect_timeout: PositiveSpan = timedelta(seconds=10)
    """Time to connect."""
    idle_timeout: PositiveSpan = timedelta(seconds=60)
    """Longest silence within an answer that has begun."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 5
    """Attempts for each endpoint."""
    max_wait: Span = timedelta(seconds=60)
    """All waits between the attempts of one call; an endpoint that asks for more is passed over."""
    stream: bool = True
    """Ask for the answer in pieces, so that a dead connection is seen."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.provider != "none":
            self._check(azure=self.provider == "azure")
        return self

    @property
    def endpoints(self) -> tuple[ModelSettings | EndpointSettings, ...]:
        """All of them, in order; none with provider `none`."""
        return () if self.provider == "none" else (self, *self.failover)

    def secrets(self) -> tuple[str, ...]:
        """Every key and proxy password that this process holds; never logged."""
        found = [(one.key(), urlsplit(one.proxy.get_secret_value()).password or "") for one in self.endpoints]
        return tuple(text for pair in found for text in pair if text)


class LimitSettings(_Group):
    """Budgets of one Investigation; its spec may set its own."""

    max_turns: Annotated[int, Field(ge=1, le=100)] = 20
    """Model turns for each invocation."""
    max_tool_calls: Annotated[int, Field(ge=1, le=500)] = 60
    """Tool calls of an Investigation."""
    max_calls_per_tool: Annotated[int, Field(ge=1)] = 15
    """Calls of one tool."""
    token_budget: Annotated[int, Field(ge=1000)] = 300_000
    """Prompt and completion tokens of an Investigation."""
    timeout: PositiveSpan = timedelta(minutes=15)
    """From the start of the work to the ruling."""
    queue_timeout: PositiveSpan = timedelta(hours=1)
    """Longest wait for a free place."""


class BudgetSettings(_Group):
    """What all cases may cost together."""

    tokens_per_hour: Annotated[int, Field(ge=1000)] | None = None
    """Prompt and completion tokens of an hour; then cases begin without a model. Empty: no limit."""


class RcaSettings(_Group):
    """How a model goes about finding a root cause; each may be changed alone."""

    error_hints: Annotated[bool, LIVE] = True
    """Say what a known failure of a read means, beside its own words."""
    visible_plan: Annotated[bool, LIVE] = True
    """Ask for a plan that people can follow."""
    sufficiency: Annotated[Literal["off", "lenient", "strict"], LIVE] = "lenient"
    """How strongly a fresh and healthy snapshot is recommended for a person's question."""
    snapshot_freshness: Annotated[Span, LIVE] = timedelta(seconds=30)
    """Age above which a snapshot is stale."""
    symptom_check: Annotated[bool, LIVE] = False
    """Ask once more where the target is of the kind that the Signal names."""
    finish_plan: Annotated[bool, LIVE] = False
    """Take no verdict before every planned tool was called; for models that conclude too early."""
    tool_budget: Annotated[int, Field(ge=1, le=50), LIVE] = 10
    """Tools that are planned first."""
    max_tool_schemas: Annotated[int, Field(ge=8, le=128), LIVE] = 32
    """Tool schemas in one request; three places are reserved."""
    max_stagnant_turns: Annotated[int, Field(ge=1, le=20), LIVE] = 2
    """Turns of nothing but repeats before the verdict is asked for."""
    summarize: Annotated[bool, LIVE] = False
    """Let the model shorten long results before it reads them; each takes a call of its own."""
    summarize_above: Annotated[int, Field(ge=1_000), LIVE] = 8_000
    """Characters above which a result is shortened."""
    streams: Annotated[bool, LIVE] = False
    """Where the root cause stays open, let four short looks follow: pod, metrics, logs, events; up to 16 more calls."""
    playbooks: bool = True
    """Put the playbooks that match into the prompt."""
    blocked_kinds: tuple[str, ...] = ("serviceaccounts",)
    """Kinds that the model's tools do not read, by plural or kind; Secrets never are, whatever stands here."""
    playbooks_folder: Path | None = None
    """Playbooks of your own, `*.yaml`; one of the same name replaces a shipped one."""


class RunnerSettings(_Group):
    """How Investigations run."""

    max_concurrent: Annotated[int, Field(ge=1, le=200)] = 20
    """Investigations at once in this replica."""


class PolicySettings(_Group):
    """The Rego gate."""

    file: Path | None = None
    """Policy text; the default policy is used where none is given. Beside `url`: the text that this OPA should have."""
    url: str = ""
    """A running OPA; empty: a child process is started from `opa_binary`."""
    opa_binary: str = "opa"
    """Name or path of the OPA binary."""
    query: str = "data.inquest.approval"
    """What OPA is asked for."""
    confidence_threshold: Annotated[float | None, LIVE] = 0.8
    """Given to the policy; null leaves the key out."""
    strict: bool = False
    """Exit at start where the policy is missing or broken."""


People = Annotated[int, Field(ge=1, le=5)]
EnvironmentName = Literal["production", "staging", "development", "qa", "test", "unknown"]


class ApprovalSettings(_Group):
    """What is asked of people."""

    timeout: PositiveSpan = timedelta(minutes=15)
    """How long a request waits for a decision."""
    required: People | Mapping[EnvironmentName, People] = 1
    """People who must agree: a number, or a map by environment: `{production: 2, staging: 1}`."""
    require_admission_policy: bool = True
    """Act on no approval while the admission policies are missing."""
    separate_requester: bool = False
    """Who created the Signal or Investigation may not approve its remedy; nobody may where that is not on record."""
    escalate_after: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Share of the time after which an unanswered request is told once more, one priority higher; 0: never."""

    def required_in(self, environment: Environment) -> int:
        """People who must agree there: one where nothing is said, the most of all where the environment is unknown."""
        if isinstance(self.required, int):
            return self.required
        otherwise = max(self.required.values(), default=1) if environment is Environment.UNKNOWN else 1
        return self.required.get(cast(EnvironmentName, environment.lower()), otherwise)

    def escalates_at(self, asked: datetime, expires: datetime) -> datetime | None:
        """When silence is told; None: never."""
        return asked + (expires - asked) * self.escalate_after if self.escalate_after else None


def _schedule(value: str) -> str:
    if fault := schedule_fault(value):
        raise ValueError(fault)
    return value


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{value!r} is no name of a time zone") from error
    return value


class FreezeWindowSettings(_Group):
    """A recurring time in which nothing is changed."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """What people and the policy see."""
    schedule: Annotated[str, AfterValidator(_schedule)]
    """When it opens, as five cron fields: `0 18 * * FRI`."""
    duration: PositiveSpan
    """How long it stays open, in elapsed time: `62h`."""
    time_zone: Annotated[str, AfterValidator(_time_zone)] = "UTC"
    """On whose clock the schedule is read: `Europe/Berlin`."""
    namespaces: tuple[str, ...] = ()
    """Of targets; empty: all. A target without a namespace is held by every window."""

    def window(self) -> FreezeWindow:
        """The window itself."""
        return FreezeWindow(self.name, self.schedule, self.duration, ZoneInfo(self.time_zone), self.namespaces)

    @model_validator(mode="after")
    def _opens_seldom_enough(self) -> Self:
        if fault := overlap_fault(self.window()):
            raise ValueError(fault)
        return self


class TriageSettings(_Group):
    """When a Signal becomes an Investigation."""

    ineffective_chain_threshold: Annotated[int, Field(ge=1)] = 3
    """Runs without effect before a person has to look."""
    recurrence_count_threshold: Annotated[int, Field(ge=1)] = 5
    """Runs of any kind inside the window."""
    window: PositiveSpan = timedelta(hours=4)
    """How far the chain guards look back."""
    consecutive_failures: Annotated[int, Field(ge=1)] = 3
    """Failed Investigations in a row before the block."""
    failure_block: PositiveSpan = timedelta(hours=1)
    """Length of that block."""
    recently_remediated: Span = timedelta(minutes=5)
    """The same workflow is not run again on the target within this time."""
    no_action_hold: Span = timedelta(hours=24)
    """Hold after an end without action; 0 switches it off."""
    rate: Annotated[int, Field(ge=1)] = 30
    """Signals accepted in a minute."""
    rate_per_namespace: Annotated[int, Field(ge=1)] = 10
    """Signals accepted in a minute for one namespace."""
    noise: tuple[str, ...] = ()
    """Names that are never investigated, added to the built-in list."""


LabelKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]


class ClassificationSettings(_Group):
    """What the labels around a target are read for."""

    custom_labels: Annotated[tuple[LabelKey, ...], Field(max_length=MAX_CUSTOM_LABELS)] = DEFAULT_CUSTOM_LABELS
    """Labels that rank workflows and that the policy sees: keys behind the prefix `inquest.dev/`, at most ten."""


class HistorySettings(_Group):
    """How what was done to a target before is judged."""

    repeat_threshold: Annotated[int, Field(ge=1)] = REPEAT_THRESHOLD
    """Runs of one workflow for one kind of signal without effect, after which another one is advised."""


class RedactionSettings(_Group):
    """What is taken out of everything that is read."""

    env_values: Literal["sensitive", "all"] = "sensitive"
    """Values of environment variables: those with a sensitive name or of a sensitive shape, or all."""


class ScopeSettings(_Group):
    """Which objects Inquest looks after."""

    require_label: bool = True
    """Only what carries `inquest.dev/managed: "true"`, itself, on its owner or on its namespace."""


class ExecutionSettings(_Group):
    """Where and how workflows run."""

    namespace: str = "inquest-workflows"
    """Namespace of the Jobs and of the workflows' accounts."""
    dry_run: Annotated[bool, LIVE] = False
    """Rulings are made; nothing is asked or executed."""
    cooldown: Annotated[Span, LIVE] = timedelta(minutes=5)
    """How long an ended Job stays, and with it the lock on its target."""
    protected_namespaces: Annotated[tuple[str, ...], LIVE] = ()
    """Never remediated, added to the built-in list."""


class EffectivenessQueries(_Group):
    """What is asked of `prometheus.url` before and after a run, each for one figure; empty: not asked.

    `$(PODS)` is a pattern of the names of the target's pods; the namespace is put into every selector.
    """

    cpu: str = 'sum(rate(container_cpu_usage_seconds_total{pod=~"$(PODS)",container!=""}[5m]))'
    """Cores in use; less is better."""
    memory: str = 'sum(container_memory_working_set_bytes{pod=~"$(PODS)",container!=""})'
    """Bytes in use; less is better."""
    latency_p95: str = (
        'histogram_quantile(0.95, sum by (le) (rate(http_request_duration_seconds_bucket{pod=~"$(PODS)"}[5m])))'
    )
    """95th percentile; less is better."""
    error_rate: str = (
        '(sum(rate(http_requests_total{pod=~"$(PODS)",code=~"5.."}[5m])) or vector(0))'
        ' / sum(rate(http_requests_total{pod=~"$(PODS)"}[5m]))'
    )
    """Share of requests that fail; less is better."""
    throughput: str = 'sum(rate(http_requests_total{pod=~"$(PODS)"}[5m]))'
    """Requests in a second; more is better."""

    def by_name(self) -> Mapping[str, str]:
        """The queries by the name of their figure."""
        return {name: str(query) for name, query in self.model_dump().items()}


class EffectivenessSettings(_Group):
    """What is looked at after a run."""

    enabled: bool = True
    """Off: a Job that succeeded ends the case."""
    stabilization: Span = timedelta(minutes=5)
    """Wait after the run before the first look."""
    validity: PositiveSpan = timedelta(minutes=30)
    """The last look."""
    async_gitops: Span = timedelta(minutes=3)
    """More time for a target that a GitOps tool reconciles."""
    async_operator: Span = timedelta(minutes=1)
    """More time for a custom resource, which its operator reconciles."""
    proactive_delay: Span = timedelta(minutes=5)
    """More time before the alert of a prediction is looked at."""
    queries: EffectivenessQueries = EffectivenessQueries()


class DataStorageServerSettings(_Group):
    """`inquest datastorage serve` only; health and metrics are where `server` says."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The API; 0 takes a free port."""
    authentication: Literal["kubernetes", "none"] = "kubernetes"
    """`kubernetes`: a token for each request, reviewed by the API server; `none`: on a loopback address only."""
    service: str = DATASTORAGE_SERVICE
    """Name of the Service on which callers need the verb `create`."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; unset: plain HTTP."""
    tls_key: Path | None = None
    """PEM file of its key."""
    stop_timeout: Annotated[Span, Field(le=timedelta(minutes=5))] = timedelta(seconds=30)
    """What requests in flight may still take at the end."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together")
        return self

    @model_validator(mode="after")
    def _open_to_this_machine_only(self) -> Self:
        if self.authentication == "none" and self.host not in LOOPBACK:
            raise ValueError(f"authentication: none needs a loopback address, not {self.host}")
        return self


LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class DataStorageSettings(_Group):
    """Catalogue, history and audit."""

    mode: Literal["embedded", "external"] = "embedded"
    """`embedded`: in process on `database`; `external`: the service at `url`."""
    url: PublicUrl = ""
    """Base URL of an external service."""
    profile: Literal["native", "kubernaut-1.4"] = "native"
    """Whose wire an external service speaks: this product's own, or that of an existing Kubernaut 1.4."""
    token_file: Path | None = None
    """File with a bearer token for an external service; read before every request."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that an external service is believed with; unset: those of the system."""
    database: str = "sqlite:///inquest.db"
    """SQLAlchemy URL of the bundled service's database, embedded or served: `sqlite:///file`, `postgresql://…`."""
    server: DataStorageServerSettings = DataStorageServerSettings()

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.url:
            _check_public("url", self.url)
        return self

    def secrets(self) -> tuple[str, ...]:
        """The password in the database's URL."""
        if "@" not in self.database:
            return ()
        from sqlalchemy import make_url  # imported late: whoever has no database needs none of it

        return tuple(filter(None, (make_url(self.database).password,)))


class AuditSettings(_Group):
    """`inquest audit` only."""

    signing_key_file: Path | None = None
    """PEM file of the Ed25519 key that signs exports; unset: they are not signed."""


OPAQUE: Final = 16
"""Least length of a part of a webhook's address that may be its key."""
_PLAIN: Final = frozenset(string.ascii_lowercase + ".-:")


class _StackSettings(_Group):
    url: PublicUrl = ""
    """Base URL; empty: it is not asked."""
    token_file: Path | None = None
    """File with a bearer token; read before every request."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that it is believed with; unset: those of the system."""
    proxy: SecretStr = SecretStr("")
    """`http://[user:password@]host:port`; unset: as `HTTPS_PROXY` and `NO_PROXY` say."""
    tenant: str = ""
    """Sent as `X-Scope-OrgID`, where the server has tenants."""
    connect_timeout: PositiveSpan = timedelta(seconds=5)
    """Time to connect."""
    timeout: PositiveSpan = timedelta(seconds=30)
    """Whole time of one query; the server is asked for no more either."""
    namespace_label: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "namespace"
    """Label that holds the namespace of a series, stream or alert."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if self.url:
            _check_public("url", self.url)
        if proxy := self.proxy.get_secret_value():
            _check_url("proxy", proxy)
        return self

    def secrets(self) -> tuple[str, ...]:
        """The proxy's password."""
        return tuple(filter(None, (urlsplit(self.proxy.get_secret_value()).password,)))


class _QueriedSettings(_StackSettings):
    confine: bool = True
    """Every query reads the namespaces of its case only; false: whatever the server shows this account."""


class PrometheusSettings(_QueriedSettings):
    """Metrics for the model's tools and for verification, off by default; what speaks Prometheus' HTTP API."""

    shared_metrics: tuple[str, ...] = ("kube_node_*", "machine_*", "node_*")
    """Metrics by glob that belong to no namespace and are read whole; never those with a colon in their name."""


class LokiSettings(_QueriedSettings):
    """Logs for the model's tools beside those of the kubelet, off by default."""


class AlertmanagerSettings(_StackSettings):
    """Whether an alert still fires after a run, off by default; only alerts of the target's namespace are read."""


ReceiverName = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""As a label of a metric has it."""
_OWN_RECEIVERS: Final = ("log", "webhook")
"""Names that are there without being set."""


def _mail_address(text: str) -> str:
    """The address itself, as a header may hold it without an encoding."""
    try:
        usable = text.isascii() and Address(addr_spec=text).addr_spec == text
    except (ValueError, MessageError):
        usable = False
    if not usable:
        raise ValueError("must be an address such as someone@example.org")
    return text


MailAddress = Annotated[str, AfterValidator(_mail_address)]


class SmtpSettings(_Group):
    """A server that takes mail."""

    host: Annotated[str, Field(min_length=1)]
    """Its name, as its certificate has it."""
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    """465 is usual for `tls`."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`starttls`: nothing is sent where the server has none; `tls`: from the start; `none`: everybody can read it."""
    user: str = ""
    """Who logs in; empty: nobody."""
    password_file: Path | None = None
    """File with their password, as a mounted Secret does; read before every delivery."""
    sender: MailAddress
    """From whom."""
    recipients: Annotated[tuple[MailAddress, ...], Field(min_length=1, max_length=50)]
    """To whom."""

    @model_validator(mode="after")
    def _login_is_whole_and_hidden(self) -> Self:
        if bool(self.user) != (self.password_file is not None):
            raise ValueError("user and password_file belong together")
        if self.user and self.security == "none":
            raise ValueError("security: none: a password would go in the clear")
        return self


class ReceiverSettings(_Group):
    """One way to people."""

    name: ReceiverName
    """What routes, log and metrics call it."""
    kind: Literal["webhook", "slack", "email"]
    """`webhook`: every notice as JSON; `slack`: a chat that takes Slack's incoming webhooks; `email`: plain text."""
    url: SecretStr = SecretStr("")
    """Where it is posted to; the address of a chat is its key, so better given as `url_file`."""
    url_file: Path | None = None
    """File that holds the address, as a mounted Secret does; read before every delivery."""
    token_file: Path | None = None
    """File with a bearer token; read before every delivery."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that it is believed with; unset: those of the system."""
    timeout: PositiveSpan = timedelta(seconds=10)
    """Whole time of one try."""
    smtp: SmtpSettings | None = None
    """With `email`: `host`, `port`, `security`, `user`, `password_file`, `sender`, `recipients`."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        url = self.url.get_secret_value()
        if self.name in _OWN_RECEIVERS:
            raise ValueError(f"name: {self.name} is taken")
        if (self.smtp is not None) != (self.kind == "email"):
            raise ValueError("smtp and kind: email belong together")
        if self.smtp is not None:
            if url or self.url_file or self.token_file:
                raise ValueError("url, url_file and token_file are of no use to e-mail")
            return self
        if bool(url) == (self.url_file is not None):
            raise ValueError("url or url_file: one of them must be set")
        if url:
            _check_url("url", url)
        return self


class RouteSettings(_Group):
    """What some receivers get; of lists that are set each has to match."""

    receivers: Annotated[tuple[ReceiverName, ...], Field(min_length=1)]
    """Names of receivers."""
    types: tuple[NoticeType, ...] = ()
    """Types of notices; empty: all."""
    priorities: tuple[NoticePriority, ...] = ()
    """Priorities; empty: all."""
    namespaces: tuple[str, ...] = ()
    """Of targets; empty: all."""
    teams: tuple[str, ...] = ()
    """Labels `team`, `business-unit` or `service-owner` of targets or their namespaces; empty: all."""


class HeraldSettings(_Group):
    """Who is told, beside the log."""

    webhooks: tuple[str, ...] = ()
    """URLs that get every notice as JSON."""
    receivers: tuple[ReceiverSettings, ...] = ()
    """Ways to people: `name`, `kind`, `url_file`, `token_file`, … One that no route names gets every notice."""
    routes: tuple[RouteSettings, ...] = ()
    """What single receivers get: `receivers`, `types`, `priorities`, `namespaces`, `teams`."""
    notify_self_resolved: Annotated[bool, LIVE] = False
    """Also told: what went away by itself, as a StatusUpdate of low priority."""

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> Self:
        names = [receiver.name for receiver in self.receivers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"receivers: {', '.join(twice)} is there more than once")
        unknown = sorted({name for route in self.routes for name in route.receivers} - set(names))
        if unknown:
            raise ValueError(f"routes: there is no receiver {', '.join(unknown)}")
        return self

    def secrets(self) -> tuple[str, ...]:
        """What of the addresses is a key."""
        addresses = (*self.webhooks, *(receiver.url.get_secret_value() for receiver in self.receivers))
        return tuple(part for address in addresses for part in opaque_parts(address))


def opaque_parts(address: str) -> tuple[str, ...]:
    """The address of a chat's webhook is its key; a short part of it is a word that may stand anywhere."""
    parts = re.split(r"[/?&=]", address)
    return tuple(part for part in parts if len(part) >= OPAQUE and not set(part) <= _PLAIN)


class ServerSettings(_Group):
    """Health and metrics."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    authentication: Literal["auto", "kubernetes", "none"] = "auto"
    """`kubernetes`: for metrics and verbose readiness a caller from elsewhere shows a token of an account that may get
    `/metrics`; `auto`: so, unless `host` is a loopback address."""
    health_port: Annotated[int, Field(ge=0, le=65535)] = 8081
    """`/healthz`, `/readyz`; 0 takes a free port."""
    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 9090
    """`/metrics`; 0 takes a free port."""

    @property
    def asks_for_tokens(self) -> bool:
        """Whether a caller from elsewhere has to say who they are."""
        return self.authentication == "kubernetes" or (self.authentication == "auto" and self.host not in LOOPBACK)


SignalName = Annotated[str, Field(min_length=1, max_length=253)]
"""As the schema of a Signal has it."""


class EventSettings(_Group):
    """Warning events of the cluster, off by default."""

    enabled: bool = False
    """Watch them, and make Signals of those that are no noise and whose target is looked after."""
    quiet: Annotated[PositiveSpan, LIVE] = timedelta(minutes=30)
    """A Signal of an event that was not seen for so long, and whose target is healthy, is resolved."""


class IntakeSettings(_Group):
    """Webhooks that make Signals, of Alertmanager and of any other sender; off by default."""

    enabled: bool = False
    """Take Signals over HTTP at `/api/v1/signals` and `/api/v1/signals/alertmanager`."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0 takes a free port."""
    authentication: Literal["kubernetes", "token", "none"] = "kubernetes"
    """`kubernetes`: tokens reviewed by the API server; `token`: `token_file`; `none`: on a loopback address only."""
    token_file: Path | None = None
    """File with the bearer token of all senders; one that was replaced ends within a minute. With `token` only."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; unset: plain HTTP."""
    tls_key: Path | None = None
    """PEM file of its key."""
    notices_per_minute: Annotated[int, Field(ge=1, le=100_000)] = 300
    """Alerts and specs taken in a minute, after a burst of at least 500; more get 429 and a time."""
    events: EventSettings = EventSettings()
    proactive: Annotated[Mapping[SignalName, SignalName], LIVE] = {}
    """Names of predictions and the fault that each foresees, exact; added to the built-in list."""

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together")
        if (self.authentication == "token") != (self.token_file is not None):
            raise ValueError("token_file and authentication: token belong together")
        if self.authentication == "none" and self.host not in LOOPBACK:
            raise ValueError(f"authentication: none needs a loopback address, not {self.host}")
        return self

    @property
    def predictions(self) -> Mapping[str, str]:
        """The built-in list and what was added."""
        return {**PROACTIVE_NAMES, **self.proactive}


class EvidenceSettings(_Group):
    """Cases for readers by an aggregated API of the API server; off by default, on in the chart."""

    enabled: bool = False
    """Serve `evidence.inquest.dev`, for the API server alone; an APIService must point to it."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8443
    """0 takes a free port."""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; it must hold the name of the Service, and is read again when it changes."""
    tls_key: Path | None = None
    """PEM file of its key."""

    @model_validator(mode="after")
    def _certified(self) -> Self:
        if self.enabled and (self.tls_certificate is None or self.tls_key is None):
            raise ValueError("the API server speaks TLS only: name tls_certificate and tls_key")
        return self


class TelemetrySettings(_Group):
    """Traces, off by default; the extra `otlp` has to be installed."""

    traces: bool = False
    """Send spans by OTLP over HTTP."""
    endpoint: str = ""
    """Base URL of the receiver, `http://collector:4318`; empty: what OTEL_EXPORTER_OTLP_ENDPOINT says."""
    content: bool = False
    """Put prompts, replies, arguments and results into the spans, redacted."""


class KubernetesSettings(_Group):
    """How the API server is reached."""

    kubeconfig: Path | None = None
    """Kubeconfig file; empty: the pod's service account."""
    namespace: str = "inquest-system"
    """The operator's own namespace: journal, Leases, Signals."""
    service_account: str = "inquest"
    """The operator's own account, as the admission policies name it."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that it looks after, with no right in others than its own and that of the Jobs; empty: all."""

    @property
    def watched(self) -> tuple[str, ...]:
        """Where objects of Inquest's own kinds are seen; empty: everywhere."""
        return tuple(dict.fromkeys((self.namespace, *self.namespaces))) if self.namespaces else ()


class CrashSettings(_Group):
    """For tests only, off by default: counts the port calls of cases and kills the process at one of them."""

    log: Path | None = None
    """For tests: file that gets one line for each port call of a case; empty: nothing is counted, nothing is killed."""
    at: Annotated[int, Field(ge=0)] = 0
    """For tests: number of the call at which the process kills itself, of those selected below; 0: at none."""
    side: Literal["before", "after"] = "before"
    """For tests: right before that call, or right after it."""
    phase: str = ""
    """For tests: only calls while the Investigation is in this phase are selected."""
    call: str = ""
    """For tests: only calls whose name holds this text are selected."""
    case: str = ""
    """For tests: only calls for the Investigation of this name are selected."""


class Settings(BaseSettings):
    """The whole of it, frozen."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="INQUEST_",
        env_nested_delimiter="__",
        use_attribute_docstrings=True,
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
    audit: AuditSettings = AuditSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    loki: LokiSettings = LokiSettings()
    alertmanager: AlertmanagerSettings = AlertmanagerSettings()
    herald: HeraldSettings = HeraldSettings()
    server: ServerSettings = ServerSettings()
    intake: IntakeSettings = IntakeSettings()
    evidence: EvidenceSettings = EvidenceSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    crash: CrashSettings = CrashSettings()
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
            raise Misconfigured(_sentence(error)) from error
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
    field: FieldInfo
    live: bool

    def of(self, settings: Settings) -> object:
        """Its value."""
        return reduce(getattr, self.path.split("."), cast(object, settings))


def leaves(group: type[BaseModel] = Settings, prefix: str = "", *, live: bool = False) -> Iterator[Leaf]:
    """Every single setting, in the order in which they are written here."""
    for name, field in group.model_fields.items():
        taken_up = live or is_live(field)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaves(field.annotation, f"{prefix}{name}.", live=taken_up)
        else:
            yield Leaf(f"{prefix}{name}", field, taken_up)


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


def _sentence(error: ValidationError) -> str:
    faults = (f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in error.errors())
    return "settings: " + "; ".join(faults)
