"""Entry point of `inquest` and `kubectl inquest`, for people and for pods."""

from __future__ import annotations

import os
import sys

from inquest.cli.exits import Exit, exit_of
from inquest.cli.output import print_warning
from inquest.cli.program import program_of
from inquest.errors import InquestError


def main() -> None:
    """Do what the words of this process say; a fault that a person can mend is one line."""
    try:
        sys.exit(_done(sys.argv[1:]))
    except InquestError as error:
        print_warning(str(error))
        sys.exit(exit_of(error))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        # Whoever reads the output has seen enough; nothing is left to be flushed to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.NO)


def _done(words: list[str]) -> int | None:
    """The exit status; none stands for 0."""
    if words and not {"--help", "-h", "--version"} & set(words):
        _log_to_stderr()
    program = program_of(words)
    if program is not None:
        program()
        return None
    from cyclopts import CycloptsError  # imported late: see `pods`

    from inquest.cli.app import app, misuse

    try:
        status: int | None = app(
            words, result_action="return_value", exit_on_error=False, print_error=False, verbose=False
        )
    except CycloptsError as error:
        print_warning(misuse(error))
        return Exit.MISUSED
    return status


def _log_to_stderr() -> None:
    """What a command prints is for whoever called it: the log goes to the other stream (`run` has its own)."""
    from inquest.core.redaction.redactor import Redactor  # imported late: help logs nothing
    from inquest.telemetry.logs import set_up_logging

    redactor = Redactor()
    set_up_logging(level="warning", form="text", redact=lambda text: redactor.published(text).value)


if __name__ == "__main__":
    main()
