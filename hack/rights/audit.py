"""The requests in an audit log of the API server, of service accounts; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hack import HackError

ACCOUNTS: Final = "system:serviceaccount:"
FORBIDDEN: Final = 403
TO_EVERYBODY: Final = 'to Group "system:'
"""What Kubernetes itself gives to whoever has logged in: discovery, questions about oneself."""
_DECISION: Final = "authorization.k8s.io/decision"
_REASON: Final = "authorization.k8s.io/reason"

Json = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Asked:
    """One request, without its time: the same again is the same."""

    account: str
    """`namespace:name`."""
    verb: str
    group: str
    resource: str
    """With its subresource: `pods/log`; a path where it is no resource."""
    namespace: str = ""
    """Empty: all, or of none."""
    name: str = ""

    @property
    def text(self) -> str:
        """`list pods.apps in shop`."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {kind}{name} " + (f"in {self.namespace}" if self.namespace else "everywhere")


@dataclass(frozen=True)
class Entry:
    """One line of the log."""

    asked: Asked
    at: datetime
    code: int
    decision: str
    """RBAC's, `allow` or `forbid`; empty where the request did not come so far, as with too many at once."""
    by: str
    """The binding that allowed it, in the API server's words."""
    message: str

    @property
    def is_allowed(self) -> bool:
        """Whether RBAC let it through; an admission plugin may have refused it nevertheless."""
        return self.decision == "allow"

    @property
    def is_refused(self) -> bool:
        """Whether the answer was `forbidden`, whoever gave it."""
        return self.code == FORBIDDEN or self.decision == "forbid"

    @property
    def is_everybodys(self) -> bool:
        """Whether Kubernetes' own roles allow it to whoever has logged in."""
        return TO_EVERYBODY in self.by


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """What service accounts asked, in the log's order; a last line that is being written is left out.

    Raises HackError for any other line that cannot be read: what is lost might be a refusal.
    """
    broken = ""
    for number, line in enumerate(lines, 1):
        if broken:
            raise HackError(broken)
        try:
            found = json.loads(line)
        except ValueError:
            broken = f"line {number} of the audit log is no JSON: {line[:80]!r}"
            if line.endswith("\n"):
                raise HackError(broken) from None
            continue
        if entry := _entry(found):
            yield entry


def _entry(found: Json) -> Entry | None:
    user = str(found["user"]["username"])
    if not user.startswith(ACCOUNTS):
        return None
    notes, answer = found.get("annotations") or {}, found.get("responseStatus") or {}
    return Entry(
        asked=_asked(found, user.removeprefix(ACCOUNTS)),
        at=datetime.fromisoformat(found["requestReceivedTimestamp"]),
        code=int(answer.get("code") or 0),
        decision=str(notes.get(_DECISION) or ""),
        by=str(notes.get(_REASON) or ""),
        message=str(answer.get("message") or ""),
    )


def _asked(found: Json, account: str) -> Asked:
    about = found.get("objectRef")
    if not about or "resource" not in about:
        return Asked(account, str(found["verb"]), "", str(found["requestURI"]).partition("?")[0])
    below = f"/{about['subresource']}" if about.get("subresource") else ""
    return Asked(
        account,
        str(found["verb"]),
        str(about.get("apiGroup") or ""),
        f"{about['resource']}{below}",
        str(about.get("namespace") or ""),
        str(about.get("name") or ""),
    )
