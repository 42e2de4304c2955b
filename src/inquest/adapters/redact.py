"""The one gate on every way out (pipeline, section 17; reliability, section 10.2).

Structure first, then text rules, then encoded text again, then known values. What fails does not pass. Nothing else
in the house makes `Redacted` values. It is plain computation: above 32 KB callers run it in a thread.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import quote, unquote

import yaml
from pydantic import BaseModel

from inquest.adapters.redact_text import (
    MARK,
    REDACTED,
    WITHHELD,
    is_secret_file,
    is_sensitive,
    without_blocks,
    without_opaque,
    without_percent,
    without_shapes,
    without_values,
)
from inquest.ports import Json, Redacted, seal

T = TypeVar("T")
EnvValues = Literal["sensitive", "all"]

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Above this a text is withheld: the gate has no time limit of its own, so its input has one."""
MAX_LEVELS: Final = 2
"""How many encodings deep a text is looked at (reliability, section 10.2)."""
MAX_ROUNDS: Final = 4
"""Rounds until a text stays as it is; one that does not is withheld, so that redacting twice is redacting once."""
MAX_INFLATED: Final = 8 * 1024 * 1024
MIN_KNOWN: Final = 4
"""Shorter known values would mask ordinary words."""


class Redactor:
    """Implements `ports.Redactor`; `known` are the values of Inquest's own mounted secrets."""

    def __init__(self, known: Iterable[str] = (), *, env_values: EnvValues = "sensitive") -> None:
        self._known = _known_pattern(known)
        self._env_values = env_values

    def text(self, text: str) -> Redacted[str]:
        return seal(self._guarded(text))

    def data(self, data: Json) -> Redacted[Json]:
        try:
            return seal(cast(Json, _Structure(self._settled, self._env_values).of(data)))
        except Exception:  # the gate fails closed, whatever went wrong
            return seal({"withheld": WITHHELD})

    def strings(self, data: T) -> Redacted[T]:
        return seal(cast(T, _each_string(data, _remembered(self._guarded))))

    def _guarded(self, text: str) -> str:
        try:
            return self._settled(text)
        except Exception:  # the gate fails closed, whatever went wrong
            return WITHHELD

    def _settled(self, text: str, level: int = 0) -> str:
        if len(text) > MAX_CHARACTERS:
            return WITHHELD
        for _ in range(MAX_ROUNDS):
            before, text = text, self._once(text, level)
            if text == before:
                return text
        return WITHHELD

    def _once(self, text: str, level: int) -> str:
        structured = _in_json(text, self._structure(level))
        if structured is not None:
            return structured
        text = _in_yaml(text, self._structure(level))
        text = _in_fragments(text, self._structure(level))
        text = without_values(without_blocks(without_shapes(text)))
        text = without_opaque(text, _remembered(lambda token: self._is_clean(_decoded(token), level)))
        text = without_percent(text, lambda run: self._is_clean(unquote(run), level))
        return self._known.sub(MARK, text) if self._known else text

    def _structure(self, level: int) -> Callable[[Any], Any]:
        return lambda value: _Structure(lambda leaf: self._settled(leaf, level), self._env_values).of(value)

    def _is_clean(self, decoded: str | None, level: int) -> bool | None:
        if decoded is None or level >= MAX_LEVELS:
            return None if decoded is None else True
        return self._settled(decoded, level + 1) == decoded


# --- structure: parsed objects --------------------------------------------------------------------


