"""Findings in causal order: what explains the others stands above them.

Three steps. The table of `causality.py` says what explains what, and what is explained is folded into its cause. What
is left is ordered by how certain it is, what it explains, how it stands to the Signal's target, and whether it was
there long before the trouble began. Last, a cause outside the target's own objects is named as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from inquest.api.refs import TargetRef
from inquest.core.cluster.changes import write_times
from inquest.core.cluster.objects import is_true, parse_time
from inquest.core.cluster.relations import hosts_of
from inquest.core.diagnosis.categories import SYMPTOMS
from inquest.core.diagnosis.detectors.causality import CLUSTER, CRASHES, FINE, NODE, explains, node_of
from inquest.core.diagnosis.detectors.links import LinkedObject, Links, links
from inquest.core.diagnosis.detectors.workloads import WORKLOADS, Key
from inquest.core.evidence.evidence import Finding, ObservedObject, involved_object
from inquest.core.evidence.snapshot import Snapshot

MAX_FINDINGS: Final = 24
MAX_OBSERVATIONS: Final = 3
MAX_COMPARED: Final = 100
"""Of more findings than these the surest are looked at: each is held against each."""
MAX_EXPLAINS: Final = 10
MAX_SUMMARY: Final = 500
MAX_CERTAINTY: Final = 0.97
ECHO: Final = 0.5
"""What is left of the confidence of a symptom on another object: it stays as a candidate, below every cause."""

# --- folding -------------------------------------------------------------------------------------------------

_HEIGHT: Final[tuple[frozenset[str], ...]] = (CLUSTER, NODE, FINE, SYMPTOMS)


def _height(finding: Finding) -> int:
    return next((number for number, words in enumerate(_HEIGHT) if finding.category in words), len(_HEIGHT))


@dataclass(frozen=True)
class _Tree:
    """Which finding explains which, by their places in the list; without circles."""

    found: Sequence[Finding]
    causes: Mapping[int, frozenset[int]]

    def is_root(self, place: int) -> bool:
        return not self.causes.get(place)

    def effects(self, place: int) -> list[int]:
        """All that a cause explains, at any distance."""
        reached: list[int] = []
        front = [place]
        while front:
            front = [
                at for at in range(len(self.found)) if at not in reached and self.causes.get(at, frozenset()) & {*front}
            ]
            reached += front
        return [at for at in reached if at != place]


def _tree(found: Sequence[Finding], where: Links) -> _Tree:
    order = sorted(range(len(found)), key=lambda at: (_height(found[at]), -found[at].confidence, at))
    causes: dict[int, frozenset[int]] = {}
    for symptom in reversed(order):
        for cause in order:
            # Going down the order, an arrow that would close a circle is the weaker one.
            if cause not in _below(symptom, causes) and explains(found[cause], found[symptom], where):
                causes[symptom] = causes.get(symptom, frozenset()) | {cause}
    return _Tree(found, causes)


def _below(place: int, causes: Mapping[int, frozenset[int]]) -> set[int]:
    """The place itself and all that it explains so far."""
    reached = {place}
    while more := {at for at, own in causes.items() if own & reached} - reached:
        reached |= more
    return reached


# --- standing ------------------------------------------------------------------------------------------------

STALE: Final = 0.15
"""Taken off what was there long before the trouble began and is as it was."""
HEALED: Final = 0.25
"""Taken off what ended a container that runs and is ready again: it is over, whatever it was."""
FRESHLY_CHANGED: Final = 0.05
STEP: Final = 0.01
"""Taken off for each step from the target, so that of equals the nearer one stands first."""
BREADTH: Final = 0.03
"""Added for each other object whose trouble a cause explains."""
MAX_BREADTH: Final = 5
EARLIER: Final = timedelta(hours=1)
CHANGED_BEFORE: Final = timedelta(hours=2)
CHANGED_AFTER: Final = timedelta(minutes=10)

OWN: Final = "own"
NEEDED: Final = "needed"
CLUSTER_WIDE: Final = "cluster"
NEEDING: Final = "dependent"
NEIGHBOUR: Final = "neighbour"


@dataclass(frozen=True)
class Ranking:
    """One snapshot's view of its findings."""

    snapshot: Snapshot
    where: Links
    homes: frozenset[Key] = field(default_factory=frozenset)
    """What the Signal is about: the target, its owners, by what stands for them."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Ranking:
        where = links(snapshot)
        refs = (snapshot.target, *snapshot.chain, snapshot.root)
        own = {where.home(ref) for ref in refs}
        if snapshot.target.kind == "Namespace":
            own |= {key for key in where.needs if key[1] == snapshot.target.name}
        return cls(snapshot, where, frozenset(own))

    def relation(self, finding: Finding) -> tuple[str, LinkedObject | None]:
        """How a finding stands to the Signal's target."""
        target, home = self.snapshot.target, self.where.home(finding.object)
        if home in self.homes or (target.kind == "Namespace" and _in_namespace(finding, target.name)):
            return OWN, None
        felt = {self.where.home(ref) for ref in finding.felt_by}
        if felt & self.homes or (target.kind == "Namespace" and any(key[1] == target.name for key in felt)):
            return NEEDED, None
        if self._is_named(finding.object):
            return NEEDED, None
        places = [home, *([at] if (at := node_of(finding)) else []), *sorted(felt)]
        ways = (self.where.reach(own).get(place) for own in sorted(self.homes) for place in places)
        reached = next((way for way in ways if way), None)
        if reached is not None:
            return NEEDED, reached
        if target.kind == "Namespace" and target.name in finding.facts.get("namespaces", "").split(","):
            return NEEDED, None
        if finding.category in CLUSTER | NODE:
            return CLUSTER_WIDE, None
        below = self.where.reach(home)
        return (NEEDING if any(own in below for own in self.homes) else NEIGHBOUR), None

    def _is_named(self, ref: TargetRef) -> bool:
        """Whether the Signal's words name an object beside the target, or a host that it serves."""
        names, words = {ref.name, *self._hosts(ref.key)}, self.snapshot.about_names
        is_beside = ref.namespace == self.snapshot.root.namespace and not self.snapshot.proves_absent(
            self.snapshot.target
        )
        return is_beside and not names.isdisjoint(words)

    def _hosts(self, key: Key) -> tuple[str, ...]:
        """The hosts that an Ingress serves."""
        seen = self.snapshot.at(*key) if key[0] == "Ingress" else None
        return hosts_of(seen.object) if seen else ()

    def shown_at(self, findings: Iterable[Finding]) -> Iterator[Key]:
        """Where trouble shows: at whom a finding names, else at its object, and at what rests on either."""
        for finding in findings:
            felt = {self.where.home(ref) for ref in finding.felt_by or (finding.object,)}
            yield from felt
            yield from (key for key in self.homes if not felt.isdisjoint(self.where.reach(key)))

    def tier(self, shown_at: Key) -> int:
        """How much a namespace's workload matters to who asks about the namespace."""
        if shown_at in self.named:
            return NAMED
        if shown_at in self.served or shown_at[1] != self.snapshot.target.name:
            return SERVING
        return _TIERS.get(shown_at[0], WORKER)

    @cached_property
    def names_any(self) -> bool:
        """Whether the Signal's words name a workload of the namespace, or a host that it serves."""
        hosts = (host for key in self.named for host in self._hosts(key))
        return any(key[0] in WORKLOADS for key in self.named) or not {*self.snapshot.about_names}.isdisjoint(hosts)

    @cached_property
    def named(self) -> frozenset[Key]:
        """What the Signal's words name in the namespace, a pod as its workload, an Ingress also by its host."""
        namespace, words = self.snapshot.target.name, self.snapshot.about_names
        known = (key for key in (*self.homes, *self.where.homes) if key[1] == namespace)
        return frozenset(self.where.homes.get(key, key) for key in known if {key[2], *self._hosts(key)} & {*words})

    @cached_property
    def is_target_going(self) -> bool:
        """Whether the target is being deleted."""
        seen = self.snapshot.find(self.snapshot.target)
        return seen is not None and "deletionTimestamp" in seen.object["metadata"]

    @cached_property
    def served(self) -> frozenset[Key]:
        """What a Service sends to."""
        return frozenset(end for start, ends in self.where.needs.items() for end, _ in ends if start[0] == "Service")

    # --- time

    def is_old(self, finding: Finding) -> bool:
        """Whether it is known to have begun long before the trouble, and did not change since."""
        begun = self._begun(finding)
        since = self.snapshot.since
        return since is not None and begun is not None and begun < since - EARLIER and not self.is_changed(finding)

    def is_over(self, finding: Finding) -> bool:
        """Whether it ended a container once, and every pod there is ready now."""
        home = self.where.home(finding.object)
        ready = [is_true(pod.status, "Ready") for pod in self.snapshot.of_kind("Pod") if self._about(pod) == home]
        return finding.category in _ENDINGS and bool(ready) and all(ready)

    def _begun(self, finding: Finding) -> datetime | None:
        told = [at for seen in self._cited(finding) for at in _beginnings(seen)]
        return max(told) if told else None

    def is_changed(self, finding: Finding) -> bool:
        """Whether its object was written shortly before the trouble began."""
        since, found = self.snapshot.since, self.snapshot.find(finding.object)
        if since is None or found is None:
            return False
        return any(since - CHANGED_BEFORE <= at <= since + CHANGED_AFTER for at in write_times(found.object))

    def _cited(self, finding: Finding) -> list[ObservedObject]:
        """The objects of its evidence that are about it."""
        home = self.where.home(finding.object)
        ids = set(finding.evidence)
        return [seen for seen in self.snapshot.objects if seen.evidence in ids and self._about(seen) == home]

    def _about(self, seen: ObservedObject) -> Key:
        if seen.kind != "Event":
            key = seen.key
        else:
            about = involved_object(seen.object)
            key = (str(about.get("kind")), str(about.get("namespace") or ""), str(about.get("name")))
        return self.where.homes.get(key, key)


