"""A real Prometheus and a real Loki, each with what one small case left behind.

All of it happened on one day that is long past, so that answers are the same whenever they are asked for.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from hack.packages import unpacked
from hack.ports import free_port
from hack.tools import build

NOW = datetime(2025, 11, 22, 12, 0, tzinfo=UTC)
BEGIN = NOW - timedelta(hours=2)
READY_SECONDS = 120
FOREIGN = "4711"
"""Value that only the other tenant's series have; it may turn up nowhere."""
CANARY = "hunter2-canary-4f6e"


@contextmanager
def running(command: list[str], ready: str, folder: Path) -> Iterator[None]:
    """A server from start to end; one that dies or never gets ready fails with the tail of its log."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        _wait(process, ready, log)
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(ready, timeout=2, trust_env=False).status_code == 200:
                return
        time.sleep(0.2)
    raise RuntimeError(f"{process.args!r} is not ready:\n{log.read_text(errors='replace')[-2000:]}")


# --- Prometheus -----------------------------------------------------------------------------------------------------

RULES = """
groups:
  - name: shop
    interval: 1s
    rules:
      - {alert: ShopDown, expr: vector(1), labels: {namespace: shop, severity: high}}
      - {alert: OtherDown, expr: vector(1), labels: {namespace: other-canary}}
      - {alert: ErrorsHigh, expr: 'rate(http_requests_total{code="500"}[5m]) > 1'}
      - {alert: OtherErrors, expr: 'http_requests_total{namespace="other"} > 1'}
      - {record: 'job:secrets:count', expr: count(kube_secret_info)}
"""


def series() -> dict[str, list[float]]:
    """Samples of each series, one every 30 s."""
    steps = range(241)
    return {
        'http_requests_total{namespace="shop",pod="checkout-1",code="200"}': [10.0 * n for n in steps],
        'http_requests_total{namespace="shop",pod="checkout-1",code="500"}': [2.0 * max(0, n - 120) for n in steps],
        'http_requests_total{namespace="pay",pod="pay-1",code="200"}': [7.0 * n for n in steps],
        f'http_requests_total{{namespace="other",pod="x",code="{FOREIGN}"}}': [float(FOREIGN)] * 241,
        f'other_only_{FOREIGN}_total{{namespace="other"}}': [float(FOREIGN)] * 241,
        f'node_tenant:cpu:sum{{namespace="other",mark="{FOREIGN}"}}': [float(FOREIGN)] * 241,
        'node_load1{instance="worker-1"}': [0.5] * 241,
        f'kube_secret_info{{namespace="shop",secret="{CANARY}"}}': [1.0] * 241,
        f'build_info{{namespace="shop",token="{CANARY}",version="1.4"}}': [1.0] * 241,
        **run_of_checkout(),
        **{f'many{{namespace="shop",number="{n:04}",filler="{"x" * 60}"}}': [float(n)] for n in range(600)},
    }


RAN = NOW - timedelta(minutes=30)
"""When a workflow changed the StatefulSet checkout of the till: from then on it needs less of everything."""


def run_of_checkout() -> dict[str, list[float]]:
    """Cores 0.95 to 0.3, bytes 512 to 128, answers within half a second and then within a tenth."""
    changed, steps = 180, range(241)
    pod = 'namespace="till",pod="checkout-1"'
    within = {"0.1": True, "0.5": False, "+Inf": False}
    buckets = {
        f'http_request_duration_seconds_bucket{{{pod},le="{le}"}}': [
            10.0 * (max(0, n - changed) if only_after else n) for n in steps
        ]
        for le, only_after in within.items()
    }
    cores = [28.5 * min(n, changed) + 9.0 * max(0, n - changed) for n in steps]
    return {
        f'container_cpu_usage_seconds_total{{{pod},container="app"}}': cores,
        f'container_memory_working_set_bytes{{{pod},container="app"}}': [512.0 if n < changed else 128 for n in steps],
        f'container_memory_working_set_bytes{{namespace="other",pod="checkout-1",container="app",mark="{FOREIGN}"}}': [
            float(FOREIGN)
        ]
        * 241,
        f'http_requests_total{{{pod},code="200"}}': [10.0 * n for n in steps],
        f'http_requests_total{{{pod},code="500"}}': [2.0 * max(0, n - 120) for n in steps],
        **buckets,
    }


def openmetrics() -> str:
    """In the form from which blocks are made: all samples of a metric together, in time order."""
    begin, lines, metric = int(BEGIN.timestamp()), [], ""
    for name, samples in sorted(series().items()):
        if (own := name.partition("{")[0]) != metric:
            metric = own
            lines.append(f"# TYPE {metric} unknown")
        at = int(NOW.timestamp()) if len(samples) == 1 else begin
        lines += [f"{name} {value} {at + 30 * number}" for number, value in enumerate(samples)]
    return "\n".join([*lines, "# EOF", ""])


@contextmanager
def prometheus(folder: Path, port: int = 0) -> Iterator[str]:
    """Base URL of a Prometheus that holds the series and scrapes nothing; on a free port unless told."""
    programs = {name: str(unpacked("prometheus", name)) for name in ("prometheus", "promtool")}
    (folder / "series.txt").write_text(openmetrics())
    (folder / "rules.yml").write_text(RULES)
    (folder / "prometheus.yml").write_text("rule_files: [rules.yml]\n")
    made = [programs["promtool"], "tsdb", "create-blocks-from", "openmetrics", "series.txt", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True, timeout=120)
    url = f"http://127.0.0.1:{port or free_port()}"
    command = [
        programs["prometheus"],
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={url.removeprefix('http://')}",
        "--query.max-samples=5000",
    ]
    with running(command, f"{url}/-/ready", folder):
        yield url


# --- Alertmanager ---------------------------------------------------------------------------------------------------


@contextmanager
def alertmanager(folder: Path, port: int = 0) -> Iterator[str]:
    """Base URL of an Alertmanager that holds no alert and tells nobody; on a free port unless told."""
    (folder / "alertmanager.yml").write_text("{route: {receiver: nobody}, receivers: [{name: nobody}]}")
    address = f"127.0.0.1:{port or free_port()}"
    command = [
        *at_home(unpacked("prometheus-alertmanager", "prometheus-alertmanager")),
        "--config.file=alertmanager.yml",
        "--storage.path=alerts",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with running(command, f"http://{address}/-/ready", folder):
        yield f"http://{address}"


def at_home(program: Path) -> list[str]:
    """The program where it finds the templates that its package would install; it looks for them nowhere else."""
    if Path("/usr/share/prometheus/alertmanager/default.tmpl").exists():
        return [str(program)]
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    script = 'mount --bind "$0" /usr/share && exec "$@"'
    return [*alone, "sh", "-c", script, str(program.parents[1] / "share"), str(program)]


# --- Loki -----------------------------------------------------------------------------------------------------------

LOKI = """
auth_enabled: false
server: {http_listen_address: 127.0.0.1, http_listen_port: HTTP, grpc_listen_address: 127.0.0.1, grpc_listen_port: GRPC,
         log_level: warn}
