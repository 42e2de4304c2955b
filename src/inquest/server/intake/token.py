"""Who may send: a right that Kubernetes reviews, or one secret for senders without an account."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Final

from inquest.errors import Misconfigured
from inquest.serving.login import LoginPolicy, User
from inquest.settings.base import secret_in
from inquest.telemetry.metrics import INTAKE_LOGINS

LEAST_TOKEN: Final = 16
"""Characters; a shorter one can be guessed."""
HOLDER: Final = "holder of intake.token_file"

LOGIN_POLICY: Final = LoginPolicy(
    logins=INTAKE_LOGINS, lacking="the account lacks the right to create signals.inquest.dev"
)
"""A sender repeats what it could not deliver: a reviewer that is away is 503."""


class MountedToken:
    """A reviewer for senders that have no account: one secret of a file, which is read anew at each review."""

    def __init__(self, file: Path, learn: Callable[[str], None]) -> None:
        self._file, self._learn = file, learn

    async def authenticate(self, token: str) -> User | None:
        """Its holder, or None; compared in a time that does not depend on where they differ. Misconfigured."""
        held = await asyncio.to_thread(self.held)
        return {"username": HOLDER} if hmac.compare_digest(token.encode(), held.encode()) else None

    async def authorise(self, user: User) -> bool:
        """Who holds the token may send."""
        return True

    def held(self) -> str:
        """The token; the log masks it from now on. Misconfigured where there is none that can be used."""
        found = secret_in(self._file, "intake.token_file")
        if len(found) < LEAST_TOKEN:
            raise Misconfigured(f"intake.token_file must hold at least {LEAST_TOKEN} characters")
        self._learn(found)
        return found
