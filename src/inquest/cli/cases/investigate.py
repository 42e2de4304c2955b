"""`inquest investigate`, `cancel`, `rerun`: what a person may ask of Inquest, as they could with kubectl."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Final

from cyclopts import Parameter

from inquest.api.base import API_VERSION
from inquest.api.investigation import FeedbackVerdict, Investigation
from inquest.api.names import REQUESTER_ANNOTATION
from inquest.api.signal import Signal
from inquest.api.types import TERMINAL_PHASES, Severity, SignalPhase, SourceType
from inquest.cli.cases.approve import MANAGER
from inquest.cli.cases.find import case_of, investigation_object, session_at
from inquest.cli.cases.show import watch_case
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place, seconds_of
from inquest.cli.output import print_lines, print_warning
from inquest.cli.target import target_of
from inquest.core.cluster.objects import status_of
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Conflict, InquestError
from inquest.ports.kinds import INVESTIGATION, SIGNAL
from inquest.ports.kubernetes import Json, ResourceKind

LEFT_OUT: Final = ("signalRef", "cancel", "feedback")
"""Of the spec of a case that is looked into again: its Signal stays with the first."""
LOOK_SECONDS: Final = 1.0


def investigate(
    target: str,
    /,
    *,
    message: Annotated[str, Parameter(alias="-m")] = "",
    severity: Severity = Severity.HIGH,
    title: str = "",
    name: str = "",
    signal_namespace: str = "",
    allow_missing: Annotated[bool, Parameter(negative="")] = False,
    wait: Annotated[bool, Parameter(negative="")] = False,
    timeout: str = "0",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Ask for an investigation: creates a Signal, which passes triage like any other.

    Nothing is created where the target is not there. Who may not read it is told so, and the Signal is created.

    Parameters
    ----------
    target
        `KIND/NAME`, such as `deployment/checkout`, in the namespace.
    message
        What is wrong, in a sentence.
    severity
        How bad it is.
    title
        Name of the trouble; `Manual` unless given.
    name
        Name of the Signal, so that asking twice is asking once; a new one each time unless given.
    signal_namespace
        Where the Signal stands, if not beside its target.
    allow_missing
        Ask about a target that is gone; it is not looked for.
    wait
        Follow the case to its end; the exit status says how it did.
    timeout
        Longest time to wait: `10m`; `0` for ever.
    """

    most = seconds_of(timeout)

    async def work(at: Session) -> Exit:
        home = Session(at.kube, signal_namespace or at.namespace)
        named = await target_of(at, target, missing=allow_missing)
        found = {
            "name": title or "Manual",
            "severity": str(severity),
            "source": {"type": str(SourceType.MANUAL), "name": MANAGER},
            "target": named,
            **({"message": message} if message else {}),
        }
        metadata = {"name": name} if name else {"generateName": "sig-"}
        created = await _created(home, SIGNAL, {"metadata": metadata | await _signed(at), "spec": found})
        if not wait:
            return _left(home, created)
        async with asyncio.timeout(most) as bound:
            case = await _case_of(home, created)
        end = bound.when()
        left = None if end is None else end - asyncio.get_running_loop().time()
        return await watch_case(session_at(home, case), str(case["metadata"]["name"]), left) if case else Exit.NO

    try:
        return at_place(place, work)
    except TimeoutError:
        print_warning("there is no case yet: is the operator there? `inquest list signals` says what became of it")
        return Exit.TIMED_OUT


async def _created(at: Session, kind: ResourceKind, body: Json) -> str:
    """Create it in the person's name, redacted; the name that it got."""
    spec = Redactor().strings(body["spec"])
    metadata = {**body["metadata"], "namespace": at.namespace}
    obj = {"apiVersion": API_VERSION, "kind": kind.kind, "metadata": metadata, "spec": spec.value}
    created = await at.kube.status.create(kind, spec.carried(obj))
    name = str(created["metadata"]["name"])
    print_lines(f"{kind.kind.lower()}/{name} created in {at.namespace}")
    return name


async def _signed(at: Session) -> Json:
    """Who asks, for API servers that do not write it themselves; one that knows better refuses or replaces it."""
    with contextlib.suppress(InquestError):
        return {"annotations": {REQUESTER_ANNOTATION: (await at.kube.status.whoami()).user}}
    return {}


