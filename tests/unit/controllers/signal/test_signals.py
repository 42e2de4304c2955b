"""From a Signal to a case, on a Status of a few lines: holds, duplicates, takeovers, and what cannot be read."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

import pytest

from inquest.api.base import rfc3339
from inquest.api.catalogue import RemediationWorkflow
from inquest.api.investigation import Investigation
from inquest.api.names import case_lease_name, fingerprint, investigation_name
from inquest.api.notices import NoticeState
from inquest.api.refs import PinnedTarget, TargetRef
from inquest.controllers.catalogue.live import content_hash, content_of
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.notices import LATEST_NOTICE, NOTICE_LOOK
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.signal.controller import SignalController
from inquest.controllers.signal.opening import ORPHAN_LEASE
from inquest.controllers.status import redact_object
from inquest.core.case.facts import Opened
from inquest.core.case.steps import BeginCase
from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.evidence import Gap
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.history.history import History, HistoryEntry
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import Redactor
from inquest.errors import AlreadyExists, AmbiguousKind, Conflict, Forbidden, NotFound
from inquest.ports.kubernetes import ListedEverywhere, ResourceKind
from inquest.ports.process import Notice
from inquest.settings.settings import Settings
from tests.support.kube import proposal

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
HOME = "inquest-system"
TARGET = TargetRef(api_version="apps/v1", kind="Deployment", name="cart", namespace="shop")
PRINT = fingerprint("shop", "Deployment", "cart")
LEASE = case_lease_name(PRINT)
HASH = f"sha256:{'0' * 64}"
PIN = PinnedTarget(kind="Deployment", name="cart", namespace="shop", uid="u-1", spec_hash=HASH)
KEY_LIKE = "sk-" + "0123456789abcdef" * 3
"""A name that looks like an API key."""


def as_served(obj: Json) -> Json:
    """As the API server gives it: with another version whenever its content is another."""
    shown = copy.deepcopy(obj)
    shown["metadata"]["resourceVersion"] = version_of(obj)
    return shown


def version_of(obj: Json) -> str:
    return str(crc32(json.dumps(obj, sort_keys=True, default=str).encode()))


@dataclass
class World:
    """Every port that a Signal needs; writes are noted."""

    held: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    moment: datetime = NOW
    namespace_labels: dict[str, str] = field(default_factory=lambda: {"inquest.dev/managed": "true"})
    target_labels: dict[str, str] = field(default_factory=dict)
    namespaced: bool = True
    groups: tuple[str, ...] = ()
    """API groups that serve the target's kind, where more than one does."""
    past: History = field(default_factory=lambda: History(available=True))
    told: list[Notice] = field(default_factory=list)
    stand: NoticeState = NoticeState.SENT
    """Where every notice stands."""
    around: dict[str, str] = field(default_factory=dict)
    """Labels of the namespace as they were read with the target."""
    asked: list[str] = field(default_factory=list)
    rung: list[tuple[str, str]] = field(default_factory=list)
    """Kind and name of what is to be looked at soon."""
    are_namespaces_hidden: bool = False
    """No Namespace may be read."""
    settings: Settings = field(default_factory=Settings)
    is_healthy: bool = True
    looked_at: list[str] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    """Targets around which was read."""
    unseen: frozenset[str] = frozenset()
    """Namespaces that cannot be read."""

    def put(self, kind: str, name: str, namespace: str, **rest: Any) -> Json:
        meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
        meta["creationTimestamp"] = self.moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        meta |= rest.pop("metadata", {})
        self.held[kind, namespace, name] = {"kind": kind, "metadata": meta, **rest}
        return self.held[kind, namespace, name]

    async def now(self) -> datetime:
        return self.moment

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        if (kind.kind, namespace, name) not in self.held:
            raise NotFound(name)
        return as_served(self.held[kind.kind, namespace, name])

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        key, _, value = labels.partition("=")
        if not labels:
            return tuple(as_served(obj) for place, obj in self.held.items() if place[0] == kind.kind)
        found = [obj for place, obj in self.held.items() if place[0] == kind.kind]
        return tuple(as_served(obj) for obj in found if (obj["metadata"].get("labels") or {}).get(key) == value)

    async def seen(self, kind: ResourceKind) -> ListedEverywhere:
        return ListedEverywhere(await self.list(kind), self.unseen)

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        meta, rest = obj.value["metadata"], {key: obj.value[key] for key in obj.value if key in ("spec",)}
        if (kind.kind, meta["namespace"], meta["name"]) in self.held:
            raise AlreadyExists(meta["name"])
        self.written.append(f"create {kind.kind}")
        return as_served(self.put(kind.kind, meta["name"], meta["namespace"], metadata=meta, **rest))

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        meta = obj.value["metadata"]
        self.written.append(f"apply {kind.kind}")
        found = self.held[kind.kind, meta["namespace"], meta["name"]]
        found["status"] = copy.deepcopy(obj.value["status"])
        return as_served(found)

    async def swap(self, kind: ResourceKind, obj: Redacted[Json], *, status: bool = True, **_: Any) -> Json:
        if status:
            return await self.apply_status(kind, obj)
        meta = obj.value["metadata"]
        self.written.append(f"swap {kind.kind}")
        found = self.held[kind.kind, meta["namespace"], meta["name"]]
        found["spec"] |= obj.value["spec"]
        return as_served(found)

    async def delete(self, kind: ResourceKind, name: str, namespace: str, *, uid: str = "") -> None:
        self.held.pop((kind.kind, namespace, name), None)

    async def event(self, regarding: Json, reason: str, message: Redacted[str], *, warning: bool = False) -> None:
        self.written.append(f"event {reason}")

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        if self.groups and not api_version:
            raise AmbiguousKind(word, self.groups)
        return ResourceKind("apps", "v1", word, f"{word.lower()}s", self.namespaced)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        self.asked.append(kind.kind)
        if self.are_namespaces_hidden:
            raise Forbidden(f"namespaces {name} is forbidden")
        return {"metadata": {"name": name, "labels": self.namespace_labels}}

    async def context(self, target: TargetRef) -> ResourceContext:
        self.contexts.append(target.display)
        return ResourceContext(
            target=target,
            root=target,
            target_labels=self.target_labels,
            root_pin=PIN,
            namespace_labels=self.around,
        )

    async def snapshot(self, target: TargetRef, since: datetime | None = None) -> Snapshot:
        self.looked_at.append(target.display)
        gaps = () if self.is_healthy else (Gap("pods", "no answer"),)
        return Snapshot(taken_at=self.moment, target=target, root=target, gaps=gaps)

    async def history(self, target: TargetRef, spec_hash: str) -> History:
        return self.past

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        self.told.append(notice.value)
        return self.stand

    def ports(self) -> ControllerPorts:
        ports: dict[str, Any] = {one.name: None for one in fields(ControllerPorts)} | dict.fromkeys(
            ("cluster", "target_reader", "status", "datastorage", "notifier"), self
        )
        ports |= {"settings": self.settings, "redactor": Redactor(), "offer": self.offer}
        return ControllerPorts(**ports)

    def offer(self, kind: ResourceKind, namespace: str, name: str, uid: str) -> None:
        self.rung.append((kind.kind, name))

    def signal(self, name: str = "sig-a", namespace: str = HOME, **spec: Any) -> Json:
        source, target = {"type": "Manual"}, TARGET.to_object()
        body = {"name": "Down", "severity": "high", "source": source, "target": target, **spec}
        return self.put("Signal", name, namespace, spec=body)

    async def look(self, name: str = "sig-a", namespace: str = HOME) -> timedelta | None:
        return await self.signals.look(namespace, name)

    def __post_init__(self) -> None:
        self.signals = SignalController(self.ports())