common:
  instance_addr: 127.0.0.1
  path_prefix: data
  replication_factor: 1
  ring: {kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: data/chunks, rules_directory: data/rules}}
schema_config:
  configs: [{from: "2024-01-01", store: tsdb, object_store: filesystem, schema: v13,
             index: {prefix: index_, period: 24h}}]
limits_config: {reject_old_samples: false, max_query_length: 721h, discover_service_name: []}
querier: {query_ingesters_within: 0s}
analytics: {reporting_enabled: false}
"""


def streams() -> list[dict[str, Any]]:
    """What was written to the log in the last ten minutes, newest last."""
    begin = int((NOW - timedelta(minutes=10)).timestamp()) * 1_000_000_000

    def told(labels: dict[str, str], text: str, count: int) -> dict[str, Any]:
        lines = [[str(begin + n * 1_000_000_000 + 7), text.format(n=n)] for n in range(count)]
        return {"stream": labels, "values": lines}

    return [
        told({"namespace": "shop", "app": "checkout", "pod": "checkout-1"}, "level=info order={n} done", 300),
        told({"namespace": "shop", "app": "checkout", "pod": "checkout-2"}, "level=error {{order {n}}} refused", 5),
        told({"namespace": "shop", "app": "auth", "pod": "auth-1"}, f"login password={CANARY} user={{n}}", 2),
        told({"namespace": "other", "app": "checkout", "pod": "x"}, f"level=error secret-of-other {FOREIGN} {{n}}", 5),
    ]


@contextmanager
def loki(folder: Path) -> Iterator[str]:
    """Base URL of a Loki that holds the streams."""
    binary = build(["loki"]) / "loki"
    port = free_port()
    config = LOKI.replace("HTTP", str(port)).replace("GRPC", str(free_port()))
    (folder / "loki.yaml").write_text(config)
    url = f"http://127.0.0.1:{port}"
    with running([str(binary), "-config.file=loki.yaml", "-target=all"], f"{url}/ready", folder):
        pushed = httpx2.post(f"{url}/loki/api/v1/push", json={"streams": streams()}, timeout=30, trust_env=False)
        if pushed.status_code != 204:
            raise RuntimeError(f"Loki takes no lines: {pushed.status_code} {pushed.text[:500]}")
        _flush(url)
        yield url


def _flush(url: str) -> None:
    """Lines that are older than an hour or so are found only once their chunks are stored."""
    httpx2.post(f"{url}/flush", timeout=30, trust_env=False).raise_for_status()
    wanted = sum(len(stream["values"]) for stream in streams())
    window = {"start": int((NOW - timedelta(hours=1)).timestamp()) * 10**9, "end": int(NOW.timestamp()) * 10**9}
    question: dict[str, Any] = {"query": '{namespace=~".+"}', "limit": 5000, **window}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = httpx2.get(f"{url}/loki/api/v1/query_range", params=question, timeout=30, trust_env=False).json()
        if sum(len(stream["values"]) for stream in told["data"]["result"]) == wanted:
            return
        time.sleep(0.5)
    raise RuntimeError("Loki does not find the lines that it took")
