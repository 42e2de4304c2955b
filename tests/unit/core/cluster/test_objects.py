"""What any object is read by, whatever shape it came in."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.core.cluster.objects import event_text, labels_of, spec_of, value_at

Found = dict[str, Any]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"message": "Back-off restarting"}, "Back-off restarting"),
        ({"note": "Back-off restarting"}, "Back-off restarting"),
        ({"message": "", "note": "Back-off restarting"}, "Back-off restarting"),
        ({"message": None}, ""),
        ({}, ""),
    ],
)
def test_both_forms_of_an_event_say_the_same(event: Found, expected: str) -> None:
    assert event_text(event) == expected


@pytest.mark.parametrize("found", [{}, {"spec": None}, {"spec": "text"}, {"spec": {"template": ["text"]}}])
def test_what_is_no_mapping_reads_as_empty(found: Found) -> None:
    assert value_at(found, "spec", "template") == {}


@pytest.mark.parametrize("metadata", [None, "text", {}, {"labels": None}, {"labels": ["text"]}])
def test_an_object_without_labels_has_none(metadata: Any) -> None:
    assert labels_of({"metadata": metadata}) == {}


def test_an_object_that_is_not_there_has_no_spec() -> None:
    assert spec_of(None) == {}
