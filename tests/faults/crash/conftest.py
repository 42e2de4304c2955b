"""A control plane of the crash tests' own, everything installed, and the end of the case when nobody dies."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.cluster import local
from hack.crash.oracle import Object, ending, violations
from hack.crash.points import COUNT_ONLY
from hack.demo.stage import Stage, folder, install, stop_operator
from hack.images import Image
from hack.tools import build
from tests.faults.crash.puppets import Puppets

NAME = "crash"
QUICK = {"INQUEST_EFFECTIVENESS__STABILIZATION": "1s"}
NO_IMAGE = Image("localhost/inquest/kubectl", "sha256:" + "1" * 64, Path("never-pulled"))
"""No node will ever start it."""

MakeScene = Callable[..., Puppets]


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """The control plane; one that was running before is left running."""
    was_there = local.find(name=NAME) is not None and local.is_ready(name=NAME)
    build(["opa"])
    found = Stage(local.up(name=NAME), folder(NAME))
    install(found, {"kubectl": NO_IMAGE})
    yield found
    stop_operator(found.folder)
    if not was_there and "INQUEST_KEEP_CLUSTER" not in os.environ:
        local.down(name=NAME)


@pytest.fixture(scope="session")
def make_scene(stage: Stage) -> MakeScene:
    """Makes a broken workload, each in a namespace of its own."""
    numbers = itertools.count(1)

    def make() -> Puppets:
        name = f"crash-{os.getpid()}-{next(numbers)}"
        scene = Puppets(stage, {"provider": "none"}, name, stage.folder / "runs" / name, QUICK)
        scene.prepare()
        return scene

    return make


@pytest.fixture(scope="session")
def undisturbed(make_scene: MakeScene) -> Object:
    """How the case ends when nobody dies."""
    scene = make_scene()
    result = scene.play(COUNT_ONLY)
    assert violations(result.seen) == []
    return ending(result.seen)
