"""YAML as people write it: values with the place they stand in, so that a fault names file and line.

Times stay texts, as the API server writes them. Lines are looked for only when something is wrong: the way without
faults uses the C parser alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final

import yaml

from inquest.adapters.yaml_fault import line_of_field
from inquest.errors import Invalid

_LEFT_AS_TEXT: Final = frozenset({"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"})


class CaseFileError(Invalid):
    """A case folder that cannot be read; the text begins with file and line."""

    reason = "BadCase"

    def __init__(self, path: Path, line: int, text: str) -> None:
        super().__init__(f"{path}:{line}: {text}")


class Loader(yaml.CSafeLoader):
    """Times are texts, and a lone `=` is one too."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag not in _LEFT_AS_TEXT]
    for first, rows in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class YamlDocument:
    """One document of a file, or a part of one; `number` counts from 0."""

    path: Path
    number: int
    value: Any
    base: tuple[str | int, ...] = ()
    """Where the part stands in its document."""

    def part(self, *place: str | int) -> YamlDocument:
        """What stands at a place, as if it were a document of its own."""
        return replace(self, value=self.at(*place), base=(*self.base, *place))

    def fault(self, text: str, *place: str | int) -> CaseFileError:
        """What is wrong at a place inside the document, with the line of the nearest part of it that is there."""
        return CaseFileError(self.path, _line(self.path, self.number, (*self.base, *place)), text)

    def mapping(self, *place: str | int) -> Mapping[str, Any]:
        """The document, or a part of it, as a mapping; BadCase where it is something else."""
        found = self.at(*place)
        if not isinstance(found, Mapping):
            raise self.fault(f"{_said(place)} must be a mapping", *place)
        return found

    def items(self, *place: str | int) -> list[Any]:
        """Likewise as a list; absent is empty."""
        found = self.at(*place)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.fault(f"{_said(place)} must be a list", *place)
        return found

    def text(self, *place: str | int, default: str | None = None) -> str:
        """Likewise as a text; `default` where it is absent, BadCase where that is None."""
        found = self.at(*place)
        if found is None and default is not None:
            return default
        if not isinstance(found, str) or not (found or default is not None):
            raise self.fault(f"{_said(place)} must be a text" + ("" if found is None else ": quote it"), *place)
        return found

    def texts(self, *place: str | int) -> tuple[str, ...]:
        """Likewise as texts: one alone counts as a list of it."""
        found = self.at(*place)
        several = [found] if isinstance(found, str) else self.items(*place)
        for number, each in enumerate(several):
            if not isinstance(each, str):
                raise self.fault(f"{_said(place)} must hold texts: quote them", *place, number)
        return tuple(several)

    def at(self, *place: str | int) -> Any:
        """What stands at a place; None where nothing does."""
        found = self.value
        for step in place:
            if isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def known(self, words: frozenset[str], *place: str | int) -> None:
        """BadCase for a key that is nearly one of these words, where that is missing: it would be passed over."""
        found = self.mapping(*place)
        missing = words - set(found)
        for key in found:
            near = get_close_matches(str(key), missing, n=1, cutoff=0.8) if key not in words else []
            if near:
                raise self.fault(f"{key!r} is not known: {near[0]!r} is", *place, str(key))


def read_yaml_pages(path: Path) -> Iterator[YamlDocument]:
    """The documents of a file that are not empty; BadCase for what is no YAML or no UTF-8. JSON may stand for YAML."""
    if path.suffix == ".json":
        yield YamlDocument(path, 0, _json(path))
        return
    try:
        documents = list(yaml.load_all(text_of(path), Loader=Loader))  # a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise CaseFileError(path, mark.line + 1 if mark else 1, f"no YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CaseFileError(path, 1, f"no YAML: {error}") from error
    for number, value in enumerate(documents):
        if value is not None:
            yield YamlDocument(path, number, value)


def _json(path: Path) -> Any:
    # YAML takes most of JSON, but no tabs.
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise CaseFileError(path, error.lineno, f"no JSON: {error.msg}") from error


def read_page(path: Path) -> YamlDocument:
    """The one document of a file."""
    found = list(read_yaml_pages(path))
    if len(found) != 1:
        raise CaseFileError(path, 1, "the file is empty" if not found else "one document is wanted, there are several")
    return found[0]


def text_of(path: Path) -> str:
    """A file of UTF-8; BadCase where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CaseFileError(path, line, "no UTF-8") from error
    except OSError as error:
        raise CaseFileError(path, 1, error.strerror or "cannot be read") from error


def _said(place: tuple[str | int, ...]) -> str:
    words = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(words).removeprefix(".") or "the document"


def _line(path: Path, number: int, place: tuple[str | int, ...]) -> int:
    if path.suffix == ".json":
        return 1
    documents = (node for node in yaml.compose_all(text_of(path), Loader=Loader) if node is not None)
    return line_of_field(next(islice(documents, number, None), None), place) or 1
