"""What a case is opened with, of the settings and of its own spec."""

from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import Any

import pytest

from inquest.api.investigation import Investigation
from inquest.controllers.investigation.gather import Inquiries
from inquest.controllers.ports import ControllerPorts
from inquest.settings.settings import Settings

MODEL = {
    "provider": "openai",
    "endpoint": "https://one.example/v1",
    "name": "first",
    "context_window": 100_000,
    "failover": [{"endpoint": "https://two.example/v1", "name": "second", "context_window": 32_000}],
}


def pinned(model: str | None, settings: dict[str, Any]) -> tuple[str, int]:
    target = {"kind": "Deployment", "name": "cart", "namespace": "shop"}
    signal = {"name": "slow", "severity": "high", "source": {"type": "Manual"}, "target": target}
    spec = {"signal": signal} | ({"model": model} if model else {})
    inv = Investigation.from_object({"metadata": {"name": "inv-1", "namespace": "shop"}, "spec": spec})
    nothing = dict.fromkeys(field.name for field in fields(ControllerPorts))
    chosen = Settings.model_validate({"model": settings})
    there = object() if settings else None
    ports = ControllerPorts(**{**nothing, "settings": chosen, "random": Random(1), "model": there})  # type: ignore[arg-type]
    found = Inquiries(ports)._pinned(inv)
    return found.model, found.context_window


CHOICES: dict[str, tuple[str | None, dict[str, Any], tuple[str, int]]] = {
    "nothing is said": (None, MODEL, ("first", 100_000)),
    "one further down the list": ("second", MODEL, ("second", 32_000)),
    "one that is not configured": ("third", MODEL, ("first", 100_000)),
    "no model at all": ("second", {}, ("", 128_000)),
}


@pytest.mark.parametrize(("model", "settings", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_a_person_may_choose_among_the_configured_models(
    model: str | None, settings: dict[str, Any], expected: tuple[str, int]
) -> None:
    """Its window counts, and the others stay behind it in the list."""
    assert pinned(model, settings) == expected
