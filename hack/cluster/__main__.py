"""The command line of the local cluster.

    python -m hack.cluster up --size control-plane|simulated|real
    python -m hack.cluster status | kubeconfig | down
    python -m hack.cluster load-image kubectl busybox

CLUSTER=local, the default, means the cluster built here. CLUSTER=kind means one of kind's, where Docker runs.
CLUSTER=current means whatever KUBECONFIG points to: then `up` only checks that it answers and `down` touches nothing.
Only the local way is exercised by this repository's own tests.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from hack import HackError
from hack.cluster import kind, local
from hack.cluster.provider import provider
from hack.cluster.state import Size
from hack.images import RECIPES
from hack.tools import build

CURRENT_SECONDS = 30


def main(arguments: list[str] | None = None) -> int:
    """The command; every failure is one message and exit code 1."""
    options = _parser().parse_args(arguments)
    try:
        return _command(options.command)(options)
    except HackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.cluster", description="A local Kubernetes cluster.")
    parser.add_argument("command", choices=[*LOCAL_COMMANDS])
    parser.add_argument("images", nargs="*", metavar="IMAGE", help="for load-image: which of images/ to build and load")
    parser.add_argument("--size", choices=[size.word for size in Size], default=Size.CONTROL_PLANE.word)
    parser.add_argument("--name", default="main", help="another name is another cluster of this checkout")
    parser.add_argument(
        "--simulated-nodes", type=int, metavar="N", help="3 in size simulated, 0 in size real unless given"
    )
    return parser


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    chosen = os.environ.get("CLUSTER") or "local"
    every = {"local": LOCAL_COMMANDS, "current": _current_commands(), "kind": KIND_COMMANDS}
    if chosen not in every:
        raise HackError(f"CLUSTER is {chosen}; it may be local, kind or current")
    if name not in every[chosen]:
        raise HackError(f"{name} is not possible with CLUSTER={chosen}")
    return every[chosen][name]


def _up(options: argparse.Namespace) -> int:
    started = time.monotonic()
    size = Size.from_word(options.size)
    cluster = local.up(size, name=options.name, simulated_nodes=options.simulated_nodes)
    return _told(cluster, started)


def _up_kind(options: argparse.Namespace) -> int:
    started = time.monotonic()
    return _told(kind.up(name=options.name), started)


def _told(cluster: local.Cluster, started: float) -> int:
    print(f"cluster {cluster.name} ({cluster.size.word}) is ready after {time.monotonic() - started:.1f} s")
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    was_there = provider().down(name=options.name)
    print(f"cluster {options.name} is gone" if was_there else f"there is no cluster {options.name}")
    return 0


def _status(options: argparse.Namespace) -> int:
    cluster = local.find(name=options.name)
    if not cluster:
        print(f"there is no cluster {options.name}")
        return 1
    dead = local.missing(name=options.name)
    is_ready = local.is_ready(name=options.name)
    print(f"cluster {cluster.name} ({cluster.size.word}) at {cluster.server}: {'ready' if is_ready else 'not ready'}")
    if dead:
        print(f"not running: {', '.join(dead)}")
    return 0 if is_ready else 1


def _kubeconfig(options: argparse.Namespace) -> int:
    cluster = local.find(name=options.name)
    if not cluster:
        raise HackError(f"there is no cluster named {options.name} in this checkout: `make cluster-up` makes it")
    print(cluster.kubeconfig)
    return 0


def _load_image(options: argparse.Namespace) -> int:
    for image in provider().load_images(options.images or RECIPES, name=options.name):
        print(image.pinned)
    return 0


LOCAL_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "up": _up,
    "down": _down,
    "status": _status,
    "kubeconfig": _kubeconfig,
    "load-image": _load_image,
}


def _print_kind(options: argparse.Namespace) -> int:
    print(kind.kubeconfig_of(options.name))
    return 0


KIND_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "up": _up_kind,
    "down": _down,
    "kubeconfig": _print_kind,
    "load-image": _load_image,
}


def _current_commands() -> Mapping[str, Callable[[argparse.Namespace], int]]:
    return {"up": _check_current, "status": _check_current, "down": _leave_current, "kubeconfig": _print_current}


def _current_kubeconfig() -> Path:
    path = Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not path.exists():
        raise HackError(f"CLUSTER=current, but there is no kubeconfig at {path}")
    return path


def _check_current(_: argparse.Namespace) -> int:
    kubectl = build(["kubectl"]) / "kubectl"
    command = [str(kubectl), f"--kubeconfig={_current_kubeconfig()}", "get", "--raw", "/readyz"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=CURRENT_SECONDS, check=False)
    if answer.returncode != 0:
        raise HackError(f"the current cluster does not answer: {answer.stderr.strip()}")
    print("the current cluster is ready")
    return 0


def _leave_current(_: argparse.Namespace) -> int:
    print("CLUSTER=current: nothing was brought up here, so nothing is taken down")
    return 0


def _print_current(_: argparse.Namespace) -> int:
    print(_current_kubeconfig())
    return 0


if __name__ == "__main__":
    sys.exit(main())
