"""Values under sensitive keys in plain text: key and value in every usual spelling.

A plain search finds what every sensitive key holds a part of; only there the text is looked at more closely. Each look
is bounded, so that the work grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from inquest.core.redaction.encoded import decode_token
from inquest.core.redaction.keys import LONGEST_KEY, is_harmless, is_sensitive, plain_letters, says_password
from inquest.core.redaction.mask import MARK, STRETCH, find_places, has_any, replace_spans
from inquest.core.text import has_character, pieces_of

HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "credential", "auth", "cookie", "dsn", "string", "sig", "sess", ".sid"),
    *(".pem", ".p12", ".jks"),
)
"""A part of every sensitive key; found by plain search, because a pattern in any case is ten times slower."""
_LONGEST_HINT: Final = max(map(len, HINTS))

_Span = tuple[int, int]
_NONE: Final = (0, 0)
_REST_OF_KEY: Final = r"[\w.\-]{0,96}+"
_QUOTE: Final = r"\\{0,7}[\"'`]"
_AFTER: Final = re.compile(
    rf"(?P<rest>{_REST_OF_KEY})(?:"
    rf"(?P<sign>(?:{_QUOTE})?(?:(?:\[[\w\-]{{0,32}}\]){{1,4}}|[\])])?[ \t]{{0,16}}\\?(?:=>|:=|[:=])[ \t]{{0,64}})"
    rf"|(?P<field>(?:{_QUOTE})?[\s,;]{{1,32}}(?:{_QUOTE})?(?i:value)(?:{_QUOTE})?[ \t]{{0,8}}(?:=>|[:=])[ \t]{{0,64}})"
    rf"|(?P<next>(?:{_QUOTE}),\s{{0,32}}(?:{_QUOTE}))(?=[^\s\-])"
    rf"|(?P<element>(?:{_QUOTE})?[^<>\n]{{0,64}}>\s{{0,32}}(?P<cdata><!\[CDATA\[)?)(?=[^<\s])"
    r"|(?P<blank>[ \t]{1,8})(?=[^\s=:<>])"
    r")",
    re.ASCII,
)
_NAME_FIELD: Final = re.compile(rf"(?:name|key)(?:{_QUOTE})?[ \t]{{0,8}}(?:=>|[:=])[ \t]{{0,8}}(?:{_QUOTE})?\Z", re.I)
_VALUE: Final = re.compile(
    rf"(?P<q>{_QUOTE})(?P<quoted>(?:(?!(?<!\\)(?P=q))[^\n])*)(?<!\\)(?P=q)"
    r"|(?P<open>\\{0,7}[\"'`])(?P<cut>[^\n]*)"
    r"|(?P<plain>(?:[^\s,;&\"'\\]|\\(?![nrt\"']))+|\\[^\s,;&]*)"
)
_PLAIN_STRING: Final = re.compile(r"\"(?P<inside>(?:[^\"\\\n]|\\.)*)\"")
_IN_DSN: Final = re.compile(r"[^;\n\"']+")
_ELEMENT: Final = re.compile(r"[^<\n]+(?=\s{0,32}</)")
_IN_LIST: Final = re.compile(r"\[[ \t]*\"(?P<items>[^\]\n]{0,512})\"[ \t]*\]")
_CDATA: Final = re.compile(r"(?:[^\]]|\](?!\]>))+")
_FLOW_LIST: Final = re.compile(r"\[(?!REDACTED\])(?P<items>[^\[\]\n\"'{]{1,512})\]")
_NODE: Final = re.compile(r"(?:(?:&[\w\-]{1,64}|!{1,2}[\w/:.\-]{0,64})[ \t]{1,16}){1,2}")
"""Anchor and tag of a value in YAML."""
_RESULT: Final = re.compile(r"[ :=](?:\d{1,6}\b|(?<= )[A-Z]\w*[ \t]+\(\d)")
"""How many tests passed, and which."""
_TRIPLE: Final = re.compile(r"(?P<q>\"{3}|'{3})(?P<inside>[^\n\"']+)(?P=q)")
_SINGLE: Final = re.compile(r"'(?P<inside>(?:[^'\\\n]|''|\\[^\n]|'\\''|'\"'\"')*+)'(?!')")
_REST_OF_LINE: Final = re.compile(r"[^\n]+")
_QUOTED_REST: Final = {quote: re.compile(rf"(?:[^\n\\{quote}]|\\[^\n])+") for quote in "\"'"}
_NEXT_LINE: Final = re.compile(
    r"(?:\\|\\n)?\r?\n(?P<indent>[ \t]+)"
    r"(?P<value>\"[^\"\n]+\"|'[^'\n]+'|(?!-[ \t])[^\s:#\[{\"'][^\s:#]*(?=[ \t]*(?:\n|\Z)))"
)
_PROMPT_LINE: Final = re.compile(r"\r?\n(?P<value>(?=[^\n]*[^A-Za-z\s])[^\s:#=\[{<\"'>|]+)(?=[ \t]*(?:\r?\n|\Z))")
"""What was typed at a prompt, and echoed: a password has more than letters."""
_WHOLE_LINE: Final = re.compile(r"[^\s\"'#{\[|>&*][^\n#]*?(?=[ \t]*(?:\n|\Z|[ \t]#))")
_WORD_LINE: Final = re.compile(r"[^\s\"'#]+(?=[ \t]*(?:\n|\Z))")
_PAIR: Final = re.compile(r"[\w.\-]{1,64}=[^=\s]")
"""After a blank: the value was empty, and this is the next key."""
_NEXT_PAIR: Final = re.compile(r"[,;&][ \t]*[\w.\-]{1,64}[ \t]*[=:]")
_PROSE_KEYS: Final = frozenset({"token", "secret", "cookie", "credential", "credentials"})
_PROSE: Final = re.compile(
    r":[ ](?:serviceaccounts?|configmaps?|secrets?|failed|failure|error|errors|invalid|unexpected|unable|cannot|could"
    r"|couldn't|timed|context|the|no|not|missing|expired|is|was|rpc|unknown|request|Get|Post|dial|connection|denied"
    r"|unauthorized|forbidden|permission|access|malformed|signature|illegal|unsupported|verification|parse|parsing|http"
    r"|status|server):?[ ](?=\S)"
)
"""`failed to fetch token: serviceaccount "x" not found` says what failed; closed, since a word can be a secret."""
_KEY_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LINE_KEYS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_PASSWORD_KEY: Final = re.compile(r"(?:password|passwd|passphrase|pwd)\Z", re.I)
_DIRECTIVES: Final = frozenset({"requirepass", "masterauth", "auth_pass"})
"""Keys of configuration files whose value follows after a blank."""
_LOGIN: Final = re.compile(r"\blogin[ \t]+\S{1,128}\s{1,8}\Z")
_ANNOTATION: Final = re.compile(r"(?:^|\n|[ \t]{2})[ \t]*[\"']?[a-z0-9][a-z0-9.\-]*\.[a-z0-9.\-]+/\Z")
_BASE64_PAIR: Final = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_WORKING_DIRECTORY: Final = frozenset({"PWD", "OLDPWD"})


def without_values(text: str) -> str:
    """Values under sensitive keys: `key=value`, `key: value`, `"key": "value"`, `--key value`, query strings."""
    shown, where = _without_hidden(text)
    spans = _spans(shown)
    if where:
        spans = ((where[start], where[end - 1] + 1) for start, end in spans if start < end)
    return replace_spans(text, spans)


def hints_in(lowered: str) -> Iterator[_Span]:
    """Spans of the hints in order, the longer first."""
    for start in range(0, len(lowered), STRETCH):
        part = lowered[start : start + STRETCH + _LONGEST_HINT - 1]
        hits = ((start + at, word) for word in HINTS for at in find_places(word, part) if at < STRETCH)
        yield from sorted(((at, at + len(word)) for at, word in hits), key=lambda span: (span[0], -span[1]))


def lower_plain(text: str) -> str:
    """In lower case and plain letters, of the same length: the dotted capital I alone grows in lower case."""
    if text.isascii():
        return text.lower()
    return "".join(piece.lower() for piece in pieces_of(plain_letters(text).replace("\u0130", "I")))


_HIDDEN: Final = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]")


def _without_hidden(text: str) -> tuple[str, Sequence[int]]:
    """The text without characters that nobody sees, and where each of the others stood; empty: all are there."""
    if text.isascii() or not has_character(_HIDDEN, text):
        return text, ()
    where = [at for at, char in enumerate(text) if not _HIDDEN.match(char)]
    return "".join(_HIDDEN.sub("", piece) for piece in pieces_of(text)), where


def _spans(text: str) -> Iterator[_Span]:
    plain, position = plain_letters(text), 0
    for start, end in hints_in(lower_plain(text)):
        if start < position:
            continue
        span = _secret_after(plain, start, end)
        position = max(end, span[1])
        yield span


def _secret_after(text: str, hint: int, hint_end: int) -> _Span:
    """Span of the value that belongs to the key around this hint; empty when there is none."""
    after = _AFTER.match(text, hint_end)
    if after is None:
        return _NONE
    start = _start_of_key(text, hint)
    key = text[start : after.end("rest")]
    if not _belongs(text, start, key, after) or not _is_secret_key(text, key, after):
        return _NONE
    return _value_span(text, after, start=start, key=key)


def _start_of_key(text: str, position: int) -> int:
    floor = max(0, position - LONGEST_KEY)
    while position > floor and text[position - 1] in _KEY_CHARACTERS:
        position -= 1
    return position


def _belongs(text: str, start: int, key: str, after: re.Match[str]) -> bool:
    """Whether what follows the key is its value: a sign, a flag's blank, an element, a field beside its name."""
    if after["sign"]:
        return not (_is_annotation(text, start, after) or _is_image(text, start, after))
    if after["field"]:
        return _NAME_FIELD.search(text, max(0, start - 32), start) is not None
    if after["next"]:
        return key.startswith("-")
    if after["element"]:
        return (
            "<" in text[max(0, start - 40) : start]
            and (after["cdata"] or _ELEMENT.match(text, after.end())) is not None
        )
    if key.startswith("-"):
        return len(key) > 3
    if text.endswith("configure set ", 0, start):
        return True
    return key.lower() in _DIRECTIVES or (key == "password" and bool(_LOGIN.search(text, max(0, start - 160), start)))


