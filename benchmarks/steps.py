"""Steps that every case takes, in memory, each beside the plainest possible work on the same input.

A ratio says how much more than the plainest possible work on the same input a step costs, so that it means the same on
every machine. Times are medians over repeated runs.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.report import Row
from inquest.api.refs import TargetRef
from inquest.controllers.journal import Draft, Log, Writer, encode, fold
from inquest.core.cluster.hashes import spec_hash
from inquest.core.diagnosis.detectors.registry import detect
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, ObservedObject, digest_of
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redactor import Redactor

RUNS = 7
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
PODS = 50


@dataclass(frozen=True)
class Bench:
    """A step and the plainest work on the same input."""

    name: str
    step: Callable[[], Any]
    against: str
    baseline: Callable[[], Any]


def rows() -> Iterator[Row]:
    """One for each step."""
    for bench in benches():
        yield Row(bench.name, median(bench.step), "ms", baseline=median(bench.baseline), against=bench.against)


def median(work: Callable[[], Any]) -> float:
    """Milliseconds of one run."""
    work()
    return statistics.median(_timed(work) for _ in range(RUNS))


def benches() -> tuple[Bench, ...]:
    """Steps that every case takes."""
    log = "\n".join(
        f"2026-05-04T12:00:{n % 60:02d}Z INFO request {n} from 10.0.0.{n % 250} took 13 ms" for n in range(1500)
    )
    text, shot = json.dumps(pod(0)), snapshot()
    draft = Draft("Snapshot", Redactor().strings({"log": log}), NOW)
    packed = gzip.compress(json.dumps(log).encode(), 6)
    slots = encode(Log("u"), (draft,), Writer("r/1", 1), "ns")
    return (
        Bench(
            "redact a 100 KB log", lambda: Redactor().text(log), "one regex over it", lambda: re.sub(r"\d+", "#", log)
        ),
        Bench(
            "spec hash of a pod", lambda: spec_hash(pod(0)), "json.loads + dumps", lambda: json.dumps(json.loads(text))
        ),
        Bench(
            "detectors over 50 pods",
            lambda: detect(shot),
            "json.dumps of them",
            lambda: [json.dumps(pod(n)) for n in range(PODS)],
        ),
        Bench(
            "one journal slot of 100 KB",
            lambda: encode(Log("u"), (draft,), Writer("r/1", 1), "ns"),
            "gzip of it",
            lambda: gzip.compress(log.encode(), 6),
        ),
        Bench(
            "read that slot",
            lambda: fold("u", slots),
            "gunzip + json.loads",
            lambda: json.loads(gzip.decompress(packed)),
        ),
    )


def pod(number: int) -> dict[str, Any]:
    """A pod that was killed for memory."""
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-05-04T11:59:00Z"}
    container = {"name": "app", "ready": False, "restartCount": 3, "lastState": {"terminated": ended}}
    limits = {"resources": {"limits": {"memory": "32Mi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"app-{number}", "namespace": "shop", "uid": f"u{number}"},
        "spec": {"containers": [{"name": "app", "image": "app:1", **limits}]},
        "status": {"phase": "Running", "containerStatuses": [container]},
    }


def snapshot() -> Snapshot:
    """All of them as one snapshot."""
    found = [json.dumps(pod(number)) for number in range(PODS)]
    evidence = tuple(
        Evidence(f"E{n}", "snapshot", {"read": "pods"}, text, digest_of(text), EvidenceStatus.OK, NOW)
        for n, text in enumerate(found, start=1)
    )
    target = TargetRef(api_version="v1", kind="Pod", name="app-0", namespace="shop")
    objects = tuple(ObservedObject(pod(number), f"E{number + 1}") for number in range(PODS))
    return Snapshot(NOW, target, target, root_verified=True, objects=objects, evidence=evidence)


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000
