"""DataStorage over HTTP on loopback, on both engines: history, discovery, writes, memory; a bare query beside them.

The server is `inquest datastorage serve`, a process of its own; the trail is as long as `ROWS` says.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from uuid import uuid4

import httpx2
import yaml
from sqlalchemy import Connection, text

from benchmarks import embedded, trail
from benchmarks.load import percentile
from benchmarks.report import MEGABYTE, Row
from benchmarks.watching import cpu_seconds
from hack import postgres
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database

API: Final = "/api/v1"
ROWS: Final = 1_000_000
LARGE: Final = 10_000_000
ENGINES: Final = ("sqlite", "postgres")
READS: Final = 300
WARM_TURNS: Final = 5
CLIENTS: Final = 20
PAUSE_SECONDS: Final = 0.4
"""Between two questions of one client: twenty of them are 50 questions a second."""
WRITERS: Final = (1, 8, 32)
WRITE_SECONDS: Final = 6.0
EVENTS_IN_A_BATCH: Final = 100
WORKFLOWS, ACTION_TYPES = 1000, 50
LANES: Final = 8
START_SECONDS: Final = 90.0
DIGEST: Final = "0123456789abcdef" * 4
CONTEXT: Final = {"severity": "critical", "component": "Deployment", "environment": "production", "priority": "P1"}

GOALS: Final = {
    "history, scope chain": (10.0, 25.0),
    "history, scope target": (10.0, 25.0),
    "history, scope hash, common spec": (20.0, 60.0),
    "discovery step 1": (10.0, 10.0),
    "discovery step 2": (10.0, 10.0),
    "discovery step 3": (10.0, 10.0),
    "effectiveness": (5.0, 10.0),
    "transcript page of 100": (15.0, 25.0),
    "append one event": (10.0, 15.0),
    "append a batch of 500": (250.0, 400.0),
    "verify a chain of 200": (50.0, 50.0),
}
"""Milliseconds, p95, at 1 and at 10 million rows (datastorage, section 15)."""

MEMORY_GOALS: Final = (60.0, 80.0)
"""MiB that the embedded service may add to the operator, at 1 and at 10 million rows."""

ALONE: Final = frozenset({"transcript page of 100"})
"""Reads whose goal does not hold for twenty clients at once."""

Ask = Callable[[httpx2.AsyncClient, int], Awaitable[httpx2.Response]]


@dataclass(frozen=True)
class Server:
    """The service under measure."""

    url: str
    pid: int

    @property
    def resident(self) -> float:
        """MiB now."""
        words = Path(f"/proc/{self.pid}/statm").read_text().split()
        return int(words[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE

    @property
    def cpu(self) -> float:
        """Seconds of all its threads since its start."""
        return cpu_seconds(self.pid)


def sections(say: Callable[[str], None], engines: Sequence[str], count: int) -> Iterator[tuple[str, list[Row]]]:
    """One table for each engine."""
    for engine in engines:
        with TemporaryDirectory(prefix="inquest-bench-ds-") as folder, _database(engine, Path(folder)) as url:
            say(f"DataStorage on {engine}: filling {count:,} rows")
            begun = time.monotonic()
            asyncio.run(_fill(url, count))
            say(f"filled in {time.monotonic() - begun:.0f} s")
            bare, embeds = asyncio.run(_bare(url)), engine == "sqlite"
            with _served(Path(folder), url) as server:
                rows = asyncio.run(_measured(server, bare, count, say))
            yield f"DataStorage on {engine}, {count:,} rows", rows + (_embedded(url, count, say) if embeds else [])


def _embedded(url: str, count: int, say: Callable[[str], None]) -> list[Row]:
    """As most have it: in the operator's process, on a file."""
    say("in the operator's process")
    operator, above = embedded.above_the_operator(url, count)
    goal = MEMORY_GOALS[count >= LARGE]
    return [
        Row("memory of the embedded service", above, "MiB", goal, baseline=operator, against="the operator without")
    ]


