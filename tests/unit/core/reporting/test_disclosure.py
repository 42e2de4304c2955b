"""What of a case a reader is shown: by the places each text was read in, with what is missing counted and named."""

from __future__ import annotations

from typing import Any

from inquest.core.case import facts
from inquest.core.case.case import Case
from inquest.core.case.journal import dump_fact
from inquest.core.case.transitions import fold_case
from inquest.core.evidence.evidence import Evidence, Gap, ObservedObject, Origin
from inquest.core.evidence.snapshot import LogTail
from inquest.core.reporting.disclosure import OF_CONCLUSIONS, asked_about, disclose_case, origins_of, withheld_pieces
from tests.support.tables import each_row
from tests.unit.core import cases

HOME = "inquest-system"
"""Where the sample Investigation stands."""
PODS = Origin("shop", "Pod", "v1")
FOREIGN = Origin("payments", "Service", "v1")
NODES = Origin("", "Node", "v1")
SECRET = "their-ledger"


def piece(number: int, *origins: Origin, text: str = "text", **changes: Any) -> Evidence:
    return cases.evidence(number, text, tool="snapshot", origins=origins, **changes)


def case_of(*evidence: Evidence, **changes: Any) -> Case:
    return fold_case([cases.opened(), cases.resolved(), cases.taken(evidence=evidence, **changes)])


def may_all_but(*lacking: Origin) -> Any:
    return lambda origin: origin not in lacking


TOOLS = {
    "a kind in a namespace": (
        "kubectl_get",
        {"kind": "Pod", "namespace": "shop", "api_version": "v1"},
        (Origin("shop", "Pod", "v1"),),
    ),
    "a log": ("kubectl_logs", {"name": "p", "namespace": "shop"}, (Origin("shop"),)),
    "a kind of no namespace": ("kubectl_get", {"kind": "Node", "namespace": ""}, (Origin("", "Node"),)),
    "a namespace itself": ("kubectl_get", {"kind": "Namespace", "name": "shop"}, (Origin("shop", "Namespace"),)),
    "use of nodes": (
        "kubectl_top_nodes",
        {"namespace": "shop"},
        (Origin("", "NodeMetrics", "metrics.k8s.io/v1beta1"),),
    ),
    "figures of whatever matched": ("query_prometheus", {"query": "up", "namespace": "shop"}, None),
    "a tool of another name": ("read_evidence", {"namespace": "shop"}, None),
    "a call that said nothing": ("kubectl_get", {}, None),
    "a snapshot of an older version": ("snapshot", {"namespace": "shop", "read": "pods"}, None),
}


@each_row(("tool", "arguments", "expected"), TOOLS.values(), ids=TOOLS.keys())
def test_where_a_piece_was_read_is_told_by_code_or_is_not_known(tool: str, arguments: Any, expected: Any) -> None:
    assert origins_of(cases.evidence(1, tool=tool, arguments=arguments)) == expected


def test_what_was_written_down_at_the_read_beats_what_a_model_said() -> None:
    found = cases.evidence(1, tool="kubectl_get", arguments={"namespace": "shop"}, origins=(FOREIGN,))

    assert origins_of(found) == (FOREIGN,)


def test_a_piece_is_withheld_where_one_of_its_places_may_not_be_read() -> None:
    case = case_of(piece(1, PODS), piece(2, PODS, FOREIGN), piece(3, NODES), piece(4))
    unknown = case_of(cases.evidence(1, tool="snapshot"))

    hidden = withheld_pieces(case, may_all_but(FOREIGN, NODES))

    assert [(one.id, one.why) for one in hidden] == [
        ("E2", "read in a namespace that you may not read"),
        ("E3", "you may not read Node of the whole cluster"),
    ]
    assert [one.id for one in withheld_pieces(unknown, may_all_but())] == ["E1"]
    assert withheld_pieces(unknown, may_all_but(), everything=True) == ()


def test_another_namespace_is_not_even_named() -> None:
    (hidden,) = withheld_pieces(case_of(piece(1, FOREIGN, text=SECRET)), may_all_but(FOREIGN))

    assert "payments" not in str(hidden.to_object())


def test_everything_that_is_shown_was_asked_about() -> None:
    case = case_of(piece(1, PODS), piece(2, FOREIGN))

    assert {PODS, FOREIGN} <= {*asked_about(case)}
    assert {one.namespace for one in asked_about(case)} >= {case.target.namespace}


def test_a_whole_case_goes_to_who_may_read_all_of_it() -> None:
    case = case_of(piece(1, PODS), piece(2, FOREIGN))

    assert disclose_case(case, may_all_but()).case == case
    assert disclose_case(case, may_all_but()).withheld == ()


def test_nothing_that_a_withheld_piece_held_or_led_to_is_in_what_is_disclosed() -> None:
    log = LogTail("payments", SECRET, "app", False, SECRET, "E2")
    seen = (ObservedObject({"kind": "Pod", "metadata": {"name": "mine"}}, "E1"), ObservedObject({"kind": SECRET}, "E2"))
    case = case_of(
        piece(1, PODS, text="mine", arguments={"read": "pods", "in": "shop"}),
        piece(2, FOREIGN, text=SECRET, arguments={"read": "service", "name": SECRET}),
        objects=seen,
        logs=(log,),
        gaps=(Gap(f"service {SECRET}", "away"), Gap("pods shop", "away")),
        cut=(f"service {SECRET}", "pods shop"),
    )
    found = disclose_case(case, may_all_but(FOREIGN))

    told = str([dump_fact(fact) for fact in found.case.facts])
    taken = found.case.first(facts.SnapshotTaken)
    assert taken is not None
    assert SECRET not in told
    assert [one.id for one in found.case.evidence] == ["E1"]
    assert (taken.snapshot.cut, taken.findings) == (("pods shop",), ())
    assert taken.snapshot.gaps == (
        Gap("pods shop", "away"),
        Gap("E2", "withheld: read in a namespace that you may not read"),
    )
    assert [one.id for one in found.withheld] == ["E2", OF_CONCLUSIONS]


def test_conclusions_are_withheld_from_who_may_not_read_what_was_looked_up_for_them() -> None:
    case = case_of(piece(1, PODS))
    place = next(one for one in asked_about(case) if one.namespace == case.target.namespace and one != PODS)

    found = disclose_case(case, may_all_but(place))

    assert [one.id for one in found.withheld] == [OF_CONCLUSIONS]
    assert found.case.first(facts.ContextResolved) is None
