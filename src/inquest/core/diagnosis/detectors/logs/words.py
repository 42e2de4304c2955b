"""What application logs say, in many languages: the words of `complaints.yaml`, and the endpoint or name beside them.

A line is cut before it is matched and every pattern is linear: a log is data that anybody may write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Final

from inquest.tables import alternatives, read_table

MAX_LINE: Final = 600
"""Characters of a line that are read."""
MAX_LINES: Final = 200
"""Lines that are read, the last ones."""
_NEAR: Final = 3
"""Lines around a word in which its endpoint may stand: clients print the address before or after the error."""

_STAMP: Final = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? |\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? )"
)
_HOST: Final = r"(?<![\w.-])[A-Za-z0-9_][\w.-]{0,120}"
"""A host begins at a seam, so that a long word is tried once."""
_PATH: Final = r"/[\w./@+-]+"
_NO_NAMES: Final = (
    r"(?:all|type|service|symbol|module|import|class|plugin|component|view|bean)s?(?![\w.-])|(?:dependenc|propert)"
)
"""What a program resolves that is no host."""


@dataclass(frozen=True)
class LogRule:
    """One kind of trouble: `hints` are looked for first, as lower-case text, because that is cheap."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class LogFinding:
    """One line that says what is wrong; `named` holds what the pattern picked out of it or of the lines near it."""

    kind: str
    line: str
    index: int
    rank: int
    named: dict[str, str] = dataclass_field(default_factory=dict)
    whole: bool = True
    """Whether the line names who was called by itself."""


_WORDS: Final = read_table(__package__, "complaints.yaml")


