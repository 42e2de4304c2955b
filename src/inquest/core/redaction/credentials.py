"""Secrets known by their shape, whatever they are called: private keys, passwords in URLs, tokens of known form.

Pure functions, linear in the length of the text: every repetition is bounded, or cannot overlap its neighbour. Each
pattern runs only where a plain search has found a part of it: that is ten times faster than looking for all at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from inquest.core.redaction.mask import MARK, find_places, has_any, replace_spans
from inquest.core.text import PIECE, replace_in_pieces, search_in_pieces
from inquest.tables import read_table

# --- private keys -----------------------------------------------------------------------------------------

_PRIVATE: Final = r"(?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?"
_END: Final = rf"----[-\ ]END\ {_PRIVATE}[-\ ]----"
_BEGIN_OF_KEY: Final = re.compile(rf"----[-\ ]BEGIN\ {_PRIVATE}[-\ ]----", re.VERBOSE)
_END_OF_KEY: Final = re.compile(_END, re.VERBOSE)
_KEY_MATERIAL: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\\ \t\r\n")
_LONG_LINE: Final = re.compile(r"[A-Za-z0-9+/=]{16,}")
_LONGEST_TAIL: Final = 16_384
"""Longer than any private key: how far before an END without a BEGIN its lines are looked for."""


def _without_private_keys(text: str) -> str:
    """Blocks, cut at either end or whole; without an END, all that follows."""
    text = replace_spans(text, _whole_keys(text))
    ends = list(search_in_pieces(_END_OF_KEY, text))
    parts: list[str] = []
    done = 0
    for end in ends:
        start = _start_of_material(text, end.start(), done)
        parts += (text[done:start], MARK)
        done = end.end()
    return "".join((*parts, text[done:])) if parts else text


def _whole_keys(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for begin in search_in_pieces(_BEGIN_OF_KEY, text):
        if begin.start() >= done:
            end = next(search_in_pieces(_END_OF_KEY, text, at=begin.end()), None)
            done = end.end() if end else len(text)
            yield begin.start(), done


def _start_of_material(text: str, position: int, floor: int) -> int:
    """Where the lines begin that hold nothing but base64, before an END whose BEGIN was cut away."""
    floor = max(floor, position - _LONGEST_TAIL)
    start = position
    while start > floor and text[start - 1] in _KEY_MATERIAL:
        start -= 1
    first = _LONG_LINE.search(text, start, position)
    return first.start() if first else position - len(text[start:position].split(" ")[-1])


# --- URLs and other addresses --------------------------------------------------------------------------------

_AFTER_SCHEME: Final = re.compile(r"[^\s\"'<>`]{0,512}")
_PORT: Final = re.compile(r"\d{1,5}(?:[/?#,;)\]}]|\Z)")
_OPAQUE_USER: Final = re.compile(r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,256}")


def _without_url_passwords(text: str) -> str:
    """`scheme://user:password@`: the password; an opaque user of a URL without a password."""
    return replace_spans(text, (_in_url(text, at + 3) for at in find_places("://", text)))


def _in_url(text: str, position: int) -> tuple[int, int]:
    rest = _AFTER_SCHEME.match(text, position)
    if rest is None or "@" not in rest[0]:
        return (0, 0)
    start, end = _userinfo(rest[0])
    return (position + start, position + end) if start < end else (0, 0)


def _userinfo(rest: str) -> tuple[int, int]:
    """Span of the password (or the opaque user) in what follows `://`; empty when there is none."""
    user = re.split(r"[:/?#@]", rest, maxsplit=1)[0]
    sign, start = rest[len(user) : len(user) + 1], len(user) + 1
    if sign == "@" and _OPAQUE_USER.fullmatch(user):
        return (0, len(user))
    if sign != ":" or user.startswith("[") or rest.startswith("//", start) or _PORT.match(rest, start):
        return (0, 0)
    end = _end_of_password(rest, start)
    return (0, 0) if rest.startswith("@sha", end) or rest[start:end] == MARK else (start, end)


def _end_of_password(rest: str, start: int) -> int:
    """The last `@` before a slash; a password may hold slashes itself, then the `@` that follows them."""
    host = rest.find("/", start)
    end = rest.rfind("@", start, host if host >= 0 else len(rest))
    if end >= 0:
        return end
    first = rest.find("@", start)
    slash = rest.find("/", first)
    return rest.rfind("@", first, slash if slash >= 0 else len(rest))


_BEFORE_ADDRESS: Final = 320


def _without_dsn_passwords(text: str) -> str:
    """`user:password@tcp(host)` of Go, without a scheme."""
    hits = sorted([*find_places("@tcp(", text), *find_places("@unix(", text)])
    return replace_spans(text, (_in_dsn(text, at) for at in hits))


def _in_dsn(text: str, end: int) -> tuple[int, int]:
    words = re.split(r"[\s\"'`=]", text[max(0, end - _BEFORE_ADDRESS) : end])
    colon = words[-1].find(":")
    start = end - len(words[-1]) + colon + 1
    return (start, end) if colon >= 0 and start < end and text[start:end] != MARK else (0, 0)


_ORACLE: Final = re.compile(r"(?P<kept>:thin:[^\s/\"'@]{1,64}/)[^\s\"'@]{1,256}(?=@)")
_HOOK: Final = re.compile(
    r"(?P<kept>hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/\d{5,25}/"
    r"|webhook\.office\.com/webhookb2/)[A-Za-z0-9/_@-]{8,}"
)

# --- headers and clients ---------------------------------------------------------------------------------------

_BEARER: Final = re.compile(
    r"(?P<kept>\bbearer[ \t]+)(?!(?:token|authentication|authorization)\b)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE
)
_BASIC: Final = re.compile(r"(?P<kept>\b(?:[Bb]asic|BASIC)[ \t]+)(?![a-z]+\b(?![0-9A-Z+/=]))[A-Za-z0-9._~+/=-]{8,}")
_CLIENT: Final = re.compile(
    r"(?P<kept>\b(?:"
    r"(?:mysql(?:dump|admin|import|show|check)?|mariadb(?:-dump|-admin)?)\b[^\n|;&]{0,200}?[ \t]-p(?=\S)"
    r"|sshpass\b[^\n|;&]{0,200}?[ \t]-p[ \t]*(?=\S)"
    r"|(?:(?:docker|podman|helm|nerdctl|oc|az)\b[^\n|;&]{0,100}?[ \t]login|mongo(?:sh|dump|restore)?|cqlsh)\b"
    r"[^\n|;&]{0,200}?[ \t]-p[ \t]+(?=[^\s-])"
    r"|(?:redis-cli|keydb-cli|valkey-cli)\b[^\n|;&]{0,200}?[ \t]-a[ \t]+(?=\S)"
    r"|(?:sqlcmd|isql|bcp)\b[^\n|;&]{0,200}?[ \t]-P[ \t]*(?=\S)"
    r"|(?:ldap(?:search|add|modify|whoami|delete|passwd))\b[^\n|;&]{0,200}?[ \t]-w[ \t]*(?=[^\s-])"
    r"|(?:curl|wget|https?|smbclient)\b[^\n|;]{0,300}?[ \t](?:-u|--user|--proxy-user)[ \t=]*[\"']?"
    r"[^\s:\"'/]{1,128}:(?=[^\s/\"'])"
    r"))(?P<q>[\"']?)(?:(?<=\")[^\"\n]+|(?<=')[^'\n]+|[^\s\"']+)"
)
_CLIENTS: Final = (
    *("mysql", "mariadb", "sshpass", "docker", "podman", "helm", "nerdctl", "oc ", "az ", "mongo", "cqlsh", "-cli"),
    *("sqlcmd", "isql", "bcp", "ldap", "curl", "wget", "http", "smbclient"),
)
_CRYPT: Final = re.compile(
    r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|(?:1|5|6|y|7|apr1)\$[^\s\"'`]{8,160}|argon2(?:id?|d)\$[^\s\"'`]{8,256})"
)

# --- tokens ------------------------------------------------------------------------------------------------------

_FORMS: Final = read_table(__package__, "secrets.yaml")
_TOKEN: Final = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_FORMS['tokens'])})(?![A-Za-z0-9])")
_DOTTED: Final = _FORMS["dotted"]
"""Beginnings that end in a dot, which no run of token characters holds."""
_REST_OF_DOTTED: Final = re.compile(r"[A-Za-z0-9._\-]*")
_SHORT_HINTS: Final = (
    *(("sk-", 0), ("xox", 0), ("xapp-", 0), ("ghp_", 0), ("gho_", 0), ("ghs_", 0), ("ghu_", 0), ("glpat-", 0)),
    *(("eyJ", 0), ("_live_", 2), ("_test_", 2)),
)
"""Tokens that may be shorter than the runs that `encoded` looks at, and how far the hint stands from their begin."""
_AZURE: Final = re.compile(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])")


def _without_clients(text: str) -> str:
    return replace_in_pieces(_CLIENT, _kept_and_mark, text) if has_any(text, *_CLIENTS) else text


def _without_short_tokens(text: str) -> str:
    hits = sorted(at - back for hint, back in _SHORT_HINTS for at in find_places(hint, text) if at >= back)
    return replace_spans(text, _tokens_at(text, hits))


def _tokens_at(text: str, hits: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Spans of tokens of known form that begin at one of the hits."""
    done = 0
    for at in hits:
        match = _TOKEN.match(text, at) if at >= done else None
        if match:
            done = match.end()
            yield match.span()


