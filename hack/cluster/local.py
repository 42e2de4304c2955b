"""Bringing the cluster of this checkout up and down; `up` says what must run, the parts know how.

Both commands may be repeated, interrupted and run after any program was killed: `up` starts what is missing or out of
date and leaves the rest alone, `down` removes all that is left, whatever that is.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack import HackError
from hack.cache import locked
from hack.cluster import controlplane
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
from hack.tools import bin_folder, build

LOCK_SECONDS = 30 * 60
"""Longer than the longest `up`, which builds everything."""

TOOLS_FOR = {
    Size.CONTROL_PLANE: controlplane.TOOLS,
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
    """The machine as pods reach it (size real)."""

    def kill(self, program: str) -> None:
        """Kill one program of the cluster the hard way, for tests of faults; `up` starts it again."""
        _site(self.name).processes.stop(program)


def up(size: Size = Size.CONTROL_PLANE, *, name: str = "main") -> Cluster:
    """Have a cluster of at least that size running and ready; what is already there stays as it is."""
    with _held(name):
        site = _prepare(name)
        size = max(size, _recorded_size(site))
        build(tool for step in Size if step <= size for tool in TOOLS_FOR[step])
        write_atomically(site.folder / "size", size.word)
        controlplane.ensure_control_plane(site, exposed=size >= Size.REAL)
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
    for program in site.processes.names():
        site.processes.stop(program)


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
