"""What is known while a snapshot is being taken: the target, what was listed, what pods and events say.

The conditions in `table` are questions to this state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import OwnerChain
from inquest.core.cluster.objects import (
    condition_of,
    event_text,
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    template_of,
)
from inquest.core.cluster.pods import all_statuses, state_of
from inquest.core.cluster.relations import (
    Step,
    account_of,
    claims_of,
    controller_of,
    is_selected,
    namespace_meant,
    owner_lineage,
)
from inquest.core.diagnosis.health import is_unwell
from inquest.core.evidence.evidence import Json
from inquest.gather.snapshot.entries import Answer, SnapshotEntry, items_of

SYSTEM: Final = "kube-system"


@dataclass(frozen=True)
class TargetPods:
    """Pods of the target and the others of its namespace; a read that failed is kept as such."""

    own: Answer
    others: Answer

    @property
    def mine(self) -> tuple[Json, ...]:
        return items_of(self.own)

    @property
    def neighbours(self) -> tuple[Json, ...]:
        """Empty where the others could not be read."""
        names = {(namespace_of(pod), name_of(pod)) for pod in self.mine}
        return tuple(pod for pod in items_of(self.others) if (namespace_of(pod), name_of(pod)) not in names)


@dataclass(frozen=True)
class ClusterState:
    """Raw objects, not yet redacted: nothing of it leaves this package."""

    taken_at: datetime
    chain: OwnerChain
    namespace: str
    pods: TargetPods
    events: tuple[Json, ...] = ()
    """Warnings of the namespace."""
    pushed: tuple[Json, ...] = ()
    """Normal events about pods of the namespace that had to leave for others."""
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """What the rows of the table gave, by the name of the read."""
    named: tuple[Json, ...] = ()
    """What was read by name."""
    logs: tuple[SnapshotEntry, ...] = ()
    called: tuple[Step, ...] = ()
    """Services that the target's settings name."""

    @property
    def target(self) -> TargetRef:
        return self.chain.target

    @property
    def root(self) -> TargetRef:
        return self.chain.root

    @property
    def is_about_namespace(self) -> bool:
        return bool(self.namespace) and namespace_meant(self.target) == self.namespace

    def items(self, read: str) -> tuple[Json, ...]:
        return items_of(self.answers[read]) if read in self.answers else ()

    @property
    def all_pods(self) -> tuple[Json, ...]:
        return (*self.pods.mine, *self.pods.neighbours)

    @property
    def objects(self) -> Iterator[Json]:
        """Everything that was read so far."""
        yield from (found for found in self.chain.objects if found is not None)
        yield from self.all_pods
        yield from self.named
        for answer in self.answers.values():
            yield from items_of(answer)

    @cached_property
    def _index(self) -> Mapping[tuple[str, str, str], Json]:
        return {(str(each.get("kind")), namespace_of(each), name_of(each)): each for each in self.objects}

    def look(self, kind: str, namespace: str, name: str) -> Json | None:
        """One object among those that were read."""
        return self._index.get((kind, namespace, name))

    # --- what concerns the target

    @cached_property
    def family(self) -> frozenset[tuple[str, str]]:
        return frozenset((ref.kind, ref.name) for ref in (self.target, *self.chain.owners))

    @cached_property
    def owners(self) -> frozenset[tuple[str, str]]:
        """The target, its owners, its pods, everything between them, and the claims of the pods."""
        steps = (step for pod in self.pods.mine for step in owner_lineage(pod, self.look))
        claims = (("PersistentVolumeClaim", name) for pod in self.pods.mine for name in claims_of(pod))
        between = (*self.items("neighbour replica sets"), *self.items("neighbour jobs"))
        made = ((str(found.get("kind")), name_of(found)) for found in between if self._is_made(found))
        return self.family.union(steps, claims, made)

    def _is_made(self, found: Json) -> bool:
        """Whether one of the family controls it; it may have no pods yet."""
        owner = controller_of(found)
        return (str(owner.get("kind")), str(owner.get("name"))) in self.family

    @cached_property
    def labelled(self) -> tuple[Json, ...]:
        """Pods of the target, one of those with the same labels; or what stands for them where there is none yet."""
        if self.pods.mine or self.chain.root_object is None:
            alike = {(namespace_of(pod), *sorted(labels_of(pod).items())): pod for pod in self.pods.mine}
            return tuple(alike.values())
        template = template_of(self.chain.root_object)
        metadata = {"labels": labels_of(template), "namespace": self.namespace}
        return ({"kind": "Pod", "metadata": metadata, "spec": spec_of(template)},)

    @cached_property
    def accounts(self) -> frozenset[str]:
        """Service accounts as which the target acts."""
        return frozenset(account_of(pod) for pod in self.pods.mine or self.labelled)

    def is_served_by(self, service: Json) -> bool:
        """Whether a Service sends to the target."""
        is_target = ("Service", name_of(service)) in self.family
        return is_target or any(is_selected(pod, service) for pod in self.labelled)

    # --- what is said

    @cached_property
    def words(self) -> str:
        """Everything that pods, events and logs say of trouble, in small letters."""
        return "\n".join((*self._events(), *self._states(), *(part.text for part in self.logs))).lower()

    @cached_property
    def _said(self) -> dict[tuple[str, ...], bool]:
        """Answers are remembered: the same is asked of every pod."""
        return {}

    def says(self, *words: str) -> bool:
        if words not in self._said:
            self._said[words] = any(word in self.words for word in words)
        return self._said[words]

    def _events(self) -> Iterator[str]:
        return (f"{event.get('reason')} {event_text(event)}" for event in self.events)

    def _states(self) -> Iterator[str]:
        for found in (*self.all_pods, *self.items("neighbour deployments"), *self.items("neighbour replica sets")):
            status = status_of(found)
            yield from _messages(status.get("conditions") or (), status)
            for container in all_statuses(status):
                yield from _messages([state_of(container, word) for word in ("waiting", "terminated")])
        for link in self.chain.objects:
            yield from _messages(status_of(link or {}).get("conditions") or ())

    # --- questions of the table

    @property
    def is_pending(self) -> bool:
        """A pod waits for a node."""
        return any(_is_unplaced(pod) for pod in self.all_pods)

    @property
    def is_unseen(self) -> bool:
        """A pod waits and no scheduler has looked at it, or a workload was changed and no controller has."""
        unseen = (pod for pod in self.all_pods if _is_unplaced(pod))
        lagging = (found for found in self.objects if _lags(found))
        return any(not condition_of(status_of(pod), "PodScheduled") for pod in unseen) or any(lagging)

    def are_unwell(self, items: Iterable[Json]) -> bool:
        return any(is_unwell(found, self.taken_at) for found in items)


def _messages(states: Iterable[Json], *more: Json) -> Iterator[str]:
    return (f"{each.get('reason') or ''} {each.get('message') or ''}" for each in (*states, *more))


def _is_unplaced(pod: Json) -> bool:
    return status_of(pod).get("phase") == "Pending" and not spec_of(pod).get("nodeName")


def _lags(found: Json) -> bool:
    seen = status_of(found).get("observedGeneration")
    wanted = metadata_of(found).get("generation")
    return isinstance(seen, int) and isinstance(wanted, int) and seen < wanted
