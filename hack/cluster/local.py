"""Bringing the cluster of this checkout up and down; `up` says what must run, the parts know how.

Both commands may be repeated, interrupted and run after any program was killed: `up` starts what is missing or out of
date and leaves the rest alone, `down` removes all that is left, whatever that is.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack import HackError
from hack.cache import locked
from hack.cluster import controlplane, metrics, node, simulated, volumes
from hack.cluster.audit import audit_log
from hack.cluster.certificates import Subject
from hack.cluster.site import ADMIN, Site
from hack.cluster.state import (
    Identity,
    Size,
    choose_identity,
    cluster_folder,
    cluster_id,
    clusters_folder,
    load_identity,
    save_identity,
    with_free_ports,
    write_atomically,
)
from hack.images import Image, build_images
from hack.tools import bin_folder, build

LOCK_SECONDS = 30 * 60
"""Longer than the longest `up`, which builds everything."""

TOOLS_FOR: Mapping[Size, Sequence[str]] = {
    Size.CONTROL_PLANE: controlplane.TOOLS,
    Size.SIMULATED: simulated.TOOLS,
    Size.NODE: node.TOOLS,
    Size.REAL: metrics.TOOLS,
}


@dataclass(frozen=True)
class Cluster:
    """A running cluster, as its users see it."""

    name: str
    size: Size
    kubeconfig: Path
    """The admin's; whatever needs less should ask for a service account's token."""
    server: str
    """The API server's address on this machine."""
    certificate_authority: Path
    bin: Path
    """Folder of the binaries: kubectl, helm, opa and the cluster's own."""
    logs: Path
    host_address: str
    """The machine as pods reach it (sizes node and real)."""

    @property
    def audit_log(self) -> Path:
        """What service accounts asked of the API server; full files stand beside it."""
        return audit_log(self.logs.parent)

    def kill(self, program: str) -> None:
        """Kill one program of the cluster the hard way, for tests of faults; `up` starts it again."""
        _site(self.name).processes.stop(program)


def up(size: Size = Size.CONTROL_PLANE, *, name: str = "main", simulated_nodes: int | None = None) -> Cluster:
    """Have a cluster of at least that size running and ready; what is already there stays as it is.

    Simulated nodes are three in size simulated and none beside a real one, unless a number is given.
    """
    with _held(name):
        site = _prepare(name)
        size = max(size, _recorded_size(site))
        if size >= Size.NODE:
            node.prepare_machine(site)
        build(tool for step in Size if step <= size for tool in TOOLS_FOR[step])
        write_atomically(site.folder / "size", size.word)
        _ensure(site, size, simulated_nodes)
        return _cluster(site, size)


def down(*, name: str = "main") -> bool:
    """Stop it and remove every trace but the cached binaries; says whether there was anything."""
    with _held(name):
        folder = cluster_folder(name)
        if not folder.exists():
            return False
        if load_identity(folder):
            _stop_everything(_site(name))
        shutil.rmtree(folder)
    return True


def load_images(names: Iterable[str], *, name: str = "main") -> list[Image]:
    """Build these images of ours and put them into the real node's store; pods may use them by digest."""
    site = _site(name)
    images = build_images(names)
    for image in images:
        node.load_image(site, image)
    return images


def offer_volume(*, name: str = "main") -> None:
    """Lay one empty volume ready on the real node, for the first claim that names no class."""
    volumes.offer_volume(_site(name))


def person(user: str, *groups: str, name: str = "main") -> Path:
    """The kubeconfig of somebody with a certificate of their own, which says their groups; they may nothing yet."""
    return _site(name).kubeconfig(Subject("-".join(("person", user, *groups)), user, groups=groups))


def find(*, name: str = "main") -> Cluster | None:
    """The cluster, if one was brought up, running or not."""
    folder = cluster_folder(name)
    if not load_identity(folder):
        return None
    site = _site(name)
    return _cluster(site, _recorded_size(site))


def is_ready(*, name: str = "main") -> bool:
    """Whether every program of it runs and its API server answers."""
    return not missing(name=name) and _site(name).answers("kube-apiserver", "/readyz")


def missing(*, name: str = "main") -> list[str]:
    """The programs that should run and do not."""
    processes = _site(name).processes
    return [program for program in processes.names() if not processes.is_running(program)]


def _ensure(site: Site, size: Size, simulated_nodes: int | None) -> None:
    controlplane.ensure_control_plane(site, exposed=size >= Size.NODE)
    if size >= Size.SIMULATED:
        simulated.ensure_scheduler(site)
    if count := _simulated_nodes(site, size, simulated_nodes):
        build(simulated.NODE_TOOLS)
        simulated.ensure_simulated_nodes(site, count, beside_real=size >= Size.NODE)
    if size >= Size.NODE:
        node.ensure_node(site)
    if size >= Size.REAL:
        metrics.ensure_metrics(site)


def _simulated_nodes(site: Site, size: Size, asked: int | None) -> int:
    """How many there shall be: what is asked now, else what was asked before, else the default of the size."""
    path = site.folder / "simulated-nodes"
    if asked is None and path.exists():
        return int(path.read_text())
    default = simulated.DEFAULT_NODES if size == Size.SIMULATED else 0
    count = default if asked is None else asked
    if count:
        write_atomically(path, str(count))
    return count


def _prepare(name: str) -> Site:
    folder = cluster_folder(name)
    identity = load_identity(folder) or choose_identity(name)
    if not _anything_runs(folder, identity):
        identity = with_free_ports(identity)
    save_identity(folder, identity)
    return Site(folder, identity, bin_folder())


def _anything_runs(folder: Path, identity: Identity) -> bool:
    processes = Site(folder, identity, bin_folder()).processes
    return any(processes.is_running(program) for program in processes.names())


def _stop_everything(site: Site) -> None:
    """In any order, for each is killed; the node's own walls take everything inside with them."""
    for program in site.processes.names():
        site.processes.stop(program)
    if _recorded_size(site) >= Size.NODE:
        node.remove_node(site)


def _site(name: str) -> Site:
    folder = cluster_folder(name)
    identity = load_identity(folder)
    if not identity:
        raise HackError(f"there is no cluster named {name} in this checkout: bring it up first")
    return Site(folder, identity, bin_folder())


def _recorded_size(site: Site) -> Size:
    path = site.folder / "size"
    return Size.from_word(path.read_text()) if path.exists() else Size.CONTROL_PLANE


def _cluster(site: Site, size: Size) -> Cluster:
    return Cluster(
        name=site.identity.name,
        size=size,
        kubeconfig=site.kubeconfig(ADMIN),
        server=site.server,
        certificate_authority=site.authority.certificate,
        bin=site.bin,
        logs=site.folder / "logs",
        host_address=str(site.identity.host_address),
    )


@contextmanager
def _held(name: str) -> Iterator[None]:
    """One command at a time per cluster; the lock stands beside the folder, which `down` removes."""
    with locked(clusters_folder() / f".{cluster_id(name)}.lock", seconds=LOCK_SECONDS):
        yield