@pytest.fixture
def world() -> World:
    return World()


def a_case(world: World, name: str, namespace: str, **status: Any) -> Json:
    """An Investigation that carries the label of the fingerprint."""
    content = {"name": "Down", "severity": "high", "source": {"type": "Manual"}, "target": TARGET.to_object()}
    labels = {"inquest.dev/fingerprint": PRINT[:16]}
    return world.put(
        "Investigation", name, namespace, metadata={"labels": labels}, spec={"signal": content}, status=status
    )


def a_lease(world: World, place: str) -> Json:
    meta = {"annotations": {"inquest.dev/investigation": place}, "labels": {"inquest.dev/signal": "sig-b"}}
    return world.put("Lease", LEASE, HOME, metadata=meta)


async def test_a_blocked_signal_is_written_once_for_each_block(world: World) -> None:
    world.namespace_labels = {}
    signal = world.signal()

    rests = [await world.look() for _ in range(20)]

    assert world.written == ["apply Signal", "event SignalBlocked"]
    assert signal["status"]["blockedCount"] == 1
    assert all(rest and rest <= timedelta(seconds=5) for rest in rests)

    world.moment += timedelta(seconds=6)
    await world.look()
    assert signal["status"]["blockedCount"] == 2


async def test_a_namespace_that_was_read_with_the_target_is_not_read_again(world: World) -> None:
    world.around, world.namespace_labels = {"inquest.dev/managed": "true"}, {}
    signal = world.signal()
    await world.look()

    assert (signal["status"]["phase"], world.asked) == ("Accepted", [])


