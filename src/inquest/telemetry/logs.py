"""The log: one structured line for each unit of work, redacted last, whoever wrote it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final, Literal, TextIO

import structlog

from inquest.telemetry.metrics import WITHHELD

Redact = Callable[[str], str]


def set_up_logging(
    *, level: str = "info", form: Literal["json", "text"] = "json", redact: Redact, stream: TextIO | None = None
) -> None:
    """One line per unit of work, redacted last; the lines of libraries take the same way out."""
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
        # First, so that no line is redacted that nobody will read.
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    processors = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    formatter = structlog.stdlib.ProcessorFormatter(processors=processors, foreign_pre_chain=shared)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    log_from(level)
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(least)


def log_from(level: str) -> None:
    """From now on the least severity that is logged."""
    logging.getLogger().setLevel(level.upper())


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
