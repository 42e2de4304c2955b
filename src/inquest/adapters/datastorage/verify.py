"""Whether the records of earlier remediations hold: their hash chains are checked before a history is used (10.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog
from cachetools import TTLCache

from inquest.adapters.datastorage.convert import API
from inquest.adapters.datastorage.http_client import ServiceClient
from inquest.adapters.datastorage.responses import ChainAnswer
from inquest.errors import InquestError
from inquest.telemetry.metrics import HISTORY_CHAINS

log = structlog.stdlib.get_logger(__name__)

CHAIN_SECONDS: Final = 5.0
"""For all chains of one history; what is not checked by then is not believed."""
KEPT_SECONDS: Final = 60.0
"""A chain that held is not checked again sooner: a case looks several times, its guards until it is their turn."""
MOST_KEPT: Final = 4096


class VerifiedChains:
    """One chain after the other, so that a service in trouble is asked once and not a hundred times."""

    def __init__(self, line: ServiceClient, monotonic: Callable[[], float]) -> None:
        self._line = line
        self._held: TTLCache[str, bool] = TTLCache(MOST_KEPT, KEPT_SECONDS, timer=monotonic)

    async def verdicts(self, uids: Iterable[str]) -> Mapping[str, bool]:
        """Whether the chain of each remediation holds; those that could not be checked are left out."""
        wanted = list(uids)
        found: dict[str, bool] = {}
        try:
            async with asyncio.timeout(CHAIN_SECONDS):
                for uid in wanted:
                    found |= await self._verdict(uid)
        except (TimeoutError, InquestError) as error:
            log.warning("chains not checked", unchecked=len(wanted) - len(found), why=str(error) or "no time left")
        broken = [uid for uid, holds in found.items() if not holds]
        for result, count in (
            ("held", len(found) - len(broken)),
            ("broken", len(broken)),
            ("unchecked", len(wanted) - len(found)),
        ):
            HISTORY_CHAINS.labels(result).inc(count)
        if broken:
            log.error("audit trail does not hold", remediations=broken[:20], broken=len(broken))
        return found

    async def _verdict(self, uid: str) -> Mapping[str, bool]:
        if uid in self._held:
            return {uid: True}
        answer = await self._line.ask(f"{API}/audit/verify-chain", ChainAnswer, {"correlation_id": uid})
        if not answer.total_events:  # taken out since: nothing is left that could hold
            return {}
        if answer.is_valid:
            self._held[uid] = True
        return {uid: answer.is_valid}