def _compiled(says: Iterable[str], flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return re.compile(alternatives(says, HOST=_HOST, PATH=_PATH, NO_NAMES=_NO_NAMES), flags)


ROWS: Final = tuple(
    LogRule(
        row["kind"],
        tuple(row["hints"]),
        _compiled(row["says"], re.NOFLAG if row.get("case") == "as written" else re.IGNORECASE),
    )
    for row in _WORDS["complaints"]
)
_ENDPOINTS: Final = tuple(_compiled((pattern,)) for pattern in _WORDS["endpoints"])
_NO_HOSTS: Final = frozenset(_WORDS["no_hosts"])
RANKS: Final = {row.kind: rank for rank, row in enumerate(ROWS)}

_HOSTS: Final = ("host", "node", "curl", "pg", "java", "mysql", "nginx", "busybox", "looked", "any", "dig", "apt")
"""Groups that hold the name of a host: no two of an expression can have one name."""
_LEARN_MORE: Final = re.compile(
    r"(?:background on this|(?:more|further) (?:info\w*|details?|help)|learn more|documentation|\bdocs\b"
    r"|troubleshoot\w*|\b(?:see|visit|read|refer to)\b)[^\n]{0,40}?https?://\S{1,300}",
    re.IGNORECASE,
)
"""A page to read about the error: nobody called it."""
_FRAME: Final = re.compile(r"\.(?:go|py|java|js|ts|rb|rs|cs|cpp|c|php|kt|scala|ex|mjs|cjs):\d")


def lines_of(text: str) -> list[str]:
    """The last lines of a log, without time stamps and empty lines, each cut."""
    rows = [line for line in text.splitlines()[-MAX_LINES:] if line.strip()]
    return [_STAMP.sub("", line[:MAX_LINE].rstrip()) for line in rows]


def said_in(text: str) -> list[LogFinding]:
    """What a log says, what proves most first, and of that the last line that names something."""
    lines = lines_of(text)
    found = [each for index in range(len(lines)) for each in _read(lines, index)]
    return sorted(found, key=lambda each: (each.rank, not each.named, not each.whole, -each.index))


def _read(lines: Sequence[str], index: int) -> Iterator[LogFinding]:
    line = lines[index]
    low = line.lower()
    for rank, row in enumerate(ROWS):
        if any(hint in low for hint in row.hints) and (match := row.pattern.search(line)):
            named = {key: value for key, value in match.groupdict().items() if value}
            whole = row.kind not in _CALLS or bool(_endpoint(line))
            yield LogFinding(row.kind, line.strip(), index, rank, _with_endpoint(row.kind, named, lines, index), whole)


def _with_endpoint(kind: str, named: dict[str, str], lines: Sequence[str], index: int) -> dict[str, str]:
    """Hosts under one name; where the line does not name one, the lines around it may."""
    if kind == "dns":
        hosts = [named[key] for key in _HOSTS if key in named]
        return {"host": hosts[0].strip(".-")} if hosts else _endpoint_near(lines, index)
    if kind in _CALLS:
        return {**named, **_endpoint_near(lines, index)}
    if kind == "envMissing" and not named and index:
        above = _FIELD.match(lines[index - 1])
        return {"field": above[0].upper()} if above else {}
    if kind == "portInUse" and "port" not in named:
        ports = _PORT.findall(lines[index])
        return {"port": ports[-1]} if ports else {}
    return named


_PORT: Final = re.compile(r"(?::|\bport )(\d{2,5})(?!\d|[:.]\d)", re.IGNORECASE)
"""The last one of a line: times and places in source files stand before it."""
_FIELD: Final = re.compile(r"^[A-Za-z_]\w{1,80}$")
"""A settings class prints the field's name on a line of its own, above what is wrong with it."""
_CALLS: Final = frozenset(
    {"refused", "auth", "tooManyConnections", "certificate", "protocol", "readOnlyDatabase", "storeFull"}
)
"""Kinds that happen between two: who was called is half of the answer."""


def _endpoint_near(lines: Sequence[str], index: int) -> dict[str, str]:
    order = [index, *(near for step in range(1, _NEAR + 1) for near in (index - step, index + step))]
    for near in order:
        if 0 <= near < len(lines) and (found := dict(_endpoint(lines[near]))):
            return found
    return {}


@lru_cache(maxsize=2048)
def _endpoint(line: str) -> tuple[tuple[str, str], ...]:
    """A line is asked once, however many lines beside it want to know."""
    return tuple(endpoint_in(line).items())


def endpoint_in(line: str) -> dict[str, str]:
    """Host and port that a line names; source files with line numbers and pages of documentation are none."""
    line = _LEARN_MORE.sub("", line)
    for pattern in _ENDPOINTS:
        for match in pattern.finditer(line):
            host = match["host"].strip(".-")
            groups = match.groupdict()
            if _is_host(host, bool(groups.get("port"))) and not _FRAME.search(match[0]):
                return {"host": host, **({"port": match["port"]} if groups.get("port") else {})}
    return {}


def _is_host(host: str, has_port: bool) -> bool:
    return bool(host) and host.lower() not in _NO_HOSTS and (has_port or not host.isdigit()) and not host.isnumeric()


def telling_line(text: str) -> str:
    """The last line that starts a sentence: frames of a stack trace are indented."""
    lines = [_STAMP.sub("", line[:MAX_LINE]) for line in text.splitlines() if line.strip()]
    heads = [line for line in lines if not line[0].isspace() and not line.startswith("at ")]
    return (heads or lines or [""])[-1].strip()


def frame_in(text: str) -> str:
    """The place in the application's own source that an exception names, empty where none is."""
    lines = [line.strip()[:MAX_LINE] for line in text.splitlines()[-MAX_LINES:]]
    found = [match[0] for line in lines for pattern in _FRAMES if (match := pattern.search(line))]
    own = [frame for frame in found if not _LIBRARY.search(frame)]
    if not own:
        return ""
    return own[-1] if own[-1].startswith("File ") else own[0].removeprefix("at ")


_FRAMES: Final = (
    re.compile(r'File "[^"]{1,200}", line \d+(?:, in [\w<>.]+)?'),
    re.compile(r"^at [\w.$<>/ ]{1,200}\([\w.$ /:-]{1,200}\)"),
    re.compile(r"^at [\w.$<>/\[\]` (),]{1,160} in [\w./:\\-]{1,160}:line \d+"),
    re.compile(r"^/?[\w./@+-]{1,200}\.go:\d+"),
    re.compile(r"^[\w./@+-]{1,200}\.(?:js|ts|mjs|rb|php):\d+"),
)
_LIBRARY: Final = re.compile(
    r"site-packages|dist-packages|lib/python|node_modules|node:internal|internal/|java\.base|java\.|javax\."
    r"|sun\.|jdk\."
    r"|org\.(?:springframework|apache|postgresql|hibernate|jboss|eclipse)|com\.(?:zaxxer|mysql|fasterxml)"
    r"|/usr/local/go/|runtime/|go/pkg/mod|System\.|Microsoft\."
)
