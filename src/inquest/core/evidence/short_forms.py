"""One result, six sizes: the short forms of a stored text.

    stored    whole, redacted         read_evidence, claim checker
    first     100,000 characters      the model, next turn; rows of like log lines once
    listing   8,000                   the prompt
    replay    8,000                   the model, for a repeat
    re-read   2,000                   later turns under budget pressure
    preview   500                     status, events, audit

What is cut says so inside its cap. Lines and values stay whole wherever one fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import yaml

REREAD_CHARACTERS: Final = 2_000
PREVIEW_CHARACTERS: Final = 500
TABLE_ROWS: Final = 30
OTHER_LINES: Final = 60
LOG_HEAD, LOG_TAIL = 20, 40
INSTANT_SERIES, RANGE_SERIES = 50, 20

_NOTABLE_ROW: Final = re.compile(
    "error|warning|failed|pending|oomkilled|crashloop|backoff|imagepull|containercreating", re.IGNORECASE
)
_NOTABLE_LINE: Final = re.compile(r"error|exception|panic|fatal|traceback", re.IGNORECASE)
_READY: Final = re.compile(r"(?<![\w/])(\d+)/(\d+)(?![\w/])")
_MARK: Final = re.compile(r"\[REDACTED[^\]\n]{0,60}\]")
_LOG_TOOLS: Final = frozenset({"kubectl_logs", "kubectl_previous_logs", "query_loki"})


@dataclass(frozen=True)
class ShortLine:
    """One line of a short form: where it stood, and how soon it goes when there is no room; higher goes first."""

    number: int
    text: str
    rank: int


def preview_text(text: str, most: int = PREVIEW_CHARACTERS) -> str:
    """The first characters, for a status or an audit record."""
    return text if len(text) <= most else f"{_whole(text, most - 1)}…"


def reread_form(
    text: str, evidence_id: str, *, tool: str = "", names: Collection[str] = (), cap: int = REREAD_CHARACTERS
) -> str:
    """The re-reading form: what a reader would look for again; `names` are the target's and its owners'."""
    if len(text) <= cap:
        return text
    for fits, short in _KINDS:
        if fits(text, tool):
            found = short(text, evidence_id, tuple(names), cap)
            if found is not None:
                return found
    lines = [ShortLine(number, line, 0) for number, line in enumerate(text.splitlines()[:OTHER_LINES])]
    return _fitted(lines, text, evidence_id, cap, lambda kept: "") or ""


def condense_log(text: str, evidence_id: str, *, tool: str = "") -> str:
    """A log as it is read first: lines that say the same with other numbers, once and counted.

    Of each such row the first, the last and those with a number larger than all others stay; a status or an exit code
    makes a line another one. Everything else passes unchanged, and so does a text that is short anyway.
    """
    if tool not in _LOG_TOOLS or len(text) <= REREAD_CHARACTERS:
        return text
    rows = groupby(text.splitlines(), key=_likeness)
    short = "\n".join(line for _, row in rows for line in _first_and_last(list(row), evidence_id))
    return short if len(short) < len(text) else text


def cut_marker(left_out: int, evidence_id: str) -> str:
    """What stands for the characters that are not shown."""
    return f'[+{left_out} chars: read_evidence("{evidence_id}")]'


# --- lines --------------------------------------------------------------------------------------------------


def _fitted(lines: Iterable[ShortLine], text: str, evidence_id: str, cap: int, note: Callable[[int], str]) -> str:
    """As many of the lines as the cap holds, in their order, and what is missing."""
    wanted = sorted(lines, key=lambda line: line.number)
    tail = cut_marker(len(text), evidence_id)
    room = cap - len(tail) - len(note(1)) - 2
    kept = _kept(wanted, room)
    if not kept:
        return f"{_whole(wanted[0].text if wanted else '', cap - len(tail) - 1)}\n{tail}"
    body = "\n".join(line.text for line in kept)
    said = note(len(kept))
    return "\n".join(part for part in (body, said, cut_marker(max(0, len(text) - len(body)), evidence_id)) if part)


def _kept(lines: Sequence[ShortLine], room: int) -> list[ShortLine]:
    """The lines without those that go first, until the rest has room."""
    size = sum(len(line.text) + 1 for line in lines)
    gone = set()
    for line in sorted(lines, key=lambda line: (-line.rank, -line.number)):
        if size <= room:
            break
        size -= len(line.text) + 1
        gone.add(line.number)
    return [line for line in lines if line.number not in gone]


def _whole(text: str, room: int) -> str:
    """The beginning of a line, never with half of a redaction mark at its end."""
    for mark in _MARK.finditer(text):
        if mark.start() < room < mark.end():
            return text[: mark.start()]
    return text[: max(0, room)]


# --- tables -------------------------------------------------------------------------------------------------


def _is_table(text: str, tool: str) -> bool:
    return re.search(r"\bNAME\b", text.partition("\n")[0]) is not None


def _table(text: str, evidence_id: str, names: tuple[str, ...], cap: int) -> str:
    head, *rows = text.splitlines()
    wanted = [ShortLine(0, head, -2)]
    for number, row in enumerate(rows, start=1):
        rank = _rank(row, names)
        if number <= TABLE_ROWS or rank <= 0:
            wanted.append(ShortLine(number, row, rank))
    return _fitted(wanted, text, evidence_id, cap, lambda kept: _omitted(len(rows) - max(0, kept - 1)))


def _omitted(rows: int) -> str:
    return f"{rows} rows omitted" if rows > 0 else ""


def _rank(row: str, names: tuple[str, ...]) -> int:
    """The target's own rows stay longest, however well; then what complains or has fewer ready than it wants."""
    if any(name and name in row for name in names):
        return -1
    unready = any(int(ready[1]) < int(ready[2]) for ready in _READY.finditer(row))
    return 0 if unready or _NOTABLE_ROW.search(row) else 1