def _is_annotation(text: str, start: int, after: re.Match[str]) -> bool:
    """`vault.example.com/agent-inject-token: x`: names of annotations say nothing about their values."""
    if text[start - 1 : start] != "/" or ":" not in after["sign"] or says_password(text[start : after.end("rest")]):
        return False
    return _ANNOTATION.search(text, max(0, start - 255), start) is not None


def _is_image(text: str, start: int, after: re.Match[str]) -> bool:
    """`shop/token:1.2`: the last part of a path with a tag or a port."""
    return text[start - 1 : start] == "/" and after["sign"] == ":"


def _is_secret_key(text: str, key: str, after: re.Match[str]) -> bool:
    if is_sensitive(key):
        return True
    return key.lower() == "auth" and _is_pair_in_base64(text, after.end())


def _is_pair_in_base64(text: str, position: int) -> bool:
    match = _BASE64_PAIR.match(text, position + text.startswith(('"', "'"), position))
    return match is not None and ":" in (decode_token(match[0]) or "")


def _is_no_secret(text: str, position: int, key: str) -> bool:
    """A working directory, or the result of a test: keys that mean two things."""
    if key in _WORKING_DIRECTORY:
        return text.startswith("/", position)
    return key.lower() == "pass" and _RESULT.match(text, position - 1) is not None


