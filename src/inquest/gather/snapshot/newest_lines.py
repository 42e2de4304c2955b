"""The end of a container's log within a bound of bytes, for who reads logs at all."""

from __future__ import annotations

import re
from typing import Final

from inquest.errors import NotKept
from inquest.ports.kubernetes import Cluster

FEWER: Final = 4
"""By how much each next try asks for less."""
_NOT_KEPT: Final = re.compile(r"unable to retrieve container logs for \S{1,300}\s*")
"""What the kubelet answers with 200, in place of a log that it no longer has."""


async def newest_lines(
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
    beginning. Errors are those of `Cluster.logs`; NotKept for a log that the kubelet no longer has.
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
        if _NOT_KEPT.fullmatch(text):
            raise NotKept(text.strip())
        is_whole = len(text.encode()) < limit_bytes
        if is_whole or lines == 1:
            return text, not is_whole or len(text.splitlines()) >= lines
        lines = max(1, lines // FEWER)
