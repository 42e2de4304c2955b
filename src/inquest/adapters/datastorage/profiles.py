"""What differs between the wires that are spoken; nothing else in the client asks which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from inquest.ports.datastorage import AuditEvent

ProfileName = Literal["native", "kubernaut-1.4"]
OWN_EVENTS: Final = "inquest."
"""Types that begin so are not in the peer's list, and one that it does not know makes it refuse the whole batch."""


@dataclass(frozen=True)
class Profile:
    """How a server differs from the bundled one."""

    keeps_event_ids: bool = True
    """Otherwise a repeat makes a second row, so what is stored is looked at first (10.3)."""
    takes_own_events: bool = True
    verifies_chains: bool = True
    """Otherwise its history is taken as it is: the peer's own check fails on chains written over its wire (10.5)."""
    keeps_endings: bool = True
    """Whether it has an outcome memory; one that has none is not asked."""
    takes_own_content: bool = True
    """Otherwise workflows are registered in the peer's form (7.2)."""

    def takes(self, event: AuditEvent) -> bool:
        """Whether an event of this type may be sent."""
        return self.takes_own_events or not event.event_type.startswith(OWN_EVENTS)


PROFILES: Final[Mapping[ProfileName, Profile]] = {
    "native": Profile(),
    "kubernaut-1.4": Profile(
        keeps_event_ids=False,
        takes_own_events=False,
        verifies_chains=False,
        keeps_endings=False,
        takes_own_content=False,
    ),
}
