"""Text inside text: base64, compressed or not, URL encoding, and what only looks random."""

from __future__ import annotations

import base64
import binascii
import re
import sys
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log2
from typing import Final
from urllib.parse import unquote_to_bytes

from inquest.core.redaction.credentials import token_in
from inquest.core.redaction.mask import STRETCH, replace_spans
from inquest.core.text import PIECE, pieces_of, search_in_pieces

IsClean = Callable[[str], bool | None]
"""Whether a token decodes to a text without a secret; None for what does not decode to text."""

MAX_INFLATED: Final = 8 * 1024 * 1024
SHORTEST_RUN: Final = 20
"""Shorter runs of token characters are not decoded."""
_MIN_ENTROPY: Final = 4.3
"""Bits for each character; random base64 of 40 characters has 4.9, identifiers and prose stay below 4."""
_MIN_OPAQUE: Final = 40
_Span = tuple[int, int]

# --- runs of token characters ----------------------------------------------------------------------------------

_TOKEN_CHARACTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_TO_RUNS: Final = bytes(ord("a") if code in _TOKEN_CHARACTERS else ord(" ") for code in range(256))
_RUN: Final = b"a" * SHORTEST_RUN


def find_runs(text: str) -> Iterator[_Span]:
    """Spans of 20 and more token characters, padding included.

    A copy in which all of them are one letter is searched for twenty of that letter: a plain search, where a pattern
    would begin anew at each character.
    """
    if len(text) < SHORTEST_RUN:
        return
    shape = b"".join(piece.encode("ascii", "replace").translate(_TO_RUNS) for piece in pieces_of(text))
    at = shape.find(_RUN)
    while at >= 0:
        end = shape.find(b" ", at)
        end = len(shape) if end < 0 else end
        yield at, _with_padding(text, end)
        at = shape.find(_RUN, end)


def _with_padding(text: str, end: int) -> int:
    if not text.startswith("=", end):
        return end
    return end + 1 + text.startswith("=", end + 1)


def may_hide(text: str, start: int, end: int) -> bool:
    """Whether a run is worth a closer look: base64 of text has letters of both cases, names have one."""
    run = text[start:end]
    if (run != run.lower() and run != run.upper()) or _is_hex(run):
        return True
    return token_in(text, start, end) != (0, 0)


def without_opaque(text: str, is_clean: IsClean) -> str:
    """Long tokens of known form, tokens that hide a secret when decoded, tokens that look random."""
    return replace_spans(text, _hiding(text, is_clean))


def _hiding(text: str, is_clean: IsClean) -> Iterator[_Span]:
    lines: list[_Span] = []
    public = _public_spans(text)
    for start, end in find_runs(text):
        if _is_in(public, start):
            continue
        span = token_in(text, start, end)
        if span[0] < span[1]:
            yield from _of_group(text, lines, is_clean)
            lines = []
            yield span
            continue
        if lines and not _continues(text, lines[-1], start):
            yield from _of_group(text, lines, is_clean)
            lines = []
        lines.append((start, end))
    yield from _of_group(text, lines, is_clean)


def _is_in(spans: list[_Span], position: int) -> bool:
    """Whether a position lies in one of the spans, which are in order."""
    before = bisect_right(spans, (position, sys.maxsize)) if spans else 0
    return before > 0 and position < spans[before - 1][1]


_LINE_BREAK: Final = re.compile(r"[ \t]*(?:\r?\n|\\r\\n|\\n)[ \t]*")
_WRAPPED: Final = 40
"""Shorter lines of base64 are not taken for one that was wrapped."""


def _continues(text: str, before: _Span, start: int) -> bool:
    """Whether a run goes on on the next line: wrapped base64 hides its secret between two lines."""
    if before[1] - before[0] < _WRAPPED or start - before[1] > 64:
        return False
    return _LINE_BREAK.fullmatch(text, before[1], start) is not None


