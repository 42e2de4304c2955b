"""What a Signal is about, in the words of the business: environment, priority, owner.

Everything later reads the `SignalContext` made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Generic, TypeVar

from inquest.api.names import read_label
from inquest.api.refs import Business
from inquest.api.signal import SignalContent, SignalContext
from inquest.api.types import (
    BusinessRank,
    Criticality,
    Environment,
    Mode,
    Priority,
    RiskTolerance,
    Severity,
    SlaRequirement,
)
from inquest.core.cluster.context import ResourceContext

Labels = Mapping[str, str]
W = TypeVar("W", bound=StrEnum)
DEFAULT_CUSTOM_LABELS: Final = ("team", "tier", "cost-center", "region", "risk-tolerance")
DEFAULT_CATEGORY: Final = "standard"

MAX_CUSTOM_LABELS: Final = 10
MAX_CUSTOM_KEY: Final = 63
MAX_CUSTOM_VALUE: Final = 100
MAX_BUSINESS_TEXT: Final = 63


@dataclass(frozen=True)
class LabelsAround:
    """The labels around a target; `degraded` says that the target was not there to be read."""

    namespace: Labels = field(default_factory=dict)
    owner: Labels = field(default_factory=dict)
    """Of the root owner; for a cluster-scoped target its own."""
    degraded: bool = False
    administered: bool = False
    """Whether an administrator writes the owner's labels as well, as those of a Node: else they only make stricter."""


@dataclass(frozen=True)
class Classification:
    """What classification found out, and which words it did not know."""

    context: SignalContext
    warnings: tuple[str, ...] = ()


def classify_signal(
    spec: SignalContent,
    around: LabelsAround,
    *,
    custom_keys: Iterable[str] = DEFAULT_CUSTOM_LABELS,
    proactive_names: Mapping[str, str] | None = None,
) -> Classification:
    """The whole classification of one Signal."""
    # The environment, who named it, and which words did not count.
    said = [
        _Said(environment_from_word(word), source.name, source.may_loosen(around), word)
        for source in _ENVIRONMENT_SOURCES
        if (word := source.read(spec, around))
    ]
    chosen = _strictest(said, Environment.UNKNOWN, _BY_STRICTNESS) or _Said(Environment.UNKNOWN, "none", False)
    environment, source, warnings = chosen.rank, chosen.source, tuple(_warnings(said, chosen.rank))
    priority, priority_source = _priority(spec, around, environment)
    labelled = _rank(around, "risk-tolerance", RiskTolerance.MEDIUM, _TOLERANCES_BY_STRICTNESS)
    labelled = labelled or RiskTolerance.MEDIUM
    usable = [key for key in custom_keys if not key.startswith("system/") and len(key) <= MAX_CUSTOM_KEY]
    found = {key.replace("-", "_"): (value[:MAX_CUSTOM_VALUE],) for key in usable if (value := _near(around, key))}
    custom_labels = dict(list(found.items())[:MAX_CUSTOM_LABELS])
    context = SignalContext(
        environment=environment,
        environment_source=source,
        priority=priority,
        priority_source=priority_source,
        business=_business(spec, around, environment),
        risk_tolerance=spec.risk_tolerance or labelled,
        business_category=spec.business_category or DEFAULT_CATEGORY,
        custom_labels=custom_labels,
        signal_name=base_name(spec.name, proactive_names or PROACTIVE_NAMES),
        degraded=around.degraded,
    )
    return Classification(context, warnings)


# --- words of the sources -----------------------------------------------------------------------------


_SEVERITY_WORDS: Final[Mapping[Severity, str]] = {
    Severity.CRITICAL: "critical crit fatal emergency page sev0 sev1 p0",
    Severity.HIGH: "high error major sev2 p1 p2",
    Severity.WARNING: "warning warn",
    Severity.MEDIUM: "medium moderate minor sev3 p3",
    Severity.LOW: "low sev4 p4",
    Severity.INFO: "info informational notice sev5",
}


_SEVERITIES: Final = {word: severity for severity, words in _SEVERITY_WORDS.items() for word in words.split()}

_ENVIRONMENT_WORDS: Final[Mapping[Environment, str]] = {
    Environment.PRODUCTION: "production prod prd live",
    Environment.STAGING: "staging stage stg preprod pre-production uat",
    Environment.DEVELOPMENT: "development dev",
    Environment.QA: "qa",
    Environment.TEST: "test testing ci",
}
_ENVIRONMENTS: Final = {word: env for env, words in _ENVIRONMENT_WORDS.items() for word in words.split()}

