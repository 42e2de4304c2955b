"""Secrets that the words around them tell: statements of SQL, commands, parts of a form, lists, anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from inquest.core.redaction.keys import is_harmless, is_sensitive, says_passwords
from inquest.core.redaction.keyvalues import lower_plain
from inquest.core.redaction.mask import find_places, has_any, replace_spans
from inquest.core.text import search_in_pieces

_Span = tuple[int, int]

# --- SQL and protocols ----------------------------------------------------------------------------------------

_QUOTED: Final = r"(?:'(?P<single>(?:[^'\n]|'')+)'|\"(?P<double>[^\"\n]+)\")"
_PASSWORD: Final = re.compile(
    r"\bpassword(?:[ \t]{1,8}|[ \t]{0,8}[=(][ \t]{0,8})(?:\([ \t]{0,8})?"
    r"(?:[EN]?'(?P<single>(?:[^'\\\n]|''|\\[^\n])+)'|\$(?P<tag>\w{0,32})\$(?P<dollar>[^\n$]{1,512})\$(?P=tag)\$)",
    re.IGNORECASE,
)
_SET: Final = re.compile(r"\bset[ \t]{1,8}\Z", re.IGNORECASE)
_SET_PASSWORD: Final = re.compile(
    r"password[ \t]{0,8}(?:for[ \t]{1,8}[^\s=]{1,128}[ \t]{0,8})?=[ \t]{0,8}"
    rf"(?:(?:old_)?password[ \t]{{0,8}}\([ \t]{{0,8}})?(?:{_QUOTED}|(?P<bare>[^\s;\"',()]+))",
    re.IGNORECASE,
)
_BARE_PASSWORD: Final = re.compile(
    r"password[ \t]{1,8}"
    r"(?!(?:null|expire|history|reuse|require|never|default|interval|optional|lock|unlock|valid|set|verifier)\b)"
    r"(?P<bare>[^\s;\"'$(,=]+)",
    re.IGNORECASE,
)
_USER: Final = re.compile(r"\b(?:create|alter)[ \t]{1,8}(?:user|role)[ \t][^;\n]*[ \t]\Z", re.IGNORECASE)
"""`ALTER USER app PASSWORD x`: outside a statement about a user the word says nothing of the next one."""
_ANYTHING: Final = re.compile("")
_IDENTIFIED: Final = re.compile(
    r"\bidentified\s{1,8}(?:with\s{1,8}[\"'`]?\w{1,64}[\"'`]?\s{1,8})?(?:by|as)\s{1,8}(?:(?:password|values)\s{1,8})?"
    rf"(?:{_QUOTED}|(?P<bare>[^\s;\"',)]+))",
    re.IGNORECASE,
)
_STATEMENT: Final = re.compile(r"\b(?:create|alter|grant|set)\b", re.IGNORECASE)
_BEFORE: Final = 240
_COMMAND: Final = re.compile(r"\"(?:AUTH|auth|Auth)\"(?:[ \t]{1,4}\"(?P<double>[^\"\n]+)\"){1,2}")
_LINE: Final = r"(?:^|(?<=[>:»])[ \t]{0,4}|(?<=\\n)|(?<=['\"`]))"
"""Where a command may begin: a line, or behind the prompt of a client."""
_LINE_END: Final = r"(?=[ \t]*(?:\r?$|\\r|\\n|['\"`]))"
_TYPED: Final = re.compile(
    rf"{_LINE}(?:AUTH|auth)[ \t]{{1,4}}(?!(?:OK|ok|PLAIN|LOGIN|TLS|SSL|CRAM-MD5|failed|FAILED|error|ERROR)\b)"
    rf"(?:[\w.\-@]{{1,64}}[ \t]{{1,4}}(?=\S*[^\sa-z])|default[ \t]{{1,4}})?(?P<bare>[^\s\"'`\\\[]+){_LINE_END}"
    rf"|{_LINE}AUTH[ \t]{{1,4}}PLAIN[ \t]{{1,4}}(?P<plain>[A-Za-z0-9+/=]{{8,}}){_LINE_END}"
    rf"|{_LINE}PASS[ \t]{{1,4}}(?=\S*[^\sA-Za-z])(?P<pass>[^\s/\"'`\\\[(]+){_LINE_END}"
    r"|\bAUTH[ \t]{1,4}default[ \t]{1,4}(?=\S*[^\sA-Za-z])(?P<usual>[^\s\[\"'`\\]+)"
    r"|\bHELLO[ \t]{1,4}[0-9][ \t]{1,4}AUTH[ \t]{1,4}\S{1,128}[ \t]{1,4}(?P<hello>[^\s\[]+)"
    r"|\bAUTH(?:\r?\n|\\r\\n)(?:\$[0-9]{1,6}(?:\r?\n|\\r\\n)[^\r\n\\]{1,128}(?:\r?\n|\\r\\n)(?=\$))?"
    r"\$[0-9]{1,6}(?:\r?\n|\\r\\n)(?P<wire>[^\r\n\\\[]+)",
    re.MULTILINE,
)
"""Passwords as clients of Redis, SMTP, POP3, FTP and IRC type them, and as RESP carries them."""
_PIECE_OF_TYPED: Final = 8 * 1024
"""It may begin at nearly every character, and is slow."""
_INSIDE: Final = r"[^{}]{1,65536}"
_CONTENTS: Final = r"'(?:data|stringData|string_data)': \{"
_PRINTED: Final = re.compile(
    rf"\bData:map\[string\]\[\](?:byte|uint8)\{{(?P<bytes>{_INSIDE})\}}"
    rf"|\bStringData:map\[string\]string\{{(?P<text>{_INSIDE})\}}"
    r"|\b[Ss]ecret\b[^\n]{0,128}?\b[Dd]ata[^\w\n]{1,4}map\[(?!\w+\])"
    r"(?P<pairs>(?!\[REDACTED)(?:[^\[\]\n]|\[[0-9 ]{0,4096}\]){1,8192}+)\]"
    rf"|(?<='kind': 'Secret', )[^{{}}\n]{{0,256}}?{_CONTENTS}(?P<after>{_INSIDE})\}}"
    rf"|{_CONTENTS}(?P<before>{_INSIDE})\}}(?=[^{{}}\n]{{0,256}}'kind': 'Secret')"
)
"""The content of a Secret as Go prints it, bytes in decimal or a map, and as Python does."""
_USER_RULE: Final = re.compile(r"\bSETUSER[ \t]{1,4}[^\n]{1,512}", re.IGNORECASE)
_RULE_PASSWORD: Final = re.compile(r"(?<=[ \t][>#<])[^\s\[]+")


def without_statements(text: str) -> str:
    """`WITH PASSWORD '…'`, `IDENTIFIED BY …`, `SET PASSWORD = …`, and what clients type to log in."""
    lowered = lower_plain(text)
    if has_any(lowered, "password"):
        text = replace_spans(text, _passwords(_PASSWORD, text))
        text = replace_spans(text, _passwords(_SET_PASSWORD, text, behind=_SET))
        text = replace_spans(text, _passwords(_BARE_PASSWORD, text, behind=_USER))
    if has_any(lowered, "identified"):
        text = replace_spans(text, _identified(text))
    if has_any(text, "map[", "'Secret'"):
        text = replace_spans(text, _values_of(_PRINTED.finditer(text)))
    if has_any(lowered, "setuser"):
        text = replace_spans(text, _rules_of_users(text))
    if has_any(lowered, "auth") or has_any(text, "PASS"):
        text = replace_spans(text, _values_of(search_in_pieces(_COMMAND, text)))
        text = replace_spans(text, _values_of(search_in_pieces(_TYPED, text, piece=_PIECE_OF_TYPED)))
    return text


def _values_of(found: Iterator[re.Match[str]]) -> Iterator[_Span]:
    """The last group of each match, which is the value; one that says nothing stays."""
    for match in found:
        span = match.span(match.lastgroup or 0)
        if not is_harmless(match.string[slice(*span)]):
            yield span


def _rules_of_users(text: str) -> Iterator[_Span]:
    for rule in search_in_pieces(_USER_RULE, text):
        yield from (found.span() for found in _RULE_PASSWORD.finditer(text, *rule.span()))


def _passwords(pattern: re.Pattern[str], text: str, behind: re.Pattern[str] = _ANYTHING) -> Iterator[_Span]:
    """What stands at the word `password`, where that stands `behind` something.

    From word to word: a search through the whole text would hold up every other thread for as long as it takes.
    """
    for at in find_places("password", lower_plain(text)):
        match = pattern.match(text, at)
        if match and behind.search(text, max(0, at - _BEFORE), at) and not is_harmless(match[match.lastgroup or 0]):
            yield match.span(match.lastgroup or 0)


def _identified(text: str) -> Iterator[_Span]:
    """In a statement only: what is "identified by" something in a sentence is no secret."""
    for match in search_in_pieces(_IDENTIFIED, text):
        if match[0].startswith("IDENTIFIED") or _STATEMENT.search(text, max(0, match.start() - _BEFORE), match.start()):
            yield match.span(match.lastgroup or 0)


# --- parts of a form -------------------------------------------------------------------------------------------

_PART: Final = re.compile(r"form-data;[ \t]{0,8}name=\\?\"?(?P<key>[\w.\-\[\]]{1,128})")
_BLANK_LINE: Final = re.compile(r"(?:\r?\n|\\r\\n|\\n)(?:\r?\n|\\r\\n|\\n)")
_CONTENT: Final = re.compile(r"(?:[^\n\r\\]|\\(?![rn]))+")
_HEADERS: Final = 600
"""How many characters of further headers a part may have."""


def _in_forms(text: str) -> Iterator[_Span]:
    for part in search_in_pieces(_PART, text):
        blank = _BLANK_LINE.search(text, part.end(), part.end() + _HEADERS) if is_sensitive(part["key"]) else None
        content = _CONTENT.match(text, blank.end()) if blank else None
        if content and not is_harmless(content[0]):
            yield content.span()


# --- lists and anchors of YAML -------------------------------------------------------------------------------------

_LISTS: Final = (":\n", ":\r\n")
_HEAD: Final = re.compile(r"(?P<indent>[ \t]{0,80})(?:-[ \t]{1,8})?[\"']?(?P<key>[\w.\-]{1,128})[\"']?:\r?\n")
_ITEM: Final = re.compile(r"(?P<indent>[ \t]{0,80})-[ \t]{1,8}(?P<value>[^\s][^\n]*)")
_FIELD: Final = re.compile(r"(?P<indent>[ \t]{1,80})[\"']?[\w.\-@/]{1,128}[\"']?:[ \t]{1,8}(?P<value>[^\s][^\n]*)")
_ENTRY: Final = re.compile(r"[\"']?[\w.\-/]{1,128}[\"']?:(?:[ \t]|\Z)|[\[{|>*&-]")
"""What an item is that is no scalar: a map, a list, a block, an alias."""
_ALIAS: Final = re.compile(r"(?P<key>[\w.\-]{1,128})[\"']?:[ \t]{1,16}\*(?P<name>[\w\-]{1,64})")
_ANCHOR: Final = re.compile(r"(?<!\S)&(?P<name>[\w\-]{1,64})[ \t]{1,16}(?P<value>[^\s&*|>\[{][^\n]*)")


def without_listed(text: str) -> str:
    """Values of forms, items of a list under a sensitive key, and what an alias under one stands for."""
    if has_any(text, "form-data"):
        text = replace_spans(text, _in_forms(text))
    if has_any(text, *_LISTS):
        text = replace_spans(text, _items(text))
    return replace_spans(text, _anchored(text)) if has_any(text, ": *") and has_any(text, "&") else text


def _items(text: str) -> Iterator[_Span]:
    done = 0
    for at in sorted(at for sign in _LISTS for at in find_places(sign, text)):
        head = _HEAD.match(text, text.rfind("\n", done, at) + 1 or done) if at >= done else None
        if head and is_sensitive(head["key"]):
            several = says_passwords(head["key"]) and _FIELD.match(text, head.end()) is not None
            for item in _under(text, head, _FIELD if several else _ITEM):
                done = item.end()
                if _is_secret(item):
                    yield _inside(item)


def _under(text: str, head: re.Match[str], line: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The items of a list or the fields of a map under its key, line by line."""
    item = line.match(text, head.end())
    while item and item["indent"].startswith(head["indent"]):
        yield item
        item = line.match(text, item.end() + 1)


def _is_secret(item: re.Match[str]) -> bool:
    return not is_harmless(item["value"].strip("\"' \t\r")) and _ENTRY.match(item["value"]) is None


def _inside(match: re.Match[str]) -> _Span:
    """The value without its quotes."""
    start, end = match.span("value")
    value = match["value"].rstrip()
    end -= len(match["value"]) - len(value)
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return (start + 1, end - 1) if quoted else (start, end)


def _anchored(text: str) -> Iterator[_Span]:
    names = {found["name"] for found in search_in_pieces(_ALIAS, text) if is_sensitive(found["key"])}
    for found in search_in_pieces(_ANCHOR, text) if names else ():
        if found["name"] in names and not is_harmless(found["value"].strip("\"'")):
            yield _inside(found)


HINTS: Final = ("identified", "form-data", "auth", "setuser", "pass", "data:", "data ", "&")
"""What else begins here and no key says."""
