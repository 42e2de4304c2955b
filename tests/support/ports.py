"""Ports that a test knows before anybody listens there."""

from __future__ import annotations

import atexit
import socket
from contextlib import ExitStack

_kept = ExitStack()
atexit.register(_kept.close)


def own_port() -> int:
    """A port that nobody else is given while this process lives: bound, never listened on, so that it refuses.

    A server may listen there all the same, and later another one: `SO_REUSEADDR`, which `socket.create_server` sets.
    """
    found = _kept.enter_context(socket.socket())
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", 0))
    return int(found.getsockname()[1])
