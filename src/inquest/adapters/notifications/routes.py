"""Who gets which notice.

A receiver that no route names gets every notice; one that routes name gets what any of them matches. Nothing is lost
by a route that was forgotten. Where the signal's target and that of the root cause belong to different owners, a notice
is about both, and a route that matches either matches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inquest.adapters.notifications.channels import Receiver
from inquest.core.reporting.notices import TargetOwner
from inquest.ports.process import Notice


@dataclass(frozen=True)
class Route:
    """One route: each list that is not empty has to hold what the notice says."""

    receivers: tuple[str, ...]
    types: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()

    def matches(self, notice: Notice) -> bool:
        """Whether it is for the receivers of this route."""
        return (
            (not self.types or notice.type in self.types)
            and (not self.priorities or notice.priority in self.priorities)
            and any(self._belongs(owner) for owner in notice.owners or (TargetOwner(),))
        )

    def _belongs(self, owner: TargetOwner) -> bool:
        """Namespace and team of one owner: a route means both together."""
        at_home = not self.namespaces or owner.namespace in self.namespaces
        return at_home and (not self.teams or not set(self.teams).isdisjoint(owner.teams))


@dataclass(frozen=True)
class RoutedReceiver:
    """A receiver with the routes that name it."""

    receiver: Receiver
    routes: tuple[Route, ...] = ()

    def gets(self, notice: Notice) -> bool:
        """Whether this notice is for it."""
        return not self.routes or any(route.matches(notice) for route in self.routes)


def route_receiver(receiver: Receiver, routes: Sequence[Route]) -> RoutedReceiver:
    """The receiver with those of the routes that name it."""
    return RoutedReceiver(receiver, tuple(route for route in routes if receiver.name in route.receivers))
