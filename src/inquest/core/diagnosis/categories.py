"""The closed list of what can be wrong, and other words for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("Healthy", "Recovered", "Unknown"),
    "Startup": (
        "CrashLoopBackOff",
        "CommandFailing",
        "ConfigKeyMissing",
        "ConfigMapMissing",
        "SecretMissing",
        "EnvVarMissing",
        "ImagePullFailing",
        "InitContainerFailing",
        "ServiceAccountMissing",
    ),
    "Probe": ("LivenessProbeMisconfigured", "ReadinessProbeMisconfigured", "StartupProbeMisconfigured"),
    "Runtime": ("OOMKilled", "CPUThrottled", "DiskFull", "PodEvicted", "ApplicationError"),
    "Scheduling": ("InsufficientResources", "Unschedulable", "QuotaExceeded", "LimitRangeViolated"),
    "Storage": ("VolumeUnbound", "VolumeAttachFailing", "VolumeMountFailing"),
    "Network": (
        "SelectorMismatch",
        "PortMismatch",
        "NoReadyEndpoints",
        "NetworkPolicyBlocking",
        "DNSFailing",
        "IngressMisconfigured",
        "CertificateExpired",
    ),
    "Rollout": ("RolloutStuck", "BadRevision", "HPAMisconfigured", "PDBBlocking", "FinalizerStuck", "JobFailing"),
    "Admission": ("AdmissionRejected", "RBACDenied"),
    "Node": (
        "NodeNotReady",
        "NodePressure",
        "NodeCordoned",
        "KubeletFailing",
        "ContainerRuntimeFailing",
        "ServiceProxyFailing",
        "NetworkDegraded",
    ),
    "Control plane": ("ControlPlaneFailing", "ClusterDNSFailing", "WebhookFailing"),
    "Dependency": (
        "ScaledToZero",
        "PortConflict",
        "ProtocolMismatch",
        "AddressMisconfigured",
        "CredentialsInvalid",
        "ConnectionsExhausted",
        "Overloaded",
        "MemoryLeaking",
        "ConfigReloadFailing",
        "GitOpsSyncFailing",
        "DependencyFailing",
        "DatabaseFailing",
        "ExternalServiceFailing",
    ),
}


UNKNOWN: Final = "Unknown"
NO_FAULT: Final = frozenset(CATEGORIES[""])
"""Words that name no cause."""
ALIASES: Final[Mapping[str, str]] = {
    "oom": "OOMKilled",
    "memorypressure": "OOMKilled",
    "exitcode137": "OOMKilled",
    "imagepullbackoff": "ImagePullFailing",
    "errimagepull": "ImagePullFailing",
    "taint": "Unschedulable",
    "insufficientcpu": "InsufficientResources",
    "insufficientmemory": "InsufficientResources",
    "pvcpending": "VolumeUnbound",
    "endpointmismatch": "SelectorMismatch",
    "resourcequota": "QuotaExceeded",
}
SYMPTOMS: Final = frozenset(
    {
        "ApplicationError",
        "CrashLoopBackOff",
        "DependencyFailing",
        "InitContainerFailing",
        "JobFailing",
        "NoReadyEndpoints",
        "PodEvicted",
        "RolloutStuck",
        "Unschedulable",
    }
)
"""Words for an effect: a finding of one of them contradicts no finer cause."""


def squeeze_word(word: str) -> str:
    return re.sub(r"[\s_-]", "", word).lower()


_CATEGORY_BY_WORD: Final[Mapping[str, str]] = {
    **ALIASES,
    **{squeeze_word(name): name for names in CATEGORIES.values() for name in names},
}


def category_from(word: str) -> str:
    """A category of the closed list, by name or alias; any other word is Unknown."""
    return _CATEGORY_BY_WORD.get(squeeze_word(word), UNKNOWN)
