"""The release as users have it, on a real node: how large its image is, how long it takes to start, what its pod holds.

Installed as `make demo` does it: images of our own, the chart through Helm, no model. The baseline is a pod of the same
image that imports kopf with the client beside it and does nothing more.
"""

from __future__ import annotations

import gzip
import json
import os
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from kubernetes import client, config

from benchmarks import container
from benchmarks.container import Container, Memory
from benchmarks.ground import Ground, Object, namespace_of, until
from benchmarks.load import names, percentile
from benchmarks.report import CASE_MEMORY_GOAL, IDLE_MEMORY_GOAL, MEGABYTE, READY_GOAL, Row, median
from benchmarks.watching import cpu_seconds
from hack import HackError
from hack.cluster.provider import provider
from hack.cluster.state import Size
from hack.demo.release import RELEASE, ReleaseStage, install_release, load_images
from hack.demo.stage import NAMESPACE, folder
from hack.images import RECIPES, TAG, Image, layers

CLUSTER: Final = "bench-install"
STARTS: Final = 5
CASES: Final = 20
REST_SECONDS: Final = 45.0
"""After a start, before what it holds at rest is looked at; one resync lies within."""
SETTLE_SECONDS: Final = 15.0
"""After the last request was opened."""
LOOKS: Final = 5
LOOK_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 240.0
IMAGE_GOAL: Final = 85.0
"""Millions of bytes, compressed."""
LEVEL: Final = 6
MILLION: Final = 1_000_000
ZIPPED: Final = "+gzip"
READY_WORDS: Final = "operator is ready"
BARE: Final = "bench-bare"
PROGRAM: Final = """
import time
from datetime import UTC, datetime
import kopf, kubernetes.aio
print(datetime.now(UTC).isoformat(), flush=True)
time.sleep(86400)
"""
HUNGRY: Final = "dd if=/dev/zero of=/dev/null bs=48M count=1 2>/dev/null; exit $?"
"""Loads more than its limit, and is killed for it."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Start:
    """One start; seconds from the start of the container."""

    told: float
    """Until the pod's status says Ready, in whole seconds; not of the bare pod, which nobody probes."""
    logged: float
    """Until its log says that it is up."""
    cpu: float
    """Of all its threads by then; on a machine that others use too it says most."""


def sections(say: Say) -> Iterator[tuple[str, list[Row]]]:
    """The image, the starts, the memory."""
    if os.geteuid():
        raise HackError("a real node needs root")
    say("bringing up a real node, building images")
    with _raised() as stage:
        images = load_images(CLUSTER)
        yield "The operator's image", list(_size(images["operator"]))
        say("installing the chart through Helm")
        install_release(stage, images, {"provider": "none"})
        yield from _pods(stage, images, say)


@contextmanager
def _raised() -> Iterator[ReleaseStage]:
    """A node of the benchmark's own; it goes with the block."""
    provider().down(name=CLUSTER)
    try:
        yield ReleaseStage(provider().up(Size.REAL, name=CLUSTER), folder(CLUSTER))
    finally:
        provider().down(name=CLUSTER)


def _pods(stage: ReleaseStage, images: dict[str, Image], say: Say) -> Iterator[tuple[str, list[Row]]]:
    say(f"at rest after the first start, {REST_SECONDS:.0f} s")
    fresh = _at_rest(_operator(stage))
    bare, starts = [], []
    for number in range(STARTS):
        say(f"start {number + 1} of {STARTS}, and of a bare pod")
        bare.append(_started(stage, _bare(stage, images["operator"]), ""))
        starts.append(_started(stage, _started_again(stage), READY_WORDS))
    yield f"{STARTS} starts of its pod", list(_of_starts(starts, bare))
    say(f"at rest again, {REST_SECONDS:.0f} s")
    plain, idle = _at_rest(_container(stage, BARE)), _at_rest(_operator(stage))
    say(f"{CASES} cases at once, each of a workload that is killed for its memory")
    looks, waiting = _with_cases(stage, images["busybox"], _operator(stage))
    yield "Memory of its container", list(_of_memory(fresh, idle, looks, waiting, plain))


# --- the image --------------------------------------------------------------------------------------------------


def _size(image: Image) -> Iterator[Row]:
    """It has no base: nothing is left of the Debian that its interpreter was taken from, which is the baseline."""
    make = RECIPES["operator"].base
    base = _zipped(make().open("rb")) if make else None
    small, large = _compressed(image.archive) / MILLION, sum(map(_unpacked, layers(image.archive))) / MILLION
    beside = base / MILLION if base else None
    yield Row("as a registry holds it, compressed", small, "MB", IMAGE_GOAL, baseline=beside, against="base alone")
    yield Row("unpacked", large, "MB")


