"""Metrics: every name in one place; labels are bounded and carry no name of a resource, signal or workflow.

Label sets that are known start at 0. Those that the decisions know, and what a case adds, stand in `series.py`: this
module loads nothing but the library.
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

Metric = Counter | Gauge | Histogram

_KNOWN: Final[Mapping[Metric, tuple[Sequence[str], ...]]] = {
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
    REPLY_DEFENCES: (("array", "fence", "scan", "sections", "double", "coercion", "truncation"),),
    CLAIMS: (("supported", "partial", "unsupported", "dropped"),),
    VALIDATIONS: (("valid", "invalid"),),
    ENRICHMENTS: (("owner", "labels", "quota", "history"), ("ok", "failed")),
    RECURRENCES: (("helped", "unhelped"),),
    CONFIDENCE: (("overall", "model", "workflow"),),
    REDACTIONS: (("structure", "text", "withheld"),),
    INJECTION_SUSPECTED: (("tool",),),
}


def start_at_zero(metric: Metric, *words: Iterable[str]) -> None:
    """Show every combination of these words before anything is counted."""
    for labels in product(*words):
        metric.labels(*labels)


for _metric, _words in _KNOWN.items():
    start_at_zero(_metric, *_words)


def render_metrics() -> bytes:
    """Every metric in the text format that Prometheus scrapes."""
    return generate_latest(REGISTRY)
