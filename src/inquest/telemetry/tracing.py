"""Spans in the words of OpenTelemetry's conventions for generative AI; off unless the settings say otherwise.

One trace for each Investigation, whatever replica works on it and however often: its id is the Investigation's uid, and
the ids of the spans that the others stand under derive from it too.

    investigation                  from the opening to the end, told at the end
      invoke_agent rca             invocation 1; `selection` is invocation 2
        chat <model>               one call of the model, retries included
        execute_tool <tool>        one call of a tool
      eyes.…, policy.ask, datastorage.…

No text of the cluster or the model stands in a span unless `telemetry.content` is set, and then redacted.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from random import SystemRandom
from typing import Final, ParamSpec, TypeVar
from uuid import UUID

import structlog
from opentelemetry import context as scope
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from inquest.core.reporting.metrics import INVESTIGATION, CaseSpan
from inquest.settings.server import TelemetrySettings

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

log = structlog.stdlib.get_logger(__name__)

TRACER: Final = trace.get_tracer("inquest")
"""Without an SDK every span is a no-op."""
Attributes = Mapping[str, str | int | float | bool | tuple[str, ...]]

_given: ContextVar[tuple[int, int] | None] = ContextVar("trace_and_span", default=None)
_random: Final = SystemRandom()
SEND_SECONDS: Final = 5.0
"""Longest attempt to reach the receiver; the process waits so long at its end."""


def trace_id_of(uid: str) -> int:
    """The uid itself, without its dashes; a hash of what is no UUID."""
    try:
        return UUID(uid).int or 1
    except ValueError:
        return int.from_bytes(hashlib.sha256(uid.encode()).digest()[:16], "big")


def span_id_of(uid: str, key: str) -> int:
    """The id of a span that others stand under, the same in every process."""
    return int.from_bytes(hashlib.sha256(f"{uid}/{key}".encode()).digest()[:8], "big") or 1


class CaseIds:
    """The SDK's source of ids: random, but for spans whose id is given by their case."""

    def generate_span_id(self) -> int:
        given = _given.get()
        return given[1] if given else _random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        given = _given.get()
        return given[0] if given else _random.getrandbits(128) or 1

    def is_trace_id_random(self) -> bool:
        return False


@contextmanager
def inside_span(uid: str, key: str = INVESTIGATION) -> Iterator[None]:
    """What is traced inside stands under this span of the case, which itself is told when it has ended."""
    token = scope.attach(trace.set_span_in_context(_stand_in(uid, key), scope.get_current()))
    try:
        yield
    finally:
        scope.detach(token)


def _stand_in(uid: str, key: str) -> Span:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(SpanContext(trace_id_of(uid), span_id_of(uid, key), is_remote=True, trace_flags=flags))


def export_span(uid: str, found: CaseSpan) -> None:
    """Export a span of a case that has ended; told again it is the same span."""
    above = trace.set_span_in_context(_stand_in(uid, found.parent), scope.Context()) if found.parent else None
    token = _given.set((trace_id_of(uid), span_id_of(uid, found.key)))
    try:
        told = TRACER.start_span(
            found.name,
            above or scope.Context(),
            kind=SpanKind.INTERNAL,
            attributes=dict(found.attributes),
            start_time=_nanoseconds(found.start),
        )
    finally:
        _given.reset(token)
    if found.failed:
        told.set_status(Status(StatusCode.ERROR))
    told.end(_nanoseconds(found.end))


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000


@contextmanager
def open_span(name: str, attributes: Attributes, *, kind: SpanKind = SpanKind.INTERNAL) -> Iterator[Span]:
    """A unit of work; what it raises makes it an error, by class and never by text."""
    with TRACER.start_as_current_span(
        name, kind=kind, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as found:
        try:
            yield found
        except BaseException as error:
            mark_failed(found, type(error).__name__)
            raise


def traced(port: str, *names: str) -> Callable[[type[T]], type[T]]:
    """Of a class that is a port: its public coroutines, or those of these names, are spans such as `policy.ask`."""

    def decorate(cls: type[T]) -> type[T]:
        for name, method in list(vars(cls).items()):
            wanted = name in names if names else not name.startswith("_")
            if wanted and inspect.iscoroutinefunction(method):
                setattr(cls, name, _in_span(port, name, method))
        return cls

    return decorate


def _in_span(port: str, name: str, method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with open_span(f"{port}.{name}", {"inquest.port": port}):
            return await method(*args, **kwargs)

    return call


def mark_failed(found: Span, word: str) -> None:
    """Mark a span as an error of this class (`error.type`)."""
    found.set_attribute("error.type", word)
    found.set_status(Status(StatusCode.ERROR))


def set_up(chosen: TelemetrySettings, *, version: str, instance: str) -> Callable[[], None]:
    """Send spans by OTLP over HTTP, where the settings ask for it; gives what sends the rest and stops.

    Where the extra is not installed, or nobody listens, nothing but the trace is missing.
    """
    if not chosen.traces:
        return _nothing
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("no traces: install kube-inquest[otlp]")
        return _nothing
    where = f"{chosen.endpoint.rstrip('/')}/v1/traces" if chosen.endpoint else None
    about = {"service.name": "inquest", "service.version": version, "service.instance.id": instance}
    provider = TracerProvider(resource=Resource.create(about), id_generator=CaseIds())  # type: ignore[arg-type]
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=where, timeout=SEND_SECONDS)))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _nothing() -> None:
    """Nothing was started."""
