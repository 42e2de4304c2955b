"""Names: the same thing always has the same name, and another thing another one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.api import names
from inquest.api.refs import TargetRef

WEB = TargetRef(api_version="apps/v1", kind="Deployment", name="web", namespace="shop")
NODE = TargetRef(api_version="v1", kind="Node", name="worker-1")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
WORDS = st.text(min_size=1, max_size=400)


@pytest.mark.parametrize(
    ("owner", "text"), [(WEB, "shop:Deployment:web"), (NODE, ":Node:worker-1")], ids=["namespaced", "cluster-scoped"]
)
def test_a_fingerprint_is_the_hash_of_the_root_owner(owner: TargetRef, text: str) -> None:
    assert names.fingerprint_of(owner) == sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("row", ["C-IN-1"])
def test_the_api_version_is_no_part_of_the_fingerprint(row: str) -> None:
    assert names.fingerprint_of(WEB) == names.fingerprint_of(WEB.model_copy(update={"api_version": None}))


def test_without_a_target_the_signal_name_keeps_cases_apart() -> None:
    assert names.fingerprint_of_unknown("shop", "Slow") == sha256(b"shop:Unknown:Slow").hexdigest()


def test_a_repeated_notification_meets_the_same_object() -> None:
    first = names.signal_name("Alertmanager", "Slow", WEB, NOON)

    assert first == names.signal_name("Alertmanager", "Slow", WEB, NOON)
    assert first != names.signal_name("Alertmanager", "Slow", WEB, NOON.replace(hour=13))
    canonical = b'["Alertmanager","Slow","shop","Deployment","web","2026-11-22T12:00:00Z"]'
    assert first == f"sig-{sha256(canonical).hexdigest()[:16]}"


def test_an_investigation_is_named_by_case_signal_and_round() -> None:
    case = names.fingerprint_of(WEB)

    first, second = (names.investigation_name(case, "uid-1", round_) for round_ in (1, 2))

    assert re.fullmatch(rf"inv-{case[:12]}-[0-9a-f]{{8}}", first)
    assert first != second


def test_children_are_named_after_their_investigation() -> None:
    made = [make("inv-x") for make in (names.approval_name, names.execution_name, names.undo_name)]

    assert made == ["rar-inv-x", "wfe-inv-x", "wfe-inv-x-undo"]


@given(WORDS, WORDS)
def test_names_fit_and_differ(one: str, other: str) -> None:
    made = {names.undo_name(one), names.undo_name(other)}

    assert all(len(name) <= 253 for name in made)
    assert len(made) == len({one, other})


@pytest.mark.parametrize("row", ["C-WF-1"])
def test_one_target_has_one_job_name_of_twenty_characters(row: str) -> None:
    name = names.job_name(names.target_string(WEB))

    assert (name, len(name)) == (f"wfe-{sha256(b'shop/Deployment/web').hexdigest()[:16]}", 20)
    assert name == names.job_name(names.target_string(WEB))
    assert name != names.job_name(names.target_string(NODE))


@pytest.mark.parametrize(("target", "text"), [(WEB, "shop/Deployment/web"), (NODE, "Node/worker-1")])
def test_a_target_string_names_the_namespace_where_there_is_one(target: TargetRef, text: str) -> None:
    assert names.target_string(target) == text


def test_slots_leases_and_columns() -> None:
    assert names.slot_name("7be1f0c2", 7) == "7be1f0c2-0007"
    assert names.case_lease_name("ab" * 32) == f"inquest-case-{'ab' * 8}"
    assert names.replica_lease_name("inquest-0") == "inquest-replica-inquest-0"
    assert names.target_display(WEB) == "Deployment/web"
    assert names.workflow_display("RollbackDeployment", "undo") == "RollbackDeployment:undo"


def test_a_column_is_cut_where_a_name_never_is() -> None:
    long = names.target_display(TargetRef(kind="Pod", name="x" * 253))

    assert (len(long), long[-1]) == (127, "…")


def test_children_carry_the_labels_of_their_case() -> None:
    assert names.child_labels(signal="sig-1", investigation="inv-1", fingerprint="ab" * 32) == {
        "app.kubernetes.io/managed-by": "inquest",
        "inquest.dev/signal": "sig-1",
        "inquest.dev/investigation": "inv-1",
        "inquest.dev/fingerprint": "ab" * 8,
    }


@given(WORDS)
def test_every_text_becomes_a_label_value(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", names.label_value(text))


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        ({"inquest.dev/team": "pay", "kubernaut.ai/team": "old"}, "pay"),
        ({"kubernaut.ai/team": "old"}, "old"),
        ({"inquest.dev/team": "", "kubernaut.ai/team": "old"}, "old"),
        ({"team": "pay"}, None),
    ],
    ids=["ours wins", "kubernaut's is read", "empty is absent", "no prefix, no meaning"],
)
def test_labels_are_read_with_either_prefix(labels: dict[str, str], value: str | None) -> None:
    assert names.read_label(labels, "team") == value
