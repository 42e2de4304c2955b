"""`inquest get`, `explain`, `report`, `evidence`: one case as it is stored, in the cluster or in a folder."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.live import Live
from rich.text import Text

from inquest.api.base import GROUP, rfc3339
from inquest.cli.cases.find import (
    exit_of_case,
    follow_case,
    investigation_object,
    recorded_case,
    recorded_folder,
    recorded_told,
    session_at,
    told_of,
)
from inquest.cli.cases.list import table_columns, without_managed_fields
from inquest.cli.cases.records import DisclosedEvidence, read_evidence, settings_of, tell_withheld
from inquest.cli.cases.watch import text_line
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place, open_session, seconds_of
from inquest.cli.output import (
    fit_lines,
    is_terminal,
    machine_text,
    print_lines,
    print_warning,
    say_table,
    table_lines,
    terminal_width,
)
from inquest.controllers.ports import INVESTIGATION
from inquest.core.evidence.evidence import Evidence
from inquest.errors import InquestError, Misconfigured, NotFound
from inquest.ports.kubernetes import Json
from inquest.presentation.branches import Section, State, text_nodes
from inquest.presentation.case import CaseObjects
from inquest.presentation.drawing import as_markdown, as_sections, as_tree
from inquest.presentation.explanation import explanation_of
from inquest.presentation.stream import news_for, resume_reader
from inquest.presentation.tree import case_tree
from inquest.replay.player import recorded_investigation
from inquest.settings.settings import Settings

GetOutput = Literal["tree", "wide", "json", "yaml", "name"]
COLOURS: Final = {
    State.DONE: "green",
    State.FAILED: "red",
    State.RUNNING: "cyan",
    State.WAITING: "dim",
    State.ATTENTION: "yellow",
}

SPARE: Final = ("CHARACTERS", "READ")
"""Columns of the list of evidence that a narrow terminal goes without."""


def get(
    name: str,
    /,
    *,
    watch: Annotated[bool, Parameter(alias="-w", negative="")] = False,
    timeout: str = "0",
    output: Annotated[GetOutput, Parameter(alias="-o")] = "tree",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Show one case as a tree: phases, calls, findings, the cause, the decision, what was done.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the folder of a recorded case.
    watch
        Go on until the case has ended; the exit status says how it did. Without a terminal: a line for each event,
        then the tree.
    timeout
        Longest time to watch: `10m`; `0` for ever.
    output
        `wide`, `json`, `yaml`, `name`: the Investigation as kubectl has it.
    """
    folder = recorded_folder(name)
    if folder is not None:
        print_lines(*as_tree(case_tree(asyncio.run(recorded_told(folder))), terminal_width()))
        return Exit.OK

    async def work(at: Session) -> Exit:
        found = await investigation_object(at, name)
        if watch:
            return await watch_case(session_at(at, found), str(found["metadata"]["name"]), seconds_of(timeout))
        if output == "tree":
            print_lines(*as_tree(case_tree(await told_of(at, found)), terminal_width()))
        else:
            await _show_object(session_at(at, found), found, output)
        return Exit.OK

    return at_place(place, work)


async def _show_object(at: Session, found: Json, output: GetOutput) -> None:
    name = str(found["metadata"]["name"])
    if output == "name":
        print_lines(f"investigation.{GROUP}/{name}")
    elif output == "wide":
        table = await at.kube.status.table(INVESTIGATION, at.namespace, name=name)
        print_lines(*table_lines(*table_columns(table, wide=True, everywhere=False)))
    else:
        print_lines(machine_text(without_managed_fields(found), "yaml" if output == "yaml" else "json"))


# --- watching -----------------------------------------------------------------------------------------------


async def watch_case(at: Session, name: str, seconds: float | None) -> Exit:
    """Show a case until it has ended; the exit status says how."""
    try:
        async with asyncio.timeout(seconds):
            told = await (_live if is_terminal() else _lines)(at, name)
    except TimeoutError:
        print_warning(f"{name} has not ended yet")
        return Exit.TIMED_OUT
    print_lines(*as_tree(case_tree(told), terminal_width()))
    return exit_of_case(told)


async def _live(at: Session, name: str) -> CaseObjects:
    last: CaseObjects | None = None
    with Live(auto_refresh=False, transient=True) as shown:
        async for last in follow_case(at, name):
            width, height = shown.console.size
            # One row is left for the cursor.
            lines = fit_lines(as_tree(case_tree(last), width), width, height - 1)
            shown.update(_coloured(lines), refresh=True)
    return _there(last, name)


async def _lines(at: Session, name: str) -> CaseObjects:
    last: CaseObjects | None = None
    reader = resume_reader(0)
    async for last in follow_case(at, name):
        reader, told = news_for(last.investigation, reader)
        print_lines(*(text_line(one) for one in told))
    return _there(last, name)


def _there(last: CaseObjects | None, name: str) -> CaseObjects:
    if last is None:
        raise NotFound(f"Investigation {name} is not there")
    return last


_SIGN: Final = re.compile(r"^[│├└─ ]*([✔✖▶○!]) ")


def _coloured(lines: list[str]) -> Text:
    """The lines with their signs in colour; nothing in them is read as markup."""
    text = Text()
    for line in lines:
        found = _SIGN.match(line)
        start = found.start(1) if found else 0
        text.append(line[:start])
        text.append(line[start : start + 1], style=COLOURS[State(found[1])] if found else "")
        text.append(f"{line[start + 1 :]}\n")
    return text


# --- explaining ---------------------------------------------------------------------------------------------


def explain(
    name: str,
    /,
    *,
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Say why: the cause with its evidence, what was ruled out, the workflow, the person, what came of it.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the folder of a recorded case.
    """
    print_lines(*as_sections(explanation_of(_case(name, place)), terminal_width()))
    return Exit.OK


def report(
    name: str,
    /,
    *,
    file: Annotated[Path | None, Parameter(name="--output", alias="-o")] = None,
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Write a whole case as Markdown, for an incident document.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the folder of a recorded case.
    file
        File to make; the terminal unless given.
    """
    told = _case(name, place)
    lines = as_markdown(f"Incident: {told.investigation.spec.signal.name}", (_facts(told), *explanation_of(told)))
    if file is None:
        print_lines(*lines)
    else:
        _written(file, "\n".join(lines) + "\n")
    return Exit.OK


def _written(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misconfigured(f"{file} cannot be written: {error.strerror}") from error


def _facts(told: CaseObjects) -> Section:
    """What an incident document opens with."""
    status, inv = told.status, told.investigation
    times = {"began": status.started_at, "ended": status.completed_at}
    written = [f"{word} {rfc3339(at)}" for word, at in times.items() if at]
    return Section("Summary", text_nodes(f"Investigation {inv.namespace}/{inv.name}", *written))


def _case(name: str, place: KubeOptions) -> CaseObjects:
    folder = recorded_folder(name)
    if folder is not None:
        return asyncio.run(recorded_told(folder))

    async def work(at: Session) -> CaseObjects:
        return await told_of(at, await investigation_object(at, name))

    return at_place(place, work)


# --- evidence -----------------------------------------------------------------------------------------------


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
        Investigation, or its Signal, or the folder of a recorded case.
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
    folder = recorded_folder(name)
    if folder is not None:
        case = await recorded_case(folder)
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