async def test_a_label_ends_a_block_before_its_time(world: World) -> None:
    world.namespace_labels = {}
    signal = world.signal()
    await world.look()

    world.namespace_labels = {"inquest.dev/managed": "true"}
    await world.look()

    assert signal["status"]["phase"] == "Accepted"


async def test_the_label_of_the_target_itself_decides(world: World) -> None:
    world.target_labels = {"inquest.dev/managed": "false"}
    signal = world.signal()

    await world.look()

    assert signal["status"]["reason"] == "OutOfScope"


async def test_a_namespace_that_may_not_be_read_leaves_the_scope_unknown_and_says_so(world: World) -> None:
    world.are_namespaces_hidden = True
    signal = world.signal()

    await world.look()

    assert (signal["status"]["phase"], signal["status"]["reason"]) == ("Blocked", "ScopeUnknown")


@pytest.mark.parametrize(
    "target",
    [
        {"kind": "Pod", "name": "a", "namespace": "till"},
        {"kind": "Node", "name": "n1"},
        {"kind": "Unknown", "name": "x"},
    ],
    ids=["elsewhere", "of the cluster", "of no known kind"],
)
async def test_where_single_namespaces_are_looked_after_nothing_else_is_read(world: World, target: Json) -> None:
    world.settings = Settings.model_validate({"kubernetes": {"namespaces": ["shop", "pay"]}})
    world.signals = SignalController(world.ports())
    world.namespaced = "namespace" in target
    signal = world.signal(target=target)

    await world.look()

    assert (signal["status"]["phase"], signal["status"]["reason"]) == ("Blocked", "OutOfScope")
    assert "looks after targets in pay, shop" in signal["status"]["message"]
    assert (world.contexts, world.looked_at) == ([], [])


async def test_a_cluster_scoped_target_is_in_no_tenants_namespace(world: World) -> None:
    world.namespaced = False
    signal = world.signal(namespace="shop", target={"kind": "Node", "name": "n1", "namespace": "shop"})

    await world.look(namespace="shop")

    assert signal["status"]["reason"] == "OutOfScope"


async def test_what_cannot_be_read_fails_once_and_in_words(world: World) -> None:
    signal = world.signal(firingTime="0000-01-01T00:00:00Z")

    assert await world.look() is None
    assert await world.look() is None

    assert (signal["status"]["phase"], signal["status"]["reason"]) == ("Failed", "Malformed")
    assert "firingTime" in signal["status"]["message"]
    assert world.written == ["apply Signal", "event SignalFailed"]


async def test_an_odd_investigation_blocks_no_other(world: World) -> None:
    odd = a_case(world, "inv-odd", HOME, fingerprint=PRINT)
    odd["spec"]["signal"]["firingTime"] = "0000-01-01T00:00:00Z"
    signal = world.signal()

    await world.look()

    assert signal["status"]["phase"] == "Accepted"


@pytest.mark.parametrize(
    ("namespace", "status"),
    [("shop", {}), ("shop", {"fingerprint": "0" * 64}), ("elsewhere", {"fingerprint": PRINT})],
    ids=["nobody said so", "another's", "another tenant's"],
)
async def test_a_label_alone_makes_no_duplicate(world: World, namespace: str, status: Json) -> None:
    a_case(world, "inv-forged", namespace, **status)
    signal = world.signal()

    await world.look()

    assert signal["status"]["phase"] == "Accepted"


