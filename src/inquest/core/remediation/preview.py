"""What a workflow would change, as a diff of the target."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

import yaml

from inquest.api.catalogue import PreviewEntry
from inquest.core.cluster.objects import metadata_of
from inquest.core.evidence.evidence import Json
from inquest.core.remediation.proposal import Manifest

MAX_PREVIEW: Final = 16384


_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


_STEP: Final = re.compile(r"""\.?(?:\["(?P<key>[^"]*)"\]|\[(?P<by>[^=\]]+)=(?P<value>[^\]]*)\]|(?P<word>[^.\[]+))""")
_UNSHOWN: Final = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")


def expand_parameters(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` as the kubelet expands it: `$$` is a dollar, an unknown name stays as it is."""
    return _REFERENCE.sub(lambda found: _expansion(found, values), text)


def _expansion(found: re.Match[str], values: Mapping[str, str]) -> str:
    name = found.group(1)
    return "$" if name is None else values.get(name, found.group(0))


def preview_diff(entries: Iterable[PreviewEntry], target: Json, values: Mapping[str, str]) -> str:
    """Unified diff of the target before and after; a path that leads nowhere is named below it."""
    before, after, lost = _shown(target), _shown(target), []
    for entry in entries:
        path = expand_parameters(entry.path, values)
        if not _set(after, path, expand_parameters(entry.value, values)):
            lost.append(f"# {path}: not found in the target\n")
    lines = difflib.unified_diff(_yaml_lines(before), _yaml_lines(after), "before", "after")
    return "".join((*lines, *lost))


def _shown(target: Json) -> Manifest:
    whole: Manifest = deepcopy({key: value for key, value in target.items() if key != "status"})
    whole["metadata"] = {key: value for key, value in metadata_of(whole).items() if key not in _UNSHOWN}
    return whole


def _yaml_lines(found: Json) -> list[str]:
    return yaml.safe_dump(dict(found), sort_keys=False, allow_unicode=True).splitlines(keepends=True)


def _set(root: Manifest, path: str, value: str) -> bool:
    """Write one value; missing maps are made, missing list members are not: the workflow would not find them either."""
    *way, last = list(_STEP.finditer(path))
    node: Any = root
    for step in way:
        node = _step_into(node, step)
        if node is None:
            return False
    key = last["word"] or last["key"]
    if not isinstance(node, dict) or not key:
        return False
    node[key] = _as_before(node.get(key), value)
    return True


def _step_into(node: Any, step: re.Match[str]) -> Any:
    if step["by"]:
        members = (one for one in (node if isinstance(node, list) else ()) if isinstance(one, dict))
        return next((one for one in members if str(one.get(step["by"])) == step["value"]), None)
    return node.setdefault(step["word"] or step["key"], {}) if isinstance(node, dict) else None


def _as_before(old: object, value: str) -> object:
    """Numbers and booleans stay what they were, so that the diff shows the change and nothing else."""
    if isinstance(old, bool):
        return value == "true"
    return int(value) if isinstance(old, int) and value.lstrip("-").isdigit() else value
