"""What all settings share: spans of time, addresses, groups."""

from __future__ import annotations

import re
import string
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from inquest.api.base import timedelta_from_duration
from inquest.errors import Misconfigured


def _span(value: object) -> object:
    return timedelta_from_duration(value) if isinstance(value, str) else value


Span = Annotated[timedelta, BeforeValidator(_span), Field(ge=timedelta(0))]
"""A Go duration such as `15m`; never negative."""
PositiveSpan = Annotated[timedelta, BeforeValidator(_span), Field(gt=timedelta(0))]
"""A Go duration above zero."""

LIVE: Final = "live"
"""Marks a setting, or a group, that is asked for anew wherever it is used: nothing was opened or built from it."""


class SettingsGroup(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def check_public(field: str, url: str) -> None:
    """The URL of a service that is logged in to with a file."""
    check_url(field, url)
    if urlsplit(url).password or urlsplit(url).username:
        raise ValueError(f"{field}: must hold no user and no password; give a token_file")


PublicUrl = Annotated[str, Field(json_schema_extra={"pattern": "^([a-z]+://[^@/]+(/.*)?)?$"})]
"""One that may stand in a ConfigMap: the schema of the chart's values refuses a login in it as well."""


def check_url(field: str, url: str) -> None:
    """The URL itself is not shown: it may hold a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"{field}: must be a URL that begins with http:// or https://")


LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")

OPAQUE: Final = 16
"""Least length of a part of a webhook's address that may be its key."""
_PLAIN: Final = frozenset(string.ascii_lowercase + ".-:")


def check_listener(
    host: str, authentication: str, *, tls_certificate: Path | None = None, tls_key: Path | None = None
) -> None:
    """ValueError where a server would speak TLS by half, or take requests of other machines from anybody."""
    if (tls_certificate is None) != (tls_key is None):
        raise ValueError("tls_certificate and tls_key belong together")
    if authentication == "none" and host not in LOOPBACK:
        raise ValueError(f"authentication: none needs a loopback address, not {host}")


def secret_in(file: Path, setting: str) -> str:
    """What a mounted Secret holds, read at each use; Misconfigured names the setting, never the text."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{setting} cannot be read: {type(error).__name__}") from None


def opaque_parts(address: str) -> tuple[str, ...]:
    """The address of a chat's webhook is its key; a short part of it is a word that may stand anywhere."""
    parts = re.split(r"[/?&=]", address)
    return tuple(part for part in parts if len(part) >= OPAQUE and not set(part) <= _PLAIN)
