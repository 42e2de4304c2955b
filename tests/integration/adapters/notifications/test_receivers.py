"""Who gets which notice, over real connections: addresses, logins, routes, and text that stays text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from inquest.adapters.notifications.configured import receivers_of
from inquest.adapters.notifications.notifier import NotificationDispatcher
from inquest.adapters.notifications.routes import RoutedReceiver
from inquest.core.redaction.redacted import seal
from inquest.core.redaction.redactor import Redactor
from inquest.core.reporting.notices import TargetOwner
from inquest.errors import Misconfigured, Unavailable
from inquest.ports.process import Notice
from inquest.settings.notifications import NotificationSettings
from inquest.settings.settings import Settings
from tests.integration.adapters.notifications.inbox import Inbox, listening, until
from tests.unit.controllers.runtime.times import SteppedClock

NOTICE = Notice("u-1/Approval/3", "Approval", "High", "Approval needed", "Look at it", "inquest-system", "inv-1")
SHOP, PAYMENTS = TargetOwner("shop", ("storefront",)), TargetOwner("payments", ("ledger", "on-call"))


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with listening() as found:
        yield found


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as found:
        yield found


async def made(stack: AsyncExitStack, redactor: Redactor | None = None, **notifier: Any) -> tuple[RoutedReceiver, ...]:
    redactor = redactor or Redactor()
    return await receivers_of(NotificationSettings.model_validate(notifier), redactor.learn, stack)


def herald_of(told: tuple[RoutedReceiver, ...], clock: SteppedClock | None = None) -> NotificationDispatcher:
    return NotificationDispatcher(cast(Any, None), clock or SteppedClock(), told)


def chat(url: str, **further: Any) -> dict[str, Any]:
    return {"name": "chat", "kind": "slack", "url": url, **further}


# --- text ------------------------------------------------------------------------------------------------------------


async def test_a_chat_gets_words_that_mention_nobody_and_link_to_nothing(inbox: Inbox, stack: AsyncExitStack) -> None:
    hostile = "<!channel> <https://evil.example|ok> @everyone @here ```* out & in _x_ \u202egnp.\x1b[31m"
    notice = replace(NOTICE, title=hostile, body=f"Root cause: {hostile}\nimage: r/app@sha256:12")
    (one,) = await made(stack, receivers=[chat(inbox.url)])

    await one.receiver.deliver(seal(notice))

    text = inbox.got[0]["text"]
    assert text.startswith("*Approval*, High\n```\n&lt;!channel&gt; &lt;https://evil.example|ok&gt; @\u2060everyone")
    inside = text.removeprefix("*Approval*, High\n```\n").removesuffix("\n```")
    assert not set("<>`\x1b\u202e") & set(inside)
    assert "&amp; in _x_ \\u{202e}gnp." in inside
    assert "r/app@sha256:12" in inside
    assert inbox.got[0] == {"text": text, "unfurl_links": False, "unfurl_media": False}


async def test_a_report_that_is_longer_than_a_chat_takes_goes_in_parts(inbox: Inbox, stack: AsyncExitStack) -> None:
    (one,) = await made(stack, receivers=[chat(inbox.url)])
    lines = [f"line {number} {'x' * 50}" for number in range(120)]

    await one.receiver.deliver(seal(replace(NOTICE, body="\n".join(lines))))

    texts = [got["text"] for got in inbox.got]
    assert [text.partition("\n")[0] for text in texts] == [f"*Approval*, High ({n}/3)" for n in (1, 2, 3)]
    assert all(len(text) < 3_100 for text in texts)
    inside = "\n".join(text.partition("```\n")[2].removesuffix("\n```") for text in texts)
    assert inside.splitlines() == [NOTICE.title, *lines]


async def test_a_part_that_got_there_is_not_sent_again(inbox: Inbox, stack: AsyncExitStack) -> None:
    (one,) = await made(stack, receivers=[chat(inbox.url)])
    long, inbox.answers = seal(replace(NOTICE, body="x\n" * 3_000)), [200, 503]

    with pytest.raises(Unavailable):
        await one.receiver.deliver(long)
    await one.receiver.deliver(long)

    heads = [got["text"].partition("\n")[0] for got in inbox.got]
    assert heads == [f"*Approval*, High ({n}/{len(heads)})" for n in range(1, len(heads) + 1)]


async def test_a_text_without_end_is_cut_and_says_so(inbox: Inbox, stack: AsyncExitStack) -> None:
    (one,) = await made(stack, receivers=[chat(inbox.url)])

    await one.receiver.deliver(seal(replace(NOTICE, body="x" * 50_000)))

    assert len(inbox.got) == 10
    assert all(len(got["text"]) < 3_100 for got in inbox.got)
    assert inbox.got[-1]["text"].endswith("x\n… (cut)\n```")


async def test_a_webhook_gets_the_whole_notice_as_json(inbox: Inbox, stack: AsyncExitStack) -> None:
    (one,) = await made(stack, receivers=[{"name": "desk", "kind": "webhook", "url": inbox.url}])

    await one.receiver.deliver(seal(replace(NOTICE, owners=(SHOP,))))

    got = inbox.got[0]
    assert (got["key"], got["type"], got["priority"]) == ("u-1/Approval/3", "Approval", "High")
    assert got["owners"] == [{"namespace": "shop", "teams": ["storefront"]}]
    assert got["text"] == "*Approval*, High\n```\nApproval needed\nLook at it\n```"


# --- logins, addresses -----------------------------------------------------------------------------------------------


async def test_a_rotated_token_and_a_rotated_address_need_no_restart(
    inbox: Inbox, stack: AsyncExitStack, tmp_path: Path
) -> None:
    token, address, redactor = tmp_path / "token", tmp_path / "url", Redactor()
    files = {"name": "desk", "kind": "webhook", "url_file": address, "token_file": token}
    (one,) = await made(stack, redactor, receivers=[files])

    for number in ("1", "2"):
        token.write_text(f"canary-token-{number}\n")
        address.write_text(f"{inbox.url}/services/Canary0123456789{number}\n")
        await one.receiver.deliver(seal(NOTICE))

    assert inbox.logins == ["Bearer canary-token-1", "Bearer canary-token-2"]
    assert [path.rsplit("/", 1)[1] for path in inbox.paths] == ["Canary01234567891", "Canary01234567892"]
    shown = redactor.text("canary-token-1 canary-token-2 Canary01234567891 Canary01234567892 services").value
    assert "anary" not in shown
    assert shown.endswith("services")


@pytest.mark.parametrize("text", [None, "", "two words", "no-url", "\xff"], ids=str)
async def test_an_address_that_is_none_is_told_without_its_text(
    stack: AsyncExitStack, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "url"
    if text is not None:
        file.write_text(text)
    (one,) = await made(stack, receivers=[{"name": "desk", "kind": "webhook", "url_file": file}])

    with pytest.raises(Misconfigured, match=r"^url_file ") as told:
        await one.receiver.deliver(seal(NOTICE))

    assert not text or text not in str(told.value)


async def test_a_redirect_is_not_followed_with_a_token(inbox: Inbox, stack: AsyncExitStack, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("canary-token")
    (one,) = await made(stack, receivers=[chat(inbox.url, token_file=tmp_path / "token")])
    inbox.answers = [302]

    with pytest.raises(Unavailable, match="it answered 302"):
        await one.receiver.deliver(seal(NOTICE))

    assert inbox.paths == ["/"]


async def test_a_receiver_that_never_answers_is_left_after_its_time(inbox: Inbox, stack: AsyncExitStack) -> None:
    inbox.silent = True
    (one,) = await made(stack, receivers=[chat(inbox.url, timeout="200ms")])

    with pytest.raises(Unavailable, match=r"no answer within 0.2 s"):
        await one.receiver.deliver(seal(NOTICE))


async def test_a_failing_receiver_is_tried_five_more_times_and_no_word_of_its_address_is_logged(
    inbox: Inbox, stack: AsyncExitStack
) -> None:
    clock, inbox.answers = SteppedClock(), [500] * 9
    notifier = herald_of(await made(stack, receivers=[chat(f"{inbox.url}/Canary0123456789")]), clock)

    with capture_logs() as logs:
        await notifier.tell(seal(NOTICE))
        for number, pause in enumerate((30, 60, 120, 240, 480), start=1):
            await until(lambda: bool(clock._sleepers), "the next try is planned")
            await clock.advance(pause - 1)
            assert len(inbox.paths) == number
            await clock.advance(1)
            await until(lambda: len(inbox.paths) == number + 1, "it is tried again")  # noqa: B023 - at once
        await until(lambda: not notifier._tasks, "it is given up")

    assert len(inbox.paths) == 6
    assert [line["event"] for line in logs][-1] == "notice given up"
    assert "Canary" not in str(logs)
    assert "it answered 500" in str(logs)


# --- routes ----------------------------------------------------------------------------------------------------------

ROUTES: dict[str, tuple[dict[str, Any], Notice, bool]] = {
    "its type": ({"types": ["Approval"]}, NOTICE, True),
    "another type": ({"types": ["Completion"]}, NOTICE, False),
    "its priority": ({"priorities": ["Critical", "High"]}, NOTICE, True),
    "another priority": ({"priorities": ["Critical"]}, NOTICE, False),
    "its namespace": ({"namespaces": ["shop"]}, replace(NOTICE, owners=(SHOP,)), True),
    "the namespace of the Investigation is not the target's": (
        {"namespaces": ["inquest-system"]},
        replace(NOTICE, owners=(SHOP,)),
        False,
    ),
    "its team": ({"teams": ["on-call"]}, replace(NOTICE, owners=(PAYMENTS,)), True),
    "a notice of nobody": ({"teams": ["on-call"]}, NOTICE, False),
    "the owner of the signal's target": ({"teams": ["storefront"]}, replace(NOTICE, owners=(SHOP, PAYMENTS)), True),
    "the owner of the cause's target": ({"teams": ["ledger"]}, replace(NOTICE, owners=(SHOP, PAYMENTS)), True),
    "one owner's team in the other's namespace": (
        {"teams": ["ledger"], "namespaces": ["shop"]},
        replace(NOTICE, owners=(SHOP, PAYMENTS)),
        False,
    ),
    "all that it says": (
        {"types": ["Approval"], "priorities": ["High"], "namespaces": ["shop"], "teams": ["storefront"]},
        replace(NOTICE, owners=(SHOP,)),
        True,
    ),
    "one of two things that it says": ({"types": ["Approval"], "priorities": ["Low"]}, NOTICE, False),
}


@pytest.mark.parametrize(("route", "notice", "expected"), ROUTES.values(), ids=ROUTES.keys())
async def test_a_route_gives_what_it_matches(
    inbox: Inbox, stack: AsyncExitStack, route: dict[str, Any], notice: Notice, expected: bool
) -> None:
    told = await made(stack, receivers=[chat(inbox.url)], routes=[{"receivers": ["chat"], **route}])

    await herald_of(told).tell(seal(notice))

    assert bool(inbox.got) is expected


async def test_a_receiver_without_a_route_gets_everything_and_one_with_two_gets_a_notice_once(
    inbox: Inbox, stack: AsyncExitStack
) -> None:
    receivers = [chat(f"{inbox.url}/{name}") | {"name": name} for name in ("all", "some")]
    routes = [{"receivers": ["some"], "types": ["Approval"]}, {"receivers": ["some"], "priorities": ["High"]}]
    notifier = herald_of(await made(stack, receivers=receivers, routes=routes))

    await notifier.tell(seal(NOTICE))
    await notifier.tell(seal(replace(NOTICE, key="other", type="Completion", priority="Low")))

    assert sorted(inbox.paths) == ["/all", "/all", "/some"]


# --- settings --------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no address": ({"receivers": [{"name": "a", "kind": "slack"}]}, "url or url_file"),
    "two addresses": ({"receivers": [chat("http://x") | {"url_file": "/f"}]}, "url or url_file"),
    "an address of another kind": ({"receivers": [chat("file:///etc/passwd")]}, "must be a URL"),
    "a name of ours": ({"receivers": [chat("http://x") | {"name": "log"}]}, "log is taken"),
    "a name twice": ({"receivers": [chat("http://x"), chat("http://y")]}, "chat is there more than once"),
    "a route to nobody": ({"routes": [{"receivers": ["who"]}]}, "there is no receiver who"),
    "a type that there is not": ({"routes": [{"receivers": ["chat"], "types": ["approval"]}]}, "types"),
}


@pytest.mark.parametrize(("notifier", "words"), WRONG.values(), ids=WRONG.keys())
def test_settings_that_would_lose_notices_are_refused(tmp_path: Path, notifier: dict[str, Any], words: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"herald": notifier}))

    with pytest.raises(Misconfigured, match=words):
        Settings.load(file)


async def test_authorities_that_cannot_be_read_keep_the_operator_from_starting(
    stack: AsyncExitStack, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured, match=r"herald.receivers: chat"):
        await made(stack, receivers=[chat("https://x.example", ca_bundle=tmp_path / "none")])


def test_a_key_in_an_address_is_masked_from_the_start() -> None:
    settings = NotificationSettings.model_validate({"receivers": [chat("https://h.example/services/Canary0123456789")]})

    assert settings.secrets() == ("Canary0123456789",)
    assert "Canary" not in repr(settings)
