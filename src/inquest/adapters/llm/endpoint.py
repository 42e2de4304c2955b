"""What is configured: one endpoint of the fail-over list, and how much patience all of them get."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from inquest.adapters.llm.price import Price
from inquest.errors import Misconfigured
from inquest.settings.base import secret_in

FORBID_VARIABLE: Final = "INQUEST_FORBID_REAL_MODELS"
CONNECT_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 120.0
ATTEMPTS: Final = 5
TOTAL_WAIT: Final = 60.0
PLACE_WAIT: Final = 300.0
PLACES: Final = 50
WINDOW: Final = 128_000
NOTHING: Final = SecretStr("")


def real_models_forbidden() -> bool:
    """Whether the environment says so."""
    return os.environ.get(FORBID_VARIABLE, "") not in ("", "0", "false")


@dataclass(frozen=True)
class ModelEndpoint:
    """One entry of the fail-over list; `azure_api_version` makes it an Azure deployment named `model`."""

    url: str
    model: str
    key: SecretStr = NOTHING
    azure_api_version: str = ""
    key_file: Path | None = None
    """Beats `key`, and is read before every call, so that a rotated key needs no restart."""
    ca_bundle: Path | None = None
    """The only authorities that this endpoint is believed with; None: those of the system."""
    proxy: SecretStr = NOTHING
    """`http://user:password@host:port`; nothing: as the environment says."""
    price: Price | None = None
    context_window: int = WINDOW
    """Tokens that the model can read."""
    places: int = PLACES
    """Calls at a time, of all cases of this process."""
    on_key: Callable[[str], None] = field(default=lambda _key: None, compare=False)
    """Told of the key before each use: a rotated one must be masked from its first call on."""

    @property
    def name(self) -> str:
        """How messages call it; nothing secret."""
        return f"model {self.model} at {urlsplit(self.url).hostname}"

    def secret(self) -> str:
        """The key as it is now; Misconfigured where its file cannot be read."""
        named = f"model: the key file {self.key_file}"
        key = secret_in(self.key_file, named) if self.key_file is not None else self.key.get_secret_value()
        self.on_key(key)
        return key

    def secrets(self) -> tuple[str, ...]:
        """Every text that must not show anywhere, the longest first."""
        proxy = urlsplit(self.proxy.get_secret_value())
        found = (self._readable_secret(), proxy.netloc.rpartition("@")[0], proxy.password or "")
        return tuple(sorted((text for text in found if text), key=len, reverse=True))

    def _readable_secret(self) -> str:
        try:
            return self.secret()
        except Misconfigured:
            return ""


@dataclass(frozen=True)
class ModelTimeouts:
    """How long one call may take and how often it is made; seconds."""

    connect: float = CONNECT_SECONDS
    idle: float = IDLE_SECONDS
    """Longest silence within an answer that has begun."""
    whole: float = WHOLE_SECONDS
    attempts: int = ATTEMPTS
    """Calls of each endpoint."""
    total_wait: float = TOTAL_WAIT
    """All waits of one call of the port together; what is longer goes to the next endpoint."""
    place_wait: float = PLACE_WAIT
    """Longest wait for a free place at one endpoint."""


def check_allowed(endpoint: ModelEndpoint) -> None:
    """Before a socket opens: with the switch set, nothing but this machine is called, the proxy neither."""
    for url in (endpoint.url, endpoint.proxy.get_secret_value()):
        if url and real_models_forbidden() and not is_loopback(url):
            raise Misconfigured(f"real model calls are forbidden here: {urlsplit(url).hostname}")


def is_loopback(url: str) -> bool:
    """Whether this machine alone is addressed."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
