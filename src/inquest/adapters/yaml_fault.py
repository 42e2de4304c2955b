"""What a person is told of a fault in a YAML text: why, and on which line."""

from __future__ import annotations

from collections.abc import Sequence

import yaml


def yaml_fault(error: yaml.YAMLError) -> tuple[int, str]:
    """The line, from 1, 0 where the reader names none; and why, without what stands there."""
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else 0, f"no YAML: {getattr(error, 'problem', '') or 'it ends too soon'}"


def line_of_field(node: yaml.Node | None, path: Sequence[str | int]) -> int:
    """From one: of the field, or of what it is missing in; 0 where the document is empty."""
    if node is None:
        return 0
    line = node.start_mark.line
    for step in path:
        found = _below(node, step)
        if found is None:
            break
        line, node = found[0].start_mark.line, found[1]
    return int(line) + 1


def _below(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key, or the item itself, and what stands under it."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None
