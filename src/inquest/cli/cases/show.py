"""`inquest get`, `explain`, `report`: one case as it is stored, in the cluster or in a folder."""

from __future__ import annotations

import asyncio
import re
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
    recorded_place,
    recorded_told,
    session_at,
    told_of,
)
from inquest.cli.cases.list import table_columns, without_managed_fields
from inquest.cli.cases.watch import text_line
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place, seconds_of
from inquest.cli.output import (
    fit_lines,
    is_terminal,
    machine_text,
    print_lines,
    print_warning,
    table_lines,
    terminal_width,
)
from inquest.errors import Misconfigured, NotFound
from inquest.ports.kinds import INVESTIGATION
from inquest.ports.kubernetes import Json
from inquest.presentation.branches import Section, State, text_nodes
from inquest.presentation.case import CaseObjects
from inquest.presentation.drawing import as_markdown, as_sections, as_tree
from inquest.presentation.explanation import explanation_of
from inquest.presentation.stream import news_for, resume_reader
from inquest.presentation.tree import case_tree

GetOutput = Literal["tree", "wide", "json", "yaml", "name"]
COLOURS: Final = {
    State.DONE: "green",
    State.FAILED: "red",
    State.RUNNING: "cyan",
    State.WAITING: "dim",
    State.ATTENTION: "yellow",
}


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
        Investigation, or its Signal, or the folder or file of a recorded case.
    watch
        Go on until the case has ended; the exit status says how it did. Without a terminal: a line for each event,
        then the tree.
    timeout
        Longest time to watch: `10m`; `0` for ever.
    output
        `wide`, `json`, `yaml`, `name`: the Investigation as kubectl has it.
    """
    recorded = recorded_place(name)
    if recorded is not None:
        print_lines(*as_tree(case_tree(asyncio.run(recorded_told(recorded))), terminal_width()))
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
            # The lines with their signs in colour; nothing in them is read as markup.
            text = Text()
            for line in lines:
                found = _SIGN.match(line)
                start = found.start(1) if found else 0
                text.append(line[:start])
                text.append(line[start : start + 1], style=COLOURS[State(found[1])] if found else "")
                text.append(f"{line[start + 1 :]}\n")
            shown.update(text, refresh=True)
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
        Investigation, or its Signal, or the folder or file of a recorded case.
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
        Investigation, or its Signal, or the folder or file of a recorded case.
    file
        File to make; the terminal unless given.
    """
    told = _case(name, place)
    # What an incident document opens with.
    status, inv = told.status, told.investigation
    times = {"began": status.started_at, "ended": status.completed_at}
    written = [f"{word} {rfc3339(at)}" for word, at in times.items() if at]
    facts = Section("Summary", text_nodes(f"Investigation {inv.namespace}/{inv.name}", *written))
    lines = as_markdown(f"Incident: {inv.spec.signal.name}", (facts, *explanation_of(told)))
    if file is None:
        print_lines(*lines)
    else:
        text = "\n".join(lines) + "\n"
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Misconfigured(f"{file} cannot be written: {error.strerror}") from error
    return Exit.OK


def _case(name: str, place: KubeOptions) -> CaseObjects:
    recorded = recorded_place(name)
    if recorded is not None:
        return asyncio.run(recorded_told(recorded))

    async def work(at: Session) -> CaseObjects:
        return await told_of(at, await investigation_object(at, name))

    return at_place(place, work)
