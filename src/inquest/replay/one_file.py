"""A case as the text of one file, as `inquest.replay.case` reads it, made of the files of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from inquest.replay.case import CASE, EXPECTED, FEEDBACK, GAPS, METRICS, SIGNAL, TOP
from inquest.replay.yaml_pages import Loader

HEAD: Final = {"expected": EXPECTED, "gaps": GAPS, "prometheus": METRICS, "feedback": FEEDBACK}
"""Keys of the head, and the files of a folder that hold the same."""
LAST: Final = ("recorded", "gaps", "live", "prometheus", "text", "logs")
"""Keys that a reader comes to after all others."""
WIDTH: Final = 120
IN_A_LINE: Final = 100
"""Characters of a mapping or a list that stands in one line."""


def in_one_file(files: Mapping[str, str]) -> str:
    """A head with all but the objects, and these after it; `files` are texts by their path in the folder."""
    head: dict[str, Any] = {**_only(files, CASE), "signal": _only(files, SIGNAL)}
    for key, place in HEAD.items():
        head |= {key: found} if place in files and (found := _only(files, place)) else {}
    logs = {place: text for place, text in files.items() if place.startswith("logs/")}
    head |= {"logs": {place[len("logs/") : -len(".log")]: text for place, text in logs.items()}} if logs else {}
    texts = [text.partition("\n") for place, text in files.items() if place.startswith("text/")]
    head |= {"text": [{"title": title.strip("# "), "text": text} for title, _, text in texts]} if texts else {}
    objects = [text for place, text in files.items() if place.startswith("objects/")]
    objects += [files[TOP]] if TOP in files else []
    return case_text(
        head, (page for text in objects for page in yaml.load_all(text, Loader=Loader) if page is not None)
    )


def case_text(head: Mapping[str, Any], objects: Iterable[Any]) -> str:
    """A head and its objects as they are read best."""
    first = {key: value for key, value in head.items() if key not in LAST}
    pages = [first | {key: head[key] for key in LAST if key in head}, *objects]
    return str(yaml.dump_all(pages, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH))


def _only(files: Mapping[str, str], place: str) -> Any:
    return yaml.load(files[place], Loader=Loader)  # a safe loader


class _Dumper(yaml.CSafeDumper):
    """Times stay bare, texts of several lines stand as they are, and what fits into a line stands in one."""

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        node = super().represent_sequence(tag, sequence, flow_style)
        node.flow_style = _fits(*node.value)
        return node

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = _fits(*(part for pair in node.value for part in pair))
        return node

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.yaml_implicit_resolvers = Loader.yaml_implicit_resolvers
_Dumper.add_representer(str, _Dumper.represent_str)


def _fits(*parts: yaml.Node) -> bool:
    return sum(_length(part) + 2 for part in parts) <= IN_A_LINE


def _length(node: yaml.Node) -> int:
    """Characters in a line; more than fit where it has lines of its own."""
    if isinstance(node, yaml.ScalarNode):
        return len(node.value) if node.style != "|" else IN_A_LINE
    if not isinstance(node, yaml.CollectionNode) or not node.flow_style:
        return IN_A_LINE
    several = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
    return sum(_length(part) + 2 for part in several)
