"""Over which wire: proxy, authorities, time limits, and how much may come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx2
from openai import AsyncAzureOpenAI, AsyncOpenAI

from inquest.adapters.http import authorities_of
from inquest.adapters.llm.endpoint import ModelEndpoint, ModelTimeouts, is_loopback

MOST_STREAMED: Final = 8 * 1024 * 1024
"""Bytes of a stream, which tells each token in an event of some hundred; more is no answer."""
MOST_WHOLE: Final = 2 * 1024 * 1024
"""Bytes of an answer that comes in one piece, and is decoded in one."""
MOST_COMPRESSED: Final = 64 * 1024
"""Nothing compressed is asked for; where it comes anyway, it may be large when unpacked."""


class EndpointClient:
    """The client of one endpoint; made again when its file of authorities changes, running calls go on."""

    def __init__(self, endpoint: ModelEndpoint, patience: ModelTimeouts) -> None:
        self._endpoint, self._patience = endpoint, patience
        self._stamp = _stamp(endpoint.ca_bundle)
        self._clients = [_client(endpoint, patience)]

    @property
    def client(self) -> AsyncOpenAI:
        """The client as the files are now; Misconfigured where they are broken."""
        stamp = _stamp(self._endpoint.ca_bundle)
        if stamp != self._stamp:
            self._clients.append(_client(self._endpoint, self._patience))
            self._stamp = stamp
        return self._clients[-1]

    async def aclose(self) -> None:
        """Close all that was opened."""
        for client in self._clients:
            await client.close()


def _stamp(file: Path | None) -> int:
    try:
        return file.stat().st_mtime_ns if file else 0
    except OSError:
        return -1


def _client(endpoint: ModelEndpoint, patience: ModelTimeouts) -> AsyncOpenAI:
    http = _http(endpoint, patience)

    async def key() -> str:
        return endpoint.secret() or "none"

    if endpoint.azure_api_version:
        return AsyncAzureOpenAI(
            azure_endpoint=endpoint.url,
            azure_deployment=endpoint.model,
            api_version=endpoint.azure_api_version,
            api_key=key,
            http_client=http,
            timeout=http.timeout,
            max_retries=0,
        )
    return AsyncOpenAI(base_url=endpoint.url, api_key=key, http_client=http, timeout=http.timeout, max_retries=0)


def _http(endpoint: ModelEndpoint, patience: ModelTimeouts) -> httpx2.AsyncClient:
    proxy = endpoint.proxy.get_secret_value()

    async def guard(response: httpx2.Response) -> None:
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _Guarded(stream, patience.idle, _most_bytes(response.headers))

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(patience.whole, connect=patience.connect),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=endpoint.places),
        headers={"accept-encoding": "identity"},
        proxy=proxy or None,
        verify=authorities_of("model.ca_bundle", endpoint.ca_bundle),
        trust_env=not is_loopback(endpoint.url),
        event_hooks={"response": [guard]},
    )


def _most_bytes(headers: httpx2.Headers) -> int:
    if headers.get("content-encoding", "identity").lower() != "identity":
        return MOST_COMPRESSED
    return MOST_WHOLE if "json" in headers.get("content-type", "") else MOST_STREAMED


class _Guarded(httpx2.AsyncByteStream):
    """A body that neither grows without end nor falls silent in the middle.

    Silence counts from the first byte on: until then a model may think for as long as the whole call may take.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, idle: float, most: int) -> None:
        self._stream, self._idle, self._most = stream, idle, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts, size = aiter(self._stream), 0
        while (part := await self._next(parts, begun=size > 0)) is not None:
            size += len(part)
            if size > self._most:
                raise httpx2.ReadError(f"the answer is longer than {self._most} bytes")
            yield part

    async def _next(self, parts: AsyncIterator[bytes], *, begun: bool) -> bytes | None:
        try:
            async with asyncio.timeout(self._idle if begun else None):
                return await anext(parts)
        except StopAsyncIteration:
            return None
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"silent for {self._idle:g} s in the middle of the answer") from error

    async def aclose(self) -> None:
        await self._stream.aclose()
