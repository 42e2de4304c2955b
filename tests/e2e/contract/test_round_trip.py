"""What the models write is what the API server keeps, and what it keeps is what they read."""

from __future__ import annotations

import pytest
import yaml

from inquest.api.registry import BY_KIND
from tests.support.kube import Kubectl, Object, proposal, sample

KINDS = sorted(BY_KIND)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rich_object_comes_back_as_it_went(kind: str, kubectl: Kubectl, operator: Kubectl) -> None:
    model, written = BY_KIND[kind].model, sample(kind)
    name = written["metadata"]["name"]

    writer = operator if kind == "RemediationApprovalRequest" else kubectl
    assert writer.create(model.from_object(proposal(kind)).to_object()).accepted
    assert operator.status(kind, name, model.from_object(written).status.to_object()).accepted

    found = operator.get(kind, name)
    assert found["spec"] == written["spec"]
    assert found["status"] == written["status"]
    read = model.from_object(found)
    assert (read.spec, read.status) == (model.from_object(written).spec, model.from_object(written).status)
    assert read.uid == found["metadata"]["uid"]


def test_server_side_apply_of_a_whole_status_is_accepted_twice(operator: Kubectl, kubectl: Kubectl) -> None:
    written = sample("Investigation")
    assert kubectl.create(proposal("Investigation")).accepted
    applied = {key: written[key] for key in ("apiVersion", "kind", "metadata", "status")}

    first, second = (_apply_status(operator, applied) for _ in range(2))

    assert first["status"] == second["status"] == written["status"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def _apply_status(operator: Kubectl, applied: Object) -> Object:
    options = ("--server-side", "--field-manager=inquest", "--subresource=status", "-o", "yaml", "-f", "-")
    found: Object = yaml.safe_load(operator("apply", *options, stdin=yaml.safe_dump(applied)))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_field_is_named_and_refused(kind: str, operator: Kubectl, kubectl: Kubectl) -> None:
    found = proposal(kind)
    found["spec"]["colour"] = "blue"

    writer = operator if kind == "RemediationApprovalRequest" else kubectl
    answer = writer.create(found)

    assert not answer.accepted
    assert 'unknown field "spec.colour"' in answer.err


def test_an_unknown_detected_label_is_refused(kubectl: Kubectl) -> None:
    found = proposal("RemediationWorkflow")
    found["spec"]["labels"]["detected"] = {"gitopsManaged": True}

    answer = kubectl.create(found)

    assert 'unknown field "spec.labels.detected.gitopsManaged"' in answer.err


def test_a_signal_by_hand_needs_five_lines(kubectl: Kubectl) -> None:
    target = {"kind": "Pod", "name": "checkout-0", "namespace": "shop"}
    spec = {"name": "KubePodCrashLooping", "severity": "critical", "source": {"type": "Manual"}, "target": target}
    by_hand = {
        "apiVersion": "inquest.dev/v1alpha1",
        "kind": "Signal",
        "metadata": {"generateName": "sig-"},
        "spec": spec | {"message": "it restarts all the time"},
    }

    assert kubectl.create(by_hand).accepted


def test_defaults_are_filled_in(kubectl: Kubectl) -> None:
    spec = proposal("Signal")["spec"]
    pinned = {key: spec[key] for key in ("name", "severity", "source", "target")}
    assert kubectl.create(_investigation("plain", {"signal": pinned})).accepted

    found = kubectl.get("inv", "plain")["spec"]

    assert (found["signal"]["mode"], found["cancel"]) == ("Reactive", False)


def _investigation(name: str, spec: Object) -> Object:
    return {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": {"name": name}, "spec": spec}
