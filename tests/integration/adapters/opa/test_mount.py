"""A broken text in a watched file is told of by who can read both the file and OPA."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inquest.adapters.opa.mounted import LOOKS, MountedPolicyMonitor
from inquest.adapters.opa.policy import OpaAddress, hash_of_policy
from tests.integration.adapters.opa.conftest import DEFAULT_POLICY, Told

BROKEN = "package inquest.approval\n\nthis is no rego {"


GOOD = DEFAULT_POLICY.read_text()


def written(file: Path, text: str) -> None:
    file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "mounted" / "approval.rego"
    found.parent.mkdir()
    written(found, GOOD)
    return found


@pytest.fixture
async def endpoint(opa_binary: str, file: Path, unused_tcp_port: int) -> AsyncIterator[OpaAddress]:
    """An OPA as the chart's sidecar runs it."""
    address = f"127.0.0.1:{unused_tcp_port}"
    process = await asyncio.create_subprocess_exec(
        *(opa_binary, "run", "--server", f"--addr={address}", "--skip-version-check", "--log-level=error", "--watch"),
        str(file),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    found = OpaAddress.from_url(f"http://{address}")
    try:
        async with asyncio.timeout(60), found.client(timeout=1, retries=0) as client:
            assert await client.wait_for_ready(timeout=60, interval=0.05)
        yield found
    finally:
        process.terminate()
        await process.wait()


async def looked(mounted: MountedPolicyMonitor, times: int = LOOKS) -> str:
    """What it says after as many looks, with a pause for OPA's own watch."""
    for _ in range(times):
        await asyncio.sleep(0.5)
        await mounted.look()
    return mounted.refusal


async def test_a_broken_policy_is_told_once_until_a_good_one_is_taken_up(
    endpoint: OpaAddress, file: Path, told: Told
) -> None:
    mounted = MountedPolicyMonitor(endpoint, file, notify=told)
    assert await looked(mounted) == ""

    written(file, BROKEN)

    said = await looked(mounted, LOOKS * 2)
    assert hash_of_policy([BROKEN]) in said
    assert hash_of_policy([GOOD]) in said
    assert told.words == ["PolicyRejected"]
    written(file, GOOD + "\n# mended\n")
    async with asyncio.timeout(60):
        while await looked(mounted, 1):
            pass
    assert told.words == ["PolicyRejected", "PolicyLoaded"]


async def test_one_difference_is_not_yet_a_refusal(endpoint: OpaAddress, file: Path, told: Told) -> None:
    mounted = MountedPolicyMonitor(endpoint, file, notify=told)
    written(file, BROKEN)

    assert await looked(mounted, LOOKS - 1) == ""
    assert told.words == []


async def test_what_cannot_be_read_is_no_refusal(endpoint: OpaAddress, file: Path, told: Told) -> None:
    nowhere = MountedPolicyMonitor(endpoint, file.with_name("gone.rego"), notify=told)
    nobody = MountedPolicyMonitor(OpaAddress.from_url("http://127.0.0.1:9"), file, notify=told)

    assert await looked(nowhere) == await looked(nobody) == ""
    assert told.words == []


async def test_it_looks_by_itself_until_it_is_left(
    endpoint: OpaAddress, file: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inquest.adapters.opa.mounted.WATCH_SECONDS", 0.2)
    async with MountedPolicyMonitor(endpoint, file, notify=told) as mounted:
        written(file, BROKEN)
        await told.times("PolicyRejected", 1)

    assert mounted.refusal
    assert len(asyncio.all_tasks()) == 1
