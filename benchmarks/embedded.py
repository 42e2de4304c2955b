"""A process with everything that the operator loads, and DataStorage in it or not: what it weighs after its questions.

`python -m benchmarks.embedded [URL ROWS]` prints MiB. Each is a process of its own: what was loaded stays loaded.
"""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from inquest.core.redaction.redactor import Redactor
from inquest.telemetry.logs import set_up_logging

READ_TURNS: Final = 300
AT_ONCE: Final = 20
KIBIBYTES: Final = 1024
OPERATOR: Final = ("inquest.operator.main", "inquest.adapters.llm")
"""What an operator loads that asks a model, as most do."""
QUESTIONS: Final = ("benchmarks.load", "hack.postgres")
"""What those who ask load beside it: in both processes, for it is not the service's."""


def above_the_operator(url: str, count: int) -> tuple[float, float]:
    """MiB of the operator's process, and what DataStorage adds to it on a database filled with so many rows."""
    bare, whole = _weighed(), _weighed(url, str(count))
    return bare, whole - bare


def _weighed(*what: str) -> float:
    command = [sys.executable, "-m", "benchmarks.embedded", *what]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def resident() -> float:
    """MiB of this process; pages that others share count in full, for in a pod nobody shares them."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) / KIBIBYTES


async def _after_questions(url: str, count: int) -> float:
    """Each read of the benchmark through the ASGI transport, one after the other and twenty at once."""
    import httpx2

    from benchmarks.datastorage import API, reads
    from inquest.datastorage.app import create_app
    from inquest.datastorage.store.database import migrate_database
    from inquest.datastorage.store.opening import open_database

    database = open_database(url)
    await migrate_database(database)
    app = create_app(database)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://datastorage", timeout=60) as http:
        listed: list[dict[str, Any]] = (await http.get(f"{API}/workflows", params={"limit": 100})).json()["workflows"]
        for ask in reads(count, [one["workflowId"] for one in listed]).values():
            for turn in range(READ_TURNS):
                (await ask(http, turn)).raise_for_status()
            for begin in range(0, READ_TURNS, AT_ONCE):
                answers = await asyncio.gather(*(ask(http, begin + turn) for turn in range(AT_ONCE)))
                for answer in answers:
                    answer.raise_for_status()
        found = resident()
    await app.state.service.close()
    await database.close()
    return found


def main(words: Sequence[str]) -> None:
    """Logs as the operator does, for what is logged costs memory too."""
    redactor = Redactor()
    for name in (*OPERATOR, *QUESTIONS):
        importlib.import_module(name)
    set_up_logging(redact=lambda text: redactor.text(text).value)
    print(asyncio.run(_after_questions(words[0], int(words[1]))) if words else resident())


if __name__ == "__main__":
    main(sys.argv[1:])
