"""Cases as the operator shows them through the API server, with the rights of whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from inquest.adapters.kubernetes import paths
from inquest.adapters.kubernetes.transport import Request, Transport
from inquest.api.names import EVIDENCE_GROUP, EVIDENCE_RECORD, EVIDENCE_RESOURCE, KIND, VERSION
from inquest.errors import Invalid
from inquest.ports.kubernetes import Json, ResourceKind

MOST_PAGES: Final = 1000
_KIND: Final = ResourceKind(EVIDENCE_GROUP, VERSION, KIND, EVIDENCE_RESOURCE, True)


class EvidenceApi:
    """Reading, nothing else. UnknownKind: the cluster serves no such API; Forbidden, NotFound, Unavailable."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def index(self, namespace: str, name: str) -> Json:
        """Every piece without its text, and which are withheld."""
        return await self._read(paths.item_path(_KIND, name, namespace))

    async def piece(self, namespace: str, name: str, number: str) -> Json:
        """The same of one piece, with its text."""
        return await self._read(paths.item_path(_KIND, name, namespace), piece=number)

    async def record(self, namespace: str, name: str) -> tuple[tuple[Json, ...], Mapping[str, str]]:
        """All records of a case, and by piece why it is withheld."""
        path = paths.item_path(_KIND, name, namespace, EVIDENCE_RECORD)
        records: list[Json] = []
        for _ in range(MOST_PAGES):
            page = await self._read(path, **{"from": str(len(records))})
            records += page.get("record") or ()
            if page.get("next") != len(records):
                return tuple(records), withheld_of(page)
        raise Invalid(f"case {name}: it has more than {MOST_PAGES} pages of records")

    async def _read(self, path: str, **query: str) -> Json:
        asked = Request("GET", path, "get", f"{EVIDENCE_RESOURCE}.{EVIDENCE_GROUP}", query=query)
        return (await self._transport.send(asked)).json()


def withheld_of(answer: Mapping[str, Any]) -> Mapping[str, str]:
    """By piece why it is withheld."""
    return {str(one.get("id")): str(one.get("why")) for one in answer.get("withheld") or ()}