class _Structure:
    """One walk over one parsed object; strings seen before are not looked at again."""

    def __init__(self, leaf: Callable[[str], str], env_values: EnvValues) -> None:
        self._leaf = _remembered(leaf)
        self._env_values = env_values

    def of(self, value: Any, *, secret: bool = False, plain: bool = False, env: bool = False) -> Any:
        """`secret`: an item of a SecretList; `plain`: keys mean nothing here; `env`: an item of an env list."""
        if isinstance(value, Mapping):
            return self._mapping(value, secret=secret or value.get("kind") == "Secret", plain=plain, env=env)
        if isinstance(value, (list, tuple)):
            return self._arguments([self.of(item, secret=secret, env=env) for item in value])
        return self._leaf(value) if isinstance(value, str) else value

    def _mapping(self, found: Mapping[str, Any], *, secret: bool, plain: bool, env: bool) -> dict[str, Any]:
        whole = ("data", "stringData") if secret else ("data", "binaryData") if _is_helm_release(found) else ()
        hidden = self._is_hidden_pair(found, env=env)
        return {
            key: _masked_all(item)
            if key in whole or (hidden and key == "value")
            else self._item(str(key), item, found, plain=plain)
            for key, item in found.items()
        }

    def _is_hidden_pair(self, found: Mapping[str, Any], *, env: bool) -> bool:
        if not isinstance(found.get("name"), str) or not _is_maskable(found.get("value")):
            return False
        return is_sensitive(found["name"]) or (env and self._env_values == "all")

    def _item(self, key: str, item: Any, found: Mapping[str, Any], *, plain: bool) -> Any:
        if isinstance(item, str) and is_secret_file(key):
            return self._file(item)
        if key in ("annotations", "labels") or not plain:
            return self._keyed(key, item, found)
        return self.of(item)

    def _keyed(self, key: str, item: Any, found: Mapping[str, Any]) -> Any:
        if key == "auths" and isinstance(item, Mapping):
            return {host: self._registry(entry) for host, entry in item.items()}
        if is_sensitive(key) and _is_maskable(item):
            return MARK
        if is_sensitive(key) and isinstance(item, (list, tuple)):
            return [MARK if _is_maskable(entry) else self.of(entry) for entry in item]
        plain = key in ("annotations", "labels")
        return self.of(item, plain=plain, env=key == "env", secret=key == "items" and found.get("kind") == "SecretList")

    def _registry(self, entry: Any) -> Any:
        walked = self.of(entry)
        return {**walked, "auth": MARK} if isinstance(walked, Mapping) and "auth" in walked else walked

    def _file(self, text: str) -> str:
        return _in_json(text, self.of) or (MARK if text else text)

    def _arguments(self, items: list[Any]) -> list[Any]:
        """`["--password", "x"]`: the value stands in an element of its own."""
        return [
            MARK if _is_flag(before) and isinstance(item, str) and item and not item.startswith("-") else item
            for before, item in zip([None, *items], items, strict=False)
        ]


def _is_flag(item: Any) -> bool:
    return isinstance(item, str) and item.startswith("-") and "=" not in item and is_sensitive(item)


def _is_maskable(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    return isinstance(value, (int, float)) or (isinstance(value, str) and value not in {"", *REDACTED})


def _masked_all(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: None if item is None else MARK for key, item in value.items()}
    return None if value is None else MARK


def _is_helm_release(found: Mapping[str, Any]) -> bool:
    metadata = found.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return found.get("kind") == "ConfigMap" and str(name).startswith("sh.helm.release")


# --- structure: texts that hold objects -----------------------------------------------------------------


class _Unreadable(Exception):
    """A text that looks like YAML and is not, or uses aliases."""


def _in_json(text: str, walk: Callable[[Any], Any]) -> str | None:
    """The text with its JSON redacted, or None when it is no JSON."""
    body = text.strip()
    if not body or body[0] not in '{["' or body[-1] not in '}]"':
        return None
    try:
        value, faithful = _parsed(body)
    except ValueError:
        return None
    redacted = walk(value)
    if faithful and redacted == value:
        return text
    start = text.index(body[0])
    return text[:start] + _dumped(redacted, like=body) + text[start + len(body) :]


def _parsed(body: str) -> tuple[Any, bool]:
    """The value, and whether it holds all that the text says: a repeated key hides its first value."""
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            repeated.append("")
        return found

    return json.loads(body, object_pairs_hook=pairs), not repeated


def _dumped(value: Any, *, like: str) -> str:
    ascii_only = like.isascii() or "\\u" in like
    if "\n" in like:
        indent = re.search(r"\n([ \t]+)", like)
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent[1] if indent else 0)
    separators = (", ", ": ") if re.search(r'": |, "', like) else (",", ":")
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators)


