"""Where a command looks and as whom: kubectl's own options, its kubeconfig, its namespace, the person's own identity.

async def work(at: Connection) -> Exit: ...      # at.kube, at.namespace
return at_place(place, work)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final, TypeVar

from cyclopts import Group, Parameter

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import (
    SERVICE_ACCOUNT,
    Impersonation,
    Source,
    from_kubeconfig,
    in_cluster,
    namespace_of,
    usual_kubeconfig,
)
from inquest.api.base import timedelta_from_duration
from inquest.api.installation import NAMESPACE
from inquest.errors import Misconfigured

T = TypeVar("T")

KUBECTL: Final = Group("Options as kubectl has them", sort_key=9)
FALLBACK: Final = "default"


@Parameter(name="*", group=KUBECTL)
@dataclass(frozen=True, kw_only=True)
class KubeOptions:
    """Which cluster and namespace, and as whom."""

    namespace: Annotated[str, Parameter(alias="-n", show_default=False)] = ""
    """Namespace; that of the kubeconfig's context unless given."""
    context: Annotated[str, Parameter(show_default=False)] = ""
    """Context of the kubeconfig; its current one unless given."""
    kubeconfig: Annotated[str, Parameter(show_default=False)] = ""
    """Kubeconfig file; `KUBECONFIG`, else `~/.kube/config`, else the pod's own account unless given."""
    user: Annotated[str, Parameter(name="--as", show_default=False)] = ""
    """User to act as; you need the right to impersonate them."""
    as_group: Annotated[tuple[str, ...], Parameter(show_default=False, negative="")] = ()
    """Group to act as, with `--as`; several by repeating it."""
    as_uid: Annotated[str, Parameter(show_default=False)] = ""
    """Uid to act as, with `--as`."""
    request_timeout: str = "30s"
    """How long one request may take: `5s`, `2m`, seconds; `0` for ever."""


@Parameter(name="*", group=KUBECTL)
@dataclass(frozen=True, kw_only=True)
class ListOptions(KubeOptions):
    """The same for what is listed."""

    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False
    """Every namespace."""
    selector: Annotated[str, Parameter(alias="-l", show_default=False)] = ""
    """Labels that are asked for: `key=value,…`."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """Where the operator runs, for what it keeps outside the custom resources."""

    operator_namespace: str = NAMESPACE
    """Namespace of the operator, which holds the journals of open cases."""


@dataclass(frozen=True)
class Session:
    """The cluster as this person sees it; `namespace` is where a name is looked for."""

    kube: Clients
    namespace: str


@asynccontextmanager
async def open_session(place: KubeOptions) -> AsyncIterator[Session]:
    """Open while the block runs; Misconfigured where the kubeconfig does not hold."""
    source, namespace = _source(place)
    async with Clients(source, SystemClock(), seconds=seconds_of(place.request_timeout)) as kube:
        yield Session(kube, place.namespace or namespace or FALLBACK)


def at_place(place: KubeOptions, work: Callable[[Session], Awaitable[T]]) -> T:
    """Do the work with a connection that is closed afterwards."""

    async def run() -> T:
        async with open_session(place) as at:
            return await work(at)

    return asyncio.run(run())


def _source(place: KubeOptions) -> tuple[Source, str]:
    """The login, and the namespace that goes with it."""
    if not place.user and (place.as_group or place.as_uid):
        raise Misconfigured("--as-group and --as-uid say more of a user: name one with --as")
    persona = Impersonation(place.user, place.as_group, place.as_uid)
    chosen = place.kubeconfig or usual_kubeconfig()
    if not chosen and not place.context:
        file = SERVICE_ACCOUNT / "namespace"
        pod_namespace = file.read_text().strip() if file.is_file() else ""
        return in_cluster(impersonate=persona), pod_namespace
    if not chosen:
        raise Misconfigured("there is no kubeconfig: name one with --kubeconfig or KUBECONFIG")
    context = place.context or None
    return from_kubeconfig(chosen, context, impersonate=persona), namespace_of(chosen, context)


def seconds_of(text: str) -> float | None:
    """`30s`, `2m`, `30`: seconds; `0` is None, for ever."""
    try:
        span = timedelta(seconds=float(text)) if text.isdigit() else timedelta_from_duration(text)
    except (ValueError, OverflowError):
        raise Misconfigured(f"{text!r} is no time such as 30s or 2m") from None
    return span.total_seconds() or None
