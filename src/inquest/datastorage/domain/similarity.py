"""What was tried on this object, or on this spec: entries of the two tiers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from inquest.datastorage.domain.effectiveness import StoredAssessment
from inquest.datastorage.wire.types import instant_text, text_in

SCOPES = ("target", "hash", "chain")
DEFAULT_TIER1 = timedelta(hours=24)
DEFAULT_TIER2 = timedelta(hours=2160)
DEFAULT_TIER_LIMIT = 50
MOST_TIER_LIMIT = 500

PRE_REMEDIATION = "preRemediation"
POST_REMEDIATION = "postRemediation"
NONE = "none"

HEALTH_CHECKS = {
    "pod_running": "podRunning",
    "readiness_pass": "readinessPass",
    "restart_delta": "restartDelta",
    "crash_loops": "crashLoops",
    "oom_killed": "oomKilled",
    "pending_count": "pendingCount",
}
METRIC_DELTAS = {
    "cpu_before": "cpuBefore",
    "cpu_after": "cpuAfter",
    "memory_before": "memoryBefore",
    "memory_after": "memoryAfter",
    "latency_p95_before_ms": "latencyP95BeforeMs",
    "latency_p95_after_ms": "latencyP95AfterMs",
    "error_rate_before": "errorRateBefore",
    "error_rate_after": "errorRateAfter",
}
PAYLOAD_MEMBERS = {
    "actionType": "action_type",
    "workflowType": "action_type",
    "signalType": "signal_type",
    "signalFingerprint": "signal_fingerprint",
    "targetResource": "target_resource",
    "workflowId": "workflow_id",
    "workflowVersion": "workflow_version",
    "preRemediationSpecHash": "pre_remediation_spec_hash",
}


@dataclass(frozen=True)
class Remediation:
    """A remediation row with what is known of its end."""

    remediation_uid: str
    at: datetime
    payload: Mapping[str, Any]
    assessment: StoredAssessment
    lifecycle: str | None = None
    """`completed` or `failed`, from the last lifecycle event."""


def target_key(namespace: str, kind: str, name: str) -> str:
    """Three parts, the first empty for a cluster-scoped object."""
    return f"{namespace}/{kind}/{name}"


def in_cluster(target: str, cluster: str | None) -> str:
    """A target's key as it is looked up: objects of one name in two clusters are two targets."""
    return f"{target}@{cluster}" if target and cluster else target


def normalised_target(text: object) -> str:
    """A payload's target as three parts: two parts are cluster-scoped, no text is no target."""
    if not isinstance(text, str) or not text:
        return ""
    return f"/{text}" if text.count("/") == 1 else text


def target_text(namespace: str, kind: str, name: str) -> str:
    """As answered: `ns/Kind/name`, or `Kind/name` for a cluster-scoped object."""
    return target_key(namespace, kind, name).removeprefix("/")


def hash_match(current: str, *, pre: str | None, post: str | None, linked_by_post: bool) -> str:
    """The four rules in their order; texts are compared byte for byte."""
    if current == pre:
        return PRE_REMEDIATION
    if current == post or (not post and linked_by_post):
        return POST_REMEDIATION
    return NONE


def full_entry(row: Remediation, current: str) -> dict[str, Any]:
    """An entry of tier 1."""
    details: dict[str, Any] = {
        "healthChecks": _renamed(row.assessment.health_checks, HEALTH_CHECKS),
        "metricDeltas": _renamed(row.assessment.metric_deltas, METRIC_DELTAS),
        "sideEffects": [],
    }
    return summary_entry(row, current) | {name: value for name, value in details.items() if value is not None}


def summary_entry(row: Remediation, current: str) -> dict[str, Any]:
    """An entry of tier 2; members that are not known are left out."""
    started, known = instant_text(row.at), row.assessment
    members = {
        "remediationUID": row.remediation_uid,
        "completedAt": started,
        "startedAt": started,
        "assessedAt": instant_text(known.assessed_at) if known.assessed_at else None,
        "outcome": text_in(row.payload, "outcome") or row.lifecycle,
        **{shown: text_in(row.payload, stored) for shown, stored in PAYLOAD_MEMBERS.items()},
        "postRemediationSpecHash": known.post_hash,
        "hashMatch": match_of(row, current),
        "effectivenessScore": known.score,
        "signalResolved": known.resolved,
        "assessmentReason": known.reason,
    }
    return {name: value for name, value in members.items() if value is not None}


def match_of(row: Remediation, current: str) -> str:
    """`hashMatch` of a row."""
    return hash_match(
        current,
        pre=text_in(row.payload, "pre_remediation_spec_hash"),
        post=row.assessment.post_hash,
        linked_by_post=current in row.assessment.named_post_hashes,
    )


def _renamed(stored: Mapping[str, Any] | None, names: Mapping[str, str]) -> dict[str, Any] | None:
    if stored is None:
        return None
    return {shown: stored[name] for name, shown in names.items() if stored.get(name) is not None}
