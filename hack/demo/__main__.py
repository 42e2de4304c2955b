"""The command behind `make demo` and `make demo-down`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from hack import HackError
from hack.cluster.provider import provider
from hack.demo import release
from hack.demo.play import Timetable, fail, play, say
from hack.demo.relay import relayed
from hack.demo.release import ReleaseStage, forget_release, install_release
from hack.demo.stage import (
    NAMESPACE,
    STABILIZATION,
    Stage,
    folder,
    install,
    load_images,
    raise_cluster,
    start_operator,
    stop_operator,
)
from hack.images import build_images
from hack.scripted_model.server import serve

SCRIPT = Path(__file__).resolve().parents[1] / "scripted_model" / "scripts" / "oom.yaml"
CLUSTER_STEP = "cluster and operator: build what is missing, start Kubernetes"


def main(arguments: list[str] | None = None) -> int:
    """0 only if the workload is healthy at the end."""
    parser = argparse.ArgumentParser(prog="make demo")
    parser.add_argument("--model", choices=("none", "scripted", "real"), default=os.environ.get("MODEL", "none"))
    parser.add_argument("--run", choices=("helm", "host"), default=os.environ.get("RUN", "helm"))
    parser.add_argument("--approve", choices=("yes", "no"), default="no", type=str.lower)
    parser.add_argument("--cluster", default="main", help="another name is another cluster of this checkout")
    parser.add_argument("--down", action="store_true")
    options = parser.parse_args(arguments)
    try:
        if options.down:
            return down(options.cluster)
        act_out = through_helm if options.run == "helm" else beside_the_cluster
        return act_out(options.model, options.cluster, approve=options.approve == "yes")
    except HackError as error:
        return fail(error)


def through_helm(kind: str, name: str, *, approve: bool) -> int:
    """As users install it: the operator is a pod of the chart. Everything is left up."""
    times = Timetable()
    with times.preparation(CLUSTER_STEP), ThreadPoolExecutor(1) as beside:
        # It needs nothing that is compiled, and waits for packages for a part of its time.
        image = beside.submit(build_images, ["operator"])
        raised = raise_cluster(name)
        stage = ReleaseStage(raised.cluster, raised.folder)
        image.result()
    with model_for_pods(kind, stage) as settings:
        with times.preparation("images, into the node"):
            images = release.load_images(name)
        with times.preparation("what an earlier demo left"):
            forget_release(stage)
            forget_earlier_run(stage)
        with times.preparation("helm install, until the operator is ready"):
            install_release(stage, images, settings)
        say("Installed by Helm; the operator is a pod under the rights of the chart. Its log:")
        say(f"  kubectl logs deployment/inquest -c operator -n {NAMESPACE}")
        say(f"Values of the demo: {stage.folder / 'values.yaml'}")
        return tell(stage, times, approve=approve)


def beside_the_cluster(kind: str, name: str, *, approve: bool) -> int:
    """The quick way while one writes code: the operator is a process of this checkout. Everything is left up."""
    times = Timetable()
    with model(kind) as settings:
        with times.preparation(CLUSTER_STEP):
            stage = raise_cluster(name)
        with times.preparation("images"):
            images = load_images(name)
        with times.preparation("what an earlier demo left"):
            forget_release(stage)
            forget_earlier_run(stage)
        with times.preparation("CRDs, policies, RBAC, catalogue"):
            install(stage, images)
        with times.preparation("operator: start, until ready"):
            start_operator(stage, settings)
        say(f"The operator runs as its own service account; its log: {stage.folder / 'operator.log'}")
        return tell(stage, times, approve=approve)


def tell(stage: Stage, times: Timetable, *, approve: bool) -> int:
    """Play the case and say how it went."""
    say(f"Settings of the demo: a stabilisation window of {STABILIZATION}, everything else as installed.")
    idle, before = resident_megabytes(stage), traffic(stage)
    healthy = play(stage, times, approve=approve)
    times.show()
    figures(stage, idle, before)
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
def model(kind: str, host: str = "127.0.0.1") -> Iterator[Mapping[str, str]]:
    """Settings of the model: none, a script over HTTP on that address, or the one that the environment names."""
    if kind == "none":
        say("No model: detectors and the catalogue give diagnosis and remedy by code alone.")
        yield {"provider": "none"}
    elif kind == "scripted":
        with serve(SCRIPT, host=host) as server:
            say(f"The model is a SCRIPT, not a model: {server.base_url} speaks the OpenAI protocol from {SCRIPT.name}.")
            yield {"provider": "openai", "endpoint": server.base_url, "name": "scripted", "api_key": "not-a-key"}
    else:
        yield _real_model()


@contextmanager
def model_for_pods(kind: str, stage: Stage) -> Iterator[Mapping[str, str]]:
    """The same as pods reach it: a script listens where they see this machine, to a real model leads a relay."""
    host = stage.cluster.host_address
    with model(kind, host) as settings:
        if kind != "real":
            yield settings
            return
        with relayed(host, stage.folder) as proxy:
            yield {**settings, "proxy": proxy}


def _real_model() -> Mapping[str, str]:
    wanted = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "INQUEST_MODEL")
    missing = [name for name in wanted if not os.environ.get(name)]
    if missing:
        raise HackError(f"MODEL=real needs {', '.join(missing)} in the environment")
    endpoint, key, name = (os.environ[name] for name in wanted)
    return {"provider": "openai", "endpoint": endpoint, "name": name, "api_key": key}


def figures(stage: Stage, idle: float, before: Mapping[str, int]) -> None:
    """API traffic of the operator for the case, and its memory."""
    say("")
    spent = {effect: count - before.get(effect, 0) for effect, count in traffic(stage).items()}
    say(f"API requests while the case ran: {spent.get('read', 0)} reads, {spent.get('write', 0)} writes")
    say(f"Operator: {idle:.0f} MB resident when it was ready, {resident_megabytes(stage):.0f} MB at the end")
    for line in stage.operator_log().splitlines():
        if "case closed" in line:
            say(f"  {line}")


def traffic(stage: Stage) -> dict[str, int]:
    """Requests to the API server so far, by effect, from the operator's own metrics."""
    counted: Counter[str] = Counter()
    for sample in samples(stage, "inquest_api_requests_total"):
        counted[sample.labels["effect"]] += int(sample.value)
    return dict(counted)


def resident_megabytes(stage: Stage) -> float:
    """Resident memory of the operator, as it says itself."""
    return next(samples(stage, "process_resident_memory_bytes")).value / 1024**2


def samples(stage: Stage, name: str) -> Iterator[Sample]:
    """What the operator's metrics say under that name."""
    families = text_string_to_metric_families(stage.operator_metrics())
    return (sample for family in families for sample in family.samples if sample.name == name)


def down(name: str) -> int:
    """Stop the operator and the cluster; nothing of ours stays."""
    stop_operator(folder(name))
    say("the demo is gone" if provider().down(name=name) else "there was nothing to take down")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (KeyboardInterrupt, subprocess.TimeoutExpired) as stopped:
        sys.exit(f"stopped: {stopped}")
