"""The text rules of the redactor (pipeline, section 17): what a secret looks like in plain text.

Pure functions, linear in the length of the text: every repetition is bounded, or cannot overlap its neighbour.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log2
from typing import Final

MARK: Final = "[REDACTED]"
WITHHELD: Final = "[withheld: redaction failed]"
REDACTED: Final = frozenset({MARK, WITHHELD})

# --- which keys are sensitive ---------------------------------------------------------------------

_WORDS: Final = frozenset(
    [
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "secret",
        "token",
        "apikey",
        "credential",
        "credentials",
        "authorization",
        "cookie",
        "dsn",
    ]
)
_PAIRS: Final = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("account", "key"), ("connection", "string")}
)
_TAILS: Final = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "secret",
    "token",
    "accesskey",
    "privatekey",
    "secretkey",
)
"""Ends of words written without a seam, such as `PGPASSWORD`."""
_FILES: Final = (".key", ".pem", ".p12", ".jks")
_REFERENCES: Final = frozenset(
    [
        "name",
        "names",
        "ref",
        "refs",
        "path",
        "file",
        "mount",
        "dir",
        "url",
        "uri",
        "kind",
        "type",
        "id",
        "seconds",
        "ttl",
        "expiry",
        "expiration",
        "policy",
        "class",
        "version",
        "length",
        "limit",
        "count",
        "enabled",
        "required",
    ]
)
"""Last words that say something about a secret rather than being one (the second half is Inquest's)."""
_WHOLE: Final = frozenset({"client-key-data", "sig", "signature", "x-amz-signature", "x-amz-credential"})
_SECRET_FILES: Final = frozenset({"htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
_SEAM: Final = re.compile(r"[\s_\-.]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_KEY: Final = 128


def is_sensitive(key: str) -> bool:
    """Whether a value under this key is a secret by its name alone."""
    lowered = key.strip("-").lower()
    if lowered in _WHOLE or is_secret_file(key) or lowered.endswith(_FILES):
        return True
    words = [word.lower() for word in _SEAM.split(key[-_LONGEST_KEY:]) if word]
    if not words or (words[-1] in _REFERENCES and words[-3:] != ["access", "key", "id"]):
        return False
    return any(word in _WORDS or word.endswith(_TAILS) for word in words) or _has_pair(words)


def is_secret_file(key: str) -> bool:
    """A key whose whole value is a file of secrets."""
    lowered = key.lower()
    return lowered in _SECRET_FILES or lowered in {".dockerconfigjson", ".dockercfg", ".netrc", ".pgpass"}


def _has_pair(words: list[str]) -> bool:
    if len(words) > 1 and words[-1] == "pass":
        return True
    return any(pair in _PAIRS for pair in pairwise(words))


# --- tokens known by their shape: one alternation, certificates first so that they pass -----------------

_SHAPES: Final = re.compile(
    r"(?P<public>-----BEGIN\ (?:X509\ |TRUSTED\ )?CERTIFICATE-----[A-Za-z0-9+/=\s\\]*-----END\ [A-Z0-9 ]*-----)"
    r"|(?P<pem>-----BEGIN\ (?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----"
    r"(?s:.*?)(?:-----END\ (?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z))"
    r"|(?P<url>://[^\s/:@\"'<>?\#]{0,256}:)"
    r"(?!\d{1,5}[/?\#])(?:[^\s\"'<>/]{1,256}|[^\s\"'<>]{1,256}?)(?=@)"
    r"|(?P<hook>hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]{8,}"
    r"|(?P<scheme>\b[Bb](?:earer|EARER)[ \t]+)(?!(?:token|authentication|authorization)\b)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<basic>\b(?:[Bb]asic|BASIC)[ \t]+)(?![a-z]+\b(?![0-9A-Z+/=]))[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<client>\b(?:mysql(?:dump|admin)?|mariadb(?:-dump)?|sshpass)\b[^\n|;&]{0,200}?[ \t]-p)(?=\S)[^\s\"']+"
    r"|(?<![A-Za-z0-9])(?P<token>"
    r"sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|gl(?:pat|dt|rt|cbt|soat)-[A-Za-z0-9_-]{8,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{4,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*|ya29\.[A-Za-z0-9_-]{16,}"
    r"|(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{16,}"
    r"|hf_[A-Za-z0-9]{16,}|hvs\.[A-Za-z0-9_-]{16,}|glsa_[A-Za-z0-9_]{16,}|dop_v1_[a-f0-9]{32,}|dckr_pat_[A-Za-z0-9_-]{16,}"
    r"|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"
    r")",
    re.VERBOSE,
)
_HINTS_OF_SHAPE: Final = (
    "-----BEGIN",
    "://",
    "hooks.slack",
    "earer",
    "EARER",
    "asic",
    "BASIC",
    "-p",
    *[
        "sk-",
        "gh",
        "_pat_",
        "gl",
        "xox",
        "xapp-",
        "AKIA",
        "ASIA",
        "AIza",
        "eyJ",
        "ya29.",
        "_live_",
        "_test_",
        "whsec_",
        "npm_",
        "pypi-",
        "hf_",
        "hvs.",
        "dop_v1_",
    ],
    *["shp", "SG.", "AGE-SECRET", ":AA"],
)


def without_shapes(text: str) -> str:
    """Private keys, passwords in URLs, schemes with a token, tokens of known form."""
    return _SHAPES.sub(_masked_shape, text) if any(hint in text for hint in _HINTS_OF_SHAPE) else text


def _masked_shape(match: re.Match[str]) -> str:
    kept = match.lastgroup or ""
    if kept == "public":
        return match[0]
    return MARK if kept in {"pem", "token"} else match[kept] + MARK


# --- key and value ----------------------------------------------------------------------------------------

_HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "credential", "authorization", "cookie", "dsn", "string", "sig"),
    *("api key", "access key", "private key", "account key", "connection string"),
    *(".pem", ".p12", ".jks", ".dockerc", ".netrc", ".pgp", "id_rsa", "id_dsa", "id_ec", "id_ed"),
)
"""A part of every sensitive key; found by plain search, because a pattern in any case is ten times slower."""
_REST_OF_KEY: Final = re.compile(r"[\w.\-]{0,96}", re.ASCII)
_SEPARATOR: Final = re.compile(r"\\?[\"']?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,64}|[ \t]{1,8}(?=[^\s=:])")
_VALUE: Final = re.compile(
    r"(?P<q>\\?[\"'`])(?P<quoted>(?:(?!(?P=q))[^\n])*)(?P=q)|(?P<plain>(?:[^\s,;&\"'\\]|\\(?![nrt\"']))+|[\"'\\][^\s,;&]*)"
)
_PLAIN_STRING: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"")
_IN_DSN: Final = re.compile(r"[^;\n\"']+")
_REST_OF_LINE: Final = re.compile(r"[^\n]+")
_QUOTED_REST: Final = {quote: re.compile(rf"(?:[^\n\\{quote}]|\\[^\n])+") for quote in "\"'"}
_HARMLESS: Final = re.compile(
    r"true|false|null|none|nil|~|undefined|\$\([A-Za-z_]\w*\)|\$\{[A-Za-z_]\w*\}|\{\{[^}]*\}\}|\{{1,2}|\{\}|\[\]?"
    r"|[|>][-+0-9]*|\[REDACTED\][)\]}>.]*",
    re.IGNORECASE,
)
_PROSE_KEYS: Final = frozenset({"token", "secret", "cookie", "credential", "credentials"})
_PROSE: Final = re.compile(
    r":[ ](?:serviceaccounts?|configmaps?|failed|failure|error|invalid|unexpected|unable|cannot|could|couldn't|timed"
    r"|context|the|no|not|missing|expired|is|was|rpc|unknown|request|Get|Post|dial|connection)[ ](?=\S)"
)
"""`failed to fetch token: serviceaccount "x" not found` says what failed; closed, since a word can be a secret."""
_KEY_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LINE_KEYS: Final = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})