async def test_a_young_case_counts_where_the_lease_names_it(world: World) -> None:
    a_case(world, "inv-young", "shop")
    a_lease(world, "shop/inv-young")
    signal = world.signal()

    await world.look()

    assert signal["status"]["duplicateOf"]["name"] == "inv-young"


async def test_a_duplicate_follows_its_case_in_the_namespace_of_the_target(world: World) -> None:
    case = a_case(world, "inv-there", "shop", fingerprint=PRINT)
    signal = world.signal()
    await world.look()

    case["status"] |= {"phase": "Completed", "resolution": "Remediated"}
    await world.look()

    said = {one["type"]: one["reason"] for one in signal["status"]["conditions"]}
    assert said["Concluded"] == "Inherited"


async def test_a_lease_of_nobody_is_waited_for_and_taken_over(world: World) -> None:
    a_lease(world, f"{HOME}/inv-gone")
    world.signal("sig-b")
    signal = world.signal()

    assert await world.look() == timedelta(seconds=5)
    assert signal["status"]["phase"] == "Pending"

    world.moment += ORPHAN_LEASE + timedelta(seconds=1)
    with pytest.raises(Conflict):
        await world.look()
    await world.look()
    assert signal["status"]["phase"] == "Accepted"


async def test_a_duplicate_of_what_is_gone_is_concluded_and_opens_no_case(world: World) -> None:
    a_case(world, "inv-there", "shop", fingerprint=PRINT)
    signal = world.signal()
    await world.look()
    del world.held["Investigation", "shop", "inv-there"]

    assert await world.look() is None
    assert signal["status"]["phase"] == "Duplicate"
    concluded = next(one for one in signal["status"]["conditions"] if one["type"] == "Concluded")
    assert (concluded["status"], concluded["reason"]) == ("False", "OriginalDeleted")
    assert [one for one in world.held if one[0] == "Investigation"] == []


async def test_an_investigation_of_somebody_else_is_not_adopted(world: World) -> None:
    name = investigation_name(PRINT, "uid-sig-a", 1)
    world.put("Investigation", name, HOME, spec={})
    signal = world.signal()

    await world.look()

    assert (signal["status"]["phase"], signal["status"]["reason"]) == ("Failed", "InternalError")
    assert name in signal["status"]["message"]
    assert ("Lease", HOME, LEASE) not in world.held


async def test_ours_is_adopted_and_the_end_is_told_once(world: World) -> None:
    signal = world.signal()
    await world.look()
    del signal["status"]
    await world.look()
    assert signal["status"]["phase"] == "Accepted"

    name = signal["status"]["investigationRef"]["name"]
    world.held["Investigation", HOME, name]["status"] = {"phase": "Completed", "resolution": "NoActionRequired"}
    for _ in range(3):
        world.moment += timedelta(seconds=1)
        await world.look()

    assert signal["status"]["recommendation"]["generatedAt"] == "2026-11-22T10:00:01Z"


async def test_a_kind_of_several_groups_still_tells_two_objects_apart(world: World) -> None:
    world.groups = ("apps/v1", "extensions/v1beta1")
    for name in ("cart", "db"):
        world.signal(f"sig-{name}", target={"kind": "Deployment", "name": name, "namespace": "shop"})
        await world.look(f"sig-{name}")

    seen = [world.held["Signal", HOME, f"sig-{name}"]["status"] for name in ("cart", "db")]
    assert [one["phase"] for one in seen] == ["Accepted", "Accepted"]
    assert len({one["fingerprint"] for one in seen}) == 2


async def test_people_are_told_once_that_a_chain_of_repairs_did_not_help(world: World) -> None:
    world.past = History(available=True, recent=tuple(ineffective(number) for number in range(3)))
    signal = world.signal()

    for _ in range(3):
        await world.look()

    assert signal["status"]["reason"] == "IneffectiveChain"
    assert [(one.type, one.priority, one.name) for one in world.told] == [("ManualReview", "High", "sig-a")]
    assert "Deployment/cart" in world.told[0].body


