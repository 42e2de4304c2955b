"""The order of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who asks for `whole` takes every case away at its end: of these tests it comes last, however they were named."""
    places = [number for number, item in enumerate(items) if item.path.parent == HERE]
    ours = sorted((items[number] for number in places), key=lambda item: "whole" in getattr(item, "fixturenames", ()))
    for number, item in zip(places, ours, strict=True):
        items[number] = item
