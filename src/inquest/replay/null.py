"""The ports of a replay that reach nobody: writing is impossible, and there is nobody to tell."""

from __future__ import annotations

from datetime import datetime

from inquest.api.notices import NoticeState
from inquest.core.redaction.redacted import Redacted
from inquest.core.remediation.policy import PolicyAnswer
from inquest.errors import Forbidden, NotFound
from inquest.ports.clock import Clock
from inquest.ports.kubernetes import Access, Json, ListedEverywhere, Person, ResourceKind
from inquest.ports.process import Notice


def _refused() -> Forbidden:
    return Forbidden("a recorded case takes no writes")


class ReadOnlyObjects:
    """`ports.Status` of a replay: nothing of ours is there, nothing can be written; its clock is the recorded one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        raise NotFound(f'{kind.plural} "{name}" not found')

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Json, ...]:
        return ()

    async def seen(self, kind: ResourceKind, *, labels: str = "", fields: str = "") -> ListedEverywhere:
        return ListedEverywhere(())

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        raise _refused()

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        raise _refused()

    async def swap(
        self, kind: ResourceKind, obj: Redacted[Json], *, manager: str = "inquest-owner", status: bool = True
    ) -> Json:
        raise _refused()

    async def delete(self, kind: ResourceKind, name: str, namespace: str, *, uid: str = "") -> None:
        raise _refused()

    async def delete_all(self, kind: ResourceKind, namespace: str, *, labels: str, fields: str = "") -> None:
        raise _refused()

    async def allowed(self, access: Access) -> bool:
        return False

    async def allowed_for(self, person: Person, access: Access, name: str = "") -> bool:
        return False

    async def now(self) -> datetime:
        return self._clock.now()


class NullPolicy:
    """`ports.Policy` of a replay: it ends before the ruling."""

    async def ask(self, document: Redacted[Json]) -> PolicyAnswer:
        raise _refused()


class NullNotifier:
    """`ports.Notifier` of a replay."""

    async def tell(self, notice: Redacted[Notice]) -> NoticeState:
        return NoticeState.SENT

    async def event(self, regarding: Json, reason: str, message: Redacted[str], *, warning: bool = False) -> None:
        return None