async def test_ten_signals_of_one_problem_are_told_once(world: World) -> None:
    world.signal("sig-a")
    await world.look("sig-a")
    for number in range(14):
        world.signal(f"sig-{number}")
        await world.look(f"sig-{number}")

    assert [(one.type, one.priority, one.title, one.name) for one in world.told] == [
        ("StatusUpdate", "Low", "Down was seen 10 times", "sig-a")
    ]
    assert world.told[0].key.endswith("/StatusUpdate/duplicates-10")
    assert world.told[0].owners[0].namespace == "shop"


async def test_a_person_who_asks_about_what_is_not_looked_after_hears_so_once(world: World) -> None:
    world.namespace_labels = {}
    signal = world.signal()

    for _ in range(3):
        await world.look()

    assert signal["status"]["reason"] == "OutOfScope"
    assert [(one.type, one.priority) for one in world.told] == [("Escalation", "High")]


def restarted(world: World, stand: NoticeState) -> None:
    """Another process: it remembers what stands in the objects, and its notifier nothing at all."""
    world.signals = SignalController(world.ports())
    world.told.clear()
    world.stand = stand


def standing(signal: Json) -> list[str]:
    """Where the notices of a Signal stand."""
    return [notice["state"] for notice in signal["status"].get("notices", ())]


async def held_signal(world: World, stand: NoticeState = NoticeState.PENDING) -> Json:
    """One that is held back, of which people could not be told."""
    world.past = History(available=True, recent=tuple(ineffective(number) for number in range(3)))
    world.stand = stand
    signal = world.signal()
    await world.look()
    return signal


async def test_what_nobody_got_before_a_restart_is_told_after_it_under_its_key(world: World) -> None:
    signal = await held_signal(world)
    (first,), waiting = world.told[:], standing(signal)

    restarted(world, NoticeState.SENT)
    for _ in range(3):
        await world.look()

    (again,) = world.told
    assert (again.key, again.type, again.priority) == (first.key, "ManualReview", "High")
    assert (again.title, again.body) == (first.title, first.body)
    assert (waiting, standing(signal)) == (["Pending"], ["Sent"])


async def test_what_people_got_before_a_restart_is_not_told_again(world: World) -> None:
    """Nor by another Signal that the same block holds."""
    signal = await held_signal(world, NoticeState.SENT)

    restarted(world, NoticeState.SENT)
    await world.look()
    other = world.signal("sig-other")
    await world.look("sig-other")

    assert (signal["status"]["reason"], other["status"]["reason"]) == ("IneffectiveChain", "IneffectiveChain")
    assert world.told == []


async def test_one_that_is_on_its_way_is_looked_at_soon_and_nothing_is_written(world: World) -> None:
    await held_signal(world)
    written = len(world.written)

    assert await world.look() == NOTICE_LOOK
    assert len(world.written) == written


@pytest.mark.parametrize("now", [("Accepted", "Accepted"), ("Blocked", "ManualReviewPending")])
async def test_a_block_that_is_over_is_no_news(world: World, now: tuple[str, str]) -> None:
    signal = await held_signal(world)
    signal["status"] |= {"phase": now[0], "reason": now[1]}

    restarted(world, NoticeState.SENT)
    await world.look()

    assert (world.told, standing(signal)) == ([], ["Failed"])


async def test_a_signal_that_has_ended_still_tells(world: World) -> None:
    signal = await held_signal(world)
    key = signal["status"]["notices"][0]["key"].replace("IneffectiveChain", "ConsecutiveFailures")
    signal["status"]["notices"][0] |= {"key": key, "type": "Escalation"}
    signal["status"] |= {"phase": "Failed", "reason": "ConsecutiveFailures"}

    restarted(world, NoticeState.SENT)
    await world.look()

    assert [(one.type, one.key) for one in world.told] == [("Escalation", key)]
    assert standing(signal) == ["Sent"]


async def test_a_receiver_that_is_away_for_a_day_is_not_waited_for(world: World) -> None:
    signal = await held_signal(world)

    restarted(world, NoticeState.PENDING)
    world.moment += LATEST_NOTICE + timedelta(seconds=1)
    await world.look()

    assert (world.told, standing(signal)) == ([], ["Failed"])


