"""Objects: what is masked by where it stands, and what stays by what it names.

Every decision about a value reads its neighbours as they are after redaction, so that a second walk decides the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final, Literal

from inquest.core.redaction.keys import (
    LONGEST_KEY,
    holds_secret,
    is_harmless,
    is_secret_file,
    is_sensitive,
    says_password,
    says_passwords,
)
from inquest.core.redaction.mask import MARK

SCALARS: Final = (int, float, bool, type(None))
"""Asked first, because asking whether a value is a mapping costs more than anything else here."""
EnvValues = Literal["sensitive", "all"]

PLAIN_KEYS: Final = frozenset({"annotations", "labels", "matchLabels"})
"""Maps whose keys are names of others' making: they say nothing about their values."""
_PAIR_NAMES: Final = ("name", "key", "Name", "Key")
_PAIR_VALUES: Final = ("value", "Value")
_PARTS: Final = frozenset({"data", "stringData", "binaryData"})
_VALUES_OF: Final = frozenset({"value", "plain", "plaintext", "literal", "raw", "default", "current", "data"})
"""Keys of a map under a sensitive key that hold the secret itself: `password: {value: x}`."""

# --- identity ---------------------------------------------------------------------------------------------

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.:\-]{0,251}[a-z0-9])?")
_IDENTITY_KEYS: Final = frozenset({"name", "namespace", "uid", "generateName", "resourceVersion", "apiVersion"})
_SHAPES: Final = frozenset({"kind", "namespace", "uid", "image", "api_version", "apiVersion"})
"""Beside one of these, `name` is the name of an object or a container."""


def is_identity(key: str, value: str, siblings: Mapping[Any, Any], inside: str) -> bool:
    """Whether a value names an object where the shape says so: such a name stays exact, whatever it looks like."""
    if not _NAME.fullmatch(value):
        return False
    if key in _IDENTITY_KEYS:
        return inside in {"metadata", "regarding", "involvedObject"} or inside.endswith("Ref") or is_named(siblings)
    return key.endswith("Name") and not is_sensitive(key)


def is_named(siblings: Mapping[Any, Any]) -> bool:
    """Whether a map has the shape of an object's reference."""
    return "name" in siblings and not _SHAPES.isdisjoint(siblings)


# --- what keys say ----------------------------------------------------------------------------------------


class KeyMeaning(Enum):
    """What a key says about its value."""

    SECRET = auto()
    FILE = auto()
    REGISTRIES = auto()
    """Registries with their credentials, as Docker keeps them."""


def meaning_of(key: str) -> KeyMeaning | None:
    """What a key says; None for most."""
    return _meaning(key[-LONGEST_KEY:])


@lru_cache(maxsize=8192)
def _meaning(key: str) -> KeyMeaning | None:
    if is_secret_file(key):
        return KeyMeaning.FILE
    if is_sensitive(key):
        return KeyMeaning.SECRET
    return KeyMeaning.REGISTRIES if key == "auths" else None


# --- the walk ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StringRules:
    """What becomes of strings: `text` passes all rules, `exact` keeps a name but for known values."""

    text: Callable[[str], str]
    exact: Callable[[str], str]
    may_change: Callable[[str], bool] = bool
    """Whether `text` could change a string: most pass through nothing else."""


def redact_structure(value: Any, leaves: StringRules, env_values: EnvValues = "sensitive") -> Any:
    """The object with its secrets masked; keys and shape stay."""
    return _Walk(leaves, env_values).of(value, "", {})


