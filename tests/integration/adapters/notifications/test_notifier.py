"""`ports.Notifier`: nothing is told twice, nothing that fails is raised."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from inquest.adapters.clock import SystemClock
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import Credentials, from_kubeconfig, given_credentials
from inquest.adapters.notifications.channels import Hook as Address
from inquest.adapters.notifications.channels import WebhookReceiver
from inquest.adapters.notifications.notifier import EVENT, NotificationDispatcher
from inquest.adapters.notifications.routes import RoutedReceiver
from inquest.api.notices import NoticeState
from inquest.core.redaction.redacted import Redacted, seal
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.ports.process import Notice
from tests.e2e.conftest import cluster, namespace
from tests.support.kube import Cluster
from tests.unit.controllers.runtime.times import SteppedClock

CONFIG_MAP = ResourceKind("", "v1", "ConfigMap", "configmaps", True)

__all__ = ["cluster", "namespace"]


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Clients]:
    async with Clients(from_kubeconfig(cluster.kubeconfig), SystemClock()) as found:
        yield found


@pytest.fixture
async def regarding(kube: Clients, namespace: str) -> Json:
    made = seal({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing", "namespace": namespace}})
    return await kube.status.create(CONFIG_MAP, made)


async def events(kube: Clients, namespace: str) -> dict[str, int]:
    found = await kube.status.list(EVENT, namespace, fields="involvedObject.name=thing")
    return {f"{event['type']} {event['reason']}: {event['message']}": event["count"] for event in found}


async def test_repeats_raise_a_count_and_changes_are_told_apart(kube: Clients, namespace: str, regarding: Json) -> None:
    notifier = NotificationDispatcher(kube.status, SystemClock())

    for _ in range(3):
        await notifier.event(regarding, "SignalBlocked", seal("too many"), warning=True)
    await notifier.event(regarding, "PhaseTransition", seal("A → B"))
    await notifier.event(regarding, "PhaseTransition", seal("B → C"))

    assert await events(kube, namespace) == {
        "Warning SignalBlocked: too many": 3,
        "Normal PhaseTransition: A → B": 1,
        "Normal PhaseTransition: B → C": 1,
    }


async def test_a_restart_goes_on_counting(kube: Clients, namespace: str, regarding: Json) -> None:
    await NotificationDispatcher(kube.status, SystemClock()).event(regarding, "PolicyMissing", seal("gone"))

    await NotificationDispatcher(kube.status, SystemClock()).event(regarding, "PolicyMissing", seal("gone"))

    assert await events(kube, namespace) == {"Normal PolicyMissing: gone": 2}


async def test_many_texts_for_one_reason_share_one_event(kube: Clients, namespace: str, regarding: Json) -> None:
    notifier = NotificationDispatcher(kube.status, SystemClock())

    for number in range(30):
        await notifier.event(regarding, "ContextDegraded", seal(f"read {number} failed"))

    found = await events(kube, namespace)
    assert len(found) == 11
    assert found["Normal ContextDegraded: read 29 failed"] == 20


async def test_an_event_that_cannot_be_posted_raises_nothing(namespace: str, regarding: Json) -> None:
    async with Clients(given_credentials(Credentials("http://127.0.0.1:1", token="t")), SystemClock()) as nowhere:
        notifier = NotificationDispatcher(nowhere.status, SystemClock())

        await notifier.event(regarding, "SignalFailed", seal("x"))
        await notifier.event({}, "SignalFailed", seal("x"))


# --- notices ------------------------------------------------------------------------------------------------


def notice(key: str) -> Redacted[Notice]:
    return seal(Notice(key, "Approval", "High", "Approval needed", "Approve it", "shop", "inv-1"))


class Hook:
    """A webhook that fails so many times first."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.got = failures, list[Json]()

    def receiver(self) -> RoutedReceiver:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))
        return RoutedReceiver(WebhookReceiver(client, Address("https://hooks.example.com/secret-part")))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        if self.failures:
            self.failures -= 1
            return httpx2.Response(500)
        self.got.append(json.loads(request.content))
        return httpx2.Response(200)


async def comes_to(notifier: NotificationDispatcher, state: NoticeState) -> None:
    """Asked again, which tells nobody twice."""
    async with asyncio.timeout(60):
        while await notifier.tell(notice("a")) is not state:  # noqa: ASYNC110 - nothing else tells of it
            await asyncio.sleep(0.01)


async def test_a_notice_is_told_once_for_each_key(kube: Clients) -> None:
    hook = Hook()
    notifier = NotificationDispatcher(kube.status, SystemClock(), [hook.receiver()])

    for key in ("a", "b", "a"):
        await notifier.tell(notice(key))

    assert [found["key"] for found in hook.got] == ["a", "b"]
    assert hook.got[0]["text"] == "*Approval*, High\n```\nApproval needed\nApprove it\n```"


async def test_a_failing_receiver_is_tried_again_later_and_harms_no_other(kube: Clients) -> None:
    clock, bad, good = SteppedClock(), Hook(failures=2), Hook()
    notifier = NotificationDispatcher(kube.status, clock, [bad.receiver(), good.receiver()])

    assert await notifier.tell(notice("a")) is NoticeState.PENDING
    assert (bad.got, len(good.got)) == ([], 1)
    for pause in (30, 60):
        await clock.slept_on(1)
        assert bad.got == []
        await clock.advance(pause)

    await comes_to(notifier, NoticeState.SENT)
    assert (len(bad.got), len(good.got)) == (1, 1)


async def test_a_notice_that_is_given_up_stands_as_failed(kube: Clients) -> None:
    clock = SteppedClock()
    notifier = NotificationDispatcher(kube.status, clock, [Hook(failures=99).receiver(), Hook().receiver()])

    for pause in (30, 60, 120, 240, 480):
        assert await notifier.tell(notice("a")) is NoticeState.PENDING
        await clock.slept_on(1)
        await clock.advance(pause)

    await comes_to(notifier, NoticeState.FAILED)


async def test_a_receiver_that_stays_away_leaves_no_task_behind(kube: Clients) -> None:
    before = asyncio.all_tasks()
    notifier = NotificationDispatcher(kube.status, SteppedClock(), [Hook(failures=99).receiver()])
    await notifier.tell(notice("a"))

    await notifier.aclose()

    assert asyncio.all_tasks() == before
