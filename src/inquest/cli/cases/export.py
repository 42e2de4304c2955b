"""`inquest export`: a case as a folder or a file that can be played once more."""

from __future__ import annotations

import io
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from inquest.api.investigation import Feedback, Investigation
from inquest.cli.cases.find import investigation_object, session_at
from inquest.cli.cases.records import out_of_reach, read_record, settings_of, tell_withheld
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place
from inquest.cli.output import is_terminal, print_lines
from inquest.core.case.case import Case
from inquest.errors import Forbidden, Invalid, NotFound, UnknownKind
from inquest.replay.export import export_case, files_of
from inquest.replay.player import NotHere, named_case
from inquest.settings.settings import Settings

ARCHIVE: Final = Path("-")


def export(
    investigation: str,
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o", allow_leading_hyphen=True)],
    settings: Path | None = None,
    operator_namespace: Annotated[str, Parameter(show_default=False)] = "",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Write what an investigation saw and was told into a folder or a file that `inquest replay` takes.

    It comes through the API server, with your own rights: what was read where you may not read is left out, and with
    it everything that was concluded.

    Parameters
    ----------
    investigation
        Investigation, or its Signal, or the uid of an Investigation that is deleted.
    output
        Folder to make, or one file where it ends in `.yaml`; nothing is written over. `-`: the folder as an archive for
        `tar x`, to the standard output.
    settings
        YAML file that says where the journals and DataStorage are, to read them there and not through the API server.
    operator_namespace
        Namespace of the operator, which holds the journals of open cases; that of the settings unless given.
    """
    chosen = settings_of(settings, operator_namespace)
    if output == ARCHIVE and is_terminal():
        raise Invalid("--output - is an archive, which a terminal cannot show: send it to tar x, or into a file")

    async def work(at: Session) -> Exit:
        case = await _case(at, chosen, investigation, direct=settings is not None)
        feedback = await _feedback(at, investigation)
        if output == ARCHIVE:
            _write_archive(case, feedback)
        else:
            written = export_case(case, output, feedback)
            print_lines(f"{len(written)} files in {output}" if output.is_dir() else " ".join(map(str, written)))
        return Exit.OK

    kubeconfig = place.kubeconfig or str(chosen.kubernetes.kubeconfig or "")
    return at_place(replace(place, kubeconfig=kubeconfig), work)


async def _case(at: Session, chosen: Settings, name: str, *, direct: bool) -> Case:
    word = name.rpartition("/")[2]
    try:
        return await _stored(at, chosen, word, direct=direct)
    except NotFound:
        # By its Signal, perhaps; an Investigation that is gone is known by its uid alone.
        found = await investigation_object(at, word)
        return await _stored(session_at(at, found), chosen, str(found["metadata"]["name"]), direct=direct)


async def _stored(at: Session, chosen: Settings, name: str, *, direct: bool) -> Case:
    """Through the API server; where nobody serves it there, or where it is wished, from where it lies."""
    if not direct:
        try:
            case, withheld = await read_record(at, name)
        except UnknownKind:
            pass
        else:
            tell_withheld(withheld)
            return case
    try:
        return await named_case(at.kube, chosen, at.namespace, name)
    except (NotHere, Forbidden) as error:
        raise out_of_reach(error, direct=direct) from error


async def _feedback(at: Session, name: str) -> Feedback | None:
    """What a person said of the case; None for an Investigation that is deleted."""
    try:
        found = await investigation_object(at, name)
    except NotFound:
        return None
    return Investigation.from_object(found).spec.feedback


def _write_archive(case: Case, feedback: Feedback | None) -> None:
    """In a folder of the case's name."""
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for place, text in files_of(case, feedback).items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{case.opened.name}/{place}")
            entry.size, entry.mtime = len(content), int(time.time())
            archive.addfile(entry, io.BytesIO(content))
