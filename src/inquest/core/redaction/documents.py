"""Texts that hold objects: JSON and YAML, whole or as a part; only the values that change are rewritten."""

from __future__ import annotations

import json
import json.scanner
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any, Final, cast

import yaml

from inquest.core.redaction.mask import MARK, STRETCH, WITHHELD, has_any

Walk = Callable[[Any], Any]
"""An object redacted by its structure; shape and keys stay."""


class _Unreadable(Exception):
    """A text that looks like YAML and is not, or uses aliases."""


# --- JSON ----------------------------------------------------------------------------------------------------

_TOKEN: Final = re.compile(r"[\"\-0-9tfnNI](?:(?<=\")[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|[0-9A-Za-z.+\-]*+)")
"""A key or a scalar of JSON that parses; one set of first characters, because a search for it is three times faster."""


def in_json(text: str, walk: Walk) -> str | None:
    """The text with its JSON redacted, or None when it is no JSON; what is not masked stays byte for byte."""
    body = text.strip()
    if not body or body[0] not in '{["' or body[-1] not in '}]"':
        return None
    try:
        value, faithful = _parsed(body)
    except ValueError:
        return None
    redacted = walk(value)
    if faithful and redacted == value:
        return text
    start = text.index(body[0])
    new = _spliced_json(body, value, redacted) if faithful else _dumped(redacted, like=body)
    return text[:start] + new + text[start + len(body) :]


def still_json(before: str, after: str) -> str:
    """What became of a text; where it was JSON and is none now, a mark alone: what was masked spans its parts."""
    if after == before or not _is_json(before) or _is_json(after):
        return after
    return json.dumps([WITHHELD] if before.lstrip().startswith("[") else {"withheld": WITHHELD})


def _is_json(text: str) -> bool:
    if text.strip()[:1] not in ("{", "["):
        return False
    try:
        _decoder(text).decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(body: str) -> tuple[Any, bool]:
    """The value, and whether it holds all that the text says: a repeated key hides its first value."""
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            repeated.append("")
        return found

    return _decoder(body, pairs).decode(body), not repeated


def _decoder(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> json.JSONDecoder:
    """The decoder for a text: a long one is scanned in Python, slower, so that other threads run meanwhile."""
    decoder: Any = json.JSONDecoder(object_pairs_hook=pairs)
    if len(text) > STRETCH:
        scanner: Any = json.scanner
        decoder.scan_once = scanner.py_make_scanner(decoder)
    return cast(json.JSONDecoder, decoder)


def _spliced_json(body: str, value: Any, redacted: Any) -> str:
    """The text with new tokens where a scalar changed: tokens and scalars come in the same order."""
    changes: list[_Change] = []
    _note_changes(value, redacted, 0, changes)
    tokens = _TOKEN.finditer(body)
    parts: list[str] = []
    done = seen = 0
    for at, old, new in changes:
        token = next(islice(tokens, at - seen, None))
        if repr(json.loads(token[0])) != repr(old):
            raise ValueError("tokens and scalars do not stand in the same order")
        parts += (body[done : token.start()], json.dumps(new, ensure_ascii=body.isascii()))
        done, seen = token.end(), at + 1
    return "".join((*parts, body[done:]))


_Change = tuple[int, Any, Any]
"""Which token, what it was, what it becomes."""


def _note_changes(value: Any, redacted: Any, at: int, changes: list[_Change]) -> int:
    """Note what changed of a value whose first token is number `at`; the number of the token behind it."""
    if type(value) is str or not isinstance(value, (dict, list)):
        if value is not redacted and value != redacted:
            changes.append((at, value, redacted))
        return at + 1
    if isinstance(value, list):
        for item, new in zip(value, redacted, strict=True):
            at = _note_changes(item, new, at, changes)
        return at
    for key, item in value.items():
        new = redacted[key]
        same = item is new and type(item) is str
        at = at + 2 if same else _note_changes(item, new, at + 1, changes)
    return at


def _dumped(value: Any, *, like: str) -> str:
    ascii_only = like.isascii()
    if "\n" in like:
        indent = re.search(r"\n([ \t]+)", like)
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent[1] if indent else 0)
    separators = (", ", ": ") if re.search(r'": |, "', like) else (",", ":")
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators)


