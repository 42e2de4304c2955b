"""Kinds of the API server that the product itself reads and writes."""

from __future__ import annotations

from typing import Final

from inquest.api.base import GROUP, VERSION
from inquest.ports.kubernetes import ResourceKind


def _ours(kind: str, plural: str) -> ResourceKind:
    return ResourceKind(GROUP, VERSION, kind, plural, True)


SIGNAL: Final = _ours("Signal", "signals")
INVESTIGATION: Final = _ours("Investigation", "investigations")
APPROVAL: Final = _ours("RemediationApprovalRequest", "remediationapprovalrequests")
EXECUTION: Final = _ours("WorkflowExecution", "workflowexecutions")
ACTION_TYPE: Final = _ours("ActionType", "actiontypes")
WORKFLOW: Final = _ours("RemediationWorkflow", "remediationworkflows")
ADVICE: Final = _ours("Advice", "signals")
"""A Signal, looked at for its recommendation alone; no kind of the API server."""
LEASE: Final = ResourceKind("coordination.k8s.io", "v1", "Lease", "leases", True)
JOB: Final = ResourceKind("batch", "v1", "Job", "jobs", True)
POD: Final = ResourceKind("", "v1", "Pod", "pods", True)
EVENT: Final = ResourceKind("", "v1", "Event", "events", True)
CONFIG_MAP: Final = ResourceKind("", "v1", "ConfigMap", "configmaps", True)
NAMESPACE: Final = ResourceKind("", "v1", "Namespace", "namespaces", False)
ADMISSION_POLICY: Final = ResourceKind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False
)
ADMISSION_BINDING: Final = ResourceKind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False
)
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "inquest"}
