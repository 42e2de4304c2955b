"""What the process does beside its controllers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from inquest.core.redaction.redactor import Redactor
from inquest.operator.access import CHECK_SECONDS, MissingRight
from inquest.operator.process import Process
from inquest.settings.settings import Settings


async def test_what_is_missing_is_asked_before_the_first_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = MissingRight("get pods/log", "shop", "logs are not read")
    paused = list[float]()

    async def missing_rights(*_: Any, **__: Any) -> tuple[MissingRight, ...]:
        return (missing,)

    async def nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr("inquest.operator.process.missing_rights", missing_rights)
    ports = SimpleNamespace(namespace="inquest-system", execution_namespace="inquest-execution")
    kube = SimpleNamespace(status=SimpleNamespace(list=nothing), cluster=None, places=SimpleNamespace(refused=()))
    adapters: Any = SimpleNamespace(
        reconcilers=SimpleNamespace(ports=ports), kube=kube, clock=SimpleNamespace(sleep=sleep)
    )
    process = Process(Settings(), Redactor())

    with pytest.raises(asyncio.CancelledError):
        await process._ask_again(adapters)

    assert (process.missing, paused) == ((missing,), [CHECK_SECONDS])
