"""`inquest`: one command for each thing that a person, or a pod, does with it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from inquest import __version__
from inquest.adapters.redact import Redactor
from inquest.errors import InquestError, Misconfigured
from inquest.settings import Settings
from inquest.telemetry import set_up_logging

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


@app.command
def replay(
    *cases: Path,
    model: str = "none",
    output: Annotated[Literal["text", "json"], Parameter(alias="-o")] = "text",
    catalogue: Path | None = None,
    settings: Path | None = None,
) -> int:
    """Run the product on recorded cases, without a cluster.

    Exits with 0 where all ran, 1 where an expectation failed, 2 on a bad case.

    Parameters
    ----------
    cases
        Folders of cases; one that is no case itself stands for those beneath it.
    model
        `none`: the detectors alone; `recorded`: the replies that stand in the folder; else the name of a model of
        the settings.
    output
        `text`: causes and a table; `json`: one object a line.
    catalogue
        Folder of ActionTypes and RemediationWorkflows; the product's own unless given.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest.cli import replay as replays
    from inquest.replaying import default_catalogue

    if not cases:
        raise Misconfigured("name a case, or a folder of cases")
    chosen = catalogue or default_catalogue()
    return asyncio.run(replays.replay(cases, Settings.load(settings), chosen, model, output))


@app.command
def export(
    investigation: str,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    namespace: Annotated[str, Parameter(alias="-n")] = "",
    settings: Path | None = None,
) -> None:
    """Write what an investigation saw and was told into a folder that `inquest replay` takes.

    Parameters
    ----------
    investigation
        Name of the Investigation, or its uid once it is deleted.
    output
        Folder to make; nothing is written over.
    namespace
        Namespace of the Investigation; the operator's own unless given.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest.replaying import exported

    chosen = Settings.load(settings)
    written = asyncio.run(exported(chosen, namespace or chosen.kubernetes.namespace, investigation, output))
    print(f"{len(written)} files in {output}")


datastorage = App(name="datastorage", help="The bundled DataStorage.")
app.command(datastorage)


@datastorage.command
def serve(*, settings: Path | None = None) -> None:
    """Serve DataStorage alone, on a port and behind a login, until it is told to stop.

    Parameters
    ----------
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest import standalone

    asyncio.run(standalone.serve(Settings.load(settings)))


# By name: whoever runs the operator needs none of what they import.
app.command("inquest.cli.audit:audit", name="audit")
app.command("inquest.cli.policy:policy", name="policy")
datastorage.command("inquest.cli.copies:backup", name="backup")
datastorage.command("inquest.cli.copies:restore", name="restore")


@app.command
def follow(
    investigation: str,
    *,
    namespace: Annotated[str, Parameter(alias="-n")] = "",
    after: int = 0,
    output: Annotated[Literal["text", "json"], Parameter(alias="-o")] = "text",
    settings: Path | None = None,
) -> int:
    """Tell what an investigation does until it has ended: how it stands, then every call of a tool.

    Parameters
    ----------
    investigation
        Name of the Investigation.
    namespace
        Namespace of the Investigation; the operator's own unless given.
    after
        Number of the last call that is known already; those behind it are told.
    output
        `text`: a line for each event; `json`: one object a line.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest.cli import follow as follows

    chosen = Settings.load(settings)
    place = namespace or chosen.kubernetes.namespace
    return asyncio.run(follows.follow(chosen, place, investigation, after, output))


def main() -> None:
    """Entry point; a fault that a person can mend is one line."""
    # What a command prints is for whoever called it: the log goes to the other stream (`run` has its own).
    redactor = Redactor()
    set_up_logging(level="warning", form="text", redact=lambda text: redactor.text(text).value)
    try:
        sys.exit(app(result_action="return_value"))
    except InquestError as error:
        print(f"inquest: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever reads the output has seen enough; nothing is left to be flushed to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
