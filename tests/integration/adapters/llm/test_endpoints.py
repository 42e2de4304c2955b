"""Each endpoint with what is its own: Azure, key, authorities, proxy, price; tried in order."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import SecretStr

from hack.scripted_model.script import parse
from hack.scripted_model.server import Serving, serve
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts
from inquest.adapters.llm.errors import fault_class
from inquest.adapters.llm.model import OpenAIModel
from inquest.adapters.llm.price import Price
from inquest.core.llm.messages import ModelRequest, Retry, Usage
from inquest.errors import ContextOverflow, Misconfigured, ModelRefused, RateLimited, Unavailable
from tests.integration.adapters.llm.conftest import KEY, QUESTION, FakeClock, Start, both_ways, connected, redacted
from tests.integration.adapters.llm.wires import forward_proxy, tls_of

VERSION = "2024-10-21"
HELLO = "steps: [{reply: {text: hello, usage: {prompt: 3000000, cached: 2000000, completion: 1000000, reasoning: 5}}}]"
BUSY, DOWN = "steps: [{error: {status: 429}}]", "steps: [{error: {status: 503}}]"
ONCE = ModelTimeouts(attempts=1)


def shown(error: BaseException) -> str:
    """Everything that a log could show of an error."""
    return "".join(traceback.format_exception(error))


# --- Azure -------------------------------------------------------------------------------------------------------


@both_ways
async def test_azure_is_asked_by_deployment_version_and_key(script: Start, clock: FakeClock, stream: bool) -> None:
    serving = script(HELLO)
    endpoint = ModelEndpoint(serving.azure_url, "our-gpt", SecretStr(KEY), azure_api_version=VERSION)

    async with connected(clock, endpoint, stream=stream) as model:
        reply = await model.ask(redacted())

    head, sent = serving.heads[0], serving.requests[0]
    assert (reply.text, head.path) == ("hello", "/openai/deployments/our-gpt/chat/completions")
    assert (head.query["api-version"], head.headers["api-key"]) == (VERSION, KEY)
    assert "authorization" not in head.headers
    assert ("max_completion_tokens" in sent, "max_tokens" in sent) == (True, False)


AZURE_SAYS = {
    "no-deployment": ("{status: 404, code: DeploymentNotFound}", ModelRefused, "ModelNotFound"),
    "filtered-prompt": ("{status: 400, code: content_filter, message: filtered}", ModelRefused, "ModelRefused"),
    "too-long": ("{status: 400, code: context_length_exceeded}", ContextOverflow, "ContextOverflow"),
    "limited": ("{status: 429, code: '429', retry_after: 90}", RateLimited, "ModelRateLimited"),
    "no-quota": ("{status: 429, code: insufficient_quota}", ModelRefused, "ModelCreditExhausted"),
}


@pytest.mark.parametrize(("error", "raises", "kind"), AZURE_SAYS.values(), ids=AZURE_SAYS.keys())
async def test_what_azure_says_has_the_same_classes(
    script: Start, clock: FakeClock, error: str, raises: type[Exception], kind: str
) -> None:
    serving = script(f"steps: [{{error: {error}}}]")

    async with connected(
        clock, ModelEndpoint(serving.azure_url, "d", SecretStr(KEY), azure_api_version=VERSION)
    ) as model:
        with pytest.raises(raises) as raised:
            await model.ask(redacted())

    assert (fault_class(raised.value), KEY in shown(raised.value)) == (kind, False)


# --- keys --------------------------------------------------------------------------------------------------------


async def test_a_rotated_key_is_used_by_the_next_call(script: Start, clock: FakeClock, tmp_path: Path) -> None:
    serving, file = script(HELLO), tmp_path / "key"

    async with connected(clock, ModelEndpoint(serving.base_url, "m", SecretStr("unused"), key_file=file)) as model:
        for key in ("sk-first", "sk-second\n"):
            file.write_text(key)
            await model.ask(redacted())

    assert [head.headers["authorization"] for head in serving.heads] == ["Bearer sk-first", "Bearer sk-second"]


async def test_a_lost_key_file_is_a_fault_of_that_endpoint_alone(
    script: Start, clock: FakeClock, tmp_path: Path
) -> None:
    lost = ModelEndpoint("http://127.0.0.1:9/v1", "m", key_file=tmp_path / "lost")

    async with connected(clock, lost, script(HELLO)) as model:
        reply = await model.ask(redacted())

    assert (reply.text, reply.retries) == ("hello", (Retry("m", "ModelUnauthorized"),))


async def test_no_key_of_one_endpoint_reaches_another(script: Start, clock: FakeClock) -> None:
    first, second = script(DOWN), script(HELLO)
    endpoints = [ModelEndpoint(s.base_url, "m", SecretStr(k)) for s, k in ((first, "sk-one"), (second, "sk-two"))]

    async with connected(clock, *endpoints, patience=ONCE) as model:
        await model.ask(redacted())

    assert "sk-two" not in str(first.heads)
    assert "sk-one" not in str(second.heads)


ECHOES = {
    "message": f"{{status: 401, message: 'wrong key {KEY}'}}",
    "transient": f"{{status: 500, message: 'Bearer {KEY} was refused'}}",
    "body": f"{{status: 400, body: {{detail: [{{input: '{KEY}'}}]}}}}",
    "late": f"{{status: 200, late: true, message: 'key {KEY}'}}",
}


@both_ways
@pytest.mark.parametrize("error", ECHOES.values(), ids=ECHOES.keys())
async def test_a_key_that_comes_back_is_in_no_error_nor_its_causes(
    script: Start, clock: FakeClock, stream: bool, error: str
) -> None:
    serving = script(f"steps: [{{error: {error}}}]")

    async with connected(clock, serving, stream=stream, patience=ONCE) as model:
        with pytest.raises((ModelRefused, Unavailable)) as raised:
            await model.ask(redacted())

    assert KEY not in shown(raised.value)
    assert raised.value.__cause__ is not None


# --- authorities and proxies ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, Path]]:
    """A server with TLS, and the authority that it is believed with."""
    tls, authority = tls_of(tmp_path_factory.mktemp("tls"))
    with serve(parse(HELLO), tls=tls) as serving:
        yield serving, authority


@both_ways
async def test_an_endpoint_is_believed_with_its_own_authority(
    secured: tuple[Serving, Path], clock: FakeClock, stream: bool
) -> None:
    serving, authority = secured

    async with connected(clock, ModelEndpoint(serving.base_url, "m", ca_bundle=authority), stream=stream) as model:
        reply = await model.ask(redacted())

    assert (serving.base_url[:8], reply.text) == ("https://", "hello")


async def test_an_endpoint_is_not_believed_with_another_authority(
    secured: tuple[Serving, Path], clock: FakeClock, tmp_path: Path
) -> None:
    serving, _ = secured
    strangers = [None, tls_of(tmp_path)[1]]
    before = len(serving.requests)

    for bundle in strangers:
        async with connected(clock, ModelEndpoint(serving.base_url, "m", ca_bundle=bundle), patience=ONCE) as model:
            with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED") as raised:
                await model.ask(redacted())
        assert fault_class(raised.value) == "ModelUnreachable"

    assert len(serving.requests) == before


async def test_a_new_authority_is_believed_without_a_restart(
    secured: tuple[Serving, Path], clock: FakeClock, tmp_path: Path
) -> None:
    serving, authority = secured
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(tls_of(tmp_path / "stranger")[1].read_bytes())

    async with connected(clock, ModelEndpoint(serving.base_url, "m", ca_bundle=bundle), patience=ONCE) as model:
        with pytest.raises(Unavailable):
            await model.ask(redacted())
        bundle.write_bytes(authority.read_bytes())
        os.utime(bundle, (1, 1))
        reply = await model.ask(redacted())

    assert reply.text == "hello"


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["missing", "garbage"])
def test_a_broken_bundle_is_named_at_the_start(clock: FakeClock, tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)

    with pytest.raises(Misconfigured, match=r"bundle\.pem"):
        OpenAIModel([ModelEndpoint("https://127.0.0.1/v1", "m", ca_bundle=bundle)], clock=clock)


@both_ways
async def test_a_proxy_is_used_for_its_endpoint_alone(script: Start, clock: FakeClock, stream: bool) -> None:
    through, direct = script(DOWN), script(HELLO)

    async with forward_proxy() as proxy:
        endpoint = ModelEndpoint(through.base_url, "m", SecretStr(KEY), proxy=SecretStr(proxy.url))
        async with connected(clock, endpoint, direct, stream=stream, patience=ONCE) as model:
            await model.ask(redacted())

    assert proxy.seen == [f"POST {through.base_url}/chat/completions"]
    assert (len(through.requests), len(direct.requests)) == (1, 1)


async def test_a_tunnel_keeps_the_endpoint_s_own_authority(secured: tuple[Serving, Path], clock: FakeClock) -> None:
    serving, authority = secured

    async with forward_proxy("user:pa55word") as proxy:
        address = proxy.url.replace("//", "//user:pa55word@")
        endpoint = ModelEndpoint(serving.base_url, "m", ca_bundle=authority, proxy=SecretStr(address))
        async with connected(clock, endpoint) as model:
            reply = await model.ask(redacted())

    assert (reply.text, proxy.seen) == ("hello", [f"CONNECT {serving.base_url[8:-3]}"])


async def test_a_proxy_that_refuses_shows_no_password(secured: tuple[Serving, Path], clock: FakeClock) -> None:
    serving, authority = secured

    async with forward_proxy("user:right") as proxy:
        address = proxy.url.replace("//", "//user:pa55word@")
        endpoint = ModelEndpoint(serving.base_url, "m", ca_bundle=authority, proxy=SecretStr(address))
        async with connected(clock, endpoint, patience=ONCE) as model:
            with pytest.raises(Unavailable, match="407") as raised:
                await model.ask(redacted())
            shapes = f"{endpoint!r} {model!r} {vars(model)!r}"

    assert fault_class(raised.value) == "ModelUnreachable"
    assert "pa55word" not in shown(raised.value) + shapes


async def test_the_switch_forbids_a_proxy_elsewhere(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    monkeypatch.setenv("INQUEST_FORBID_REAL_MODELS", "1")
    endpoint = ModelEndpoint("http://127.0.0.1:9/v1", "m", proxy=SecretStr("http://proxy.example:3128"))

    with pytest.raises(Misconfigured, match=r"forbidden here: proxy\.example"):
        OpenAIModel([endpoint], clock=clock)


# --- the list ------------------------------------------------------------------------------------------------------


async def test_the_error_of_all_endpoints_names_each(script: Start, clock: FakeClock) -> None:
    first, second = script("steps: [{error: {status: 401}}]"), script(DOWN)

    async with connected(clock, first, second, patience=ONCE) as model:
        with pytest.raises(Unavailable) as raised:
            await model.ask(redacted())

    text = str(raised.value)
    assert fault_class(raised.value) == "ModelUnreachable"
    assert "model m2 at 127.0.0.1" in text
    assert "before it model m1 at 127.0.0.1: ModelUnauthorized" in text


async def test_an_unknown_error_of_the_call_goes_to_the_next_endpoint(script: Start, clock: FakeClock) -> None:
    odd = ModelEndpoint("http://127.0.0.1:9/v1", "m", SecretStr("sk-not-a-header-\u2603"))

    async with connected(clock, odd, script(HELLO)) as model:
        reply = await model.ask(redacted())

    assert (reply.text, clock.sleeps) == ("hello", [])


async def test_the_model_that_is_wanted_is_asked_first(script: Start, clock: FakeClock) -> None:
    first, second = script(HELLO), script(HELLO)

    async with connected(clock, first, second) as model:
        reply = await model.ask(redacted(ModelRequest("m2", QUESTION.messages, ())))

    assert (len(first.requests), reply.endpoint) == (0, "model m2 at 127.0.0.1")


async def test_an_endpoint_that_was_given_up_is_asked_last_for_a_minute(script: Start, clock: FakeClock) -> None:
    first, second = script(DOWN), script(HELLO)

    async with connected(clock, first, second, patience=ONCE) as model:
        counts = []
        for wait in (0, 30, 31):
            await clock.sleep(wait)
            await model.ask(redacted())
            counts.append(len(first.requests))

    assert counts == [1, 1, 2]


async def test_an_endpoint_that_rests_is_still_asked_when_no_other_answers(script: Start, clock: FakeClock) -> None:
    first = script("steps: [{error: {status: 503}, times: 1}, {reply: {text: back}}]")
    second = script("steps: [{error: {status: 500}, times: 1}, {reply: {text: up}}, {error: {status: 500}}]")

    async with connected(clock, first, second, patience=ONCE) as model:
        with pytest.raises(Unavailable):
            await model.ask(redacted())
        reply = await model.ask(redacted())

    assert reply.text in ("back", "up")


async def test_retries_are_counted_with_phase_model_and_reason(script: Start, clock: FakeClock) -> None:
    told: list[tuple[str, Retry]] = []
    first = script("steps: [{error: {status: 429}, times: 1}, {error: {status: 401}}]")
    second = script("steps: [{error: {status: 503}, times: 1}, {reply: {text: hello}}]")
    request = ModelRequest("m", QUESTION.messages, (), phase="rca")

    async with connected(clock, first, second, on_retry=lambda *args: told.append(args)) as model:
        reply = await model.ask(redacted(request))

    retries = (Retry("m1", "ModelRateLimited"), Retry("m1", "ModelUnauthorized"), Retry("m2", "ModelUnreachable"))
    assert reply.retries == retries
    assert told == [("rca", retry) for retry in retries]


async def test_a_call_that_fails_for_good_has_counted_its_retries_too(script: Start, clock: FakeClock) -> None:
    told: list[Retry] = []

    async with connected(clock, script(DOWN), on_retry=lambda _, retry: told.append(retry)) as model:
        with pytest.raises(Unavailable):
            await model.ask(redacted())

    assert told == [Retry("m1", "ModelUnreachable")] * 4


# --- overflow ------------------------------------------------------------------------------------------------------

OVERFLOW = "steps: [{error: {status: 400, code: context_length_exceeded, message: too long}}]"


async def test_an_overflow_comes_back_before_another_endpoint_is_asked(script: Start, clock: FakeClock) -> None:
    first, second = script(OVERFLOW), script(HELLO)
    small = ModelEndpoint(first.base_url, "m", context_window=32_000)

    async with connected(clock, small, second) as model:
        with pytest.raises(ContextOverflow) as raised:
            await model.ask(redacted())

    assert (raised.value.window, fault_class(raised.value), len(second.requests)) == (32_000, "ContextOverflow", 0)


async def test_the_overflow_of_a_squeezed_conversation_is_permanent(script: Start, clock: FakeClock) -> None:
    first, second = script(OVERFLOW), script(HELLO)

    async with connected(clock, first, second) as model:
        reply = await model.ask(redacted(ModelRequest("m", QUESTION.messages, (), squeezed=True)))

    assert (reply.text, len(first.requests), clock.sleeps) == ("hello", 1, [])


async def test_an_overflow_says_nothing_against_the_endpoint(script: Start, clock: FakeClock) -> None:
    first, second = (
        script("steps: [{error: {status: 413, message: Payload Too Large}, times: 1}, {reply: {text: short}}]"),
        script(HELLO),
    )

    async with connected(clock, first, second) as model:
        with pytest.raises(ContextOverflow):
            await model.ask(redacted())
        reply = await model.ask(redacted())

    assert reply.text == "short"


# --- cost ----------------------------------------------------------------------------------------------------------

MILLIONS = Usage(3_000_000, 2_000_000, 1_000_000, 5)
PRICES = {
    "all-said": (Price(Decimal("2.5"), Decimal(10), Decimal("0.25")), Decimal("13.00")),
    "cached-as-others": (Price(Decimal("2.5"), Decimal(10)), Decimal("17.5")),
    "free": (Price(Decimal(0), Decimal(0)), Decimal(0)),
    "unknown": (None, None),
}


@both_ways
@pytest.mark.parametrize(("price", "cost"), PRICES.values(), ids=PRICES.keys())
async def test_the_cost_is_that_of_the_endpoint_that_answered(
    script: Start, clock: FakeClock, stream: bool, price: Price | None, cost: Decimal | None
) -> None:
    dear = ModelEndpoint(script(DOWN).base_url, "m", price=Price(Decimal(999), Decimal(999)))
    endpoint = ModelEndpoint(script(HELLO).base_url, "m", price=price)

    async with connected(clock, dear, endpoint, stream=stream, patience=ONCE) as model:
        reply = await model.ask(redacted())

    assert (reply.usage, reply.cost) == (MILLIONS, cost)


async def test_a_cost_without_figures_is_unknown_and_not_nothing(script: Start, clock: FakeClock) -> None:
    serving = script("steps: [{reply: {text: x, usage: none}}]")

    async with connected(clock, ModelEndpoint(serving.base_url, "m", price=PRICES["all-said"][0])) as model:
        reply = await model.ask(redacted())

    assert reply.cost is None
