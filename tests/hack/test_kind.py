"""The way through kind, as far as it goes without Docker: kind's own program knows each word that is said to it."""

from __future__ import annotations

import pytest

from hack import HackError
from hack.cluster import kind, local
from hack.cluster.provider import provider

NAME = kind.own_name("main")
COMMANDS = {
    "create": (*kind.created("main"), "--help"),
    "export": ("export", "kubeconfig", f"--name={NAME}", f"--kubeconfig={kind.kubeconfig_of('main')}", "--help"),
    "nodes": ("get", "nodes", f"--name={NAME}", "--help"),
    "clusters": ("get", "clusters", "--help"),
    "delete": ("delete", "cluster", f"--name={NAME}", f"--kubeconfig={kind.kubeconfig_of('main')}", "--help"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_kind_itself_knows_the_command_and_each_of_its_options(command: tuple[str, ...]) -> None:
    assert "Usage:" in kind.kind(*command)


def test_an_option_that_kind_does_not_know_is_told() -> None:
    with pytest.raises(HackError, match="unknown flag"):
        kind.kind("create", "cluster", "--no-such-option")


def test_whoever_names_no_cluster_gets_the_one_that_is_built_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER", raising=False)
    assert provider() is local

    monkeypatch.setenv("CLUSTER", "kind")
    assert provider() is kind

    monkeypatch.setenv("CLUSTER", "current")
    with pytest.raises(HackError, match="local or kind"):
        provider()
