"""A way from the node to a real model: the node has no road to the Internet, the machine may have one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack import HackError
from hack.packages import unpacked
from hack.ports import free_port

PACKAGE, PROGRAM = "tinyproxy-bin", "tinyproxy"
IDLE_SECONDS = 600


@contextmanager
def relayed(host: str, folder: Path) -> Iterator[str]:
    """An HTTP proxy for the cluster's addresses alone, for as long as the demo runs: its URL as pods write it."""
    port = free_port(host)
    settings = folder / "relay.conf"
    lines = (f"Port {port}", f"Listen {host}", f"Allow {host}/16", f"Timeout {IDLE_SECONDS}", "User nobody")
    settings.write_text("\n".join(lines) + "\n")
    with (folder / "relay.log").open("wb") as log:
        command = [str(unpacked(PACKAGE, PROGRAM)), "-d", "-c", str(settings)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        if _ended(process):
            raise HackError(f"the relay to the model ended:\n{(folder / 'relay.log').read_text()}")
        yield f"http://{host}:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it gave up at once, as it does where it cannot listen."""
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return False
    return True