# --- logs ---------------------------------------------------------------------------------------------------


def _is_log(text: str, tool: str) -> bool:
    return tool in _LOG_TOOLS or bool(re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", text))


def _log(text: str, evidence_id: str, names: tuple[str, ...], cap: int) -> str:
    """Head and tail with the complaints between them; the head goes before the tail, which says how it ended."""
    lines = _folded(text.splitlines())
    last = len(lines) - LOG_TAIL
    wanted = []
    for number, line in enumerate(lines):
        if _NOTABLE_LINE.search(line):
            wanted.append(ShortLine(number, line, 0))
        elif number < LOG_HEAD:
            wanted.append(ShortLine(number, line, 2 + LOG_TAIL))
        elif number >= last:
            # The nearer to the end, the longer a line stays.
            wanted.append(ShortLine(number, line, 1 + len(lines) - number))
    return _fitted(wanted, text, evidence_id, cap, lambda kept: "")


def _folded(lines: Sequence[str]) -> list[str]:
    """Equal lines that follow each other as one with a count; a time before them does not make them differ."""
    found: list[tuple[str, int]] = []
    for line in lines:
        if found and _without_time(found[-1][0]) == _without_time(line):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((line, 1))
    return [line if count == 1 else f"{line} (×{count})" for line, count in found]


ROW: Final = 6
"""Lines that say the same are all shown below this number."""
_FIGURE: Final = re.compile(
    r"(?P<code>\b(?:status|code|exit|signal|HTTP/[0-9.]{1,3}\"?)\W{0,3}\d{1,3}\b)"
    r"|\b(?=[a-f]{0,40}\d)[0-9a-f]{8,64}(?:-[0-9a-f]{4,12}){0,4}\b|\d+(?:\.\d+)?",
    re.IGNORECASE,
)


def _likeness(line: str) -> str:
    """The line without what counts, measures or names a request."""
    return _FIGURE.sub(lambda found: found["code"] or "#", line)


def _first_and_last(row: Sequence[str], evidence_id: str) -> Iterator[str]:
    if len(row) < ROW:
        yield from row
        return
    peaks = sorted(_peaks(row))
    left_out = len(row) - 2 - len(peaks)
    yield row[0]
    yield from (row[at] for at in peaks)
    yield f'({left_out} lines that differ from these in numbers and ids only: read_evidence("{evidence_id}"))'
    yield row[-1]


def _peaks(row: Sequence[str]) -> set[int]:
    """Where one of the numbers is larger than everywhere else, unless that is the first line or the last."""
    columns = zip(*(map(_amount, _FIGURE.finditer(line)) for line in row), strict=False)
    largest = ((max(column), column) for column in columns)
    at = {column.index(top) for top, column in largest if column.count(top) == 1}
    return at - {0, len(row) - 1}


def _amount(found: re.Match[str]) -> float:
    """The number; nothing for an id."""
    return float(found[0]) if len(found[0]) < 16 and found[0].replace(".", "", 1).isdecimal() else 0.0


def _without_time(line: str) -> str:
    return re.sub(r"^\S*\d\d:\d\d:\d\d\S*\s*", "", line)


# --- describe -----------------------------------------------------------------------------------------------

_FIRST_SECTIONS: Final = (
    ("name:", "namespace:", "kind:", "node:", "status:"),
    ("state:", "last state:", "reason:", "exit code:", "message:"),
    ("conditions:",),
    ("events:",),
)


def _is_description(text: str, tool: str) -> bool:
    return tool == "kubectl_describe" or bool(re.match(r"Name:\s", text))


def _description(text: str, evidence_id: str, names: tuple[str, ...], cap: int) -> str:
    """Identity, states, conditions and events; then the rest in its order."""
    wanted, section = [], 4
    for number, line in enumerate(text.splitlines()):
        said = line.strip().lower()
        begun = next((rank for rank, words in enumerate(_FIRST_SECTIONS) if said.startswith(words)), None)
        if line[:1].strip():
            section = begun if begun in (2, 3) else 4
        wanted.append(ShortLine(number, line, section if section < 4 else (4 if begun is None else begun)))
    return _fitted(wanted, text, evidence_id, cap, lambda kept: "")


# --- JSON, YAML, metrics --------------------------------------------------------------------------------------


def _is_json(text: str, tool: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _json(text: str, evidence_id: str, names: tuple[str, ...], cap: int) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _shortened(_with_short_series(value), text, evidence_id, cap, _compact)


def _is_yaml(text: str, tool: str) -> bool:
    return tool == "kubectl_get_yaml" or bool(re.match(r"(apiVersion|kind|metadata|items):", text))


def _yaml(text: str, evidence_id: str, names: tuple[str, ...], cap: int) -> str | None:
    try:
        value = yaml.load(text, Loader=_LOADER)  # a safe loader, where it is there the fast one
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _shortened(value, text, evidence_id, cap, lambda found: yaml.safe_dump(found, sort_keys=False).rstrip())


def _shortened(value: Any, text: str, evidence_id: str, cap: int, write: Callable[[Any], str]) -> str | None:
    """Whole values only; the mark is a value too, so that the text can still be read."""
    if not isinstance(value, dict | list):
        return None
    for room in range(cap, 0, -100):
        kept = _within(value, room)
        mark = cut_marker(max(0, len(text) - len(write(kept))), evidence_id)
        marked = [*kept, mark] if isinstance(kept, list) else {**kept, "…": mark}
        shown = write(marked)
        if len(shown) <= cap:
            return shown
    return None


def _within(value: Any, room: int) -> Any:
    """As much of a value as so many characters of compact JSON hold."""
    if len(_compact(value)) <= room:
        return value
    if isinstance(value, Mapping):
        # Small fields whole; large ones share what is left.
        kept: dict[str, Any] = {}
        left = room - 2
        for key, item in value.items():
            size = len(_compact(str(key))) + 2
            found = item if len(_compact(item)) + size <= left // 2 else _within(item, left // 2 - size)
            if found in (None, {}, []) and item not in (None, {}, []):
                continue
            kept[key] = found
            left -= len(_compact(found)) + size
        return kept
    return _list_within(value, room) if isinstance(value, list) else None


def _list_within(value: Sequence[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    left = room - 2
    for item in value:
        size = len(_compact(item)) + 1
        if size > left:
            found = _within(item, left - 1) if not kept else None
            return [*kept, *([] if found in (None, {}, []) else [found])]
        kept.append(item)
        left -= size
    return kept


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _with_short_series(value: Any) -> Any:
    """The answer of Prometheus: so many series, of a range lowest, highest and last."""
    data = value.get("data") if isinstance(value, Mapping) else None
    result = data.get("result") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(result, list):
        return value
    is_range = any(isinstance(series, Mapping) and "values" in series for series in result)
    kept = result[: RANGE_SERIES if is_range else INSTANT_SERIES]
    short = [_extremes(series) for series in kept]
    omitted = {"seriesOmitted": len(result) - len(kept)} if len(result) > len(kept) else {}
    return {**value, "data": {**data, "result": short, **omitted}}


def _extremes(series: Any) -> Any:
    if not isinstance(series, Mapping) or "values" not in series:
        return series
    samples = [str(sample[1]) for sample in series["values"] if isinstance(sample, list) and len(sample) > 1]
    ordered = sorted(samples, key=_number)
    ends = {"min": ordered[0], "max": ordered[-1], "last": samples[-1]} if samples else {}
    return {**{key: item for key, item in series.items() if key != "values"}, **ends}


def _number(sample: str) -> float:
    try:
        return float(sample)
    except ValueError:
        return 0.0


# --- everything else --------------------------------------------------------------------------------------------


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Short = Callable[[str, str, tuple[str, ...], int], str | None]
_KINDS: Final[tuple[tuple[Callable[[str, str], bool], _Short], ...]] = (
    (_is_json, _json),
    (_is_yaml, _yaml),
    (_is_table, _table),
    (_is_description, _description),
    (_is_log, _log),
)
"""Kinds of text, in the order in which they are tried; each keeps what its readers look for."""