# --- JSON inside other text -------------------------------------------------------------------------------------

_SECRET_TYPES: Final = ("Opaque", *(f"kubernetes.io/{kind}" for kind in ("tls", "docker", "basic-auth", "ssh-auth")))
"""What a Secret says of itself where its kind was left out, as lists and logs of controllers do."""
_TELLING: Final = (
    *('Secret"', 'Secret\\"', "SecretList", '"value', '"Value', "auths", "stringData", "PRIVATE KEY"),
    *('ConfigMap"', 'ConfigMap\\"'),
    *_SECRET_TYPES,
)
_FRAGMENT: Final = re.compile(r"[{\[][ \t]*(?:[\"{]|\n)")
_OPENING: Final = re.compile(r"[{\[][ \t]*\n")
_MAX_BLOCKS: Final = 16
"""Objects over several lines that are tried in one text; each try may read it to its end."""


def in_fragments(text: str, walk: Walk) -> str:
    """JSON inside a text, where its structure says more than the text rules see."""
    if "{" not in text or not has_any(text, *_TELLING):
        return text
    text = _in_blocks(text, walk) if _OPENING.search(text) else text
    return _without_cut_secrets("".join(_in_line(line, walk) for line in text.splitlines(keepends=True)))


def _in_blocks(text: str, walk: Walk) -> str:
    parts: list[str] = []
    done = 0
    for start, _ in zip(_OPENING.finditer(text), repeat(None, _MAX_BLOCKS), strict=False):
        if start.start() >= done:
            new, end = _decoded_at(text, start.start(), walk)
            parts += (text[done : start.start()], new)
            done = end
    return "".join((*parts, text[done:]))


def _in_line(line: str, walk: Walk) -> str:
    start = _FRAGMENT.search(line) if has_any(line, *_TELLING) else None
    if start is None:
        return line
    new, end = _decoded_at(line, start.start(), walk)
    return line[: start.start()] + new + line[end:]


def _decoded_at(text: str, start: int, walk: Walk) -> tuple[str, int]:
    """The object that begins here, redacted, and where it ends; nothing where there is none."""
    try:
        _, end = _decoder(text).raw_decode(text, start)
    except ValueError:
        return "", start
    return in_json(text[start:end], walk) or text[start:end], end


_CUT_SECRET: Final = re.compile(
    r"\\{0,7}\"(?:kind\\{0,7}\":\s{0,8}\\{0,7}\"Secret(?:List)?\\{0,7}\"|stringData\\{0,7}\":)"
)
_CUT_DATA: Final = re.compile(r"\\{0,7}\"(?:data|stringData)\\{0,7}\":\s{0,64}\{(?P<body>[^{}]*)")
_CUT_ENTRY: Final = re.compile(
    r"(?P<head>(?P<q>\\{0,7}\")[\w.\-]{1,253}(?P=q):\s{0,8}(?P=q))(?P<value>[^\"\\]*(?:\\[nrtu/][^\"\\]*)*)"
)


def _without_cut_secrets(text: str) -> str:
    """A Secret that does not parse, because it was cut: the strings under its data."""
    if '"data' not in text and "stringData" not in text:
        return text
    return _CUT_DATA.sub(_masked_entries, text) if _CUT_SECRET.search(text) else text


def _masked_entries(match: re.Match[str]) -> str:
    body = _CUT_ENTRY.sub(lambda entry: entry["head"] + MARK if entry["value"] else entry[0], match["body"])
    return match[0][: len(match[0]) - len(match["body"])] + body


# --- YAML ----------------------------------------------------------------------------------------------------------

