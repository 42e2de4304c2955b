"""Metrics: every name in one place; labels are bounded and carry no name of a resource, signal or workflow.

What is told of a case is worked out in `core/reporting/metrics.py` and counted here (pipeline, section 19;
reliability, section 3.7). Label sets that are known start at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from inquest.api.types import Mode, Outcome, Reason, Resolution
from inquest.core.diagnosis.detectors.registry import DETECTORS
from inquest.core.llm.conversation import BudgetSpent
from inquest.core.llm.messages import Invocation
from inquest.core.llm.recommendation import PHASE as RECOMMENDATION
from inquest.core.reporting.metrics import GUARDS, Measure
from inquest.core.reporting.transcript import UNKNOWN_TOOL, CallOutcome

REGISTRY: Final = CollectorRegistry()
"""Our own, so that a library's metrics never join by accident."""
GCCollector(REGISTRY)
PlatformCollector(REGISTRY)
ProcessCollector(registry=REGISTRY)


def _counter(name: str, text: str, labels: Sequence[str] = ()) -> Counter:
    return Counter(f"inquest_{name}", text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
    return Gauge(f"inquest_{name}", text, labels, registry=REGISTRY)


def _seconds(name: str, text: str, labels: Sequence[str] = ()) -> Histogram:
    buckets = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
    return Histogram(f"inquest_{name}_seconds", text, labels, buckets=buckets, registry=REGISTRY)


FENCED: Final = _counter("fenced", "Times this replica met proof that another one owns the case.")
WATCH_RESTARTS: Final = _counter("watch_restarts", "Restarts of the watcher, by cause.", ["cause"])
QUEUE_OLDEST: Final = _gauge("queue_oldest_seconds", "Age of the oldest key that nobody looked at.")
QUEUE_DEPTH: Final = _gauge("queue_depth", "Keys that wait or are worked on, by lane.", ["lane"])
QUEUE_DROPPED: Final = _counter("queue_dropped", "Keys dropped because the queue was full; resync finds them again.")
ATTEMPTS: Final = _counter("attempts", "Passes of a handler, by result.", ["result"])
JOURNAL_BYTES: Final = _gauge("journal_bytes", "Compressed bytes in the journals of open cases.")
UNRECORDED: Final = _gauge("unrecorded_cases", "Closed cases that DataStorage has not stored yet.")
ACCESS_EXCESS: Final = _gauge("access_excess", "Rights that Inquest should not have.", ["rule"])
ACCESS_MISSING: Final = _gauge("access_missing", "Rights that Inquest's roles give and its account does not have.")
NAMESPACES_REFUSED: Final = _gauge(
    "namespaces_refused", "Namespaces of `kubernetes.namespaces` that cannot be read: gone, or without a RoleBinding."
)
SETTINGS_RELOADS: Final = _counter("settings_reloads", "Changed settings files, by result.", ["result"])
SETTINGS_REFUSED: Final = _gauge("settings_refused", "1 while the settings file is refused and earlier ones stay.")
SETTINGS_WAITING: Final = _gauge("settings_waiting", "Changed settings that need a restart.")
POLICY_DEGRADED: Final = _counter("policy_degraded", "Rulings made without a usable policy answer.")
POLICY_NEWS: Final = _counter(
    "policy_news", "What befell the policy and the OPA that the operator runs itself, by reason.", ["reason"]
)
REDACTIONS: Final = _counter("redactions", "Values that the redactor replaced.", ["rule"])
WITHHELD: Final = _counter("withheld", "Texts withheld because the redactor failed.")
LOOP_LAG: Final = _gauge("event_loop_lag_seconds", "Lag of the event loop's last heartbeat.")
CLOCK_OFFSET: Final = _gauge("clock_offset_seconds", "The API server's clock less this machine's.")
API_REQUESTS: Final = _counter("api_requests", "Requests to the API server, by effect and answer.", ["effect", "code"])
NOTICES: Final = _counter("notices", "Notices, by receiver and result.", ["receiver", "result"])
DATASTORAGE_REQUESTS: Final = _counter(
    "datastorage_requests", "Requests that the bundled DataStorage answered.", ["method", "route", "code"]
)
DATASTORAGE_SECONDS: Final = Histogram(
    "inquest_datastorage_request_duration_seconds",
    "Time of an answer of the bundled DataStorage.",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30),
    registry=REGISTRY,
)
DATASTORAGE_LOGINS: Final = _counter(
    "datastorage_logins", "Requests to a DataStorage server by what its login said.", ["result"]
)
INTAKE_LOGINS: Final = _counter("intake_logins", "Requests of senders by what the login said.", ["result"])
PROBE_LOGINS: Final = _counter(
    "probe_logins", "Requests for metrics and verbose readiness from elsewhere, by what the login said.", ["result"]
)
INTAKE_NOTICES: Final = _counter("intake_notices", "Notices of senders by what became of them.", ["way", "result"])
INTAKE_EVENTS_HELD: Final = _gauge("intake_events_held", "Targets and reasons of events that wait to become Signals.")
INTAKE_WATCH_FAILURES: Final = _counter("intake_watch_failures", "Ends of the watch of events that it did not ask for.")
EVIDENCE_READS: Final = _counter(
    "evidence_reads", "Requests for cases by readers, by what they were given.", ["result"]
)
DATASTORAGE_LOST: Final = _counter(
    "datastorage_own_events_lost", "Audit events of the bundled DataStorage itself that it could not store."
)
HISTORY_CHAINS: Final = _counter(
    "history_chains", "Hash chains of earlier remediations that were looked at before use, by result.", ["result"]
)
DATASTORAGE_UNREADABLE: Final = _counter(
    "datastorage_unreadable_rows",
    "Stored rows that were left out of a history or an outcome memory because they could not be read.",
)