def _compressed(archive: Path) -> int:
    """Bytes of all layers as they are sent, those that are not compressed as a registry's client would."""
    with tarfile.open(archive) as found:

        def read(name: str) -> IO[bytes]:
            member = found.extractfile(name)
            if member is None:
                raise HackError(f"{archive} holds no {name}")
            return member

        (manifest,) = json.load(read("index.json"))["manifests"]
        held = json.load(read(_blob(manifest["digest"])))["layers"]
        return sum(
            one["size"] if one["mediaType"].endswith(ZIPPED) else _zipped(read(_blob(one["digest"]))) for one in held
        )


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _zipped(source: IO[bytes]) -> int:
    with source, tempfile.TemporaryFile() as target:
        with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=LEVEL) as packed:
            while part := source.read(MEGABYTE):
                packed.write(part)
        return target.tell()


def _unpacked(layer: tarfile.TarFile) -> int:
    return sum(member.size for member in layer if member.isfile())


# --- starts -----------------------------------------------------------------------------------------------------


def _started(stage: ReleaseStage, pod: Object, words: str) -> Start:
    """How long this start took; the log's line is the first with these words."""
    name, status = pod["metadata"]["name"], _status_of(pod)
    process = container.find(status["containerID"])
    logged: list[str] = []

    def told() -> bool:
        lines = stage.kubectl("logs", name, "-c", status["name"], "-n", NAMESPACE, check=False).splitlines()
        logged[:] = [line for line in lines if words in line][:1]
        return bool(logged)

    until(told, f"{name} to say that it is up")
    spent = cpu_seconds(process.pid)
    at = json.loads(logged[0])["timestamp"] if words else logged[0]
    ready = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")["lastTransitionTime"]
    whole = _moment(ready) - _moment(status["state"]["running"]["startedAt"])
    return Start(whole, _moment(at) - process.begun, spent)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _of_starts(starts: Sequence[Start], bare: Sequence[Start]) -> Iterator[Row]:
    told, logged, plain = [one.told for one in starts], [one.logged for one in starts], [one.logged for one in bare]
    for share in (0.5, 0.95):
        yield Row(f"container start to Ready, p{share * 100:.0f}", percentile(told, share), "s", READY_GOAL)
    for share in (0.5, 0.95):
        mine, other = percentile(logged, share), percentile(plain, share)
        yield Row(
            f"container start to ready in its log, p{share * 100:.0f}",
            mine,
            "s",
            READY_GOAL,
            baseline=other,
            against="kopf imported",
        )
    mine, other = (median(one.cpu for one in found) for found in (starts, bare))
    yield Row("CPU of a start, p50", mine, "s", baseline=other, against="kopf imported")


def _started_again(stage: ReleaseStage) -> Object:
    """Delete the operator's pod; gives the one in its place, ready."""
    old = _operator_pod(stage)["metadata"]["name"]
    stage.kubectl("delete", "pod", old, "-n", NAMESPACE, "--timeout=60s", seconds=90)
    until(lambda: _ready(_operator_pod(stage)), "the operator's pod to be ready", WAIT_SECONDS)
    return _operator_pod(stage)


def _bare(stage: ReleaseStage, image: Image) -> Object:
    """A new bare pod, running; an earlier one goes."""
    stage.kubectl("delete", "pod", BARE, "-n", NAMESPACE, "--ignore-not-found", "--timeout=60s", seconds=90)
    secure = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    one = {"name": "bare", "image": image.pinned, "imagePullPolicy": "Never", "securityContext": secure}
    one["command"] = ["/opt/inquest/bin/python", "-c", PROGRAM]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": BARE, "namespace": NAMESPACE}}
    spec = {"containers": [one], "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    stage.kubectl("apply", "-f", "-", stdin=json.dumps(pod | {"spec": spec}))
    until(lambda: _ready(stage.read("pod", BARE)), "the bare pod to run", WAIT_SECONDS)
    return stage.read("pod", BARE)


def _operator_pod(stage: ReleaseStage) -> Object:
    """The newest; empty while there is none."""
    words = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/name=inquest"
    found = json.loads(stage.kubectl("get", "pods", f"--selector={words}", "-n", NAMESPACE, "-o", "json"))["items"]
    return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default={})


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _status_of(pod: Object) -> Object:
    """Of the container that is measured: the operator's, or a pod's only one."""
    found: list[Object] = pod["status"]["containerStatuses"]
    return next((one for one in found if one["name"] == "operator"), found[0])


