"""What is known about one cluster: its name on the machine, its folder, its ports and its addresses.

A cluster is named by the checkout it belongs to, so that two checkouts on one machine never meet. Whatever must not
clash is chosen once among what is free, written down, and read back by every later command.
"""

import json
import random
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from hack import HackError
from hack.cache import REPOSITORY, cache_folder, hash_of

PORT_NAMES = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "metrics-server",
)
PORTS = range(20000, 30000)
"""Below Linux' ephemeral ports, so that a client's connection cannot take one between the choice and the start."""


class Size(IntEnum):
    """How much of a cluster runs; each size contains the one before."""

    CONTROL_PLANE = 1
    SIMULATED = 2
    NODE = 3
    REAL = 4

    @property
    def word(self) -> str:
        """The size as people write it."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def from_word(cls, word: str) -> "Size":
        """The size that people mean by that word."""
        return cls[word.upper().replace("-", "_")]


@dataclass(frozen=True)
class Identity:
    """Everything chosen for one cluster when it was first brought up."""

    id: str
    name: str
    ports: dict[str, int]
    network: str
    """A /16 of its own, cut into the parts below."""

    @property
    def host_address(self) -> IPv4Address:
        """The machine as pods and the node see it, and the machine's end of the cable to the node."""
        return IPv4Network(self.network)[1]

    @property
    def node_address(self) -> IPv4Address:
        """The node's end of that cable."""
        return IPv4Network(self.network)[2]

    @property
    def service_network(self) -> IPv4Network:
        """Cluster addresses of Services."""
        return list(IPv4Network(self.network).subnets(new_prefix=20))[4]

    @property
    def pod_network(self) -> IPv4Network:
        """Addresses of pods, all nodes together."""
        return list(IPv4Network(self.network).subnets(new_prefix=17))[1]

    @property
    def link(self) -> str:
        """Name of the cable's end on the machine; the kernel allows 15 letters."""
        return f"inq{self.id[:10]}"

    @property
    def cgroup(self) -> str:
        """The control group under which every pod lives."""
        return f"inquest-{self.id}"


def cluster_id(name: str, checkout: Path = REPOSITORY) -> str:
    """The cluster's name on this machine, from the checkout and the name within it."""
    return hash_of([str(checkout).encode(), name.encode()])[:12]


def clusters_folder() -> Path:
    """Where all clusters of this user keep their state."""
    return cache_folder() / "clusters"


def cluster_folder(name: str) -> Path:
    """Where that cluster of this checkout keeps its state."""
    return clusters_folder() / cluster_id(name)


def cluster_names() -> set[str]:
    """The clusters of this checkout that were brought up and not taken down, running or not."""
    known = (load_identity(folder) for folder in _folders())
    return {identity.name for identity in known if identity and identity.id == cluster_id(identity.name)}


def load_identity(folder: Path) -> Identity | None:
    """What was chosen earlier, or nothing if this cluster is new."""
    path = folder / "identity.json"
    return Identity(**json.loads(path.read_text())) if path.exists() else None


def choose_identity(name: str) -> Identity:
    """Choose ports and addresses that nothing on this machine uses, and that no other cluster has written down."""
    others = [identity for folder in _folders() if (identity := load_identity(folder))]
    return Identity(
        id=cluster_id(name),
        name=name,
        ports=choose_ports(PORT_NAMES, {port for other in others for port in other.ports.values()}),
        network=str(_choose_network(routed_networks(), {other.network for other in others})),
    )


def with_free_ports(identity: Identity) -> Identity:
    """The same cluster, with other ports where somebody took one while it was down."""
    taken = [name for name, port in identity.ports.items() if not is_free(port)]
    return replace(identity, ports=identity.ports | choose_ports(taken, set(identity.ports.values())))


def save_identity(folder: Path, identity: Identity) -> None:
    """Write it where every later command finds it."""
    write_atomically(folder / "identity.json", json.dumps(asdict(identity), indent=2))


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Write the whole file or nothing, readable by its owner alone: most of what we write is a key.

    What says so already is not touched: kube-proxy stops when its settings are written, even if they are the same.
    """
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=mode)
    fresh.write_text(text)
    fresh.replace(path)


def choose_ports(names: Iterable[str], taken: set[int]) -> dict[str, int]:
    """A free port for each name, none of them in the taken set."""
    chosen: dict[str, int] = {}
    for name in names:
        chosen[name] = _choose_port(taken | set(chosen.values()))
    return chosen


def _choose_port(taken: set[int]) -> int:
    for port in random.sample(PORTS, len(PORTS)):
        if port not in taken and is_free(port):
            return port
    raise HackError(f"no port between {PORTS.start} and {PORTS.stop} is free")


def is_free(port: int) -> bool:
    """Whether a server could listen there now, on every address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _choose_network(routed: Iterable[IPv4Network], written_down: set[str]) -> IPv4Network:
    avoided = [*routed, *(IPv4Network(network) for network in written_down)]
    candidates = list(IPv4Network("10.64.0.0/10").subnets(new_prefix=16))
    for network in random.sample(candidates, len(candidates)):
        if not any(network.overlaps(other) for other in avoided):
            return network
    raise HackError("every network of 10.64.0.0/10 is in use on this machine")


def routed_networks(table: Path = Path("/proc/net/route")) -> list[IPv4Network]:
    """Where this machine already sends packets; the default route leads everywhere and does not count."""
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    networks = [IPv4Network((_address(row[1]), str(_address(row[7]))), strict=False) for row in rows]
    return [network for network in networks if network.prefixlen > 0]


def _address(little_endian_hex: str) -> IPv4Address:
    return IPv4Address(bytes.fromhex(little_endian_hex)[::-1])


def _folders() -> list[Path]:
    folder = clusters_folder()
    return [path for path in folder.iterdir() if path.is_dir()] if folder.exists() else []
