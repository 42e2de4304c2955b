"""Settings of a case, from triage to verification."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Self, cast
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from inquest.api.types import Environment
from inquest.core.history.history import REPEAT_THRESHOLD
from inquest.core.remediation.freeze import FreezeWindow, overlap_fault, schedule_fault
from inquest.core.signals.classification import DEFAULT_CUSTOM_LABELS, MAX_CUSTOM_LABELS
from inquest.settings.base import LIVE, PositiveSpan, SettingsGroup, Span


class LimitSettings(SettingsGroup):
    """Budgets of one Investigation; its spec may set its own."""

    max_turns: Annotated[int, Field(ge=1, le=100)] = 20
    """Model turns for each invocation. Lower it for a small model that goes in circles."""
    max_tool_calls: Annotated[int, Field(ge=1, le=500)] = 60
    """Tool calls of an Investigation. Lower it where reads of the cluster are dear."""
    max_calls_per_tool: Annotated[int, Field(ge=1)] = 15
    """Calls of one tool. Raise it for a model that asks one thing at a time."""
    token_budget: Annotated[int, Field(ge=1000)] = 300_000
    """Prompt and completion tokens of an Investigation. Set it to what one case may cost."""
    timeout: PositiveSpan = timedelta(minutes=15)
    """From the start of the work to the ruling. Raise it for a slow model of your own."""
    queue_timeout: PositiveSpan = timedelta(hours=1)
    """Longest wait for a free place. Lower it where an old alert is worth nothing."""


class RcaSettings(SettingsGroup):
    """How a model goes about finding a root cause; each may be changed alone."""

    error_hints: Annotated[bool, LIVE] = True
    """Say what a known failure of a read means, beside its own words. Off for a model that takes hints for orders."""
    visible_plan: Annotated[bool, LIVE] = True
    """Ask for a plan that people can follow. Off saves some tokens of every turn."""
    sufficiency: Annotated[Literal["off", "lenient", "strict"], LIVE] = "lenient"
    """How strongly a fresh and healthy snapshot is recommended for a person's question. `off` where each question
    deserves a whole look.
    """
    snapshot_freshness: Annotated[Span, LIVE] = timedelta(seconds=30)
    """Age above which a snapshot is stale. Raise it with an API server that is slow to read."""
    tool_budget: Annotated[int, Field(ge=1, le=50), LIVE] = 10
    """Tools that are planned first. Raise it where cases end for want of a look."""
    max_tool_schemas: Annotated[int, Field(ge=8, le=128), LIVE] = 32
    """Tool schemas in one request; `read_evidence`, `get_runbook` and the resource context keep their places. Lower it
    for a model with a small window.
    """
    max_stagnant_turns: Annotated[int, Field(ge=1, le=20), LIVE] = 2
    """Turns of nothing but repeats before the verdict is asked for. Raise it for a model that recovers by itself."""
    summarize: Annotated[bool, LIVE] = False
    """Let the model shorten long results before it reads them; each takes a call of its own. On for a model with a
    small window.
    """
    summarize_above: Annotated[int, Field(ge=1_000), LIVE] = 8_000
    """Characters above which a result is shortened. Lower it with the window."""
    streams: Annotated[bool, LIVE] = False
    """Where the root cause stays open, let four short looks follow: pod, metrics, logs, events; up to 16 more calls. On
    where an answer is worth more than its tokens.
    """
    playbooks: bool = True
    """Put the playbooks that match into the prompt. Off to see what the model knows by itself."""
    blocked_kinds: tuple[str, ...] = ("serviceaccounts",)
    """Kinds that the model's tools do not read, by plural or kind; Secrets never are, whatever stands here."""
    playbooks_folder: Path | None = None
    """Playbooks of your own, `*.yaml`; one of the same name replaces a shipped one."""


class RunnerSettings(SettingsGroup):
    """How Investigations run."""

    max_concurrent: Annotated[int, Field(ge=1, le=200)] = 20
    """Investigations at once in this replica. Lower it where the model or the API server is small."""


class PolicySettings(SettingsGroup):
    """The Rego gate."""

    file: Path | None = None
    """Policy text; the default policy is used where none is given. Beside `url`: the text that this OPA should have."""
    url: str = ""
    """A running OPA; empty: a child process is started from `opa_binary`."""
    opa_binary: str = "opa"
    """Name or path of the OPA binary."""
    query: str = "data.inquest.approval"
    """What OPA is asked for. Changed for a policy that was written for another product."""
    confidence_threshold: Annotated[float | None, LIVE] = 0.8
    """Given to the policy; null leaves the key out."""
    strict: bool = False
    """Exit at start where the policy is missing or broken. On where no operator is better than one that asks people for
    everything.
    """


People = Annotated[int, Field(ge=1, le=5)]
EnvironmentName = Literal["production", "staging", "development", "qa", "test", "unknown"]


