"""Whether a replay said what was expected, and the table over many (cases, section 3)."""

from __future__ import annotations

from dataclasses import replace

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.diagnosis import Cause
from inquest.replay.scoring import (
    Expectation,
    Judged,
    Played,
    Share,
    WantedCause,
    WantedObject,
    judge_result,
    same_field,
    same_object,
    tabulate,
)
from tests.support.tables import each_row

API = WantedObject("Deployment", "api", "shop", "apps/v1")
EXPECTED = Expectation(
    outcome="NoMatchingWorkflows",
    cause=WantedCause(
        ("ProbeFailing", "ApplicationError"), (API,), ("spec.template.spec.containers[name=api].image", "log")
    ),
    acceptable=(WantedCause(objects=(WantedObject("ConfigMap", "settings", "shop"),)),),
    forbidden=(WantedCause(("CrashLoopBackOff",)), WantedCause(objects=(WantedObject("Node", "node-1"),))),
)
HEALTHY = Expectation("ProblemResolved")


def cause(category: str = "ProbeFailing", kind: str = "Deployment", name: str = "api", field: str = "log") -> Cause:
    namespace = None if kind == "Node" else "shop"
    return Cause(category, TargetRef(kind=kind, name=name, namespace=namespace), field, "", "", 0.9)


OTHER = cause("OOMKilled", name="web")


def said(*causes: Cause, outcome: str = "NoMatchingWorkflows") -> Judged:
    return judge_result(EXPECTED, causes, outcome)


def test_right_at_one_names_category_and_object() -> None:
    assert said(cause(), OTHER) == Judged(at1=True, at3=True, field=True, outcome=True)
    assert said(cause("ApplicationError")).at1
    assert not said(cause("OOMKilled")).at1
    assert not said(cause(name="web")).at1
    assert not said().at3


def test_right_at_three_when_one_of_the_first_three_does() -> None:
    assert said(OTHER, OTHER, cause()) == Judged(at1=False, at3=True, field=False, outcome=True)
    assert not said(OTHER, OTHER, OTHER, cause()).at3


def test_the_stricter_figure_asks_for_the_field_too() -> None:
    assert said(cause(field="spec.template.spec.containers[0].image")).field
    assert not said(cause(field="spec.replicas")).field
    assert said(cause(field="spec.replicas")).at1


def test_an_acceptable_object_is_right_under_the_same_categories() -> None:
    assert said(cause(kind="ConfigMap", name="settings")).at1
    assert not said(cause("OOMKilled", kind="ConfigMap", name="settings")).at1


def test_a_red_herring_must_not_come_first() -> None:
    herring = replace(EXPECTED, cause=WantedCause(("CrashLoopBackOff", "ProbeFailing"), (API,)))
    assert judge_result(herring, [cause("CrashLoopBackOff")], "").at1 is False
    assert judge_result(herring, [cause("ProbeFailing"), cause("CrashLoopBackOff")], "").at1 is True


def test_the_outcome_is_compared_where_one_is_expected() -> None:
    assert not said(cause(), outcome="WorkflowSelected").holds
    assert judge_result(replace(EXPECTED, outcome=""), [cause()], "WorkflowSelected").holds


def test_where_nothing_is_wrong_nothing_may_be_blamed() -> None:
    assert judge_result(HEALTHY, [], "ProblemResolved").holds
    assert judge_result(HEALTHY, [cause()], "NotActionable").at1
    assert not judge_result(HEALTHY, [cause()], "NoMatchingWorkflows").at1
    assert not judge_result(HEALTHY, [], "Inconclusive").holds


@each_row(
    ("wanted", "named", "same"),
    [
        (API, TargetRef(kind="Deployment", name="api", namespace="shop"), True),
        (API, TargetRef(api_version="apps/v1beta1", kind="Deployment", name="api", namespace="shop"), True),
        (API, TargetRef(api_version="x.io/v1", kind="Deployment", name="api", namespace="shop"), False),
        (API, TargetRef(kind="Deployment", name="api", namespace="bank"), False),
        (WantedObject("Node", "n"), TargetRef(kind="Node", name="n"), True),
        (WantedObject("External", "db.example.com"), TargetRef(kind="External", name="DB.example.com:5432"), True),
        (
            WantedObject("External", "https://db.example.com/x"),
            TargetRef(kind="External", name="db.example.com."),
            True,
        ),
        (WantedObject("External", "db.example.com"), TargetRef(kind="External", name="example.com"), False),
    ],
)
def test_objects(wanted: WantedObject, named: TargetRef, same: bool) -> None:
    assert same_object(wanted, named) is same


@each_row(
    ("wanted", "named", "same"),
    [
        ("log", "log", True),
        ("process", "log", False),
        ("spec.replicas", "$.spec.replicas", True),
        ("spec.template.spec.containers[name=a].image", "spec.template.spec.containers[name=a].image", True),
        ("spec.template.spec.containers[name=a].image", "spec.template.spec.containers[name=b].image", False),
        ("spec.template.spec.containers[0].image", "spec.template.spec.containers[name=b].image", True),
        ('spec.containers[?(@.name=="a")].image', "spec.containers[name=a].image", True),
        ("spec.containers[].image", "spec.containers[name=a].image", True),
        ("status.conditions[type=MemoryPressure]", "status.conditions[type=MemoryPressure].status", True),
        ("status.conditions[type=MemoryPressure]", "status.conditions[type=Ready].status", False),
        ("spec.resources", "spec.resources.limits.memory", True),
        ("spec.resources.limits.memory", "spec.resources", False),
        ('data["app.conf"]', "data.app.conf", True),
        (r"data.app\.conf", "data['app.conf']", True),
        ("data.app", "data.apple", False),
        ("", "log", False),
    ],
)
def test_fields(wanted: str, named: str, same: bool) -> None:
    assert same_field(wanted, named) is same


def test_the_table_counts_by_the_first_right_category_and_healthy_controls_apart() -> None:
    right, third = Judged(True, True, True, True), Judged(False, True, False, True)
    calm, alarm = judge_result(HEALTHY, [], "ProblemResolved"), judge_result(HEALTHY, [cause()], "NoMatchingWorkflows")
    table = tabulate(
        [
            Played(EXPECTED, right, 1, "NoMatchingWorkflows", 20),
            Played(EXPECTED, third, 2, "NoMatchingWorkflows", 30),
            Played(HEALTHY, calm, 0, "ProblemResolved", 10),
            Played(HEALTHY, alarm, 1, "NoMatchingWorkflows", 10),
            Played(None, None, 1, "NoMatchingWorkflows", 30),
        ]
    )
    assert table.total == Share(cases=2, at1=1, at3=2, field=1)
    assert table.by_category == {"ProbeFailing": table.total}
    assert (table.healthy, table.alarms, table.cases, table.reads) == (2, 1, 5, 100)
    assert (table.told, table.outcomes) == (4, 3)
