"""Who may use the service, asked of the Kubernetes API (section 3). In process nobody asks: there is no port."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import Scope

from inquest.serving.login import LoginPolicy
from inquest.telemetry.metrics import DATASTORAGE_LOGINS

USER_HEADER: Final = "X-Auth-Request-User"


def _named(scope: Scope, name: str) -> Scope:
    """The same request with the reviewed name in place of whatever the caller claimed."""
    headers = MutableHeaders(raw=[pair for pair in scope["headers"] if pair[0].lower() != USER_HEADER.lower().encode()])
    # HTTP headers are Latin-1; a name with other letters is kept apart from all others by its UTF-8 bytes.
    headers.raw.append((USER_HEADER.lower().encode(), name.encode()))
    scope["headers"] = headers.raw
    return scope


DOOR: Final = LoginPolicy(logins=DATASTORAGE_LOGINS, named=_named, unanswered=500)
