"""One ruling by a real OPA through Inquest's own client, beside a bare request to the same OPA.

The whole ruling: the input is built and redacted, the policy in force is named, the question is asked, the answer is
read. With the policy that ships, and with one of the size that a company writes: every example, and a table of its
services with rules that look into it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx2

from benchmarks.load import percentile
from benchmarks.report import Row
from hack.tools import build
from inquest.adapters.opa.policy import DEFAULT_QUERY, FixedEndpoint, OpaAddress, OpaPolicy
from inquest.adapters.opa.process import OpaProcess
from inquest.api.refs import Business, DetectedLabels, TargetRef
from inquest.api.types import Environment, Priority
from inquest.core.history.history import History
from inquest.core.redaction.redactor import Redactor
from inquest.core.remediation.policy import Blast, ClaimCounts, PolicyInput, policy_document, read_ruling
from inquest.wiring import default_policy

ALONE: Final = 500
ASKERS: Final = 20
EACH: Final = 20
WARM: Final = 50
LOADS: Final = 20
SERVICES: Final = 400
"""In a company's table; the text is then about 60 KB."""
GOAL: Final = 10.0
"""Milliseconds, p99 (reliability, 15.1)."""
LOAD_GOAL: Final = 50.0
"""Milliseconds."""
EXAMPLES: Final = default_policy().parent / "examples"

Ask = Callable[[], Awaitable[object]]

QUESTION: Final = PolicyInput(
    signal_type="KubePodCrashLooping",
    severity="critical",
    target=TargetRef(api_version="v1", kind="Pod", name="service-007-6d5f-x2x", namespace="team-07"),
    remediation_target=TargetRef(api_version="apps/v1", kind="Deployment", name="service-007", namespace="team-07"),
    confidence=0.91,
    action_type="IncreaseMemoryLimits",
    workflow={"id": "increase-memory-limit", "version": "1.0.0", "engine": "job", "undo": "set-memory-limit"},
    environment=Environment.STAGING,
    priority=Priority.P1,
    confidence_threshold=0.8,
    detected=DetectedLabels(helm_managed=True, hpa_enabled=True, pdb_protected=True),
    custom_labels={"team": ["payments"], "tier": ["one"], "cost_center": ["4711"]},
    business=Business(business_unit="payments", service_owner="jane"),
    warnings=("a probe was slow",),
    mode="Reactive",
    overall_confidence=0.93,
    model_confidence=0.9,
    claims=ClaimCounts(4, 4),
    findings=3,
    gaps=1,
    history=History(available=True),
    parameters={"CONTAINER": "app", "MEMORY_LIMIT": "128Mi"},
    blast=Blast(3, 2, 1),
    cluster_name="bench",
    namespace="team-07",
    signal_source="Alertmanager",
)
"""A usual one: most of what a policy may look at is there."""


def sections(say: Callable[[str], None]) -> Iterator[tuple[str, list[Row]]]:
    """One table for each policy."""
    opa = str(build(["opa"]) / "opa")
    for name, text in (("default policy", default_policy().read_text()), ("a company's policy", company())):
        say(f"rulings with {name}, {len(text) / 1024:.0f} KiB")
        yield f"Rulings with {name}, {len(text) / 1024:.0f} KiB", asyncio.run(_measured(opa, text))


def company(services: int = SERVICES) -> str:
    """The default policy, every example, and rules over a table of services; one file."""
    parts = [path.read_text() for path in sorted(EXAMPLES.glob("*.rego")) if "_test" not in path.name]
    rules = [part.replace("package inquest.approval\n", "") for part in (*parts, _RULES)]
    table = ",\n".join(_service(number) for number in range(services))
    return "\n".join((default_policy().read_text(), *rules, f"services := {{\n{table},\n}}\n"))


_RULES: Final = """
service := services[input.remediation_target.name]

factors contains {"score": 64, "reason": "The service is not in the table"} if not service

factors contains {"score": 63, "reason": sprintf("Confidence is below that of tier %d", [service.tier])} if {
	input.confidence < service.confidence
}

factors contains {"score": 62, "reason": "The owner has not released this action"} if {
	not input.action_type in service.actions
}

factors contains {"score": 61, "reason": "Another service of this tier is in a freeze"} if {
	some other in services
	other.tier == service.tier
	other.window in input.inquest.freeze_windows
}
"""
"""A look-up, a threshold of its own for each service, and one rule that walks the whole table."""


