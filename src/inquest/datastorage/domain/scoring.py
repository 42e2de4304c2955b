"""Who is offered, in which order: filters, score, order, gate and page of the three discovery steps.

Pure. All points are whole hundredths, so that the order never hangs on a rounding.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from inquest.datastorage.wire.types import WILDCARD

Item = TypeVar("Item")

BASE_HUNDREDTHS = 500
MOST_THOUSANDTHS = 1000
CUSTOM_EXACT_HUNDREDTHS = 15
CUSTOM_WILDCARD_HUNDREDTHS = 7
GITOPS_PENALTY_HUNDREDTHS = 10

BOOLEAN_LABELS = {
    "gitOpsManaged": 10,
    "pdbProtected": 5,
    "networkIsolated": 3,
    "helmManaged": 2,
    "stateful": 2,
    "hpaEnabled": 2,
}
"""Points in hundredths when query and workflow agree."""


@dataclass(frozen=True)
class TextLabel:
    """Points of a detected label that holds a text; `half` is what the peer rounds half of `full` to."""

    full: int
    half: int
    known: frozenset[str]


TEXT_LABELS = {
    "gitOpsTool": TextLabel(10, 5, frozenset({"argocd", "flux"})),
    "serviceMesh": TextLabel(5, 3, frozenset({"istio", "linkerd"})),
}

_UNMATCHABLE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Query:
    """What is asked: four mandatory filters (an empty text is no constraint) and two sets of labels."""

    severity: str = ""
    component: str = ""
    environment: str = ""
    priority: str = ""
    detected: Mapping[str, bool | str] = field(default_factory=dict)
    custom: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def filters(self) -> dict[str, str]:
        """The mandatory filters by label name."""
        return {name: getattr(self, name) for name in MANDATORY_LABELS}

    @cached_property
    def accepted(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Of each filter that constrains, what a workflow may say, in lower case."""
        return tuple((name, frozenset((wanted.lower(), WILDCARD))) for name, wanted in self.filters.items() if wanted)

    @cached_property
    def required(self) -> tuple[tuple[str, tuple[bool | str, ...]], ...]:
        """Of each detected label that constrains, what a workflow that says anything must say."""
        booleans = [(name, (True,)) for name in BOOLEAN_LABELS if self.detected.get(name) is True]
        texts = [(name, (self.detected[name], WILDCARD)) for name in TEXT_LABELS if self.detected.get(name)]
        return (*booleans, *texts)


MANDATORY_LABELS = ("severity", "component", "environment", "priority")


@dataclass(frozen=True)
class WorkflowLabelSet:
    """The labels of a workflow as stored; another shape than the documented one is read all the same."""

    mandatory: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, Any] = field(default_factory=dict)
    detected: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def said(self) -> Mapping[str, frozenset[str]]:
        """The mandatory labels in lower case: each is compared with every question of a catalogue's revision."""
        return {
            name: frozenset(text.lower() for text in texts_of(self.mandatory.get(name))) for name in MANDATORY_LABELS
        }


@dataclass(frozen=True)
class TaxonomyEntry:
    """An entry of the taxonomy."""

    name: str
    description: Mapping[str, Any]
    is_active: bool = True


@dataclass(frozen=True)
class Offer:
    """An Active, latest workflow; `summary` is what a list shows of it."""

    workflow_id: str
    action_type: str
    labels: WorkflowLabelSet
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkflowScore:
    """Points of one workflow in hundredths; `final` in thousandths, without a lower bound."""

    detected: int
    custom: int
    penalty: int

    @property
    def final(self) -> int:
        """min((5.0 + detected + custom - penalty) / 10, 1) in thousandths."""
        return min(BASE_HUNDREDTHS + self.detected + self.custom - self.penalty, MOST_THOUSANDTHS)


@dataclass(frozen=True)
class Slice(Generic[Item]):
    """A cut of an ordered list; `total` counts what passed the filters."""

    items: Sequence[Item]
    offset: int
    limit: int
    total: int

    @property
    def pagination(self) -> dict[str, Any]:
        """The wire's paging object."""
        more = self.offset + self.limit < self.total
        return {"totalCount": self.total, "offset": self.offset, "limit": self.limit, "hasMore": more}


def page_of(items: Sequence[Item], *, offset: int, limit: int) -> Slice[Item]:
    """Cut a page."""
    return Slice(items[offset : offset + limit], offset, limit, len(items))


