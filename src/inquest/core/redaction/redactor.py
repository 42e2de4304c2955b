"""The one gate on every way out.

Structure first, then text rules, then encoded text again, then known values. What fails does not pass. Nothing else
in the product makes `Redacted` values. It is plain computation: above 32 KB callers run it in a thread.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote, quote_plus

from pydantic import BaseModel

from inquest.core.redaction import structure
from inquest.core.redaction.credentials import RULES, without_shapes
from inquest.core.redaction.documents import in_fragments, in_json, in_yaml, still_json
from inquest.core.redaction.encoded import (
    decode_percent,
    decode_token,
    find_runs,
    may_hide,
    without_opaque,
    without_percent,
    without_tokens,
)
from inquest.core.redaction.escapes import FORMS, differing_positions, strip_colours
from inquest.core.redaction.keys import is_harmless, is_sensitive
from inquest.core.redaction.keyvalues import hints_in, lower_plain, without_blocks, without_values
from inquest.core.redaction.markup import without_attributes
from inquest.core.redaction.mask import MARK, REDACTED, WITHHELD, find_places, has_any
from inquest.core.redaction.redacted import Redacted, seal
from inquest.core.redaction.statements import HINTS, without_listed, without_statements
from inquest.core.redaction.structure import SCALARS, EnvValues, StringRules, is_identity
from inquest.core.text import PIECE, pieces_of

T = TypeVar("T")

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Above this a text is withheld: the gate has no time limit of its own, so its input has one."""
MAX_LEVELS: Final = 2
"""How many encodings deep a text is looked at."""
MAX_ROUNDS: Final = 4
"""Rounds until a text stays as it is; one that does not is withheld, so that redacting twice is redacting once."""


class CleanTexts:
    """Texts that came out of the gate, by their digest: all begins anew where there are too many."""

    def __init__(self, most: int = 20_000) -> None:
        self._most = most
        self._digests: set[bytes] = set()

    def __contains__(self, text: str) -> bool:
        return _digest(text) in self._digests

    def add(self, text: str) -> None:
        """This text passes unchanged."""
        if len(self._digests) >= self._most:
            self._digests = set()
        self._digests.add(_digest(text))


def _digest(text: str) -> bytes:
    if len(text) <= PIECE:
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    digest = blake2b(digest_size=16)
    for piece in pieces_of(text):
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return digest.digest()


class Redactor:
    """Implements `ports.Redactor`; `known` are the values of Inquest's own mounted secrets."""

    def __init__(self, known: Iterable[str] = (), *, env_values: EnvValues = "sensitive") -> None:
        self._values = frozenset(known)
        self._known = KnownSecrets(self._values)
        self._env_values = env_values
        self._clean, self._public = CleanTexts(), CleanTexts()

    def learn(self, value: str) -> None:
        """One more value to mask from now on; what was known before stays known, for old texts may still hold it."""
        if value not in self._values:
            self._values |= {value}
            self._known = KnownSecrets(self._values)
            self._clean, self._public = CleanTexts(), CleanTexts()

    def text(self, text: str) -> Redacted[str]:
        return seal(self._guarded(text))

    def data(self, data: dict[str, Any]) -> Redacted[dict[str, Any]]:
        try:
            return seal(cast(dict[str, Any], self._object(data, 0)))
        except Exception:  # the gate fails closed, whatever went wrong
            return seal({"withheld": WITHHELD})

    def strings(self, data: T) -> Redacted[T]:
        leaves = StringRules(_remembered(self._guarded), self._known.without)
        return seal(cast(T, _each_string(data, leaves)))

    def published(self, data: T) -> Redacted[T]:
        """As `strings`, and stricter: what looks like a token goes too, for all who may read an object may read it."""
        leaves = StringRules(_remembered(self._published), self._known.without)
        return seal(cast(T, _each_string(data, leaves)))

    def _published(self, text: str) -> str:
        public = self._public
        if text in public:
            return text
        found = without_tokens(self._guarded(text))
        if found == text:
            public.add(text)
        return found

    def _guarded(self, text: str) -> str:
        clean = self._clean
        if text in clean:
            return text
        try:
            found = self._settled(writable(text))
        except Exception:  # the gate fails closed, whatever went wrong
            return WITHHELD
        # What came out goes in again with the next status, and redacting twice is redacting once.
        clean.add(found)
        return found

    def _settled(self, text: str, level: int = 0) -> str:
        """The text as it will be shown, and every form in which it may be read, without a secret."""
        plain = strip_colours(text) if len(text) <= MAX_CHARACTERS else None
        if plain is None:
            return WITHHELD
        done = self._in_form(plain, level)
        for form in FORMS:
            other = form(done)
            found = done if other == done else self._in_form(other, level)
            done = done if found == other else still_json(done, found)
        return done if strip_colours(done) == done else done.translate(_NO_ESCAPES)

    def _in_form(self, text: str, level: int) -> str:
        structured = in_json(text, lambda value: self._object(value, level))
        if structured is not None:
            return structured
        for _ in range(MAX_ROUNDS):
            before, text = text, self._once(text, level)
            if text == before:
                return text
        return WITHHELD

    def _once(self, text: str, level: int) -> str:
        text = in_yaml(text, lambda value: self._object(value, level), all_env=self._env_values == "all")
        text = in_fragments(text, lambda value: self._object(value, level))
        text = without_listed(without_statements(without_shapes(text)))
        text = without_values(without_blocks(without_attributes(text)))
        text = without_opaque(text, _remembered(lambda token: self._is_clean(decode_token(token), level)))
        text = without_percent(text, lambda run: self._is_clean(decode_percent(run), level))
        return self._known.without(text)

    def _is_clean(self, found: str | None, level: int) -> bool | None:
        if found is None or level >= MAX_LEVELS:
            return None if found is None else True
        return self._settled(found, level + 1) == found

    def _object(self, value: Any, level: int) -> Any:
        """An object by its structure; only strings that may hold something take the long way."""
        suspects = self._suspects(value)
        settled = _remembered(lambda leaf: self._settled(leaf, level))
        leaves = StringRules(
            lambda leaf: settled(leaf) if leaf in suspects else leaf, self._known.without, suspects.__contains__
        )
        return structure.redact_structure(value, leaves, self._env_values)

    def _suspects(self, value: Any) -> frozenset[str]:
        """Strings in which any rule could find something: one search over all of them together."""
        noted: dict[str, None] = {}
        _note_strings(value, noted)
        found = list(noted)
        text = "\n".join(found)
        starts = [0, *accumulate(len(leaf) + 1 for leaf in found)]
        hit = {found[bisect_right(starts, at) - 1] for at in self._hits(text)}
        return frozenset(hit.union(leaf for leaf in found if leaf.lstrip()[:1] in _DOCUMENT))

    def _hits(self, text: str) -> Iterator[int]:
        """Positions of everything that a rule begins with."""
        small = lower_plain(text)
        yield from (at for at, _ in hints_in(small))
        yield from (at for word in HINTS for at in find_places(word, small))
        yield from (start for start, end in find_runs(text) if may_hide(text, start, end))
        yield from differing_positions(text)
        words = (*(hint for hints, _ in RULES for hint in hints), *self._known.forms)
        yield from (at for word in words for at in find_places(word, text))
        yield from find_places("env", text) if self._env_values == "all" else ()


