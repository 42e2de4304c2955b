"""A real OPA, built once for all checkouts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hack import HackError
from hack.tools import build
from inquest.adapters.opa.policy import OpaPolicy
from inquest.adapters.opa.process import OpaProcess
from inquest.core.redaction.redacted import Redacted, seal

DEFAULT_POLICY = Path(__file__).parents[4] / "policies" / "approval.rego"


class Told:
    """What the server said, and a way to wait for it."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.messages: list[str] = []
        self._arrived = asyncio.Condition()

    async def __call__(self, reason: str, message: str) -> None:
        self.words.append(reason)
        self.messages.append(message)
        async with self._arrived:
            self._arrived.notify_all()

    async def times(self, reason: str, count: int) -> None:
        async with asyncio.timeout(60), self._arrived:
            await self._arrived.wait_for(lambda: self.words.count(reason) >= count)


Start = Callable[..., Any]


@pytest.fixture(scope="session")
def opa_binary() -> str:
    try:
        return str(build(["opa"]) / "opa")
    except HackError as error:
        pytest.skip(f"no OPA here: {error}")


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def running(opa_binary: str, told: Told) -> Start:
    """Start an OPA on the policy file of that path."""

    @asynccontextmanager
    async def start(policy: Path = DEFAULT_POLICY) -> AsyncIterator[OpaProcess]:
        async with OpaProcess(opa_binary, policy, notify=told) as server:
            yield server

    return start


def document(**changes: Any) -> Redacted[dict[str, Any]]:
    """A policy input; with a target in staging unless changed."""
    target = {"kind": "Deployment", "name": "checkout", "namespace": "shop", "api_version": "apps/v1"}
    return seal({"environment": "staging", "confidence": 0.9, "remediation_target": target} | changes)


@pytest.fixture
def ask(running: Start, tmp_path: Path) -> Callable[[str], Awaitable[Any]]:
    """The answer of a policy of that text."""

    async def asked(text: str, **changes: Any) -> Any:
        policy = tmp_path / "approval.rego"
        policy.write_text(text)
        async with running(policy) as server:
            return await OpaPolicy(server).ask(document(**changes))

    return asked
