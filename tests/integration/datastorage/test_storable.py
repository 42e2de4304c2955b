"""Workflow content that reads well and that no JSON column could keep is refused by name, on every engine alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inquest.datastorage.domain.content import ContentError, workflow_from_content
from inquest.datastorage.wire.types import DEEPEST, MOST_NAME, MOST_VERSION, storage_fault
from tests.integration.datastorage.samples import content
from tests.support.tables import each_row

SLOT = "THE VALUE"


def with_value(yaml_text: str) -> str:
    """Good content with a piece of YAML in a place where any value may stand."""
    text = content(engineConfig={}, execution={**json.loads(content())["spec"]["execution"], "engineConfig": SLOT})
    return text.replace(f'"{SLOT}"', yaml_text)


@each_row(
    ("piece", "fault"),
    [
        pytest.param("!!binary aGVsbG8=", "of the kind bytes", id="bytes"),
        pytest.param("!!set {a: null}", "of the kind set", id="a set"),
        pytest.param("{1: 2}", "a key that is no text", id="a number as key"),
        pytest.param(".nan", "out of range", id="not a number"),
        pytest.param("-.inf", "out of range", id="without end"),
        pytest.param('"a\\0b"', "cannot be stored", id="a zero byte"),
        pytest.param("[" * DEEPEST + "]" * DEEPEST, "nested deeper", id="too deep"),
    ],
)
def test_what_is_no_json_is_no_content(piece: str, fault: str) -> None:
    with pytest.raises(ContentError, match=fault):
        workflow_from_content(with_value(piece))


def test_what_is_json_is_kept_as_it_stands() -> None:
    assert workflow_from_content(with_value('{"a": [1, 2.5, null, true, "x"]}')).engine_config == {
        "a": [1, 2.5, None, True, "x"]
    }


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "n" * (MOST_NAME + 1)}, "metadata.name"),
        ({"version": "1" * (MOST_VERSION + 1)}, "version"),
        ({"actionType": "A" * (MOST_NAME + 1)}, "actionType"),
    ],
)
def test_what_an_index_could_not_hold_is_refused(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ContentError, match=f"{fault}: is longer than"):
        workflow_from_content(content(**change))


@pytest.mark.parametrize(("levels", "fits"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_the_bound_of_depth_lies_inside(levels: int, fits: bool) -> None:
    nested: Any = "x"
    for _ in range(levels):
        nested = [nested]

    assert (storage_fault(nested) == "") is fits
