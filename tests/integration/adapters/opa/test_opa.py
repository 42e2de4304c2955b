"""A real OPA behind the port, and everything that can be wrong with it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from inquest.adapters.opa import process
from inquest.adapters.opa.policy import FixedEndpoint, OpaAddress, OpaPolicy, hash_of_policy, restrict_capabilities
from inquest.adapters.opa.process import OpaProcess, _put, find_binary
from inquest.api.types import RulingDecision
from inquest.core.history.history import History
from inquest.core.redaction.redactor import Redactor
from inquest.core.remediation.policy import PolicyAnswer, Ruling, read_ruling
from inquest.errors import Misconfigured
from inquest.operator.process import Process
from inquest.settings.settings import Settings
from tests.integration.adapters.opa.conftest import DEFAULT_POLICY, Start, Told, document
from tests.support.tables import row

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
Ask = Callable[..., Awaitable[PolicyAnswer]]

HEAD = "package inquest.approval\n"
SAYS = HEAD + 'require_approval := false\n\nreason := "{}"\n'
LOOP = (
    HEAD
    + "xs := numbers.range(1, 4000)\n"
    + "require_approval := false if {\n  count([1 | some a in xs; some b in xs; some c in xs; (a * b) + c < 0]) == 0\n"
    + "}\n"
)


def ruled(answer: PolicyAnswer) -> Ruling:
    """What the story makes of it where everything else is in order."""
    return read_ruling(answer, history=History(available=True), rests_on_fact=True, confidence_threshold=0.8, at=NOW)


def asks_degraded(answer: PolicyAnswer) -> bool:
    found = ruled(answer)
    return found.decision is RulingDecision.APPROVAL_REQUIRED and found.degraded and answer.value is None


async def test_the_default_policy_answers_with_its_hash(running: Start) -> None:
    async with running() as server:
        answer = await OpaPolicy(server).ask(document())

    assert answer.value is not None
    assert answer.value["require_approval"] is False
    digest = hashlib.sha256(DEFAULT_POLICY.read_bytes()).hexdigest()
    assert answer.policy_hash == f"sha256:{digest}"
    assert answer.query == "data.inquest.approval"
    assert ruled(answer).decision is RulingDecision.AUTO_APPROVED


VECTORS = {
    "C-RG-1 a missing target asks in development": ({"environment": "development", "remediation_target": None}, 90),
    "C-RG-3 staging at 0.9 is automatic": ({"environment": "Staging", "confidence": 0.9}, None),
    "C-RG-4 production asks at 0.99": ({"environment": "production", "confidence": 0.99}, 70),
}


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
async def test_the_default_policy(running: Start, vector: tuple[dict[str, Any], int | None]) -> None:
    changes, score = vector

    async with running() as server:
        found = ruled(await OpaPolicy(server).ask(document(**changes)))

    assert not found.degraded
    if score is None:
        assert found.decision is RulingDecision.AUTO_APPROVED
    else:
        assert found.decision is RulingDecision.APPROVAL_REQUIRED
        assert (found.risk_factors[0].score, found.risk_factors[0].reason) == (score, found.reason)


USELESS = {
    "RV-13 undefined": ("package inquest.other\n", "undefined"),
    "RV-13 empty": (HEAD, "undefined"),
    "RV-13 syntax error": (HEAD + "require_approval := {", "does not compile"),
    "RV-13 recursion": (HEAD + "a := b\nb := a\nrequire_approval := false\n", "does not compile"),
    "RV-13 http.send": (
        HEAD + 'require_approval := false if http.send({"method": "GET", "url": "http://127.0.0.1"})\n',
        "undefined function http.send",
    ),
    "RV-13 clock": (HEAD + "require_approval := false if time.now_ns() > 0\n", "undefined function time.now_ns"),
    "RV-13 chance": (HEAD + 'require_approval := rand.intn("x", 2) == 0\n', "undefined function rand.intn"),
    "C-RG-5 an error on evaluation": (
        HEAD + "require_approval := false\nrequire_approval := true if input.confidence > 0\n",
        "OPA answered 500",
    ),
}


@pytest.mark.parametrize(("text", "fault"), USELESS.values(), ids=USELESS.keys())
async def test_a_useless_policy_asks_for_a_person(ask: Ask, text: str, fault: str) -> None:
    answer = await ask(text)

    assert fault in answer.fault
    assert asks_degraded(answer)


MISTYPED = {
    "RV-13 the string false": '"false"',
    "RV-13 a wrong type": "0",
    "RV-13 null": "null",
    "RV-13 a list": "[]",
}


@pytest.mark.parametrize("literal", MISTYPED.values(), ids=MISTYPED.keys())
async def test_only_a_plain_false_approves(ask: Ask, literal: str) -> None:
    found = ruled(await ask(f"{HEAD}require_approval := {literal}\n"))

    assert found.decision is RulingDecision.APPROVAL_REQUIRED
    assert found.degraded


async def test_an_answer_that_is_no_object_is_a_fault(running: Start, tmp_path: Path) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(HEAD + "require_approval := false\n")

    async with running(policy) as server:
        answer = await OpaPolicy(server, query="data.inquest.approval.require_approval").ask(document())

    assert answer.fault == "the answer is not an object"
    assert asks_degraded(answer)


async def test_a_policy_of_another_package_can_be_asked(running: Start, tmp_path: Path) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text("package aianalysis.approval\nimport rego.v1\nrequire_approval := false\n")

    async with running(policy) as server:
        answer = await OpaPolicy(server, query="data.aianalysis.approval").ask(document())

    assert ruled(answer).decision is RulingDecision.AUTO_APPROVED


@row("RV-13")
async def test_a_policy_that_loops_is_cut_off_by_the_deadline(running: Start, tmp_path: Path) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(LOOP)

    async with running(policy) as server:
        slow = await OpaPolicy(server, deadline=0.3).ask(document())
        policy.write_text(SAYS.format("quick"))
        await server.reload()
        quick = await OpaPolicy(server).ask(document())

    assert slow.fault == "no answer within 0.3 s"
    assert asks_degraded(slow)
    assert ruled(quick).reason == "quick"


@row("C-RG-5")
async def test_a_missing_policy_is_said_and_asks(running: Start, told: Told, tmp_path: Path) -> None:
    async with running(tmp_path / "nothing.rego") as server:
        answer = await OpaPolicy(server).ask(document())
        await server.reload()

    assert "the policy file is missing" in answer.fault
    assert asks_degraded(answer)
    assert told.words.count("PolicyMissing") == 1


@row("C-RG-6")
async def test_a_policy_that_was_deleted_after_loading_still_rules(running: Start, tmp_path: Path) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("still here"))

    async with running(policy) as server:
        policy.unlink()
        await server.reload()
        found = ruled(await OpaPolicy(server).ask(document()))

    assert found.reason == "still here"
    assert not found.degraded


@row("RV-13")
async def test_a_reload_that_does_not_compile_keeps_the_last_good_one(
    running: Start, told: Told, tmp_path: Path
) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("first"))

    async with running(policy) as server:
        first = await OpaPolicy(server).ask(document())
        policy.write_text(HEAD + "require_approval := {")
        await server.reload()
        await server.reload()
        kept, refusal = await OpaPolicy(server).ask(document()), server.refusal
        policy.write_text(SAYS.format("second"))
        await server.reload()
        assert not server.refusal
        second = await OpaPolicy(server).ask(document())

    assert [ruled(answer).reason for answer in (first, kept, second)] == ["first", "first", "second"]
    assert first.policy_hash == kept.policy_hash != second.policy_hash
    assert told.words.count("PolicyRejected") == 1
    assert refusal.startswith("the policy does not compile")
    assert str(policy) in refusal, "the file that is configured, not a copy of it"


async def test_an_opa_that_dies_comes_back_with_its_policy(running: Start, told: Told, tmp_path: Path) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("survived"))

    async with running(policy) as server:
        first = server.pid
        os.kill(first, signal.SIGKILL)
        await told.times("OpaStarted", 2)
        answer = await OpaPolicy(server).ask(document())

        assert server.pid != first
    assert "OpaLost" in told.words
    assert ruled(answer).reason == "survived"


async def test_a_policy_that_changes_while_opa_comes_back_is_the_one_in_force(
    running: Start, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("first"))
    put, begun, go_on = _put, asyncio.Event(), asyncio.Event()

    async def slowly(endpoint: OpaAddress, text: str) -> None:
        begun.set()
        await go_on.wait()
        await put(endpoint, text)

    async with running(policy) as server:
        monkeypatch.setattr(process, "_put", slowly)
        os.kill(server.pid, signal.SIGKILL)
        await begun.wait()
        policy.write_text(SAYS.format("second"))
        compiled = server._compile

        async def and_go_on(text: str) -> str:
            found: str = await compiled(text)
            asyncio.get_running_loop().call_soon(go_on.set)
            return found

        monkeypatch.setattr(server, "_compile", and_go_on)
        await server.reload()
        await told.times("OpaStarted", 2)
        answer = await OpaPolicy(server).ask(document())

    assert ruled(answer).reason == "second"
    assert answer.policy_hash == hash_of_policy([policy.read_text()])


async def test_a_text_that_opa_may_have_got_is_not_taken_for_the_one_in_force(
    running: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("first"))
    put = _put

    async def unheard(endpoint: OpaAddress, text: str) -> None:
        await put(endpoint, text)
        raise TimeoutError

    async with running(policy) as server:
        monkeypatch.setattr(process, "_put", unheard)
        policy.write_text(SAYS.format("second"))
        with pytest.raises(TimeoutError):
            await server.reload()
        unsure = await OpaPolicy(server).ask(document())
        second = hash_of_policy([policy.read_text()])
        monkeypatch.setattr(process, "_put", put)
        policy.write_text(SAYS.format("first"))
        await server.reload()
        back = await OpaPolicy(server).ask(document())

    assert (ruled(unsure).reason, unsure.policy_hash) == ("second", second)
    assert (ruled(back).reason, back.policy_hash) == ("first", server.policy_hash)


async def test_a_stopped_server_leaves_no_process(running: Start) -> None:
    async with running() as server:
        pid = server.pid

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    answer = await OpaPolicy(server).ask(document())
    assert asks_degraded(answer)


async def test_nobody_without_the_token_may_ask_or_change_anything(running: Start) -> None:
    async with running() as server:
        stranger = FixedEndpoint(OpaAddress(server.endpoint.host, server.endpoint.port))
        answer = await OpaPolicy(stranger).ask(document())

    assert answer.fault == "OPA does not show its policies to who asks without its token"


async def test_an_opa_that_is_away_asks_for_a_person() -> None:
    answer = await OpaPolicy.at("http://127.0.0.1:1").ask(document())

    assert answer.fault.startswith("OPA cannot be reached")
    assert asks_degraded(answer)


async def test_an_opa_elsewhere_is_looked_at_without_a_question(running: Start) -> None:
    """Who runs it may be away, or have no policy: that is seen before the first case needs it."""
    assert (await OpaPolicy.at("http://127.0.0.1:1").look()).startswith("OPA cannot be reached")
    async with running() as server:
        endpoint = server.endpoint
        assert await OpaPolicy(FixedEndpoint(endpoint)).look() == ""
        async with endpoint.client() as client:
            await client.delete_policy("approval.rego")
        assert await OpaPolicy(FixedEndpoint(endpoint)).look() == "no policy is loaded"
    assert await OpaPolicy(server).look() == "no OPA is running"


async def test_a_policy_that_is_back_is_no_fault_any_more() -> None:
    process, faults, seen = Process(Settings(), Redactor()), ["OPA cannot be reached", ""], list[str]()

    async def look() -> str:
        return faults.pop(0)

    async def sleep(seconds: float) -> None:
        seen.append(process.unruled)

    adapters: Any = SimpleNamespace(policy_fault=look, clock=SimpleNamespace(sleep=sleep))
    with pytest.raises(IndexError):
        await process._look_for_policy(adapters)

    assert seen == ["OPA cannot be reached", ""]


async def test_something_that_is_no_opa_asks_for_a_person(unused_tcp_port: int) -> None:
    async def serve(request: web.Request) -> web.Response:
        return web.Response(text="<html>", content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    try:
        answer = await OpaPolicy.at(f"http://127.0.0.1:{unused_tcp_port}").ask(document())
    finally:
        await runner.cleanup()

    assert asks_degraded(answer)


async def test_a_question_is_tried_at_most_twice(unused_tcp_port: int) -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(request.method)
        if request.method == "POST":
            return web.json_response({"code": "internal_error"}, status=500)
        return web.json_response({"result": []})

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    try:
        answer = await OpaPolicy.at(f"http://127.0.0.1:{unused_tcp_port}").ask(document())
    finally:
        await runner.cleanup()

    assert asked.count("POST") == 2
    assert answer.fault == "OPA answered 500"


async def test_a_reload_between_hash_and_value_is_seen_and_asked_again(unused_tcp_port: int) -> None:
    texts = iter(["old", "new", "new"])
    current = ["old"]

    async def listed(request: web.Request) -> web.Response:
        current[0] = next(texts)
        return web.json_response({"result": [{"id": "a", "raw": current[0], "ast": {}}]})

    async def value(request: web.Request) -> web.Response:
        return web.json_response({"result": {"require_approval": False, "reason": current[0]}})

    app = web.Application()
    app.router.add_get("/v1/policies/", listed)
    app.router.add_post("/v1/data/inquest/approval", value)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    try:
        answer = await OpaPolicy.at(f"http://127.0.0.1:{unused_tcp_port}").ask(document())
    finally:
        await runner.cleanup()

    assert answer.value == {"require_approval": False, "reason": "new"}
    assert answer.policy_hash == hash_of_policy(["new"])


async def test_an_opa_of_ones_own_is_asked_for_its_policy_only_while_that_changes(
    running: Start, tmp_path: Path
) -> None:
    """Whoever answers from a text that has just arrived must not be taken for the one before it."""
    policy = tmp_path / "approval.rego"
    policy.write_text(SAYS.format("first"))
    known: list[str] = []

    async with running(policy) as server:
        first = server.known_hash
        policy.write_text(SAYS.format("second"))
        reload = asyncio.create_task(server.reload())
        while not reload.done():
            known.append(server.known_hash)
            await asyncio.sleep(0)
        answer = await OpaPolicy(server).ask(document())

    assert known[0] == first != server.policy_hash
    assert "" in known
    assert answer.policy_hash == server.policy_hash == hash_of_policy([policy.read_text()])


async def test_a_program_that_is_no_opa_is_a_mistake_of_the_installation(tmp_path: Path) -> None:
    for program in ("/bin/false", str(tmp_path / "absent")):
        with pytest.raises(Misconfigured):
            await OpaProcess(program, DEFAULT_POLICY).start()


async def test_a_start_that_fails_leaves_no_server_and_nobody_who_starts_one_again(tmp_path: Path) -> None:
    program, served = tmp_path / "opa", tmp_path / "served"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = run ]; then echo $$ >> {served}; exec sleep 60; fi\n'
        f"until [ -s {served} ]; do sleep 0.01; done\nexit 1\n"
    )
    program.chmod(0o755)

    with pytest.raises(Misconfigured):
        await OpaProcess(str(program), DEFAULT_POLICY).start()

    assert asyncio.all_tasks() == {asyncio.current_task()}
    (pid,) = served.read_text().split()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_url_is_checked_where_it_is_read() -> None:
    assert OpaAddress.from_url("https://opa.example") == OpaAddress("opa.example", 443, tls=True)
    for url in ("opa:8181", "http://opa:8181/v1", "unix:///run/opa"):
        with pytest.raises(Misconfigured):
            OpaAddress.from_url(url)


def test_the_binary_is_named_by_the_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_OPA_BINARY", "/bin/true")
    assert find_binary("no-such-opa") == "/bin/true"
    monkeypatch.delenv("INQUEST_OPA_BINARY")
    assert find_binary("no-such-opa") is None


def test_capabilities_lose_what_is_not_decided_by_the_input() -> None:
    found = restrict_capabilities(json.loads('{"builtins": [{"name": "a"}, {"name": "b", "nondeterministic": true}]}'))

    assert found == {"builtins": [{"name": "a"}], "allow_net": []}


def test_the_hash_of_several_modules_does_not_depend_on_their_order() -> None:
    assert hash_of_policy(["a", "b"]) == hash_of_policy(["b", "a"]) != hash_of_policy(["a"])