def _of_group(text: str, lines: list[_Span], is_clean: IsClean) -> Iterator[_Span]:
    """One mark for lines that hide something only together; else each by itself."""
    if len(lines) > 1 and is_clean("".join(text[start:end] for start, end in lines)) is False:
        yield lines[0][0], lines[-1][1]
        return
    yield from (span for span in lines if _hides(text, *span, is_clean))


def _hides(text: str, start: int, end: int, is_clean: IsClean) -> bool:
    run = text[start:end]
    if _is_hex(run) and is_clean(run) is False:
        return True
    if run == run.lower() or run == run.upper():
        return False
    verdict = is_clean(run)
    return verdict is False or (verdict is None and _is_random(text, start, run))


# --- what looks random ------------------------------------------------------------------------------------------

_DIGEST_BEFORE: Final = re.compile(r"(?:sha(?:1|224|256|384|512)[-:]|\bh1:)\Z", re.IGNORECASE)
_DIGEST: Final = re.compile(r"sha(?:1|224|256|384|512)-", re.IGNORECASE)
_PUBLIC_KEY: Final = re.compile(r"AAAA(?:B3NzaC1|C3NzaC1|E2VjZHNh|G3NrLXNz|Gn)")
"""How the public keys of SSH begin."""
_PUBLIC: Final = re.compile(
    r"-----BEGIN (?:X509 |TRUSTED |NEW |RSA |EC )?(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY)-----[A-Za-z0-9+/=\s\\]*"
    r"(?:-----END [A-Z0-9 ]*-----|\Z)"
)


def _public_spans(text: str) -> list[_Span]:
    return [match.span() for match in search_in_pieces(_PUBLIC, text)] if "-----BEGIN " in text else []


def _is_random(text: str, start: int, run: str) -> bool:
    if len(run) < _MIN_OPAQUE or _is_path(run) or _DIGEST.match(run) or _PUBLIC_KEY.match(run):
        return False
    kinds = Counter(map(_kind, run))
    if kinds["d"] < 3 or kinds["u"] < 4 or kinds["l"] < 4 or _entropy(run) < _MIN_ENTROPY:
        return False
    return not _DIGEST_BEFORE.search(text, max(0, start - 8), start)


def without_tokens(text: str) -> str:
    """The text without anything that looks like a token: stricter than what a model reads, for what all may read."""
    public = _public_spans(text)
    pieces = (span for run in find_runs(text) if not _is_in(public, run[0]) for span in _between_slashes(text, *run))
    return replace_spans(text, (span for span in pieces if _looks_like_token(text, *span)))


def _between_slashes(text: str, start: int, end: int) -> Iterator[_Span]:
    at = start
    run = text[start:end]
    for piece in run.split("/" if _is_path(run) or _names_something(run) else None):
        yield at, at + len(piece)
        at += len(piece) + 1


def _is_path(run: str) -> bool:
    """Base64 has a slash now and then, a path has one for each word."""
    return run.count("/") > len(run) / 16


def _names_something(run: str) -> bool:
    """Whether a part between slashes is a name or a uid: in a token letters of both cases come soon."""
    return any(len(part) >= _NAME and (part == part.lower() or part == part.upper()) for part in run.split("/"))


_NAME: Final = 8
_MIN_TURNS: Final = 0.4
"""Of neighbours, how many are of different kinds: two thirds in a token, a third in a name of several words."""


def _looks_like_token(text: str, start: int, end: int) -> bool:
    piece = text[start:end]
    if end - start < SHORTEST_RUN or _is_hex(piece) or _DIGEST.match(piece) or _PUBLIC_KEY.match(piece):
        return False
    kinds = "".join(map(_kind, piece))
    turns = sum(one != other for one, other in pairwise(kinds))
    is_mixed = all(kinds.count(kind) > 1 for kind in "dul") and turns >= _MIN_TURNS * (len(piece) - 1)
    return is_mixed and not _DIGEST_BEFORE.search(text, max(0, start - 8), start)


def _kind(sign: str) -> str:
    return "d" if sign.isdigit() else "u" if sign.isupper() else "l" if sign.islower() else "o"


