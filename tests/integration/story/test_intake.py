"""Alerts at the door of a running operator: who may send, one Signal for one alert, its rounds and its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from hack.ports import free_port
from inquest.api.installation import NAMESPACE
from tests.integration.server.test_alertmanager import alertmanager, prometheus
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.kube import Cluster, eventually
from tests.support.listening import serving
from tests.support.world import World, phase_of, word

pytestmark = pytest.mark.xdist_group("story-real")
REAL = True
# On a busy machine a workload needs more than a second until it is seen to be well again.
SETTINGS = {"intake": {"enabled": True, "port": 0}, "effectiveness": {"stabilization": "5s"}}
RIGHT = "create signals.inquest.dev"


@dataclass(frozen=True)
class Sender:
    """An account outside, with its token, and the alert that it tells again and again."""

    world: World
    token: str
    since: str

    @property
    def url(self) -> str:
        """Where alerts are sent."""
        port = next(line["intake"] for line in self.world.operator.lines() if line.get("event") == "serving")
        return f"http://127.0.0.1:{port}/api/v1/signals/alertmanager"

    def tell(self, status: str = "firing", **labels: str) -> httpx2.Response:
        """What Alertmanager would send now; about the Deployment unless other labels are given."""
        known = {"alertname": "ShopDown", "severity": "critical", "namespace": self.world.namespace}
        one = {"status": status, "labels": known | (labels or {"deployment": "shop"}), "startsAt": self.since}
        return httpx2.post(
            self.url,
            json={"version": "4", "receiver": "inquest", "alerts": [one]},
            headers={"authorization": f"Bearer {self.token}"} if self.token else {},
            timeout=60,
            trust_env=False,
        )

    def signal(self, *phases: str, occurrences: int = 0) -> Object:
        """The Signal of that alert, once triage has said so."""

        def holds(seen: Object) -> bool:
            return phase_of(seen) in phases and (seen["status"]["occurrences"] == occurrences or not occurrences)

        return self.world.shows("Signal", self.told(), holds, namespace=NAMESPACE)

    def signals(self) -> list[Object]:
        """Signals about the namespace."""
        found = self.world.api.list("Signal", NAMESPACE)
        return [one for one in found if one["spec"]["target"].get("namespace") == self.world.namespace]

    def told(self) -> str:
        """Its name."""
        (ours,) = self.signals()
        return str(ours["metadata"]["name"])

    def case(self, *phases: str, occurrences: int = 0) -> Object:
        """Its case, once it is in one of these phases."""
        ref = self.signal("Accepted", occurrences=occurrences)["status"]["investigationRef"]
        return self.world.shows("Investigation", ref["name"], lambda one: phase_of(one) in phases, namespace=NAMESPACE)


@pytest.fixture
def sender(inhabit: Inhabit, cluster: Cluster) -> Iterator[Any]:
    """Makes senders: an account in a namespace of an environment, with the role or without."""
    made: list[tuple[World, str]] = []

    def make(environment: str = "production", *, may: bool = True) -> Sender:
        world = inhabit(environment)
        world.kubectl("create", "serviceaccount", "alertmanager")
        account = f"{world.namespace}:alertmanager"
        if may:
            bind = ("--clusterrole=inquest-signal-source", f"--serviceaccount={account}")
            name = f"sender-{uuid4().hex[:8]}"
            made.append((world, name))
            cluster.kubectl("create", "rolebinding", name, *bind, f"--namespace={NAMESPACE}")
            user = cluster.kubectl.within(NAMESPACE).user(f"system:serviceaccount:{account}")
            eventually(lambda: user.may(*RIGHT.split()), what="the sender has its right")
        token = world.kubectl("create", "token", "alertmanager", "--duration=10m").strip()
        return Sender(world, token, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))

    yield make
    for world, name in made:
        cluster.kubectl("delete", "rolebinding", name, f"--namespace={NAMESPACE}")
        for one in world.api.list("Signal", NAMESPACE):
            if one["spec"]["target"].get("namespace") == world.namespace:
                world.api.delete("Signal", one["metadata"]["name"], NAMESPACE)


def test_only_an_account_with_the_right_may_send(sender: Any) -> None:
    allowed, stranger = sender(), sender(may=False)
    nobody = Sender(allowed.world, "", allowed.since)

    codes = [one.tell().status_code for one in (nobody, stranger, allowed)]

    assert codes == [401, 403, 201]


def test_a_repeated_alert_is_counted_while_its_case_is_open_and_begins_a_round_after_it(sender: Any) -> None:
    """C-IN-4: Pending, Executing, Verifying, ended."""
    am = sender("staging")
    am.world.broken()
    first, at_once = am.tell(), am.tell()
    case = am.case("Executing", occurrences=2)
    while_executing = am.tell()
    name = f"wfe-{case['metadata']['name']}"
    running = am.world.shows("WorkflowExecution", name, lambda one: phase_of(one) == "Running", namespace=NAMESPACE)
    am.world.finish(am.world.job(running))
    am.case("Verifying", occurrences=3)
    while_verifying = am.tell()
    am.world.heal()
    am.case("Completed", occurrences=4)
    before = am.signal("Accepted")
    am.world.kill_for_memory()  # else the second case finds nothing to do, and ends before it is seen

    afterwards = am.tell()

    after = am.world.shows(
        "Signal", am.told(), lambda one: word(one, "phase", "round") == ("Accepted", 2), namespace=NAMESPACE
    )
    answers = (first, at_once, while_executing, while_verifying, afterwards)
    assert [answer.status_code for answer in answers] == [201, 202, 202, 202, 202]
    assert (word(before, "round"), word(after, "round", "occurrences")) == ((1,), (2, 5))
    assert before["status"]["investigationRef"] != after["status"]["investigationRef"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("row", ["resources-11.4-03"])
def test_a_resolved_alert_closes_the_case_that_waits_for_a_person(row: str, sender: Any) -> None:
    am = sender()
    am.world.broken()
    am.tell()
    case = am.case("AwaitingApproval")

    answers = [am.tell("resolved").status_code, am.tell("resolved").status_code, am.tell().status_code]

    resolved = am.signal("Resolved")
    ended = am.world.shows(
        "Investigation", case["metadata"]["name"], lambda one: phase_of(one) == "Completed", namespace=NAMESPACE
    )
    assert answers == [200, 200, 200]
    assert resolved["spec"]["resolvedTime"]
    assert word(ended, "reason", "subReason", "resolution") == (
        "WorkflowNotNeeded",
        "SignalResolved",
        "NoActionRequired",
    )


def test_a_rule_of_prometheus_opens_a_case_and_its_end_closes_what_waits(sender: Any, tmp_path: Path) -> None:
    """C-IN-4: told every second while its case waits, by a real Alertmanager."""
    am, watched = sender(), free_port()
    am.world.broken()
    (tmp_path / "token").write_text(am.token)
    webhook = {"url": am.url, "http_config": {"authorization": {"credentials_file": str(tmp_path / "token")}}}
    folders = [tmp_path / name for name in ("alertmanager", "prometheus")]
    for folder in folders:
        folder.mkdir()

    with ExitStack() as stack:
        alerts = alertmanager(folders[0], {**webhook, "send_resolved": True}, stack)
        prometheus(folders[1], alerts, watched, stack, namespace=am.world.namespace, deployment="shop")
        am.world.until(lambda: bool(am.signals()), "the alert makes a Signal")
        case = am.case("AwaitingApproval")
        am.world.until(lambda: am.signals()[0]["status"]["occurrences"] > 2, "it is told again")
        with serving(HTTPServer(("127.0.0.1", watched), Up)):
            resolved = am.signal("Resolved")
            ended = am.world.shows(
                "Investigation", case["metadata"]["name"], lambda one: phase_of(one) == "Completed", namespace=NAMESPACE
            )

    assert (resolved["spec"]["name"], len(am.signals())) == ("CartDown", 1)
    assert word(ended, "reason", "subReason", "resolution") == (
        "WorkflowNotNeeded",
        "SignalResolved",
        "NoActionRequired",
    )


class Up(BaseHTTPRequestHandler):
    """Something that can be scraped."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.mark.parametrize("row", ["C-IN-3"])
def test_an_alert_that_names_nothing_but_its_scraper_has_no_target(row: str, sender: Any) -> None:
    am = sender()

    told = am.tell(job="x", service="x", instance="x", endpoint="x", container="x")

    made = am.world.api.get("Signal", told.json()["results"][0]["signal"], NAMESPACE)
    assert made["spec"]["target"] == {"kind": "Unknown", "name": "unknown", "namespace": am.world.namespace}