# --- memory -----------------------------------------------------------------------------------------------------


def _operator(stage: ReleaseStage) -> Container:
    return container.find(_status_of(_operator_pod(stage))["containerID"])


def _container(stage: ReleaseStage, pod: str) -> Container:
    return container.find(_status_of(stage.read("pod", pod))["containerID"])


def _at_rest(one: Container) -> Memory:
    """The median of some looks, after it has settled."""
    time.sleep(max(0.0, one.begun + REST_SECONDS - time.time()))
    looks = []
    for _ in range(LOOKS):
        looks.append(one.memory())
        time.sleep(LOOK_SECONDS)
    return _of(looks, median)


def _of(looks: Sequence[Memory], choose: Callable[[list[float]], float]) -> Memory:
    columns = ([getattr(one, name) for one in looks] for name in ("working_set", "resident", "anonymous"))
    return Memory(*(int(choose(list(column))) for column in columns))


def _with_cases(stage: ReleaseStage, image: Image, operator: Container) -> tuple[Memory, Memory]:
    """The most that it held while the cases ran, and what it holds while all wait for a person."""
    make: Any = config.new_client_from_config
    ground = Ground(stage.cluster, stage.folder, make(str(stage.cluster.kubeconfig)))
    cases = names(CASES)
    ground.apply(*map(namespace_of, cases))
    ground.apply(*(_hungry(case, image) for case in cases))
    until(lambda: _killed(ground) >= CASES, "every workload to be killed", WAIT_SECONDS)
    with _looking(operator) as looks:
        for case in cases:
            ground.tell(case)
        until(lambda: _asked(ground, cases) == CASES, "a request for each case", WAIT_SECONDS)
    time.sleep(SETTLE_SECONDS)
    return _of(looks, max), _at_rest(operator)


@contextmanager
def _looking(one: Container) -> Iterator[list[Memory]]:
    """Look again and again while the block runs."""
    looks, stop = [one.memory()], threading.Event()

    def look() -> None:
        while not stop.wait(LOOK_SECONDS):
            looks.append(one.memory())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        stop.set()
        thread.join()


def _hungry(case: str, image: Image) -> Object:
    resources = {"requests": {"memory": "16Mi", "cpu": "10m"}, "limits": {"memory": "32Mi"}}
    app = {"name": "app", "image": f"{image.name}:{TAG}", "imagePullPolicy": "Never", "resources": resources}
    app["command"] = ["/bin/sh", "-c", HUNGRY]
    template = {"metadata": {"labels": {"app": case}}, "spec": {"containers": [app]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": case, "namespace": case},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": case}}, "template": template},
    }


def _killed(ground: Ground) -> int:
    """Workloads that were killed for their memory more than once."""
    core: Any = client.CoreV1Api(ground.api)
    seen = [one for pod in core.list_pod_for_all_namespaces(label_selector="app").items for one in _last(pod)]
    return sum(one.terminated is not None and one.terminated.reason == "OOMKilled" for one in seen)


def _last(pod: Any) -> list[Any]:
    return [one.last_state for one in pod.status.container_statuses or () if one.restart_count]


def _asked(ground: Ground, cases: Sequence[str]) -> int:
    found = ground.listed("remediationapprovalrequests", cases)
    return sum((one.get("status") or {}).get("phase") == "Pending" for one in found)


def _of_memory(fresh: Memory, idle: Memory, peak: Memory, waiting: Memory, plain: Memory) -> Iterator[Row]:
    against = "kopf imported"
    for name, part in (("working set", "working_set"), ("resident", "resident"), ("without files", "anonymous")):
        at_first, at_rest, most, held, other = (
            getattr(one, part) / MEGABYTE for one in (fresh, idle, peak, waiting, plain)
        )
        goal = IDLE_MEMORY_GOAL if part != "anonymous" else None
        yield Row(f"{name}, at rest after the first start", at_first, "MiB", goal, baseline=other, against=against)
        yield Row(f"{name}, at rest", at_rest, "MiB", goal, baseline=other, against=against)
        yield Row(f"{name}, {CASES} cases, at the peak", most, "MiB", baseline=at_rest, against="at rest")
        yield Row(f"{name}, {CASES} requests waiting", held, "MiB", baseline=at_rest, against="at rest")
    grown = (peak.working_set - idle.working_set) / MEGABYTE / CASES
    yield Row("working set of a case", grown, "MiB", CASE_MEMORY_GOAL)
