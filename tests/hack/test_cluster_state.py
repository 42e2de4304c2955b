"""Two clusters on one machine never meet, and what is written down is read back."""

import socket
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from hack.cluster import state
from hack.cluster.state import Identity, Size

IDENTITY = Identity(id="0123456789ab", name="main", ports={"etcd": 20001, "kwok": 20002}, network="10.70.0.0/16")


def test_two_checkouts_have_two_clusters() -> None:
    here, there = (state.cluster_id("main", Path(checkout)) for checkout in ("/one/inquest", "/two/inquest"))

    assert here != there


def test_two_names_in_one_checkout_are_two_clusters() -> None:
    assert state.cluster_id("main") != state.cluster_id("faults")


def test_the_same_checkout_finds_its_cluster_again() -> None:
    assert state.cluster_id("main") == state.cluster_id("main")


def test_a_port_in_use_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        assert not state.is_free(server.getsockname()[1])


def test_chosen_ports_differ_and_avoid_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "PORTS", range(20000, 20004))
    monkeypatch.setattr(state, "is_free", lambda _: True)

    chosen = state.choose_ports(["etcd", "kwok", "metrics-server"], taken={20001})

    assert set(chosen.values()) == {20000, 20002, 20003}


def test_only_a_port_that_somebody_took_is_chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "is_free", lambda port: port != IDENTITY.ports["kwok"])

    moved = state.with_free_ports(IDENTITY)

    assert moved.ports["etcd"] == IDENTITY.ports["etcd"]
    assert moved.ports["kwok"] != IDENTITY.ports["kwok"]


def test_the_parts_of_a_network_do_not_overlap() -> None:
    cable = IPv4Network(f"{IDENTITY.host_address}/24", strict=False)

    assert IDENTITY.node_address in cable
    assert not cable.overlaps(IDENTITY.service_network)
    assert not cable.overlaps(IDENTITY.pod_network)
    assert not IDENTITY.service_network.overlaps(IDENTITY.pod_network)


def test_a_network_in_use_is_never_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    routed = [network for network in IPv4Network("10.64.0.0/10").subnets(new_prefix=16) if network[0].packed[1] != 99]
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path))
    monkeypatch.setattr(state, "routed_networks", lambda: routed)

    assert state.choose_identity("main").network == "10.99.0.0/16"


def test_routes_are_read_without_the_default_route(tmp_path: Path) -> None:
    table = tmp_path / "route"
    columns = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    table.write_text(
        f"{columns}\neth0 00000000 0100000A 3 0 0 0 00000000 0 0 0\neth0 0000460A 0 1 0 0 0 0000FFFF 0 0 0\n"
    )

    assert state.routed_networks(table) == [IPv4Network("10.70.0.0/16")]


def test_an_identity_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    state.save_identity(tmp_path, IDENTITY)

    assert state.load_identity(tmp_path) == IDENTITY


def test_keys_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    state.write_atomically(tmp_path / "key", "secret")

    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_what_says_so_already_is_not_written_again(tmp_path: Path) -> None:
    state.write_atomically(tmp_path / "settings", "same")
    before = (tmp_path / "settings").stat().st_ino

    state.write_atomically(tmp_path / "settings", "same")

    assert (tmp_path / "settings").stat().st_ino == before


@pytest.mark.parametrize("size", Size)
def test_a_size_is_written_as_people_say_it(size: Size) -> None:
    assert Size.from_word(size.word) == size


def test_a_link_name_fits_the_kernel() -> None:
    assert len(IDENTITY.link) <= 15


def test_only_the_clusters_of_this_checkout_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path))
    own = replace(IDENTITY, id=state.cluster_id(IDENTITY.name))
    strange = replace(IDENTITY, id=state.cluster_id("theirs", tmp_path), name="theirs")
    for identity in (own, strange):
        state.save_identity(state.clusters_folder() / identity.id, identity)
    (state.clusters_folder() / "half-made").mkdir()

    assert state.cluster_names() == {IDENTITY.name}
