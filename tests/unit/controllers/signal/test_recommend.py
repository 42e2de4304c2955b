"""Who is asked for a recommendation, how often, and what is remembered (behaviours, 14.2 and 19.6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from inquest.adapters.playbooks.reader import read_library
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.signal.controller import SignalController
from inquest.controllers.signal.recommend import LOOK_AGAIN, Recommendations
from inquest.core.llm.messages import ModelReply, ModelRequest, Usage
from inquest.core.redaction.redacted import Redacted
from inquest.errors import ModelRefused, Unavailable
from inquest.ports.kubernetes import Json, ResourceKind
from tests.unit.controllers.signal.test_signals import World

ADVICE = """\
DIAGNOSIS: The disk of <name> fills up.
ACTION: Free space on <name>.
URGENCY: now
---
REMEDIATE: yes
WITH: CleanupNode
PROMPT: What fills the disk of <name>?
"""


def text(said: str, finish: str = "stop") -> Callable[[], ModelReply]:
    return lambda: ModelReply(said, (), finish, Usage(), "m")


def failing() -> ModelReply:
    raise Unavailable("model")


def refusing() -> ModelReply:
    raise ModelRefused("ModelRefused: no")


@dataclass
class Spoken:
    """A model that says the next thing, the last one again and again."""

    says: list[Callable[[], ModelReply]] = field(default_factory=lambda: [text(ADVICE)])
    heard: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        self.heard.append(request.value)
        await asyncio.sleep(0)
        return (self.says.pop(0) if len(self.says) > 1 else self.says[0])()


@dataclass
class Desk(World):
    """Signals that were triaged, the catalogue, and a model."""

    model: Spoken | None = field(default_factory=Spoken)

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        return tuple(obj for place, obj in self.held.items() if place[0] == kind.kind)

    async def now(self) -> Any:
        self.moment += timedelta(seconds=1)
        return self.moment

    def __post_init__(self) -> None:
        self.propose("CleanupNode")
        found: ControllerPorts = replace(self.ports(), model=self.model, playbooks=read_library().books)
        self.advising, self.signals = Recommendations(found), SignalController(found)

    def propose(self, name: str) -> None:
        words = {"name": name, "what": "free disk on a node", "whenToUse": "a disk is full"}
        self.put("ActionType", name.lower(), "inquest-system", spec=words)

    def accepted(self, name: str, says: str, *, node: str = "worker-1", phase: str = "Accepted", **spec: Any) -> None:
        target = {"kind": "Node", "name": node}
        body = {"name": "NodeDisk", "severity": "high", "source": {"type": "Manual"}, "message": says, "target": target}
        status = {"phase": phase, "rootOwner": {**target, "uid": "u"}, "investigationRef": {"name": f"inv-{name}"}}
        self.put("Signal", name, "ops", spec={**body, **spec}, status=status)

    def case(self, name: str, phase: str = "Investigating", **status: Any) -> None:
        signal = {"name": "NodeDisk", "severity": "high", "source": {"type": "Manual"}}
        spec = {"signal": {**signal, "target": {"kind": "Node", "name": "worker-1"}}}
        self.put("Investigation", f"inv-{name}", "ops", spec=spec, status={"phase": phase, **status})

    async def advise(self, *names: str) -> Sequence[timedelta | None]:
        """All of them at once."""
        return tuple(await asyncio.gather(*(self.advising.look("ops", name) for name in names)))

    def said(self, name: str) -> Json:
        return dict(self.held["Signal", "ops", name]["status"].get("recommendation") or {})

    def condition(self, name: str) -> tuple[str, str]:
        conditions = self.held["Signal", "ops", name]["status"]["conditions"]
        return next((one["status"], one["reason"]) for one in conditions if one["type"] == "Recommended")

    @property
    def calls(self) -> int:
        return len(self.model.heard) if self.model else 0


@pytest.mark.parametrize("row", ["R18"])
async def test_an_accepted_signal_has_its_recommendation_while_the_case_is_open(row: str) -> None:
    desk = Desk()
    desk.accepted("one", "disk 91% full on worker-1")
    desk.case("one")
    desk.accepted("two", "noise", phase="Ignored")

    await desk.advise("one", "two")

    found = desk.said("one")
    assert found.pop("generatedAt")
    assert found == {
        "diagnosis": "The disk of worker-1 fills up.",
        "action": "Free space on worker-1.",
        "urgency": "Immediate",
        "remediate": True,
        "prompt": "What fills the disk of worker-1?",
        "source": "Model",
        "cached": False,
    }
    assert desk.condition("one") == ("True", "Generated")
    assert desk.said("two") == {}
    assert desk.calls == 1


@pytest.mark.parametrize("row", ["R04"])
async def test_two_nodes_in_one_band_share_a_call_and_no_name(row: str) -> None:
    desk = Desk()
    desk.accepted("one", "disk 91% full on worker-1")
    desk.accepted("two", "disk 92% full on worker-2", node="worker-2")

    await desk.advise("one")
    await desk.advise("two")

    assert desk.calls == 1
    assert desk.said("two")["diagnosis"] == "The disk of worker-2 fills up."
    assert desk.condition("two") == ("True", "Cached")
    assert "worker" not in str(desk.model and desk.model.heard)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(failing, id="R05+T56 it failed"),
        pytest.param(refusing, id="R12+T56 it refused"),
        pytest.param(text("I cannot help with that."), id="R12+T56 it refused in words"),
        pytest.param(text(ADVICE, "length"), id="T56 it was cut"),
    ],
)
async def test_what_failed_is_not_remembered(first: Callable[[], ModelReply]) -> None:
    desk = Desk(model=Spoken([first, text(ADVICE)]))
    desk.accepted("one", "disk 91% full")

    await desk.advise("one")
    assert (desk.said("one"), desk.condition("one")) == ({}, ("False", "ModelFailed"))
    await desk.advise("one")

    assert desk.calls == 2
    assert desk.said("one")["source"] == "Model"


@pytest.mark.parametrize("row", ["T57"])
async def test_what_is_remembered_names_nobody(row: str) -> None:
    desk = Desk()
    desk.accepted("one", "disk of ledger-db 91% full, ledger-db has no room", node="ledger-db")
    desk.accepted("two", "disk of cart-db 92% full, cart-db has no room", node="cart-db")

    await desk.advise("one")
    asked = [str(request) for request in desk.model.heard] if desk.model else []
    await desk.advise("two")

    assert desk.calls == 1
    assert asked
    assert "ledger" not in asked[0]
    # Whatever the cache gives is made from the question and the answer to it.
    assert "ledger" in str(desk.said("one"))
    assert "ledger" not in str(desk.said("two"))
    assert "cart-db" in str(desk.said("two"))


@pytest.mark.parametrize("row", ["R10"])
async def test_another_catalogue_is_another_question(row: str) -> None:
    desk = Desk()
    desk.accepted("one", "disk 91% full")
    desk.accepted("two", "disk 91% full")

    await desk.advise("one")
    desk.propose("DrainNode")
    await desk.advise("two")

    assert desk.calls == 2


@pytest.mark.parametrize("row", ["R11"])
async def test_ten_equal_signals_at_once_make_one_call(row: str) -> None:
    desk = Desk()
    names = [f"sig-{number}" for number in range(10)]
    for name in names:
        desk.accepted(name, "disk 91% full")

    await desk.advise(*names)

    assert desk.calls == 1
    assert all(desk.said(name) for name in names)


@pytest.mark.parametrize("row", ["R06"])
async def test_without_a_model_the_case_and_its_playbook_speak(row: str) -> None:
    desk = Desk(model=None)
    desk.accepted("one", "killed")
    desk.case("one")
    assert await desk.advise("one") == (LOOK_AGAIN,)
    finding = {
        "detector": "oom_killed",
        "category": "OOMKilled",
        "object": {"kind": "Deployment", "name": "api", "namespace": "shop"},
        "field": "spec.template.spec.containers[name=app].resources.limits.memory",
        "value": "128Mi",
        "summary": "Deployment/api: container app was killed at its memory limit of 128Mi",
    }
    desk.case("one", findings=[finding], playbooks=["CrashLoopBackOff", "OOMKilled"])

    assert await desk.advise("one") == (None,)

    found = desk.said("one")
    assert (found["source"], found["remediate"]) == ("Playbook", False)
    assert found["action"].startswith("Raise the memory limit of container app in Deployment/api, now 128Mi")
    assert desk.condition("one") == ("True", "FromPlaybook")


@pytest.mark.parametrize("row", ["C-CX-3"])
async def test_a_recommendation_is_new_then_remembered_then_refreshed_by_the_end(row: str) -> None:
    desk = Desk()
    for name in ("one", "two"):
        desk.accepted(name, "disk 91% full")
        desk.case(name)

    await desk.advise("one")
    await desk.advise("two")
    assert [desk.condition(name)[1] for name in ("one", "two")] == ["Generated", "Cached"]
    desk.case("one", phase="Completed", message="the disk was cleaned", resolution="Remediated")
    await desk.signals.look("ops", "one")

    assert desk.said("one")["diagnosis"] == "the disk was cleaned"
    assert desk.said("one")["urgency"] == "None"
    assert desk.calls == 1


async def test_an_ended_case_writes_its_own() -> None:
    desk = Desk()
    desk.accepted("one", "disk 91% full")
    desk.case("one", phase="Completed")

    assert await desk.advise("one") == (None,)
    assert (desk.said("one"), desk.calls) == ({}, 0)


async def test_a_secret_in_a_signal_reaches_no_model() -> None:
    desk = Desk()
    desk.accepted("one", "login failed with password=canary-Xq7Zk2Tv")

    await desk.advise("one")

    assert "canary" not in str(desk.model and desk.model.heard)
    assert desk.calls == 1
