"""A port for a server that is about to start."""

from __future__ import annotations

import socket


def free_port(host: str = "127.0.0.1") -> int:
    """One that nobody has now; somebody else may take it before its server does."""
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
