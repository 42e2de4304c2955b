"""`inquest` in processes of its own, each of them a copy of one that has imported everything already.

Importing costs as much as a whole case. What a command imports, and that it imports little, is asked in
`tests/integration/cli/test_program.py`, of programs that begin from nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from inquest.cli.main import main

LOADED: Final = (
    "alembic.command",
    "inquest.adapters.llm.model",
    "inquest.cli.app",
    "inquest.datastorage.app",
    "inquest.operator.main",
    "inquest.server.datastorage_server",
)
"""What is imported late, and by all of these programs together."""
SECONDS: Final = 180.0
"""Bound of a command, on a machine that is many times slower."""
_forked = multiprocessing.get_context("forkserver")
_forked.set_forkserver_preload([__name__, *LOADED])


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    bytes: bytes
    """What it wrote to its output."""
    err: str

    @property
    def out(self) -> str:
        """The same as text."""
        return self.bytes.decode()


def launch(program: Callable[[Path], None], settings: Path, log: Path, environment: Mapping[str, str]) -> BaseProcess:
    """Start a program that serves, in the folder of its settings; what it says goes into its log."""
    given = program, settings, log, {**os.environ, **environment}
    process = _forked.Process(target=_serve, args=given, daemon=True)
    process.start()
    return process


def inquest(*words: str, **environment: str) -> Ran:
    """Run a command to its end, with nobody at its input and more variables than ours."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        given = words, out, err, os.getcwd(), {**os.environ, **environment}
        process = _forked.Process(target=_command, args=given, daemon=True)
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"inquest {' '.join(words)} did not end within {SECONDS:g} s")
        return Ran(process.exitcode, out.read_bytes(), err.read_text())


def _serve(program: Callable[[Path], None], settings: Path, log: Path, environment: dict[str, str]) -> None:
    _begin(settings.parent, log, log, environment)
    program(settings)


def _command(words: tuple[str, ...], out: Path, err: Path, folder: str, environment: dict[str, str]) -> None:
    _begin(Path(folder), out, err, environment)
    sys.argv = ["inquest", *words]
    main()


def _begin(folder: Path, out: Path, err: Path, environment: dict[str, str]) -> None:
    """As a shell would start it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream.fileno())


def run_operator(settings: Path) -> None:
    """`inquest run --settings FILE`."""
    sys.argv = ["inquest", "run", "--settings", str(settings)]
    main()


def serve_datastorage(settings: Path) -> None:
    """`inquest datastorage serve --settings FILE`."""
    sys.argv = ["inquest", "datastorage", "serve", "--settings", str(settings)]
    main()
