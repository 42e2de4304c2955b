"""`inquest export`: a case as a folder that can be played once more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from inquest.cli.exits import Exit
from inquest.cli.output import say
from inquest.cli.place import Connection, Place, at_place
from inquest.replaying import exported
from inquest.settings import Settings


def export(
    investigation: str,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    settings: Path | None = None,
    place: Place = Place(),  # noqa: B008 - frozen
) -> int:
    """Write what an investigation saw and was told into a folder that `inquest replay` takes.

    Parameters
    ----------
    investigation
        Name of the Investigation, or its uid once it is deleted.
    output
        Folder to make; nothing is written over.
    settings
        YAML file that says where the journals and DataStorage are; `INQUEST_…` environment variables beat it.
    """
    chosen = Settings.load(settings)

    async def work(at: Connection) -> Exit:
        written = await exported(at.kube, chosen, at.namespace, investigation, output)
        say(f"{len(written)} files in {output}")
        return Exit.OK

    kubeconfig = place.kubeconfig or str(chosen.kubernetes.kubeconfig or "")
    return at_place(replace(place, kubeconfig=kubeconfig), work)


__all__ = ["export"]