def without_values(text: str) -> str:
    """Values under sensitive keys: `key=value`, `key: value`, `"key": "value"`, `--key value`, query strings."""
    parts: list[str] = []
    position = done = 0
    for start, end in _hints(text):
        if start < position:
            continue
        span = _secret_after(text, start, end)
        position = max(end, span[1])
        if span[0] < span[1]:
            parts += (text[done : span[0]], MARK)
            done = span[1]
    return "".join((*parts, text[done:])) if parts else text


def _hints(text: str) -> list[tuple[int, int]]:
    """Spans of the hints in order, the longer first; the dotted capital I alone grows in lower case."""
    lowered = text.replace("\u0130", "I").lower()
    found = [(at, at + len(word)) for word in _HINTS if word in lowered for at in _places(word, lowered)]
    return sorted(found, key=lambda span: (span[0], -span[1]))


def _places(word: str, text: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _secret_after(text: str, hint: int, hint_end: int) -> tuple[int, int]:
    """Span of the value that belongs to the key around this hint; empty when there is none."""
    start = _start_of_key(text, hint)
    end = _end_of(_REST_OF_KEY, text, hint_end)
    separator = _SEPARATOR.match(text, end)
    if separator is None:
        return (0, 0)
    key = text[start:end]
    if not _separates(key, separator[0]) or not is_sensitive(key):
        return (0, 0)
    return _value_span(text, separator.end(), start=start, key=key)


def _start_of_key(text: str, position: int) -> int:
    floor = max(0, position - _LONGEST_KEY)
    while position > floor and text[position - 1] in _KEY_CHARACTERS:
        position -= 1
    return position


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _separates(key: str, separator: str) -> bool:
    return bool(separator.strip(" \t\"'\\")) or key.startswith("--")


def _value_span(text: str, position: int, *, start: int, key: str) -> tuple[int, int]:
    if key.lower() in _LINE_KEYS and text[position : position + 1] not in ('"', "'", "\\"):
        return _rest_of_line(text, position, start)
    if text[start - 1 : start] == ";" or text[max(0, start - 2) : start] == "; ":
        return _unless_harmless(text, position, _end_of(_IN_DSN, text, position))
    match = _PLAIN_STRING.match(text, position)
    if match:
        return _unless_harmless(text, match.start() + 1, match.end() - 1)
    match = _VALUE.match(text, position)
    if match is None:
        return (0, 0)
    if match["q"]:
        return _unless_harmless(text, *match.span("quoted"))
    if match[0].startswith(MARK):
        return _unless_harmless(text, *match.span())
    if key.lower() in _PROSE_KEYS and _PROSE.match(text, position - 2):
        return (0, 0)
    brackets = len(match[0]) - len(match[0].rstrip("])}")) if text[position - 3 : position].count('"') else 0
    return _unless_harmless(text, match.start(), match.end() - brackets)


def _rest_of_line(text: str, position: int, start: int) -> tuple[int, int]:
    """All of it, even after a marker, so that a line of many headers is masked in one step."""
    end = _end_of(_QUOTED_REST.get(text[start - 1 : start], _REST_OF_LINE), text, position)
    return (position, end) if text[position:end].strip() not in {"", MARK} else (0, 0)


def _unless_harmless(text: str, start: int, end: int) -> tuple[int, int]:
    value = text[start:end].strip()
    if not value or value in REDACTED or _HARMLESS.fullmatch(value):
        return (0, 0)
    return (start, end)


# --- blocks of YAML -------------------------------------------------------------------------------------------

_BLOCK: Final = re.compile(
    r"^(?P<head>(?P<indent>[ \t]*)(?:-[ \t]+)?[\"']?(?P<key>[\w.\-]{1,128})[\"']?:[ \t]*[|>][-+0-9]{0,2}[ \t]*\n)"
    r"(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+)",
    re.MULTILINE,
)
_ENV_PAIR: Final = re.compile(
    r"^(?P<head>[ \t]*(?:-[ \t]+)?name:[ \t]*[\"']?(?P<key>[\w.\-]{1,128})[\"']?[ \t]*\n"
    r"[ \t]+value:[ \t]*)(?P<value>[^\n]+)",
    re.MULTILINE,
)


def without_blocks(text: str) -> str:
    """Block scalars under sensitive keys, and env entries written over two lines."""
    if "\n" not in text or ":" not in text:
        return text
    if ": |" in text or ": >" in text or ":|" in text:
        text = _BLOCK.sub(_masked_block, text)
    return _ENV_PAIR.sub(_masked_pair, text) if "value:" in text else text


def _masked_block(match: re.Match[str]) -> str:
    body = match["body"]
    if not is_sensitive(match["key"]) or body.strip() in REDACTED:
        return match[0]
    return f"{match['head']}{match['indent']}  {MARK}" + ("\n" if body.endswith("\n") else "")


def _masked_pair(match: re.Match[str]) -> str:
    value = match["value"].strip("\"' \r")
    if not is_sensitive(match["key"]) or value in REDACTED or not value:
        return match[0]
    return f'{match["head"]}"{MARK}"'


# --- opaque and encoded text ----------------------------------------------------------------------------------

_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/_\-]{20,}={0,2}")
_PERCENT: Final = re.compile(r"(?:[A-Za-z0-9._~+\-]|%[0-9A-Fa-f]{2}){12,}")
_MIN_ENTROPY: Final = 4.3
"""Bits for each character; random base64 of 40 characters has 4.9, identifiers and prose stay below 4."""
_MIN_OPAQUE: Final = 40
_DIGEST_BEFORE: Final = re.compile(r"(?:sha(?:1|224|256|384|512)[-:]|\bh1:)$", re.IGNORECASE)
_DIGEST: Final = re.compile(r"sha(?:1|224|256|384|512)-", re.IGNORECASE)


