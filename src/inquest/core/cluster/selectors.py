"""Labels, and what selects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import value_at
from inquest.core.evidence.evidence import Json


def is_scaled_by(autoscaler: Json, ref: TargetRef) -> bool:
    """Whether this autoscaler sets the replicas of this object."""
    scaled = value_at(autoscaler, "spec", "scaleTargetRef")
    return (scaled.get("kind"), scaled.get("name")) == (ref.kind, ref.name)


def selector_selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; an empty selector or no labels: no."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    rules: Sequence[Json] = selector.get("matchExpressions") or ()
    if not labels or not (wanted or rules):
        return False
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(labels, rule) for rule in rules
    )


def _meets(labels: Mapping[str, str], rule: Json) -> bool:
    value = labels.get(str(rule.get("key")))
    match rule.get("operator"):
        case "In":
            return value in (rule.get("values") or ())
        case "NotIn":
            return value not in (rule.get("values") or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
