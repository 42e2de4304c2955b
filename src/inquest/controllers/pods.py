"""The pods of a workload, by its selector: one way for what a proposal reaches and for how its target fares."""

from __future__ import annotations

from inquest.core.cluster.objects import labels_of, spec_of
from inquest.core.cluster.selectors import selector_selects
from inquest.ports.kinds import POD
from inquest.ports.kubernetes import Cluster, Json


async def pods_of(cluster: Cluster, shown: Json, namespace: str) -> tuple[Json, ...] | None:
    """Those that a workload as read selects; None for what selects none, or where the list was cut. Errors pass."""
    selector = selector_of(shown)
    if selector is None:
        return None
    labels = ",".join(f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items()))
    listing = await cluster.list(POD, namespace, labels=labels)
    found = tuple(pod for pod in listing.items if selector_selects(selector, labels_of(pod)))
    return found if listing.complete else None


def selector_of(shown: Json) -> Json | None:
    """The label selector of a workload; None where there is none that can be read as one."""
    found = spec_of(shown).get("selector")
    if not isinstance(found, dict) or not found or not found.keys() <= {"matchLabels", "matchExpressions"}:
        return None
    labels, rules = found.get("matchLabels") or {}, found.get("matchExpressions") or []
    whole = isinstance(labels, dict) and isinstance(rules, list) and all(isinstance(rule, dict) for rule in rules)
    return found if whole else None
