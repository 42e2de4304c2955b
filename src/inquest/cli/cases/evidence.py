"""`inquest evidence`: the evidence of one case, or one text of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from inquest.api.base import rfc3339
from inquest.cli.cases.find import investigation_object, recorded_case, recorded_place, session_at, told_of
from inquest.cli.cases.records import DisclosedEvidence, read_evidence, settings_of, tell_withheld
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, open_session
from inquest.cli.output import print_lines, print_warning, say_table
from inquest.core.evidence.evidence import Evidence
from inquest.errors import InquestError, NotFound
from inquest.presentation.case import CaseObjects
from inquest.replay.player import recorded_investigation
from inquest.settings.settings import Settings

SPARE: Final = ("CHARACTERS", "READ")
"""Columns that a narrow terminal goes without."""


def evidence(
    name: str,
    number: str = "",
    /,
    *,
    settings: Path | None = None,
    operator_namespace: Annotated[str, Parameter(show_default=False)] = "",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """List the evidence of a case, or print the text of one piece, as redacted as it was stored.

    It comes through the API server, with your own rights: what was read where you may not read is withheld, and named.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the folder or file of a recorded case.
    number
        `E1`, `E2`, …; all are listed unless given.
    settings
        YAML file that says where the journals and DataStorage are, to read them there and not through the API server.
    operator_namespace
        Namespace of the operator, which holds the journals of open cases; that of the settings unless given.
    """
    chosen = settings_of(settings, operator_namespace)
    return asyncio.run(_evidence(name, number.upper(), chosen, place, direct=settings is not None))


async def _evidence(name: str, number: str, settings: Settings, place: KubeOptions, *, direct: bool) -> Exit:
    recorded = recorded_place(name)
    if recorded is not None:
        case = await recorded_case(recorded)
        return _print(CaseObjects(recorded_investigation(case)), number, DisclosedEvidence(case.evidence))
    async with open_session(place) as at:
        found = await investigation_object(at, name)
        told = await told_of(at, found)
        return _print(told, number, await _held(session_at(at, found), told, number, settings, direct=direct))


async def _held(
    at: Session, told: CaseObjects, number: str, settings: Settings, *, direct: bool
) -> DisclosedEvidence | None:
    """None where nobody has the text, or this person may not read it: the status still says what it was.

    Said only where one text is asked for: the list does without.
    """
    try:
        return await read_evidence(at, settings, told.investigation.uid, told.name, number, direct=direct)
    except InquestError as error:
        if number:
            print_warning(f"the text cannot be read: {error}")
        return None


def _print(told: CaseObjects, number: str, held: DisclosedEvidence | None) -> Exit:
    if held is not None:
        tell_withheld(held.withheld)
    if not number:
        say_table(*_index(told, held), SPARE, "a file or a pipe gets all")
        return Exit.OK
    if held is not None and number in held.withheld:
        return Exit.FORBIDDEN
    known = next((one for one in told.status.evidence if one.id == number), None)
    found = next((one for one in held.pieces if one.id == number), None) if held else None
    if known is None and found is None:
        raise NotFound(f"{told.name} has no evidence {number}: without a number, all that it has are listed")
    if found is not None:
        print_lines(*_whole(found))
        return Exit.OK
    print_lines(*(f"{claim.verdict}: “{claim.quote}”" for claim in told.status.claims if number in claim.evidence))
    return Exit.NOT_FOUND


def _index(told: CaseObjects, held: DisclosedEvidence | None) -> tuple[list[str], list[list[str]]]:
    """What each piece was asked for is kept with its text alone: without that there is no such column."""
    asked = {one.id: [_arguments(one)] for one in held.pieces} if held else {}
    asked |= {name: ["(withheld)"] for name in held.withheld} if held else {}
    nothing = [""] if held else []
    rows = [
        [
            *(one.id, one.tool, *asked.get(one.id, nothing)),
            *(str(one.size or 0), rfc3339(one.at) if one.at else "", ", ".join(_citing(told, one.id))),
        ]
        for one in told.status.evidence
    ]
    return ["ID", "TOOL", *(["ASKED FOR"] if held else []), "CHARACTERS", "READ", "CITED BY"], rows


def _arguments(found: Evidence) -> str:
    return ", ".join(f"{key}={value}" for key, value in found.arguments.items())


def _citing(told: CaseObjects, number: str) -> Iterator[str]:
    yield from (f"{claim.role} {claim.verdict}" for claim in told.status.claims if number in claim.evidence)
    yield from (f"finding {finding.detector}" for finding in told.status.findings if number in finding.evidence)


def _whole(found: Evidence) -> Iterator[str]:
    yield f"{found.id}: {found.tool} {_arguments(found)}".rstrip()
    yield f"read {rfc3339(found.observed_at)}, {found.status}, {found.digest}"
    yield ""
    yield found.text
