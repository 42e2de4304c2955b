"""One case by its name: from the cluster, or from the folder of a recorded one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inquest.api.approval import RemediationApprovalRequest
from inquest.api.execution import WorkflowExecution
from inquest.api.investigation import Investigation
from inquest.api.names import approval_name, execution_name, undo_name
from inquest.api.refs import ObjectRef
from inquest.api.registry import KINDS
from inquest.api.signal import Signal
from inquest.api.types import Phase
from inquest.cli.exits import Exit
from inquest.cli.options import Session
from inquest.cli.output import print_warning
from inquest.controllers.reading import find_object
from inquest.errors import Forbidden, Invalid, NotFound, Retryable
from inquest.ports.kinds import INVESTIGATION
from inquest.ports.kubernetes import Json
from inquest.presentation.case import CaseObjects

if TYPE_CHECKING:
    from inquest.core.case.case import Case

PAUSE_FIRST: Final = 1.0
PAUSE_LAST: Final = 15.0
"""Seconds between two tries to watch again."""


# --- from the cluster ---------------------------------------------------------------------------------------


async def investigation_object(at: Session, name: str) -> Json:
    """The Investigation of this name, or that of the Signal of this name; NotFound names both."""
    word = name.rpartition("/")[2]
    try:
        return await at.kube.status.read(INVESTIGATION, word, at.namespace)
    except NotFound:
        signal = await find_object(at.kube.status, Signal, word, at.namespace)
    if signal is None:
        raise NotFound(
            f"there is no Investigation and no Signal {word} in namespace {at.namespace}: -n names another one, "
            "`inquest list -A` looks in all of them"
        )
    found = await case_of(at, signal)
    if found is None:
        status = signal.status
        said = f"{status.phase or 'Pending'}: {status.message or status.reason or ''}".rstrip(": ")
        raise NotFound(f"Signal {word} has no Investigation: {said}")
    return found


async def case_of(at: Session, signal: Signal) -> Json | None:
    """The Investigation that a Signal got or joined, of whichever namespace; None where it has none."""
    ref = signal.status.investigation_ref or signal.status.duplicate_of
    if ref is None:
        return None
    with suppress(NotFound):
        found = await at.kube.status.read(INVESTIGATION, ref.name, at.namespace)
        if _is_meant(found, ref):
            return found
    return await _elsewhere(at, signal, ref)


async def _elsewhere(at: Session, signal: Signal, ref: ObjectRef) -> Json:
    """An open case is joined wherever it stands, and a Signal names it without its namespace."""
    joined = f"Signal {signal.name} belongs to Investigation {ref.name}, which is not in namespace {at.namespace}"
    try:
        everywhere = await at.kube.status.list(INVESTIGATION, fields=f"metadata.name={ref.name}")
    except Forbidden as error:
        raise NotFound(f"{joined}, and you may not look in all of them: name its namespace with -n") from error
    found = next((one for one in everywhere if _is_meant(one, ref)), None)
    if found is None:
        raise NotFound(f"{joined} and in no other one any more")
    return found


def _is_meant(found: Json, ref: ObjectRef) -> bool:
    return ref.uid is None or bool(found["metadata"].get("uid") == ref.uid)


def session_at(at: Session, found: Json) -> Session:
    """The same connection where an object stands, and what belongs to it."""
    return Session(at.kube, str(found["metadata"]["namespace"]))


async def told_of(at: Session, found: Json) -> CaseObjects:
    """The case of an Investigation, with what belongs to it."""
    inv, status = Investigation.from_object(found), at.kube.status
    ref, namespace = inv.spec.signal_ref, inv.namespace
    request = None
    with suppress(Forbidden):
        # Who looks at cases need not be let see requests; the Investigation says who decided.
        request = await find_object(status, RemediationApprovalRequest, approval_name(inv.name), namespace)
    return CaseObjects(
        inv,
        signal=await find_object(status, Signal, ref.name, namespace) if ref else None,
        request=request,
        execution=await find_object(status, WorkflowExecution, execution_name(inv.name), namespace),
        undo=await find_object(status, WorkflowExecution, undo_name(inv.name), namespace),
    )


async def follow_case(at: Session, name: str) -> AsyncIterator[CaseObjects]:
    """The case at each of its changes, up to its end; a connection that breaks is made again.

    NotFound once it is deleted.
    """
    seen, pause = "", PAUSE_FIRST
    while True:
        try:
            async for found in _versions(at, name):
                version = str(found["metadata"].get("resourceVersion"))
                if version == seen:
                    continue
                seen, pause = version, PAUSE_FIRST
                told = await told_of(at, found)
                yield told
                if told.has_ended:
                    return
        except Retryable as error:
            print_warning(f"{error}; trying again")
            pause = min(PAUSE_LAST, 2 * pause)
        # Also after a good end: a server that ends every watch at once is not asked in a loop.
        await asyncio.sleep(pause)


async def _versions(at: Session, name: str) -> AsyncIterator[Json]:
    # Read first: what was deleted while nobody watched is in no list.
    yield await at.kube.status.read(INVESTIGATION, name, at.namespace)
    changes = at.kube.cluster.changes(INVESTIGATION, at.namespace, fields=f"metadata.name={name}")
    async with aclosing(changes):
        async for change in changes:
            if change.gone:
                raise NotFound(f"Investigation {name} was deleted")
            if change.object:
                yield change.object


def exit_of_case(told: CaseObjects) -> Exit:
    """How a case that was waited for ended."""
    if told.phase is Phase.FAILED:
        return Exit.FAILED
    if told.phase is Phase.CANCELLED:
        return Exit.CANCELLED
    return Exit.NEEDS_PERSON if told.status.needs_human_review else Exit.OK


# --- from a folder or a file --------------------------------------------------------------------------------


def recorded_place(name: str) -> Path | None:
    """The folder or file of a recorded case, where a name is one; NotFound where it can only be meant as one."""
    from inquest.replay.case import CASE, find_case  # imported late, as below: who asks a cluster needs no player

    place = Path(name)
    if (found := find_case(place)) is not None:
        return found
    # `KIND/NAME` is how kubectl writes an object; every other word with a `/` is a path.
    kind, slash, _ = name.partition("/")
    is_path = name.startswith(".") or (bool(slash) and kind.partition(".")[0].lower() not in _KIND_WORDS)
    if is_path:
        what = f"{name} holds no {CASE}" if place.is_dir() else f"{name} is no case"
        raise NotFound(what if place.exists() else f"there is no such folder or file: {name}")
    return None


_KIND_WORDS: Final = frozenset(word for entry in KINDS for word in (entry.kind.lower(), entry.plural, entry.short))


async def recorded_case(place: Path) -> Case:
    """What was recorded of it; a case without a recording is played, without a model."""
    from inquest.replay.export import read_recording, recording_of
    from inquest.replay.player import default_catalogue, open_player
    from inquest.settings.settings import Settings

    if recording_of(place).is_file():
        return read_recording(place)
    async with open_player(Settings.load(), default_catalogue()) as player:
        return (await player.play(place)).case


async def recorded_told(folder: Path) -> CaseObjects:
    """The case of a folder."""
    from inquest.replay.player import recorded_investigation

    case = await recorded_case(folder)
    if not case.facts:
        raise Invalid(f"{folder}: nothing is recorded of its case")
    return CaseObjects(recorded_investigation(case))
