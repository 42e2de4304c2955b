"""Which cluster a command is about: ours, or kind's where Docker runs, as `CLUSTER` says."""

import os
from collections.abc import Iterable
from typing import Protocol

from hack import HackError
from hack.cluster import kind, local
from hack.cluster.local import Cluster
from hack.cluster.state import Size
from hack.images import Image


class Provider(Protocol):
    """Who brings clusters up; two modules are one."""

    def up(self, size: Size = ..., *, name: str = ...) -> Cluster: ...

    def down(self, *, name: str = ...) -> bool: ...

    def load_images(self, names: Iterable[str], *, name: str = ...) -> list[Image]: ...

    def offer_volume(self, *, name: str = ...) -> None: ...


def provider() -> Provider:
    """As the environment says; a cluster that somebody else brought up is no place for a demo."""
    chosen = os.environ.get("CLUSTER") or "local"
    if chosen == "local":
        return local
    if chosen == "kind":
        return kind
    raise HackError(f"CLUSTER is {chosen}; here it may be local or kind")
