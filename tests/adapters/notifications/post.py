"""A real SMTP server that keeps what it gets."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from hack.cluster.certificates import Authority, Subject


@dataclass
class Post:
    """`refused` are addresses that it does not know; `answer` is what it says of each message."""

    port: int = 0
    authorities: Path | None = None
    password: str = ""
    refused: tuple[str, ...] = ()
    answer: str = "250 OK"
    got: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.got.append(cast(EmailMessage, message_from_bytes(cast(bytes, envelope.content), policy=default)))
            self.envelopes.append((str(envelope.mail_from), list(envelope.rcpt_tos)))
            self.encrypted.append(server.transport.get_extra_info("cipher") is not None)
        return self.answer

    def check(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        """Who knows the password."""
        if not isinstance(data, LoginPassword):
            return AuthResult(success=False, handled=False)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password.decode() == self.password, handled=False)


@asynccontextmanager
async def open_office(folder: Path, security: str = "starttls", password: str = "") -> AsyncIterator[Post]:
    """One that speaks TLS after the greeting, from the start or not at all, and asks for a login where it has one."""
    post = Post(password=password)
    context = None
    if security != "none":
        authority = Authority(folder)
        chain, key = authority.issue(Subject("smtp", "smtp", "people", addresses=[IPv4Address("127.0.0.1")]))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(chain, key)
        post.authorities = authority.certificate
    starttls = security == "starttls"

    def session() -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it does not see the TLS that begins with the connection
            return smtp()

    def smtp() -> SMTP:
        return SMTP(
            post,
            hostname="post.example",
            tls_context=context if starttls else None,
            require_starttls=starttls,
            auth_required=bool(password),
            auth_require_tls=starttls,
            authenticator=post.check if password else None,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=context if security == "tls" else None)
    post.port = server.sockets[0].getsockname()[1]
    try:
        yield post
    finally:
        server.close()