_TELLING: Final = re.compile(r'"(?:Secret|value|auths|stringData)')
_FRAGMENT: Final = re.compile(r'[{\[][ \t]*(?:["{]|\n)')


def _in_fragments(text: str, walk: Callable[[Any], Any]) -> str:
    """JSON inside a line, where its structure says more than the text rules see."""
    if not _TELLING.search(text):
        return text
    return "".join(_in_line(line, walk) for line in text.splitlines(keepends=True))


def _in_line(line: str, walk: Callable[[Any], Any]) -> str:
    start = _FRAGMENT.search(line)
    if start is None or not _TELLING.search(line):
        return line
    try:
        value, end = json.JSONDecoder().raw_decode(line, start.start())
    except ValueError:
        return line
    redacted = walk(value)
    if redacted == value:
        return line
    return line[: start.start()] + _dumped(redacted, like=line[start.start() : end]) + line[end:]


_YAML: Final = re.compile(
    r"^[ \t]*(?:-[ \t]+)?[\"']?(?:kind[\"']?:[ \t]*[\"']?(?:Secret|List\b)|(?:stringData|auths|env)[\"']?:)",
    re.MULTILINE,
)
_SECRET_LINE: Final = re.compile(
    r"^[ \t]*(?:-[ \t]+)?[\"']?kind[\"']?:[ \t]*[\"']?Secret|^[ \t]*stringData:", re.MULTILINE
)
_SECTION: Final = re.compile(
    r"^(?P<head>(?P<indent>[ \t]*)[\"']?(?:data|stringData|kubectl\.kubernetes\.io/last-applied-configuration)[\"']?:)"
    r"[ \t]*(?P<line>[^\n]*)(?:\n|\Z)(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_ENTRY: Final = re.compile(r"^([ \t]*[\"']?[\w.\-]{1,253}[\"']?:)[^\n]*(\n?)", re.MULTILINE)


def _in_yaml(text: str, walk: Callable[[Any], Any]) -> str:
    """Objects of a YAML text redacted in place; a Secret that does not parse loses its whole sections."""
    if not _YAML.search(text):
        return text
    try:
        return _spliced(text, _edits(text, walk))
    except (yaml.YAMLError, _Unreadable):
        return _SECTION.sub(_masked_section, text) if _SECRET_LINE.search(text) else text


def _edits(text: str, walk: Callable[[Any], Any]) -> list[tuple[int, int, str]]:
    edits: list[tuple[int, int, str]] = []
    for node in yaml.compose_all(text, Loader=yaml.CSafeLoader):
        edits += _differences(node, walk(_value_of(node, set())), text)
    return edits


def _value_of(node: yaml.Node, seen: set[int]) -> Any:
    if id(node) in seen:
        raise _Unreadable("alias")
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.tag.endswith((":str", ":int", ":float", ":timestamp", ":binary")) else None
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        return {_key_of(key): _value_of(item, seen) for key, item in node.value}
    return [_value_of(item, seen) for item in node.value]


def _key_of(node: yaml.Node) -> str:
    return str(node.value)


def _differences(node: yaml.Node, redacted: Any, text: str) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, yaml.MappingNode) and isinstance(redacted, Mapping):
        for key, item in node.value:
            yield from _differences(item, redacted.get(_key_of(key), MARK), text)
    elif isinstance(node, yaml.SequenceNode) and isinstance(redacted, list):
        for item, entry in zip(node.value, redacted, strict=True):
            yield from _differences(item, entry, text)
    elif redacted is not None and (not isinstance(node, yaml.ScalarNode) or node.value != redacted):
        yield _edit(node, str(redacted), text)


def _edit(node: yaml.Node, redacted: str, text: str) -> tuple[int, int, str]:
    """Quoted, because a bare marker would be a list; the break after a block stays."""
    start, end = node.start_mark.index, node.end_mark.index
    tail = text[start:end]
    return start, end, json.dumps(redacted, ensure_ascii=False) + tail[len(tail.rstrip()) :]


def _spliced(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, new in sorted(edits):
        parts += [text[done:start], new]
        done = end
    return "".join((*parts, text[done:]))


def _masked_section(match: re.Match[str]) -> str:
    entries = _ENTRY.findall(match["body"])
    if match["line"].strip() or not entries:
        return f'{match["head"]} "{MARK}"\n'
    return match["head"] + "\n" + "".join(f'{key} "{MARK}"{end}' for key, end in entries)


# --- encoded text, known values, leaves ------------------------------------------------------------------


def _decoded(token: str) -> str | None:
    """The text behind base64, plain or compressed; None when there is none."""
    for part in (token, token.rsplit("/", 1)[-1]):
        text = _text_of(_bytes_of(part)) if len(part) >= 20 else None
        if text is not None:
            return text
    return None


def _bytes_of(token: str) -> bytes:
    body = token.rstrip("=").replace("-", "+").replace("_", "/")
    usable = body[: len(body) - 1] if len(body) % 4 == 1 else body
    try:
        return base64.b64decode(usable + "=" * (-len(usable) % 4))
    except binascii.Error:
        return b""


def _text_of(content: bytes) -> str | None:
    if content[:2] == b"\x1f\x8b" or content[:1] == b"\x78":
        content = _inflated(content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if text and text.translate(_BLANKS).isprintable() else None


_BLANKS: Final = {ord(char): " " for char in "\n\r\t"}


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content, MAX_INFLATED)
    except zlib.error:
        return content


def _known_pattern(known: Iterable[str]) -> re.Pattern[str] | None:
    usable = [value.strip() for value in known]
    forms = {form for value in usable if len(value) >= MIN_KNOWN for form in _forms(value)}
    kept = sorted((form for form in forms if not any(form in word for word in REDACTED)), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, kept))) if kept else None


