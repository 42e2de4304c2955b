"""Every entry of a snapshot says where it was read: what a reader must be able to read to be shown it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inquest.core.evidence.evidence import Origin, origin_of
from inquest.core.evidence.snapshot import Snapshot
from inquest.gather.snapshot.entries import ALL_NAMESPACES
from tests.unit.gather.snapshot.support import FakeCluster
from tests.unit.gather.snapshot.test_needs import failing_calls, mounting
from tests.unit.gather.snapshot.test_rules import NODE, quiet, taken, with_

CLUSTERS: dict[str, Callable[[], FakeCluster]] = {
    "quiet": quiet,
    "foreign": failing_calls,
    "absent": lambda: with_(mounting("conf")),
}


def origins(snapshot: Snapshot, read: str) -> set[Origin]:
    found = [each.origins for each in snapshot.evidence if each.arguments["read"] == read]
    return {origin for each in found for origin in each or ()}


@pytest.mark.parametrize("name", CLUSTERS)
async def test_no_entry_shows_an_object_of_a_place_that_it_does_not_name(name: str) -> None:
    found = CLUSTERS[name]()
    snapshot = await taken(found)
    known = {each.id: each.origins for each in snapshot.evidence}

    for seen in snapshot.objects:
        place = known[seen.evidence]
        assert place is None or origin_of(seen.object) in place, seen.object["metadata"]
    for log in snapshot.logs:
        assert Origin(log.namespace) in (known[log.evidence] or ())
    for listing in snapshot.listings:
        spaces = {each.namespace for each in known[listing.evidence] or ()}
        assert known[listing.evidence] is None or listing.namespace in spaces, listing.quote


async def test_what_was_read_in_another_namespace_is_of_that_namespace() -> None:
    snapshot = await taken(failing_calls())

    assert origins(snapshot, "neighbour service") == {Origin("store", "Service", "v1")}
    assert origins(snapshot, "neighbour pods behind") == {Origin("store", "Pod", "v1")}
    assert origins(snapshot, "neighbour namespace") == {Origin("store", "Namespace", "v1")}


async def test_what_was_refused_in_another_namespace_is_of_that_namespace_too() -> None:
    snapshot = await taken(failing_calls(), beyond=False)

    assert origins(snapshot, "neighbour pods behind") == {Origin("store")}


async def test_pods_of_a_node_are_of_all_their_namespaces() -> None:
    snapshot = await taken(quiet(), NODE)

    assert Origin("shop", "Pod", "v1") in origins(snapshot, "pods")
    assert not any(each.namespace == ALL_NAMESPACES for entry in snapshot.evidence for each in entry.origins or ())


async def test_a_list_of_what_has_no_objects_is_of_every_place_that_was_looked_in() -> None:
    snapshot = await taken(quiet())

    looked = origins(snapshot, "neighbour listings without objects")

    assert Origin("shop", "StatefulSet", "apps/v1") in looked
