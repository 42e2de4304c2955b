"""Messages to people that are remembered: the status of what one is about says where it stands.

The notifier forgets at a restart. What stands as Pending then is told anew under its key, and what was Sent is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from inquest.api.base import Resource
from inquest.api.notices import MOST_NOTICES, NoticeEntry, NoticePriority, NoticeState, NoticeType
from inquest.computing import compute
from inquest.controllers.ports import ControllerPorts
from inquest.core.reporting.notices import NoticeText
from inquest.ports.process import Notice

NOTICE_LOOK: Final = timedelta(seconds=30)
"""Between two looks at a notice that is on its way: as long as the first pause between its tries."""
LATEST_NOTICE: Final = timedelta(days=1)
"""A receiver that is away for so long is not waited for, however often the operator starts."""


async def send_notice(
    ports: ControllerPorts, found: Resource, key: str, told: NoticeText, now: datetime, seen: NoticeEntry | None = None
) -> NoticeEntry:
    """Tell it, or ask the notifier where it stands; `seen` is how it is remembered so far."""
    message = Notice(key, told.type, told.priority, told.title, told.body, found.namespace, found.name, told.owners)
    state = await ports.notifier.tell(await compute(ports.redactor.published, message))
    at = seen.at if seen is not None and state is NoticeState.PENDING else now
    return NoticeEntry(key=key, type=NoticeType(told.type), priority=NoticePriority(told.priority), state=state, at=at)


def given_up(notice: NoticeEntry, now: datetime) -> NoticeEntry:
    """Nobody got it, and nobody is told any more."""
    return notice.model_copy(update={"state": NoticeState.FAILED, "at": now})


def unless_late(notice: NoticeEntry, now: datetime) -> NoticeEntry:
    """Given up after its time, also where the journal or the settings no longer say what it was."""
    is_late = notice.state is NoticeState.PENDING and now - (notice.at or now) > LATEST_NOTICE
    return given_up(notice, now) if is_late else notice


def is_telling(notices: Iterable[NoticeEntry]) -> bool:
    """Whether somebody has not got one yet."""
    return any(notice.state is NoticeState.PENDING for notice in notices)


def merge_notices(notices: Iterable[NoticeEntry], *newer: NoticeEntry) -> tuple[NoticeEntry, ...]:
    """The notices with newer ones in the place of those of the same key; the oldest go where they are too many."""
    found = {notice.key: notice for notice in notices} | {notice.key: notice for notice in newer}
    return tuple(found.values())[-MOST_NOTICES:]
