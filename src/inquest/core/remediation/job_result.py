"""How a Job ended, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from inquest.api.types import FailureReason
from inquest.core.cluster.objects import event_text, status_of
from inquest.core.cluster.pods import all_statuses
from inquest.core.evidence.evidence import Json

CONTAINER: Final = "workflow"


@dataclass(frozen=True)
class JobOutcome:
    """Where a Job stands; without `ended` the rest says nothing."""

    ended: bool = False
    succeeded: bool = False
    reason: FailureReason | None = None
    message: str = ""
    ran: bool = False
    """Whether the workflow's own code ran: then the cluster may be half changed."""
    exit_code: int | None = None
    container: str = ""
    ended_at: datetime | None = None

    def summary(self, workflow_id: str) -> str:
        """A sentence for people and for the next prompt."""
        code = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        said = f": {self.message}" if self.message else ""
        return f"{workflow_id} failed, {self.reason or 'succeeded'}{code}{said}"[:500]


_FAILURE_WORDS: Final[tuple[tuple[re.Pattern[str], FailureReason, bool | None], ...]] = (
    (re.compile(r"oomkilled|\boom\b"), FailureReason.OOM_KILLED, True),
    (re.compile(r"timeout|deadline"), FailureReason.DEADLINE_EXCEEDED, True),
    (re.compile(r"forbidden|rbac|permission denied"), FailureReason.FORBIDDEN, None),
    (re.compile(r"quota|resource exhausted"), FailureReason.RESOURCE_EXHAUSTED, False),
    (re.compile(r"imagepullbackoff|image pull|errimagepull"), FailureReason.IMAGE_PULL_BACK_OFF, False),
    (re.compile(r"invalid|configuration|createcontainerconfigerror"), FailureReason.CONFIGURATION_ERROR, False),
)
"""Text, word, and whether the code ran; None: as the start time says."""

_STUCK: Final = frozenset(
    {"ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
"""Reasons of waiting that do not end by waiting."""
_STUCK_EVENTS: Final[tuple[tuple[str, re.Pattern[str], str], ...]] = (
    ("FailedMount", re.compile(r"(secret|configmap) \"[^\"]+\" not found", re.IGNORECASE), "InvalidConfiguration"),
    ("FailedCreate", re.compile(r"exceeded quota"), "ExceededQuota"),
    ("FailedCreate", re.compile(r"is forbidden"), "Forbidden"),
)
"""Reason of an event, what its message holds, and the word for it: nothing of this ends by waiting."""


def job_outcome(found: Json, pods: Sequence[Json], events: Iterable[Json]) -> JobOutcome:
    """Success, failure with its word, or not yet; also what will never start counts as ended."""
    listed = status_of(found).get("conditions") or ()
    conditions = {one["type"]: one for one in listed if one.get("status") == "True"}
    if "Complete" in conditions:
        return JobOutcome(ended=True, succeeded=True, ran=True, ended_at=_at(conditions["Complete"]))
    states = tuple(_states(pods))
    stuck = next(_stuck(states, events), ())
    if "Failed" not in conditions and not stuck:
        return JobOutcome()
    condition = conditions.get("Failed") or {}
    culprit = next((state for state in states if state.failed), None)
    around = (*stuck, *_texts(condition), *(text for state in states for text in state.texts))
    own = culprit.own if culprit else ""
    started = any(state.started for state in states if state.container == CONTAINER)
    reason, ran = _word(around, own, started=started, failed=culprit is not None)
    return JobOutcome(
        ended=True,
        reason=reason,
        message="; ".join(dict.fromkeys(text for text in (own, *around) if text))[:1024],
        ran=ran,
        exit_code=culprit.exit_code if culprit else None,
        container=culprit.container if culprit else "",
        ended_at=_at(condition),
    )


@dataclass(frozen=True)
class _State:
    """One container of one pod, in the words of its status."""

    container: str
    started: bool
    waiting: str = ""
    exit_code: int | None = None
    texts: tuple[str, ...] = ()
    own: str = ""
    """What the container's code wrote before it ended."""

    @property
    def failed(self) -> bool:
        return bool(self.exit_code)


def _states(pods: Iterable[Json]) -> Iterator[_State]:
    for pod in pods:
        status = status_of(pod)
        for one in all_statuses(status):
            state = one.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
            yield _State(
                container=str(one.get("name", "")),
                started=bool(ended.get("startedAt") or (state.get("running") or {}).get("startedAt")),
                waiting=str(waiting.get("reason") or ""),
                exit_code=ended.get("exitCode"),
                texts=(*_texts({"reason": ended.get("reason")}), *_texts(waiting), *_texts(status)),
                own=str(ended.get("message") or ""),
            )


def _texts(found: Json) -> tuple[str, ...]:
    return tuple(str(found[key]) for key in ("reason", "message") if found.get(key))


def _stuck(states: Iterable[_State], events: Iterable[Json]) -> Iterator[tuple[str, ...]]:
    yield from (state.texts for state in states if state.waiting in _STUCK)
    for event in events:
        text = event_text(event)
        found = (word for reason, part, word in _STUCK_EVENTS if event.get("reason") == reason and part.search(text))
        yield from ((word, text) for word in found)


def _word(around: Sequence[str], own: str, *, started: bool, failed: bool) -> tuple[FailureReason, bool]:
    # Reasons are single words and say it better than messages: a pull that failed by a timeout is no deadline.
    for text in ("; ".join(word for word in around if " " not in word), "; ".join(around)):
        for pattern, reason, ran in _FAILURE_WORDS:
            if pattern.search(text.lower()):
                return reason, started if ran is None else ran
    # Code that could say something has run, whatever it complains about.
    named = next((reason for pattern, reason, _ in _FAILURE_WORDS if pattern.search(own.lower())), None)
    return named or (FailureReason.TASK_FAILED if failed else FailureReason.UNKNOWN), started


def _at(condition: Json) -> datetime | None:
    text = condition.get("lastTransitionTime")
    return datetime.fromisoformat(text) if text else None
