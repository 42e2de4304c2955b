"""What a person's decision writes."""

from __future__ import annotations

from pathlib import Path

import yaml

from inquest.cli.cases.approve import _entry
from inquest.ports.kubernetes import Person

SAMPLE = Path(__file__).parents[1] / "cluster/contract/objects/remediationapprovalrequest.yaml"


def test_who_agrees_is_entered_under_the_others_whatever_was_written_while_they_read() -> None:
    sample = yaml.safe_load(SAMPLE.read_text())
    sample["metadata"]["resourceVersion"] = "7"
    sample["spec"]["approvals"] = [{"user": "bob", "identity": {"groups": ["oncall"]}}]

    change = _entry(sample, Person("jane", groups=("payments",)), "looks right")

    own = {"user": "jane", "identity": {"groups": ["payments"]}, "reason": "looks right"}
    assert change == {"spec": {"approvals": [{"user": "bob", "identity": {"groups": ["oncall"]}}, own]}}
