"""`inquest`: one command for each thing that a person, or a pod, does with it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from cyclopts import App

from inquest import __version__
from inquest.errors import InquestError
from inquest.settings import Settings

app = App(name="inquest", version=__version__, help="Signals in, proven root causes and approved fixes out.")


@app.command
def run(*, settings: Path | None = None) -> None:
    """Run the operator until it is told to stop.

    Parameters
    ----------
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest.operator.main import operate  # imported late: the other commands do not need kopf

    asyncio.run(operate(Settings.load(settings)))


def main() -> None:
    """Entry point; a fault that a person can mend is one line."""
    try:
        app()
    except InquestError as error:
        print(f"inquest: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
