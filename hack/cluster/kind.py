"""The same cluster where Docker runs, by kind: `CLUSTER=kind`. Written by kind's documentation; it was not run by us.

Kind brings names, volumes and a node with a way to the Internet. What is built here, images above all, is built as for
the local cluster, so it is a Linux machine with Docker that this is for. Commands are kind's own; images go into the
node by its `ctr`, since pods name them by digest.
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path

from hack import HackError
from hack.cluster.local import Cluster
from hack.cluster.site import run
from hack.cluster.state import Size, cluster_folder, cluster_id
from hack.images import Image, build_images
from hack.tools import build

CREATE_SECONDS = 15 * 60
"""The image of the node is fetched on the first run."""
READY = "180s"
COMMAND_SECONDS = 300
NETWORK = "kind"
TOOLS = ("kind", "kubectl", "helm", "opa")


def up(size: Size = Size.REAL, *, name: str = "main") -> Cluster:
    """Have it running, with a kubeconfig of its own; kind has one size."""
    folder, binaries = cluster_folder(name), build(TOOLS)
    folder.mkdir(parents=True, exist_ok=True)
    if own_name(name) not in kind("get", "clusters").split():
        kind(*created(name), seconds=CREATE_SECONDS)
    kind("export", "kubeconfig", f"--name={own_name(name)}", f"--kubeconfig={kubeconfig_of(name)}")
    view = run(binaries / "kubectl", f"--kubeconfig={kubeconfig_of(name)}", "config", "view", "--raw", "--output=json")
    entry = json.loads(view)["clusters"][0]["cluster"]
    authority = folder / "ca.crt"
    authority.write_bytes(base64.b64decode(entry["certificate-authority-data"]))
    return Cluster(
        name=name,
        size=size,
        kubeconfig=kubeconfig_of(name),
        server=str(entry["server"]),
        certificate_authority=authority,
        bin=binaries,
        logs=folder / "logs",
        host_address=_host_address(),
    )


def down(*, name: str = "main") -> bool:
    """Delete it; says whether there was one."""
    if own_name(name) not in kind("get", "clusters").split():
        return False
    kind("delete", "cluster", f"--name={own_name(name)}", f"--kubeconfig={kubeconfig_of(name)}")
    shutil.rmtree(cluster_folder(name), ignore_errors=True)
    return True


def load_images(names: Iterable[str], *, name: str = "main") -> list[Image]:
    """Build these images of ours and put them into every node, by name and by name@digest."""
    images, nodes = build_images(names), kind("get", "nodes", f"--name={own_name(name)}").split()
    for node in nodes:
        for image in images:
            _load(node, image)
    return images


def offer_volume(*, name: str = "main") -> None:
    """Nothing to do: kind's own class makes volumes on demand."""


def own_name(name: str) -> str:
    """How kind knows it: by checkout and name, so that two checkouts do not meet."""
    return f"inquest-{cluster_id(name)}"


def created(name: str) -> Sequence[str]:
    """The command that makes it."""
    return ("create", "cluster", f"--name={own_name(name)}", f"--kubeconfig={kubeconfig_of(name)}", f"--wait={READY}")


def kubeconfig_of(name: str) -> Path:
    """The admin's."""
    return cluster_folder(name) / "kind.kubeconfig"


def kind(*arguments: str, seconds: float = COMMAND_SECONDS) -> str:
    """What a command of kind's says."""
    return run(build(["kind"]) / "kind", *arguments, seconds=seconds)


def _load(node: str, image: Image) -> None:
    ctr = ("docker", "exec", "--interactive", node, "ctr", "--namespace=k8s.io", "images")
    with image.archive.open("rb") as archive:
        command = [*ctr, "import", f"--base-name={image.name}", "-"]
        done = subprocess.run(command, stdin=archive, capture_output=True, timeout=COMMAND_SECONDS, check=False)
    if done.returncode != 0:
        raise HackError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace').strip()}")
    for reference in (image.pinned, f"{image.name}:latest"):
        run(*ctr, "tag", "--force", f"{image.name}:local", reference, seconds=COMMAND_SECONDS)


def _host_address() -> str:
    """This machine as the nodes see it: the gateway of their network."""
    told = run("docker", "network", "inspect", NETWORK, "--format={{range .IPAM.Config}}{{.Gateway}} {{end}}")
    for address in told.split():
        if ip_address(address).version == 4:
            return address
    raise HackError(f"Docker's network {NETWORK} has no gateway of version 4: {told}")
