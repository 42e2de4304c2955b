"""From the settings to the endpoints: each has its own, what is incomplete is named, and nothing secret shows."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from inquest.adapters.clock import SystemClock
from inquest.core.case import facts
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.llm.messages import ModelReply, ModelRequest, Retry, Usage, total_cost
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured
from inquest.settings.backends import DataStorageSettings
from inquest.settings.model import ModelSettings
from inquest.settings.notifications import NotificationSettings
from inquest.settings.settings import Settings
from inquest.telemetry import metrics
from inquest.wiring import model_of
from tests.integration.adapters.llm.conftest import KEY, QUESTION, Start, redacted

FIRST = {"provider": "openai", "endpoint": "http://127.0.0.1:9/v1", "name": "one"}


def loaded(tmp_path: Path, **model: object) -> ModelSettings:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"model": model}))
    return Settings.load(file).model


WRONG = {
    "no-endpoint": ({"provider": "openai", "name": "m"}, "model: .*endpoint: must be a URL"),
    "no-name": ({"provider": "openai", "endpoint": "http://x/v1"}, "name: must be set"),
    "no-scheme": (FIRST | {"endpoint": "x.example/v1"}, "endpoint: must be a URL"),
    "no-host": (FIRST | {"endpoint": "https:///v1"}, "endpoint: must be a URL"),
    "no-port": (FIRST | {"endpoint": "http://x:99999/v1"}, "endpoint: must be a URL"),
    "no-version": (FIRST | {"provider": "azure", "azure_api_version": ""}, "azure_api_version: must be set"),
    "proxy": (FIRST | {"proxy": "socks5://user:pa55word@proxy:1080"}, "proxy: must be a URL"),
    "failover-text": (FIRST | {"failover": ["m@http://x/v1"]}, r"model\.failover\.0"),
    "failover-empty": (FIRST | {"failover": [{}]}, r"model\.failover\.0: .*endpoint"),
    "failover-none": (FIRST | {"failover": [FIRST | {"provider": "none"}]}, r"model\.failover\.0\.provider"),
    "price-half": (FIRST | {"price": {"prompt": 1}}, r"model\.price\.completion"),
    "price-below-nothing": (FIRST | {"price": {"prompt": -1, "completion": 1}}, r"model\.price\.prompt"),
}


@pytest.mark.parametrize(("model", "says"), WRONG.values(), ids=WRONG.keys())
def test_what_an_endpoint_lacks_is_named(tmp_path: Path, model: dict[str, object], says: str) -> None:
    with pytest.raises(Misconfigured, match=says) as raised:
        loaded(tmp_path, **model)

    assert "pa55word" not in str(raised.value)


def test_a_settings_file_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes("model: {provider: openai, endpoint: 'http://x/v1', name: größer}".encode())
    assert Settings.load(file).model.name == "größer"

    file.write_bytes(b"model: {name: gr\xf6\xdfer}")
    with pytest.raises(Misconfigured, match=r"settings\.yaml cannot be read"):
        Settings.load(file)


def test_without_a_model_nothing_is_asked_for(tmp_path: Path) -> None:
    assert loaded(tmp_path, provider="none").endpoints == ()


def test_a_further_endpoint_inherits_nothing(tmp_path: Path) -> None:
    first = FIRST | {"api_key": KEY, "proxy": "http://proxy:3128", "context_window": 9000}
    second = loaded(tmp_path, **first, failover=[{"endpoint": "http://x/v1", "name": "two"}]).endpoints[1]

    assert (second.key(), second.proxy.get_secret_value()) == ("", "")
    assert (second.context_window, second.price) == (128_000, None)


def test_every_secret_is_known_to_the_redactor(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("canary-of-the-file\n")
    second = FIRST | {"api_key_file": str(tmp_path / "key"), "proxy": "http://user:canary-of-the-proxy@proxy:3128"}
    model = loaded(tmp_path, **FIRST, api_key=KEY, failover=[second])

    shown = Redactor(Settings(model=model).secrets()).text(f"{KEY} canary-of-the-file canary-of-the-proxy").value

    assert [word for word in (KEY, "canary-of-the-file", "canary-of-the-proxy") if word in shown + repr(model)] == []


def test_the_password_of_the_database_and_the_key_in_a_webhooks_address_are_known_too() -> None:
    settings = Settings(
        datastorage=DataStorageSettings(database="postgresql+asyncpg://inquest:canary4711@db/inquest"),
        herald=NotificationSettings(webhooks=("https://hooks.example.com/services/T0AB/XyZ0123456789abcdEF",)),
    )

    shown = Redactor(settings.secrets()).text("canary4711 XyZ0123456789abcdEF hooks.example.com services").value

    assert "canary4711" not in shown
    assert "XyZ0123456789abcdEF" not in shown
    assert shown.endswith("hooks.example.com services")


async def test_a_rotated_key_is_masked_from_its_first_use_on(script: Start, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("canary-of-the-morning")
    server = script("steps: [{reply: {text: x}}, {reply: {text: x}}]")
    settings = loaded(tmp_path, **FIRST | {"endpoint": server.base_url, "api_key_file": str(file)})
    redactor = Redactor(Settings(model=settings).secrets())

    async with AsyncExitStack() as stack:
        model = await model_of(settings, SystemClock(), redactor.learn, stack)
        assert model is not None
        await model.ask(redacted(ModelRequest("one", QUESTION.messages, ())))
        file.write_text("canary-of-the-evening")
        await model.ask(redacted(ModelRequest("one", QUESTION.messages, ())))

    shown = redactor.text("canary-of-the-morning canary-of-the-evening").value
    assert "canary" not in shown


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    model = loaded(tmp_path, **FIRST, api_key_file=str(tmp_path / "lost"))

    with pytest.raises(Misconfigured, match=r"model\.api_key_file: .*lost"):
        model.secrets()


def test_the_list_can_be_given_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INQUEST_MODEL__FAILOVER", '[{"endpoint": "http://x/v1", "name": "two", "api_key": "k"}]')
    monkeypatch.setenv("INQUEST_MODEL__PRICE__PROMPT", "2.5")
    monkeypatch.setenv("INQUEST_MODEL__PRICE__COMPLETION", "10")

    model = loaded(tmp_path, **FIRST)

    assert [(one.name, one.key()) for one in model.endpoints] == [("one", ""), ("two", "k")]
    assert model.price is not None
    assert (model.price.prompt, model.price.completion, model.price.cached) == (Decimal("2.5"), Decimal(10), None)


async def test_the_wired_model_fails_over_with_price_and_counts_it(script: Start, tmp_path: Path) -> None:
    first = script("steps: [{error: {status: 401}}]")
    second = script("steps: [{reply: {text: x, usage: {prompt: 1000, completion: 500}}}]")
    price = {"prompt": 2, "completion": 4}
    further = {"provider": "azure", "endpoint": second.azure_url, "name": "two", "api_key": KEY, "price": price}
    settings = loaded(tmp_path, **FIRST | {"endpoint": first.base_url}, failover=[further])

    async with AsyncExitStack() as stack:
        model = await model_of(settings, SystemClock(), lambda _key: None, stack)
        assert model is not None
        reply = await model.ask(redacted(ModelRequest("one", QUESTION.messages, (), phase="selection")))

    assert (reply.cost, reply.endpoint) == (Decimal("0.004"), "model two at 127.0.0.1")
    assert second.heads[0].path == "/openai/deployments/two/chat/completions"
    assert counted("selection", "one", "ModelUnauthorized") >= 1


def counted(phase: str, model: str, reason: str) -> float:
    labels = {"phase": phase, "model": model, "reason": reason}
    families = text_string_to_metric_families(metrics.render_metrics().decode())
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "inquest_llm_retries_total" and sample.labels == labels
    )


# --- what the journal keeps ----------------------------------------------------------------------------------------


def test_a_reply_of_an_older_journal_is_read() -> None:
    reply = {"text": "x", "tool_calls": [], "finish_reason": "stop", "usage": {"prompt": 1}, "model": "m"}

    fact = load_fact({"fact": "RcaReplied", "body": {"reply": reply, "at": "2026-11-22T00:00:00Z"}})

    assert isinstance(fact, facts.RcaReplied)
    assert fact.reply == ModelReply("x", (), "stop", Usage(1), "m")


def test_cost_and_retries_survive_the_journal() -> None:
    reply = ModelReply(
        "x",
        (),
        "stop",
        Usage(9, 1, 5, 3),
        "m",
        endpoint="e",
        cost=Decimal("0.0012"),
        retries=(Retry("m", "ModelTimeout"),),
    )
    fact = facts.RcaReplied(reply, SystemClock().now())

    assert load_fact(dump_fact(fact)) == fact


COSTS = {
    "none": ([], None),
    "one-unknown": ([Decimal("0.5"), None], None),
    "known": ([Decimal("0.5"), Decimal("0.25")], Decimal("0.75")),
    "free": ([Decimal(0)], Decimal(0)),
}


@pytest.mark.parametrize(("costs", "total"), COSTS.values(), ids=COSTS.keys())
def test_a_sum_with_an_unknown_part_is_unknown(costs: list[Decimal | None], total: Decimal | None) -> None:
    assert total_cost(ModelReply("", (), "stop", Usage(), "m", cost=cost) for cost in costs) == total


def test_an_operator_without_a_model_does_not_load_its_client() -> None:
    asked = "import sys, inquest.operator.main; print('openai' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=300)

    assert said.stdout.strip() == "False"
