"""Settings of notices: receivers and routes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, model_validator

from inquest.api.notices import NoticePriority, NoticeType
from inquest.settings.base import LIVE, PositiveSpan, SettingsGroup, check_url, opaque_parts

ReceiverName = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$")]
"""As a label of a metric has it."""
_OWN_RECEIVERS: Final = ("log", "webhook")
"""Names that are there without being set."""


class ReceiverSettings(SettingsGroup):
    """One way to people."""

    name: ReceiverName
    """What routes, log and metrics call it."""
    kind: Literal["webhook", "slack"]
    """`webhook`: every notice as JSON; `slack`: a chat that takes Slack's incoming webhooks."""
    url: SecretStr = SecretStr("")
    """Where it is posted to; the address of a chat is its key, so better given as `url_file`."""
    url_file: Path | None = None
    """File that holds the address, as a mounted Secret does; read before every delivery."""
    token_file: Path | None = None
    """File with a bearer token; read before every delivery."""
    ca_bundle: Path | None = None
    """PEM file with the only authorities that it is believed with; unset: those of the system."""
    timeout: PositiveSpan = timedelta(seconds=10)
    """Whole time of one try."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        url = self.url.get_secret_value()
        if self.name in _OWN_RECEIVERS:
            raise ValueError(f"name: {self.name} is taken")
        if bool(url) == (self.url_file is not None):
            raise ValueError("url or url_file: one of them must be set")
        if url:
            check_url("url", url)
        return self


class RouteSettings(SettingsGroup):
    """What some receivers get; of lists that are set each has to match."""

    receivers: Annotated[tuple[ReceiverName, ...], Field(min_length=1)]
    """Names of receivers."""
    types: tuple[NoticeType, ...] = ()
    """Types of notices; empty: all."""
    priorities: tuple[NoticePriority, ...] = ()
    """Priorities; empty: all."""
    namespaces: tuple[str, ...] = ()
    """Of targets; empty: all."""
    teams: tuple[str, ...] = ()
    """Labels `team`, `business-unit` or `service-owner` of targets or their namespaces; empty: all."""


class NotificationSettings(SettingsGroup):
    """Who is told, beside the log."""

    webhooks: tuple[str, ...] = ()
    """URLs that get every notice as JSON."""
    receivers: tuple[ReceiverSettings, ...] = ()
    """Ways to people: `name`, `kind`, `url_file`, `token_file`, … One that no route names gets every notice."""
    routes: tuple[RouteSettings, ...] = ()
    """What single receivers get: `receivers`, `types`, `priorities`, `namespaces`, `teams`."""
    notify_self_resolved: Annotated[bool, LIVE] = False
    """Also told: what went away by itself, as a StatusUpdate of low priority."""

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> Self:
        names = [receiver.name for receiver in self.receivers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"receivers: {', '.join(twice)} is there more than once")
        unknown = sorted({name for route in self.routes for name in route.receivers} - set(names))
        if unknown:
            raise ValueError(f"routes: there is no receiver {', '.join(unknown)}")
        return self

    def secrets(self) -> tuple[str, ...]:
        """What of the addresses is a key."""
        addresses = (*self.webhooks, *(receiver.url.get_secret_value() for receiver in self.receivers))
        return tuple(part for address in addresses for part in opaque_parts(address))
