"""Messages to people, as the status of what they are about remembers them: so none is lost, and none is told twice."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from inquest.api.base import ApiModel, Name, Time, keyed_by

MOST_NOTICES: Final = 20
"""Of one object."""


class NoticeType(StrEnum):
    """What a notice is about."""

    APPROVAL = "Approval"
    MANUAL_REVIEW = "ManualReview"
    ESCALATION = "Escalation"
    STATUS_UPDATE = "StatusUpdate"
    COMPLETION = "Completion"


class NoticePriority(StrEnum):
    """How urgent a notice is."""

    CRITICAL = "Critical"
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


class NoticeState(StrEnum):
    """Where a notice stands."""

    PENDING = "Pending"
    SENT = "Sent"
    FAILED = "Failed"


class NoticeEntry(ApiModel):
    """One message of the herald."""

    key: Name
    """Sent once for each key."""
    type: NoticeType
    """What it is about."""
    priority: NoticePriority
    """How urgent it is."""
    state: NoticeState = NoticeState.PENDING
    """Where it stands."""
    at: Time | None = None
    """When it last changed."""


Notices = Annotated[tuple[NoticeEntry, ...], Field(max_length=MOST_NOTICES, json_schema_extra=keyed_by("key"))]
"""One for each key."""