def _service(number: int) -> str:
    actions = '["IncreaseMemoryLimits", "RestartPod", "RollbackDeployment"]'
    tier, owner = number % 4, f"team-{number % 40:02}"
    return (
        f'\t"service-{number:03}": {{"tier": {tier}, "confidence": 0.{80 + tier}, "owner": "{owner}", '
        f'"window": "close-{number % 7}", "actions": {actions}}}'
    )


# --- measuring ------------------------------------------------------------------------------------------------


async def _measured(opa: str, text: str) -> list[Row]:
    with TemporaryDirectory(prefix="inquest-bench-opa-") as folder:
        policy = Path(folder) / "approval.rego"
        policy.write_text(text)
        async with OpaProcess(opa, policy) as server:
            assert server.endpoint is not None
            return [*await _rulings(server, server.endpoint), *await _loads(server, server.endpoint, policy, text)]


async def _rulings(server: OpaProcess, endpoint: OpaAddress) -> list[Row]:
    """Of an OPA of our own, and of one behind a URL, which is asked for its policy before and after each question."""
    own, other = _whole(OpaPolicy(server)), _whole(OpaPolicy(FixedEndpoint(endpoint)))
    async with _plain(endpoint) as client:
        path, body = f"/v1/{DEFAULT_QUERY.replace('.', '/')}", {"input": policy_document(QUESTION)}

        async def bare() -> None:
            (await client.post(path, json=body)).raise_for_status()

        alone, many = await _one_by_one(bare), await _at_once(bare)
        return [
            *_rows("a ruling", await _one_by_one(own), alone, GOAL),
            *_rows(f"{ASKERS} at once, each", await _at_once(own), many),
            *_rows("a ruling, policy.url", await _one_by_one(other), alone),
            *_rows(f"{ASKERS} at once, policy.url", await _at_once(other), many),
        ]


def _whole(policy: OpaPolicy) -> Ask:
    """Input to ruling, as a case goes about it."""
    redactor = Redactor()

    async def rule() -> None:
        document = await asyncio.to_thread(redactor.strings, policy_document(QUESTION))
        answer = await policy.ask(document)
        at = datetime.now(UTC)
        found = read_ruling(answer, history=QUESTION.history, rests_on_fact=True, confidence_threshold=0.8, at=at)
        assert not found.degraded, found.fault

    return rule


async def _loads(server: OpaProcess, endpoint: OpaAddress, policy: Path, text: str) -> list[Row]:
    """The file has changed until the new text rules; the baseline puts the same text into the same OPA."""
    took: list[float] = []
    for number in range(LOADS):
        await asyncio.to_thread(policy.write_text, f"{text}\n# {number}\n")
        took.append(await _timed(server.reload))
        assert not server.fault, server.fault

    async with _plain(endpoint) as client:

        async def bare() -> None:
            changed = f"{text}\n# {secrets.token_hex(4)}\n"
            (await client.put("/v1/policies/approval.rego", content=changed)).raise_for_status()

        plain = [await _timed(bare) for _ in range(LOADS)]
    return list(_rows("a changed policy, compiled and loaded", took, plain, LOAD_GOAL, "bare PUT", (0.5, 0.95)))


async def _one_by_one(ask: Ask) -> list[float]:
    for _ in range(WARM):
        await ask()
    return [await _timed(ask) for _ in range(ALONE)]


async def _at_once(ask: Ask) -> list[float]:
    async def several() -> list[float]:
        return [await _timed(ask) for _ in range(EACH)]

    return [seconds for found in await asyncio.gather(*(several() for _ in range(ASKERS))) for seconds in found]


async def _timed(work: Ask) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - begun)


def _plain(endpoint: OpaAddress) -> httpx2.AsyncClient:
    headers: dict[str, Any] = {"authorization": f"Bearer {endpoint.token}"}
    return httpx2.AsyncClient(base_url=f"http://{endpoint.host}:{endpoint.port}", headers=headers, timeout=30.0)


def _rows(
    name: str,
    mine: Sequence[float],
    bare: Sequence[float],
    goal: float | None = None,
    against: str = "bare POST",
    shares: Sequence[float] = (0.5, 0.95, 0.99),
) -> Iterator[Row]:
    """The goal is for the last of the shares."""
    for share in shares:
        found = goal if share == shares[-1] else None
        yield Row(
            f"{name}, p{share * 100:.0f}",
            percentile(mine, share),
            "ms",
            found,
            baseline=percentile(bare, share),
            against=against,
        )
