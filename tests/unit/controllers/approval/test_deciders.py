"""Who the review at use asks about: everybody who decided, with all that the API server knew of them."""

from __future__ import annotations

from inquest.api.approval import ApprovalSpec, Approver, Identity
from inquest.controllers.approval.controller import deciders
from inquest.ports.kubernetes import Person
from tests.unit.core.remediation.test_proposal import request

GRACE = Identity(uid="u-1", groups=("oncall", "system:authenticated"), extra={"scopes": ("user:info",)})


def decided(**more: object) -> ApprovalSpec:
    return request().spec.model_copy(update={"decided_by": "grace", "decider_identity": GRACE, **more})


def test_a_decision_is_asked_about_with_all_that_is_on_record() -> None:
    (who,) = deciders(decided())

    assert who == Person("grace", ("oncall", "system:authenticated"), "u-1", {"scopes": ("user:info",)})


def test_each_of_several_is_asked_about_as_themselves() -> None:
    first = Approver(user="bob", identity=Identity(groups=("payments",)))

    assert [one.groups for one in deciders(decided(approvals=(first,)))] == [("payments",), GRACE.groups]


def test_a_decision_from_before_groups_were_on_record_is_asked_about_as_then() -> None:
    (who,) = deciders(decided(decider_identity=None))

    assert who == Person("grace", ("system:authenticated",))


def test_nobody_is_asked_about_while_nobody_has_decided() -> None:
    assert deciders(request().spec) == ()
