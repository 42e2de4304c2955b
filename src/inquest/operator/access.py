"""What Inquest must not be allowed to do, and what it misses, asked of the API server itself.

One right too many and no case is claimed: a chart can be wrong, a role can be added, and what an account may do is
known only by asking. A right that is missing is said with what stops working. Both lists are data and stand beside the
roles that are granted, in `api/manifests/rights.yaml`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from inquest.api.manifests.rbac import (
    EXECUTION,
    HOME,
    INSTALLED,
    INVESTIGATOR,
    NEVER,
    OPERATOR,
    WATCHED,
    AccessRule,
    RequiredAccess,
    loss_of,
    of_namespaces,
    of_the_cluster,
)
from inquest.errors import UnknownKind
from inquest.ports.kubernetes import Access, Json, KindLookup
from inquest.telemetry.metrics import ACCESS_EXCESS, ACCESS_MISSING

QUESTIONS_AT_ONCE: Final = 8
CHECK_SECONDS: Final = 600.0
MUST_NOT: Final = (*NEVER, RequiredAccess("", "/*", "", "get"))
"""The last one is the right to every path that is no resource."""
WITHOUT_NAMESPACE: Final = frozenset(
    {
        "/*",
        "nodes",
        "users",
        "groups",
        "clusterroles",
        "clusterrolebindings",
        "certificatesigningrequests",
        "customresourcedefinitions",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
"""Asked once; everything else in every namespace, because a RoleBinding shows in its own only."""


class OwnRights(Protocol):
    """The two questions about one's own rights."""

    async def allowed(self, access: Access) -> bool: ...

    async def rules(self, namespace: str) -> Json:
        """The status of a SelfSubjectRulesReview."""
        ...


async def excess_rights(
    status: OwnRights, namespaces: Sequence[str] = (), *, tolerated: Iterable[str] = ()
) -> tuple[str, ...]:
    """The rights that are there and should not be, as `RequiredAccess.text`; API errors pass through."""
    gate = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    async def granted(question: RequiredAccess, namespace: str) -> set[str]:
        async with gate:
            return {question.text} if await status.allowed(_access(question, namespace)) else set()

    async def listed(namespace: str) -> set[str]:
        async with gate:
            return set(granted_by_rules(await status.rules(namespace)))

    asked = [granted(question, namespace) for question in MUST_NOT for namespace in _places(question, namespaces)]
    answers = await _all(*asked, *(listed(namespace) for namespace in namespaces or ("default",)))
    found = set[str]().union(*answers) - set(tolerated)
    ACCESS_EXCESS.clear()
    for text in found:
        ACCESS_EXCESS.labels(text).set(1)
    return tuple(sorted(found))


@dataclass(frozen=True)
class MissingRight:
    """A right that the product's own roles give and this account does not have."""

    right: str
    """`get, list pods/log`, verbs and resource."""
    namespace: str
    """Where it was looked for; empty: everywhere."""
    loss: str
    """What stops working."""

    @property
    def text(self) -> str:
        """One line for people."""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.right}{where}: {self.loss}"


async def missing_rights(
    status: OwnRights,
    kinds: KindLookup,
    *,
    home: str,
    execution: str,
    managed: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    also: Sequence[AccessRule] = (),
) -> tuple[MissingRight, ...]:
    """Rights that are not there and should be, in the order of the roles; an error of the API server passes through.

    What the investigator reads in namespaces is looked for in those that are `managed`; in `home` where there is none.
    An operator that looks after single `namespaces` misses nothing that only a role of the whole cluster could give,
    but what its settings ask for: `also`, rules of the whole cluster.
    A kind that the cluster does not serve needs no right.
    """
    asked = [
        *(_confined(home, namespaces) if namespaces else _wide(home, managed)),
        *((home, "", rule) for rule in also),
        *((home, home, rule) for rule in HOME),
        *((execution, execution, rule) for rule in EXECUTION),
    ]
    places = {place for place, _, _ in asked}
    reviews = {place: await status.rules(place) for place in sorted(places)}
    found: dict[tuple[str, str], MissingRight] = {}
    for place, shown, rule in asked:
        for resource in rule.resources:
            verbs = await _absent(status, reviews[place], place, rule, resource)
            if verbs and (not rule.group or await _is_served(kinds, rule.group, resource)):
                right = RequiredAccess(rule.group, resource, "", ", ".join(verbs)).text
                found.setdefault((right, shown), MissingRight(right, shown, loss_of(rule.group, resource)))
    ACCESS_MISSING.set(len(found))
    return tuple(found.values())


Asked = tuple[str, str, AccessRule]
"""Where a rule is looked for, the namespace that is named to people, and the rule."""


def _wide(home: str, managed: Sequence[str]) -> Iterator[Asked]:
    yield from ((home, "", rule) for rule in (*OPERATOR, *of_the_cluster(INVESTIGATOR)))
    for place in managed or (home,):
        yield from ((place, place if managed else "", rule) for rule in of_namespaces(INVESTIGATOR))


def _confined(home: str, namespaces: Sequence[str]) -> Iterator[Asked]:
    yield from ((home, "", rule) for rule in INSTALLED)
    for place in dict.fromkeys((home, *namespaces)):
        yield from ((place, place, rule) for rule in WATCHED)
    for place in namespaces:
        yield from ((place, place, rule) for rule in of_namespaces(INVESTIGATOR))


async def _absent(status: OwnRights, review: Json, place: str, rule: AccessRule, resource: str) -> list[str]:
    """Verbs that are not granted; a list of rules that may be incomplete is not believed without asking."""
    name, _, below = resource.partition("/")
    asked = [RequiredAccess(rule.group, name, below, verb) for verb in rule.verbs]
    absent = [one for one in asked if not any(_meets(granted, one) for granted in review.get("resourceRules") or ())]
    if review.get("incomplete"):
        absent = [one for one in absent if not await status.allowed(_access(one, place))]
    return [one.verb for one in absent]


async def _is_served(kinds: KindLookup, group: str, resource: str) -> bool:
    try:
        await kinds.kind(f"{resource.partition('/')[0]}.{group}")
    except UnknownKind:
        return False
    return True


async def _all(*questions: Coroutine[Any, Any, set[str]]) -> list[set[str]]:
    """Every answer, or the first error as it is, with no question left running."""
    tasks = [asyncio.ensure_future(question) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def granted_by_rules(review: Json) -> Iterator[str]:
    """Forbidden rights in a list of rules; it shows those by resource name, which an access review does not."""
    for rule in review.get("resourceRules") or ():
        yield from (question.text for question in MUST_NOT if _meets(rule, question))


def _meets(rule: Mapping[str, Any], question: RequiredAccess) -> bool:
    resources = rule.get("resources") or ()
    whole = f"{question.resource}/{question.subresource}" if question.subresource else question.resource
    any_parent = f"*/{question.subresource}" if question.subresource else whole
    return (
        _any_of(rule.get("apiGroups") or (), question.group)
        and _any_of(resources, whole, any_parent)
        and _any_of(rule.get("verbs") or (), question.verb)
    )


def _any_of(granted: Iterable[str], *words: str) -> bool:
    return any(one == "*" or one in words for one in granted)


def _places(question: RequiredAccess, namespaces: Sequence[str]) -> tuple[str, ...]:
    return ("",) if question.resource in WITHOUT_NAMESPACE else ("", *namespaces)


def _access(question: RequiredAccess, namespace: str) -> Access:
    return Access(question.verb, question.group, question.resource, question.subresource, namespace)
