"""Logs, metrics and traces: every name in one place, set up once by the wiring.

Labels are bounded and carry no name of a resource, signal or workflow; label sets that are known start at 0
(pipeline, section 19; reliability, section 3.7).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Literal, TextIO

import structlog
from opentelemetry import trace
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

TRACER: Final = trace.get_tracer("inquest")
"""Without an SDK every span is a no-op: tracing costs nothing until somebody installs an exporter."""

Redact = Callable[[str], str]


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
POLICY_DEGRADED: Final = _counter("policy_degraded", "Rulings made without a usable policy answer.")
REDACTIONS: Final = _counter("redactions", "Values that the redactor replaced.", ["rule"])
WITHHELD: Final = _counter("withheld", "Texts withheld because the redactor failed.")
LOOP_LAG: Final = _gauge("event_loop_lag_seconds", "Lag of the event loop's last heartbeat.")
CLOCK_OFFSET: Final = _gauge("clock_offset_seconds", "The API server's clock less this machine's.")
API_REQUESTS: Final = _counter("api_requests", "Requests to the API server, by effect and answer.", ["effect", "code"])
NOTICES: Final = _counter("notices", "Notices, by receiver and result.", ["receiver", "result"])

MODEL_REQUESTS: Final = _counter("llm_requests", "Model calls.", ["phase", "model", "status"])
MODEL_SECONDS: Final = _seconds("llm_request_duration", "Time of a model call.", ["phase", "model"])
MODEL_TOKENS: Final = _counter("llm_tokens", "Tokens, as the endpoint reports them.", ["phase", "model", "type"])
MODEL_RETRIES: Final = _counter("llm_retries", "Repeated model calls.", ["phase", "model", "reason"])
REPLIES: Final = _counter("reply", "Replies read, by result.", ["phase", "result"])
REPLY_DEFENCES: Final = _counter("reply_defence", "Defences that a reply needed.", ["defence"])
TOOL_CALLS: Final = _counter("tool_calls", "Tool calls.", ["tool", "status"])
TOOL_SECONDS: Final = _seconds("tool_duration", "Time of a tool call.", ["tool"])
TOOL_TRUNCATED: Final = _counter("tool_output_truncated", "Tool outputs that were cut.", ["tool"])
GUARDRAILS: Final = _counter("guardrail", "Guard rails that tripped.", ["guard"])
CLAIMS: Final = _counter("claims", "Claims checked, by verdict.", ["verdict"])
VALIDATIONS: Final = _counter("validation_attempts", "Catalogue validations.", ["result"])
ENRICHMENTS: Final = _counter("enrichment", "Parts of the resource context.", ["part", "status"])
OUTCOMES: Final = _counter("outcomes", "Ends of investigations.", ["outcome", "mode"])
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

_KNOWN: Final[Mapping[Counter | Gauge, tuple[str, ...]]] = {
    WATCH_RESTARTS: ("ended", "silent", "stalled"),
    ATTEMPTS: ("done", "retry", "fenced", "failed", "cancelled"),
    REPLY_DEFENCES: ("array", "fence", "scan", "sections", "double", "coercion", "truncation"),
    CLAIMS: ("supported", "partial", "unsupported", "dropped"),
}
for _metric, _words in _KNOWN.items():
    for _word in _words:
        _metric.labels(_word)


def exposition() -> bytes:
    """Every metric in the text format that Prometheus scrapes."""
    return generate_latest(REGISTRY)


def set_up_logging(
    *, level: str = "info", form: Literal["json", "text"] = "json", redact: Redact, stream: TextIO | None = None
) -> None:
    """One line per unit of work, redacted last; the lines of libraries take the same way out (style, section 10)."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redaction(redact),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    _route_through(structlog.stdlib.ProcessorFormatter(processors=_last(form), foreign_pre_chain=shared), level, stream)


def redaction(redact: Redact) -> structlog.typing.Processor:
    """A processor over every string of a line; a line that cannot be redacted is withheld, never passed (design, 5)."""

    def process(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        try:
            return {key: value if key in _OWN_KEYS else _redacted(value, redact) for key, value in line.items()}
        except Exception:
            # Whatever the redactor stumbled on may be the secret itself, so nothing of the line is kept.
            WITHHELD.inc()
            return {**{key: line[key] for key in _OWN_KEYS if key in line}, "event": "line withheld"}

    return process


_OWN_KEYS: Final = ("_record", "_from_structlog", "level", "logger", "timestamp")
_QUIET: Final = {
    "kopf": logging.WARNING,
    "kubernetes": logging.WARNING,
    "uvicorn.access": logging.WARNING,
    "httpx2": logging.WARNING,
}


def _redacted(value: Any, redact: Redact) -> Any:
    match value:
        case str():
            return redact(value)
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {str(key): _redacted(part, redact) for key, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redacted(part, redact) for part in value]
        case _:
            return redact(str(value))


def _last(form: Literal["json", "text"]) -> list[structlog.typing.Processor]:
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    return [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]


def _route_through(formatter: logging.Formatter, level: str, stream: TextIO | None) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(least)
