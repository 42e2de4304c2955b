"""What of a case one reader may be shown: a text by the places it was read in, everything else only with all of it.

A case may have looked into other namespaces than its own: where a Service is that it calls, where its pods' room went,
at a node. Whoever reads the case need not be allowed to read there. What was concluded (findings, the conversation, the
verdict) speaks of all texts together, so it is shown only where none of them is withheld.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.transitions import fold_case
from inquest.core.evidence.evidence import Evidence, Gap, Origin
from inquest.core.evidence.snapshot import Snapshot

OBJECTS: Final = "kubectl_"
"""Tools of this name ask the API server alone, and what they asked stands in their arguments as it turned out."""
NODES_IN_USE: Final = "kubectl_top_nodes"
NOT_KNOWN: Final = "where it was read is not written down"
ELSEWHERE: Final = "read in a namespace that you may not read"
OF_CONCLUSIONS: Final = "what was concluded"

Origins = tuple[Origin, ...] | None
"""None: not known."""
May = Callable[[Origin], bool]


@dataclass(frozen=True)
class Withheld:
    """A piece that is not shown, and why; nothing of what it holds."""

    id: str
    why: str

    def to_object(self) -> dict[str, str]:
        return {"id": self.id, "why": self.why}


def origins_of(found: Evidence) -> Origins:
    """All places that a piece tells of."""
    if found.origins is not None:
        return found.origins
    if found.tool == NODES_IN_USE:
        return (Origin("", "NodeMetrics", "metrics.k8s.io/v1beta1"),)
    if not found.tool.startswith(OBJECTS):
        return None
    said = found.arguments
    place, kind = str(said.get("namespace") or ""), str(said.get("kind") or "")
    version = str(said.get("api_version") or "")
    if kind.lower() in ("namespace", "namespaces", "ns"):
        return (Origin(str(said.get("name") or ""), kind, version),)
    return (Origin(place, kind, version),) if place or kind else None


def origins_of_conclusions(case: Case) -> tuple[Origin, ...]:
    """Places that a case speaks of beside its evidence: what was looked up around each target, and its history."""
    contexts = (fact.context for fact in case.all(facts.ContextResolved))
    refs = (case.target, *(ref for one in contexts for ref in (one.target, one.root, *one.chain)))
    return tuple(dict.fromkeys(Origin(ref.namespace or "", ref.kind, ref.api_version or "") for ref in refs))


def asked_about(case: Case) -> tuple[Origin, ...]:
    """All places that a reader has to be asked about, each once."""
    known = (place for one in case.evidence for place in origins_of(one) or ())
    return tuple(dict.fromkeys((*known, *origins_of_conclusions(case))))


def withheld_pieces(case: Case, may: May, *, everything: bool = False) -> tuple[Withheld, ...]:
    """The pieces that a reader may not see, in their order; none for one who may read the whole cluster."""
    if everything:
        return ()
    home = case.opened.namespace
    found = ((one.id, _why(origins_of(one), may, home)) for one in case.evidence)
    return tuple(Withheld(name, why) for name, why in found if why)


def _why(origins: Origins, may: May, home: str) -> str:
    """Empty where it may be seen. A namespace is named where it is the case's own: others may be nobody's business."""
    if origins is None:
        return NOT_KNOWN
    lacking = [origin for origin in origins if not may(origin)]
    return "; ".join(dict.fromkeys(_lack(origin, home) for origin in lacking))


def _lack(origin: Origin, home: str) -> str:
    what = origin.kind or "logs"
    if not origin.namespace:
        return f"you may not read {what} of the whole cluster"
    return f"you may not read {what} in namespace {home}" if origin.namespace == home else ELSEWHERE


@dataclass(frozen=True)
class Disclosed:
    """A case as a reader may have it, and what is missing from it."""

    case: Case
    withheld: tuple[Withheld, ...] = ()


def disclose_case(case: Case, may: May, *, everything: bool = False) -> Disclosed:
    """The whole case, or its opening and what of its snapshot may be seen."""
    hidden = withheld_pieces(case, may, everything=everything)
    lacking = () if everything else (each for each in origins_of_conclusions(case) if not may(each))
    about = "; ".join(dict.fromkeys(_lack(each, case.opened.namespace) for each in lacking))
    if not hidden and not about:
        return Disclosed(case)
    told = Withheld(OF_CONCLUSIONS, about or "it speaks of pieces that are withheld")
    return Disclosed(fold_case(_opening(case, {one.id: one.why for one in hidden})), (*hidden, told))


def _opening(case: Case, hidden: Mapping[str, str]) -> Iterator[facts.Fact]:
    yield case.opened
    taken = case.first(facts.SnapshotTaken)
    if taken is not None:
        yield facts.SnapshotTaken(_visible(taken.snapshot, hidden), (), taken.health)


def _visible(snapshot: Snapshot, hidden: Mapping[str, str]) -> Snapshot:
    """Without what stands in a hidden entry; a gap says so, for a part of it that is missing proves nothing."""
    kept = tuple(one for one in snapshot.evidence if one.id not in hidden)
    names, ids = {_name(one) for one in kept}, {one.id for one in kept}
    gaps = tuple(gap for gap in snapshot.gaps if gap.what in names)
    return replace(
        snapshot,
        evidence=kept,
        objects=tuple(one for one in snapshot.objects if one.evidence in ids),
        logs=tuple(one for one in snapshot.logs if one.evidence in ids),
        texts=tuple(one for one in snapshot.texts if one.evidence in ids),
        listings=tuple(one for one in snapshot.listings if one.evidence in ids),
        absent=tuple(one for one in snapshot.absent if one.evidence in ids),
        gaps=(*gaps, *(Gap(name, f"withheld: {why}") for name, why in hidden.items())),
        cut=tuple(name for name in snapshot.cut if name in names),
    )


def _name(found: Evidence) -> str:
    """As the snapshot names the read of an entry, in its gaps and cuts."""
    return " ".join(str(word) for word in found.arguments.values())
