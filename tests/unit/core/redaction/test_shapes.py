"""Secrets in the shapes in which clusters print them: by kind, what is found and what is not."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Final

import pytest
import yaml

from inquest.core.redaction import documents, encoded, keyvalues, mask
from inquest.core.redaction.mask import WITHHELD
from inquest.core.redaction.redactor import Redactor
from tests.support.tables import each_row

SHAPES: Final[dict[str, list[str]]] = yaml.safe_load(Path(__file__).with_name("shapes.yaml").read_text())
NOT_FOUND, ALIKE = "not found", "looks alike"
SECRET = "hunter" + "2Zz9"
ENCODED = base64.b64encode(SECRET.encode()).decode()
SPELLINGS = {
    SECRET,
    ENCODED,
    " ".join(str(byte) for byte in SECRET.encode()),
    *(sign.join(f"{byte:x}" for byte in SECRET.encode()) for sign in " :"),
    "".join(f"\\{byte:03o}" for byte in SECRET.encode()),
}
REDACTOR = Redactor()


def every(*kinds: str) -> list[object]:
    return [pytest.param(text, id=f"{kind}: {text[:40]!r}") for kind in kinds for text in SHAPES[kind]]


def filled(text: str) -> str:
    return text.replace("{base64}", ENCODED).replace("{}", SECRET)


def is_found(text: str) -> bool:
    shown = REDACTOR.text(filled(text)).value
    return shown != WITHHELD and not any(each in shown for each in SPELLINGS)


def test_nearly_every_secret_of_each_kind_is_found() -> None:
    kinds = {kind: texts for kind, texts in SHAPES.items() if kind not in (NOT_FOUND, ALIKE)}
    shares = {kind: sum(map(is_found, texts)) / len(texts) for kind, texts in kinds.items()}

    assert len(kinds) == 10
    assert {kind: share for kind, share in shares.items() if share < 0.95} == {}


@each_row("text", every(*(kind for kind in SHAPES if kind not in (NOT_FOUND, ALIKE))))
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    shown = REDACTOR.text(filled(text)).value

    assert Redactor().text(shown).value == shown


@pytest.mark.parametrize("text", every(*SHAPES))
def test_a_text_is_redacted_the_same_in_short_stretches(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Redactor().text(filled(text)).value
    for module in (mask, documents, encoded, keyvalues):
        monkeypatch.setattr(module, "STRETCH", 32)

    assert Redactor().text(filled(text)).value == whole


def test_hints_over_the_edge_of_a_stretch_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join("." * dots + word for dots in range(12) for word in keyvalues.HINTS)
    whole = list(keyvalues.hints_in(text))
    for module in (mask, keyvalues):
        monkeypatch.setattr(module, "STRETCH", 16)

    assert list(keyvalues.hints_in(text)) == whole


@pytest.mark.parametrize("text", every(NOT_FOUND))
def test_what_is_said_not_to_be_found_is_not(text: str) -> None:
    assert not is_found(text), "take it into its kind"


@each_row("text", every(ALIKE))
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert REDACTOR.text(text).value == text
