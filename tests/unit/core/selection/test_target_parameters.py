"""The starter catalogue: every workflow is sound, pinned, undoable as it says, and has an account of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from inquest.api.catalogue import ActionType, RemediationWorkflow
from inquest.api.refs import TargetRef
from inquest.core.selection.parameter_rules import PARAMETER_RULES
from inquest.core.selection.parameters import target_parameters
from tests.support.tables import each_row

CATALOGUE = Path(__file__).parents[4] / "catalogue"
DOCUMENTS: list[dict[str, Any]] = [
    one for path in sorted(CATALOGUE.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text())
]
ACTIONS = {one["spec"]["name"]: ActionType.model_validate(one) for one in DOCUMENTS if one["kind"] == "ActionType"}
WORKFLOWS = {
    one["spec"]["id"]: RemediationWorkflow.model_validate(one)
    for one in DOCUMENTS
    if one["kind"] == "RemediationWorkflow"
}
TARGET_NAMES = set(target_parameters(TargetRef(kind="Deployment", name="a")))
each = each_row("workflow", WORKFLOWS.values(), ids=WORKFLOWS.keys())


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in DOCUMENTS if one["kind"] == kind]


@each
def test_a_workflow_belongs_to_an_action_type_that_says_when_not_to_use_it(workflow: RemediationWorkflow) -> None:
    action = ACTIONS[workflow.spec.action_type].spec

    assert action.when_not_to_use
    assert action.preconditions
    assert workflow.spec.description.when_not_to_use


@each
def test_everything_that_a_command_refers_to_is_there(workflow: RemediationWorkflow) -> None:
    how = workflow.spec.execution
    texts = [*how.args, *(text for entry in how.preview for text in (entry.path, entry.value))]

    names = {name for text in texts for name in re.findall(r"\$\(([^)]+)\)", text)}

    assert names <= {parameter.name for parameter in workflow.spec.parameters} | TARGET_NAMES


@each
def test_a_parameter_cannot_become_an_option(workflow: RemediationWorkflow) -> None:
    texts = [parameter for parameter in workflow.spec.parameters if parameter.type == "string"]

    assert all(one.pattern and one.pattern[0] == "^" and one.pattern[-1] == "$" for one in texts)
    assert not any(re.search(one.pattern or "", "--kubeconfig=/x") for one in texts)


@each
def test_an_undo_is_in_the_catalogue_too(workflow: RemediationWorkflow) -> None:
    undo = workflow.spec.undo
    other = WORKFLOWS[undo.id].spec if undo else None

    assert undo is None or (other is not None and undo.version == other.version)
    assert undo is None or other is None or set(undo.parameters) <= {one.name for one in other.parameters}


@each
def test_the_image_is_the_documented_placeholder(workflow: RemediationWorkflow) -> None:
    assert workflow.spec.execution.image == "localhost/inquest/kubectl@sha256:" + "0" * 64


@each
def test_a_workflow_has_an_account_of_its_own(workflow: RemediationWorkflow) -> None:
    account = workflow.spec.execution.service_account_name
    found = [one["metadata"] for one in of_kind("ServiceAccount") if one["metadata"]["name"] == account]

    assert [one["namespace"] for one in found] == ["inquest-workflows"]
    assert [other.spec.id for other in WORKFLOWS.values() if other.spec.execution.service_account_name == account] == [
        workflow.spec.id
    ]


@each
def test_an_account_may_patch_or_evict_and_nothing_else(workflow: RemediationWorkflow) -> None:
    account = workflow.spec.execution.service_account_name
    bound = [one["roleRef"]["name"] for one in of_kind("ClusterRoleBinding") if one["subjects"][0]["name"] == account]
    rules = [rule for role in of_kind("ClusterRole") if role["metadata"]["name"] in bound for rule in role["rules"]]

    made = {name for rule in rules if "create" in rule["verbs"] for name in rule["resources"]}

    assert len(bound) == 1
    assert {verb for rule in rules for verb in rule["verbs"]} <= {"get", "list", "patch", "create"}
    assert made <= {"pods/eviction"}
    assert not {"secrets", "*"} & {name for rule in rules for name in rule["resources"]}


def test_code_can_fill_every_required_parameter() -> None:
    needed = {one.name for workflow in WORKFLOWS.values() for one in workflow.spec.parameters if one.required}

    assert needed <= set(PARAMETER_RULES)