def _left(at: Session, name: str) -> Exit:
    """Nobody waits here: what to type for that is said."""
    print_lines(f"to see what becomes of it: inquest get {name} -n {at.namespace} --watch")
    return Exit.OK


async def _case_of(at: Session, signal: str) -> Json | None:
    """The Investigation that a Signal got, or joined; none where triage gave it none, which is said."""
    while True:
        found = Signal.from_object(await at.kube.status.read(SIGNAL, signal, at.namespace))
        case, status = await case_of(at, found), found.status
        if case is not None:
            print_lines(f"{signal} is {status.phase}: {status.message}")
            return case
        if status.phase in (SignalPhase.IGNORED, SignalPhase.FAILED, SignalPhase.RESOLVED, SignalPhase.BLOCKED):
            until = f" until {status.blocked_until:%Y-%m-%d %H:%M:%SZ}" if status.blocked_until else ""
            print_warning(f"{signal} is {status.phase}{until}: {status.reason}: {status.message}")
            return None
        await asyncio.sleep(LOOK_SECONDS)


def cancel(
    name: str,
    /,
    *,
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Stop a case; a change that a Job has made stays. It cannot be taken back.

    Parameters
    ----------
    name
        Investigation, or its Signal.
    """

    async def work(at: Session) -> Exit:
        found = await investigation_object(at, name)
        case, phase = str(found["metadata"]["name"]), status_of(found).get("phase")
        if phase in ("Completed", "Failed", "Cancelled"):
            raise Conflict(f"{case} has ended: {phase}")
        await at.kube.status.change(INVESTIGATION, found, Redactor().strings({"spec": {"cancel": True}}), MANAGER)
        print_lines(f"{case} is being cancelled")
        return Exit.OK

    return at_place(place, work)


def feedback(
    name: str,
    verdict: FeedbackVerdict,
    /,
    *,
    cause: str = "",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Say whether the diagnosis of a case that has ended was right, once, in your own name. It cannot be taken back.

    Parameters
    ----------
    name
        Investigation, or its Signal.
    verdict
        `right`, `wrong` or `partial`.
    cause
        The real cause, where it was another one; up to 500 characters.
    """

    async def work(at: Session) -> Exit:
        found = await investigation_object(at, name)
        case = Investigation.from_object(found)
        if case.spec.feedback is not None:
            raise Conflict(f"{case.name}: {case.spec.feedback.by} has said {case.spec.feedback.verdict} already")
        if case.status.phase not in TERMINAL_PHASES:
            raise Conflict(f"{case.name} has not ended yet: {case.status.phase or 'Pending'}")
        who, told = (await at.kube.status.whoami()).user, Redactor().text(cause)
        said = {"verdict": str(verdict), "by": who, **({"cause": told.value} if cause else {})}
        await at.kube.status.change(INVESTIGATION, found, told.carried({"spec": {"feedback": said}}), MANAGER)
        print_lines(f"{case.name}: {verdict}, says {who}")
        return Exit.OK

    return at_place(place, work)


def rerun(
    case: str,
    /,
    *,
    name: str = "",
    model: str = "",
    wait: Annotated[bool, Parameter(negative="")] = False,
    timeout: str = "0",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Look into a case again: a new Investigation of the same content, which passes every guard.

    Parameters
    ----------
    case
        Investigation, or its Signal.
    name
        Name of the new one, so that asking twice is asking once; a new one each time unless given.
    model
        One of the configured models, where it should be another one.
    wait
        Follow it to its end; the exit status says how it did.
    timeout
        Longest time to wait: `10m`; `0` for ever.
    """

    most = seconds_of(timeout)

    async def work(at: Session) -> Exit:
        found = await investigation_object(at, case)
        spec = {key: value for key, value in found["spec"].items() if key not in LEFT_OUT}
        metadata = {"name": name} if name else {"generateName": "again-"}
        body = {"metadata": metadata, "spec": spec | ({"model": model} if model else {})}
        beside = session_at(at, found)
        again = await _created(beside, INVESTIGATION, body)
        return await watch_case(beside, again, most) if wait else _left(beside, again)

    return at_place(place, work)
