"""How far a change reaches: the pods it touches, what stands on them, and how many may be missed."""

from __future__ import annotations

from collections.abc import Sequence

from inquest.core.cluster.objects import metadata_of, spec_of, status_of
from inquest.core.cluster.selectors import selector_selects
from inquest.core.evidence.evidence import Json
from inquest.core.remediation.policy import Blast


def blast_radius(
    pods: Sequence[Json] | None, services: Sequence[Json] | None, budgets: Sequence[Json] | None, template: Json
) -> Blast:
    """None for what was not read; a figure that would rest on something unread is unknown too.

    `template` is the target's pod template, empty for what has none: where no pod is there, its labels stand for them.
    """
    if pods is None:
        return Blast()
    reached = list(pods) or ([template] if template else [])
    return Blast(
        pods=len(pods),
        dependents=None if services is None else sum(_serves(service, reached) for service in services),
        disruptions_allowed=None if budgets is None else _allowed(budgets, reached),
    )


def _serves(service: Json, pods: Sequence[Json]) -> bool:
    selector = spec_of(service).get("selector") or {}
    return bool(selector) and _hits(service, {"matchLabels": selector}, pods)


def _allowed(budgets: Sequence[Json], pods: Sequence[Json]) -> int | None:
    """The least that any budget over these pods allows; None where none guards them or one has not counted yet."""
    over = [found for found in budgets if _hits(found, spec_of(found).get("selector"), pods)]
    allowed = [status_of(found).get("disruptionsAllowed") for found in over]
    known = [figure for figure in allowed if isinstance(figure, int)]
    return min(known) if known and len(known) == len(allowed) else None


def _hits(found: Json, selector: Json | None, pods: Sequence[Json]) -> bool:
    """A selector without any rule takes every pod of its namespace."""
    namespace = found["metadata"].get("namespace")
    near = (metadata_of(pod) for pod in pods)
    return selector is not None and any(
        not selector or selector_selects(selector, meta.get("labels") or {})
        for meta in near
        if meta.get("namespace", namespace) == namespace
    )