def _entropy(token: str) -> float:
    total = len(token)
    counts: Counter[str] = Counter()
    for piece in pieces_of(token):
        counts.update(piece)
    return -sum(count / total * log2(count / total) for count in counts.values())


# --- decoding ------------------------------------------------------------------------------------------------------


_HEX_DIGITS: Final = "0123456789ABCDEFabcdef"


def _is_hex(run: str) -> bool:
    """Ten bytes and more in hexadecimal."""
    digits = run.removeprefix("0x")
    if len(digits) < SHORTEST_RUN or len(digits) % 2:
        return False
    return not any(piece.strip(_HEX_DIGITS) for piece in pieces_of(digits))


def decode_token(token: str) -> str | None:
    """The text behind base64 or hexadecimal, plain or compressed; None when there is none."""
    if _is_hex(token):
        text = _text_of(bytes.fromhex(token.removeprefix("0x")))
        if text is not None:
            return text
    for part in _parts(token):
        text = _text_of(_bytes_of(part))
        if text is not None:
            return text
    return None


def _parts(token: str) -> Iterator[str]:
    """The token, and its longest piece where it is glued to names: `backup/cGFzc…`, `user-cGFzc…`."""
    yield token
    for sign in "/-_":
        if sign in token:
            piece = max(token.split(sign), key=len)
            if len(piece) >= SHORTEST_RUN:
                yield piece


def _bytes_of(token: str) -> bytes:
    body = token.rstrip("=").replace("-", "+").replace("_", "/")
    usable = body[: len(body) - 1] if len(body) % 4 == 1 else body
    padded = usable + "=" * (-len(usable) % 4)  # a stretch is a multiple of four, as base64 is
    try:
        return b"".join(base64.b64decode(padded[at : at + STRETCH]) for at in range(0, len(padded), STRETCH))
    except binascii.Error:
        return b""


def _text_of(content: bytes) -> str | None:
    if content[:2] == b"\x1f\x8b" or content[:1] == b"\x78":
        content = _inflated(content)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    is_shown = text and all(piece.translate(_BLANKS).isprintable() for piece in pieces_of(text))
    return text if is_shown else None


_BLANKS: Final = {ord(char): " " for char in "\n\r\t"}


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content, MAX_INFLATED)
    except zlib.error:
        return content


# --- URL encoding ---------------------------------------------------------------------------------------------------

_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_PLAIN_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+-")
_FROM_PERCENT: Final = re.compile(r"(?:[A-Za-z0-9._~+\-]|%[0-9A-Fa-f]{2})+")
_MIN_PERCENT: Final = 12


def decode_percent(run: str) -> str:
    """What a run of URL encoding stands for; bytes that are no UTF-8 are marked as such."""
    return b"".join(map(unquote_to_bytes, _cut_at_percent(run))).decode("utf-8", "replace")


def _cut_at_percent(run: str) -> Iterator[str]:
    start = 0
    while len(run) - start > PIECE and (end := run.find("%", start + PIECE)) >= 0:
        yield run[start:end]
        start = end
    yield run[start:]


def without_percent(text: str, is_clean: IsClean) -> str:
    """URL-encoded runs that hide a secret when decoded."""
    return replace_spans(text, (span for span in _percent_runs(text) if is_clean(text[span[0] : span[1]]) is False))


def _percent_runs(text: str) -> Iterator[_Span]:
    done = 0
    match = _PERCENT.search(text)
    while match:
        start = _start_of_run(text, match.start(), done)
        done = _end_of_run(text, match.start())
        if done - start >= _MIN_PERCENT:
            yield start, done
        match = _PERCENT.search(text, done)


def _end_of_run(text: str, at: int) -> int:
    while rest := _FROM_PERCENT.match(text, at, at + PIECE):
        at = rest.end()
    return at


def _start_of_run(text: str, position: int, floor: int) -> int:
    floor = max(floor, position - 256)
    while position > floor and text[position - 1] in _PLAIN_CHARACTERS:
        position -= 1
    return position
