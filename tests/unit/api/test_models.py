"""The models: strict when made, tolerant when read, exact when written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from inquest.api.base import duration_from_timedelta, rfc3339, timedelta_from_duration
from inquest.api.findings import CauseEntry
from inquest.api.investigation import Investigation, InvestigationStatus, Limits
from inquest.api.refs import DetectedLabels, ObjectRef, TargetRef
from inquest.api.registry import BY_KIND
from inquest.api.signal import Signal, SignalSpec, Source
from inquest.api.types import Severity
from tests.support.tables import each_row

OBJECTS = Path(__file__).parents[2] / "support" / "objects"


@each_row("kind", sorted(BY_KIND))
def test_reading_and_writing_a_rich_object_changes_nothing(kind: str) -> None:
    found = yaml.safe_load((OBJECTS / f"{kind.lower()}.yaml").read_text())

    assert BY_KIND[kind].model.from_object(found).to_object() == found


def test_what_a_newer_version_wrote_is_read_without_what_is_unknown() -> None:
    found = yaml.safe_load((OBJECTS / "signal.yaml").read_text())
    newer = found | {"spec": found["spec"] | {"colour": "blue", "source": found["spec"]["source"] | {"mood": "bad"}}}

    assert Signal.from_object(newer) == Signal.from_object(found)


def test_a_field_that_does_not_exist_is_refused_when_made_in_code() -> None:
    with pytest.raises(ValidationError, match="colour"):
        TargetRef(kind="Pod", name="web", colour="blue")  # type: ignore[call-arg]


def test_a_value_does_not_change() -> None:
    target = TargetRef(kind="Pod", name="web")

    with pytest.raises(ValidationError, match="frozen"):
        target.name = "other"  # type: ignore[misc]


def test_absence_is_not_written() -> None:
    assert InvestigationStatus().to_object() == {}
    assert TargetRef(kind="Node", name="worker-1").to_object() == {"kind": "Node", "name": "worker-1"}


def test_a_required_empty_map_is_written() -> None:
    found = yaml.safe_load((OBJECTS / "remediationapprovalrequest.yaml").read_text())
    found["spec"]["parameters"] = {}

    assert BY_KIND[found["kind"]].model.from_object(found).to_object()["spec"]["parameters"] == {}


def test_false_and_zero_are_not_absence() -> None:
    written = InvestigationStatus(degraded=False, attempts=0).to_object()

    assert written == {"degraded": False, "attempts": 0}


def test_the_link_keeps_its_spelling() -> None:
    assert Source(type="Manual", generator_url="http://a").to_object()["generatorURL"] == "http://a"


def test_detected_labels_keep_the_spelling_of_the_catalogue() -> None:
    assert DetectedLabels(git_ops_managed=True, pdb_protected=False).to_object() == {
        "gitOpsManaged": True,
        "pdbProtected": False,
    }


@pytest.mark.parametrize(("given_", "written"), [(0.696, 0.7), (0.694, 0.69), (1, 1.0), (0, 0.0)])
def test_confidence_is_rounded_when_written_and_not_before(given_: float, written: float) -> None:
    status = InvestigationStatus(confidence=given_)

    assert (status.confidence, status.to_object()["confidence"]) == (given_, written)


@pytest.mark.parametrize("wrong", [-0.01, 1.01, float("nan")])
def test_confidence_lies_between_none_and_certainty(wrong: float) -> None:
    with pytest.raises(ValidationError):
        CauseEntry(confidence=wrong)


def test_a_time_is_written_in_utc_and_whole_seconds() -> None:
    noon = datetime(2026, 11, 22, 13, 0, 0, 999_000, tzinfo=timezone(timedelta(hours=1)))

    assert rfc3339(noon) == "2026-11-22T12:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="zone"):
        InvestigationStatus(started_at=datetime(2026, 11, 22))


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(9000, 1, 1), timezones=st.just(UTC)))
def test_a_time_comes_back_as_it_was_kept(moment: datetime) -> None:
    status = InvestigationStatus(started_at=moment)

    assert InvestigationStatus.from_object(status.to_object()) == status


@each_row(("text", "seconds"), [("15m", 900), ("1h30m", 5400), ("500ms", 0.5), ("0s", 0), ("1m1s", 61), ("90m", 5400)])
def test_a_duration_is_understood(text: str, seconds: float) -> None:
    assert timedelta_from_duration(text).total_seconds() == seconds


@each_row("text", ["", "15", "15 m", "-1m", "1.5h", "15min"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        timedelta_from_duration(text)
    with pytest.raises(ValidationError):
        Limits(timeout=text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30)))
def test_a_duration_text_means_its_whole_seconds(span: timedelta) -> None:
    assert timedelta_from_duration(duration_from_timedelta(span)) == timedelta(seconds=int(span.total_seconds()))


def test_a_set_has_no_duplicates() -> None:
    assert CauseEntry(evidence=("E2", "E1", "E2")).evidence == ("E2", "E1")


def test_medium_is_warning_and_low_is_info() -> None:
    order = sorted(Severity, key=lambda severity: -severity.rank)

    assert [severity.rank for severity in order] == [4, 3, 2, 2, 1, 1, 0]
    assert Severity.MEDIUM.rank == Severity.WARNING.rank
    assert Severity.LOW.rank == Severity.INFO.rank


def test_the_frame_tells_who_the_object_is() -> None:
    found = Investigation.from_object(yaml.safe_load((OBJECTS / "investigation.yaml").read_text()))

    assert (found.name, found.namespace, found.uid, found.generation) == ("inv-checkout", "", "", 0)
    assert found.status.is_true("InvestigationComplete")
    assert not found.status.is_true("Ready")
    assert found.spec.signal_ref == ObjectRef(name="sig-checkout", uid="6be1f0c2-5f0e-4c59-8d0a-6c9f2f3b1a77")


def test_mode_is_reactive_unless_said() -> None:
    target = TargetRef(kind="Pod", name="web", namespace="shop")

    spec = SignalSpec(name="Slow", severity=Severity.HIGH, source=Source(type="Manual"), target=target)

    assert spec.to_object()["mode"] == "Reactive"