def _forms(value: str) -> Iterator[str]:
    """Raw, as it stands in JSON and URLs, and in base64 at each of the three offsets inside a longer text."""
    yield from (value, json.dumps(value)[1:-1], quote(value, safe=""))
    content = value.encode()
    if len(content) < 8:
        return
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for skipped, dropped in ((0, 0), (1, 2), (2, 3)):
            encoded = encode(b"\0" * skipped + content).decode().rstrip("=")
            yield encoded[dropped : len(encoded) - (1 if (skipped + len(content)) % 3 else 0)]


def _remembered(leaf: Callable[[str], T]) -> Callable[[str], T]:
    seen: dict[str, T] = {}

    def remembered(text: str) -> T:
        if text not in seen:
            seen[text] = leaf(text)
        return seen[text]

    return remembered


def _each_string(value: Any, leaf: Callable[[str], str]) -> Any:
    """The same shape with every string passed through `leaf`; enumerations and other scalars stay."""
    match value:
        case enum.Enum():
            return value
        case str():
            return leaf(value)
        case Mapping():
            return {key: _each_string(item, leaf) for key, item in value.items()}
        case list():
            return [_each_string(item, leaf) for item in value]
        case tuple() if not hasattr(value, "_fields"):
            return tuple(_each_string(item, leaf) for item in value)
        case BaseModel():
            return value.model_copy(update={name: _each_string(item, leaf) for name, item in value})
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return dataclasses.replace(value, **{name: _each_string(item, leaf) for name, item in fields.items()})
        case _:
            return value
