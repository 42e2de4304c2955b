"""The corpus at the redactor (reliability, section 10.3, RV-07): what must be gone is, what must stay does."""

from __future__ import annotations

import json
from collections.abc import Callable

from inquest.core.redaction.mask import MARK, WITHHELD
from inquest.core.redaction.redactor import Redactor
from tests.support.tables import each_row
from tests.unit.core.redaction.corpus import (
    CARRIERS,
    ENCODED,
    HARMLESS,
    KEYS,
    PLACED,
    TOKENS,
    Positive,
    drawn_negatives,
    part_of,
)

REDACTOR = Redactor()
POSITIVES = {
    f"{kind}: {name}": found
    for kind, found_in in {"place": PLACED, "key": KEYS, "encoded": ENCODED}.items()
    for name, found in found_in.items()
}


def redacted(text: str) -> str:
    """By a redactor that has seen nothing before: what it remembers proves nothing."""
    return Redactor().text(text).value


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@each_row("found", POSITIVES.values(), ids=POSITIVES.keys())
def test_a_secret_is_gone(found: Positive) -> None:
    text = redacted(found.text)

    assert [secret for secret in found.secrets if secret in text] == []
    assert text != WITHHELD
    assert text == redacted(text)
    assert is_json(text) >= is_json(found.text)


@each_row("carrier", CARRIERS.values(), ids=CARRIERS.keys())
@each_row("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_token_of_known_form_is_gone_from_every_carrier(token: str, carrier: Callable[[str], str]) -> None:
    before = carrier(token)

    text = redacted(before)

    assert part_of(token) not in text
    assert MARK in text
    assert text == redacted(text)
    assert is_json(text) >= is_json(before)


@each_row("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_only_looks_like_a_secret_stays_byte_for_byte(text: str) -> None:
    assert text == redacted(text)


def test_identifiers_of_a_cluster_stay_byte_for_byte() -> None:
    found = dict(drawn_negatives())

    assert len(found) >= 2_000
    assert [name for name, text in found.items() if redacted(text) != text] == []


def test_the_corpus_is_as_large_as_it_should_be() -> None:
    assert len(TOKENS) >= 40
    assert len(POSITIVES) + len(TOKENS) >= 150
    assert len(POSITIVES) + len(TOKENS) * len(CARRIERS) >= 500
    assert len(HARMLESS) >= 100
