"""Whatever becomes of the policy's service, a person is asked and no case breaks (resources, section 5.5)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from hack.tools import build
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.kube import eventually
from tests.support.ports import own_port
from tests.support.world import World, conditions, word

pytestmark = pytest.mark.xdist_group("story-policy-away")

PORT = own_port()
SETTINGS = {"policy": {"url": f"http://127.0.0.1:{PORT}"}}
POLICY = Path(__file__).with_name("faulty.rego")
"""By the name of the target it rules, or fails to."""
FAULTS = {
    "undefined": "data.inquest.approval is undefined",
    "mistyped": "require_approval",
    "contradictory": "OPA answered 500",
    "slow": "no answer within 5 s",
    "absent": "OPA cannot be reached",
}
"""What the request says of each."""


@dataclass
class Opa:
    """One that somebody else runs, beside the operator."""

    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        command = [str(build(["opa"]) / "opa"), "run", "--server", f"--addr=127.0.0.1:{PORT}", str(POLICY)]
        with (self.folder / "opa.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(self._answers, what="OPA answers")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"http://127.0.0.1:{PORT}/health", timeout=5, trust_env=False).is_success
        except httpx2.TransportError:
            return False


@pytest.fixture(scope="module", autouse=True)
def opa(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opa]:
    """Up before the operator of this file."""
    found = Opa(tmp_path_factory.mktemp("opa"))
    try:
        found.start()
        yield found
    finally:
        found.kill()


def opened(world: World, name: str) -> Object:
    world.broken(name)
    return world.signal(world.target(name))


def degraded(world: World, name: str, signal: Object) -> str:
    """Why a person is asked about it, everything said that has to be."""
    request = world.asked(signal)
    assert request["spec"]["policy"]["degraded"] is True, name
    case = world.case_of(request, "AwaitingApproval")
    assert case["status"]["ruling"]["degraded"] is True, name
    assert conditions(case)["ApprovalRequired"] == ("True", "PolicyDegraded"), name
    world.tells(case, "PolicyDegraded")
    return str(case["status"]["ruling"]["reason"])


def test_a_policy_that_does_not_rule_asks_a_person_and_one_that_rules_does_not(inhabit: Inhabit, opa: Opa) -> None:
    """FA-16; all of them at once, and then without any OPA."""
    world = inhabit("staging")
    faulty = {name: opened(world, name) for name in FAULTS if name != "absent"}
    sound = opened(world, "sound")

    said = {name: degraded(world, name, signal) for name, signal in faulty.items()}
    assert word(world.case(sound, "Executing"), "approvalRequired") in ((False,), (None,))
    opa.kill()
    world.until(lambda: "policy: OPA cannot be reached" in world.operator.readiness()[1], "readiness names it")
    said["absent"] = degraded(world, "absent", opened(world, "absent"))

    assert [name for name, words in FAULTS.items() if words not in said[name]] == []
    assert [line for line in world.operator.lines() if line.get("event") == "handler failed"] == []
    assert world.operator.readiness()[0] == 200
