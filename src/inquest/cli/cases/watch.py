"""`inquest follow`: one investigation as it goes on, from any call on that the reader has not seen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from inquest.adapters.clock import SystemClock
from inquest.api.investigation import Investigation
from inquest.cli.cases.find import investigation_object, session_at
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place
from inquest.cli.output import json_line, print_lines, print_warning
from inquest.errors import Retryable
from inquest.ports.clock import Clock
from inquest.ports.kinds import INVESTIGATION
from inquest.ports.kubernetes import Objects
from inquest.presentation.stream import FollowEvent, FollowKind, Reader, news_for, resume_reader

SECONDS: Final = 1.0
"""Between two looks at the status."""
MAX_FAILURES: Final = 60
"""Looks in a row that may fail before it is given up."""
Output = Literal["text", "json"]


def follow(
    investigation: str,
    /,
    *,
    after: int = 0,
    output: Annotated[Output, Parameter(alias="-o")] = "text",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Tell what an investigation does until it has ended: how it stands, then every call of a tool.

    Parameters
    ----------
    investigation
        Investigation, or its Signal.
    after
        Number of the last call that is known already; those behind it are told.
    output
        `text`: a line for each event; `json`: one object a line.
    """

    async def work(at: Session) -> Exit:
        found = await investigation_object(at, investigation)
        at, name = session_at(at, found), str(found["metadata"]["name"])
        events = following(at.kube.status, SystemClock(), at.namespace, name, resume_reader(after))
        async for told in events:
            print_lines(_json_line(told) if output == "json" else text_line(told))
        return Exit.OK

    return at_place(place, work)


async def following(
    status: Objects, clock: Clock, namespace: str, name: str, reader: Reader
) -> AsyncIterator[FollowEvent]:
    """Everything that this reader is told, up to the end."""
    failures = 0
    while not reader.ended:
        try:
            found = Investigation.from_object(await status.read(INVESTIGATION, name, namespace))
        except Retryable as error:
            failures += 1
            if failures > MAX_FAILURES:
                raise
            print_warning(str(error))
        else:
            failures = 0
            reader, told = news_for(found, reader)
            for one in told:
                yield one
        if not reader.ended:
            await clock.sleep(SECONDS)


def _json_line(told: FollowEvent) -> str:
    number = {"id": told.id} if told.event is FollowKind.CALL else {}
    return json_line({"event": told.event, **number, **told.body})


def text_line(told: FollowEvent) -> str:
    """One event as a line of text."""
    return " ".join(_TEXTS[told.event](told.id, told.body).splitlines())


def _call_text(number: int, body: Mapping[str, Any]) -> str:
    word = ("ok" if body["ok"] else "failed") if "ok" in body else "no answer"
    parts = (f"{number:>4}", body.get("tool"), body.get("arguments"), word, body.get("evidence"))
    return "  ".join(str(part) for part in parts if part)


def _missed_text(number: int, body: Mapping[str, Any]) -> str:
    last = "" if body["to"] is None else f" to {body['to']}"
    return f"      calls {body['from']}{last} are not in the status any more; the transcript holds them"


_TEXTS: Final[Mapping[FollowKind, Callable[[int, Mapping[str, Any]], str]]] = {
    FollowKind.STATUS: lambda _, body: f"{body['phase']}: {body['message']}".rstrip(": "),
    FollowKind.MISSED: _missed_text,
    FollowKind.CALL: _call_text,
    FollowKind.END: lambda _, body: "end: " + ", ".join(body.values()),
}
