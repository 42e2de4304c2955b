"""The API server goes, is silent, refuses or lies while a case is under way: the same end, and no answer paid twice."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack

import httpx2
import pytest

from inquest.adapters.kubernetes.transport import LONGEST_WAIT
from tests.integration.faults.api.conftest import Trouble
from tests.integration.faults.api.proxy import Proxy, error, event
from tests.support.process import Operator
from tests.support.tables import row
from tests.support.world import World, word

pytestmark = pytest.mark.xdist_group("faults-api")

WATCHES = r"kopf GET .*/investigations\?watch$"
LISTS = "kopf GET .*/investigations$"
HOME = "/api/v1/namespaces/inquest-system"


def metric(operator: Operator, line: str) -> float:
    """A figure of the operator by the text before it."""
    port = next(one["metrics"] for one in reversed(operator.lines()) if one.get("event") == "serving")
    text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=10, trust_env=False).text
    found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
    assert found, f"no {line}"
    return float(found[1])


def restarts(operator: Operator, cause: str = "ended") -> float:
    """How often its watcher was started again."""
    return metric(operator, f'inquest_watch_restarts_total{{cause="{cause}"}}')


OUTAGES = [
    pytest.param(5, id="FA-01 five seconds"),
    pytest.param(30, id="FA-01 half a minute", marks=pytest.mark.long),
    pytest.param(120, id="FA-01 two minutes", marks=pytest.mark.long),
]


@pytest.mark.parametrize("seconds", OUTAGES)
def test_an_answer_that_comes_while_the_api_server_is_away_is_written_when_it_is_back(
    seconds: int, trouble: Trouble, process: Operator, proxy: Proxy
) -> None:
    """Beside it a second case, whose model thinks longer than the outage lasts."""
    early, late = trouble(), trouble()
    answered, thinking = early.begun(answers=1), late.begun(answers=1)

    proxy.leave()
    early.answer()
    time.sleep(seconds)
    since = len(proxy.asked)
    proxy.come_back()

    early.world.until(lambda: proxy.count(WATCHES, since) > 0, "it watches again")
    early.same_end(answered)
    late.answer()
    late.same_end(thinking)
    assert process.is_running()


@row("FA-02")
def test_a_watch_that_delivers_nothing_is_replaced_before_its_own_time_is_out(
    trouble: Trouble, process: Operator, proxy: Proxy
) -> None:
    found, before = trouble(), restarts(process, "silent")
    case = found.begun(answers=1)

    assert proxy.fall_silent()
    found.world.until(lambda: restarts(process, "silent") == before + 1, "the watcher is replaced")
    found.answer()

    found.same_end(case)


WITHOUT_METADATA = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation"}
LIES = {
    "an end with 500": error(500),
    "an end with 504": error(504),
    "a line that is no JSON": b"{half a line\n",
    "an event without metadata": event("MODIFIED", WITHOUT_METADATA),
}
UNKNOWN = event("SURPRISE", {**WITHOUT_METADATA, "metadata": {}})


@pytest.mark.parametrize(
    "lies",
    [
        pytest.param(list(LIES.values())[:1], id="FA-04 an end with 500"),
        pytest.param(list(LIES.values()), id="FA-04 one after the other", marks=pytest.mark.long),
    ],
)
def test_lies_in_a_watch_restart_the_watcher_and_cost_no_turn(
    lies: list[bytes], trouble: Trouble, process: Operator, proxy: Proxy
) -> None:
    """One before each answer of the model, and first of all something that is no reason to begin anew."""
    found, before = trouble(), restarts(process)
    case = found.begun()
    _told(found.world, proxy, UNKNOWN)
    assert restarts(process) == before

    for number, lie in enumerate(lies, start=1):
        found.until_asked(number)
        _told(found.world, proxy, lie)
        found.world.until(lambda: restarts(process) == before + number, f"restart {number}")  # noqa: B023 - at once
        found.answer(1)
    found.answer()

    found.same_end(case)
    assert process.is_running()


@row("FA-03")
def test_a_version_that_is_too_old_costs_one_list_in_a_stream_and_a_restart_as_an_answer(
    trouble: Trouble, process: Operator, proxy: Proxy
) -> None:
    found, before, since = trouble(), restarts(process), len(proxy.asked)
    case = found.begun(answers=1)

    _told(found.world, proxy, error(410))
    assert (proxy.count(LISTS, since), restarts(process)) == (1, before)
    with proxy.ruled(WATCHES, 410, times=1) as gone:
        proxy.tell("investigations", UNKNOWN)
        found.world.until(lambda: len(gone.met) == 1 and restarts(process) == before + 1, "the watcher is restarted")
    found.answer()

    found.same_end(case)
    assert process.is_running()


def _told(world: World, proxy: Proxy, line: bytes) -> None:
    """Told, and the kind is watched again."""
    since = len(proxy.asked)
    proxy.tell("investigations", line)
    world.until(lambda: proxy.count(WATCHES, since) > 0 and proxy.watched("investigations"), "it is watched again")


WRITES = {
    "slot": f"POST {HOME}/configmaps$",
    "claim and status of the case": "PATCH .*/investigations/[^/]*/status$",
    "request": "POST .*/remediationapprovalrequests$",
    "status of the request": "PATCH .*/remediationapprovalrequests/[^/]*/status$",
    "execution": "POST .*/workflowexecutions$",
    "status of the execution": "PATCH .*/workflowexecutions/[^/]*/status$",
    "job": "POST .*/jobs$",
}


@row("FA-06")
def test_a_write_whose_answer_was_lost_is_not_done_twice(trouble: Trouble, proxy: Proxy, process: Operator) -> None:
    """The first of each kind, from the claim to the Job."""
    found = trouble()
    world = found.world
    with ExitStack() as stack:
        lost = {name: stack.enter_context(proxy.ruled(pattern, times=1)) for name, pattern in WRITES.items()}
        case = found.begun(answers=1)
        found.answer()
        found.same_end(case)
        (request,) = world.api.list("RemediationApprovalRequest", world.namespace)
        world.approve(world.reaches("RemediationApprovalRequest", request, "Pending"))
        execution = world.execution(case, "Running")

    assert [name for name, rule in lost.items() if not rule.met] == []
    assert [one["metadata"]["uid"] for one in world.api.list("WorkflowExecution", world.namespace)] == [
        execution["metadata"]["uid"]
    ]
    used = world.reaches("RemediationApprovalRequest", request, "Approved")
    assert used["status"]["consumedBy"] == execution["metadata"]["uid"]
    assert execution["status"]["job"]["uid"] == world.job(execution)["metadata"]["uid"]
    world.finish(world.job(execution))
    assert process.is_running()


@row("FA-07")
def test_a_server_that_asks_for_time_gets_it_and_nobody_else_waits(
    trouble: Trouble, proxy: Proxy, process: Operator
) -> None:
    """Longer than the client waits by itself: slots rest, and another case is triaged meanwhile."""
    found, other = trouble(), trouble()
    case = found.begun(answers=1)
    told = LONGEST_WAIT + 1

    with proxy.ruled(WRITES["slot"], 429, times=1, Retry_After=f"{told:g}") as limited:
        found.answer()
        found.world.until(lambda: bool(limited.met), "a slot is refused")
        at, since = time.monotonic(), len(proxy.asked)
        other.world.triaged(other.world.signal(), "Accepted")
        slots = proxy.count(WRITES["slot"], since)
        found.same_end(case)

    assert slots == 0, "not asked again before its time"
    assert time.monotonic() - at >= told


@row("FA-08")
def test_a_read_that_is_refused_is_named_to_the_model(trouble: Trouble, proxy: Proxy) -> None:
    looks = [
        {"name": "kubectl_get_yaml", "arguments": {"kind": "Deployment", "name": "shop"}},
        {"name": "kubectl_events", "arguments": {}},
    ]
    found = trouble(steps=[{"when": {"turn": 1, "offers": ["kubectl_describe"]}, "reply": {"calls": looks}}])
    case = found.begun()

    with proxy.ruled("inquest GET .*/events$", 403) as refused:
        found.answer(1)
        found.until_asked(2)
    found.answer()

    ended = found.world.reaches("Investigation", case, "AwaitingApproval", "Completed", "Failed")
    assert refused.met
    told = [one["content"] for one in found.stage.asked(found.world.namespace)[1]["messages"] if one["role"] == "tool"]
    assert "Forbidden" in told[1]
    assert "list events" in told[1]
    assert word(ended, "phase", "outcome") == ("AwaitingApproval", "WorkflowSelected")


@row("FA-08")
def test_a_status_that_may_not_be_written_is_tried_seldom_and_told_once(
    trouble: Trouble, proxy: Proxy, process: Operator
) -> None:
    found = trouble()
    case = found.begun(answers=1)
    name, uid = case["metadata"]["name"], case["metadata"]["uid"]

    with proxy.ruled(f"PATCH .*/investigations/{name}/status$", 403) as refused:
        found.answer()
        found.world.until(lambda: len(refused.met) >= 3, "it is tried again and again")
        began = len(refused.met)
        time.sleep(5)
        tries = len(refused.met) - began

    assert tries <= 10
    said = [one for one in process.lines() if one.get("event") == "handler failed" and one["uid"] == uid]
    assert len(said) == 1
    found.same_end(case)
