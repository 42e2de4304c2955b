"""The documentation as a program: its fenced blocks, in the order in which a reader meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import yaml
from markdown_it import MarkdownIt

from inquest.settings.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[3]
PROGRAMS: Final = frozenset(
    ("kubectl", "inquest", "helm", "make", "docker", "export", "openssl", "opa", "curl", "pip", "git", "umask", "for")
) | {".venv/bin/python", ".venv/bin/inquest", "python3", "source"}
_SETTINGS: Final = set(Settings.model_fields)
_ASSIGNS: Final = re.compile(r"[A-Z_]+=")
_FILE: Final = re.compile(r"`([\w.-]+\.ya?ml)`:$")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    """Its path below the root of the repository."""
    line: int
    """Of the fence, from 1."""
    language: str
    text: str
    title: str
    """What the paragraph before it says."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that a reader writes it into; empty where none is named."""
        found = _FILE.search(self.title)
        return found[1] if found else ""


@dataclass(frozen=True)
class Step:
    """What a reader types at once, and what the page says that comes back."""

    block: Block
    command: str
    expected: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.block}: {self.command.splitlines()[0]}"


def pages() -> list[str]:
    """Every page that a user reads; decisions tell of the past."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "hack/README.md", ROOT / "catalogue/README.md"]
    names = sorted(str(path.relative_to(ROOT)) for path in found)
    return [name for name in names if "decisions" not in name and name != "CHANGELOG.md"]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    said = ""
    for token in MarkdownIt().parse((ROOT / page).read_text()):
        if token.type == "inline":
            said = token.content
        elif token.type == "fence":
            assert token.map
            yield Block(page, token.map[0] + 1, token.info.strip(), token.content, said)
            said = ""


def steps(page: str) -> Iterator[Step]:
    """What a reader of the page types: each prompt of a transcript, or a whole block without prompts."""
    for block in blocks(page):
        if block.language:
            continue
        lines = block.text.splitlines()
        if any(line.startswith("$ ") for line in lines):
            yield from _transcript(block, lines)
        elif _is_typed(lines):
            yield Step(block, block.text)


def _is_typed(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return first.split(" ")[0] in PROGRAMS or _ASSIGNS.match(first) is not None


def _transcript(block: Block, lines: list[str]) -> Iterator[Step]:
    number = 0
    numbered = []
    for line in lines:
        number += line.startswith("$ ")
        numbered.append((number, line))
    for which, found in groupby(numbered, key=lambda pair: pair[0]):
        if which:
            command, *said = [line for _, line in found]
            yield Step(block, command.removeprefix("$ "), tuple(line for line in said if line.strip()))


def kind_of(block: Block) -> str:
    """What a YAML snippet is: object, settings, values or playbook; empty for anything else."""
    said = yaml.safe_load_all(block.text)
    first = next(iter(said))
    keys = set(first) if isinstance(first, dict) else set()
    rules = {
        "object": {"apiVersion", "kind"} <= keys,
        "playbook": "triggers" in keys,
        "values": "values.yaml" in (block.text + block.title) or bool(keys & {"settings", "extraEnv"}),
        "settings": isinstance(first, list) or keys == {"routes"} or (bool(keys) and keys <= _SETTINGS),
    }
    return next((kind for kind, holds in rules.items() if holds), "")