def without_opaque(text: str, is_clean: Callable[[str], bool | None]) -> str:
    """Long tokens that hide a secret when decoded, or look random; `is_clean` is None for what does not decode."""

    def masked(match: re.Match[str]) -> str:
        verdict = is_clean(match[0])
        hides = verdict is False or (verdict is None and _is_random(match))
        return MARK if hides else match[0]

    parts: list[str] = []
    done = 0
    for public in _PUBLIC.finditer(text):
        parts += (_OPAQUE.sub(masked, text[done : public.start()]), public[0])
        done = public.end()
    return "".join((*parts, _OPAQUE.sub(masked, text[done:])))


_PUBLIC: Final = re.compile(
    r"-----BEGIN (?:X509 |TRUSTED )?(?:CERTIFICATE|PUBLIC KEY)-----[A-Za-z0-9+/=\s\\]*-----END [A-Z0-9 ]*-----"
)


def without_percent(text: str, is_clean: Callable[[str], bool | None]) -> str:
    """URL-encoded runs that hide a secret when decoded."""
    if "%" not in text:
        return text
    return _PERCENT.sub(lambda match: MARK if "%" in match[0] and is_clean(match[0]) is False else match[0], text)


def _is_random(match: re.Match[str]) -> bool:
    token = match[0]
    if len(token) < _MIN_OPAQUE or token.count("/") > len(token) / 16 or _DIGEST.match(token):
        return False
    kinds = Counter("d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "o" for c in token)
    if kinds["d"] < 3 or kinds["u"] < 4 or kinds["l"] < 4 or _entropy(token) < _MIN_ENTROPY:
        return False
    return not _DIGEST_BEFORE.search(match.string, max(0, match.start() - 8), match.start())


def _entropy(token: str) -> float:
    total = len(token)
    return -sum(count / total * log2(count / total) for count in Counter(token).values())
