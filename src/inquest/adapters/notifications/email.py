"""Notices by e-mail: plain text over SMTP.

Nothing of a cluster reaches a header but the subject, which is one line without control characters; recipients and
sender come from the settings alone. The Message-ID follows from the key of the notice, so that a repeat is the same
message to whoever files it.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Final

import aiosmtplib
import structlog

from inquest.adapters.notifications.channels import Learn, PartialDelivery, silent
from inquest.adapters.notifications.text import part_of, split_text, title_of_notice
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Misconfigured, Unavailable
from inquest.ports.process import Notice

_log = structlog.stdlib.get_logger(__name__)

AT_ONCE: Final = 2
"""Connections of this receiver to its server at a time."""


@dataclass(frozen=True)
class Mailbox:
    """From whom, to whom, through which server; `authorities` None: no TLS."""

    host: str
    port: int
    sender: str
    recipients: tuple[str, ...]
    authorities: ssl.SSLContext | None
    starttls: bool = True
    """TLS begins after the greeting, and nothing is sent where the server has none; else with the connection."""
    user: str = ""
    password_file: Path | None = None
    seconds: float = 30.0
    """What one try may take in all."""
    on_password: Learn = silent

    def password(self) -> str | None:
        """Misconfigured where its file cannot be read."""
        if self.password_file is None:
            return None
        try:
            found = self.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise Misconfigured(f"password_file cannot be read: {type(error).__name__}") from None
        if not found:
            raise Misconfigured("password_file is empty")
        self.on_password(found)
        return found


class MailReceiver:
    """One message to all recipients."""

    def __init__(self, mailbox: Mailbox, now: Callable[[], datetime], name: str = "email") -> None:
        self._mailbox, self._now, self.name = mailbox, now, name
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._begun = PartialDelivery()

    async def deliver(self, notice: Redacted[Notice]) -> None:
        """Unavailable, Misconfigured. What some recipients got is delivered: a repeat would reach them twice."""
        password = await asyncio.to_thread(self._mailbox.password)
        pages = split_text(notice.value)
        for number in self._begun.left(notice.value.key, len(pages)):
            message = message_of(notice.value, self._mailbox, self._now(), number + 1)
            async with self._turns:
                refused = await _sent(message, self._mailbox, password)
            self._begun.sent(notice.value.key, number, len(pages))
            if refused:
                _log.warning("recipients refused", receiver=self.name, key=notice.value.key, count=refused)


def message_of(notice: Notice, mailbox: Mailbox, now: datetime, number: int = 1) -> EmailMessage:
    """A whole message, the one of that number where the notice takes several; `policy.SMTP` refuses a line break
    in a header."""
    pages = split_text(notice)
    key = notice.key if number == 1 else f"{notice.key}/{number}"
    message = EmailMessage(policy=SMTP)
    message["From"] = _address(mailbox.sender)
    message["To"] = [_address(one) for one in mailbox.recipients]
    message["Subject"] = f"[{notice.priority}] {title_of_notice(notice)}{part_of(number, len(pages))}"
    message["Date"] = now
    message["Message-ID"] = f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{_domain(mailbox.sender)}>"
    # No vacation notes and no loops (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message["X-Inquest-Type"] = notice.type
    message.set_content(pages[number - 1] + "\n", charset="utf-8")
    return message


async def _sent(message: EmailMessage, mailbox: Mailbox, password: str | None) -> int:
    """How many recipients were refused. A server's words are not passed on: it may repeat what it was given."""
    tls = mailbox.authorities is not None
    try:
        async with asyncio.timeout(mailbox.seconds):
            refused, _ = await aiosmtplib.send(
                message,
                sender=mailbox.sender,
                recipients=list(mailbox.recipients),
                hostname=mailbox.host,
                port=mailbox.port,
                username=mailbox.user or None,
                password=password,
                use_tls=tls and not mailbox.starttls,
                start_tls=tls and mailbox.starttls,
                tls_context=mailbox.authorities,
                timeout=mailbox.seconds,
            )
    except (TimeoutError, aiosmtplib.SMTPTimeoutError):
        raise Unavailable("receiver", f"no answer within {mailbox.seconds:g} s") from None
    except aiosmtplib.SMTPResponseException as error:
        raise Unavailable("receiver", f"it answered {error.code} ({type(error).__name__})") from None
    except (aiosmtplib.SMTPException, OSError) as error:
        raise Unavailable("receiver", type(error).__name__) from None
    return len(refused)


def _address(text: str) -> Address:
    return Address(addr_spec=text)


def _domain(address: str) -> str:
    return address.rpartition("@")[2]
