"""Rows of behaviours, section 19.5: what is left of a text when there is no room for it."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inquest.core.evidence.short_forms import (
    PREVIEW_CHARACTERS,
    REREAD_CHARACTERS,
    condense_log,
    preview_text,
    reread_form,
)
from tests.support.tables import row

HEAD = "NAME                 READY   STATUS    RESTARTS".ljust(50)


def table(*rows: str) -> str:
    return "\n".join((HEAD, *rows))


def well(number: int) -> str:
    return f"web-{number}  1/1  Running  0".ljust(50)


@row("C01")
def test_a_table_keeps_its_head_its_first_rows_and_what_complains() -> None:
    rows = [well(number) for number in range(1, 101)]
    rows[76] = "web-77  1/1  CrashLoopBackOff  9".ljust(50)

    short = reread_form(table(*rows), "E7")

    assert short.splitlines()[:31] == [HEAD, *rows[:30]]
    assert short.splitlines()[31:33] == [rows[76], "69 rows omitted"]
    assert 'read_evidence("E7")' in short.splitlines()[33]


@row("C10")
def test_a_row_that_is_not_ready_is_kept() -> None:
    rows = [well(number) for number in range(1, 101)]
    rows[89] = "web-7  0/1  Running"

    assert "web-7  0/1  Running" in reread_form(table(*rows), "E7").splitlines()


def test_a_row_that_names_the_target_is_kept() -> None:
    rows = [well(number) for number in range(1, 101)]

    assert rows[94] in reread_form(table(*rows), "E7", names=("web-95",)).splitlines()


def test_over_the_cap_plain_rows_go_before_those_that_complain() -> None:
    rows = [f"web-{number}  1/1  Running".ljust(100) for number in range(30)]
    rows += [f"bad-{number}  0/1  Error".ljust(100) for number in range(10)]

    short = reread_form(table(*rows), "E7").splitlines()

    assert [line for line in short if line.startswith("bad-")] == rows[30:]
    assert [line for line in short if line.startswith("web-")] == rows[:8]


def test_a_healthy_row_of_the_target_stays_among_many_that_complain() -> None:
    """That it is well is what a reader looks for again."""
    rows = [f"bad-{number}  0/1  CrashLoopBackOff".ljust(100) for number in range(60)]
    rows.append("checkout-6d5f7c9b8-x2x4q  1/1  Running".ljust(100))

    short = reread_form(table(*rows), "E7", names=("checkout",)).splitlines()

    assert rows[-1] in short
    assert rows[-2] not in short


@row("C02")
def test_a_short_text_stays_as_it_is() -> None:
    text = "x" * 1_999

    assert reread_form(text, "E7") == text


@row("C03")
def test_an_exception_near_the_end_of_a_log_is_kept() -> None:
    lines = [f"2026-11-22T10:00:00Z request {number} served in {number} ms by the shop" for number in range(500)]
    lines[498] = "2026-11-22T10:00:01Z java.lang.OutOfMemoryError: exception in main"

    short = reread_form("\n".join(lines), "E7", tool="kubectl_logs").splitlines()

    assert lines[498] in short
    assert lines[499] in short


def test_equal_lines_of_a_log_become_one_with_a_count() -> None:
    lines = [f"2026-11-22T10:00:{second:02}Z waiting for the database to answer" for second in range(60)]

    assert "(×60)" in reread_form("\n".join(lines), "E7", tool="kubectl_logs")


@row("C04")
def test_one_long_line_is_cut_between_characters() -> None:
    short = reread_form("ä" * 10_000, "E7")

    assert len(short) <= REREAD_CHARACTERS
    assert short.encode().decode() == short
    assert 'read_evidence("E7")' in short


@row("C05")
def test_a_list_of_objects_can_still_be_read() -> None:
    items = [{"name": f"pod-{number}", "labels": {"app": "shop", "tier": "x" * 60}} for number in range(50)]

    short = json.loads(reread_form(json.dumps(items), "E7"))

    assert short[:5] == items[:5]
    assert 'read_evidence("E7")' in short[-1]


def test_an_object_keeps_whole_fields() -> None:
    found = {"kind": "Pod", "metadata": {"name": "api"}, "status": {"message": "y" * 9_000, "phase": "Failed"}}

    short = json.loads(reread_form(json.dumps(found), "E7"))

    assert (short["kind"], short["metadata"], short["status"]) == ("Pod", {"name": "api"}, {"phase": "Failed"})


def test_yaml_stays_yaml() -> None:
    found = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "api", "annotations": {"long": "y" * 5_000}}}

    short = yaml.safe_load(reread_form(yaml.safe_dump(found, sort_keys=False), "E7"))

    assert (short["kind"], short["metadata"]) == ("Pod", {"name": "api"})


def test_series_over_a_range_become_their_extremes() -> None:
    series = [
        {"metric": {"pod": f"p{number}"}, "values": [[at, str(at % 7)] for at in range(200)]} for number in range(30)
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}

    short = json.loads(reread_form(json.dumps(answer), "E7", tool="query_prometheus"))

    assert short["data"]["result"][0] == {"metric": {"pod": "p0"}, "min": "0", "max": "6", "last": "3"}


@row("C11")
def test_the_events_of_a_description_are_kept() -> None:
    volumes = "\n".join(f"  volume-{number}: {'v' * 60}" for number in range(90))
    text = f"Name: api\nNamespace: shop\nVolumes:\n{volumes}\nEvents:\n  Warning  BackOff  restarting failed container"
    assert text.index("Events:") > 6_000

    short = reread_form(text, "E7", tool="kubectl_describe")

    assert "Warning  BackOff  restarting failed container" in short
    assert "Name: api" in short


@row("C12")
@pytest.mark.parametrize("before", range(1_940, 2_000, 3))
def test_a_redaction_mark_is_whole_or_absent(before: int) -> None:
    text = "k" * before + "[REDACTED]" + "z" * 5_000

    assert "[RED" not in reread_form(text, "E7").replace("[REDACTED]", "")
    assert "[RED" not in preview_text(text[before - 495 :]).replace("[REDACTED]", "")


@given(
    st.one_of(
        st.text(max_size=6_000),
        st.lists(st.text(st.characters(codec="utf-8"), max_size=300), max_size=200).map("\n".join),
        st.recursive(
            st.one_of(st.integers(), st.text(max_size=900), st.none()),
            lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=20), inner, max_size=12),
            max_leaves=60,
        ).map(json.dumps),
    ),
    st.sampled_from(["", "kubectl_logs", "kubectl_describe", "kubectl_get_yaml", "kubectl_get"]),
)
def test_a_short_form_never_exceeds_its_cap(text: str, tool: str) -> None:
    assert len(reread_form(text, "E999999", tool=tool)) <= REREAD_CHARACTERS
    assert len(preview_text(text)) <= PREVIEW_CHARACTERS
    if len(text) <= REREAD_CHARACTERS:
        assert reread_form(text, "E1", tool=tool) == text


# --- the first reading of a log -----------------------------------------------------------------------------------


def served(number: int, status: int = 200, took: int = 12) -> str:
    return f"2026-11-22T10:00:{number % 60:02}Z GET /orders/{number} id={number:032x} status={status} took {took} ms"


def test_lines_that_differ_in_numbers_are_told_once() -> None:
    lines = ["starting", *(served(number) for number in range(200)), "ready"]
    short = condense_log("\n".join(lines), "E7", tool="kubectl_logs").splitlines()

    assert short[:2] == lines[:2]
    assert short[-2:] == lines[-2:]
    assert len(short) < 10
    assert 'read_evidence("E7")' in short[-3]


def test_what_stands_out_among_like_lines_is_shown() -> None:
    lines = [served(number) for number in range(200)]
    lines[60], lines[90] = served(60, status=500), served(90, took=30_099)
    short = condense_log("\n".join(lines), "E7", tool="kubectl_logs").splitlines()

    assert lines[60] in short
    assert lines[90] in short


def test_every_line_of_a_condensed_log_can_be_quoted_and_none_is_lost_uncounted() -> None:
    lines = [served(number, took=number * 37 % 91) for number in range(100)] + ["OutOfMemoryError"] * 3
    lines += [f"retry {number}" for number in range(40)]
    short = condense_log("\n".join(lines), "E7", tool="kubectl_previous_logs").splitlines()
    notes = [line for line in short if line.startswith("(")]

    assert all(line in lines for line in short if line not in notes)
    assert sum(int(note[1:].split()[0]) for note in notes) == len(lines) - (len(short) - len(notes))


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("\n".join(served(number) for number in range(200)), "kubectl_get"),
        ("\n".join(served(number) for number in range(10)), "kubectl_logs"),
        ("\n".join(f"{'abcdefgh' * (number + 1)}" for number in range(40)), "kubectl_logs"),
    ],
    ids=["no log", "short", "nothing alike"],
)
def test_what_is_no_row_of_like_lines_is_shown_as_it_is(text: str, tool: str) -> None:
    assert condense_log(text, "E7", tool=tool) == text


@given(st.lists(st.text("#1 9.a-\n", max_size=8), max_size=40), st.integers(1, 40))
def test_any_log_can_be_condensed(lines: list[str], times: int) -> None:
    text = "\n".join(lines * times)

    assert len(condense_log(text, "E7", tool="kubectl_logs")) <= len(text)
