"""A settings file that changes under the running operator: taken up, refused, or said to need a restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kube import eventually
from tests.support.world import World, word

pytestmark = pytest.mark.xdist_group("story-freeze")


@pytest.fixture
def noise(world: World) -> Iterator[str]:
    """A name that is noise since a moment ago."""
    rates = {"rate": 1000, "rate_per_namespace": 1000}
    world.operator.change(triage={**rates, "noise": ["Hiccup"]})
    yield "Hiccup"
    world.operator.change(triage=rates)


def test_a_name_that_became_noise_opens_no_case_without_a_restart(world: World, noise: str) -> None:
    signal = world.triaged(world.handed_on(name=noise), "Ignored")

    assert word(signal, "reason") == ("Noise",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cluster_name": "elsewhere"}, "[~] settings: needs restart: cluster_name"),
        ({"retention": "soon"}, "[~] settings: refused, the earlier ones stay: settings: retention: "),
    ],
    ids=["needs a restart", "refused"],
)
def test_readiness_says_why_a_changed_file_is_not_what_runs(world: World, change: dict[str, str], words: str) -> None:
    operator = world.operator
    operator.write(**change)
    try:
        eventually(lambda: words in operator.readiness()[1], what=words, seconds=60)
        assert operator.readiness()[0] == 200
    finally:
        operator.forget(*change)

    eventually(lambda: "[+] settings" in operator.readiness()[1], what="the settings are those of the file", seconds=60)
