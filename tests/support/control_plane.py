"""This worker's real control plane, for tests that have an operator of their own.

The operator watches every namespace and its policies are the cluster's, so workers do not share one. Files run one
after the other on it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

from hack.cluster import local
from hack.tools import build
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE
from tests.support.installing import install
from tests.support.kube import Cluster, Kubectl

CATALOGUE: Final = Path(__file__).resolve().parents[2] / "catalogue"


def cluster_name() -> str:
    """Of this worker's control plane."""
    return f"story-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"


@contextmanager
def real() -> Iterator[Cluster]:
    """With everything installed that the operator needs."""
    name = cluster_name()
    kubeconfig = local.up(name=name).kubeconfig
    found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
    install(found)
    _install_catalogue(found)
    yield found
    if "INQUEST_KEEP_CLUSTER" not in os.environ:
        local.down(name=name)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """This worker's control plane."""
    with real() as found:
        yield found


def _install_catalogue(cluster: Cluster) -> None:
    bodies = []
    for path in sorted(CATALOGUE.glob("*.yaml")):
        for body in yaml.safe_load_all(path.read_text()):
            body["metadata"] |= {} if path.name == "rbac.yaml" else {"namespace": NAMESPACE}
            bodies.append(body)
    cluster.kubectl.apply(*bodies)
    assert EXECUTION_NAMESPACE == "inquest-workflows"