class ApprovalSettings(SettingsGroup):
    """What is asked of people."""

    timeout: PositiveSpan = timedelta(minutes=15)
    """How long a request waits for a decision. Raise it to what your people on call need."""
    required: People | Mapping[EnvironmentName, People] = 1
    """People who must agree: a number, or a map by environment: `{production: 2, staging: 1}`."""
    separate_requester: bool = False
    """Who created the Signal or Investigation may not approve its remedy; nobody may where that is not on record."""
    escalate_after: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Share of the time after which an unanswered request is told once more, one priority higher; 0: never. Lower it
    where the first message is often missed.
    """

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


class FreezeWindowSettings(SettingsGroup):
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


class TriageSettings(SettingsGroup):
    """When a Signal becomes an Investigation."""

    ineffective_chain_threshold: Annotated[int, Field(ge=1)] = 3
    """Runs without effect before a person has to look. Lower it where a useless change does harm."""
    recurrence_count_threshold: Annotated[int, Field(ge=1)] = 5
    """Runs of any kind inside the window. Raise it for faults that come back by nature."""
    window: PositiveSpan = timedelta(hours=4)
    """How far the chain guards look back. Raise it where faults come back after a night."""
    consecutive_failures: Annotated[int, Field(ge=1)] = 3
    """Failed Investigations in a row before the block. Raise it where the model is often away."""
    failure_block: PositiveSpan = timedelta(hours=1)
    """Length of that block. Lower it where somebody looks at failed cases at once."""
    recently_remediated: Span = timedelta(minutes=5)
    """The same workflow is not run again on the target within this time. Raise it for workloads that start slowly."""
    no_action_hold: Span = timedelta(hours=24)
    """Hold after an end without action; 0 switches it off. Lower it where catalogue and policy change often."""
    rate: Annotated[int, Field(ge=1)] = 30
    """Signals accepted in a minute; one whose case has ended, or waits, no longer counts. Raise it with
    `runner.max_concurrent`.
    """
    rate_per_namespace: Annotated[int, Field(ge=1)] = 10
    """The same for the targets of one namespace. Lower it where one team's storm keeps others waiting."""
    noise: tuple[str, ...] = ()
    """Names that are never investigated, added to the built-in list. Add the alerts that you acknowledge without a
    look.
    """


LabelKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]


class ClassificationSettings(SettingsGroup):
    """What the labels around a target are read for."""

    custom_labels: Annotated[tuple[LabelKey, ...], Field(max_length=MAX_CUSTOM_LABELS)] = DEFAULT_CUSTOM_LABELS
    """Labels that rank workflows and that the policy sees: keys behind the prefix `inquest.dev/`, at most ten."""


class HistorySettings(SettingsGroup):
    """How what was done to a target before is judged."""

    repeat_threshold: Annotated[int, Field(ge=1)] = REPEAT_THRESHOLD
    """Runs of one workflow for one kind of signal without effect, after which another one is advised. Raise it where a
    workflow may need several tries.
    """


class RedactionSettings(SettingsGroup):
    """What is taken out of everything that is read."""

    env_values: Literal["sensitive", "all"] = "sensitive"
    """Values of environment variables: those with a sensitive name or of a sensitive shape, or all. `all` where secrets
    stand in variables with harmless names.
    """


class ScopeSettings(SettingsGroup):
    """Which objects Inquest looks after."""

    require_label: bool = True
    """Only what carries `inquest.dev/managed: "true"`, itself, on its owner or on its namespace."""


class ExecutionSettings(SettingsGroup):
    """Where and how workflows run."""

    namespace: str = "inquest-workflows"
    """Namespace of the Jobs and of the workflows' accounts."""
    workflow_namespaces: tuple[str, ...] = ()
    """Namespaces that may keep workflows for what stands in them, beside the operator's own, which serves all."""
    dry_run: Annotated[bool, LIVE] = False
    """Rulings are made; nothing is asked or executed. On while you get to know the product."""
    cooldown: Annotated[Span, LIVE] = timedelta(minutes=5)
    """How long an ended Job stays, and with it the lock on its target. Raise it for workloads that settle slowly."""
    protected_namespaces: Annotated[tuple[str, ...], LIVE] = ()
    """Never remediated, added to the built-in list. Add what no machine may touch."""


class EffectivenessQueries(SettingsGroup):
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


class EffectivenessSettings(SettingsGroup):
    """What is looked at after a run."""

    enabled: bool = True
    """Off: a Job that succeeded ends the case. Off where that is proof enough."""
    stabilization: Span = timedelta(minutes=5)
    """Wait after the run before the first look. Raise it for workloads that take long to start."""
    validity: PositiveSpan = timedelta(minutes=30)
    """The last look. Raise it with `stabilization`."""
    async_gitops: Span = timedelta(minutes=3)
    """More time for a target that a GitOps tool reconciles. Set it to the interval of your GitOps tool."""
    async_operator: Span = timedelta(minutes=1)
    """More time for a custom resource, which its operator reconciles. Set it to what your slowest operator takes."""
    proactive_delay: Span = timedelta(minutes=5)
    """More time before the alert of a prediction is looked at. Set it to how far your predictions look ahead."""
    queries: EffectivenessQueries = EffectivenessQueries()
