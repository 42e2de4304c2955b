"""The commands of `inquest`: one for each thing that a person, or a pod, does with it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from inquest import __version__
from inquest.cli.program import run_operator, serve_datastorage
from inquest.errors import Misconfigured

PLUGIN: Final = "kubectl-inquest"
"""Name of the program that kubectl starts for `kubectl inquest`."""


def _called() -> str:
    """What the person typed to get here, for the help."""
    return PLUGIN.replace("-", " ") if Path(sys.argv[0]).name.startswith(PLUGIN) else "inquest"


def misuse(error: CycloptsError) -> str:
    """What is wrong with the words that somebody typed, in one sentence, and where their help is."""
    command = " ".join((_called(), *(error.command_chain or ())))
    if isinstance(error, UnusedCliTokensError):
        return f"one word too many: {' '.join(error.unused_tokens or ())}; see {command} --help"
    # The library's own sentences; of an unknown command it lists a part of the others as well.
    said = " ".join(str(error).split()).partition(" Available commands:")[0]
    see = "? See" if said.endswith("?") else "; see"
    return f"{said[:1].lower()}{said[1:].rstrip('.?')}{see} {command} --help"


app = App(
    name=_called(),
    version=__version__,
    help="Signals in, proven root causes and approved fixes out.",
)


@app.command
def run(*, settings: Path | None = None) -> None:
    """Run the operator until it is told to stop.

    Parameters
    ----------
    settings
        YAML file; `INQUEST_…` environment variables beat it. What of it is live is taken up when it changes.
    """
    run_operator(settings)


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
        Cases, each a folder or a file; a folder that is no case itself stands for those beneath it.
    model
        `none`: the detectors alone; `recorded`: the replies that stand with the case; else the name of a model of
        the settings.
    output
        `text`: causes and a table; `json`: one object a line.
    catalogue
        Folder of ActionTypes and RemediationWorkflows; the product's own unless given.
    settings
        YAML file; `INQUEST_…` environment variables beat it.
    """
    from inquest.cli.admin import replay as replays
    from inquest.replay.player import default_catalogue
    from inquest.settings.settings import Settings

    if not cases:
        raise Misconfigured("name a case, or a folder of cases")
    chosen = catalogue or default_catalogue()
    return asyncio.run(replays.replay(cases, Settings.load(settings), chosen, model, output))


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
    serve_datastorage(settings)


# By name: whoever runs the operator needs none of what they import.
app.command("inquest.cli.cases.list:list_", name="list", help="List investigations, or what belongs to them.")
app.command(
    "inquest.cli.admin.doctor:doctor", name="doctor", help="Check an installation, and say what to fix and how."
)
app.command("inquest.cli.admin.cleanup:cleanup", name="cleanup", help="Say what keeps Inquest from being removed.")
app.command("inquest.cli.cases.show:get", name="get", help="Show one case as a tree, and follow it to its end.")
app.command("inquest.cli.cases.show:explain", name="explain", help="Say why: cause, evidence, workflow, person, end.")
app.command("inquest.cli.cases.show:report", name="report", help="Write a whole case as Markdown, for a document.")
app.command(
    "inquest.cli.cases.evidence:evidence", name="evidence", help="List the evidence of a case, or print one text."
)
app.command(
    "inquest.cli.cases.approve:approve", name="approve", help="Approve what a case wants to do, once you saw it."
)
app.command("inquest.cli.cases.approve:reject", name="reject", help="Reject what a case wants to do.")
app.command(
    "inquest.cli.cases.investigate:investigate", name="investigate", help="Ask for an investigation of an object."
)
app.command("inquest.cli.cases.investigate:cancel", name="cancel", help="Stop a case.")
app.command("inquest.cli.cases.investigate:feedback", name="feedback", help="Say whether a diagnosis was right.")
app.command("inquest.cli.cases.investigate:rerun", name="rerun", help="Look into a case again.")
app.command("inquest.cli.completion:completion", name="completion", help="Print the completion script of a shell.")
app.command("inquest.cli.admin.lint:lint", name="lint", help="Check objects in files, without a cluster.")
app.command("inquest.cli.admin.audit:audit", name="audit", help="Check the audit trail.")
app.command("inquest.cli.admin.policy:policy", name="policy", help="Try an approval policy without a cluster.")
app.command("inquest.cli.cases.watch:follow", name="follow", help="Tell what a case does, call by call, until its end.")
app.command("inquest.cli.cases.export:export", name="export", help="Write a case, as a folder or a file, for replays.")
