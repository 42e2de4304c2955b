"""What one controller's look means for another."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from inquest.controllers.reconcilers import Reconcilers
from tests.unit.controllers.signal.test_signals import HOME, World


@pytest.mark.parametrize(
    ("again", "is_free"),
    [(None, True), (timedelta(minutes=5), True), (timedelta(0), False)],
    ids=["it has ended", "it waits", "it goes on at once"],
)
async def test_a_case_leaves_its_place_when_it_has_nothing_to_do_at_once(
    again: timedelta | None, is_free: bool
) -> None:
    world = World()
    reconcilers = Reconcilers(world.ports())

    async def look(namespace: str, name: str) -> timedelta | None:
        return again

    reconcilers.cases = SimpleNamespace(look=look)  # type: ignore[assignment]
    places = reconcilers.signals.acceptance
    async with places.place(f"{HOME}/inv-a", "shop", world.moment) as keep:
        keep()

    await reconcilers.looks["Investigation"](HOME, "inv-a")

    assert (places.taken(world.moment) == ()) is is_free
