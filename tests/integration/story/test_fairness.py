"""One namespace that asks for much does not keep another waiting (reliability, section 3.5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.world import ENDED, World, phase_of

pytestmark = pytest.mark.xdist_group("story-fairness")

SETTINGS = {"runner": {"max_concurrent": 4}}
MANY = 40


def by_hand(world: World, number: int, severity: str) -> Object:
    signal = {"name": "look", "severity": severity, "source": {"type": "Manual"}, "target": world.target()}
    meta = {"name": f"by-hand-{number}", "namespace": world.namespace}
    body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta}
    return world.api.create({**body, "spec": {"signal": signal}})


def test_cases_made_by_hand_share_the_workers_by_namespace(inhabit: Inhabit) -> None:
    """Forty critical ones of one tenant, then a low one of another; four are worked on at once."""
    mallory, shop = inhabit(), inhabit()
    for world in (mallory, shop):
        world.deployment()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: by_hand(mallory, number, "critical"), range(MANY)))
    before = unended(mallory)

    shop.reaches("Investigation", by_hand(shop, 0, "low"), *ENDED)

    assert before - unended(mallory) < before / 2, "more than half of them wait their turn"


def unended(world: World) -> int:
    return sum(phase_of(one) not in ENDED for one in world.api.list("Investigation", world.namespace))
