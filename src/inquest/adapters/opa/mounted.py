"""Whether an OPA that somebody else runs rules with the text that was mounted for it.

OPA itself keeps its last good policy when a watched file becomes a broken one, and writes a line into its own log.
Whoever changed the ConfigMap looks elsewhere.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Self

from inquest.adapters.opa.policy import DEADLINE, OpaAddress, hash_of_policy, loaded_hash
from inquest.adapters.opa.process import WATCH_SECONDS, Notify

LOOKS: Final = 3
"""In a row, before a difference counts: OPA may be about to take up what this process has just read."""


class MountedPolicyMonitor:
    """The file of an OPA elsewhere, held against what that OPA has loaded, until it is left as a context."""

    def __init__(self, endpoint: OpaAddress, file: Path, *, notify: Notify) -> None:
        self._endpoint, self._file, self._notify = endpoint, file, notify
        self._differs = 0
        self._refusal = ""
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def at(cls, url: str, file: Path, *, notify: Notify) -> Self:
        """Misconfigured where the text is no `http(s)://host[:port]`."""
        return cls(OpaAddress.from_url(url), file, notify=notify)

    @property
    def refusal(self) -> str:
        """Why the text in the file is not the one in force; empty: it is, or nobody can tell."""
        return self._refusal

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Compare once; a side that cannot be read says nothing, for others tell of that."""
        try:
            text = await asyncio.to_thread(self._file.read_text)
            async with asyncio.timeout(DEADLINE), self._endpoint.client() as client:
                loaded = await loaded_hash(client)
        except Exception:  # the client raises errors without a common root
            return
        wanted = hash_of_policy([text])
        if loaded == wanted:
            await self._taken_up(wanted)
        elif loaded:
            await self._differing(wanted, loaded)

    async def _taken_up(self, wanted: str) -> None:
        self._differs = 0
        if self._refusal:
            self._refusal = ""
            await self._notify("PolicyLoaded", f"policy {wanted} is in force")

    async def _differing(self, wanted: str, loaded: str) -> None:
        self._differs += 1
        if self._differs < LOOKS or self._refusal:
            return
        self._refusal = f"OPA has not taken up the mounted policy {wanted} and keeps {loaded}; its log says why"
        await self._notify("PolicyRejected", self._refusal)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self.look()
