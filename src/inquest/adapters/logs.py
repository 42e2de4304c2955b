"""The end of a container's log within a bound of bytes, for who reads logs at all."""

from __future__ import annotations

from typing import Final

from inquest.ports import Cluster

FEWER: Final = 4
"""By how much each next try asks for less."""


async def newest(
    cluster: Cluster,
    namespace: str,
    pod: str,
    container: str,
    *,
    previous: bool,
    tail_lines: int,
    limit_bytes: int,
    since_seconds: int | None = None,
) -> tuple[str, bool]:
    """The newest lines, and whether a bound left some out.

    The kubelet counts bytes from the oldest line that was asked for, so a text as long as the bound lacks its end, and
    that says why a container died: it is asked for again with fewer lines. Of one line beyond the bound there is the
    beginning. Errors are those of `Cluster.logs`.
    """
    lines = tail_lines
    while True:
        text = await cluster.logs(
            namespace,
            pod,
            container,
            previous=previous,
            tail_lines=lines,
            since_seconds=since_seconds,
            limit_bytes=limit_bytes,
        )
        is_whole = len(text.encode()) < limit_bytes
        if is_whole or lines == 1:
            return text, not is_whole or len(text.splitlines()) >= lines
        lines = max(1, lines // FEWER)