_NO_ESCAPES: Final = {ord(sign): None for sign in "\x1b\x9b"}
"""A mark may complete what an escape before it began; a later reader would take its first letters away."""
_DOCUMENT: Final = frozenset('{["')


def _note_strings(value: Any, found: dict[str, None]) -> None:
    """Strings of an object, each once, keys left out."""
    if isinstance(value, str):
        found[value] = None
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            if type(item) is str:
                found[item] = None
            else:
                _note_strings(item, found)
    elif not isinstance(value, SCALARS) and isinstance(value, Mapping):
        _note_strings(dict(value), found)


def _remembered(leaf: Callable[[str], T]) -> Callable[[str], T]:
    seen: dict[str, T] = {}

    def remembered(text: str) -> T:
        if text not in seen:
            seen[text] = leaf(text)
        return seen[text]

    return remembered


def _each_string(value: Any, leaves: StringRules) -> Any:
    """The same shape with every string passed through; names of objects, enumerations and other scalars stay."""
    match value:
        case enum.Enum():
            return value
        case str():
            return leaves.text(value)
        case Mapping():
            return _each_field(value, leaves)
        case list():
            return [_each_string(item, leaves) for item in value]
        case tuple() if not hasattr(value, "_fields"):
            return tuple(_each_string(item, leaves) for item in value)
        case BaseModel():
            return value.model_copy(update=_each_field(dict(value), leaves))
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
            return dataclasses.replace(value, **_each_field(fields, leaves))
        case _:
            return value


FREE: Final = frozenset({"annotations", "labels"})
"""Maps whose keys are anybody's: what such a key calls a secret is one, however harmless it looks."""


def writable(text: str) -> str:
    """Half a character, which JSON can name and UTF-8 cannot write, would stop every sink behind the gate."""
    if text.isascii():
        return text
    try:
        for piece in pieces_of(text):
            piece.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _each_field(fields: Mapping[Any, Any], leaves: StringRules, inside: str = "") -> dict[Any, Any]:
    return {
        writable(key) if type(key) is str else key: MARK
        if type(item) is str and inside in FREE and is_sensitive(str(key)) and not is_harmless(item)
        else leaves.exact(writable(item))
        if type(item) is str and is_identity(str(key), item, fields, inside)
        else _each_field(item, leaves, str(key))
        if type(item) is dict
        else _each_string(item, leaves)
        for key, item in fields.items()
    }


MIN_KNOWN: Final = 4
"""Shorter known values would mask ordinary words."""


class KnownSecrets:
    """Masks known values, the longest first: one may hold another."""

    def __init__(self, values: Iterable[str]) -> None:
        usable = (value.strip() for value in values)
        forms = {form for value in usable if len(value) >= MIN_KNOWN for form in _forms(value)}
        kept = (form for form in forms if form and not any(form in word for word in REDACTED))
        self.forms: Final = tuple(sorted(kept, key=len, reverse=True))

    def without(self, text: str) -> str:
        for form in self.forms:
            if has_any(text, form):
                text = text.replace(form, MARK)
        return text


def _forms(value: str) -> Iterator[str]:
    """Raw, as it stands in JSON and URLs, and in base64 at each of the three offsets inside a longer text."""
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    yield from (quote(value, safe=""), quote(value), quote_plus(value))
    content = value.encode("utf-8", "surrogatepass")
    if len(content) < 8:
        return
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for skipped, dropped in ((0, 0), (1, 2), (2, 3)):
            encoded = encode(b"\0" * skipped + content).decode().rstrip("=")
            yield encoded[dropped : len(encoded) - (1 if (skipped + len(content)) % 3 else 0)]
