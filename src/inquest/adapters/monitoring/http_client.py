"""One GET of a monitoring stack's API: bounded in time and size, read only, and what a refusal means.

The token is read before every request, so that a rotated one needs no restart. Redirects are not followed: a token
goes where the settings say and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from inquest.adapters.http import OversizedAnswer, authorities_of, exchange, refusal
from inquest.computing import compute
from inquest.errors import Invalid, Unavailable
from inquest.settings.base import secret_in

LARGE_BYTES: Final = 256 * 1024
"""More than that is parsed in a thread."""
TRIES: Final = 2
MOST_WORDS: Final = 500
"""Characters of an error's text that are passed on."""

Parameters = Sequence[tuple[str, str]]


def _silent(_: str) -> None:
    return None


@dataclass(frozen=True)
class StackAddress:
    """Where a stack answers, and how it is asked."""

    url: str
    token_file: Path | None = None
    ca_bundle: Path | None = None
    proxy: str = ""
    tenant: str = ""
    connect: float = 5.0
    """Seconds to connect."""
    whole: float = 30.0
    """Seconds that one call may take in all."""
    on_token: Callable[[str], None] = _silent
    """Is told every token that is used, so that it is known where texts are redacted."""


@dataclass(frozen=True)
class StackAnswer:
    """What came: `data` of the envelope and the server's warnings."""

    data: Any
    warnings: tuple[str, ...] = ()


class StackClient:
    """Asks one system."""

    def __init__(
        self, system: str, address: StackAddress, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        self._system, self._address = system, address
        self._http = httpx2.AsyncClient(
            base_url=address.url,
            timeout=httpx2.Timeout(address.whole, connect=address.connect),
            headers={"accept": "application/json"} | ({"x-scope-orgid": address.tenant} if address.tenant else {}),
            proxy=address.proxy or None,
            verify=authorities_of(f"{system}.ca_bundle", address.ca_bundle),
            follow_redirects=False,
            transport=transport,
        )

    @property
    def seconds(self) -> float:
        """What one call may take."""
        return self._address.whole

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(self, path: str, parameters: Parameters, form: type[list[Any]] | type[dict[str, Any]]) -> StackAnswer:
        """The answer's data, which is a list or an object; one more try where the connection broke.

        Errors: Invalid, Forbidden, NotFound, Misconfigured, RateLimited, Unavailable.
        """
        return self._body(await self._said(path, parameters), form)

    async def listed(self, path: str, parameters: Parameters) -> list[Any]:
        """The same of an API that answers with the list alone, without an envelope."""
        said = await self._said(path, parameters)
        if not isinstance(said, list):
            raise not_understood(self._system)
        return said

    async def _said(self, path: str, parameters: Parameters) -> Any:
        try:
            async with asyncio.timeout(self._address.whole):
                answer = await exchange(self._http, lambda: self._request(path, parameters), tries=TRIES)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise Unavailable(self._system, f"no answer within {self._address.whole:g} s") from error
        except httpx2.HTTPError as error:
            # A connection's error often says nothing itself; what lies below it does.
            seen: BaseException | None = error
            for _ in range(6):
                if seen is None or str(seen):
                    break
                seen = seen.__cause__
            raise Unavailable(self._system, str(seen or type(error).__name__)[:MOST_WORDS]) from error
        except httpx2.InvalidURL as error:
            raise Invalid("the query is too long once each of its selectors is bound: name fewer series") from error
        except OversizedAnswer as error:
            raise Invalid(f"the answer of {self._system} is {error}") from error
        said = await _parsed(answer.body)
        if not answer.succeeded:
            raise refusal(self._system, answer, _words(said, answer.body))
        return said

    def _request(self, path: str, parameters: Parameters) -> httpx2.Request:
        return self._http.build_request("GET", path, params=list(parameters), headers=self._authorization())

    def _authorization(self) -> Mapping[str, str]:
        file = self._address.token_file
        if file is None:
            return {}
        token = secret_in(file, f"{self._system}.token_file")
        self._address.on_token(token)
        return {"authorization": f"Bearer {token}"}

    def _body(self, said: Any, form: type[Any]) -> StackAnswer:
        succeeded = isinstance(said, Mapping) and said.get("status") == "success"
        if not succeeded or not isinstance(said.get("data"), form):
            raise not_understood(self._system)
        notes = (*(said.get("warnings") or ()), *(said.get("infos") or ()))
        return StackAnswer(said["data"], tuple(str(note)[:MOST_WORDS] for note in notes))


def not_understood(system: str) -> Unavailable:
    """What answers is something else than was asked for; taking that for an empty answer would prove absence."""
    return Unavailable(system, "its answer is not understood: is the URL right?")


async def _parsed(body: bytes) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(body) if len(body) <= LARGE_BYTES else await compute(json.loads, body)
    except (ValueError, RecursionError):
        return None


def _words(said: Any, body: bytes) -> str:
    """Prometheus explains itself in JSON, Loki in plain text; a page of HTML explains nothing."""
    if isinstance(said, Mapping):
        return str(said.get("error") or said.get("message") or "it gave no reason")[:MOST_WORDS]
    text = body[: 4 * MOST_WORDS].decode("utf-8", "replace").strip()
    return "it gave no reason" if not text or text.startswith("<") else text[:MOST_WORDS]