_ENDINGS: Final = CRASHES | frozenset({"OOMKilled", "PodEvicted", "LivenessProbeMisconfigured", "MemoryLeaking"})


def _in_namespace(finding: Finding, name: str) -> bool:
    return finding.object.namespace == name or (finding.object.kind, finding.object.name) == ("Namespace", name)


def _beginnings(seen: ObservedObject) -> list[datetime]:
    """When the present state began, as the object itself says it."""
    if seen.kind == "Event":
        times = [seen.object.get("firstTimestamp") or seen.object.get("eventTime")]
    else:
        status = seen.status
        times = [each.get("lastTransitionTime") for each in status.get("conditions") or () if _is_trouble(each)]
    return [at for at in map(parse_time, times) if at]


def _is_trouble(condition: Mapping[str, object]) -> bool:
    good = condition.get("type") in (
        "Ready",
        "Available",
        "Progressing",
        "ContainersReady",
        "PodScheduled",
        "Initialized",
        "PodReadyToStartContainers",
    )
    return condition.get("status") == ("False" if good else "True")


# --- the order -------------------------------------------------------------------------------------------------


class Ranked(NamedTuple):
    """What was found, by whether it has to do with what was asked about."""

    findings: tuple[Finding, ...]
    """Causes first, each with the symptoms it explains; symptoms of other objects below, with less confidence."""
    observations: tuple[Finding, ...] = ()
    """What nothing links to the target: worth a line, never a cause."""


