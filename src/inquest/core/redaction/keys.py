"""Which names say that their value is a secret, however they are spelled."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from inquest.core.redaction.mask import REDACTED
from inquest.core.text import pieces_of
from inquest.tables import read_table

LONGEST_KEY: Final = 128

_NAMES: Final[Mapping[str, tuple[str, ...]]] = read_table(__package__, "secrets.yaml")
_WORDS: Final = frozenset(_NAMES["words"])
_PAIRS: Final = frozenset(tuple(pair.split()) for pair in _NAMES["pairs"])
_TAILS: Final = _NAMES["tails"]
_NO_TAILS: Final = frozenset(_NAMES["no_tails"])
_FILES: Final = _NAMES["files"]
_SECRET_FILES: Final = frozenset(_NAMES["secret_files"])
_REFERENCES: Final = frozenset(_NAMES["references"])
_REFERENCE_KEYS: Final = frozenset(tuple(key.split()) for key in _NAMES["reference_keys"])
_WHOLE: Final = frozenset(_NAMES["whole_names"])
_BREAK: Final = re.compile(r"[\s_\-./:\[\]]+")
_SEAM: Final = re.compile(r"[\s_\-./:\[\]]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_sensitive(key: str) -> bool:
    """Whether a value under this key is a secret by its name alone."""
    return _judged(key[-LONGEST_KEY:])


@lru_cache(maxsize=8192)
def _judged(key: str) -> bool:
    key = plain_letters(key)
    lowered = key.strip("-").lower()
    if lowered in _WHOLE or is_secret_file(key) or lowered.endswith(_FILES):
        return True
    words = [word.lower().rstrip("0123456789") or word for word in _SEAM.split(key) if word]
    if not words or _is_reference(words):
        return False
    glued = [part.lower() for part in _BREAK.split(key) if part]
    return any(_says_secret(word) for word in (*words, *glued)) or _has_pair(words) or words[-2:] == ["session", "id"]


def _says_secret(word: str) -> bool:
    return word in _WORDS or (word.endswith(_TAILS) and word not in _NO_TAILS)


_PASSWORD: Final = re.compile(r"(?:password|passwd|passphrase|pwd|(?<![a-z])pass)\Z", re.IGNORECASE)
_NAMES_SECRET: Final = re.compile(
    r"(?:checksum/|(?:\A|[^a-z])(?:auth|tls|ssl|ca|cert|certificate|pull|existing|mtls)[\-_.])secret\Z", re.IGNORECASE
)
_ABOUT_SECRET: Final = re.compile(r"[0-9a-f]{32,128}|[a-z0-9_.\-]{1,64}(?:/[a-z0-9_.\-]{1,64}){1,8}")
"""A checksum, or a path: what annotations of Helm and Vault say of a secret."""


def says_password(key: str) -> bool:
    """Whether a key ends in a word for a password, as even annotations and lines of prose mean it."""
    return _PASSWORD.search(plain_letters(key)) is not None


def holds_secret(key: str, value: str) -> bool:
    """Whether an annotation whose key ends in `secret` holds one, and not its name, its path or its checksum."""
    key = plain_letters(key)
    told = key.lower().endswith("secret") and _NAMES_SECRET.search(key) is None
    return told and _ABOUT_SECRET.fullmatch(value.strip()) is None


_SEVERAL: Final = frozenset({"passwords", "passphrases", "passwds"})


def says_passwords(key: str) -> bool:
    """Whether every value below a key is a password: `passwords: {alice: x}`."""
    words = [word.lower() for word in _SEAM.split(plain_letters(key)) if word]
    return bool(words) and words[-1] in _SEVERAL


def _is_reference(words: list[str]) -> bool:
    if words[-1] in _REFERENCES:
        return words[-3:] != ["access", "key", "id"] and words[-2:] != ["session", "id"]
    return tuple(words[-2:]) in _REFERENCE_KEYS


def _has_pair(words: list[str]) -> bool:
    if len(words) > 1 and words[-1] == "pass":
        return True
    return any(pair in _PAIRS for pair in pairwise(words))


def is_secret_file(key: str) -> bool:
    """A key whose whole value is a file of secrets."""
    return key.lower() in _SECRET_FILES


# --- values that say nothing -----------------------------------------------------------------------

_HARMLESS: Final = re.compile(
    r"true|false|null|none|nil|~|undefined|\$\([A-Za-z_]\w*\)|\$\{[A-Za-z_]\w*\}|\{\{[^}]*\}\}|\{{1,2}|\{\}|\[\]?"
    r"|[|>][-+0-9]*|\*{2,}|<(?:none|nil|unset|empty|hidden|masked|redacted|no value|not set)>"
    r"|<set to the key '[^']*' (?:in|of)\b[^\n]*|\[REDACTED\][)\]}>.]*",
    re.IGNORECASE,
)


def is_harmless(value: str) -> bool:
    """Markers, empty values, switches and references to where a value comes from."""
    value = value.strip()
    return not value or value in REDACTED or _HARMLESS.fullmatch(value) is not None


# --- letters that only look like others --------------------------------------------------------------


def plain_letters(text: str) -> str:
    """The text with look-alike letters as the ASCII letters that they look like; its length stays."""
    return text if text.isascii() else "".join(piece.translate(_LOOKALIKES) for piece in pieces_of(text))


def _lookalikes() -> Iterator[tuple[int, str]]:
    for first, last in ((0xC0, 0x24F), (0x1D400, 0x1D7FF), (0x2100, 0x214F), (0xFF01, 0xFF5E)):
        for code in range(first, last + 1):
            plain = unicodedata.normalize("NFKD", chr(code))[:1]
            if plain.isascii():
                yield code, plain
    cyrillic_and_greek = "аАеЕоОрРсСуУхХіІѕЅкКтТдԁԀηιοΟρΡαΑεΕκΚτΤνΝѡԝɡ"
    yield from zip(map(ord, cyrillic_and_greek), "aAeEoOpPcCyYxXiIsSkKtTddDnioOpPaAeEkKtTvNwwg", strict=True)


_LOOKALIKES: Final = dict(_lookalikes())