PROACTIVE_NAMES: Final[Mapping[str, str]] = {
    "PredictedOOMKill": "OOMKilled",
    "PredictedCPUThrottling": "CPUThrottling",
    "PredictedDiskPressure": "DiskPressure",
    "PredictedNodeNotReady": "NodeNotReady",
    "PredictedPVCExhaustion": "PVCExhaustion",
    "ContainerMemoryExhaustionPredicted": "OOMKilled",
    "PVRunwayShort": "PVCExhaustion",
}
"""Names of predictions and the fault that each foresees, exact and case-sensitive."""


def severity_from_word(word: str) -> Severity:
    """A source's own word for severity, in any case; what is not known is unknown."""
    return _SEVERITIES.get(word.strip().lower(), Severity.UNKNOWN)


def environment_from_word(word: str) -> Environment:
    """An environment in any spelling that is in use."""
    return _ENVIRONMENTS.get(word.strip().lower(), Environment.UNKNOWN)


def base_name(name: str, proactive_names: Mapping[str, str] = PROACTIVE_NAMES) -> str:
    """The fault that a prediction foresees; any other name stands for itself."""
    return proactive_names.get(name, name)


def mode_from_name(name: str, proactive_names: Mapping[str, str] = PROACTIVE_NAMES) -> Mode:
    """Whether a name foretells or reports."""
    return Mode.PROACTIVE if name in proactive_names else Mode.REACTIVE


# --- environment (10.1) -------------------------------------------------------------------------------


def _from_spec(spec: SignalContent, around: LabelsAround) -> str:
    return spec.environment or ""


def _from_namespace(spec: SignalContent, around: LabelsAround) -> str:
    return read_label(around.namespace, "environment") or ""


def _from_owner(spec: SignalContent, around: LabelsAround) -> str:
    return read_label(around.owner, "environment") or ""


def _from_plain_namespace(spec: SignalContent, around: LabelsAround) -> str:
    return around.namespace.get("environment") or around.namespace.get("env") or ""


def _from_signal_labels(spec: SignalContent, around: LabelsAround) -> str:
    return _own_label(spec, "environment", "env") if around.degraded else ""


@dataclass(frozen=True)
class _Source:
    """Somebody who may name the environment."""

    name: str
    read: Callable[[SignalContent, LabelsAround], str]
    of_an_administrator: bool = False

    def may_loosen(self, around: LabelsAround) -> bool:
        return self.of_an_administrator or (around.administered and self.read is _from_owner)


_ENVIRONMENT_SOURCES: Final = (
    _Source("signal", _from_spec),
    _Source("namespace-label", _from_namespace, of_an_administrator=True),
    _Source("owner-label", _from_owner),
    _Source("namespace-label", _from_plain_namespace, of_an_administrator=True),
    _Source("signal-label", _from_signal_labels),
)
_BY_STRICTNESS: Final = (
    Environment.PRODUCTION,
    Environment.UNKNOWN,
    Environment.STAGING,
    Environment.QA,
    Environment.TEST,
    Environment.DEVELOPMENT,
)
"""What policies let run by itself comes later; nobody lets run by itself what is not known."""


@dataclass(frozen=True)
class _Said(Generic[W]):
    """What one source says of one rank."""

    rank: W
    source: str
    may_loosen: bool
    """Whether it counts where it is looser than what would stand without it."""
    word: str = ""


def _strictest(said: Sequence[_Said[W]], otherwise: W, by_strictness: Sequence[W]) -> _Said[W] | None:
    """The strictest word that counts; None where none does and `otherwise` stands."""
    loosest = min((by_strictness.index(each.rank) for each in said if each.may_loosen), default=None)
    allowed = by_strictness.index(otherwise) if loosest is None else loosest
    counted = (each for each in said if by_strictness.index(each.rank) <= allowed)
    return min(counted, key=lambda each: by_strictness.index(each.rank), default=None)


def _warnings(said: Sequence[_Said[Environment]], chosen: Environment) -> Iterator[str]:
    for each in said:
        if each.rank is Environment.UNKNOWN and each.word.lower() != "unknown":
            yield f"environment {each.word!r} is not a known word"
        elif each.rank is not chosen:
            yield f"environment {each.word!r} of the {each.source} does not count: {chosen} is stricter"


def _own_label(spec: SignalContent, *names: str) -> str:
    words = (read_label(spec.labels, name) or spec.labels.get(name, "") for name in names)
    return next((word for word in words if word), "")


# --- priority (10.2) ----------------------------------------------------------------------------------


_URGENCY_COLUMN: Final[Mapping[Severity, int]] = {
    Severity.CRITICAL: 0,
    Severity.HIGH: 1,
    Severity.MEDIUM: 2,
    Severity.WARNING: 2,
    Severity.LOW: 3,
    Severity.INFO: 3,
    Severity.UNKNOWN: 3,
}


