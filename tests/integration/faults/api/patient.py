"""A case whose model waits for the test before it answers, so that a fault meets the case where it has to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from tests.integration.cases.golden import FOLDER, brief, normal, rendered
from tests.integration.cases.scenes import scene
from tests.integration.cases.stage import FIRST, Stage
from tests.support.api import Api, Object
from tests.support.kube import Kubectl
from tests.support.process import Operator
from tests.support.world import World, inhabited

HELD_SECONDS = 0.02
UNDISTURBED = "1-workflow-selected"
"""The same story without a fault: its scene, and the golden file of its end, are those of `tests/integration/cases`."""
UNEQUAL = frozenset({"attempts", "owner", "journal"})
"""Who worked on it, how often it was taken up, and where its journal stands."""


Place = tuple[str, str]
"""Endpoint and namespace."""


@dataclass
class Patient(Stage):
    """A stage on which the answers to a case can be held back."""

    held: dict[Place, int] = field(default_factory=dict)
    """How many more answers may go; a case that is not named is not held."""
    arrived: Counter[Place] = field(default_factory=Counter)
    left: Counter[Place] = field(default_factory=Counter)
    """Questions whose asker went before the answer could go."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on once the case may have its answer."""
        body = await Request(scope, receive).body()
        place = self._place_of(str(scope["path"]).split("/")[1], body)
        self.arrived[place] += 1
        gone = asyncio.ensure_future(receive())
        while self.held.get(place, 1) < 1 and not gone.done():  # noqa: ASYNC110 - the word comes from another thread
            await asyncio.sleep(HELD_SECONDS)
        if gone.done():
            self.left[place] += 1
            return
        if place in self.held:
            self.held[place] -= 1
        await super().__call__(scope, _again(body, gone), send)

    def _place_of(self, endpoint: str, body: bytes) -> Place:
        held = [place for place in self.held if place[0] == endpoint and place[1].encode() in body]
        return held[0] if held else (endpoint, "")


def _again(body: bytes, gone: asyncio.Future[Message]) -> Receive:
    """The body once more, then that the client has gone."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return left.pop() if left else await asyncio.shield(gone)

    return given


@dataclass(frozen=True)
class Troubled:
    """A namespace with a workload that needs more memory than it may have, and the script of its case."""

    world: World
    stage: Patient
    endpoint: str = FIRST
    """Of the replica that works on it."""

    @classmethod
    @contextmanager
    def made(
        cls, api: Api, operator: Operator, kubectl: Kubectl, stage: Patient, environment: str, **script: Any
    ) -> Iterator[Troubled]:
        """For as long as the block lasts; `script` changes the scene that its model plays."""
        with inhabited(api, operator, kubectl, {"inquest.dev/environment": environment}) as world:
            stage.play(world.namespace, replace(scene(UNDISTURBED), **script).script())
            world.broken()
            yield cls(world, stage)
            stage.held.pop((FIRST, world.namespace), None)

    @property
    def place(self) -> Place:
        """Where its model is asked."""
        return self.endpoint, self.world.namespace

    def at(self, endpoint: str) -> Troubled:
        """The same case as another replica's model sees it."""
        self.stage.play(self.world.namespace, scene(UNDISTURBED).script(), endpoint=endpoint)
        return replace(self, endpoint=endpoint)

    def begun(self, answers: int = 0) -> Object:
        """The case, once its model has answered so often and was asked for one more answer, which is held back."""
        self.stage.held[self.place] = answers
        case = self.world.opened(self.world.signal())
        self.until_asked(answers + 1)
        return case

    def until_asked(self, times: int) -> None:
        """The model was asked so often."""
        self.world.until(lambda: self.stage.arrived[self.place] >= times, f"question {times}")

    def answer(self, times: int = 1_000) -> None:
        """The model may answer."""
        self.stage.held[self.place] += times

    def asked(self) -> int:
        """How often the model was asked and has answered."""
        return len(self.stage.asked(self.world.namespace, self.endpoint))

    def same_end(self, case: Object, *, asked: int = 4, attempts: int = 1, told: str = "Sent") -> Object:
        """The case where a person is asked, its whole status as without any fault, but for what every start counts.

        `told` is how far its notice must have come.
        """
        name = case["metadata"]["name"]
        found = self.world.shows("Investigation", name, lambda seen: _told(seen) == [told])
        words = {self.world.namespace: "NAMESPACE", name: "CASE", found["metadata"]["uid"]: "UID"}
        calm = yaml.safe_load((FOLDER / f"{UNDISTURBED}.yaml").read_text(encoding="utf-8"))["status"]
        calm["notices"][0]["state"] = told
        status = normal(brief(found["status"]), words)
        for one in (status, calm):
            for key in UNEQUAL:
                one.pop(key)
        assert rendered(status) == rendered(calm)
        assert (self.asked(), found["status"]["attempts"]) == (asked, attempts)
        return found


def _told(found: Object) -> list[str]:
    """How far each notice has come, once a person is asked."""
    status = found.get("status", {})
    return [one["state"] for one in status.get("notices", [])] if "approval" in status else []
