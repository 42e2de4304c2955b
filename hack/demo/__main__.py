"""The command behind `make demo` and `make demo-down`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from hack import HackError
from hack.cluster import local
from hack.demo.play import Timetable, fail, play, say
from hack.demo.stage import (
    NAMESPACE,
    STABILIZATION,
    Stage,
    folder,
    install,
    load_images,
    raise_cluster,
    resident_megabytes,
    start_operator,
    stop_operator,
)
from hack.scripted_model import serve

SCRIPT = Path(__file__).resolve().parents[1] / "scripted_model" / "scripts" / "oom.yaml"


def main(arguments: list[str] | None = None) -> int:
    """0 only if the workload is healthy at the end."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--model", choices=("none", "scripted", "real"), default=os.environ.get("MODEL", "none"))
    parser.add_argument("--approve", default="no")
    parser.add_argument("--cluster", default="main", help="another name is another cluster of this checkout")
    parser.add_argument("--down", action="store_true")
    options = parser.parse_args(arguments)
    try:
        if options.down:
            return down(options.cluster)
        return up_and_play(options.model, options.cluster, approve=options.approve.lower() == "yes")
    except HackError as error:
        return fail(error)


def up_and_play(kind: str, name: str, *, approve: bool) -> int:
    """Bring everything up, play, say how it went; everything is left up."""
    times = Timetable()
    with model(kind) as settings:
        with times.step("cluster: build what is missing, start Kubernetes"):
            stage = raise_cluster(name)
        with times.step("images"):
            images = load_images(name)
        forget_earlier_run(stage)
        with times.step("CRDs, policies, RBAC, catalogue"):
            install(stage, images)
        with times.step("operator: start, until ready"):
            process = start_operator(stage, settings)
        idle, before = resident_megabytes(process.pid), traffic(stage)
        say(f"The operator runs as its own service account; its log: {stage.folder / 'operator.log'}")
        say(f"Settings of the demo: a stabilisation window of {STABILIZATION}, everything else as installed.")
        healthy = play(stage, times, approve=approve)
        times.show()
        figures(stage, process.pid, idle, before)
    say("")
    say("checkout is healthy." if healthy else "checkout is NOT healthy.")
    say("Everything is left up: look around with")
    say(f"  export KUBECONFIG={stage.cluster.kubeconfig}")
    say("and take it down with  make demo-down")
    return 0 if healthy else 1


def forget_earlier_run(stage: Stage) -> None:
    """A second demo begins with a workload that is broken again and without the case of the first."""
    stop_operator(stage.folder)
    stage.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--timeout=90s", seconds=120)
    if "signals.inquest.dev" in stage.kubectl("get", "crd", "-o", "name"):
        for wfe in stage.list("wfe"):
            name = wfe["metadata"]["name"]
            stage.kubectl(
                "patch", "wfe", name, "-n", NAMESPACE, "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
            )
        stage.kubectl("delete", "sig,inv,rar,wfe", "--all", "-n", NAMESPACE, "--timeout=60s", seconds=90)
        stage.kubectl("delete", "jobs", "--all", "-n", "inquest-workflows", "--ignore-not-found", seconds=90)
        selector = "app.kubernetes.io/managed-by=inquest"
        stage.kubectl("delete", "leases,configmaps", "-l", selector, "-n", NAMESPACE, seconds=90)
    (stage.folder / "inquest.db").unlink(missing_ok=True)


@contextmanager
def model(kind: str) -> Iterator[Mapping[str, str]]:
    """Settings of the model: none, a script over HTTP, or the one that the environment names."""
    if kind == "none":
        say("No model: detectors and the catalogue give diagnosis and remedy by code alone.")
        yield {"provider": "none"}
    elif kind == "scripted":
        with serve(SCRIPT) as server:
            say(f"The model is a SCRIPT, not a model: {server.base_url} speaks the OpenAI protocol from {SCRIPT.name}.")
            yield {"provider": "openai", "endpoint": server.base_url, "name": "scripted", "api_key": "not-a-key"}
    else:
        yield _real_model()


def _real_model() -> Mapping[str, str]:
    wanted = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "INQUEST_MODEL")
    missing = [name for name in wanted if not os.environ.get(name)]
    if missing:
        raise HackError(f"MODEL=real needs {', '.join(missing)} in the environment")
    endpoint, key, name = (os.environ[name] for name in wanted)
    return {"provider": "openai", "endpoint": endpoint, "name": name, "api_key": key}


def figures(stage: Stage, pid: int, idle: float, before: Mapping[str, int]) -> None:
    """API traffic of the operator for the case, and its memory."""
    say("")
    spent = {effect: count - before.get(effect, 0) for effect, count in traffic(stage).items()}
    say(f"API requests while the case ran: {spent.get('read', 0)} reads, {spent.get('write', 0)} writes")
    say(f"Operator: {idle:.0f} MB resident when it was ready, {resident_megabytes(pid):.0f} MB at the end")
    for line in (stage.folder / "operator.log").read_text(errors="replace").splitlines():
        if "case closed" in line:
            say(f"  {line}")


def traffic(stage: Stage) -> dict[str, int]:
    """Requests to the API server so far, by effect, from the operator's own metrics."""
    port = _metrics_port((stage.folder / "operator.log").read_text(errors="replace"))
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    counted: dict[str, int] = {}
    for line in lines:
        if line.startswith("inquest_api_requests_total{"):
            effect = line.split('effect="', 1)[1].split('"', 1)[0]
            counted[effect] = counted.get(effect, 0) + int(float(line.rsplit(" ", 1)[1]))
    return counted


def _metrics_port(log: str) -> int:
    served = (json.loads(line) for line in log.splitlines() if '"event": "serving"' in line)
    return int(next(served)["metrics"])


def down(name: str) -> int:
    """Stop the operator and the cluster; nothing of ours stays."""
    stop_operator(folder(name))
    say("the demo is gone" if local.down(name=name) else "there was nothing to take down")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, subprocess.TimeoutExpired) as stopped:
        sys.exit(f"stopped: {stopped}")