class _Walk:
    def __init__(self, leaves: StringRules, env_values: EnvValues) -> None:
        self._leaves, self._env_values = leaves, env_values

    def of(self, value: Any, inside: str, parent: Mapping[Any, Any]) -> Any:
        """`inside` is the key that leads here, `parent` the map that holds it."""
        if isinstance(value, str):
            return self._leaves.text(value)
        if isinstance(value, dict):
            return self._mapping(value, inside, parent)
        if isinstance(value, (list, tuple)):
            return without_arguments([self.of(item, inside, parent) for item in value])
        if not isinstance(value, SCALARS) and isinstance(value, Mapping):
            return self._mapping(dict(value), inside, parent)
        return value

    def _mapping(self, found: Mapping[Any, Any], inside: str, parent: Mapping[Any, Any]) -> dict[Any, Any]:
        if inside in PLAIN_KEYS:
            return {key: self._plain(str(key), item, found) for key, item in found.items()}
        whole = _whole_parts(found, inside, parent)
        may_change = self._leaves.may_change
        walked = {
            key: masked(item)
            if key in whole
            else item
            if type(item) is str and not may_change(item) and meaning_of(str(key)) is None
            else self._item(str(key), item, found, inside)
            for key, item in found.items()
        }
        return self._without_pair(walked, inside) if _has_pair(walked) else walked

    def _plain(self, key: str, item: Any, found: Mapping[Any, Any]) -> Any:
        if isinstance(item, str):
            told = (says_password(key) or holds_secret(key, item)) and not is_harmless(item)
            return MARK if told else self._file(item) if is_secret_file(key) else self._leaves.text(item)
        return self.of(item, "", found)

    def _item(self, key: str, item: Any, found: Mapping[Any, Any], inside: str) -> Any:
        meaning = meaning_of(key)
        if isinstance(item, str):
            return self._string(key, item, found, inside) if meaning is None else self._told(item, meaning)
        if meaning is None or not item:
            return self.of(item, key, found)
        if meaning is KeyMeaning.REGISTRIES and isinstance(item, dict):
            return {host: self._registry(entry, found) for host, entry in item.items()}
        return self._under_sensitive(key, item, found) if meaning is KeyMeaning.SECRET else self.of(item, key, found)

    def _told(self, item: str, meaning: KeyMeaning) -> str:
        """A string under a key that tells what it is."""
        if meaning is KeyMeaning.FILE:
            return self._file(item)
        return MARK if meaning is KeyMeaning.SECRET and not is_harmless(item) else self._leaves.text(item)

    def _string(self, key: str, item: str, found: Mapping[Any, Any], inside: str) -> str:
        shown = self._leaves.text(item)
        if shown != item and is_identity(key, item, found, inside):
            return self._leaves.exact(item)
        return shown

    def _under_sensitive(self, key: str, item: Any, found: Mapping[Any, Any]) -> Any:
        if key == "pass" and isinstance(item, SCALARS):  # how many tests passed
            return item
        if _is_maskable(item):
            return MARK
        if isinstance(item, (list, tuple)):
            return [MARK if _is_maskable(entry) else self.of(entry, key, found) for entry in item]
        if not isinstance(item, dict):
            return item
        walked = self.of(item, key, found)
        if says_passwords(key):
            return masked(walked)
        return {name: MARK if name in _VALUES_OF and _is_maskable(part) else part for name, part in walked.items()}

    def _registry(self, entry: Any, found: Mapping[Any, Any]) -> Any:
        walked = self.of(entry, "auths", found)
        return {**walked, "auth": masked(walked["auth"])} if isinstance(walked, dict) and "auth" in walked else walked

    def _file(self, text: str) -> str:
        """A file of secrets: what its own structure leaves where it has one, else nothing."""
        shown = self._leaves.text(text)
        return shown if text.lstrip()[:1] in {"{", "["} and shown != text else (MARK if text else text)

    def _without_pair(self, walked: dict[Any, Any], inside: str) -> dict[Any, Any]:
        hidden = (inside == "env" and self._env_values == "all") or any(
            is_sensitive(walked[name]) for name in _PAIR_NAMES if isinstance(walked.get(name), str)
        )
        if not hidden:
            return walked
        return {key: _masked_value(item) if key in _PAIR_VALUES else item for key, item in walked.items()}


def _has_pair(found: Mapping[Any, Any]) -> bool:
    return ("value" in found or "Value" in found) and any(name in found for name in _PAIR_NAMES)


def _masked_value(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _masked_value(part) for key, part in item.items()}
    return MARK if _is_maskable(item) else item


def _whole_parts(found: Mapping[Any, Any], inside: str, parent: Mapping[Any, Any]) -> tuple[str, ...]:
    """Keys whose values go whole, by the kind of the object."""
    if _PARTS.isdisjoint(found):
        return ()
    kind = found.get("kind")
    if isinstance(kind, str) and kind.lower() == "secret":
        return ("data", "stringData")
    if inside == "items" and parent.get("kind") == "SecretList":
        return ("data", "stringData")
    if isinstance(found.get("stringData"), (Mapping, str)) or _is_typed_secret(found):
        return ("data", "stringData")
    return ("data", "binaryData") if _is_helm_release(found) else ()


def _is_typed_secret(found: Mapping[Any, Any]) -> bool:
    """A Secret that lost its kind: only Secrets have such a type beside data."""
    kind, type_ = found.get("kind"), found.get("type")
    if kind is not None or not isinstance(type_, str) or "data" not in found:
        return False
    return type_ == "Opaque" or type_.startswith(("kubernetes.io/", "helm.sh/", "bootstrap.kubernetes.io/"))


def _is_helm_release(found: Mapping[Any, Any]) -> bool:
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return found.get("kind") == "ConfigMap" and str(name).startswith("sh.helm.release")


def masked(value: Any) -> Any:
    """Every value below masked; keys, shape and nulls stay."""
    if isinstance(value, Mapping):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return None if value is None else MARK


def _is_maskable(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, float)) or (isinstance(value, str) and not is_harmless(value))


# --- arguments of commands -----------------------------------------------------------------------------------

_SHORT_FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "-p": ("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "login", "mongo", "mongosh"),
    "-a": ("redis-cli", "valkey-cli", "keydb-cli"),
    "-P": ("sqlcmd",),
    "-w": ("ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami"),
}
_GLUED: Final = frozenset({"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sqlcmd", "sshpass"})


def without_arguments(items: list[Any]) -> list[Any]:
    """`["--password", "x"]`, `["mysql", "-px"]`: values that stand behind a flag, or glued to one of a known client."""
    if not any(isinstance(item, str) and item.startswith("-") for item in items):
        return items
    clients = {item.rsplit("/", 1)[-1] for item in items if isinstance(item, str) and len(item) < LONGEST_COMMAND}
    flags = {flag for flag, users in _SHORT_FLAGS.items() if not clients.isdisjoint(users)}
    glued = flags if not clients.isdisjoint(_GLUED) else set()
    return list(_arguments(items, flags, glued))


LONGEST_COMMAND: Final = 128


def _arguments(items: Sequence[Any], flags: AbstractSet[str], glued: AbstractSet[str]) -> Iterator[Any]:
    before = ""
    for item in items:
        if not isinstance(item, str):
            yield item
            before = ""
            continue
        if item[:2] in glued and len(item) > 2 and not item.startswith("--"):
            yield item[:2] + MARK
        elif (_is_flag(before) or before in flags) and not item.startswith("-") and not is_harmless(item):
            yield MARK
        else:
            yield item
        before = item


def _is_flag(item: str) -> bool:
    return item.startswith("-") and "=" not in item and is_sensitive(item)
