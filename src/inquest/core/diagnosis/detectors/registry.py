"""What code concludes from a snapshot without a model: one file for each detector, a table, a ranking.

A detector is a pure function `(Snapshot) -> Iterable[Finding]`. To add one: write its file, its tables of true and
false cases, and its row in `DETECTORS`. Its quotes must stand in the evidence that they cite (`citations.cited` sees to
that), and its category stands in `core/diagnosis/categories.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from inquest.core.diagnosis.detectors.findings import Detector
from inquest.core.diagnosis.detectors.logs.application_log import application_log
from inquest.core.diagnosis.detectors.network.address_misconfigured import address_misconfigured
from inquest.core.diagnosis.detectors.network.cluster_dns import cluster_dns
from inquest.core.diagnosis.detectors.network.ingress_controller import ingress_controller
from inquest.core.diagnosis.detectors.network.ingress_misconfigured import ingress_misconfigured
from inquest.core.diagnosis.detectors.network.load_balancer import load_balancer
from inquest.core.diagnosis.detectors.network.network_policy import network_policy
from inquest.core.diagnosis.detectors.network.pod_dns import pod_dns
from inquest.core.diagnosis.detectors.network.service_endpoints import service_endpoints
from inquest.core.diagnosis.detectors.network.service_port import service_port
from inquest.core.diagnosis.detectors.network.service_selector import service_selector
from inquest.core.diagnosis.detectors.platform.admission import (
    admission_rejected,
    service_account_missing,
    webhook_failing,
)
from inquest.core.diagnosis.detectors.platform.certificates import certificate_expired
from inquest.core.diagnosis.detectors.platform.control_plane import (
    control_plane,
    controllers_silent,
    scheduler_silent,
    store_failing,
    store_slow,
)
from inquest.core.diagnosis.detectors.platform.finalizer_stuck import finalizer_stuck
from inquest.core.diagnosis.detectors.platform.rbac_denied import rbac_denied
from inquest.core.diagnosis.detectors.ranking import MAX_OBSERVATIONS, Ranked, ranked
from inquest.core.diagnosis.detectors.rollout.bad_revision import bad_revision
from inquest.core.diagnosis.detectors.rollout.gitops import gitops_sync_failing
from inquest.core.diagnosis.detectors.rollout.rollout_stuck import rollout_stuck
from inquest.core.diagnosis.detectors.scheduling.autoscaler import autoscaler
from inquest.core.diagnosis.detectors.scheduling.disruption_budget import disruption_budget
from inquest.core.diagnosis.detectors.scheduling.nodes import (
    node_agents,
    node_ailing,
    node_clock,
    node_not_ready,
    node_services,
    sandboxes,
)
from inquest.core.diagnosis.detectors.scheduling.quota_exceeded import quota_exceeded
from inquest.core.diagnosis.detectors.scheduling.scaled_to_zero import scaled_to_zero
from inquest.core.diagnosis.detectors.scheduling.unschedulable import unschedulable
from inquest.core.diagnosis.detectors.startup.config_missing import config_missing
from inquest.core.diagnosis.detectors.startup.cpu_throttled import cpu_throttled
from inquest.core.diagnosis.detectors.startup.crash_loop import crash_loop
from inquest.core.diagnosis.detectors.startup.image_pull import image_pull
from inquest.core.diagnosis.detectors.startup.jobs import jobs
from inquest.core.diagnosis.detectors.startup.oom_killed import oom_killed
from inquest.core.diagnosis.detectors.startup.probes import probes
from inquest.core.diagnosis.detectors.startup.start_failing import start_failing
from inquest.core.diagnosis.detectors.storage.disk_full import disk_full
from inquest.core.diagnosis.detectors.storage.volume_attach import volume_attach
from inquest.core.diagnosis.detectors.storage.volume_mount import volume_mount
from inquest.core.diagnosis.detectors.storage.volume_unbound import volume_unbound
from inquest.core.evidence.evidence import Finding, Gap
from inquest.core.evidence.snapshot import Snapshot

DETECTORS: Final[tuple[Detector, ...]] = (
    oom_killed,
    image_pull,
    unschedulable,
    quota_exceeded,
    volume_unbound,
    volume_attach,
    volume_mount,
    disk_full,
    service_account_missing,
    admission_rejected,
    webhook_failing,
    rbac_denied,
    certificate_expired,
    gitops_sync_failing,
    finalizer_stuck,
    control_plane,
    scheduler_silent,
    controllers_silent,
    store_failing,
    store_slow,
    cluster_dns,
    node_services,
    node_not_ready,
    node_ailing,
    node_agents,
    sandboxes,
    node_clock,
    config_missing,
    service_selector,
    service_port,
    address_misconfigured,
    cpu_throttled,
    probes,
    network_policy,
    jobs,
    ingress_misconfigured,
    ingress_controller,
    load_balancer,
    pod_dns,
    service_endpoints,
    start_failing,
    scaled_to_zero,
    autoscaler,
    disruption_budget,
    bad_revision,
    rollout_stuck,
    application_log,
    crash_loop,
)
"""The more specific cause first: the order decides between equal confidences."""

DETECTOR: Final = "detector"
"""First word of the gap that a failed detector leaves."""
MAX_SUMMARY: Final = 500
RANKING: Final = "ranking"
"""The gap that a failed ranking leaves: the findings stand in the order of their confidence then."""


def detect(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Every finding, the most certain root cause first, with its symptoms folded into it."""
    return examine(snapshot)[0].findings


def examine(snapshot: Snapshot, detectors: Iterable[Detector] = DETECTORS) -> tuple[Ranked, tuple[Gap, ...]]:
    """What was found, and a gap for each detector that failed: the others have their word."""
    found: list[Finding] = []
    gaps: list[Gap] = []
    for detector in detectors:
        try:
            found += [_named(detector, finding) for finding in detector(snapshot)]
        except Exception as error:  # what one of them stumbles over must not cost the case
            gaps.append(Gap(f"{DETECTOR} {detector.__name__}", type(error).__name__))
    try:
        return ranked(snapshot, found), tuple(gaps)
    except Exception as error:
        gaps.append(Gap(RANKING, type(error).__name__))
        # Nobody knows what has to do with the target: nothing may be blamed.
        return Ranked((), tuple(sorted(found, key=lambda finding: -finding.confidence)[:MAX_OBSERVATIONS])), tuple(gaps)


def _named(detector: Detector, finding: Finding) -> Finding:
    return replace(finding, detector=detector.__name__, summary=finding.summary[:MAX_SUMMARY])