def _is_in_dsn(text: str, start: int, key: str) -> bool:
    """Behind a semicolon, where only the next one ends a value; a session in a path ends as a word does."""
    return text[max(0, start - 2) : start].rstrip(" ").endswith(";") and "sess" not in key.lower()


_QUOTED: Final = (
    (_TRIPLE, "inside"),
    (_PLAIN_STRING, "inside"),
    (_SINGLE, "inside"),
    (_IN_LIST, "items"),
    (_FLOW_LIST, "items"),
)


def _value_span(text: str, after: re.Match[str], *, start: int, key: str) -> _Span:
    position = after.end()
    if after["sign"] and ":" in after["sign"]:
        position = _end_of(_NODE, text, position)
    if after["element"]:
        return _unless_harmless(text, position, _end_of(_CDATA if after["cdata"] else _ELEMENT, text, position))
    if key.lower() in _LINE_KEYS and text[position : position + 1] not in ('"', "'", "\\"):
        return _rest_of_line(text, position, start)
    if _is_in_dsn(text, start, key) and text[position : position + 1] not in "\"'":
        return _unless_harmless(text, position, _end_of(_IN_DSN, text, position))
    if after["sign"] and after["sign"][-1] in " \t" and _PAIR.match(text, position):
        return _NONE
    if _is_no_secret(text, position, key):
        return _NONE
    if after["next"]:
        position -= 1
    for pattern, group in _QUOTED:
        match = pattern.match(text, position)
        if match:
            return _unless_harmless(text, *match.span(group))
    return _at_line_start(text, after, start, key) or _plain_value(text, after, key, position)


