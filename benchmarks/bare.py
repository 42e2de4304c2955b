"""The baseline of a run: the same requests to the same scripted model, sent by a loop that does nothing else.

What this loop needs beside the model's own time is the price of the SDK, the network and this machine; what Inquest
needs beyond that is Inquest's: tools, redaction, journal, status.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

BARE_SECONDS: Final = 300.0

Body = dict[str, Any]


def replay(url: str, conversations: Mapping[str, Sequence[Body]]) -> dict[str, float]:
    """Send every conversation at once, the requests of each in order; gives the wall time of each in seconds."""
    return asyncio.run(_replay(url, conversations))


async def _replay(url: str, conversations: Mapping[str, Sequence[Body]]) -> dict[str, float]:
    async with AsyncOpenAI(base_url=url, api_key="scripted", max_retries=0) as client, asyncio.timeout(BARE_SECONDS):
        walls = await asyncio.gather(*(_conversation(client, bodies) for bodies in conversations.values()))
    return dict(zip(conversations, walls, strict=True))


async def _conversation(client: AsyncOpenAI, bodies: Sequence[Body]) -> float:
    begun = time.monotonic()
    for body in bodies:
        answer = cast(AsyncStream[ChatCompletionChunk], await client.chat.completions.create(**body))
        async for _ in answer:
            continue
    return time.monotonic() - begun
