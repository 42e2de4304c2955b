"""`ports.Cluster`: reads of everything but Secrets."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from inquest.adapters.kubernetes import paths
from inquest.adapters.kubernetes.discovery import Discovery, refuse_secrets
from inquest.adapters.kubernetes.transport import SYSTEM, Expired, Request, Transport
from inquest.errors import Unavailable
from inquest.ports.kinds import POD
from inquest.ports.kubernetes import Json, Listing, ResourceKind

PAGE: Final = 500
WATCH_SECONDS: Final = 300
"""After that the server ends a watch, and all is listed anew."""
SILENT_SECONDS: Final = 70.0
"""A bookmark comes once a minute: what says nothing for longer is dead."""
MAX_CHANGE_BYTES: Final = 4 * 1024 * 1024
"""Of one line; etcd takes objects of 1.5 MiB."""


class ClusterReader:
    """Reads for the tools and the snapshot."""

    def __init__(self, transport: Transport, discovery: Discovery) -> None:
        self._transport, self._discovery = transport, discovery

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        refuse_secrets(word)
        kind = await self._discovery.resolve(word, api_version)
        return _readable(kind)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        path = paths.item_path(_readable(kind), name, namespace)
        return (await self._transport.send(Request("GET", path, "get", kind.plural))).json()

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "", limit: int = 500
    ) -> Listing:
        path = paths.collection_path(_readable(kind), namespace)
        return await read_list(self._transport, kind, path, labels=labels, fields=fields, limit=limit)

    async def logs(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail_lines: int = 500,
        since_seconds: int | None = None,
        limit_bytes: int = 1_048_576,
    ) -> str:
        query = {"container": container, "tailLines": str(tail_lines), "limitBytes": str(limit_bytes)}
        query |= {"previous": "true"} if previous else {}
        query |= {"sinceSeconds": str(since_seconds)} if since_seconds else {}
        path = paths.item_path(POD, pod, namespace, "log")
        # The server keeps to limitBytes; the bound here is for one that does not.
        request = Request("GET", path, "get", "pods/log", query, accept="*/*", max_bytes=2 * limit_bytes + 4096)
        return (await self._transport.send(request)).text()

    async def follow(self, kind: ResourceKind, namespace: str = "", *, fields: str = "") -> AsyncGenerator[Json]:
        async with aclosing(self.changes(kind, namespace, fields=fields)) as changes:
            async for change in changes:
                if not change.gone:
                    yield change.object

    async def changes(
        self, kind: ResourceKind, namespace: str = "", *, fields: str = ""
    ) -> AsyncGenerator[ObjectChange]:
        """The same with the objects that go; one that went while nobody watched is told by nobody.

        An empty one says that all that there were have been told.
        """
        path = paths.collection_path(_readable(kind), namespace)
        version = ""
        async for page in read_pages(self._transport, kind, path, fields=fields, limit=None):
            version = page.resource_version
            for found in page.items:
                yield ObjectChange(found)
        # There may be none for long: that all were seen is news too.
        yield ObjectChange({})
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        query |= {"resourceVersion": version} | ({"fieldSelector": fields} if fields else {})
        request = Request("GET", path, "watch", kind.plural, query, max_bytes=MAX_CHANGE_BYTES)
        async with aclosing(self._transport.lines(request, seconds=SILENT_SECONDS)) as lines:
            async for line in lines:
                changed = _changed(line)
                if changed is not None:
                    yield ObjectChange(
                        {"apiVersion": kind.api_version, "kind": kind.kind, **changed.object}, changed.gone
                    )


@dataclass(frozen=True)
class ObjectChange:
    """An object as it is now, or as it was last."""

    object: Json
    gone: bool = False


def _changed(line: bytes) -> ObjectChange | None:
    """What a line of a watch says; None where only the place in the stream is told."""
    try:
        told = json.loads(line) if line.strip() else {}
        word, found = (told.get("type"), told.get("object")) if told else ("", {})
    except (ValueError, AttributeError) as error:
        raise Unavailable(SYSTEM, "a line of its watch is no JSON object") from error
    if word == "ERROR":
        raise Unavailable(SYSTEM, f"its watch ended: {(found or {}).get('message') or 'no reason given'}"[:200])
    if word not in ("ADDED", "MODIFIED", "DELETED") or not isinstance(found, dict):
        return None
    return ObjectChange(found, word == "DELETED")


async def read_list(
    transport: Transport, kind: ResourceKind, path: str, *, labels: str = "", fields: str = "", limit: int | None
) -> Listing:
    """Read pages up to the limit; a list that expired on the way is read again, once."""
    try:
        return await _gathered(read_pages(transport, kind, path, labels=labels, fields=fields, limit=limit))
    except Expired:
        return await _gathered(read_pages(transport, kind, path, labels=labels, fields=fields, limit=limit))


async def read_pages(
    transport: Transport, kind: ResourceKind, path: str, *, labels: str = "", fields: str = "", limit: int | None
) -> AsyncIterator[Listing]:
    """One page after the other; a page is complete when none follows it."""
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    query = {key: value for key, value in selectors.items() if value}
    count, token = 0, ""
    while True:
        size = PAGE if limit is None else min(PAGE, limit - count)
        page = {**query, "limit": str(size)} | ({"continue": token} if token else {})
        document = (await transport.send(Request("GET", path, "list", kind.plural, page))).json()
        frame = document.get("metadata") or {}
        token = str(frame.get("continue") or "")
        items = tuple(_named(document, kind))
        count += len(items)
        yield Listing(items, not token, str(frame.get("resourceVersion") or ""))
        if not token or (limit is not None and count >= limit):
            return


async def _gathered(found: AsyncIterator[Listing]) -> Listing:
    items: list[Json] = []
    complete, version = True, ""
    async for page in found:
        items += page.items
        complete, version = page.complete, page.resource_version
    return Listing(tuple(items), complete, version)


def _named(document: Json, kind: ResourceKind) -> list[Json]:
    """The items with the kind that only the list itself carries, though it were not the one that was asked for."""
    found = document.get("items")
    said = str(document.get("kind") or "")
    own = said.removesuffix("List") if said.endswith("List") and said != "List" else kind.kind
    if found is None and "items" not in document:
        raise Unavailable("the API server", f"its list of {kind.plural} has no items")
    return [{"apiVersion": kind.api_version, "kind": own, **item} for item in found or ()]


def _readable(kind: ResourceKind) -> ResourceKind:
    refuse_secrets(kind.kind)
    refuse_secrets(kind.plural)
    return kind