def ranked(snapshot: Snapshot, found: Iterable[Finding]) -> Ranked:
    """The findings in causal order, and apart from them what has no way to the target."""
    findings = _distinct(found)
    if not findings:
        return Ranked(())
    view = Ranking.of(snapshot)
    tree = _tree(findings, view.where)
    roots = sorted((at for at in range(len(findings)) if tree.is_root(at)), key=lambda at: -_score(view, tree, at))
    linked = _in_best_tier(view, tree, [at for at in roots if _is_linked(view, tree, at)])
    echoes = [at for at in {each for root in linked for each in tree.effects(root)} if _stays(view, tree, at)]
    echoes.sort(key=lambda at: (-findings[at].confidence, at))
    told = (*(_told(view, tree, at) for at in linked), *(_echo(findings[at]) for at in echoes))
    strangers = (at for at in roots if at not in linked)
    return Ranked(told[:MAX_FINDINGS], tuple(_told(view, tree, at) for at in strangers)[:MAX_OBSERVATIONS])


def _is_linked(view: Ranking, tree: _Tree, place: int) -> bool:
    """Whether it concerns the target, or explains something that does."""
    return any(view.relation(tree.found[at])[0] in (OWN, NEEDED) for at in (place, *tree.effects(place)))


# --- the tiers of a namespace

NAMED, SERVING, WORKER, BATCH, BARE_POD = range(5)
"""What matters in a namespace: whom the Signal names, then what serves others; a bare pod is somebody's shell."""
_TIERS: Final = {"Pod": BARE_POD, "Job": BATCH, "CronJob": BATCH, "Service": SERVING, "Ingress": SERVING}


def _in_best_tier(view: Ranking, tree: _Tree, places: list[int]) -> list[int]:
    """Of a namespace's causes those of whom the Signal names, else of the best tier in which anything is wrong."""
    if view.snapshot.target.kind != "Namespace":
        return places
    shown = {at: view.shown_at(tree.found[each] for each in (at, *tree.effects(at))) for at in places}
    tiers = {at: min((*map(view.tier, keys), _own_tier(view, tree.found[at]))) for at, keys in shown.items()}
    best = NAMED if view.names_any else min(tiers.values(), default=NAMED)
    return [at for at in places if tiers[at] == best]


