"""What the tests of metrics, log and traces share: a clock that is moved by hand, and spans kept in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest.telemetry.metrics import REGISTRY
from inquest.telemetry.tracing import CaseIds

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class HandClock:
    """Moves when somebody sleeps or turns it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Figures:
    """How much each series has grown since the test began."""

    def __init__(self) -> None:
        self._before = samples()

    def grown(self, name: str) -> dict[tuple[str, ...], float]:
        """By the values of the labels, in the order of their names; what stayed is left out."""
        now = samples()
        changed = {key: value - self._before.get(key, 0.0) for key, value in now.items() if key[0] == f"inquest_{name}"}
        return {labels: round(value, 6) for (_, labels), value in changed.items() if value}


def samples() -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


_EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """The process's one provider, as the SDK allows no second."""
    provider = TracerProvider(id_generator=CaseIds())  # type: ignore[arg-type]
    provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
    trace.set_tracer_provider(provider)
    return _EXPORTER


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def figures() -> Figures:
    return Figures()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}
