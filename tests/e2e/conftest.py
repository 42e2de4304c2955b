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
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from hack.cluster import local
from hack.cluster.state import cluster_folder
from hack.tools import build
from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE, SERVICE_ACCOUNT
from inquest.api.registry import PLURALS
from tests.support.api import with_token
from tests.support.kube import Answer, Cluster, Kubectl, eventually, own_namespace, proposal

ROOT = Path(__file__).resolve().parents[2]
RBAC: Final = "rbac.authorization.k8s.io"
NAME = "test"
"""Its own cluster: the one that a person brought up and looks at is left alone."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A control plane with CRDs, policies and roles, and the policies in effect."""
    with _kubeconfig() as kubeconfig:
        found = Cluster(kubeconfig, Kubectl(build(["kubectl"]) / "kubectl", kubeconfig))
        _install(found)
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


# --- installing ------------------------------------------------------------------------------------------


BY_HAND: Final = (
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "tests-by-hand"},
        "rules": [{"apiGroups": ["inquest.dev"], "resources": [f"{one}/status" for one in PLURALS], "verbs": ["get"]}],
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tests-by-hand"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tests-by-hand"},
        "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
    },
)
"""Where kubectl plays the operator it reads a status before it patches it, which the product never does."""


def _install(cluster: Cluster) -> None:
    for name in (NAMESPACE, EXECUTION_NAMESPACE):
        cluster.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.kubectl.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}}
    )
    folders = [f"-f={ROOT / folder}" for folder in ("crds", "policies/admission", "policies/rbac")]
    cluster.kubectl("apply", "--server-side", "--force-conflicts", *folders)
    cluster.kubectl.apply(*BY_HAND)
    cluster.kubectl("wait", "--for=condition=Established", f"-f={ROOT / 'crds'}", "--timeout=180s")
    _wait_for_policies(cluster)


def _wait_for_policies(cluster: Cluster) -> None:
    """A policy takes effect some seconds after it was created: ask until every one refuses."""
    with own_namespace(cluster) as name:
        admin, operator = cluster.kubectl.within(name), cluster.operator.within(name)
        request, case = proposal("RemediationApprovalRequest"), proposal("Investigation")
        eventually(lambda: operator.create(case).accepted, what="kinds and roles are there")
        # Server-side apply asks for the schema, which is published a moment after the kind is served.
        applied = json.dumps(case | {"metadata": {"name": "applied"}})
        eventually(
            lambda: admin.ask("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=applied).accepted,
            what="kinds can be applied",
        )
        assert operator.create(request).accepted
        assert operator.status("rar", request["metadata"]["name"], {"phase": "Pending"}).accepted
        assert operator.status("inv", case["metadata"]["name"], {"phase": "Completed"}).accepted
        for policy, ask in _forbidden(admin).items():
            eventually(partial(_is_refused, ask, policy), what=f"{policy} is in effect")


def _is_refused(ask: Callable[[], Answer], policy: str) -> bool:
    return policy in ask().err


def _forbidden(admin: Kubectl) -> dict[str, Callable[[], Answer]]:
    """For each policy something that only it refuses; nothing of it is kept."""
    request, case = proposal("RemediationApprovalRequest"), proposal("Investigation")
    forged = {"spec": {"decision": "Approved", "decidedBy": "nobody"}}
    feedback = {"spec": {"feedback": {"verdict": "Right", "by": "nobody"}}}
    return {
        "inquest-approval-create": lambda: admin.create(request | {"metadata": {"name": "another"}}, dry=True),
        "inquest-status": lambda: admin.status("inv", case["metadata"]["name"], {"message": "mine"}, dry=True),
        "inquest-approval-decision": lambda: admin.merge("rar", request["metadata"]["name"], forged, dry=True),
        "inquest-feedback": lambda: admin.merge("inv", case["metadata"]["name"], feedback, dry=True),
    }
