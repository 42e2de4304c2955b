"""A way to the API server that is as bad as a test wants: away, silent, refusing, losing answers, telling lies.

It stands between one operator and its API server and passes everything on until it is told otherwise. It speaks
plain HTTP to the operator, on loopback, and hands its token on.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import yaml
from aiohttp import web

from tests.support.ports import own_port

CALL_SECONDS = 60.0
CLOSING_SECONDS = 0.25
HOPS = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})
"""Headers of one connection."""

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    method: str
    path: str
    query: dict[str, str]
    agent: str = ""

    @property
    def text(self) -> str:
        """What a pattern is looked for in: who asks, method, path, and `?watch` where it is one."""
        return f"{self.agent} {self.method} {self.path}" + ("?watch" if self.watches else "")

    @property
    def watches(self) -> bool:
        return "watch" in self.query

    @property
    def plural(self) -> str:
        """Of a list or watch."""
        return self.path.rsplit("/", 1)[-1]


@dataclass
class Rule:
    """What becomes of requests that match, as often as it says."""

    pattern: str
    status: int = 0
    """Answered with this instead of being passed on; 0: passed on, and the answer is lost."""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1_000_000
    after: float = 0.0
    """Seconds until it is passed on all the same; 0: as the status says."""
    beyond: int = 0
    """It holds only where more requests than these are under way."""
    met: list[Asked] = field(default_factory=list)
    """Requests that it was applied to."""

    def takes(self, asked: Asked, under_way: int) -> bool:
        if under_way <= self.beyond > 0 or len(self.met) >= self.times or not re.search(self.pattern, asked.text):
            return False
        self.met.append(asked)
        return True


@dataclass(eq=False)
class Watch:
    """One open watch."""

    plural: str
    stream: web.StreamResponse
    silent: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Proxy:
    """Serves in a thread of its own; every method may be called from the test's."""

    server: str
    authority: str
    port: int = field(default_factory=own_port)
    asked: list[Asked] = field(default_factory=list)
    """Everything that came, in order."""
    under_way: int = 0
    """Requests without their answer, watches apart."""
    most: int = 0
    """That were under way at once, since a test set it to none."""
    rules: list[Rule] = field(default_factory=list)
    _watches: list[Watch] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _runner: web.AppRunner = field(init=False)
    _session: aiohttp.ClientSession = field(init=False)
    _site: web.TCPSite | None = None

    # --- what a test says --------------------------------------------------------------------------------------

    def leave(self) -> None:
        """From now on nobody is there: open connections break, new ones are refused."""
        self._do(self._leave())

    def come_back(self) -> None:
        """There again, under the same address."""
        self._do(self._listen())

    def fall_silent(self) -> int:
        """Watches that are open stay open and deliver nothing more; says how many. New ones are healthy."""
        for watch in self._watches:
            watch.silent = True
        return len(self._watches)

    def tell(self, plural: str, line: bytes) -> None:
        """A line in every open watch of a kind, which is over after it."""
        self._do(self._tell(plural, line))

    @contextmanager
    def ruled(
        self,
        pattern: str,
        status: int = 0,
        *,
        times: int = 1_000_000,
        after: float = 0.0,
        beyond: int = 0,
        **headers: str,
    ) -> Iterator[Rule]:
        """A rule for as long as the block lasts."""
        said = {name.replace("_", "-"): text for name, text in headers.items()}
        rule = Rule(pattern, status, said, times, after, beyond)
        self.rules.append(rule)
        try:
            yield rule
        finally:
            self.rules.remove(rule)

    def count(self, pattern: str, since: int = 0) -> int:
        """How many requests after the first so many match."""
        return sum(bool(re.search(pattern, one.text)) for one in self.asked[since:])

    def watched(self, plural: str) -> bool:
        """Whether a watch of a kind is open and delivers."""
        return any(watch.plural == plural and not watch.silent for watch in list(self._watches))

    # --- serving -----------------------------------------------------------------------------------------------

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)

    async def open(self) -> None:
        """Begin to serve."""
        trusted = ssl.create_default_context(cadata=self.authority or None)
        # As many at once as come: a watch holds its connection.
        connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()

    async def close(self) -> None:
        """Let everything go."""
        await self._leave()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._runner.cleanup()
        await self._session.close()
        # Connections with TLS close their sockets a few turns of the loop later, and nobody turns it after this.
        await asyncio.sleep(CLOSING_SECONDS)

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()

    async def _leave(self) -> None:
        if self._site is not None:
            await self._site.stop()
            self._site = None
        serving = self._runner.server
        for connection in list(serving.connections) if serving is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        agent = "inquest" if request.headers.get("User-Agent") == "inquest" else "kopf"
        asked = Asked(request.method, request.path, dict(request.query), agent)
        self.asked.append(asked)
        if asked.watches:
            return await self._answer(request, asked)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await self._answer(request, asked)
        finally:
            self.under_way -= 1

    async def _answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        rule = next((one for one in list(self.rules) if one.takes(asked, self.under_way)), None)
        if rule is not None and rule.status:
            said = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": rule.status,
                "message": "refused",
            }
            return web.json_response(said, status=rule.status, headers=rule.headers)
        if rule is not None and rule.after:
            await asyncio.sleep(rule.after)
            rule = None
        async with self._session.request(
            request.method,
            self.server + request.raw_path,
            headers={name: text for name, text in request.headers.items() if name.lower() not in HOPS},
            data=await request.read() or None,
            skip_auto_headers=("Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CALL_SECONDS),
            allow_redirects=False,
        ) as answer:
            if rule is not None:
                await answer.read()
                return _broken(request)
            if asked.watches and answer.status == 200:
                return await self._stream(request, asked, answer)
            return web.Response(status=answer.status, headers=_kept(answer), body=await answer.read())

    async def _stream(self, request: web.Request, asked: Asked, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        stream = web.StreamResponse(status=answer.status, headers=_kept(answer))
        await stream.prepare(request)
        watch = Watch(asked.plural, stream)
        self._watches.append(watch)
        try:
            await self._pass_on(watch, answer)
        finally:
            self._watches.remove(watch)
        return stream

    async def _pass_on(self, watch: Watch, answer: aiohttp.ClientResponse) -> None:
        """Whole lines, until the server ends it, the operator goes, or a lie has been told."""
        over, rest = asyncio.ensure_future(watch.over.wait()), b""
        try:
            while not over.done():
                part = asyncio.ensure_future(answer.content.readany())
                await asyncio.wait({part, over}, return_when=asyncio.FIRST_COMPLETED)
                if not part.done():
                    part.cancel()
                    await asyncio.gather(part, return_exceptions=True)
                elif not part.result():
                    return
                else:
                    lines, newline, rest = (rest + part.result()).rpartition(b"\n")
                    if newline and not watch.silent and not over.done():
                        await watch.stream.write(lines + newline)
        except (ConnectionError, aiohttp.ClientError):
            return
        finally:
            over.cancel()

    async def _tell(self, plural: str, line: bytes) -> None:
        for watch in [one for one in self._watches if one.plural == plural]:
            with suppress(ConnectionError):
                await watch.stream.write(line)
            watch.over.set()


def _broken(request: web.Request) -> web.Response:
    """The connection goes instead of an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _kept(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: text for name, text in answer.headers.items() if name.lower() not in HOPS}


def event(kind: str, body: object) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def error(code: int) -> bytes:
    """The line with which an API server ends a watch."""
    return event("ERROR", {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code, "message": "x"})


@contextmanager
def before(kubeconfig: Path, folder: Path) -> Iterator[tuple[Proxy, Path]]:
    """A proxy before the API server of a kubeconfig, and the kubeconfig that leads to it."""
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]
    authority = base64.b64decode(server.get("certificate-authority-data", "")).decode()
    proxy = Proxy(server["server"].rstrip("/"), authority)
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{proxy.port}"}
    path = folder / f"kubeconfig-{proxy.port}"
    path.write_text(yaml.safe_dump(config))
    with serving(proxy):
        yield proxy, path


@contextmanager
def serving(proxy: Proxy) -> Iterator[Proxy]:
    """In a thread of its own."""
    thread = threading.Thread(target=_run, args=(proxy._loop,), daemon=True)
    thread.start()
    proxy._do(proxy.open())
    try:
        yield proxy
    finally:
        proxy._do(proxy.close())
        proxy._loop.call_soon_threadsafe(proxy._loop.stop)
        thread.join()
        proxy._loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
