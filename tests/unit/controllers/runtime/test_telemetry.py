"""Every line leaves through the redactor, whoever wrote it, or is withheld (style, section 10)."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from inquest.telemetry.logs import set_up_logging
from inquest.telemetry.metrics import render_metrics


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root, before, level = logging.getLogger(), list(logging.getLogger().handlers), logging.getLogger().level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


def hide(text: str) -> str:
    return text.replace("hunter2", "[REDACTED]")


def test_our_lines_and_those_of_libraries_are_redacted(lines: io.StringIO) -> None:
    set_up_logging(redact=hide, stream=lines)

    structlog.stdlib.get_logger("inquest").info("tool call", password="hunter2", nested={"a": ["hunter2"]}, turn=3)
    logging.getLogger("library").warning("cannot log in with %s", "hunter2")
    try:
        int("hunter2")
    except ValueError:
        logging.getLogger("library").exception("failed")

    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert "hunter2" not in lines.getvalue()
    assert (found[0]["event"], found[0]["nested"], found[0]["turn"]) == ("tool call", {"a": ["[REDACTED]"]}, 3)
    assert found[1]["event"] == "cannot log in with [REDACTED]"
    assert "[REDACTED]" in found[2]["exception"]


def test_a_line_that_cannot_be_redacted_is_withheld(lines: io.StringIO) -> None:
    def broken(text: str) -> str:
        raise RecursionError

    set_up_logging(redact=broken, stream=lines)
    structlog.stdlib.get_logger("inquest").error("hunter2", password="hunter2")

    found = json.loads(lines.getvalue())
    assert "hunter2" not in lines.getvalue()
    assert (found["event"], found["level"]) == ("line withheld", "error")


def test_a_line_below_the_level_costs_no_redaction(lines: io.StringIO) -> None:
    redacted: list[str] = []

    def note(text: str) -> str:
        redacted.append(text)
        return text

    set_up_logging(level="info", redact=note, stream=lines)

    structlog.stdlib.get_logger("inquest").debug("request", path="/api/v1")
    structlog.stdlib.get_logger("inquest").info("serving", port="8080")

    assert sorted(redacted) == ["8080", "serving"]


def test_known_label_sets_begin_at_zero() -> None:
    text = render_metrics().decode()

    assert 'inquest_claims_total{verdict="dropped"}' in text
    assert "inquest_policy_degraded_total" in text
