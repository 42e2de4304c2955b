"""Puts what Inquest needs into a real control plane: kinds, roles, and policies that are in effect."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from inquest.api.installation import EXECUTION_NAMESPACE, NAMESPACE, SERVICE_ACCOUNT
from inquest.api.registry import PLURALS
from tests.support.kube import Answer, Cluster, Kubectl, eventually, own_namespace, proposal

ROOT: Final = Path(__file__).resolve().parents[2]
RBAC: Final = "rbac.authorization.k8s.io"
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


def install(cluster: Cluster) -> None:
    """Everything but a catalogue; it returns once every policy refuses what it has to."""
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
