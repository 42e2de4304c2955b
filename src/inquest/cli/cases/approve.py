"""`inquest approve`, `reject`: a person's decision on one exact action, which they are shown first.

The same as the patch by kubectl that the docs describe: the admission policies and the operator judge it alike.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Parameter

from inquest.api.approval import Identity, RemediationApprovalRequest
from inquest.api.base import GROUP
from inquest.api.names import approval_name
from inquest.api.types import ApprovalPhase, Decision
from inquest.cli.cases.find import investigation_object, session_at
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, Session, at_place, seconds_of
from inquest.cli.output import can_answer, one_line, print_lines, print_warning, terminal_width
from inquest.core.cluster.objects import status_of
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Conflict, Forbidden, Invalid, NotFound
from inquest.ports.kinds import APPROVAL, INVESTIGATION
from inquest.ports.kubernetes import Access, Json, Person
from inquest.presentation.branches import Node, Section
from inquest.presentation.drawing import as_sections

MANAGER: Final = "kubectl-inquest"
"""Field manager of what a person changes through this program."""
RIGHTS: Final = ("patch", "approve")
"""Verbs on approval requests that a decision takes: the first is the API server's, the second Inquest's."""


LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True)
class WaitOption:
    """Whether the operator is waited for, and how long: as it was typed, and in seconds, None for ever."""

    wanted: bool
    text: str
    seconds: float | None


def approve(
    name: str,
    /,
    *,
    reason: str = "",
    yes: Annotated[bool, Parameter(alias="-y", negative="")] = False,
    wait: bool = True,
    timeout: str = "30s",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Approve what a case wants to do, in your own name, after it has been shown. A decision is final.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the approval request.
    reason
        Why; it is kept with the decision.
    yes
        Do not ask again; needed where nobody can be asked.
    wait
        Wait until the operator has taken the decision up.
    timeout
        Longest time to wait for that: `30s`; `0` for ever.
    """
    waiting = WaitOption(wait, timeout, seconds_of(timeout))
    return at_place(place, lambda at: _decided(at, name, Decision.APPROVED, reason, yes, waiting))