def token_in(text: str, start: int, end: int) -> tuple[int, int]:
    """Span of a token of known form within a run of token characters, dots before it included."""
    if text[max(0, start - 7) : start].endswith(_DOTTED):
        rest = _REST_OF_DOTTED.match(text, start)
        return (start, rest.end() if rest else end)
    if end - start <= PIECE and _is_plain_digest(text[start:end]):
        return (0, 0)
    if (found := _token_between(text, start, end)) is not None:
        return found
    return (start, end) if text.startswith("AA", start) and _BOT.search(text, max(0, start - 11), start) else (0, 0)


def _token_between(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The first token of known form, looked for in pieces; one that reaches over an edge is read to its end."""
    for at in range(start, end, PIECE):
        match = _TOKEN.search(text, at, min(end, at + PIECE + _LONGEST_BEGIN))
        if match:
            whole = _TOKEN.match(text, match.start(), end)
            return (whole or match).span()
    return None


_LONGEST_BEGIN: Final = 1024
"""Characters of a token by which its form is known."""


def _is_plain_digest(run: str) -> bool:
    """Small letters and digits alone: of the known forms, one has neither a sign nor a capital."""
    return run.islower() and run.isalnum() and not run.startswith("dapi")


_BOT: Final = re.compile(r"(?<![0-9])[0-9]{8,10}:\Z")
"""The number of a bot before its token, as Telegram gives it."""


def _masking(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: replace_in_pieces(pattern, _kept_and_mark, text)


def _kept_and_mark(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return (groups.get("kept") or "") + (groups.get("q") or "") + MARK


RULES: Final[tuple[tuple[tuple[str, ...], Callable[[str], str]], ...]] = (
    (("PRIVATE KEY",), _without_private_keys),
    (("://",), _without_url_passwords),
    (("@tcp(", "@unix("), _without_dsn_passwords),
    ((":thin:",), _masking(_ORACLE)),
    (("hooks.slack.com/", "/api/webhooks/", "webhook.office.com/"), _masking(_HOOK)),
    (("earer", "EARER"), _masking(_BEARER)),
    (("asic ", "ASIC "), _masking(_BASIC)),
    ((" -",), _without_clients),
    (("$",), _masking(_CRYPT)),
    (tuple(hint for hint, _ in _SHORT_HINTS), _without_short_tokens),
    (("Q~",), _masking(_AZURE)),
)
"""What to look for, and what to do where it stands."""


def without_shapes(text: str) -> str:
    """Private keys, passwords in addresses, headers and commands, hashes of passwords, short tokens of known form."""
    for hints, rule in RULES:
        if has_any(text, *hints):
            text = rule(text)
    return text
