"""`inquest lint`: objects in files, held against the product without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from cyclopts import Parameter

from inquest.adapters.playbooks.reader import find_book_faults
from inquest.adapters.yaml_fault import line_of_field, yaml_fault
from inquest.cli.admin.lint_rules import UNCHECKED, LintFault, LintInput, find_faults, is_of_others
from inquest.cli.exits import Exit
from inquest.cli.output import machine_text, print_lines, print_warning
from inquest.core.redaction.redactor import Redactor
from inquest.core.text import quantity
from inquest.errors import Misconfigured
from inquest.replay.player import default_catalogue

STDIN: Final = "-"


@dataclass(frozen=True)
class LintDocument:
    """One document where it stands."""

    file: str
    node: yaml.Node
    body: Any


def lint(
    *files: Annotated[str, Parameter(allow_leading_hyphen=True)],
    output: Annotated[Literal["text", "json", "yaml"], Parameter(alias="-o")] = "text",
) -> int:
    """Check Signals, Investigations, ActionTypes, RemediationWorkflows and playbooks in YAML files, without a cluster.

    Objects of others are passed over. Exits with 0 where all can be applied and used, warnings or not, 1 where one
    cannot, 2 where a file cannot be read. CEL rules of the kinds are not checked: that is what
    `kubectl apply --dry-run=server` does.

    Parameters
    ----------
    files
        YAML files of one or more documents, or folders of them; `-` is the standard input.
    output
        `text`: `file:line: field: rule`, a line for each fault.
    """
    unread: list[str] = []
    written = [one for file in _files(files) for one in _readable(file, unread)]
    if not written and not unread:
        raise Misconfigured(
            "name a file with Signals, ActionTypes or RemediationWorkflows, or - for the standard input"
        )
    found = find_faults(LintInput([one.body for one in written], _known_actions(), _is_secret, find_book_faults))
    if output == "text":
        print_lines(*(f"{_place(written, one)}: {_level(one)}{one.field}: {one.rule}" for one in found))
        print_warning(f"{_sum(written, found)}; {UNCHECKED}")
    else:
        passed = sum(is_of_others(one.body) for one in written)
        findings = [_document(written, one) for one in found]
        print_lines(machine_text({"findings": findings, "passedOver": passed, "unchecked": UNCHECKED}, output))
    if unread:
        raise Misconfigured("; ".join(unread))
    return Exit.NO if any(not one.warning for one in found) else Exit.OK


def _sum(written: Sequence[LintDocument], found: Sequence[LintFault]) -> str:
    others = sum(is_of_others(one.body) for one in written)
    passed = f", {quantity(others, 'document')} of other kinds passed over" if others else ""
    return f"{quantity(len(written) - others, 'document')}, {quantity(len(found), 'finding')}{passed}"


def _readable(file: str, unread: list[str]) -> list[LintDocument]:
    """What a file holds; one that cannot be read keeps no other from being looked at."""
    try:
        return list(_read(file))
    except Misconfigured as error:
        unread.append(str(error))
        return []


def _files(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        place = Path(name)
        if name != STDIN and place.is_dir():
            yield from map(str, sorted(path for path in place.rglob("*") if path.suffix in (".yaml", ".yml")))
        else:
            yield name


def _read(file: str) -> Iterator[LintDocument]:
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        bodies = list(yaml.safe_load_all(text))
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{file} cannot be read: {type(error).__name__}") from error
    except yaml.YAMLError as error:
        line, why = yaml_fault(error)
        raise Misconfigured(f"{file}:{line}: {why}" if line else f"{file}: {why}") from error
    for node, body in zip(nodes, bodies, strict=True):
        if node is not None and body is not None:
            yield LintDocument(file, node, body)


def _known_actions() -> frozenset[str]:
    folder = default_catalogue()
    bodies = (
        [one for path in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())]
        if folder
        else []
    )
    return frozenset(str(one["spec"]["name"]) for one in bodies if one and one.get("kind") == "ActionType")


def _is_secret(text: str) -> bool:
    return Redactor().text(text).value != text


def _level(one: LintFault) -> str:
    return "warning: " if one.warning else ""


def _place(written: Sequence[LintDocument], one: LintFault) -> str:
    return f"{written[one.document].file}:{line_of_field(written[one.document].node, one.path)}"


def _document(written: Sequence[LintDocument], one: LintFault) -> dict[str, Any]:
    place = written[one.document]
    return {
        "file": place.file,
        "line": line_of_field(place.node, one.path),
        "field": one.field,
        "rule": one.rule,
        "level": "warning" if one.warning else "fault",
    }
