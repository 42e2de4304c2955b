"""The operator as crash tests run it: it counts its calls, and kills itself at the point of its environment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from inquest.controllers.journal import Journal
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reconcilers import Look, Reconcilers
from inquest.operator.main import operate
from inquest.settings.settings import Settings
from tests.support.crash.counting import PORTS, Counter
from tests.support.crash.points import Point


@dataclass
class CountedReconcilers(Reconcilers):
    """What their looks at cases ask of the ports is counted."""

    counter: Counter

    @property
    def looks(self) -> Mapping[str, Look]:
        return {kind: self.counter.on_behalf(kind, look) for kind, look in super().looks.items()}


def run_armed(settings: Path) -> None:
    """Until it is told to stop, or comes to the point of the environment."""
    counter = Counter(Point.of(os.environ), Path(os.environ["CRASH_LOG"]))

    def counted(ports: ControllerPorts) -> Reconcilers:
        wrapped = {name: counter.around(name, getattr(ports, name)) for name in PORTS}
        journal = Journal(wrapped["status"], ports.namespace)
        return CountedReconcilers(replace(ports, **wrapped, journal=journal), counter)

    asyncio.run(operate(Settings.load(settings), settings, counted))