@contextmanager
def _database(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder}/store.db"
        return
    with postgres.running(durable=True) as server:
        yield server.create("bench")


async def _fill(url: str, count: int) -> None:
    database = open_database(url)
    await migrate_database(database)
    now = datetime.now(UTC)
    if not database.is_postgres:
        trail.fill_sqlite(str(database.url.database), count, now)
    else:
        await trail.fill_postgres(url, count, now)
    await database.close()


@contextmanager
def _served(folder: Path, url: str) -> Iterator[Server]:
    chosen = {"database": url, "server": {"port": 0, "authentication": "none"}}
    whole = {"log_level": "info", "server": {"health_port": 0, "metrics_port": 0}, "datastorage": chosen}
    (folder / "settings.yaml").write_text(yaml.safe_dump(whole))
    command = [sys.executable, "-m", "inquest.cli.main", "datastorage", "serve"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--settings", str(folder / "settings.yaml")], stdout=log, stderr=log)
    try:
        yield Server(f"http://127.0.0.1:{_port(process, folder / 'log')}", process.pid)
    finally:
        process.terminate()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        lines = [line for line in log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        for said in map(json.loads, lines):
            if said.get("event") == "serving":
                return int(said["api"])
        time.sleep(0.1)
    raise RuntimeError(f"the server did not come up: {log.read_text()[-500:]}")


# --- what is asked ----------------------------------------------------------------------------------------------


def _history(scope: str, number: Callable[[int], int]) -> Ask:
    async def ask(http: httpx2.AsyncClient, turn: int) -> httpx2.Response:
        target = number(turn)
        namespace, kind, name = trail.target_of(target).split("/")
        asked = {"targetNamespace": namespace, "targetKind": kind, "targetName": name, "scope": scope}
        asked["currentSpecHash"] = trail.spec_of(target, turn % 3)
        return await http.get(f"{API}/remediation-history/context", params=asked)

    return ask


def _by_uid(path: Callable[[str], str], remediations: int) -> Ask:
    async def ask(http: httpx2.AsyncClient, turn: int) -> httpx2.Response:
        return await http.get(path(trail.uid_of(turn * 7919 % remediations)))

    return ask


def _busy(turn: int) -> int:
    """Those of low numbers have most of the trail; none of a common spec."""
    return turn % 199 + (1 if turn % 199 % 10 == 0 else 0)


def _common(turn: int) -> int:
    return turn % 20 * 10


def reads(count: int, offered: Sequence[str]) -> dict[str, Ask]:
    """What is asked of a trail of so many rows and a catalogue with these workflows, by name."""
    remediations = max(count // trail.EVENTS, 1)
    actions = f"{API}/workflows/actions"

    async def step1(http: httpx2.AsyncClient, _turn: int) -> httpx2.Response:
        return await http.get(actions, params={**CONTEXT, "limit": "50"})

    async def step2(http: httpx2.AsyncClient, turn: int) -> httpx2.Response:
        return await http.get(f"{actions}/Action{turn % ACTION_TYPES}", params=CONTEXT)

    async def step3(http: httpx2.AsyncClient, turn: int) -> httpx2.Response:
        return await http.get(f"{API}/workflows/{offered[turn % len(offered)]}", params=CONTEXT)

    return {
        "history, scope chain": _history("chain", _busy),
        "history, scope target": _history("target", _busy),
        "history, scope hash, common spec": _history("hash", _common),
        "discovery step 1": step1,
        "discovery step 2": step2,
        "discovery step 3": step3,
        "effectiveness": _by_uid(lambda uid: f"{API}/effectiveness/{uid}", remediations),
        "transcript page of 100": _by_uid(
            lambda uid: f"{API}/audit/events?correlation_id={uid}&limit=100", remediations
        ),
    }


def _event(correlation_id: str) -> dict[str, Any]:
    data = {
        "event_id": "x",
        "incident_id": correlation_id,
        "model": "m",
        "prompt_length": 1,
        "prompt_preview": "x" * 200,
    }
    return {
        "version": "1.0",
        "event_id": str(uuid4()),
        "event_type": "aiagent.llm.request",
        "event_timestamp": datetime.now(UTC).isoformat(),
        "event_category": "aiagent",
        "event_action": "llm_request",
        "event_outcome": "success",
        "correlation_id": correlation_id,
        "event_data": {"event_type": "aiagent.llm.request", **data},
    }


async def _one(http: httpx2.AsyncClient, _turn: int) -> httpx2.Response:
    return await http.post(f"{API}/audit/events", json=_event(str(uuid4())))


async def _batch(http: httpx2.AsyncClient, _turn: int) -> httpx2.Response:
    name = str(uuid4())
    return await http.post(f"{API}/audit/events/batch", json=[_event(name) for _ in range(500)])


async def _chain_of_200(http: httpx2.AsyncClient) -> Ask:
    name = str(uuid4())
    (await http.post(f"{API}/audit/events/batch", json=[_event(name) for _ in range(200)])).raise_for_status()

    async def ask(http: httpx2.AsyncClient, _turn: int) -> httpx2.Response:
        return await http.post(f"{API}/audit/verify-chain", json={"correlation_id": name})

    return ask


# --- the measure ------------------------------------------------------------------------------------------------


async def _measured(server: Server, bare: float, count: int, say: Callable[[str], None]) -> list[Row]:
    rows = [Row("memory after start", server.resident, "MiB")]
    limits = httpx2.Limits(max_connections=64)
    async with httpx2.AsyncClient(base_url=server.url, timeout=60, limits=limits) as http:
        say("registering the catalogue")
        offered = await _catalogue(http)
        for name, ask in reads(count, offered).items():
            say(name)
            rows += await _rows(name, server, http, ask, READS, count, bare)
            rows.append(_paced(name, await _together(http, ask), count))
        for name, ask, turns in (("append one event", _one, READS), ("append a batch of 500", _batch, 20)):
            say(name)
            rows += await _rows(name, server, http, ask, turns, count, bare)
        rows += await _rows("verify a chain of 200", server, http, await _chain_of_200(http), 50, count, bare)
        for writers in WRITERS:
            say(f"{writers} writers")
            rows.append(await _throughput(http, writers))
    return [*rows, Row("memory at the end", server.resident, "MiB")]


async def _rows(
    name: str, server: Server, http: httpx2.AsyncClient, ask: Ask, turns: int, count: int, bare: float
) -> list[Row]:
    """Alone: times, and the CPU of the server's process, which holds on a busy machine too."""
    await _alone(http, ask, range(WARM_TURNS))
    begun = server.cpu
    seconds = await _alone(http, ask, range(WARM_TURNS, WARM_TURNS + turns))
    spent = Row(f"{name}, CPU of the server", (server.cpu - begun) / turns * 1000, "ms", note="a question")
    return [*_times(name, seconds, count, bare), spent]


def _times(name: str, seconds: Sequence[float], count: int, bare: float) -> Iterator[Row]:
    goal = GOALS[name][count >= LARGE]
    for share in (0.5, 0.95, 0.99):
        found = percentile(seconds, share) * 1000
        against = {"baseline": bare * 1000, "against": "bare query"} if share == 0.5 else {}
        yield Row(f"{name}, p{share * 100:.0f}", found, "ms", goal if share == 0.95 else None, **against)  # type: ignore[arg-type]


def _paced(name: str, seconds: Sequence[float], count: int) -> Row:
    goal = GOALS[name][count >= LARGE] if name not in ALONE else None
    return Row(f"{name}, {CLIENTS} clients, p95", percentile(seconds, 0.95) * 1000, "ms", goal)


async def _alone(http: httpx2.AsyncClient, ask: Ask, turns: range) -> list[float]:
    """One after the other."""
    return [await _timed(http, ask, turn) for turn in turns]


async def _together(http: httpx2.AsyncClient, ask: Ask) -> list[float]:
    async def client(number: int) -> list[float]:
        await asyncio.sleep(PAUSE_SECONDS * number / CLIENTS)
        found = []
        for turn in range(READS // CLIENTS):
            found.append(await _timed(http, ask, number * 1000 + turn))
            await asyncio.sleep(PAUSE_SECONDS)
        return found

    return [one for found in await asyncio.gather(*map(client, range(CLIENTS))) for one in found]


async def _timed(http: httpx2.AsyncClient, ask: Ask, turn: int) -> float:
    begun = time.perf_counter()
    answer = await ask(http, turn)
    spent = time.perf_counter() - begun
    answer.raise_for_status()
    return spent


async def _throughput(http: httpx2.AsyncClient, writers: int) -> Row:
    """Batches of 100, each writer on chains of its own, as many as fit into the time."""
    end, begun = time.monotonic() + WRITE_SECONDS, time.monotonic()

    async def write() -> int:
        done = 0
        while time.monotonic() < end:
            name = str(uuid4())
            body = [_event(name) for _ in range(EVENTS_IN_A_BATCH)]
            (await http.post(f"{API}/audit/events/batch", json=body)).raise_for_status()
            done += 1
        return done

    total = sum(await asyncio.gather(*(write() for _ in range(writers))))
    pace = total / (time.monotonic() - begun)
    note = f"{pace * EVENTS_IN_A_BATCH:.0f} events a second"
    return Row(f"batches of {EVENTS_IN_A_BATCH} a second, {writers} writers", pace, "/s", note=note)


async def _bare(url: str) -> float:
    """Seconds, median: the newest rows of one target from the index, without a service around."""
    database = open_database(url)
    newest = "ORDER BY event_ts DESC, event_id DESC LIMIT 51"
    wanted = text(f"SELECT event_ts, event_id FROM audit_events WHERE target_key = :target {newest}")
    seconds = []

    def work(connection: Connection) -> None:
        for turn in range(READS):
            begun = time.perf_counter()
            connection.execute(wanted, {"target": trail.target_of(_busy(turn))}).all()
            seconds.append(time.perf_counter() - begun)

    await database.read(work)
    await database.close()
    return percentile(seconds, 0.5)


async def _catalogue(http: httpx2.AsyncClient, workflows: int = WORKFLOWS) -> list[str]:
    description = {"what": "Does it", "whenToUse": "When it helps"}
    for number in range(ACTION_TYPES):
        body = {"name": f"Action{number}", "description": description, "registeredBy": "bench"}
        (await http.post(f"{API}/action-types", json=body)).raise_for_status()

    async def register(numbers: range) -> list[str]:
        answers = [await http.post(f"{API}/workflows", json={"content": _content(n, description)}) for n in numbers]
        return [str(answer.raise_for_status().json()["workflowId"]) for answer in answers]

    lanes = (register(range(first, workflows, LANES)) for first in range(LANES))
    return [name for found in await asyncio.gather(*lanes) for name in found]


def _content(number: int, description: dict[str, str]) -> str:
    labels = {"severity": ["*"], "component": ["*"], "environment": ["*"], "priority": "*"}
    name = f"workflow-{number}"
    spec = {
        "version": "1.0.0",
        "actionType": f"Action{number % ACTION_TYPES}",
        "description": description,
        "labels": labels,
        "parameters": [{"name": "TARGET_NAME", "type": "string", "description": "Name", "required": True}],
        "execution": {"engine": "job", "bundle": f"registry.example.local/{name}@sha256:{DIGEST}"},
    }
    head = {"apiVersion": "kubernaut.ai/v1alpha1", "kind": "RemediationWorkflow", "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec}, sort_keys=True, separators=(",", ":"))