def _own_tier(view: Ranking, cause: Finding) -> int:
    """What keeps a namespace from going stands above all in it; what ails the whole cluster ails what serves."""
    is_what_holds = view.is_target_going and cause.category == "FinalizerStuck"
    if is_what_holds or view.where.home(cause.object) in view.named:
        return NAMED
    return SERVING if cause.category in CLUSTER else BARE_POD


def _distinct(found: Iterable[Finding]) -> list[Finding]:
    """What two detectors say alike is said once, in the surer one's words."""
    best: dict[tuple[str, Key, str, str], Finding] = {}
    for finding in sorted(found, key=lambda each: -each.confidence):
        key = (finding.category, finding.object.key, finding.field, finding.facts.get("container", ""))
        best.setdefault(key, finding)
    return list(best.values())[:MAX_COMPARED]


def _stays(view: Ranking, tree: _Tree, place: int) -> bool:
    """A symptom on the cause's own object says nothing more; one on another object may be what somebody looks for."""
    home = view.where.home(tree.found[place].object)
    return all(view.where.home(tree.found[cause].object) != home for cause in tree.causes[place])


def _echo(finding: Finding) -> Finding:
    return replace(finding, confidence=round(finding.confidence * ECHO, 2))


def _score(view: Ranking, tree: _Tree, place: int) -> float:
    """What orders the causes; no figure that anybody sees."""
    finding, effects = tree.found[place], tree.effects(place)
    reached = view.relation(finding)[1]
    return (
        finding.confidence
        - (STEP * reached.depth if reached else 0.0)
        - (STALE if view.is_old(finding) else 0.0)
        - (HEALED if view.is_over(finding) else 0.0)
        + (FRESHLY_CHANGED if view.is_changed(finding) else 0.0)
        + BREADTH * min(MAX_BREADTH, len(_others(view, tree, place, effects)))
    )


def _others(view: Ranking, tree: _Tree, place: int, effects: Iterable[int]) -> set[Key]:
    own = view.where.home(tree.found[place].object)
    return {home for at in effects if (home := view.where.home(tree.found[at].object)) != own}


def _told(view: Ranking, tree: _Tree, place: int) -> Finding:
    """A cause with its symptoms, its computed confidence and its place relative to the Signal."""
    finding, effects = tree.found[place], tree.effects(place)
    texts = (*finding.explains, *(f"{tree.found[at].category}: {tree.found[at].summary}"[:253] for at in effects))
    relation, reached = view.relation(finding)
    touches = any(view.relation(tree.found[at])[0] in (OWN, NEEDED) for at in effects)
    return replace(
        finding,
        explains=tuple(dict.fromkeys(texts))[:MAX_EXPLAINS],
        confidence=_confidence(view, tree, place),
        summary=_placed(view, finding, relation, reached, touches=touches),
        facts={**finding.facts, "relation": relation},
    )


def _confidence(view: Ranking, tree: _Tree, place: int) -> float:
    """Raised by each other object that it explains, lowered where it is old."""
    finding = tree.found[place]
    doubt = 1.0 - finding.confidence
    for _ in range(min(MAX_BREADTH, len(_others(view, tree, place, tree.effects(place))))):
        doubt *= 0.85
    figure = max(finding.confidence, min(MAX_CERTAINTY, 1.0 - doubt))
    if view.is_old(finding):
        figure -= STALE
    return round(figure, 2)


_WORDS: Final[Mapping[str, str]] = {
    NEEDED: "outside {target}, which feels it",
    CLUSTER_WIDE: "a cause of the whole cluster, outside {target}",
    NEEDING: "outside {target}, which it depends on itself",
    NEIGHBOUR: "outside {target}, with no known link to it",
}


def _placed(view: Ranking, finding: Finding, relation: str, reached: LinkedObject | None, *, touches: bool) -> str:
    """The summary; a cause outside the Signal's own object is named as such."""
    target = view.snapshot.target.display
    if relation == OWN:
        return finding.summary
    if touches and relation == NEIGHBOUR:
        return _with(finding.summary, f"outside {target}, which feels it")
    if reached is not None:
        how = f"{reached.way[0]} it" if len(reached.way) == 1 else "depends on it"
        return _with(finding.summary, f"outside {target}, which {how}")
    return _with(finding.summary, _WORDS[relation].format(target=target))


def _with(summary: str, words: str) -> str:
    note = f" ({words})"
    return summary[: MAX_SUMMARY - len(note)] + note
