"""Notices by e-mail, to a real server: TLS, login, headers that a cluster cannot write."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from inquest.adapters.notifications.channels import Receiver
from inquest.adapters.notifications.configured import receivers_of
from inquest.adapters.notifications.notifier import NotificationDispatcher
from inquest.core.redaction.redacted import seal
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Misconfigured, Unavailable
from inquest.ports.process import Notice
from inquest.settings.notifications import NotificationSettings
from inquest.settings.settings import Settings
from tests.adapters.notifications.inbox import until
from tests.adapters.notifications.post import Post, open_office
from tests.controllers.runtime.times import SteppedClock

NOTICE = Notice("u-1/Approval/3", "Approval", "High", "Approval needed", "Look at it", "inquest-system", "inv-1")
BASE = {"sender": "inquest@ops.example", "recipients": ["a@ops.example", "b@ops.example"]}


async def mailer(
    post: Post, *, redactor: Redactor | None = None, trusted: bool = True, span: str = "20s", **smtp: Any
) -> Receiver:
    """The receiver that the settings make."""
    given = {"host": "127.0.0.1", "port": post.port, **BASE, **smtp}
    one = {"name": "mail", "kind": "email", "smtp": given, "timeout": span}
    if trusted and post.authorities:
        one["ca_bundle"] = post.authorities
    settings = NotificationSettings.model_validate({"receivers": [one]})
    learn = (redactor or Redactor()).learn
    (found,) = await receivers_of(settings, learn, SteppedClock().now, AsyncExitStack())
    return found.receiver


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_message_goes_encrypted_with_a_login(tmp_path: Path, security: str) -> None:
    file, redactor = tmp_path / "password", Redactor()
    file.write_text("canary of the morning\n")
    async with open_office(tmp_path, security, "canary of the morning") as post:
        one = await mailer(post, redactor=redactor, security=security, user="inquest", password_file=file)

        await one.deliver(seal(NOTICE))

        assert post.logins == [("inquest", "canary of the morning")]
        assert post.encrypted == [True]
        assert post.envelopes == [("inquest@ops.example", ["a@ops.example", "b@ops.example"])]
        mail = post.got[0]
        assert (mail["From"], mail["To"]) == ("inquest@ops.example", "a@ops.example, b@ops.example")
        assert mail["Subject"] == "[High] Approval needed"
        assert mail["Date"] == "Thu, 01 Jan 2026 00:00:00 +0000"
        assert mail["Auto-Submitted"] == "auto-generated"
        assert mail.get_content_type() == "text/plain"
        assert mail.get_content().splitlines() == ["Approval needed", "Look at it"]
        assert "canary" not in redactor.text("canary of the morning").value


async def test_text_of_a_cluster_writes_no_header_and_ends_no_message(tmp_path: Path) -> None:
    title = "down\r\nBcc: evil@evil.example\r\n\r\n<html>\u202e\x00 ünïcode " + "x" * 2000
    body = "a\r\n.\r\nMAIL FROM:<evil@evil.example>\n.\n\x1b[31mred " + "y" * 5000
    async with open_office(tmp_path) as post:
        await (await mailer(post)).deliver(seal(replace(NOTICE, title=title, body=body)))

        mail = post.got[0]
        headers = "From To Subject Date Message-ID Auto-Submitted X-Inquest-Type MIME-Version"
        assert set(mail.keys()) == {*headers.split(), "Content-Type", "Content-Transfer-Encoding"}
        assert post.envelopes == [("inquest@ops.example", ["a@ops.example", "b@ops.example"])]
        assert mail["Subject"].startswith("[High] down Bcc: evil@evil.example <html>\\u{202e}\\u{0} ünïcode xxx")
        assert len(mail["Subject"]) <= 210
        text = mail.get_content()
        assert "MAIL FROM:<evil@evil.example>" in text
        assert "\x1b" not in text
        assert text.rstrip().endswith("yyy")


async def test_a_repeat_is_the_same_message(tmp_path: Path) -> None:
    async with open_office(tmp_path) as post:
        one = await mailer(post)
        for key in ("a", "a", "b"):
            await one.deliver(seal(replace(NOTICE, key=key)))

        first, second, other = (mail["Message-ID"] for mail in post.got)
        assert first == second != other
        assert first.endswith("@ops.example>")


async def test_a_server_without_tls_gets_nothing(tmp_path: Path) -> None:
    async with open_office(tmp_path, "none") as post:
        with pytest.raises(Unavailable):
            await (await mailer(post)).deliver(seal(NOTICE))
        assert post.got == []

        await (await mailer(post, security="none")).deliver(seal(NOTICE))
        assert post.encrypted == [False]


async def test_a_server_that_nobody_vouches_for_gets_no_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("canary")
    async with open_office(tmp_path, password="canary") as post:
        one = await mailer(post, trusted=False, user="inquest", password_file=tmp_path / "password")

        with pytest.raises(Unavailable):
            await one.deliver(seal(NOTICE))

        assert (post.logins, post.got) == ([], [])


async def test_a_wrong_password_is_told_without_it_and_a_rotated_one_serves_at_once(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("canary-old")
    async with open_office(tmp_path, password="canary-new") as post:
        one = await mailer(post, user="inquest", password_file=file)
        with pytest.raises(Unavailable, match="it answered 535") as told:
            await one.deliver(seal(NOTICE))
        assert "canary" not in str(told.value)

        file.write_text("canary-new")
        await one.deliver(seal(NOTICE))
        assert len(post.got) == 1


async def test_an_unreadable_password_is_told_by_its_setting(tmp_path: Path) -> None:
    one = await mailer(Post(port=9), user="inquest", password_file=tmp_path / "none")

    with pytest.raises(Misconfigured, match="password_file cannot be read: FileNotFoundError"):
        await one.deliver(seal(NOTICE))


async def test_one_refused_recipient_does_not_make_the_others_get_it_twice(tmp_path: Path) -> None:
    async with open_office(tmp_path) as post:
        post.refused = ("a@ops.example",)
        with capture_logs() as logs:
            await (await mailer(post)).deliver(seal(NOTICE))
        assert post.envelopes == [("inquest@ops.example", ["b@ops.example"])]
        assert [(line["event"], line["count"]) for line in logs] == [("recipients refused", 1)]

        post.refused = ("a@ops.example", "b@ops.example")
        with pytest.raises(Unavailable):
            await (await mailer(post)).deliver(seal(NOTICE))


async def test_a_server_that_says_nothing_is_left_after_the_time(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def hears(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(hears, "127.0.0.1", 0)
    try:
        one = await mailer(Post(port=server.sockets[0].getsockname()[1]), span="200ms")
        with pytest.raises(Unavailable, match=r"no answer within 0\.2 s"):
            await one.deliver(seal(NOTICE))
        await ended.wait()
    finally:
        server.close()


async def test_a_server_that_was_full_gets_the_message_half_a_minute_later(tmp_path: Path) -> None:
    async with open_office(tmp_path) as post:
        post.answer, clock = "452 full", SteppedClock()
        given = {"host": "127.0.0.1", "port": post.port, **BASE}
        one = {"name": "mail", "kind": "email", "smtp": given, "ca_bundle": post.authorities, "timeout": "20s"}
        settings = NotificationSettings.model_validate({"receivers": [one]})
        told = await receivers_of(settings, Redactor().learn, clock.now, AsyncExitStack())
        notifier = NotificationDispatcher(None, clock, told)  # type: ignore[arg-type]

        await notifier.tell(seal(NOTICE))
        await until(lambda: bool(clock._sleepers), "the next try is planned")
        post.answer = "250 OK"
        await clock.advance(30)
        await until(lambda: bool(post.got), "it is delivered")
        await until(lambda: not notifier._tasks, "nothing is under way any more")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no server": ({"kind": "email"}, "smtp and kind: email"),
    "a server for a chat": ({"kind": "slack", "url": "http://x", "smtp": {"host": "h", **BASE}}, "smtp and kind"),
    "an address for a server": ({"smtp": {"host": "h", **BASE}, "url": "http://x"}, "of no use"),
    "a header for a recipient": ({"smtp": {"host": "h", **BASE, "recipients": ["a@b\r\nBcc: c@d"]}}, "an address"),
    "a name for a sender": ({"smtp": {"host": "h", **BASE, "sender": "Inquest"}}, "an address such as"),
    "nobody": ({"smtp": {"host": "h", **BASE, "recipients": []}}, "recipients"),
    "a user without a password": ({"smtp": {"host": "h", **BASE, "user": "u"}}, "belong together"),
    "a password in the clear": (
        {"smtp": {"host": "h", **BASE, "user": "u", "password_file": "/p", "security": "none"}},
        "in the clear",
    ),
}


@pytest.mark.parametrize(("receiver", "words"), WRONG.values(), ids=WRONG.keys())
def test_mail_that_could_not_be_sent_safely_is_refused(receiver: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings.model_validate({"herald": {"receivers": [{"name": "mail", "kind": "email", **receiver}]}})


async def test_a_report_that_is_longer_than_a_mail_takes_goes_in_parts(tmp_path: Path) -> None:
    lines = [f"line {number} {'x' * 60}" for number in range(400)]
    async with open_office(tmp_path) as post:
        await (await mailer(post)).deliver(seal(replace(NOTICE, body="\n".join(lines))))

        assert [mail["Subject"] for mail in post.got] == [
            "[High] Approval needed (1/2)",
            "[High] Approval needed (2/2)",
        ]
        assert len({mail["Message-ID"] for mail in post.got}) == 2
        told = [line for mail in post.got for line in mail.get_content().splitlines()]
        assert told == [NOTICE.title, *lines]
