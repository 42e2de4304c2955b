"""What the pods of a release run, started by the words that stand in the chart.

Reading what people type takes a library that is 2 MB of every process that imports it, for as long as it lives. The
words of a pod are known, so that its process does without; whatever else is typed is read as every other command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path


def program_of(words: Sequence[str]) -> Callable[[], None] | None:
    """What these words start; None where they are not those of a pod."""
    match words:
        case ["run", "--settings", file] if not file.startswith("-"):
            return partial(run_operator, Path(file))
        case ["datastorage", "serve", "--settings", file] if not file.startswith("-"):
            return partial(serve_datastorage, Path(file))
    return None


def run_operator(file: Path | None) -> None:
    """Until it is told to stop."""
    from inquest.operator.interpreter import prepare_interpreter

    prepare_interpreter()  # before a thousand modules are loaded
    from inquest.operator.main import operate  # imported late: the other commands do not need kopf
    from inquest.settings.settings import Settings

    asyncio.run(operate(Settings.load(file), file))


def serve_datastorage(file: Path | None) -> None:
    """Until it is told to stop."""
    from inquest.server import datastorage_server
    from inquest.settings.settings import Settings

    asyncio.run(datastorage_server.serve(Settings.load(file)))
