"""The API server in memory in the place of a control plane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.apiserver.install import install, install_catalogue
from tests.support.apiserver.server import ApiServer
from tests.support.kube import Cluster, Kubectl


@contextmanager
def in_memory(folder: Path) -> Iterator[Cluster]:
    """With everything installed that the operator needs; kubectl does not speak to it."""
    with ApiServer().serve() as server:
        install(server)
        install_catalogue(server)
        kubeconfig = server.kubeconfig(folder / "kubeconfig")
        yield Cluster(kubeconfig, Kubectl(Path("kubectl-needs-a-real-server"), kubeconfig), server)
