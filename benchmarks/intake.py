"""The door under load: alerts and specs a second, and how long after its POST a Signal is Accepted.

The operator is the real one, its webhook as anybody reaches it, with a token that the API server reviews; the API
server is real. Every notice is about a workload of its own, so that each becomes a Signal and a case of its own. The
baseline makes the same Signals at the API server itself, before there is an operator.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml
from kubernetes import client, watch

from benchmarks.ground import GROUP, Ground, until
from benchmarks.load import percentile
from benchmarks.process import running
from benchmarks.report import Row
from hack.ports import free_port
from inquest.api.installation import NAMESPACE

COUNT: Final = 100
"""Notices of one row; the crowd of them shares these."""
SENDERS: Final = (1, 20)
PLACE: Final = "bench-intake"
SENDER: Final = "bench-sender"
SIGNALS: Final = f"/apis/{'/'.join(GROUP)}/namespaces/{NAMESPACE}/signals"
PATIENCE_SECONDS: Final = 180.0
NO_MODEL: Final = {"model": {"provider": "none"}, "runner": {"max_concurrent": 1}}
"""What becomes of a case is measured elsewhere: here they wait for their turn."""

Send = Callable[[httpx2.AsyncClient, str], Awaitable[httpx2.Response]]


@dataclass(frozen=True)
class Way:
    """One way in: where it is sent to, and what."""

    name: str
    path: str
    body: Callable[[str], Any]

    async def post(self, to: httpx2.AsyncClient, name: str) -> httpx2.Response:
        """Tell of that workload."""
        return await to.post(self.path, json=self.body(name))


@dataclass
class Watched:
    """When each workload's Signal was first seen as Accepted; seconds of the monotonic clock."""

    accepted: dict[str, float] = field(default_factory=dict)

    def note(self, found: dict[str, Any]) -> None:
        """One version of a Signal."""
        if (found.get("status") or {}).get("phase") == "Accepted":
            self.accepted.setdefault(found["spec"]["target"]["name"], time.monotonic())


@dataclass(frozen=True)
class Told:
    """What was sent in a run: when each was begun, when it was answered, when the last answer came."""

    begun: dict[str, float]
    took: list[float]
    seconds: float


def sections(ground: Ground, say: Callable[[str], None]) -> Iterator[tuple[str, list[Row]]]:
    """One table for each number of senders."""
    _prepare(ground)
    direct = _direct(ground)
    say("the baseline: bare creates, before the operator is there")
    bare = {senders: asyncio.run(_sent(direct, _create, senders)) for senders in SENDERS}
    ground.kubectl("delete", f"--raw={SIGNALS}")
    port = free_port()
    settings = NO_MODEL | {"intake": {"enabled": True, "port": port, "notices_per_minute": 100_000}}
    with running(ground, "intake", "", at_once=1, changes=settings), _watching(ground) as watched:
        door = _door(ground, port)
        for senders in SENDERS:
            rows: list[Row] = []
            for way in WAYS:
                say(f"{way.name}, {senders} at once")
                rows += _of_way(way, asyncio.run(_sent(door, way.post, senders)), bare[senders], watched)
            yield f"Intake, {senders} sender{'s' if senders > 1 else ''} at once", rows


def _of_way(way: Way, told: Told, bare: Told, watched: Watched) -> Iterator[Row]:
    until(lambda: told.begun.keys() <= watched.accepted.keys(), "every Signal to be Accepted", PATIENCE_SECONDS)
    accepted = [watched.accepted[name] - begun for name, begun in told.begun.items()]
    beside = "bare create"
    yield Row(f"{way.name}: taken", COUNT / told.seconds, "/s", baseline=COUNT / bare.seconds, against=beside)
    for share in (0.5, 0.95):
        mine, plain = (1000 * percentile(one.took, share) for one in (told, bare))
        yield Row(f"{way.name}: answered, p{share * 100:.0f}", mine, "ms", baseline=plain, against=beside)
    for share in (0.5, 0.95):
        yield Row(f"{way.name}: POST to Accepted, p{share * 100:.0f}", percentile(accepted, share), "s")


