"""The page of the six kinds leaves no field out, and says of each what the API server holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from hack.gen.resources import resources_page
from inquest.api.base import Resource
from inquest.api.registry import KINDS
from tests.support.tables import each_row


@cache
def page() -> str:
    return resources_page()


def chapters() -> dict[str, str]:
    _, *found = page().split("\n## ")
    return {text.partition("\n")[0]: text for text in found}


def paths(model: type[Resource], part: str) -> Iterator[str]:
    fields = model.model_fields[part].annotation
    assert fields is not None
    yield from (f"`{part}.{field.alias or name}`" for name, field in fields.model_fields.items())


@each_row("model", [entry.model for entry in KINDS])
def test_every_field_of_a_spec_and_a_status_has_a_row(model: type[Resource]) -> None:
    chapter = chapters()[model.__name__]

    assert [path for part in ("spec", "status") for path in paths(model, part) if f"| {path} |" not in chapter] == []


def test_no_row_is_without_a_type_or_a_meaning() -> None:
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith(("| `spec", "| `status"))]

    assert len(rows) > 600
    assert [row for row in rows if not all(cell.strip(" |") for cell in row)] == []


def test_a_default_a_bound_and_a_required_field_are_said() -> None:
    chapter = chapters()["Signal"]

    assert "| `spec.mode` | `Reactive`, `Proactive` | `Reactive` |" in chapter
    assert "(not empty; at most 253 characters)" in chapter
    assert (
        "| `spec.severity` | `critical`, `high`, `medium`, `warning`, `low`, `info`, `unknown` | *required* |"
        in chapter
    )
    assert "- spec.target is fixed at creation\n" in chapter