async def test_a_count_that_nobody_heard_of_is_told_after_a_restart(world: World) -> None:
    signal = world.signal("sig-a")
    await world.look("sig-a")
    world.stand = NoticeState.PENDING
    for number in range(9):
        world.signal(f"sig-{number}")
        await world.look(f"sig-{number}")
    (first,), waiting = world.told[:], standing(signal)

    restarted(world, NoticeState.SENT)
    await world.look("sig-a")

    assert [(one.key, one.title, one.body) for one in world.told] == [(first.key, first.title, first.body)]
    assert (waiting, standing(signal)) == (["Pending"], ["Sent"])


def ineffective(number: int) -> HistoryEntry:
    return HistoryEntry(
        remediation_uid=f"r-{number}",
        completed_at=NOW - timedelta(minutes=30 - number),
        outcome="Remediated",
        effectiveness_score=0.1,
        pre_spec_hash=HASH,
        post_spec_hash=HASH,
    )


async def test_earlier_cases_of_the_same_problem_are_counted(world: World) -> None:
    old = a_case(world, "inv-old", HOME, fingerprint=PRINT, phase="Completed", completedAt="2026-11-20T11:00:00Z")
    old["metadata"]["creationTimestamp"] = "2026-11-20T10:00:00Z"
    signal = world.signal()

    await world.look()

    made = world.held["Investigation", HOME, signal["status"]["investigationRef"]["name"]]
    assert made["spec"]["signal"]["dedup"]["occurrences"] == 2
    assert made["spec"]["signal"]["dedup"]["firstSeen"] == "2026-11-20T10:00:00Z"


async def test_names_are_written_exactly_and_texts_are_not() -> None:
    obj = {
        "metadata": {"name": KEY_LIKE},
        "spec": {"signalRef": {"name": KEY_LIKE}, "text": f"key {KEY_LIKE}"},
    }

    found = redact_object(Redactor().strings, obj).value

    assert found["metadata"]["name"] == found["spec"]["signalRef"]["name"] == KEY_LIKE
    assert KEY_LIKE not in found["spec"]["text"]


async def test_a_name_of_the_setting_foretells_the_fault_that_it_gives() -> None:
    world = World(settings=Settings(intake={"proactive": {"DiskFullSoon": "DiskPressure"}}))
    signal = world.signal(name="sig-a")
    signal["spec"]["name"] = "DiskFullSoon"

    await world.look()

    assert signal["status"]["context"]["signalName"] == "DiskPressure"


# --- events that are not seen any more ------------------------------------------------------------------------------


async def an_accepted(world: World, source: str = "KubernetesEvent") -> Json:
    signal = world.signal(source={"type": source}, target={**TARGET.to_object(), "kind": "Pod", "name": "cart-1"})
    await world.look()
    signal["status"]["rootOwner"] = TARGET.to_object()
    assert signal["status"]["phase"] == "Accepted"
    return signal


@pytest.mark.parametrize("row", ["resources-11.4-06"])
async def test_an_event_that_went_quiet_over_a_healthy_target_is_resolved(row: str, world: World) -> None:
    signal = await an_accepted(world)
    world.moment += timedelta(minutes=29, seconds=59)
    soon = await world.look()
    before = list(world.looked_at)

    world.moment += timedelta(seconds=1)
    at_once = await world.look()
    await world.look()

    assert (soon, before, at_once) == (timedelta(seconds=1), [], timedelta(0))
    assert (signal["spec"]["resolvedTime"], signal["status"]["phase"]) == ("2026-11-22T10:30:00Z", "Resolved")
    assert world.looked_at == ["Deployment/cart"], "the pod may be replaced: its owner is asked"


@pytest.mark.parametrize("row", ["resources-11.4-06"])
async def test_silence_over_a_target_whose_health_is_unknown_resolves_nothing(row: str, world: World) -> None:
    signal = await an_accepted(world)
    world.is_healthy = False
    world.moment += timedelta(minutes=31)

    again = await world.look()

    assert (again, "resolvedTime" in signal["spec"]) == (timedelta(minutes=5), False)
    assert world.looked_at == ["Deployment/cart"]


async def test_a_target_that_is_not_healthy_is_looked_at_again_after_as_long_as_silence_is() -> None:
    world = World(settings=Settings(intake={"events": {"quiet": "20s"}}))
    await an_accepted(world)
    world.is_healthy = False
    world.moment += timedelta(seconds=20)

    assert await world.look() == timedelta(seconds=20)


