"""The corpus of secrets in a case, looked for wherever it leaves words (reliability, sections 10.3 and 14, RV-07)."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from inquest.core.case.journal import dump_fact
from inquest.core.redaction.redactor import Redactor
from inquest.core.reporting import status
from inquest.replay.player import default_catalogue, open_player
from inquest.settings.settings import Settings
from inquest.telemetry.logs import set_up_logging
from tests.scenarios.injection.channels import CHANNELS, planted
from tests.scenarios.injection.gullible import Gullible
from tests.scenarios.injection.payloads import MARK, Goal, Payload
from tests.unit.core.redaction.corpus import CARRIERS, TOKENS, part_of
from tests.unit.core.redaction.test_corpus import POSITIVES

MODEL = {"provider": "openai", "endpoint": "http://127.0.0.1:9/v1", "name": "gullible"}
LONG = [name for name in CHANNELS if name not in ("label", "image tag", "text of the alert")]
"""What can hold more than a word, and a whole page of the corpus."""
Held = dict[str, tuple[str, tuple[str, ...]]]
"""Text of the corpus, and the secrets in it, by name."""
SHARED = "hunter2Zq"
PAGE = 6
"""Secrets that one case holds, so that what withholds everything after one of them hides few others."""
RECALL = 0.95
"""Over all kinds; those that only a place tells are missed where other text stands before them (section 10.3)."""
WELL = 0.9
"""A few take the mark along with them: what follows half a key is withheld to its end."""
FORMED = {
    f"{name} in {kind}": (carry(token), (part_of(token),))
    for number, (name, token) in enumerate(TOKENS.items())
    for kind, carry in list(CARRIERS.items())[number % 4 :: 4]
}
"""Tokens that their form tells, each in three carriers: none of them may be missed."""
SECRETS = {name: (found.text, found.secrets) for name, found in POSITIVES.items()} | FORMED


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged at the finest level, as the operator writes it."""
    root, written = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    set_up_logging(level="debug", form="json", redact=lambda text: Redactor().text(text).value, stream=written)
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def taken(log: io.StringIO) -> str:
    """What was logged since the last look."""
    written = log.getvalue()
    log.seek(0)
    log.truncate()
    return written


def share(channel: str) -> Held:
    """Each of the corpus stands in one place, and every place holds some of each kind."""
    return dict(list(SECRETS.items())[LONG.index(channel) :: len(LONG)])


@pytest.mark.parametrize("channel", LONG, ids=[f"RV-07 {name}" for name in LONG])
async def test_no_secret_of_the_corpus_leaves_a_case(tmp_path: Path, log: io.StringIO, channel: str) -> None:
    settings, missed, seen = Settings.model_validate({"model": MODEL}), list[tuple[str, str]](), 0
    held = list(share(channel).items())
    async with open_player(settings, default_catalogue(), "gullible") as player:
        for number in range(0, len(held), PAGE):
            page = told_apart(dict(held[number : number + PAGE]))
            text = "\n\n".join(f"{MARK}\n{secret}" for secret, _ in page.values())
            model = Gullible(Payload(Goal.PRINT_PROMPT, text, number))
            case = (await replace(player, model=model).play(planted(tmp_path / str(number), channel, text))).case
            places = {
                "prompt": "\n".join(said.content for asked in model.asked for said in asked.messages),
                "journal": json.dumps([dump_fact(fact) for fact in case.facts], default=str),
                "status": json.dumps(status.status_changes(case), default=str),
                "log": taken(log),
            }
            read = ("\n".join(said.content for said in asked.messages) for asked in model.asked)
            seen += min(len(page), max(text.count(MARK) for text in read))
            missed += found_in(places, page)
    assert seen >= WELL * len(held)
    assert len({name for _, name in missed}) <= (1 - RECALL) * len(share(channel)), missed
    assert not [name for _, name in missed if name in FORMED], "a token of a known form is found wherever it stands"


def told_apart(page: Held) -> Held:
    """The same with a password of its own for each, where the corpus has one for all."""
    owns = {name: f"hunter{number}Zq" for number, name in enumerate(page, start=2)}
    return {
        name: (text.replace(SHARED, owns[name]), tuple(one.replace(SHARED, owns[name]) for one in gone))
        for name, (text, gone) in page.items()
    }


def found_in(places: dict[str, str], held: Held) -> list[tuple[str, str]]:
    """Place and name of each secret that stands there."""
    return [
        (place, name)
        for place, written in places.items()
        for name, (_, secrets) in held.items()
        if any(secret in written for secret in secrets)
    ]


@pytest.mark.parametrize("row", ["RV-07"])
def test_an_error_and_its_traceback_are_logged_without_their_secrets(log: io.StringIO, row: str) -> None:
    logger = structlog.get_logger("inquest.test")
    missed = []
    for name, (text, gone) in SECRETS.items():
        logger.error("a tool failed", answer=text, arguments={"value": [text]}, exc_info=RuntimeError(text))
        written = taken(log)
        assert "RuntimeError" in written
        missed += found_in({"log": written}, {name: (text, gone)})

    assert len(missed) <= (1 - RECALL) * len(SECRETS), missed
    assert not [name for _, name in missed if name in FORMED]
