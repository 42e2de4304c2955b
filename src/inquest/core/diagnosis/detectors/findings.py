"""Of findings that say the same, the strongest one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from inquest.core.evidence.evidence import Finding


def one_per_object(findings: Iterable[Finding]) -> list[Finding]:
    return _strongest(findings, lambda finding: ())


def one_per_field(findings: Iterable[Finding]) -> list[Finding]:
    return _strongest(findings, lambda finding: finding.field)


def one_per_container(findings: Iterable[Finding]) -> list[Finding]:
    """The replicas of a workload say the same of a container."""
    return _strongest(findings, lambda finding: finding.facts.get("container", ""))


def _strongest(findings: Iterable[Finding], part: Callable[[Finding], Hashable]) -> list[Finding]:
    """One for each object and part of it, the strongest first."""
    best: dict[Hashable, Finding] = {}
    for finding in sorted(findings, key=lambda each: -each.confidence):
        best.setdefault((finding.object.key, part(finding)), finding)
    return list(best.values())
