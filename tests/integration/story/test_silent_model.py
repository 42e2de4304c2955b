"""A model that takes every question and never answers: what a person says is judged without it (behaviours, 11.1)."""

from __future__ import annotations

import socket

import pytest

from tests.support.world import World, word

pytestmark = pytest.mark.xdist_group("story-silent-model")

SILENT = socket.create_server(("127.0.0.1", 0))
"""The system completes each connection to it; nobody reads."""
SETTINGS = {
    "model": {
        "provider": "openai",
        "endpoint": f"http://127.0.0.1:{SILENT.getsockname()[1]}/v1",
        "name": "silent",
        "api_key": "not-a-key",
        "timeout": "10m",
        "idle_timeout": "10m",
        "max_attempts": 1,
    }
}


@pytest.mark.parametrize((), [pytest.param(id="I03")])
def test_words_that_only_a_model_could_read_are_no_noise_while_it_is_silent(world: World) -> None:
    world.broken()

    accepted = world.triaged(world.signal(message="guten Morgen zusammen"), "Accepted", "Ignored")

    assert word(accepted, "phase") == ("Accepted",)
    assert accepted["status"]["investigationRef"]["name"]


def test_small_talk_is_known_without_asking(world: World) -> None:
    world.broken()

    ignored = world.triaged(world.handed_on(message="thanks, all good!"), "Accepted", "Ignored")

    assert word(ignored, "phase", "reason") == ("Ignored", "Noise")
