"""Who asks: the API server names them in headers, which count only on a connection with its own certificate."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from starlette.datastructures import Headers

from inquest.errors import Misconfigured
from inquest.ports.kubernetes import Json

NAME: Final = "extension-apiserver-authentication"
NAMESPACE: Final = "kube-system"
"""The ConfigMap in which the API server says how it names people to servers behind it."""

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----")

User = dict[str, Any]
"""`username`, `uid`, `groups`, `extra`: as a SubjectAccessReview takes them."""


@dataclass(frozen=True)
class FrontProxy:
    """How the API server is known, and in which headers it names a person."""

    authorities: str
    """PEM of those that sign its certificate."""
    names: tuple[str, ...]
    """Common names of its certificate; empty: any that they sign."""
    users: tuple[str, ...]
    groups: tuple[str, ...]
    extras: tuple[str, ...]
    """Beginnings of the names of headers."""
    uids: tuple[str, ...] = ()


def front_proxy(config_map: Json) -> FrontProxy:
    """What the ConfigMap says; Misconfigured where the API server names nobody to others."""
    data = config_map.get("data") or {}
    authorities = str(data.get("requestheader-client-ca-file") or "")
    users = _words(data, "username-headers")
    if not authorities or not users:
        raise Misconfigured("the API server aggregates nothing: it has no --requestheader-client-ca-file")
    names = _words(data, "allowed-names")
    if not names and _signers(authorities) & _signers(str(data.get("client-ca-file") or "")):
        raise Misconfigured(
            "one authority signs people and the API server's proxy, so whoever has a certificate could name anybody:"
            " start the API server with --requestheader-allowed-names"
        )
    return FrontProxy(
        authorities,
        names,
        users,
        _words(data, "group-headers"),
        _words(data, "extra-headers-prefix"),
        _words(data, "uid-headers"),
    )


def _signers(bundle: str) -> set[str]:
    """The certificates of a PEM bundle, each without its line breaks."""
    return {"".join(found.split()) for found in _CERTIFICATE.findall(bundle)}


def _words(data: Json, name: str) -> tuple[str, ...]:
    try:
        found = json.loads(str(data.get(f"requestheader-{name}") or "[]"))
    except ValueError as error:
        raise Misconfigured(f"requestheader-{name} of {NAMESPACE}/{NAME} is no list") from error
    return tuple(str(word) for word in found) if isinstance(found, list) else ()


def caller_of(headers: Headers, shown: str, proxy: FrontProxy) -> User | None:
    """Whom the API server names; None where another one speaks, nobody is named, or a name is no UTF-8.

    `shown` is the common name in the certificate of the connection.
    """
    if not shown or (proxy.names and shown not in proxy.names):
        return None
    name = _first(headers, proxy.users)
    if not name:
        return None
    groups = [value for header in proxy.groups for value in headers.getlist(header)]
    uid = _first(headers, proxy.uids)
    try:
        return {
            "username": _utf8(name),
            "uid": _utf8(uid),
            "groups": [_utf8(group) for group in groups],
            "extra": {key: [_utf8(value) for value in values] for key, values in _extra(headers, proxy).items()},
        }
    except UnicodeDecodeError:
        return None


def _utf8(value: str) -> str:
    """A header's bytes as they were meant: the API server writes names as UTF-8, and headers are read as Latin-1."""
    return value.encode("latin-1").decode("utf-8")


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def _extra(headers: Headers, proxy: FrontProxy) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for header, value in headers.items():
        prefix = next((one for one in proxy.extras if header.startswith(one.lower())), "")
        if prefix:
            found.setdefault(unquote(header[len(prefix) :]), []).append(value)
    return found