async def _sent(reach: Callable[[], httpx2.AsyncClient], send: Send, senders: int) -> Told:
    """So many senders, each with its next notice as soon as the one before is answered."""
    run, begun, took = secrets.token_hex(3), dict[str, float](), list[float]()
    waiting = iter([f"case-{run}-{number:04}" for number in range(COUNT)])

    async def sender(to: httpx2.AsyncClient) -> None:
        for name in waiting:
            begun[name] = time.monotonic()
            answer = await send(to, name)
            while answer.status_code == 429:
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))
                answer = await send(to, name)
            assert answer.status_code == 201, f"{answer.status_code}: {answer.text[:300]}"
            took.append(time.monotonic() - begun[name])

    first = time.monotonic()
    async with reach() as to:
        await asyncio.gather(*(sender(to) for _ in range(senders)))
    return Told(begun, took, time.monotonic() - first)


async def _create(to: httpx2.AsyncClient, name: str) -> httpx2.Response:
    body = {"apiVersion": "/".join(GROUP), "kind": "Signal", "metadata": {"name": name}, "spec": _spec(name)}
    return await to.post(SIGNALS, json=body)


def _spec(name: str) -> dict[str, Any]:
    return {
        "name": "KubePodCrashLooping",
        "severity": "critical",
        "source": {"type": "Manual"},
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": PLACE},
        "message": f"Pods of {name} restart again and again",
        "firingTime": _now(),
        "labels": {"alertname": "KubePodCrashLooping", "namespace": PLACE, "deployment": name},
    }


def _alert(name: str) -> dict[str, Any]:
    labels = {"alertname": "KubePodCrashLooping", "namespace": PLACE, "deployment": name, "severity": "critical"}
    alert = {"status": "firing", "labels": labels, "startsAt": _now(), "endsAt": "0001-01-01T00:00:00Z"}
    alert["annotations"] = {"summary": f"Pods of {name} restart again and again"}
    alert["generatorURL"] = "http://prometheus.example/graph"
    return {"version": "4", "groupKey": name, "status": "firing", "receiver": "inquest", "alerts": [alert]}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


WAYS: Final = (
    Way("specs", "/api/v1/signals", _spec),
    Way("Alertmanager", "/api/v1/signals/alertmanager", _alert),
)


# --- the ground -----------------------------------------------------------------------------------------------


def _prepare(ground: Ground) -> None:
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "inquest-signal-source"}
    account = {"kind": "ServiceAccount", "name": SENDER, "namespace": NAMESPACE}
    managed = {"inquest.dev/managed": "true", "inquest.dev/benchmark": "case"}
    ground.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE, "labels": managed}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SENDER, "namespace": NAMESPACE}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": SENDER, "namespace": NAMESPACE},
            "subjects": [account],
            "roleRef": role,
        },
    )


def _door(ground: Ground, port: int) -> Callable[[], httpx2.AsyncClient]:
    token = ground.kubectl("create", "token", SENDER, f"--namespace={NAMESPACE}", "--duration=1h").strip()
    headers = {"authorization": f"Bearer {token}"}
    return lambda: httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60.0)


def _direct(ground: Ground) -> Callable[[], httpx2.AsyncClient]:
    """The API server as its administrator."""
    found = yaml.safe_load(ground.cluster.kubeconfig.read_text())
    cluster, user = found["clusters"][0]["cluster"], found["users"][0]["user"]
    folder = ground.folder
    certificate, key = (_pem(folder, user, f"client-{part}") for part in ("certificate", "key"))
    trusted = ssl.create_default_context(cafile=_pem(folder, cluster, "certificate-authority"))
    trusted.load_cert_chain(certificate, key)
    return lambda: httpx2.AsyncClient(base_url=cluster["server"], verify=trusted, timeout=60.0)


def _pem(folder: Path, found: dict[str, str], name: str) -> str:
    if name in found:
        return found[name]
    path = folder / f"{name}.pem"
    path.touch(mode=0o600)
    path.write_bytes(b64decode(found[f"{name}-data"]))
    return str(path)


@contextmanager
def _watching(ground: Ground) -> Iterator[Watched]:
    watched = Watched()
    threading.Thread(target=_follow, args=(ground, watched), daemon=True).start()
    yield watched


def _follow(ground: Ground, watched: Watched) -> None:
    make: Any = watch.Watch
    listing = client.CustomObjectsApi(ground.api).list_namespaced_custom_object
    with suppress(Exception):
        # Whatever ends the watch ends what waits for it by its own time limit, and the cluster's end is one of them.
        for event in make().stream(listing, *GROUP, NAMESPACE, "signals"):
            watched.note(event["object"])
