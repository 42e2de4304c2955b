"""What goes after its time, and what stays (behaviours, T49; resources, 14.3)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api.base import rfc3339
from inquest.api.investigation import Investigation
from inquest.api.names import INVESTIGATION_ANNOTATION, INVESTIGATION_LABEL
from inquest.api.signal import Signal
from inquest.controllers.investigation.finish import MOST_RETIRED, Archive
from inquest.controllers.signal.opening import ORPHAN_LEASE
from inquest.core.signals.retention import HELD, RetentionLimits, choose_retiring, overdue
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.settings.settings import Settings
from tests.unit.controllers.signal.test_signals import HOME, World

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)
WEEK = timedelta(days=7)
HOUR = timedelta(hours=1)
KEEPING = RetentionLimits(WEEK, 0)
RECORDED = {"type": "Recorded", "status": "True", "reason": "Stored", "message": "", "lastTransitionTime": rfc3339(NOW)}
CONTENT = {"name": "n", "severity": "high", "source": {"type": "Manual"}, "target": {"kind": "Pod", "name": "p"}}


def case_body(name: str, age: timedelta, *, namespace: str = "shop", **status: Any) -> Json:
    whole = {"phase": "Completed", "completedAt": rfc3339(NOW - age), "conditions": [RECORDED], **status}
    meta = {"name": name, "namespace": namespace, "uid": f"u-{namespace}-{name}"}
    return {"metadata": meta, "spec": {"signal": CONTENT}, "status": whole}


def case(name: str, age: timedelta, **more: Any) -> Investigation:
    return Investigation.from_object(case_body(name, age, **more))


def feedback_given(inv: Investigation) -> Investigation:
    body = inv.to_object()
    body["metadata"]["generation"] = 2
    body["spec"]["feedback"] = {"verdict": "Wrong", "by": "jane"}
    return Investigation.from_object(body)


def signal(name: str, age: timedelta, phase: str = "Accepted", ref: str = "", **status: Any) -> Signal:
    whole = {"phase": phase, "lastSeen": rfc3339(NOW - age), **status}
    whole |= {"duplicateOf" if phase == "Duplicate" else "investigationRef": {"name": ref}} if ref else {}
    meta = {"name": name, "namespace": "shop", "uid": f"s-{name}"}
    return Signal.from_object({"metadata": meta, "spec": CONTENT, "status": whole})


STAYS: dict[str, Investigation] = {
    "T49 it is young": case("a", WEEK - HOUR),
    "T49 it is open": case("a", 2 * WEEK, phase="AwaitingApproval"),
    "T49 nobody has stored it": case("a", 2 * WEEK, conditions=[]),
    "T49 storing it failed": case("a", 2 * WEEK, conditions=[RECORDED | {"status": "False"}]),
    "T49 nobody has stored what a person said since": feedback_given(case("a", 2 * WEEK)),
    "T49 it holds a Signal back": case("a", 2 * WEEK, nextAllowed=rfc3339(NOW + HOUR)),
    "T49 nobody knows when it ended": case("a", 2 * WEEK, completedAt=None),
}


@pytest.mark.parametrize("inv", STAYS.values(), ids=STAYS.keys())
def test_a_case_stays(inv: Investigation) -> None:
    assert overdue([inv], NOW, KEEPING) == ()


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Cancelled"], ids=lambda phase: f"T49 {phase}")
def test_a_stored_case_goes_after_its_time(phase: str) -> None:
    old = case("old", WEEK + HOUR, phase=phase)

    assert overdue([case("young", HOUR), old], NOW, KEEPING) == (old,)
    assert overdue([old], NOW, RetentionLimits(timedelta(), 0)) == ()


@pytest.mark.parametrize("row", ["T49"])
def test_the_oldest_of_too_many_go_in_each_namespace(row: str) -> None:
    shop = [case(f"c{day}", timedelta(days=day)) for day in (5, 2, 4, 3)]
    other = case("c9", timedelta(days=6), namespace="other")

    gone = overdue([*shop, other], NOW, RetentionLimits(WEEK, 2))

    assert [one.name for one in gone] == ["c5", "c4"]


def test_what_ended_within_a_day_is_not_counted_away() -> None:
    young = [case(f"c{number}", HELD - HOUR) for number in range(5)]

    assert overdue(young, NOW, RetentionLimits(WEEK, 1)) == ()


@given(st.lists(st.integers(0, 400), max_size=30), st.integers(0, 5))
def test_no_namespace_keeps_more_than_it_may_but_for_the_young(hours: list[int], most: int) -> None:
    cases = [case(f"c{number}", hour * HOUR) for number, hour in enumerate(hours)]
    gone = {one.uid for one in overdue(cases, NOW, RetentionLimits(WEEK, most))}
    kept = [hour for number, hour in enumerate(hours) if f"u-shop-c{number}" not in gone]

    assert all(hour * HOUR <= WEEK for hour in kept)
    assert not most or len([hour for hour in kept if hour * HOUR > HELD]) <= most


SIGNALS: dict[str, tuple[Signal, bool]] = {
    "T49 its case has gone": (signal("a", 2 * WEEK, ref="gone"), True),
    "T49 its case stays": (signal("a", 2 * WEEK, ref="there"), False),
    "T49 ignored": (signal("a", 2 * WEEK, "Ignored"), True),
    "T49 a duplicate of what has gone": (signal("a", 2 * WEEK, "Duplicate", ref="gone"), True),
    "T49 resolved": (signal("a", 2 * WEEK, "Resolved"), True),
    "T49 a duplicate of what stays": (signal("a", 2 * WEEK, "Duplicate", ref="there"), False),
    "T49 it was seen lately": (signal("a", HOUR, ref="gone"), False),
    "T49 it waits": (signal("a", 2 * WEEK, "Blocked"), False),
    "T49 nobody has looked at it": (signal("a", 2 * WEEK, "Pending"), False),
}


@pytest.mark.parametrize(("found", "goes"), SIGNALS.values(), ids=SIGNALS.keys())
def test_a_signal_goes_when_nothing_comes_of_it(found: Signal, goes: bool) -> None:
    assert bool(choose_retiring([case("there", HOUR)], [found], NOW, KEEPING, 9)[0]) is goes
    assert choose_retiring([], [found], NOW, RetentionLimits(timedelta(), 3), 9) == ((), ())


@pytest.mark.parametrize("phase", ["Accepted", "Duplicate"])
def test_a_case_goes_with_every_signal_that_follows_it_or_stays(phase: str) -> None:
    """A duplicate without its case would be looked at as if it were new."""
    old = case("old", 2 * WEEK)
    followers = [signal(f"s{number}", HOUR, phase, ref="old") for number in range(3)]

    assert choose_retiring([old], followers, NOW, KEEPING, 3) == (tuple(followers), (old,))
    assert choose_retiring([old], followers, NOW, KEEPING, 2) == (tuple(followers[:2]), ())


MARKS: dict[str, dict[str, Any]] = {
    "Argo CD": {"annotations": {"argocd.argoproj.io/tracking-id": "ops:inquest.dev/Signal:shop/a"}},
    "Argo CD by label": {"labels": {"argocd.argoproj.io/instance": "ops"}},
    "Flux": {"labels": {"kustomize.toolkit.fluxcd.io/name": "ops"}},
    "another controller": {
        "ownerReferences": [{"apiVersion": "x/v1", "kind": "Alert", "name": "a", "uid": "1", "controller": True}]
    },
}


def marked(found: Signal, marks: dict[str, Any]) -> Signal:
    body = found.to_object()
    return Signal.from_object({**body, "metadata": {**body["metadata"], **marks}})


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS.keys())
def test_a_signal_that_would_be_created_again_stays_and_so_does_its_case(marks: dict[str, Any]) -> None:
    """Otherwise an old alert would open a new case with every sweep."""
    old, other = case("old", 2 * WEEK), case("other", 2 * WEEK)
    declared = marked(signal("a", 2 * WEEK, ref="old"), marks)
    duplicate, ignored = signal("b", 2 * WEEK, "Duplicate", ref="other"), signal("c", 2 * WEEK, "Ignored")

    assert choose_retiring([old, other], [declared, duplicate, ignored], NOW, KEEPING, 9) == (
        (duplicate, ignored),
        (other,),
    )
    assert choose_retiring([], [declared, marked(ignored, marks)], NOW, KEEPING, 9) == ((), ())


def owned(name: str, by: str, age: timedelta, **status: Any) -> Investigation:
    """The case goes with this Signal, whoever deletes it."""
    body = case_body(name, age, **status)
    return Investigation.from_object({**body, "spec": {**body["spec"], "signalRef": {"name": by, "uid": f"s-{by}"}}})


def test_a_signal_does_not_take_a_case_along_that_nobody_has_stored() -> None:
    """Its own case ended before; since then it followed another one."""
    unstored, old = owned("own", "a", 3 * WEEK, conditions=[]), case("old", 2 * WEEK)
    follower = signal("a", 2 * WEEK, "Duplicate", ref="old")

    assert choose_retiring([unstored, old], [follower], NOW, KEEPING, 9) == ((), ())
    assert choose_retiring([unstored], [follower], NOW, KEEPING, 9) == ((), ())


def test_whose_signal_opened_the_case_goes_after_those_that_joined_it() -> None:
    """With it goes the case, and a duplicate that is left behind would be looked at anew."""
    first, joined = signal("a", 2 * WEEK, ref="old"), signal("b", 2 * WEEK, "Duplicate", ref="old")

    assert choose_retiring([owned("old", "a", 2 * WEEK)], [first, joined], NOW, KEEPING, 1) == ((joined,), ())


# --- the sweep ---------------------------------------------------------------------------------------------------


class Shelf(World):
    """Objects of the two kinds, and what was deleted of them."""

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        return tuple(obj for place, obj in self.held.items() if place[0] == kind.kind)

    async def delete(self, kind: ResourceKind, name: str, namespace: str, *, uid: str = "") -> None:
        assert uid == self.held[kind.kind, namespace, name]["metadata"]["uid"]
        await super().delete(kind, name, namespace, uid=uid)


def shelved(*bodies: Json, **settings: Any) -> tuple[Shelf, Archive]:
    shelf = Shelf()
    shelf.moment = NOW
    for body in bodies:
        kind = "Signal" if "lastSeen" in body["status"] else "Investigation"
        shelf.held[kind, body["metadata"]["namespace"], body["metadata"]["name"]] = body
    return shelf, Archive(replace(shelf.ports(), settings=Settings(**settings)))


def names(shelf: Shelf) -> list[str]:
    return sorted(name for _, _, name in shelf.held)


async def test_a_sweep_deletes_case_and_signal_together() -> None:
    bodies = (case_body("old", 2 * WEEK), case_body("new", HOUR))
    signals = [signal("of-old", 2 * WEEK, ref="old"), signal("of-new", 2 * WEEK, ref="new")]
    shelf, archive = shelved(*bodies, *(one.to_object() for one in signals))

    assert await archive.retire() == 2
    assert names(shelf) == ["new", "of-new"]
    assert await archive.retire() == 0


async def test_the_setting_keeps_everything() -> None:
    shelf, archive = shelved(case_body("old", 100 * WEEK), retention="0s", retention_count=0)

    assert await archive.retire() == 0
    assert names(shelf) == ["old"]


async def test_a_sweep_deletes_a_bounded_number() -> None:
    shelf, archive = shelved(*(case_body(f"c{number}", 2 * WEEK) for number in range(MOST_RETIRED + 3)))

    assert await archive.retire() == MOST_RETIRED
    assert len(names(shelf)) == 3


# --- what belonged to Investigations that were deleted ------------------------------------------------------------


def left(shelf: Shelf, name: str, namespace: str) -> None:
    """A slot and a case Lease of an Investigation that is not listed."""
    shelf.put("ConfigMap", f"{name}-1", HOME, metadata={"labels": {INVESTIGATION_LABEL: f"u-{name}"}})
    named = {"labels": {INVESTIGATION_LABEL: name}, "annotations": {INVESTIGATION_ANNOTATION: f"{namespace}/{name}"}}
    shelf.put("Lease", f"of-{name}", HOME, metadata=named)
    shelf.moment += 2 * ORPHAN_LEASE


async def swept(*unseen: str) -> tuple[list[str], list[str]]:
    """Journals that were forgotten, and Leases that were left."""
    forgotten: list[str] = []

    async def forget(uid: str) -> int:
        forgotten.append(uid)
        return 1

    shelf = Shelf(moment=NOW, unseen=frozenset(unseen))
    left(shelf, "inv-shop", "shop")
    left(shelf, "inv-cart", "cart")
    await Archive(replace(shelf.ports(), journal=cast(Any, SimpleNamespace(forget=forget)))).sweep()
    return forgotten, [name for kind, _, name in shelf.held if kind == "Lease"]


async def test_what_is_left_of_a_deleted_case_goes() -> None:
    assert await swept() == (["u-inv-cart", "u-inv-shop"], [])


async def test_a_case_that_cannot_be_seen_is_not_taken_for_deleted() -> None:
    """Its namespace cannot be read now: whose slots these are is not known, and its Lease stays."""
    assert await swept("shop") == ([], ["of-inv-shop"])