_DEEPEST: Final = 80
"""How far a key that begins a line may be indented."""


def _at_line_start(text: str, after: re.Match[str], start: int, key: str) -> _Span | None:
    """Lines of a file that are one key and one value: what a sentence would end does not end it here."""
    position = after.end()
    line = text.rfind("\n", max(0, start - _DEEPEST), start) + 1
    if not line and start > _DEEPEST:
        return None
    if not after["sign"] or text[line:start].strip(" \t-\"'") not in {"", "export", "set", "ENV"}:
        return None
    if text.startswith(("\n", "\\\n", "\r\n"), position):
        prompt = _PROMPT_LINE.match(text, position) if _PASSWORD_KEY.search(key) else None
        typed = _unless_harmless(text, *prompt.span("value")) if prompt else None
        return _on_next_line(text, position, start - line) or typed
    if ":" in after["sign"] and _PASSWORD_KEY.search(key):
        return _whole(_WHOLE_LINE.match(text, position), text)
    match = _WORD_LINE.match(text, position)
    return None if match is None or _NEXT_PAIR.search(match[0]) else _whole(match, text)


def _on_next_line(text: str, position: int, indent: int) -> _Span | None:
    match = _NEXT_LINE.match(text, position)
    if match is None or len(match["indent"]) <= indent:
        return None
    quoted = match["value"][0] in "\"'"
    return _unless_harmless(text, match.start("value") + quoted, match.end("value") - quoted)


def _whole(match: re.Match[str] | None, text: str) -> _Span | None:
    if match is None or match[0].startswith("\\"):
        return None
    return _unless_harmless(text, *match.span())


