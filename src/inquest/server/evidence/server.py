"""The server of the aggregated API: as long as the operator runs, and again after whatever stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import structlog

from inquest.errors import InquestError, Misconfigured
from inquest.ports.clock import Clock
from inquest.ports.kinds import CONFIG_MAP
from inquest.ports.kubernetes import KindLookup
from inquest.server.evidence.app import EvidenceService, create_app
from inquest.server.evidence.caller import NAME, NAMESPACE, FrontProxy, front_proxy
from inquest.server.evidence.case_files import CaseReader
from inquest.server.evidence.rights import AccessQuestions
from inquest.serving.http import Certificate, serve_app
from inquest.settings.server import EvidenceSettings

_log = structlog.stdlib.get_logger(__name__)

GRACE_SECONDS: Final = 5
PAUSE_SECONDS: Final = 15.0
"""Before the next try to open."""
LOOK_SECONDS: Final = 60.0
"""Between two looks how the API server is known: its authorities are renewed now and then."""


class EvidenceServer:
    """Open once it is known how the API server is recognised; until then, and without that, nobody is answered."""

    def __init__(
        self,
        case_reader: CaseReader,
        reviews: AccessQuestions,
        kinds: KindLookup,
        clock: Clock,
        settings: EvidenceSettings,
    ) -> None:
        self._case_reader, self._clock, self._settings = case_reader, clock, settings
        self._proxy: FrontProxy | None = None
        self._app = create_app(EvidenceService(case_reader, reviews, kinds, clock, self._known))
        self.fault = "not open yet"
        """Why nobody can read; empty while it is open."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                async with self._open() as authorities:
                    await self._stay(authorities)
            except InquestError as error:
                self.fault = str(error)[:500]
                _log.warning("evidence cannot be read from outside", error=self.fault, pause=PAUSE_SECONDS)
            await self._clock.sleep(PAUSE_SECONDS)

    def _known(self) -> FrontProxy:
        if self._proxy is None:
            raise AssertionError("nothing is served before it is known who the API server is")
        return self._proxy

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Path]:
        chosen = self._settings
        if chosen.tls_certificate is None or chosen.tls_key is None:
            raise Misconfigured("evidence: the API server speaks TLS only; name tls_certificate and tls_key")
        proxy = await self._looked_up()
        with TemporaryDirectory(prefix="inquest-evidence-") as folder:
            authorities = Path(folder) / "callers.pem"
            self._take(proxy, authorities)
            certificate = Certificate(chosen.tls_certificate, chosen.tls_key, authorities)
            async with serve_app(
                self._app, chosen.host, chosen.port, grace=GRACE_SECONDS, certificate=certificate
            ) as port:
                self.fault = ""
                _log.info("evidence can be read", port=port)
                yield authorities

    async def _stay(self, authorities: Path) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                proxy = await self._looked_up()
            except InquestError as error:
                # Whoever was known stays known: an API server that is away asks nothing either.
                _log.warning("how the API server is known was not looked up", error=str(error)[:500])
                continue
            if proxy != self._proxy:
                await asyncio.to_thread(self._take, proxy, authorities)

    def _take(self, proxy: FrontProxy, authorities: Path) -> None:
        authorities.write_text(proxy.authorities, encoding="utf-8")
        self._proxy = proxy

    async def _looked_up(self) -> FrontProxy:
        return front_proxy(await self._case_reader.status.read(CONFIG_MAP, NAME, NAMESPACE))
