"""Which of the listed namespaces are served: what was refused has to be allowed again, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from inquest.adapters.kubernetes.namespaces import WatchedNamespaces
from inquest.errors import Forbidden
from inquest.ports.kubernetes import Access, ResourceKind

WORKFLOW = ResourceKind("inquest.dev", "v1alpha1", "RemediationWorkflow", "remediationworkflows", True)
REFUSAL = Forbidden("list remediationworkflows in shop")


def api_server(*allowed: tuple[str, str]) -> Callable[[Access], Awaitable[bool]]:
    """Allows lists of these resources in these namespaces."""

    async def ask(access: Access) -> bool:
        return (access.resource, access.namespace) in allowed

    return ask


def places() -> WatchedNamespaces:
    return WatchedNamespaces(["home", "shop", "cart"])


async def test_another_right_does_not_bring_a_namespace_back() -> None:
    """Else it would come and go, with the watch, at every look."""
    found = places()
    found.lose("shop", WORKFLOW, REFUSAL)

    await found.look(api_server(("signals", "shop"), ("signals", "cart")))
    assert set(found.served) == {"home", "cart"}

    await found.look(api_server(("remediationworkflows", "shop"), ("signals", "cart")))
    assert found.served == ("home", "shop", "cart")


async def test_what_is_refused_while_the_question_is_on_its_way_stays_refused() -> None:
    found = places()

    async def answered_too_late(access: Access) -> bool:
        if access.namespace == "shop":
            found.lose("shop", WORKFLOW, REFUSAL)
        return True

    await found.look(answered_too_late)

    assert found.refused == ("shop",)


async def test_it_is_said_once_that_a_namespace_goes_and_that_it_is_back() -> None:
    found = places()
    with capture_logs() as log:
        for _ in range(3):
            await found.look(api_server(("signals", "cart")))
        for _ in range(3):
            await found.look(api_server(("signals", "cart"), ("signals", "shop")))

    assert [(line["log_level"], line["namespace"]) for line in log] == [("warning", "shop"), ("info", "shop")]