def _plain_value(text: str, after: re.Match[str], key: str, position: int) -> _Span:
    match = _VALUE.match(text, position)
    if match is None:
        return _NONE
    if match["q"]:
        return _unless_harmless(text, *match.span("quoted"))
    if match["open"]:
        return _unless_harmless(text, *match.span("cut"))
    if text.startswith("<set to the key", position):
        return _NONE
    if key.lower() in _PROSE_KEYS and _PROSE.match(text, position - 2):
        return _NONE
    if match[0].startswith(MARK):
        return _unless_harmless(text, *match.span())
    brackets = len(match[0]) - len(match[0].rstrip("])}")) if '"' in text[position - 3 : position] else 0
    return _unless_harmless(text, match.start(), match.end() - brackets)


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _rest_of_line(text: str, position: int, start: int) -> _Span:
    """All of it, even after a marker, so that a line of many headers is masked in one step."""
    end = _end_of(_QUOTED_REST.get(text[start - 1 : start], _REST_OF_LINE), text, position)
    return (position, end) if text[position:end].strip() not in {"", MARK} else _NONE


def _unless_harmless(text: str, start: int, end: int) -> _Span:
    return _NONE if is_harmless(text[start:end]) else (start, end)


# --- blocks of YAML -------------------------------------------------------------------------------------------

_BLOCK: Final = re.compile(
    r"^(?P<head>(?P<indent>[ \t]*)(?:-[ \t]+)?[\"']?(?P<key>[\w.\-]{1,128})[\"']?:[ \t]*[|>][-+0-9]{0,2}[ \t]*\n)"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)",
    re.MULTILINE,
)
_BLOCK_SIGNS: Final = (": |", ": >", ":|", ":>")
_BLOCK_PAIR: Final = re.compile(
    r"^(?P<head>[ \t]*(?:-[ \t]+)?name:[ \t]*[\"']?(?P<key>[\w.\-]{1,128})[\"']?[ \t]*\n"
    r"(?P<indent>[ \t]+)value:[ \t]*[|>][-+0-9]{0,2}[ \t]*\n)"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)",
    re.MULTILINE,
)
_LISTED_FLAG: Final = re.compile(
    r"^(?P<head>[ \t]*-[ \t]+[\"']?(?P<key>--?[\w.\-]{1,128})[\"']?[ \t]*\n[ \t]*-[ \t]+)(?P<value>[^\s|>\-][^\n]*)",
    re.MULTILINE,
)
_ENV_PAIR: Final = re.compile(
    r"^(?P<head>[ \t]*(?:-[ \t]+)?(?:name|key):[ \t]*[\"']?(?P<key>[\w.\-]{1,128})[\"']?[ \t]*\n[ \t]+value:[ \t]*)"
    r"(?P<value>[^\s|>][^\n]*)",
    re.MULTILINE,
)
_VALUE_FIRST: Final = re.compile(
    r"^(?P<head>[ \t]*(?:-[ \t]+)?value:[ \t]*)(?P<value>[^\s|>][^\n]*)"
    r"(?=\n[ \t]+name:[ \t]*[\"']?(?P<key>[\w.\-]{1,128})[\"']?[ \t]*(?:\n|\Z))",
    re.MULTILINE,
)


def without_blocks(text: str) -> str:
    """Block scalars, env entries over two lines in either order, and values behind a flag in a list of arguments."""
    if not has_any(text, "\n"):
        return text
    if has_any(text, "- -", '- "-'):
        text = _LISTED_FLAG.sub(_masked_value, text)
    if not has_any(text, ":"):
        return text
    if has_any(text, *_BLOCK_SIGNS):
        text = _BLOCK_PAIR.sub(_masked_block, _BLOCK.sub(_masked_block, text))
    if not has_any(text, "value:"):
        return text
    return _VALUE_FIRST.sub(_masked_value, _ENV_PAIR.sub(_masked_value, text))


def _masked_block(match: re.Match[str]) -> str:
    body = match["body"]
    if not is_sensitive(match["key"]) or body.strip() in {"", MARK}:
        return match[0]
    return f"{match['head']}{match['indent']}  {MARK}" + ("\n" if body.endswith("\n") else "")


def _masked_value(match: re.Match[str]) -> str:
    value = match["value"].strip("\"' \r")
    if not is_sensitive(match["key"]) or is_harmless(value):
        return match[0]
    return f'{match["head"]}"{MARK}"'
