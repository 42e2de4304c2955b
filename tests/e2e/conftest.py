"""A real API server for the tests under `tests/e2e`, with Inquest's CRDs, policies and roles in place.

    cluster             the running control plane (one for a whole run, shared by all workers)
    namespace           a namespace of the test's own
    kubectl             kubectl in that namespace as the administrator
    operator            kubectl in that namespace as the operator's service account: the only one that writes status
    person              makes a user: `person("jane", "inquest-approver")` is kubectl as jane with that role there
    operator_kubeconfig kubeconfig with a token of the operator's service account, for a client library

A cluster that was running before is left running. One that the tests had to start is stopped by the last of them that
uses it, unless INQUEST_KEEP_CLUSTER is set. CLUSTER=current takes the cluster of KUBECONFIG instead.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from hack.cluster import local
from hack.cluster.state import cluster_folder
from hack.tools import build
from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.support.api import with_token
from tests.support.installing import install
from tests.support.kube import Cluster, Kubectl, eventually, own_namespace

NAME = "test"
"""Its own cluster: the one that a person brought up and looks at is left alone."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A control plane with CRDs, policies and roles, and the policies in effect."""
    with _kubeconfig() as kubeconfig:
        found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
        install(found)
        yield found


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own; what is in it goes with it."""
    with own_namespace(cluster) as name:
        yield name


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str) -> Kubectl:
    """The administrator in the test's namespace."""
    return cluster.kubectl.within(namespace)


@pytest.fixture
def operator(cluster: Cluster, namespace: str) -> Kubectl:
    """The operator in the test's namespace."""
    return cluster.operator.within(namespace)


Person = Callable[..., Kubectl]


def _is_in_effect(user: Kubectl, kubectl: Kubectl, role: str) -> bool:
    """Whether they have a right that the role gives: a binding, and what a role gathers, is seen a moment later."""
    rules = kubectl.get("clusterrole", role).get("rules") or ()
    ours = next((rule for rule in rules if rule.get("apiGroups") == ["inquest.dev"]), None)
    return ours is not None and user.may(ours["verbs"][0], f"{ours['resources'][0]}.inquest.dev")


@pytest.fixture
def person(kubectl: Kubectl) -> Person:
    """Makes users: a name and the ClusterRoles that they have in the test's namespace."""

    def make(name: str, *roles: str) -> Kubectl:
        user = kubectl.user(name)
        for role in roles:
            kubectl.bind(f"{name}-{role}", ("ClusterRole", role), ("User", name))
            eventually(partial(_is_in_effect, user, kubectl, role), what=f"{name} is {role}")
        return user

    return make


@pytest.fixture(scope="session")
def operator_kubeconfig(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with a token of the operator's service account."""
    token = cluster.kubectl("create", "token", SERVICE_ACCOUNT, f"--namespace={NAMESPACE}", "--duration=2h").strip()
    return with_token(cluster.kubeconfig, token, tmp_path_factory.mktemp("operator") / "kubeconfig")


# --- starting and stopping -------------------------------------------------------------------------------


@contextmanager
def _kubeconfig() -> Iterator[Path]:
    if os.environ.get("CLUSTER") == "current":
        yield Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
        return
    with _used() as ours:
        if not local.find(name=NAME) or not local.is_ready(name=NAME):
            ours.touch()
        yield local.up(name=NAME).kubeconfig


@contextmanager
def _used() -> Iterator[Path]:
    """Count as a user of the cluster; the last one stops it if the tests have started it (the yielded mark exists)."""
    folder = cluster_folder(NAME)
    folder.parent.mkdir(parents=True, exist_ok=True)
    ours = folder.with_name(f".{folder.name}.tests")
    with folder.with_name(f".{folder.name}.users").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield ours
        if ours.exists() and "INQUEST_KEEP_CLUSTER" not in os.environ and _is_last(handle.fileno()):
            local.down(name=NAME)
            ours.unlink()


def _is_last(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