MODEL_REQUESTS: Final = _counter("llm_requests", "Model calls.", ["phase", "model", "status"])
MODEL_SECONDS: Final = _seconds("llm_request_duration", "Time of a model call.", ["phase", "model"])
MODEL_TOKENS: Final = _counter("llm_tokens", "Tokens, as the endpoint reports them.", ["phase", "model", "type"])
MODEL_RETRIES: Final = _counter("llm_retries", "Repeated model calls.", ["phase", "model", "reason"])
MODEL_WITHHELD: Final = _counter(
    "llm_withheld",
    "Cases and looks at recommendations that went without a model: the budget of the hour was used up.",
    ["what"],
)
REPLIES: Final = _counter("reply", "Replies read, by result.", ["phase", "result"])
REPLY_DEFENCES: Final = _counter("reply_defence", "Defences that a reply needed.", ["defence"])
TOOL_CALLS: Final = _counter("tool_calls", "Tool calls.", ["tool", "status"])
TOOL_SECONDS: Final = _seconds("tool_duration", "Time of a tool call.", ["tool"])
TOOL_TRUNCATED: Final = _counter("tool_output_truncated", "Tool outputs that were cut.", ["tool"])
GUARDRAILS: Final = _counter("guardrail", "Guard rails that tripped.", ["guard"])
CLAIMS: Final = _counter("claims", "Claims checked, by verdict.", ["verdict"])
VALIDATIONS: Final = _counter("validation_attempts", "Catalogue validations.", ["result"])
ENRICHMENTS: Final = _counter("enrichment", "Parts of the resource context.", ["part", "status"])
DETECTOR_FAILURES: Final = _counter("detector_failures", "Detectors that failed on a snapshot.", ["detector"])
OUTCOMES: Final = _counter("outcomes", "Ends of investigations.", ["outcome", "mode"])
REMEDIATIONS: Final = _counter(
    "remediations", "Ended cases in which a workflow was run, by what it came to.", ["result"]
)
RECURRENCES: Final = _counter(
    "recurrences",
    "Cases of a target that was remediated less than 4 hours before, by whether that had been taken for a fix.",
    ["after"],
)
CONFIDENCE: Final = Histogram(
    "inquest_confidence",
    "Confidence at the end.",
    ["kind"],
    buckets=(0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1),
    registry=REGISTRY,
)
INJECTION_SUSPECTED: Final = _counter("injection_suspected", "Texts that look like orders to a model.", ["where"])
INVESTIGATIONS_ACTIVE: Final = _gauge("investigations_active", "Investigations in work.", ["mode"])
INVESTIGATION_SECONDS: Final = _seconds("investigation_duration", "Time of an investigation.", ["outcome"])

# --- what is known beforehand -----------------------------------------------------------------------------------

STATUSES: Final = tuple(str(fate) for fate in CallOutcome if fate is not CallOutcome.RUNNING)
PHASES: Final = tuple(str(invocation) for invocation in Invocation)
ASKED_FOR: Final = (*PHASES, RECOMMENDATION)
"""What a model is called for."""
TOKENS: Final = ("prompt", "completion", "cached")
MODEL_FAULTS: Final = (
    "ContextOverflow",
    "ModelCreditExhausted",
    "ModelNotFound",
    "ModelRateLimited",
    "ModelRefused",
    "ModelRejected",
    "ModelTimeout",
    "ModelUnauthorized",
    "ModelUnavailable",
    "ModelWithoutTools",
)
"""Classes of the faults of an endpoint (behaviours, section 12.4)."""
OK: Final = "ok"
OTHER: Final = "other"
"""A word that is in no list of ours."""
ENDS: Final = (
    *Outcome,
    Reason.CANCELLED,
    Reason.TIMED_OUT,
    Reason.QUEUE_TIMEOUT,
    Reason.MODEL_UNAVAILABLE,
    Reason.API_ERROR,
    Reason.INTERNAL_ERROR,
    Reason.WORKFLOW_NOT_NEEDED,
)
"""The nine, and the ends outside them (pipeline, section 5.5)."""
RESULTS: Final = (
    *map(str, Resolution),
    *map(str, (Reason.ROLLED_BACK, Reason.EXECUTION_FAILED, Reason.TIMED_OUT, Reason.CANCELLED, Reason.INTERNAL_ERROR)),
)
"""How cases end in which a workflow was to run."""
GUARD_WORDS: Final = tuple(
    dict.fromkeys([*(str(word) for word in BudgetSpent if word), *(word for _, word in GUARDS), "Refused", "TimedOut"])
)

