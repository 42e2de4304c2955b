"""Puts many cases on stage at a time: each has a namespace, a workload and a script of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from inquest.api.types import ENDED_EXECUTIONS
from tests.integration.cases.golden import rendered
from tests.integration.cases.scenes import Scene
from tests.integration.cases.stage import SECOND, Stage
from tests.support.api import Api, Object
from tests.support.kube import Cluster
from tests.support.process import Operator
from tests.support.world import World, conditions, inhabited, phase_of

AT_ONCE = 6
"""Cases that are set up and waited for at the same time."""
SECONDS = 300.0
"""Longest wait for anything else than the end of a case."""
PAUSE = 0.5
Plant = Callable[[World], None]


@dataclass(frozen=True)
class Played:
    """How a case stood when it was over."""

    case: Object
    world: World
    asked: list[Object]
    """Bodies of the requests that its endpoints got."""


@dataclass(frozen=True)
class Theatre:
    """Puts cases on stage, several at a time."""

    api: Api
    operator: Operator
    cluster: Cluster
    stage: Stage
    worlds: ExitStack

    def inhabit(self, environment: str) -> World:
        """A namespace that goes when the theatre closes."""
        labels = {"inquest.dev/environment": environment}
        return self.worlds.enter_context(inhabited(self.api, self.operator, self.cluster.kubectl, labels))

    def play(self, scene: Scene, plant: Plant | None = None) -> Played:
        """One case from its workload to its end; `plant` puts things into its namespace before it is opened."""
        world = self.inhabit(scene.environment)
        self.stage.play(world.namespace, scene.script())
        self.stage.play(world.namespace, scene.second_script(), endpoint=SECOND)
        _make(world, scene)
        if plant is not None:
            plant(world)
        opened = _open(world, scene)
        if scene.cancel and scene.cancel != "Pending":
            self._cancel(world, opened, scene.cancel)
        name = opened["metadata"]["name"]
        get = partial(self.api.get, "Investigation", name, world.namespace)
        case = seldom(get, lambda seen: _is_over(seen, scene), seconds=scene.patience)
        asked = [*self.stage.asked(world.namespace), *self.stage.asked(world.namespace, SECOND)]
        return Played(case, world, asked)

    def _cancel(self, world: World, opened: Object, phase: str) -> None:
        name = opened["metadata"]["name"]
        world.reaches("Investigation", opened, phase, seconds=SECONDS)
        if phase in ("Investigating", "Selecting"):
            offers = {"Investigating": "submit_result", "Selecting": "submit_result_with_workflow"}[phase]
            world.until(lambda: _last_offers(self.stage.asked(world.namespace), offers), "the model was asked")
        if phase == "Executing":
            world.execution(opened, "Running")
        world.api.change("Investigation", name, world.namespace, {"spec": {"cancel": True}})


def seldom(get: Callable[[], Object], holds: Callable[[Object], bool], *, seconds: float = SECONDS) -> Object:
    """The object, once something holds of it; a look every half second: there are many cases, and little machine."""
    deadline = time.monotonic() + seconds
    while True:
        found = get()
        if holds(found):
            return found
        assert time.monotonic() < deadline, f"still not: {rendered(found.get('status'))}"
        time.sleep(PAUSE)


def _last_offers(asked: list[Object], name: str) -> bool:
    waiting = asked[-1:]
    return any(tool["function"]["name"] == name for one in waiting for tool in one.get("tools", []))


def _make(world: World, scene: Scene) -> None:
    match scene.world:
        case "broken":
            world.broken()
        case "healthy":
            world.deployment()
            world.heal()
        case "pod":
            container = {"name": "app", "image": "registry.example/shop:1.0"}
            meta = {"name": "shop", "namespace": world.namespace}
            world.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}})


def _open(world: World, scene: Scene) -> Object:
    """By a Signal, or by a person where the case has limits of its own."""
    kind = "Pod" if scene.world == "pod" else "Deployment"
    target = world.target(kind=kind) | ({"apiVersion": "v1"} if kind == "Pod" else {})
    if scene.limits is None:
        name = world.signal(target, **scene.signal)["metadata"]["name"]
        told = seldom(lambda: world.api.get("Signal", name, world.namespace), lambda seen: phase_of(seen) == "Accepted")
        return world.opened(told)
    signal = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": target}
    spec: Object = {"signal": {**signal, "message": "it does not work", **scene.signal}, "limits": scene.limits}
    spec |= {"cancel": True} if scene.cancel == "Pending" else {}
    meta = {"name": "by-hand", "namespace": world.namespace}
    return world.api.create(
        {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta, "spec": spec}
    )


def _is_over(seen: Object, scene: Scene) -> bool:
    """In its last phase, and all that is written about it is written."""
    if phase_of(seen) not in scene.ends:
        return False
    run = seen["status"].get("execution")
    if run is not None and run.get("phase") not in ENDED_EXECUTIONS:
        return False
    ended = "completedAt" in seen["status"]
    return conditions(seen).get("Recorded", ("",))[0] == "True" if ended else "approval" in seen["status"]