_PRIORITIES: Final[Mapping[Environment, tuple[Priority, Priority, Priority, Priority]]] = {
    Environment.PRODUCTION: (Priority.P0, Priority.P1, Priority.P2, Priority.P3),
    Environment.STAGING: (Priority.P1, Priority.P2, Priority.P2, Priority.P2),
    Environment.UNKNOWN: (Priority.P2, Priority.P2, Priority.P2, Priority.P2),
    Environment.DEVELOPMENT: (Priority.P3, Priority.P3, Priority.P3, Priority.P3),
    Environment.QA: (Priority.P3, Priority.P3, Priority.P3, Priority.P3),
    Environment.TEST: (Priority.P3, Priority.P3, Priority.P3, Priority.P3),
}


def priority_of(environment: Environment, severity: Severity) -> Priority:
    """The table of 10.2, for Signals that nobody gave a priority."""
    return _PRIORITIES[environment][_URGENCY_COLUMN[severity]]


def _priority(spec: SignalContent, around: LabelsAround, environment: Environment) -> tuple[Priority, str]:
    if spec.priority:
        return spec.priority, "signal"
    by_table = priority_of(environment, spec.severity)
    found = _strictest(_written(around, "priority", Priority), by_table, _PRIORITIES_BY_STRICTNESS)
    return (found.rank, found.source) if found else (by_table, "table")


_PRIORITIES_BY_STRICTNESS: Final = (Priority.P0, Priority.P1, Priority.P2, Priority.P3)
_CRITICALITIES_BY_STRICTNESS: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW)
_SLAS_BY_STRICTNESS: Final = (
    SlaRequirement.PLATINUM,
    SlaRequirement.GOLD,
    SlaRequirement.SILVER,
    SlaRequirement.BRONZE,
)
_TOLERANCES_BY_STRICTNESS: Final = (RiskTolerance.LOW, RiskTolerance.MEDIUM, RiskTolerance.HIGH)


def _written(around: LabelsAround, name: str, words: type[W]) -> list[_Said[W]]:
    """What the labels of the namespace and of the owner say of a rank."""
    labels = (("namespace-label", around.namespace, True), ("owner-label", around.owner, around.administered))
    found = ((_word(words, read_label(each, name) or ""), source, loose) for source, each, loose in labels)
    return [_Said(rank, source, loose) for rank, source, loose in found if rank]


def _rank(around: LabelsAround, name: str, otherwise: W, by_strictness: Sequence[W]) -> W | None:
    """The strictest rank that the labels name and that counts; None where they leave what stands without them."""
    found = _strictest(_written(around, name, type(otherwise)), otherwise, by_strictness)
    return found.rank if found else None


def stricter(one: W | None, other: W | None) -> W | None:
    """The stricter of two priorities or tolerances; None is no word."""
    orders: Sequence[Sequence[StrEnum]] = (_PRIORITIES_BY_STRICTNESS, _TOLERANCES_BY_STRICTNESS)
    places = {word: order.index(word) for order in orders for word in order}
    return min((each for each in (one, other) if each), key=places.__getitem__, default=None)


# --- business and custom labels (10.3, 10.4) ----------------------------------------------------------


_PROMISES: Final[Mapping[Environment, tuple[Criticality, SlaRequirement]]] = {
    Environment.PRODUCTION: (Criticality.HIGH, SlaRequirement.GOLD),
    Environment.STAGING: (Criticality.MEDIUM, SlaRequirement.SILVER),
    Environment.DEVELOPMENT: (Criticality.LOW, SlaRequirement.BRONZE),
}


_NO_PROMISE: Final = (Criticality.MEDIUM, SlaRequirement.BRONZE)


def _business(spec: SignalContent, around: LabelsAround, environment: Environment) -> Business:
    criticality, sla = _PROMISES.get(environment, _NO_PROMISE)
    told = _rank(around, "criticality", criticality, _CRITICALITIES_BY_STRICTNESS)
    promised = _rank(around, "sla", sla, _SLAS_BY_STRICTNESS)
    ranks = {BusinessRank.CRITICALITY: told, BusinessRank.SLA_REQUIREMENT: promised}
    team = _near(around, "team") or (_own_label(spec, "team") if around.degraded else "")
    return Business(
        business_unit=(_near(around, "business-unit") or team)[:MAX_BUSINESS_TEXT] or None,
        service_owner=_near(around, "service-owner")[:MAX_BUSINESS_TEXT] or None,
        criticality=told or criticality,
        sla_requirement=promised or sla,
        derived=tuple(rank for rank, written in ranks.items() if not written),
    )


def surroundings_of(context: ResourceContext) -> LabelsAround:
    """The labels around a target as they were read."""
    administered = not context.target.namespace and not context.root.namespace
    return LabelsAround(context.namespace_labels, context.root_labels, context.deleted, administered)


def _near(around: LabelsAround, name: str) -> str:
    return read_label(around.namespace, name) or read_label(around.owner, name) or ""


def _word(words: type[W], text: str) -> W | None:
    return next((word for word in words if word.lower() == text.strip().lower()), None)