_YAML: Final = re.compile(
    r"^[ \t]*(?:-[ \t]+|[\w.]{1,80}: )?[\"']?(?:kind[\"']?:[ \t]*[\"']?Secret|(?:stringData|auths)[\"']?:)",
    re.MULTILINE,
)
_YAML_ENV: Final = re.compile(r"^[ \t]*(?:-[ \t]+)?[\"']?env[\"']?:", re.MULTILINE)
_YAML_HINTS: Final = ("Secret", "stringData", "auths")
_SECRET_LINE: Final = re.compile(
    r"^[ \t]*(?:-[ \t]+|[\w.]{1,80}: )?[\"']?kind[\"']?:[ \t]*[\"']?Secret|^[ \t]*stringData:", re.MULTILINE
)
"""Also behind the class of an error that quotes it."""
_SECTION: Final = re.compile(
    r"^(?P<head>(?P<indent>[ \t]*)[\"']?(?:data|stringData|kubectl\.kubernetes\.io/last-applied-configuration)[\"']?:)"
    r"[ \t]*(?P<line>[^\n]*)(?:\n|\Z)(?P<body>(?:(?P=indent)[ \t]+[^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)
_ENTRY: Final = re.compile(r"^([ \t]*[\"']?[\w.\-]{1,253}[\"']?:)[^\n]*(\n?)", re.MULTILINE)


def in_yaml(text: str, walk: Walk, *, all_env: bool) -> str:
    """Objects of a YAML text redacted in place; a Secret that does not parse loses its whole sections.

    Read as YAML only where the structure says more than the text rules see: reading it costs much more than they do.
    """
    if not (_has_objects(text) or (all_env and _YAML_ENV.search(text))):
        return text
    try:
        return _spliced(text, _edits(text, walk))
    except (yaml.YAMLError, _Unreadable):
        return _SECTION.sub(_masked_section, text) if _SECRET_LINE.search(text) else text


def _has_objects(text: str) -> bool:
    return has_any(text, *_YAML_HINTS) and _YAML.search(text) is not None


def _edits(text: str, walk: Walk) -> list[tuple[int, int, str]]:
    edits: list[tuple[int, int, str]] = []
    for node in yaml.compose_all(text, Loader=yaml.CSafeLoader):
        if isinstance(node, yaml.ScalarNode):  # the whole text again, which would have no end
            continue
        edits += _differences(node, walk(_value_of(node, set())), text)
    return edits


def _value_of(node: yaml.Node, seen: set[int]) -> Any:
    if id(node) in seen:
        raise _Unreadable("alias")
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.tag.endswith((":str", ":int", ":float", ":timestamp", ":binary")) else None
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        return {_key_of(key): _value_of(item, seen) for key, item in node.value}
    return [_value_of(item, seen) for item in node.value]


def _key_of(node: yaml.Node) -> str:
    return str(node.value)


def _differences(node: yaml.Node, redacted: Any, text: str) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, yaml.MappingNode) and isinstance(redacted, Mapping):
        for key, item in node.value:
            yield from _differences(item, redacted.get(_key_of(key), MARK), text)
    elif isinstance(node, yaml.SequenceNode) and isinstance(redacted, list):
        for item, entry in zip(node.value, redacted, strict=True):
            yield from _differences(item, entry, text)
    elif redacted is not None and (not isinstance(node, yaml.ScalarNode) or node.value != redacted):
        yield _edit(node, str(redacted), text)


def _edit(node: yaml.Node, redacted: str, text: str) -> tuple[int, int, str]:
    """Quoted, because a bare marker would be a list; the break after a block stays."""
    start, end = node.start_mark.index, node.end_mark.index
    tail = text[start:end]
    return start, end, json.dumps(redacted, ensure_ascii=False) + tail[len(tail.rstrip()) :]


def _spliced(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, new in sorted(edits):
        parts += [text[done:start], new]
        done = end
    return "".join((*parts, text[done:]))


def _masked_section(match: re.Match[str]) -> str:
    entries = _ENTRY.findall(match["body"])
    if match["line"].strip() or not entries:
        return f'{match["head"]} "{MARK}"\n'
    return match["head"] + "\n" + "".join(f'{key} "{MARK}"{end}' for key, end in entries)
