"""Addresses of objects; a segment that could reach beyond its place is refused before a request is made."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from inquest.errors import Invalid
from inquest.ports.kubernetes import ResourceKind

_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
"""Groups, versions, plurals, namespaces."""


def collection_path(kind: ResourceKind, namespace: str = "") -> str:
    """The path of all objects of a kind, in one namespace where one is given."""
    root = f"/apis/{_word(kind.group)}" if kind.group else "/api"
    place = f"/namespaces/{_word(namespace)}" if kind.namespaced and namespace else ""
    return f"{root}/{_word(kind.version)}{place}/{_word(kind.plural)}"


def item_path(kind: ResourceKind, name: str, namespace: str = "", subresource: str = "") -> str:
    """The path of one object; a namespaced one needs its namespace."""
    if kind.namespaced and not namespace:
        raise Invalid(f"{kind.kind} {name!r} needs a namespace")
    beyond = f"/{_word(subresource)}" if subresource else ""
    return f"{collection_path(kind, namespace)}/{_name(name)}{beyond}"


def _word(text: str) -> str:
    if not _WORD.fullmatch(text):
        raise Invalid(f"{text[:80]!r} is no group, version, resource or namespace")
    return text


def _name(text: str) -> str:
    # The rule of the API server for a path segment; a dot segment would be folded by the HTTP client.
    if text in ("", ".", "..") or len(text) > 253 or re.search(r"[/%\s\x00-\x1f]", text):
        raise Invalid(f"{text[:80]!r} is no name of an object")
    return quote(text, safe=":")
