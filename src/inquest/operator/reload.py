"""A settings file that changes while the operator runs: what is safe is taken up, the rest is said to need a restart.

Settings are frozen; a new value replaces the old one whole, in one step. What is marked `LIVE` comes from the file,
everything else stays as it was when the process started. A file that is refused changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import structlog
from pydantic import BaseModel

from inquest.errors import Misconfigured
from inquest.ports.clock import Clock
from inquest.settings.settings import Settings, is_live, list_settings
from inquest.telemetry.metrics import SETTINGS_REFUSED, SETTINGS_RELOADS, SETTINGS_WAITING

_log = structlog.stdlib.get_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""Between two looks at the file; a mounted ConfigMap is updated within about a minute anyway."""

Group = TypeVar("Group", bound=BaseModel)


def with_live_of(found: Group, running: Group) -> Group:
    """The running settings with what may be taken up from those found."""
    changes = {}
    for name, field in type(running).model_fields.items():
        old, new = getattr(running, name), getattr(found, name)
        if is_live(field):
            changes[name] = new
        elif isinstance(old, BaseModel) and isinstance(new, BaseModel):
            changes[name] = with_live_of(new, old)
    return running.model_copy(update=changes)


def differing(one: Settings, other: Settings) -> tuple[str, ...]:
    """Paths of the settings that are not the same, in the order of the reference; never their values."""
    return tuple(leaf.path for leaf in list_settings() if leaf.of(one) != leaf.of(other))


class SettingsFile:
    """The file of a running process, looked at until cancelled."""

    def __init__(self, file: Path, running: Settings, take_up: Callable[[Settings], None]) -> None:
        """`take_up` is given each new value, whole."""
        self._file, self._running, self._take_up = file, running, take_up
        self._seen: bytes | None = None
        self._refused = ""
        self._waiting: tuple[str, ...] = ()

    def fault(self) -> str:
        """Why the process does not run with what the file says; empty: it does."""
        if self._refused:
            return f"refused, the earlier ones stay: {self._refused}"
        return f"needs restart: {', '.join(self._waiting)}" if self._waiting else ""

    async def run(self, clock: Clock) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            await clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take up what changed; text that was looked at already is not looked at again."""
        text = await asyncio.to_thread(_bytes_of, self._file)
        if text == self._seen:
            return
        self._seen = text
        try:
            found = await asyncio.to_thread(Settings.load, self._file)
        except Misconfigured as error:
            self._refuse(str(error))
            return
        self._take(found)

    def _refuse(self, why: str) -> None:
        self._refused = why
        SETTINGS_REFUSED.set(1)
        SETTINGS_RELOADS.labels("refused").inc()
        _log.error("settings refused", file=self._file.name, fault=why)

    def _take(self, found: Settings) -> None:
        before, self._running = self._running, with_live_of(found, self._running)
        changed, self._refused = differing(before, self._running), ""
        SETTINGS_REFUSED.set(0)
        if changed:
            self._take_up(self._running)
            SETTINGS_RELOADS.labels("taken").inc()
            _log.info("settings taken up", settings=changed)
        waiting = differing(self._running, found)
        if waiting and waiting != self._waiting:
            _log.warning("settings need a restart", settings=waiting)
        self._waiting = waiting
        SETTINGS_WAITING.set(len(waiting))


def _bytes_of(file: Path) -> bytes | None:
    """None where it cannot be read: `Settings.load` says why."""
    try:
        return file.read_bytes()
    except OSError:
        return None
