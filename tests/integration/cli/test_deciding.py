"""What a person's decision writes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from inquest.api.approval import RemediationApprovalRequest
from inquest.cli.cases.approve import _entry, proposal
from inquest.ports.kubernetes import Person
from inquest.presentation.drawing import as_sections

SAMPLE = Path(__file__).parents[2] / "support/objects/remediationapprovalrequest.yaml"


def test_who_agrees_is_entered_under_the_others_whatever_was_written_while_they_read() -> None:
    sample = yaml.safe_load(SAMPLE.read_text())
    sample["metadata"]["resourceVersion"] = "7"
    sample["spec"]["approvals"] = [{"user": "bob", "identity": {"groups": ["oncall"]}}]

    change = _entry(sample, Person("jane", groups=("payments",)), "looks right")

    own = {"user": "jane", "identity": {"groups": ["payments"]}, "reason": "looks right"}
    assert change == {"spec": {"approvals": [{"user": "bob", "identity": {"groups": ["oncall"]}}, own]}}


@pytest.mark.parametrize(
    ("account", "said"),
    [("drain-node", "as service account drain-node, with all its rights"), (None, "as no account: it gets no token")],
)
def test_who_decides_sees_as_whom_and_what_the_job_runs(account: str | None, said: str) -> None:
    sample = yaml.safe_load(SAMPLE.read_text())
    sample["spec"]["runs"] = ["kubectl drain '$(NODE)'"]
    sample["spec"]["workflow"]["serviceAccountName"] = account

    shown = "\n".join(as_sections(proposal(RemediationApprovalRequest.from_object(sample)), 200))

    assert "runs kubectl drain '$(NODE)'" in shown
    assert said in shown
