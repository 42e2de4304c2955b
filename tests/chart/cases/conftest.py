"""The order of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for `whole` takes every case away at its end: it comes last, also where tests are named."""
    items.sort(key=lambda item: item.path.parent == HERE and "whole" in getattr(item, "fixturenames", ()))
