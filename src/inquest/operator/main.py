"""The process: watch, dispatcher, replica Lease, probes and the self-check around the controllers.

Nothing is claimed before the rights were asked about and found not to be too many.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from inquest import __version__
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reconcilers import Reconcilers
from inquest.core.redaction.redactor import Redactor
from inquest.operator.process import Process
from inquest.serving.http import stop_signal
from inquest.settings.settings import Settings
from inquest.telemetry import tracing
from inquest.telemetry.logs import set_up_logging

log = structlog.stdlib.get_logger(__name__)


async def operate(
    settings: Settings,
    file: Path | None = None,
    reconcilers: Callable[[ControllerPorts], Reconcilers] = Reconcilers,
) -> None:
    """Run until SIGTERM or SIGINT; a second one is a crash like any other. A change of the file is noticed."""
    redactor = Redactor(settings.secrets(), env_values=settings.redaction.env_values)
    set_up_logging(
        level=settings.log_level, form=settings.log_format, redact=lambda text: redactor.published(text).value
    )
    stop = stop_signal()
    send_the_rest = tracing.set_up(settings.telemetry, version=__version__, instance=settings.replica)
    try:
        await Process(settings, redactor, file, reconcilers).run(stop)
    finally:
        await asyncio.to_thread(send_the_rest)
