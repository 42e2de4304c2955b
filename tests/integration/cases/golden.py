"""A status as text that is the same in every run: what differs by nature is replaced by a word, all else stays.

INQUEST_WRITE_GOLDEN=1 pytest tests/integration/cases      writes the files; read them against the tables before use
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parent / "golden"
WRITE: Final = "INQUEST_WRITE_GOLDEN"

_PATTERNS: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"), "TIME"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"sha256:[0-9a-f]{64}"), "DIGEST"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b\d+[smh](?:\d+[smh])* ago\b"), "AGE ago"),
    (re.compile(r"\binquest-story/[0-9a-f]{8}\b"), "REPLICA"),
    (re.compile(r"\bshop-[a-z0-9]{6,10}-[a-z0-9]{5}\b"), "shop-POD"),
    (re.compile(r"\bshop-(?=[a-z0-9]*[0-9])[a-z0-9]{6,10}\b"), "shop-REPLICASET"),
)
_VALUES: Final = {
    "durationSeconds": "SECONDS",
    "milliseconds": "MILLISECONDS",
    "preview": "TEXT",
    "size": "CHARACTERS",
    "resourceVersion": "VERSION",
    "epoch": "EPOCH",
    "seq": "SLOTS",
    "promptTokens": "TOKENS",
    "cachedTokens": "TOKENS",
    "completionTokens": "TOKENS",
    "totalTokens": "TOKENS",
}


def brief(status: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions and evidence in a line each; what every entry must have is asserted here and left out."""
    both = dict(status)
    both["conditions"] = {one["type"]: _condition(one) for one in status.get("conditions", ())}
    both["evidence"] = [_evidence(one) for one in status.get("evidence", ())]
    return both


def _condition(one: Mapping[str, Any]) -> str:
    assert one["lastTransitionTime"]
    assert one["observedGeneration"]
    return f"{one['status']} {one['reason']}" + (f": {one['message']}" if one["message"] else "")


def _evidence(one: Mapping[str, Any]) -> str:
    assert all(one[key] for key in ("at", "argsDigest", "digest"))
    words = [word for word, holds in (("empty", not one["size"]), ("truncated", one["truncated"])) if holds]
    return " ".join((one["id"], one["tool"], *words))


def normal(value: Any, names: Mapping[str, str]) -> Any:
    """The same structure; `names` says what is called differently in every run, and by which word."""
    if isinstance(value, Mapping):
        return {key: _VALUES[key] if key in _VALUES else normal(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [normal(item, names) for item in value]
    return _text(value, names) if isinstance(value, str) else value


def _text(text: str, names: Mapping[str, str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    return text


def rendered(value: Any) -> str:
    """YAML, keys sorted."""
    return yaml.safe_dump(value, allow_unicode=True, width=110, sort_keys=True)


def compare(name: str, value: Any) -> None:
    """Fails with the difference, or where there is no file; with the variable set it writes the file instead."""
    path, found = FOLDER / f"{name}.yaml", rendered(value)
    if os.environ.get(WRITE):
        path.write_text(found, encoding="utf-8")
    assert path.exists(), f"no golden file {path.name}: {WRITE}=1 writes it"
    wanted = path.read_text(encoding="utf-8")
    lines = difflib.unified_diff(
        wanted.splitlines(), found.splitlines(), f"golden/{path.name}", "now", lineterm="", n=2
    )
    assert wanted == found, "\n" + "\n".join(lines)
