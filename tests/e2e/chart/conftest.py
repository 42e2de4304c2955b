"""A real node with the images of the product, and the chart installed on it as a user would.

cluster     the running Kubernetes, with the images in its node; it goes with the tests
install     makes a release in a namespace that enforces Pod Security `restricted`; it goes at the end of the test
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from hack.cluster import local
from hack.cluster.state import Size
from hack.images import Image
from hack.rights.judging import Refusal, refused
from hack.rights.known import KNOWN
from hack.rights.standing import Standing
from tests.e2e.chart.chart import CHART, NAMESPACE, Object, helm
from tests.support.kube import Kubectl

CLUSTER = "chart"
EXECUTION: Final = "inquest-workflows"
RESTRICTED: Final = {"pod-security.kubernetes.io/enforce": "restricted"}
WAIT: Final = ("--wait", "--timeout=180s")


@dataclass(frozen=True)
class Site:
    """The cluster as these tests see it."""

    cluster: local.Cluster
    kubectl: Kubectl
    images: Mapping[str, Image]

    def helm(self, *arguments: str, values: Mapping[str, Any] | None = None) -> str:
        """helm as the administrator, in the release's namespace."""
        return helm(*arguments, f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={NAMESPACE}", values=values)

    def values(self, **changes: Any) -> Object:
        """Values with the images that were just built."""

        def image(name: str) -> Object:
            found = self.images[name]
            return {"repository": found.name, "digest": found.digest, "pullPolicy": "Never"}

        return {
            "image": image("operator"),
            "opa": {"image": image("opa")},
            **changes,
        }


Install = Callable[..., Site]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Site]:
    """A real node of the tests' own."""
    try:
        found = local.up(Size.REAL, name=CLUSTER)
        images = local.load_images(["operator", "opa", "kubectl", "busybox"], name=CLUSTER)
        by_name = {image.name.rsplit("/", 1)[-1]: image for image in images}
        yield Site(found, Kubectl(found.bin / "kubectl", found.kubeconfig), by_name)
    finally:
        if "INQUEST_KEEP_CLUSTER" not in os.environ:
            local.down(name=CLUSTER)


@pytest.fixture
def install(cluster: Site) -> Iterator[Install]:
    """Installs the chart with these values."""
    with ExitStack() as stack:

        def make(*options: str, **changes: Any) -> Site:
            stack.enter_context(released(cluster, cluster.values(**changes), options))
            return cluster

        yield make


@contextmanager
def released(
    site: Site,
    values: Mapping[str, Any],
    options: tuple[str, ...] = (),
    *,
    expected: Sequence[Refusal] = KNOWN.refusals,
) -> Iterator[None]:
    """The chart installed with these values, in a namespace where pods are restricted; its accounts lack no right.

    `expected`: what may be forbidden all the same.
    """
    standing = Standing(site.cluster)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}
    site.kubectl.apply(namespace)
    local.offer_volume(name=CLUSTER)
    try:
        site.helm("install", "inquest", str(CHART), *options, values=values)
        yield
        assert [*refused(standing.entries(), expected)] == []
    finally:
        _remove(site)


def _remove(site: Site) -> None:
    """Whatever a test left, also one that failed half way: each step runs though the one before it failed."""
    with ExitStack() as steps:
        namespaces = (NAMESPACE, EXECUTION, "--ignore-not-found", "--timeout=90s")
        steps.callback(site.kubectl, "delete", "namespace", *namespaces)
        steps.callback(site.kubectl, "delete", "crd", "-l", "app.kubernetes.io/part-of=inquest", "--timeout=90s")
        steps.callback(_release_executions, site)
        site.helm("uninstall", "inquest", "--ignore-not-found", "--cascade=foreground", *WAIT)


def _release_executions(site: Site) -> None:
    for name in site.kubectl("get", "wfe", "-n", NAMESPACE, "-o", "name").split() if _served(site) else ():
        site.kubectl("patch", name, "-n", NAMESPACE, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def _served(site: Site) -> bool:
    return "workflowexecutions.inquest.dev" in site.kubectl("get", "crd", "-o", "name")