async def test_silence_of_any_other_source_means_nothing(world: World) -> None:
    await an_accepted(world, "Alertmanager")
    world.moment += timedelta(hours=2)

    await world.look()

    assert world.looked_at == []


async def test_a_later_sighting_begins_the_wait_anew(world: World) -> None:
    signal = await an_accepted(world)
    signal["status"]["lastSeen"] = "2026-11-22T10:20:00Z"
    world.moment += timedelta(minutes=49)

    assert await world.look() == timedelta(minutes=1)
    assert world.looked_at == []


async def test_an_event_that_waits_for_a_free_slot_and_is_over_opens_no_case(world: World) -> None:
    signal = await an_accepted(world)
    world.held = {place: obj for place, obj in world.held.items() if place[0] == "Signal"}
    blocked = {"phase": "Blocked", "reason": "RateLimited", "blockedUntil": "2026-11-22T10:45:00Z"}
    signal["status"] |= blocked
    world.moment += timedelta(minutes=46)

    await world.look()
    await world.look()

    assert signal["status"]["phase"] == "Resolved"
    assert not [place for place in world.held if place[0] == "Investigation"]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param({}, "Accepted", id="since then"),
        pytest.param({"registeredAt": "2026-11-22T08:00:00Z"}, "ManualReviewPending", id="before the case ended"),
        pytest.param({"registration": "Invalid"}, "ManualReviewPending", id="refused"),
    ],
)
@pytest.mark.parametrize("is_wanted", [True, False], ids=["wanted", "for another cause"])
async def test_a_hold_for_want_of_a_workflow_ends_when_one_comes(
    world: World, status: Json, reason: str, is_wanted: bool
) -> None:
    applied = proposal("RemediationWorkflow")
    found = RemediationWorkflow.from_object(applied)
    ended = {"phase": "Completed", "resolution": "ManualReviewRequired", "subReason": "NoMatchingWorkflows"}
    ended |= {"completedAt": "2026-11-22T09:00:00Z", "fingerprint": PRINT}
    a_case(world, "inv-old", HOME, **ended, wantedActions=[found.spec.action_type if is_wanted else "RestartPod"])
    signal = world.signal()
    await world.look()
    assert signal["status"]["reason"] == "ManualReviewPending"

    told = {"registration": "Active", "contentHash": content_hash(content_of(found))}
    told |= {"registeredAt": "2026-11-22T09:30:00Z"} | status
    world.put("RemediationWorkflow", "new", HOME, spec=applied["spec"], status=told)
    await world.look()

    assert signal["status"]["reason"] == (reason if is_wanted else "ManualReviewPending")


@pytest.mark.parametrize(
    ("own", "others", "begins"),
    [
        ("2026-11-22T09:50:00Z", ("2026-11-22T09:40:00Z", "2026-11-22T09:45:00Z"), "2026-11-22T09:40:00Z"),
        (None, ("2026-11-22T09:40:00Z",), "2026-11-22T09:40:00Z"),
        ("2026-11-22T09:50:00Z", ("2026-11-22T09:55:00Z", None), "2026-11-22T09:50:00Z"),
        (None, (None,), None),
    ],
    ids=["others are earlier", "its own is not known", "its own is the earliest", "nobody knows"],
)
async def test_a_case_begins_with_the_earliest_firing_time_of_those_that_joined_it(
    world: World, own: str | None, others: tuple[str | None, ...], begins: str | None
) -> None:
    for number, at in enumerate((own, *others)):
        world.signal(f"sig-{number}", **({"firingTime": at} if at else {}))
        await world.look(f"sig-{number}")
    (case,) = (found for (kind, _, _), found in world.held.items() if kind == "Investigation")
    work = SimpleNamespace(investigation=Investigation.from_object(case))

    opened = await Inquiries(replace(world.ports(), random=Random(1))).open(cast(Any, work), BeginCase())

    assert isinstance(opened, Opened)
    known = opened.spec.signal.firing_time
    assert (rfc3339(known) if known else None) == begins
    assert case["spec"]["signal"].get("firingTime") == own