_Metric = Counter | Gauge | Histogram

_KNOWN: Final[Mapping[_Metric, tuple[Sequence[str], ...]]] = {
    DATASTORAGE_LOGINS: (("passed", "401", "403", "500"),),
    PROBE_LOGINS: (("passed", "401", "403", "503"),),
    HISTORY_CHAINS: (("held", "broken", "unchecked"),),
    INTAKE_LOGINS: (("passed", "401", "403", "503"),),
    INTAKE_NOTICES: (
        ("alertmanager", "signals", "kubernetes-event", "events"),
        ("created", "joined", "resolved", "dropped", "refused"),
    ),
    EVIDENCE_READS: (("shown", "withheld", "401", "403", "404", "429", "500", "503"),),
    POLICY_NEWS: (("PolicyLoaded", "PolicyRejected", "PolicyMissing", "PolicyNotLoaded", "OpaStarted", "OpaLost"),),
    WATCH_RESTARTS: (("ended", "silent", "stalled", "namespaces"),),
    ATTEMPTS: (("done", "retry", "fenced", "failed", "cancelled"),),
    MODEL_WITHHELD: (("case", "recommendation"),),
    REPLIES: (PHASES, ("clean", "coerced", "corrected", "unusable")),
    REPLY_DEFENCES: (("array", "fence", "scan", "sections", "double", "coercion", "truncation"),),
    GUARDRAILS: (GUARD_WORDS,),
    CLAIMS: (("supported", "partial", "unsupported", "dropped"),),
    VALIDATIONS: (("valid", "invalid"),),
    ENRICHMENTS: (("owner", "labels", "quota", "history"), ("ok", "failed")),
    DETECTOR_FAILURES: (tuple(detector.__name__ for detector in DETECTORS),),
    OUTCOMES: (tuple(map(str, ENDS)), tuple(map(str, Mode))),
    REMEDIATIONS: (RESULTS,),
    RECURRENCES: (("helped", "unhelped"),),
    CONFIDENCE: (("overall", "model", "workflow"),),
    REDACTIONS: (("structure", "text", "withheld"),),
    INJECTION_SUSPECTED: (("tool",),),
    INVESTIGATIONS_ACTIVE: (tuple(map(str, Mode)),),
    INVESTIGATION_SECONDS: (tuple(map(str, ENDS)),),
}


def _start_at_zero(metric: _Metric, *words: Iterable[str]) -> None:
    for labels in product(*words):
        metric.labels(*labels)


for _metric, _words in _KNOWN.items():
    _start_at_zero(_metric, *_words)


def start_series(*, models: Iterable[str] = (), tools: Iterable[str] = ()) -> None:
    """Start the series of the configured models and of the tools that are there at 0."""
    named, offered = tuple(models), (*tools, UNKNOWN_TOOL)
    _start_at_zero(MODEL_REQUESTS, ASKED_FOR, named, (OK, *MODEL_FAULTS))
    _start_at_zero(MODEL_SECONDS, ASKED_FOR, named)
    _start_at_zero(MODEL_TOKENS, ASKED_FOR, named, TOKENS)
    _start_at_zero(MODEL_RETRIES, ASKED_FOR, named, MODEL_FAULTS)
    _start_at_zero(TOOL_CALLS, offered, STATUSES)
    _start_at_zero(TOOL_SECONDS, offered)
    _start_at_zero(TOOL_TRUNCATED, offered)


# --- counting ---------------------------------------------------------------------------------------------------

_BY_NAME: Final[Mapping[str, Counter | Histogram]] = {
    "reply": REPLIES,
    "reply_defence": REPLY_DEFENCES,
    "tool_calls": TOOL_CALLS,
    "guardrail": GUARDRAILS,
    "claims": CLAIMS,
    "validation_attempts": VALIDATIONS,
    "enrichment": ENRICHMENTS,
    "detector_failures": DETECTOR_FAILURES,
    "outcomes": OUTCOMES,
    "remediations": REMEDIATIONS,
    "recurrences": RECURRENCES,
    "confidence": CONFIDENCE,
    "injection_suspected": INJECTION_SUSPECTED,
    "investigation_duration": INVESTIGATION_SECONDS,
    "policy_degraded": POLICY_DEGRADED,
}


def count_measure(measure: Measure) -> None:
    """Add what a fact of a case adds."""
    metric = _BY_NAME[measure.metric]
    found = metric.labels(**measure.labels) if measure.labels else metric
    if isinstance(found, Histogram):
        found.observe(measure.value)
    else:
        found.inc(measure.value)


def render_metrics() -> bytes:
    """Every metric in the text format that Prometheus scrapes."""
    return generate_latest(REGISTRY)
