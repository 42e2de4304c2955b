"""What cannot be read is left out and told; it never stops the look at the others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import yaml

from inquest.api.base import TIME_PATTERN
from inquest.api.catalogue import ActionType
from inquest.api.signal import Signal
from inquest.controllers.reading import parse_object, parse_objects

OBJECTS = Path(__file__).parents[2] / "support" / "objects"
ODD_TIMES = ("0000-01-01T00:00:00Z", "2026-11-22T10:00:00+24:00", "9999-12-31T23:59:59-12:00")


def an_object(name: str, firing_time: str = "2026-11-22T10:00:00Z") -> dict[str, Any]:
    """A Signal as the API server gives it."""
    return {
        "apiVersion": "inquest.dev/v1alpha1",
        "kind": "Signal",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {
            "name": "HighErrorRate",
            "severity": "high",
            "source": {"type": "Manual"},
            "target": {"kind": "Deployment", "name": "cart", "namespace": "shop"},
            "firingTime": firing_time,
        },
    }


@pytest.mark.parametrize("odd", ODD_TIMES)
def test_an_odd_time_leaves_out_its_object_alone(odd: str) -> None:
    found = parse_objects(Signal, [an_object("a"), an_object(f"odd-{odd[:4]}", odd), an_object("b")])
    assert [one.name for one in found] == ["a", "b"]


@pytest.mark.parametrize("odd", ODD_TIMES)
def test_the_schema_refuses_what_the_model_cannot_read(odd: str) -> None:
    assert not re.search(TIME_PATTERN, odd)


@pytest.mark.parametrize("usual", ["2026-11-22T10:00:00Z", "2026-11-22T10:00:00.123456789+05:45"])
def test_the_schema_lets_pass_what_everybody_writes(usual: str) -> None:
    assert re.search(TIME_PATTERN, usual)
    assert parse_objects(Signal, [an_object("usual", usual)])


def test_a_version_that_somebody_holds_is_converted_once() -> None:
    first = parse_object(Signal, an_object("once"))

    assert parse_object(Signal, an_object("once")) is first


def test_the_last_list_of_the_catalogue_is_held() -> None:
    obj = yaml.safe_load((OBJECTS / "actiontype.yaml").read_text())
    obj["metadata"] |= {"uid": "uid-type", "resourceVersion": "1"}
    held = ref(parse_objects(ActionType, [obj])[0])

    assert held() is not None
    assert parse_object(ActionType, obj) is held()


def test_another_version_of_an_object_is_read_anew() -> None:
    first, later = parse_object(Signal, an_object("anew")), an_object("anew")
    later["metadata"]["resourceVersion"] = "2"
    later["spec"]["severity"] = "low"

    assert (first.spec.severity, parse_object(Signal, later).spec.severity) == ("high", "low")


@pytest.mark.parametrize("missing", ["uid", "resourceVersion"])
def test_an_object_without_a_version_is_never_taken_for_another(missing: str) -> None:
    one, other = an_object("loose"), an_object("loose")
    for each in (one, other):
        del each["metadata"][missing]
    other["spec"]["severity"] = "low"

    assert [parse_object(Signal, each).spec.severity for each in (one, other)] == ["high", "low"]
