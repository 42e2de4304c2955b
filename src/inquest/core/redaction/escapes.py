"""The forms in which a text may be read later: what a terminal takes out or strikes over, what a page decodes.

Colours are taken out before anything is looked for, because they are taken out of all that is shown. The other forms
only serve to look: a text comes out in such a form when it hides a secret, and as it was when it hides none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from html import unescape
from typing import Final

from inquest.core.redaction.mask import find_places, has_any
from inquest.core.text import INVISIBLE, PIECE, has_character, replace_in_pieces, without_colours

_LAYERS: Final = 4
"""How often colours may stand inside colours, and escapes inside escapes."""


def strip_colours(text: str) -> str | None:
    """The text without colours, also without those that appear when others go; None when there is no end to them."""
    for _ in range(_LAYERS):
        before, text = text, without_colours(text)
        if text == before:
            return text
    return None


# --- what a terminal strikes over ---------------------------------------------------------------------------


def _struck(text: str) -> str:
    """As a terminal shows it: a backspace takes the character before it."""
    if "\b" not in text:
        return text
    kept: list[str] = []
    for part in re.split("(\b)", text):
        if part != "\b":
            kept.extend(part)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


# --- what nobody sees -----------------------------------------------------------------------------------------

_COMBINING: Final = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_UNSEEN: Final = re.compile(f"\x1b[()#%][0-9A-Za-z]|{INVISIBLE.pattern}|{_COMBINING}")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def _seen(text: str) -> str:
    """Without controls, joiners, marks of direction and accents that stand by themselves."""
    if text.isascii() and not has_character(_CONTROL, text):
        return text
    return "".join(_UNSEEN.sub("", piece) for piece in _pieces(text.replace("\r\n", "\n")))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces, none of which ends within an escape."""
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        while end < len(text) and text[end] != "\x1b" and "\x1b" in text[end - 2 : end]:
            end += 1
        yield text[start:end]
        start = end
    yield text[start:]


# --- what a page or a parser decodes -----------------------------------------------------------------------------

_ESCAPE: Final = re.compile(
    r"(?<!\\)\\u(?:00[0-7][0-9A-Fa-f]|\{[0-9A-Fa-f]{1,5}\})|(?<!\\)\\x[0-7][0-9A-Fa-f]"
    r"|&#(?:0{0,4}[0-9]{2,3}|[xX]0{0,4}[0-9A-Fa-f]{2});|%(?:2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff])"
)
_ESCAPES: Final = ("\\u", "\\x", "&#", "%")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+(?=\}?\Z)")
_KEPT: Final = frozenset("\"'\\&%\t\n\r")
"""Characters that would end a string or a line, or begin another escape."""


def _unescaped(text: str) -> str:
    """Without escapes of ASCII characters and of those that nobody sees: of Unicode in JSON, of pages, of URLs."""
    if not has_any(text, *_ESCAPES):
        return text
    plain = _seen(text)
    for _ in range(_LAYERS):
        before, plain = plain, _seen(_struck(without_colours(replace_in_pieces(_ESCAPE, _character, plain))))
        if plain == before:
            break
    return plain


def _character(match: re.Match[str]) -> str:
    escape = match[0]
    code = None if escape.startswith("&") else _HEX.search(escape.lstrip("\\ux%"))
    found = unescape(escape) if code is None else chr(min(int(code[0], 16), sys.maxunicode))
    meant = found.isascii() or INVISIBLE.fullmatch(found)
    return found if len(found) == 1 and meant and found not in _KEPT else escape


FORMS: Final[tuple[Callable[[str], str], ...]] = (_struck, _seen, _unescaped)
"""In this order; each gives the text itself where it has nothing to change."""


def differing_positions(text: str) -> Iterator[int]:
    """Positions at which one of the forms may differ from the text."""
    if not text.isascii() or has_character(_CONTROL, text):
        yield from (match.start() for match in _UNSEEN.finditer(text))
    yield from (at for sign in _ESCAPES for at in find_places(sign, text))
