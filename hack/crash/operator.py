"""The operator as crash tests run it: `CRASH_LOG=… CRASH_AT=3 … python -m hack.crash.operator run --settings FILE`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hack.crash.counting import PORTS, Counter
from hack.crash.points import Point
from inquest.controllers.journal import Journal
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reconcilers import Look, Reconcilers
from inquest.operator.main import operate
from inquest.settings.settings import Settings


@dataclass
class CountedReconcilers(Reconcilers):
    """What their looks at cases ask of the ports is counted."""

    counter: Counter

    @property
    def looks(self) -> Mapping[str, Look]:
        return {kind: self.counter.on_behalf(kind, look) for kind, look in super().looks.items()}


def main() -> None:
    """Until it is told to stop, or comes to the point of the environment."""
    counter = Counter(Point.of(os.environ), Path(os.environ["CRASH_LOG"]))

    def counted(ports: ControllerPorts) -> Reconcilers:
        wrapped = {name: counter.around(name, getattr(ports, name)) for name in PORTS}
        journal = Journal(wrapped["status"], ports.namespace)
        return CountedReconcilers(replace(ports, **wrapped, journal=journal), counter)

    file = Path(sys.argv[-1])
    asyncio.run(operate(Settings.load(file), file, counted))


if __name__ == "__main__":
    main()
