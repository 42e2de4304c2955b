"""`inquest doctor`: looks at an installation as the person of the kubeconfig, with the operator there or away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from inquest import __version__
from inquest.api.installation import EXECUTION_NAMESPACE, SERVICE_ACCOUNT
from inquest.api.manifests.rbac import RequiredAccess
from inquest.cli.admin.doctor_checks import CheckResult, Level, examine_installation
from inquest.cli.admin.installation import Installation, Listed, Unread, is_running
from inquest.cli.exits import Exit
from inquest.cli.options import KubeOptions, OperatorOptions, Session, at_place
from inquest.cli.output import machine_text, print_lines
from inquest.errors import DefiniteAnswer, Forbidden, UnknownKind
from inquest.operator.access import MUST_NOT, WITHOUT_NAMESPACE
from inquest.ports.kinds import (
    ACTION_TYPE,
    ADMISSION_BINDING,
    ADMISSION_POLICY,
    APPROVAL,
    EXECUTION,
    INVESTIGATION,
    LEASE,
    NAMESPACE,
    SIGNAL,
    WORKFLOW,
)
from inquest.ports.kubernetes import Access, Json, Person, ResourceKind

_RBAC: Final = "rbac.authorization.k8s.io"
EVERYWHERE: Final = (
    ResourceKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False),
    ADMISSION_POLICY,
    ADMISSION_BINDING,
    NAMESPACE,
    ResourceKind("apiregistration.k8s.io", "v1", "APIService", "apiservices", False),
    *(SIGNAL, INVESTIGATION, APPROVAL, EXECUTION, ACTION_TYPE, WORKFLOW),
    ResourceKind(_RBAC, "v1", "ClusterRole", "clusterroles", False),
    ResourceKind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False),
    ResourceKind(_RBAC, "v1", "Role", "roles", True),
    ResourceKind(_RBAC, "v1", "RoleBinding", "rolebindings", True),
)
"""Kinds that are read in the whole cluster."""
SERVICE_ACCOUNTS: Final = ResourceKind("", "v1", "ServiceAccount", "serviceaccounts", True)
AT_ONCE: Final = 8
MARKS: Final[Mapping[Level, str]] = {Level.OK: "ok", Level.WARNING: "WARN", Level.FAULT: "FAULT", Level.UNKNOWN: "?"}


def doctor(
    *,
    output: Annotated[Literal["text", "json", "yaml"], Parameter(alias="-o")] = "text",
    execution_namespace: str = EXECUTION_NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
    home: OperatorOptions = OperatorOptions(),  # noqa: B008 - frozen
    place: KubeOptions = KubeOptions(),  # noqa: B008 - frozen
) -> int:
    """Check an installation, and say what to fix and how.

    Exits with 0 where all is well, 1 where something is to be mended, 4 where nothing was found but not all could be
    looked at.

    Parameters
    ----------
    output
        `text`: a line for each part and each finding, with the command that mends it.
    execution_namespace
        Namespace in which workflows run.
    service_account
        Account of the operator.
    """

    async def work(at: Session) -> Exit:
        seen = await looked_at(at, home.operator_namespace, execution_namespace, service_account)
        found = examine_installation(seen)
        if output == "text":
            print_lines(*(line for one in found for line in _lines(one)))
        else:
            print_lines(machine_text({"findings": [_document(one) for one in found]}, output))
        levels = {one.level for one in found}
        if levels & {Level.FAULT, Level.WARNING}:
            return Exit.NO
        return Exit.FORBIDDEN if Level.UNKNOWN in levels else Exit.OK

    return at_place(place, work)


def _lines(one: CheckResult) -> list[str]:
    first = f"{MARKS[one.level]:<5}  {one.part}"
    message = " ".join(one.message.split())
    return [f"{first}: {message}" if message else first, *([f"         {one.fix}"] if one.fix else [])]


def _document(one: CheckResult) -> Json:
    return {"part": one.part, "level": str(one.level), "message": one.message, "fix": one.fix}


# --- looking ---------------------------------------------------------------------------------------------------------


async def looked_at(at: Session, namespace: str, execution_namespace: str, account: str) -> Installation:
    """All of it; what may not be read, or is not served, is said to be so. No answer at all passes through."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def listed(kind: ResourceKind, where: str = "") -> tuple[str, Listed]:
        async with gate:
            return kind.plural, await _listed(at, kind, where)

    now = await at.kube.status.now()
    found = await asyncio.gather(
        *(listed(kind) for kind in EVERYWHERE),
        listed(LEASE, namespace),
        listed(SERVICE_ACCOUNTS, execution_namespace),
    )
    seen = Installation(now, __version__, namespace, execution_namespace, account, dict(found))
    if is_running(seen.items("leases"), seen.now):
        # It asks about its rights itself, and its Lease says what came of it.
        return seen
    return Installation(
        now, __version__, namespace, execution_namespace, account, dict(found), await _too_many(at, seen, gate)
    )


async def _listed(at: Session, kind: ResourceKind, where: str) -> Listed:
    try:
        return [{"kind": kind.kind, **one} for one in await at.kube.status.list(kind, where)]
    except UnknownKind as error:
        return Unread(str(error), is_served=False)
    except (DefiniteAnswer, Forbidden) as error:
        return Unread(str(error))


async def _too_many(at: Session, seen: Installation, gate: asyncio.Semaphore) -> Sequence[str] | Unread:
    """What the operator's account may and must not, asked with the right to ask about others."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{seen.namespace}", "system:authenticated")
    account = Person(f"system:serviceaccount:{seen.namespace}:{seen.account}", groups)

    async def granted(one: RequiredAccess) -> str:
        namespace = "" if one.resource in WITHOUT_NAMESPACE else seen.namespace
        async with gate:
            access = Access(one.verb, one.group, one.resource, one.subresource, namespace)
            return one.text if await at.kube.status.allowed_for(account, access) else ""

    try:
        answers = await asyncio.gather(*map(granted, MUST_NOT))
    except Forbidden as error:
        return Unread(str(error))
    return sorted({one for one in answers if one})
