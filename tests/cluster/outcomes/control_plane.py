"""This worker's real control plane, which `tests/cluster/story` has on the same worker.

Files run one after the other there, each with an operator of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.cluster import local
from hack.tools import build
from tests.cluster import conftest as tier
from tests.cluster.kube import Cluster, Kubectl
from tests.cluster.story import conftest as story


def cluster_name() -> str:
    """Of this worker's control plane."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return f"story-{worker}" if worker else "outcomes"


@contextmanager
def real() -> Iterator[Cluster]:
    """With everything installed that the operator needs."""
    name = cluster_name()
    kubeconfig = local.up(name=name).kubeconfig
    found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
    tier._install(found)
    story._install_catalogue(found)
    yield found
    if "INQUEST_KEEP_CLUSTER" not in os.environ:
        local.down(name=name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """This worker's control plane."""
    with real() as found:
        yield found
