"""`inquest approve`, `reject`: a person's decision on one exact action, which they are shown first.

The same as the patch by kubectl that the docs describe: the admission policies and the operator judge it alike.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

from cyclopts import Parameter

from inquest.adapters.redact import Redactor
from inquest.api.approval import Identity, RemediationApprovalRequest
from inquest.api.meta import GROUP
from inquest.api.names import approval_name
from inquest.api.shared import ApprovalPhase, Decision
from inquest.cli.cases import investigation_object, there
from inquest.cli.exits import Exit
from inquest.cli.output import can_answer, one_line, room, say, warn
from inquest.cli.place import Connection, Place, at_place
from inquest.conductor.house import APPROVAL
from inquest.errors import Conflict, Forbidden, Invalid, NotFound
from inquest.ports import Access, Json, Person
from inquest.view import Branch, Section, as_sections

MANAGER: Final = "kubectl-inquest"
"""Field manager of what a person changes through this program."""
RIGHTS: Final = ("patch", "approve")
"""Verbs on approval requests that a decision takes: the first is the API server's, the second Inquest's."""


def approve(
    name: str,
    /,
    *,
    reason: str = "",
    yes: Annotated[bool, Parameter(alias="-y", negative="")] = False,
    place: Place = Place(),  # noqa: B008 - frozen
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
    """
    return at_place(place, lambda at: _decided(at, name, Decision.APPROVED, reason, yes))


def reject(
    name: str,
    /,
    *,
    reason: str,
    yes: Annotated[bool, Parameter(alias="-y", negative="")] = False,
    place: Place = Place(),  # noqa: B008 - frozen
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
    """
    return at_place(place, lambda at: _decided(at, name, Decision.REJECTED, reason, yes))


async def _decided(at: Connection, name: str, decision: Decision, reason: str, yes: bool) -> Exit:
    # Asked first: who may not act as somebody learns that, and not what that somebody lacks.
    who = await at.kube.status.whoami()
    user = who.user
    try:
        found = await _request(at, name)
    except Forbidden as error:
        raise Forbidden(f"{error}: {_binding(at, user)}") from error
    at = there(at, found)
    request = RemediationApprovalRequest.from_object(found)
    _must_be_open(request)
    await _must_be_allowed(at, user, request)
    say(*as_sections(proposal(request), room()), "")
    last = decision is Decision.REJECTED or len(request.spec.approvals) >= request.spec.required_approvals - 1
    word = "Approve" if decision is Decision.APPROVED else "Reject"
    if not yes and not _confirmed(f"{word} this as {user}?"):
        warn("nothing was decided")
        return Exit.NO
    said = Redactor().text(reason)
    change = _decision(decision, who, said.value) if last else _entry(found, who, said.value)
    await at.kube.status.change(APPROVAL, found, said.carried(change), MANAGER)
    more = "" if last else f", {request.spec.required_approvals - 1 - len(request.spec.approvals)} more must agree"
    say(f"{request.name}: {decision} by {user}{more}")
    return Exit.OK


async def _request(at: Connection, name: str) -> Json:
    """The request of this name, else that of the case of this name."""
    word = name.rpartition("/")[2]
    try:
        return await at.kube.status.read(APPROVAL, word, at.namespace)
    except NotFound:
        found = await investigation_object(at, word)
    at, case = there(at, found), str(found["metadata"]["name"])
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


async def _must_be_allowed(at: Connection, user: str, request: RemediationApprovalRequest) -> None:
    """The missing verb is named before anybody reads a diff; the API server asks again."""
    for verb in RIGHTS:
        if not await at.kube.status.allowed(Access(verb, GROUP, APPROVAL.plural, namespace=at.namespace)):
            raise Forbidden(
                f"{user} may not {verb} {APPROVAL.plural}.{GROUP} in namespace {at.namespace} ({request.name}): "
                f"{_binding(at, user)}"
            )


def _binding(at: Connection, user: str) -> str:
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
    diff = (Branch(spec.preview_diff, quote=True),) if spec.preview_diff else (Branch("not known beforehand"),)
    return (
        Section(
            "What will run",
            (
                Branch(f"{workflow.action_type}: {workflow.id} {workflow.version}"),
                Branch(f"image {workflow.image or 'of the pod template'}"),
                Branch(f"on {target.display}{place}, uid {target.uid}"),
                *(Branch(f"{key}={value}") for key, value in spec.parameters.items()),
                Branch(f"undo: {undo}"),
            ),
        ),
        Section("What it says that it will set", diff),
        Section("Because", (Branch(spec.summary), *map(_cited, spec.evidence))),
        Section(
            "Why you are asked",
            (
                Branch(spec.reason),
                *(Branch(f"risk {one.score}: {one.reason}") for one in spec.risk_factors),
                Branch(f"confidence {spec.confidence:.2f} ({spec.confidence_level})"),
                Branch(f"until {spec.expires_at:%Y-%m-%dT%H:%M:%SZ}, {spec.required_approvals} must agree"),
                *(Branch(f"agreed: {one.user}") for one in spec.approvals),
            ),
        ),
    )


def _cited(found: Any) -> Branch:
    quote = f": “{found.quote}”" if found.quote else ""
    return Branch(f"{found.claim} ({found.id or 'no evidence of its own'}{quote})")
