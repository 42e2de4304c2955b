"""What people say without asking for anything (behaviours, 11.1 and 19.5)."""

from __future__ import annotations

import pytest

from inquest.api.types import SourceType
from inquest.core.reporting import notices
from inquest.core.signals.noise import is_chatter, is_own_report
from inquest.core.signals.triage import triage_signal
from inquest.core.signals.triage_input import TriageInput
from tests.unit.core.reporting.test_status import ENDED
from tests.unit.core.signals.test_triage import content, observed


def said(text: str, source: SourceType = SourceType.MANUAL) -> TriageInput:
    """A Signal with a text of this source."""
    return observed(spec=content(source={"type": source}, message=text or None))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("thanks, all good!", id="I01"),
        pytest.param("good morning team", id="I07"),
        "Hi there",
        "OK, got it, thanks a lot \N{THUMBS UP SIGN}",
        "you're welcome",
    ],
)
def test_small_talk_is_ignored(text: str) -> None:
    found = triage_signal(said(text))

    assert is_chatter(text)
    assert (found.phase, found.reason) == ("Ignored", "Noise")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("health check: is shop fine?", id="I02"),
        pytest.param("hi, payments is throwing 500s", id="I08"),
        "good morning, checkout is down",
        "all good?",
        "no problem",
        "thanks 5",
        "guten Morgen",
        "",
        "thanks " * 50,
    ],
)
def test_in_doubt_it_is_looked_at(text: str) -> None:
    found = triage_signal(said(text))

    assert not is_chatter(text)
    assert found.reason == "Accepted"


def test_an_alert_is_never_judged_by_its_words() -> None:
    found = triage_signal(said("thanks, all good!", SourceType.ALERTMANAGER))

    assert found.reason == "Accepted"


@pytest.mark.parametrize("row", ["I09"])
def test_our_own_report_come_back_is_ignored(row: str) -> None:
    closing = notices.case_notice(ENDED["no workflow"])
    assert closing is not None

    assert is_own_report(f"Fwd:\n{closing.body}")
    assert triage_signal(said(closing.body)).reason == "Noise"
