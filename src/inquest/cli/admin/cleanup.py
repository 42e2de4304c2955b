"""`inquest cleanup`: what keeps Inquest from being removed, and what of it is safe to be done."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import Parameter

from inquest.api.execution import JOB_CLEANUP_FINALIZER
from inquest.api.installation import EXECUTION_NAMESPACE
from inquest.api.names import EXECUTION_LABEL
from inquest.cli.admin.cleanup_blocks import Blocker, CleanupAction, Leftovers, find_blockers, job_namespaces
from inquest.cli.admin.installation import place_of
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, OperatorOptions, Session, at_place
from inquest.cli.output import machine_text, print_lines
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Conflict, NotFound, UnknownKind
from inquest.ports.kinds import APPROVAL, EXECUTION, INVESTIGATION, JOB, LEASE
from inquest.ports.kubernetes import Json, ResourceKind

SAFE: Final = frozenset({CleanupAction.CANCEL, CleanupAction.FREE, CleanupAction.DELETE_LEASE})
"""What `--yes` does. A Job that runs is none of it."""


def cleanup(
    *,
    yes: Annotated[bool, Parameter(negative="")] = False,
    kill_jobs: Annotated[bool, Parameter(negative="")] = False,
    output: Annotated[Literal["text", "json", "yaml"], Parameter(alias="-o")] = "text",
    execution_namespace: str = EXECUTION_NAMESPACE,
    home: OperatorOptions = OperatorOptions(),  # noqa: B008 - frozen
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Say what keeps Inquest from being removed, in the order in which it has to go, and with the command for each.

    Cases of every namespace, or of the one that is given. Exits with 0 where nothing is in the way, 1 where something
    is, or was a moment ago.

    Parameters
    ----------
    yes
        Do what is safe: ask for the end of open cases, take finalizers off where no operator runs and no Job is left,
        delete Leases of replicas that do not live.
    kill_jobs
        With `--yes`: delete Jobs that run as well. Their targets may be left half changed.
    output
        `text`: two lines for each object.
    execution_namespace
        Namespace in which workflows run.
    """

    async def work(at: Session) -> Exit:
        found = find_blockers(await _looked_at(at, place.namespace, home.operator_namespace, execution_namespace))
        chosen = (SAFE | {CleanupAction.DELETE_JOB} if kill_jobs else SAFE) if yes else frozenset[CleanupAction]()
        done = [await _done(at, one) if one.deed in chosen else "" for one in found]
        told = list(zip(found, done, strict=True))
        if output == "text":
            lines = [line for one, deed in told for line in _lines(one, deed)]
            print_lines(*(lines or ["nothing is in the way"]))
        else:
            print_lines(machine_text({"blocking": [_document(one, deed) for one, deed in told]}, output))
        return Exit.NO if found else Exit.OK

    return at_place(place, work)


async def _looked_at(at: Session, namespace: str, operator_namespace: str, execution_namespace: str) -> Leftovers:
    """Forbidden passes through: what could not be looked at may be in the way."""
    executions = await _listed(at, EXECUTION, namespace)
    places = job_namespaces(executions, execution_namespace)
    return Leftovers(
        await at.kube.status.now(),
        {
            "investigations": await _listed(at, INVESTIGATION, namespace),
            "remediationapprovalrequests": await _listed(at, APPROVAL, namespace),
            "workflowexecutions": executions,
            "jobs": [job for one in places for job in await _listed(at, JOB, one, EXECUTION_LABEL)],
            "leases": await _listed(at, LEASE, operator_namespace),
        },
        namespace,
    )


async def _listed(at: Session, kind: ResourceKind, namespace: str = "", labels: str = "") -> tuple[Json, ...]:
    try:
        return await at.kube.status.list(kind, namespace, labels=labels)
    except UnknownKind:
        # A kind that is gone leaves nothing behind.
        return ()


async def _done(at: Session, one: Blocker) -> str:
    """What was done; nothing where it is gone by itself."""
    meta = one.obj["metadata"]
    try:
        if one.deed in _DELETED:
            await at.kube.status.delete(_DELETED[one.deed], meta["name"], meta["namespace"], uid=meta["uid"])
        else:
            kind, changed = _changed(one)
            await at.kube.status.swap(kind, Redactor().strings(changed), manager="inquest-cli", status=False)
    except NotFound:
        return "gone"
    except Conflict:
        return "changed meanwhile: look again"
    return str(one.deed)


_DELETED: Final = {CleanupAction.DELETE_JOB: JOB, CleanupAction.DELETE_LEASE: LEASE}


def _changed(one: Blocker) -> tuple[ResourceKind, Json]:
    found = one.obj["metadata"]
    meta = {key: found[key] for key in ("name", "namespace", "resourceVersion")}
    if one.deed is CleanupAction.CANCEL:
        return INVESTIGATION, {"metadata": meta, "spec": {"cancel": True}}
    rest = [name for name in found["finalizers"] if name != JOB_CLEANUP_FINALIZER]
    return EXECUTION, {"metadata": {**meta, "finalizers": rest or None}}


def _lines(one: Blocker, done: str) -> list[str]:
    return [f"{one.text}", f"    done: {done}" if done else f"    {one.command}"]


def _document(one: Blocker, done: str) -> Json:
    return {"kind": one.kind, "object": place_of(one.obj), "why": one.why, "command": one.command, "done": done}
