"""What Inquest must not be allowed to do, asked of the API server itself (reliability, section 9).

One right too many and no case is claimed: a chart can be wrong, a role can be added, and what an account may do is
known only by asking. The list is data and stands beside the roles that are granted, in `api/rbac.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import structlog

from inquest.api.rbac import NEVER, Question
from inquest.errors import InquestError
from inquest.ports import Access, Clock, Json
from inquest.telemetry import ACCESS_EXCESS

_log = structlog.stdlib.get_logger(__name__)

QUESTIONS_AT_ONCE: Final = 8
CHECK_SECONDS: Final = 600.0
RETRY_SECONDS: Final = 10.0
_UNKNOWN: Final = "rights are not verified yet"
MUST_NOT: Final = (*NEVER, Question("", "/*", "", "get"))
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


class Rights(Protocol):
    """The two questions about one's own rights."""

    async def allowed(self, access: Access) -> bool: ...

    async def rules(self, namespace: str) -> Json:
        """The status of a SelfSubjectRulesReview."""
        ...


async def excess(status: Rights, namespaces: Sequence[str] = (), *, tolerated: Iterable[str] = ()) -> tuple[str, ...]:
    """The rights that are there and should not be, as `Question.text`; an error of the API server passes through."""
    gate = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    async def granted(question: Question, namespace: str) -> set[str]:
        async with gate:
            return {question.text} if await status.allowed(_access(question, namespace)) else set()

    async def listed(namespace: str) -> set[str]:
        async with gate:
            return set(granted_by_rules(await status.rules(namespace)))

    asked = [granted(question, namespace) for question in MUST_NOT for namespace in _places(question, namespaces)]
    answers = await _all(*asked, *(listed(namespace) for namespace in namespaces or ("default",)))
    found = set[str]().union(*answers) - set(tolerated)
    _show(found)
    return tuple(sorted(found))


class AccessCheck:
    """The self-check as a line of the readiness probe: at start, every ten minutes, and when somebody asks for it."""

    def __init__(
        self, status: Rights, clock: Clock, namespaces: Callable[[], Sequence[str]], *, tolerated: Iterable[str] = ()
    ) -> None:
        self._status, self._clock, self._namespaces, self._tolerated = status, clock, namespaces, tuple(tolerated)
        self._fault = _UNKNOWN

    def fault(self) -> str:
        """Why no case may be claimed; empty when nothing is in the way."""
        return self._fault

    async def look(self) -> tuple[str, ...]:
        """Ask now; where nobody answers, the last answer stands."""
        try:
            found = await excess(self._status, self._namespaces(), tolerated=self._tolerated)
        except InquestError as error:
            _log.warning("rights not verified", error=str(error))
            return ()
        self._fault = f"rights that Inquest must not have: {', '.join(found)}" if found else ""
        if found:
            _log.error("rights that Inquest must not have", rights=found)
        return found

    async def run(self) -> None:
        """Until cancelled; sooner again while there is no answer at all."""
        while True:
            await self.look()
            await self._clock.sleep(CHECK_SECONDS if self._fault != _UNKNOWN else RETRY_SECONDS)


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


def _meets(rule: Mapping[str, Any], question: Question) -> bool:
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


def _places(question: Question, namespaces: Sequence[str]) -> tuple[str, ...]:
    return ("",) if question.resource in WITHOUT_NAMESPACE else ("", *namespaces)


def _access(question: Question, namespace: str) -> Access:
    return Access(question.verb, question.group, question.resource, question.subresource, namespace)


def _show(found: set[str]) -> None:
    ACCESS_EXCESS.clear()
    for text in found:
        ACCESS_EXCESS.labels(text).set(1)