def reject(
    name: str,
    /,
    *,
    reason: str,
    yes: Annotated[bool, Parameter(alias="-y", negative="")] = False,
    wait: bool = True,
    timeout: str = "30s",
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Reject what a case wants to do, in your own name. A decision is final.

    Parameters
    ----------
    name
        Investigation, or its Signal, or the approval request.
    reason
        Why; it is kept with the decision, and the case ends with it.
    yes
        Do not ask again; needed where nobody can be asked.
    wait
        Wait until the operator has taken the decision up.
    timeout
        Longest time to wait for that: `30s`; `0` for ever.
    """
    waiting = WaitOption(wait, timeout, seconds_of(timeout))
    return at_place(place, lambda at: _decided(at, name, Decision.REJECTED, reason, yes, waiting))


async def _decided(at: Session, name: str, decision: Decision, reason: str, yes: bool, waiting: WaitOption) -> Exit:
    # Asked first: who may not act as somebody learns that, and not what that somebody lacks.
    who = await at.kube.status.whoami()
    try:
        found = await _request(at, name)
    except Forbidden as error:
        raise Forbidden(f"{error}: {_binding(at, who.user)}") from error
    at = session_at(at, found)
    request = RemediationApprovalRequest.from_object(found)
    _must_be_open(request)
    await _must_be_allowed(at, who.user, request)
    print_lines(*as_sections(proposal(request), terminal_width()), "")
    word = "Approve" if decision is Decision.APPROVED else "Reject"
    if not yes and not _confirmed(f"{word} this as {who.user}?"):
        print_warning("nothing was decided")
        return Exit.NO
    return await _carried_out(at, found, decision, who, reason, waiting)


async def _carried_out(
    at: Session, found: Json, decision: Decision, who: Person, reason: str, waiting: WaitOption
) -> Exit:
    """Write it, and see it taken up; one of several who agree is done as soon as that is on record."""
    request = RemediationApprovalRequest.from_object(found)
    left = request.spec.required_approvals - 1 - len(request.spec.approvals)
    last = decision is Decision.REJECTED or left <= 0
    said = Redactor().text(reason)
    change = _decision(decision, who, said.value) if last else _entry(found, who, said.value)
    await at.kube.status.change(APPROVAL, found, said.carried(change), MANAGER)
    told = f"{request.name}: {decision} by {who.user}"
    if not last or not waiting.wanted:
        print_lines(f"{told}, {'not waited for' if last else f'{left} more must agree'}")
        return Exit.OK
    return await _taken_up(at, request, decision, told, waiting)


async def _taken_up(
    at: Session, request: RemediationApprovalRequest, decision: Decision, told: str, waiting: WaitOption
) -> Exit:
    try:
        async with asyncio.timeout(waiting.seconds):
            seen = await _closed(at, request)
    except TimeoutError:
        case = await _of_case(at, request)
        print_warning(f"{told}, and not taken up within {waiting.text}{case}: `inquest doctor` looks at the operator")
        return Exit.NOT_TAKEN_UP
    if seen.status.phase == decision.value:
        print_lines(f"{told}, taken up")
        return Exit.OK
    ready = seen.status.condition("Ready")
    print_warning(f"{told}, and not used: the request is {seen.status.phase}{f': {ready.message}' if ready else ''}")
    return Exit.NOT_TAKEN_UP


async def _closed(at: Session, request: RemediationApprovalRequest) -> RemediationApprovalRequest:
    """The request as soon as the operator has said what became of it."""
    while True:
        raw = await at.kube.status.read(APPROVAL, request.name, request.namespace)
        found = RemediationApprovalRequest.from_object(raw)
        if found.uid != request.uid:
            raise Conflict(f"{request.name} was made again: what you decided about is gone")
        if found.status.phase not in (None, ApprovalPhase.PENDING):
            return found
        await asyncio.sleep(LOOK_SECONDS)


async def _of_case(at: Session, request: RemediationApprovalRequest) -> str:
    """What the case says meanwhile, which is why an approval does not count; nothing where it may not be read."""
    try:
        found = await at.kube.status.read(INVESTIGATION, request.spec.investigation_ref.name, request.namespace)
    except (Forbidden, NotFound):
        return ""
    message = one_line(str(status_of(found).get("message") or ""))
    return f"; the case says: {message}" if message else ""


async def _request(at: Session, name: str) -> Json:
    """The request of this name, else that of the case of this name."""
    word = name.rpartition("/")[2]
    try:
        return await at.kube.status.read(APPROVAL, word, at.namespace)
    except NotFound:
        found = await investigation_object(at, word)
    at, case = session_at(at, found), str(found["metadata"]["name"])
    try:
        return await at.kube.status.read(APPROVAL, approval_name(case), at.namespace)
    except NotFound:
        raise NotFound(
            f"{case} asks for no approval: `inquest get {case} -n {at.namespace}` says where it is"
        ) from None


def _must_be_open(request: RemediationApprovalRequest) -> None:
    spec, phase = request.spec, request.status.phase
    if spec.decision is not None:
        raise Conflict(f"{request.name} was decided: {spec.decision} by {spec.decided_by}")
    if phase not in (None, ApprovalPhase.PENDING):
        raise Conflict(f"{request.name} is {phase}: no decision counts any more")


async def _must_be_allowed(at: Session, user: str, request: RemediationApprovalRequest) -> None:
    """The missing verb is named before anybody reads a diff; the API server asks again."""
    for verb in RIGHTS:
        if not await at.kube.status.allowed(Access(verb, GROUP, APPROVAL.plural, namespace=at.namespace), request.name):
            raise Forbidden(
                f"{user} may not {verb} {APPROVAL.plural}.{GROUP} in namespace {at.namespace} ({request.name}): "
                f"{_binding(at, user)}"
            )


def _binding(at: Session, user: str) -> str:
    """What gives somebody the rights of an approver."""
    return f"kubectl create rolebinding NAME -n {at.namespace} --clusterrole=inquest-approver --user={user}"


def _identity(who: Person) -> Json:
    """Filled in for servers that sign nothing; those that do find their own words."""
    extra = {key: tuple(values) for key, values in who.extra.items()}
    return Identity.model_construct(uid=who.uid or None, groups=who.groups, extra=extra).to_object()


def _decision(decision: Decision, who: Person, reason: str) -> Json:
    said = {"decisionReason": reason} if reason else {}
    signed = {"decidedBy": who.user, "deciderIdentity": _identity(who)}
    return {"spec": {"decision": str(decision), **signed, **said}}


def _entry(found: Json, who: Person, reason: str) -> Json:
    """One of several who agree, under those who did so before; the API server refuses it where one of them is lost.

    Not bound to a version: what is left of the time is written each minute, while somebody reads.
    """
    own = {"user": who.user, "identity": _identity(who), **({"reason": reason} if reason else {})}
    return {"spec": {"approvals": [*(found["spec"].get("approvals") or ()), own]}}


def _confirmed(question: str) -> bool:
    if not can_answer():
        raise Invalid("nobody can be asked here: --yes decides without")
    print(f"{one_line(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# --- what is asked ------------------------------------------------------------------------------------------


def proposal(request: RemediationApprovalRequest) -> tuple[Section, ...]:
    """The exact action, as it is pinned, and why a person is asked."""
    spec = request.spec
    target, workflow = spec.target, spec.workflow
    place = f" in {target.namespace}" if target.namespace else ""
    undo = f"{spec.undo.id} {spec.undo.version or ''}, {spec.undo.when}" if spec.undo else "none"
    diff = (Node(spec.preview_diff, quote=True),) if spec.preview_diff else (Node("not known beforehand"),)
    return (
        Section(spec.summary, tuple(map(_cited, spec.evidence))),
        Section(
            "What will run",
            (
                Node(f"{workflow.action_type}: {workflow.id} {workflow.version}"),
                Node(f"image {workflow.image or 'of the pod template'}"),
                *(Node(f"runs {line}") for line in spec.runs),
                Node(f"as {_account(workflow.service_account_name)}"),
                Node(f"on {target.display}{place}, uid {target.uid}"),
                *(Node(f"{key}={value}") for key, value in spec.parameters.items()),
                Node(f"undo: {undo}"),
            ),
        ),
        Section("What it says that it will set", diff),
        Section(
            "Why you are asked",
            (
                Node(spec.reason),
                *(Node(f"risk {one.score}: {one.reason}") for one in spec.risk_factors),
                Node(f"confidence {spec.confidence:.2f} ({spec.confidence_level})"),
                Node(f"until {spec.expires_at:%Y-%m-%dT%H:%M:%SZ}, {spec.required_approvals} must agree"),
                *(Node(f"agreed: {one.user}") for one in spec.approvals),
            ),
        ),
    )


def _account(name: str | None) -> str:
    return f"service account {name}, with all its rights" if name else "no account: it gets no token"


def _cited(found: Any) -> Node:
    quote = f": “{found.quote}”" if found.quote else ""
    return Node(f"{found.claim} ({found.id or 'no evidence of its own'}{quote})")
