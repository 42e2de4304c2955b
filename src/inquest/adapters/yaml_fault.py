"""What a person is told of text that is no YAML."""

from __future__ import annotations

import yaml


def yaml_fault(error: yaml.YAMLError) -> tuple[int, str]:
    """The line, from 1, 0 where the reader names none; and why, without what stands there."""
    mark = getattr(error, "problem_mark", None)
    return mark.line + 1 if mark else 0, f"no YAML: {getattr(error, 'problem', '') or 'it ends too soon'}"
