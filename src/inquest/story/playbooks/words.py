"""The words that a trigger can meet: one that hits none of them can never fire (behaviours, section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WELL: Final[Mapping[str, tuple[str, ...]]] = {
    "status": ("Running", "Completed", "Succeeded", "Ready"),
    "termination": ("Completed",),
    "condition": ("Ready=True/", "Ready=True/KubeletReady", "Available=True/MinimumReplicasAvailable"),
}
"""Field of a trigger → words of what is well: a pattern that hits one of them fires on health."""

_CONTAINER: Final = (
    "CrashLoopBackOff",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
    "ContainerCannotRun",
    "ContainerStatusUnknown",
    "StartError",
    "Error",
    "OOMKilled",
    "DeadlineExceeded",
    "Signal:9",
    "ExitCode:1",
)
_POD: Final = (
    "Pending",
    "Failed",
    "Unknown",
    "NotReady",
    "Terminating",
    "SchedulingGated",
    "ContainerCreating",
    "PodInitializing",
    "Evicted",
    "NodeLost",
    "NodeAffinity",
    "NodeShutdown",
    "Preempting",
    "Shutdown",
    "Terminated",
    "UnexpectedAdmissionError",
    "AppArmor",
    "SELinux",
    "UnsupportedVolumeSchedulingError",
    "TopologyAffinityError",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfpods",
    "OutOfephemeral-storage",
    "Init:0/1",
    "Init:1/2",
)
STATUSES: Final = (*_CONTAINER, *_POD, *(f"Init:{word}" for word in _CONTAINER))
"""Every STATUS word that behaviours, section 6.2, can give."""

TERMINATIONS: Final = ("OOMKilled", "Error", "ContainerCannotRun", "StartError", "DeadlineExceeded", "Evicted")

KINDS: Final = (
    "Pod",
    "Node",
    "Namespace",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "Service",
    "EndpointSlice",
    "Ingress",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "ResourceQuota",
    "LimitRange",
    "ConfigMap",
    "ServiceAccount",
    "ControllerRevision",
    "Role",
    "RoleBinding",
    "ClusterRoleBinding",
    "Certificate",
    "Lease",
    "PodMetrics",
    "NodeMetrics",
    "IngressClass",
    "HTTPRoute",
    "GRPCRoute",
    "CSIDriver",
    "CSINode",
    "VolumeAttachment",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "PriorityClass",
    "RuntimeClass",
    "Kustomization",
    "HelmRelease",
    "Application",
)
"""Kinds that a snapshot reads or that its events name."""
