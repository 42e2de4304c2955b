"""OPA as a child process: started, watched, loaded anew."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Self

from inquest.adapters.opa.policy import POLICY_ID, OpaAddress, hash_of_policy, restrict_capabilities
from inquest.errors import Misconfigured, Unavailable

START_SECONDS: Final = 15.0


CHECK_SECONDS: Final = 15.0
STOP_SECONDS: Final = 3.0
WATCH_SECONDS: Final = 5.0
"""Between two looks at the policy file; mounts are updated within a minute anyway."""
START_TRIES: Final = 3
FIRST_RESTART_PAUSE: Final = 0.5
LAST_RESTART_PAUSE: Final = 30.0

_AUTHORIZATION: Final = """package system.authz

default allow := false

allow if input.identity == "{token}"
"""

QUIET: Final = frozenset({"PolicyLoaded", "OpaStarted"})
"""News that ask for nobody; the others are PolicyRejected, PolicyMissing, PolicyNotLoaded and OpaLost."""

Notify = Callable[[str, str], Awaitable[None]]
"""Told a CamelCase reason and a sentence; never raises."""


async def _nobody(reason: str, message: str) -> None:
    """Whoever only asks has nobody to tell."""


def find_binary(name: str = "opa") -> str | None:
    """`INQUEST_OPA_BINARY`, else the configured name or path; None where there is no such program."""
    return shutil.which(os.environ.get("INQUEST_OPA_BINARY") or name)


class OpaProcess:
    """OPA as a child: started, watched, restarted, given its policy, and gone with this process."""

    def __init__(self, binary: str, policy: Path, *, notify: Notify | None = None) -> None:
        self._binary = binary
        self._policy = policy
        self._notify = notify or _nobody
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._endpoint: OpaAddress | None = None
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._text = ""
        self._refused = ""
        self._refusal = ""
        self._fault = "OPA has not started"
        self._loading = False
        self._putting = asyncio.Lock()
        """Held while OPA gets a text: one that comes back must not get an older one than a reload has just read."""

    @property
    def endpoint(self) -> OpaAddress | None:
        """None while it is not running."""
        return self._endpoint

    @property
    def fault(self) -> str:
        """Why there is no policy in force; empty: there is one."""
        return self._fault

    @property
    def refusal(self) -> str:
        """Why the text in the file is not the one in force; empty: it is, or there is none."""
        return self._refusal if self._text else ""

    @property
    def policy_hash(self) -> str:
        """Of the policy in force; empty: none."""
        return hash_of_policy([self._text]) if self._text else ""

    @property
    def known_hash(self) -> str:
        """Only this process may change it; empty while a new text is on its way: OPA alone knows then."""
        return "" if self._loading else self.policy_hash

    @property
    def pid(self) -> int | None:
        """Of the child that runs now."""
        return self._process.pid if self._process else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Up and with its policy, or Unavailable; a missing or broken policy is a fault and no failure."""
        self._home = tempfile.TemporaryDirectory(prefix="inquest-opa-")
        # Starting the program takes a moment each time: the server comes up while others of it look at the policy.
        launched = asyncio.create_task(self._launch())
        try:
            await self._write_capabilities()
            await self.reload()
            await launched
        except BaseException:
            launched.cancel()
            await asyncio.gather(launched, return_exceptions=True)
            await self.stop()
            raise
        self._tasks = (asyncio.create_task(self._keep_alive()), asyncio.create_task(self._watch()))

    async def stop(self) -> None:
        """Everything that was started ends; calling it twice is fine."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks, self._endpoint = (), None
        if self._process is not None:
            await _end(self._process)
            self._process = None
        if self._home is not None:
            self._home.cleanup()
            self._home = None

    # The policy.

    async def reload(self) -> None:
        """Read the file; new text that compiles replaces the old one, anything else leaves it in force."""
        try:
            text = await asyncio.to_thread(self._policy.read_text)
        except (OSError, UnicodeDecodeError) as error:
            await self._missing_file(error)
            return
        if text == self._text:
            self._refused = self._refusal = ""
        if text == self._refused or (text == self._text and not self._loading):
            return
        if found := await self._compile(text):
            await self._reject(text, found)
            return
        async with self._putting:
            # It stays so where OPA does not answer: nobody but OPA knows then which text it has.
            self._loading = True
            if self._endpoint is not None:
                await _put(self._endpoint, text)
            self._text, self._refused, self._refusal, self._fault = text, "", "", ""
            self._loading = False
        await self._notify("PolicyLoaded", f"policy {self.policy_hash} of {self._policy} is in force")

    async def _missing_file(self, error: Exception) -> None:
        if not self._text and "missing" not in self._fault:
            self._fault = f"the policy file is missing: {self._policy} ({type(error).__name__})"
            await self._notify("PolicyMissing", self._fault)

    async def _reject(self, text: str, why: str) -> None:
        self._refused, self._refusal = text, f"the policy does not compile: {why}"
        if not self._text:
            self._fault = self._refusal
        await self._notify("PolicyRejected", self._refusal)

    async def _compile(self, text: str) -> str:
        """The first fault of a policy, empty where it has none; no network, clock or chance in it."""
        candidate = self._file("candidate.rego")
        await asyncio.to_thread(candidate.write_text, text)
        capabilities = str(self._file("capabilities.json"))
        code, output = await self._run("check", "--capabilities", capabilities, str(candidate))
        return "" if code == 0 else output.replace(str(candidate), str(self._policy))[:500]

    async def _write_capabilities(self) -> None:
        try:
            code, output = await self._run("capabilities", "--current")
        except OSError as error:
            raise Misconfigured(f"{self._binary} cannot be run: {error.strerror}") from error
        if code != 0:
            raise Misconfigured(f"{self._binary} is no OPA: {output[:200]}")
        await asyncio.to_thread(
            self._file("capabilities.json").write_text, json.dumps(restrict_capabilities(json.loads(output)))
        )

    # The process.

    async def _launch(self) -> None:
        """A running OPA that answers; a port that somebody took meanwhile costs one try."""
        for _ in range(START_TRIES):
            endpoint = OpaAddress("127.0.0.1", _free_port(), token=secrets.token_urlsafe(32))
            self._process = await self._spawn(endpoint)
            if await self._answers(endpoint):
                async with self._putting:
                    await _put(endpoint, self._text)
                    self._endpoint = endpoint
                await self._notify("OpaStarted", f"OPA runs as process {self._process.pid}")
                return
            await _end(self._process)
        raise Unavailable("OPA", f"{self._binary} does not start")

    async def _spawn(self, endpoint: OpaAddress) -> asyncio.subprocess.Process:
        rules = self._file("authz.rego")
        await asyncio.to_thread(rules.write_text, _AUTHORIZATION.format(token=endpoint.token))
        return await asyncio.create_subprocess_exec(
            self._binary,
            "run",
            "--server",
            f"--addr={endpoint.host}:{endpoint.port}",
            "--authentication=token",
            "--authorization=basic",
            "--skip-version-check",
            "--shutdown-grace-period=1",
            "--log-level=error",
            str(rules),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=_bare_environment(),
            preexec_fn=_die_with_parent,
        )

    async def _answers(self, endpoint: OpaAddress) -> bool:
        """Ready, before the process ended or its time was up."""
        assert self._process is not None
        ended = asyncio.create_task(self._process.wait())
        ready = asyncio.create_task(_is_ready(endpoint))
        try:
            done, _ = await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
            return ready in done and ready.result()
        finally:
            for task in (ended, ready):
                task.cancel()
            await asyncio.gather(ended, ready, return_exceptions=True)

    async def _keep_alive(self) -> None:
        """Start it again whenever it dies, with the policy that was in force."""
        while True:
            assert self._process is not None
            code = await self._process.wait()
            self._endpoint = None
            await self._notify("OpaLost", f"OPA ended with {code}")
            await _patiently(self._launch)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.reload()
            except Exception as error:  # the next look may succeed; the policy in force stays
                await self._notify("PolicyNotLoaded", f"{self._policy} could not be loaded: {type(error).__name__}")

    async def _run(self, *arguments: str) -> tuple[int, str]:
        """One short command of the binary: exit code and what it printed."""
        process = await asyncio.create_subprocess_exec(
            self._binary,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=_bare_environment(),
            preexec_fn=_die_with_parent,
        )
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                output, _ = await process.communicate()
        except BaseException:
            await _end(process)
            raise
        return process.returncode or 0, output.decode(errors="replace").strip()

    def _file(self, name: str) -> Path:
        assert self._home is not None
        return Path(self._home.name) / name


async def _put(endpoint: OpaAddress, text: str) -> None:
    """One step: OPA compiles the text itself and keeps the old one where that fails."""
    if text:
        async with endpoint.client() as client:
            await client.update_policy_from_string(text, POLICY_ID, rego_compat=False)


async def _is_ready(endpoint: OpaAddress) -> bool:
    try:
        async with asyncio.timeout(START_SECONDS), endpoint.client(timeout=1.0, retries=0) as client:
            return bool(await client.wait_for_ready(timeout=START_SECONDS, interval=0.05))
    except Exception:  # the client raises errors without a common root
        return False


async def _patiently(start: Callable[[], Awaitable[None]]) -> None:
    """Try until it works, with growing pauses."""
    pause = FIRST_RESTART_PAUSE
    while True:
        try:
            return await start()
        except Exception:  # whatever keeps it down may pass; the caller was told that it is lost
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_RESTART_PAUSE)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Politely, then not."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _bare_environment() -> dict[str, str]:
    """No variable of ours is any business of a policy."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}


_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    """Runs in the child: a parent that is killed cannot clean up. Linux ties this to the thread that started it."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
