"""What stands between the adapter and an endpoint in a cluster: an authority of one's own, and a forward proxy."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from hack.cluster.certificates import Authority, Subject
from hack.scripted_model.server import Tls


def tls_of(folder: Path) -> tuple[Tls, Path]:
    """A certificate for this machine, and the authority that signed it."""
    authority = Authority(folder)
    certificate, key = authority.issue(Subject("model", "model", addresses=(IPv4Address("127.0.0.1"),)))
    return Tls(certificate, key), authority.certificate


@dataclass
class ForwardProxy:
    """What it was asked for, and the credentials it wants."""

    url: str = ""
    wants: str = ""
    seen: list[str] = field(default_factory=list)
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept in mind until it ends."""
        task = asyncio.create_task(self._serve(reader, writer))
        self.serving.add(task)
        await asyncio.wait([task])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A tunnel for CONNECT, a forwarded request for everything else."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
            self.seen.append(f"{method} {target}")
            if (
                self.wants
                and f"basic {base64.b64encode(self.wants.encode()).decode()}".lower() not in head.decode().lower()
            ):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                return
            host, port = _address(method, target)
            upstream = await asyncio.open_connection(host, port)
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream[1].write(head.replace(target.encode(), urlsplit(target).path.encode(), 1))
            await _join((reader, writer), upstream)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            await _close(writer)


def _address(method: str, target: str) -> tuple[str, int]:
    host, _, port = target.rpartition(":") if method == "CONNECT" else (urlsplit(target).netloc).rpartition(":")
    return host, int(port)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _join(one: Ends, other: Ends) -> None:
    copies = [asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))]
    await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    for task in copies:
        task.cancel()
    await asyncio.gather(*copies, return_exceptions=True)
    await _close(other[1])


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(65536):
        writer.write(part)
        await writer.drain()


@asynccontextmanager
async def forward_proxy(wants: str = "") -> AsyncIterator[ForwardProxy]:
    """A proxy on a free port of this machine; `wants` is `user:password`."""
    proxy = ForwardProxy(wants=wants)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await asyncio.gather(*proxy.serving)
