"""One trace for each Investigation, the same whatever process tells it; nothing without the setting or the extra."""

from __future__ import annotations

import builtins
import gzip
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from inquest.core.case.endings import model_unavailable
from inquest.core.case.transitions import fold_case
from inquest.core.reporting import metrics
from inquest.core.reporting.metrics import INVESTIGATION
from inquest.settings.server import TelemetrySettings
from inquest.telemetry import tracing
from tests.support.listening import serving
from tests.unit.core import cases, talk
from tests.unit.telemetry.conftest import by_name

UID = "7be1f0c2-5f0e-4c59-8d0a-6c9f2f3b1a77"
CASE = cases.closing(model_unavailable("503", permanent=False), talk.talked(*talk.WHOLE[:4]), seconds=90)


def tell(uid: str = UID) -> None:
    for count in range(1, len(CASE.facts) + 1):
        for stretch in metrics.case_spans(fold_case(CASE.facts[:count]), uid):
            tracing.export_span(uid, stretch)


def test_a_case_is_one_tree_under_the_uid_of_its_investigation(spans: InMemorySpanExporter) -> None:
    with tracing.inside_span(UID, "rca"), tracing.open_span("chat m-1", {}):
        pass
    tell()

    found = by_name(spans)
    whole, rca, chat = found["investigation"], found["invoke_agent rca"], found["chat m-1"]
    assert {f"{span.context.trace_id:032x}" for span in found.values()} == {UID.replace("-", "")}
    assert whole.parent is None
    assert rca.parent is not None
    assert rca.parent.span_id == whole.context.span_id
    assert chat.parent is not None
    assert chat.parent.span_id == rca.context.span_id
    assert "invoke_agent selection" in found


def test_a_stretch_has_the_times_and_figures_of_the_journal(spans: InMemorySpanExporter) -> None:
    tell()

    found = by_name(spans)
    whole, rca = found["investigation"], found["invoke_agent rca"]
    assert whole.start_time == int(cases.AT.timestamp() * 1e9)
    assert whole.end_time is not None
    assert (whole.end_time - whole.start_time) / 1e9 == 90
    assert whole.status.status_code is StatusCode.ERROR
    assert (whole.attributes or {})["inquest.outcome"] == "ModelUnavailable"
    assert dict(rca.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "rca",
        "gen_ai.conversation.id": UID,
        "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": 3000,
        "gen_ai.usage.output_tokens": 150,
        "inquest.turns": 3,
    }


def test_what_is_told_again_after_a_crash_is_the_same_span(spans: InMemorySpanExporter) -> None:
    tell()
    first = {(span.context.trace_id, span.context.span_id) for span in spans.get_finished_spans()}
    tell()

    again = {(span.context.trace_id, span.context.span_id) for span in spans.get_finished_spans()}
    assert again == first
    assert tracing.span_id_of(UID, INVESTIGATION) in {span_id for _, span_id in first}


def test_a_uid_that_is_no_uuid_has_a_trace_too() -> None:
    assert tracing.trace_id_of("uid-1") == tracing.trace_id_of("uid-1") != tracing.trace_id_of("uid-2")


def test_without_the_setting_nothing_is_started() -> None:
    tracing.set_up(TelemetrySettings(), version="1", instance="i")()

    assert TelemetrySettings().traces is False
    assert TelemetrySettings().content is False


def test_without_the_extra_the_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
            raise ImportError(name)
        return real(name, *more)

    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)

    tracing.set_up(TelemetrySettings(traces=True), version="1", instance="i")()


# --- over the wire --------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from datetime import UTC, datetime, timedelta
from inquest.settings.server import TelemetrySettings
from inquest.core.reporting.metrics import CaseSpan
from inquest.telemetry import tracing

stop = tracing.set_up(TelemetrySettings(traces=True, endpoint=sys.argv[1]), version="1", instance="i")
at = datetime(2026, 11, 22, tzinfo=UTC)
tracing.export_span(sys.argv[2], CaseSpan("investigation", "", "investigation", at, at + timedelta(seconds=9), {}))
stop()
print("done")
"""


def _told_to(endpoint: str) -> str:
    """In a process of its own: a process has one provider and keeps it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, endpoint, UID], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spans_arrive_at_a_receiver() -> None:
    got: list[tuple[str, bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with serving(HTTPServer(("127.0.0.1", 0), Receiver)) as server:
        assert _told_to(f"http://127.0.0.1:{server.server_port}") == "done\n"

    ((path, body),) = got
    sent = ExportTraceServiceRequest.FromString(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
    (span,) = sent.resource_spans[0].scope_spans[0].spans
    assert path == "/v1/traces"
    assert span.trace_id.hex() == UID.replace("-", "")
    assert (span.end_time_unix_nano - span.start_time_unix_nano) == 9_000_000_000


def test_a_receiver_that_is_away_stops_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    assert _told_to(f"http://127.0.0.1:{port}") == "done\n"
