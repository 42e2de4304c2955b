"""OPA: asking it, and running it where nobody else does.

`OpaPolicy` is the port: one question, one answer, never an exception. It speaks through `opa-python-client`, whose
asynchronous client has a deadline for each request; the deadline for the whole question is ours.

`OpaProcess` is a child process for where no URL is configured. It gets its policy over HTTP and not as a file, because
`opa run` takes no capabilities: text is compiled against the restricted ones first, and replaces what is loaded in one
step. A token that only this process knows keeps everybody else on the loopback interface away from the policy.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit

import aiohttp
from opa_client.errors import PolicyNotFoundError
from opa_client.opa_async import AsyncOpaClient

from inquest.core.redaction.redacted import Redacted
from inquest.core.remediation.policy import PolicyAnswer
from inquest.errors import Misconfigured
from inquest.ports.kubernetes import Json
from inquest.telemetry.tracing import traced

DEFAULT_QUERY: Final = "data.inquest.approval"
DEADLINE: Final = 5.0
"""Seconds for one question, its retry included."""
RETRIES: Final = 1
QUESTIONS_AT_ONCE: Final = 4
"""An OPA behind a URL shows its whole policy for each: a crowd of them would take each other's time."""
POLICY_ID: Final = "approval.rego"
NOT_RUNNING: Final = "no OPA is running"
NOT_LOADED: Final = "no policy is loaded"
SYSTEM_PACKAGE: Final = "system"
"""Where OPA keeps rules about itself; no part of what rules on cases."""


@dataclass(frozen=True)
class OpaAddress:
    """Where OPA listens."""

    host: str
    port: int
    tls: bool = False
    token: str = ""

    @classmethod
    def from_url(cls, url: str, token: str = "") -> Self:
        """Misconfigured where the text is no `http(s)://host[:port]`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise Misconfigured(f"policy.url {url!r} must be http(s)://host[:port]")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, token)

    def client(self, *, timeout: float = DEADLINE, retries: int = RETRIES) -> AsyncOpaClient:
        """A client that has not connected yet; to be used as a context."""
        return AsyncOpaClient(
            host=self.host, port=self.port, ssl=self.tls, token=self.token or None, timeout=timeout, retries=retries
        )


class PolicyEndpoint(Protocol):
    """Somebody who knows where OPA is, and why it may have no policy."""

    @property
    def endpoint(self) -> OpaAddress | None: ...

    @property
    def fault(self) -> str: ...

    @property
    def known_hash(self) -> str:
        """Of the policy in force, where nobody else can change it; empty: OPA has to be asked."""


@dataclass(frozen=True)
class FixedEndpoint:
    """An OPA that somebody else runs."""

    endpoint: OpaAddress | None
    fault: str = ""
    known_hash: str = ""


@traced("policy", "ask")
class OpaPolicy:
    """`ports.Policy`; every fault is an answer that asks for a person."""

    def __init__(self, source: PolicyEndpoint, *, query: str = DEFAULT_QUERY, deadline: float = DEADLINE) -> None:
        self._source = source
        self._query = query
        self._path = query.removeprefix("data.").replace(".", "/")
        self._deadline = deadline
        self._places = asyncio.Semaphore(QUESTIONS_AT_ONCE)

    @classmethod
    def at(cls, url: str, *, token: str = "", query: str = DEFAULT_QUERY, deadline: float = DEADLINE) -> Self:
        """The policy of an OPA that somebody else runs."""
        return cls(FixedEndpoint(OpaAddress.from_url(url, token)), query=query, deadline=deadline)

    async def ask(self, document: Redacted[Json]) -> PolicyAnswer:
        """The value of the query, or the fault in its place; bounded by the deadline from when it has a place."""
        try:
            async with self._places, asyncio.timeout(self._deadline):
                return await self._asked(document.value)
        except TimeoutError:
            return self._faulty(f"no answer within {self._deadline:g} s")
        except Exception as error:  # the port never raises: whatever went wrong asks for a person
            return self._faulty(_sentence(error))

    async def look(self) -> str:
        """Why no policy would rule now, empty: one would; bounded by the deadline, and never an exception."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self._missing()
        except TimeoutError:
            return f"no answer within {self._deadline:g} s"
        except Exception as error:  # as for a question
            return _sentence(error)

    async def _missing(self) -> str:
        endpoint = self._source.endpoint
        if endpoint is None:
            return self._source.fault or NOT_RUNNING
        async with endpoint.client(timeout=self._deadline) as client:
            return "" if await loaded_hash(client) else self._source.fault or NOT_LOADED

    async def _asked(self, document: Json) -> PolicyAnswer:
        endpoint = self._source.endpoint
        if endpoint is None:
            return self._faulty(self._source.fault or NOT_RUNNING)
        async with endpoint.client(timeout=self._deadline) as client:
            return await self._of_one_version(client, document)

    async def _of_one_version(self, client: AsyncOpaClient, document: Json) -> PolicyAnswer:
        """Value and hash belong together: a reload between the two is seen and the question asked again."""
        before = await self._hash(client)
        while True:
            found = await client.query_rule(document, self._path)
            after = await self._hash(client)
            if before == after:
                return self._answer(found, after)
            before = after

    async def _hash(self, client: AsyncOpaClient) -> str:
        return self._source.known_hash or await loaded_hash(client)

    def _answer(self, found: object, policy_hash: str) -> PolicyAnswer:
        if not policy_hash:
            return self._faulty(self._source.fault or NOT_LOADED)
        value = found.get("result") if isinstance(found, Mapping) else None
        if isinstance(value, Mapping) and value:
            return PolicyAnswer(value=value, policy_hash=policy_hash, query=self._query)
        fault = f"{self._query} is undefined" if value is None or value == {} else "the answer is not an object"
        return self._faulty(fault, policy_hash)

    def _faulty(self, fault: str, policy_hash: str = "") -> PolicyAnswer:
        return PolicyAnswer(value=None, fault=fault, policy_hash=policy_hash, query=self._query)


async def loaded_hash(client: AsyncOpaClient) -> str:
    """SHA-256 of the policy text that OPA has; of several modules, of their hashes; empty: none."""
    # Without a name it is all of them, texts included, which the client's own list leaves out.
    modules = (await client.get_policy(""))["result"]
    texts = [str(module["raw"]) for module in modules if not _is_system(module)]
    return hash_of_policy(texts) if texts else ""


def hash_of_policy(texts: Iterable[str]) -> str:
    """The hash of one text; several are hashed by their hashes, whatever their order."""
    hashes = sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)
    whole = hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    return f"sha256:{whole}"


def _is_system(module: Mapping[str, Any]) -> bool:
    path = [part.get("value") for part in module.get("ast", {}).get("package", {}).get("path", ())]
    return len(path) > 1 and path[1] == SYSTEM_PACKAGE


def _sentence(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):
        return f"OPA answered {error.status}"
    if isinstance(error, PolicyNotFoundError):
        return "OPA does not show its policies to who asks without its token"
    return f"OPA cannot be reached: {type(error).__name__}"


def restrict_capabilities(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """OPA's own capabilities without network, clock, chance and environment: a ruling depends on its input alone."""
    allowed = [found for found in capabilities["builtins"] if not found.get("nondeterministic")]
    return {**capabilities, "builtins": allowed, "allow_net": []}