def offered_actions(
    types: Sequence[TaxonomyEntry], offers: Sequence[Offer], query: Query
) -> list[tuple[TaxonomyEntry, int]]:
    """Step 1: active types that have an offer, with their number, in binary order of the name."""
    counts: dict[str, int] = {}
    for offer in offers:
        if passes(offer.labels, query):
            counts[offer.action_type] = counts.get(offer.action_type, 0) + 1
    shown = [(kind, counts[kind.name]) for kind in types if kind.is_active and kind.name in counts]
    return sorted(shown, key=lambda pair: pair[0].name.encode())


def ranked_offers(offers: Sequence[Offer], action_type: str, query: Query) -> list[tuple[Offer, WorkflowScore]]:
    """Step 2: offers of a type, best score first, then by id; the order is total."""
    scored = [
        (offer, score(offer.labels, query))
        for offer in offers
        if offer.action_type == action_type and passes(offer.labels, query)
    ]
    return sorted(scored, key=lambda pair: (-pair[1].final, pair[0].workflow_id))


def is_gated(labels: WorkflowLabelSet, query: Query) -> bool:
    """Step 3: whether the security gate closes; with no mandatory filter it stays open."""
    return any(query.filters.values()) and not passes(labels, query)


def passes(labels: WorkflowLabelSet, query: Query) -> bool:
    """Mandatory and detected labels; custom labels never filter."""
    return matches_mandatory(labels, query) and is_compatible(labels.detected, query)


def matches_mandatory(labels: WorkflowLabelSet, query: Query) -> bool:
    """Every non-empty filter finds its value, without case, or the workflow's wildcard."""
    said = labels.said
    return not any(said[name].isdisjoint(accepted) for name, accepted in query.accepted)


def texts_of(stored: object) -> tuple[str, ...]:
    """A stored label as a list of texts: a single text counts as a list of one."""
    if isinstance(stored, str):
        return (stored,) if stored else ()
    return tuple(item for item in stored if isinstance(item, str)) if isinstance(stored, list | tuple) else ()


def is_compatible(stored: Mapping[str, Any], query: Query) -> bool:
    """A detected label that the workflow requires otherwise closes the way."""
    return all(_is_unset(stored.get(name), *accepted) for name, accepted in query.required)


def _is_unset(stored: object, *accepted: object) -> bool:
    return stored is None or stored in ("", False) or stored in accepted


def score(labels: WorkflowLabelSet, query: Query) -> WorkflowScore:
    """The three terms of a score."""
    return WorkflowScore(
        detected_boost(labels.detected, query.detected),
        custom_boost(labels.custom, query.custom),
        penalty(labels.detected, query.detected),
    )


def detected_boost(stored: Mapping[str, Any], asked: Mapping[str, bool | str]) -> int:
    """For detected labels that agree, in hundredths; at most 39."""
    booleans = sum(w for name, w in BOOLEAN_LABELS.items() if asked.get(name) is True and stored.get(name) is True)
    return booleans + sum(_text_boost(rule, asked.get(name), stored.get(name)) for name, rule in TEXT_LABELS.items())


def _text_boost(rule: TextLabel, asked: object, stored: object) -> int:
    if not stored or not asked:
        return 0
    if asked == WILDCARD:
        return rule.half
    if asked not in rule.known:
        return 0
    return rule.full if stored == asked else rule.half if stored == WILDCARD else 0


def custom_boost(stored: Mapping[str, Any], asked: Mapping[str, Sequence[str]]) -> int:
    """For custom labels, in hundredths, without a cap of its own; a value given twice counts twice."""
    return sum(_pair_boost(texts_of(stored.get(_UNMATCHABLE.sub("", key))), v) for key, vs in asked.items() for v in vs)


def _pair_boost(values: Sequence[str], wanted: str) -> int:
    if wanted in values:
        return CUSTOM_EXACT_HUNDREDTHS
    return CUSTOM_WILDCARD_HUNDREDTHS if WILDCARD in values else 0


def penalty(stored: Mapping[str, Any], asked: Mapping[str, bool | str]) -> int:
    """The penalty, in hundredths, of a workflow that says nothing of GitOps for a target under GitOps."""
    unmanaged = asked.get("gitOpsManaged") is True and stored.get("gitOpsManaged") is not True
    tool = asked.get("gitOpsTool")
    other_tool = tool in TEXT_LABELS["gitOpsTool"].known and stored.get("gitOpsTool") not in (tool, WILDCARD)
    return GITOPS_PENALTY_HUNDREDTHS * (unmanaged + other_tool)
