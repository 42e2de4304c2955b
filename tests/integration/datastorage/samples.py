"""Bodies that tests send: workflows, action types, events."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from tests.integration.datastorage.conftest import NOW, Site

API = "/api/v1"
DIGEST = "0123456789abcdef" * 4
CONTEXT = {"severity": "critical", "component": "Deployment", "environment": "production", "priority": "P1"}
DESCRIPTION = {"what": "Does it", "whenToUse": "When it helps"}
LABELS: dict[str, Any] = {
    "severity": ["critical"],
    "component": ["Deployment"],
    "environment": ["production"],
    "priority": "P1",
}


def content(name: str = "scale-web", version: str = "1.0.0", **spec: Any) -> str:
    """A RemediationWorkflow of the peer's dialect, in canonical JSON."""
    whole = {
        "version": version,
        "actionType": "ScaleReplicas",
        "description": DESCRIPTION,
        "labels": LABELS,
        "parameters": [{"name": "TARGET_NAME", "type": "string", "description": "Name", "required": True}],
        "execution": {"engine": "job", "bundle": f"registry.example.local/remedies/{name}@sha256:{DIGEST}"},
        **spec,
    }
    document = {"apiVersion": "kubernaut.ai/v1alpha1", "kind": "RemediationWorkflow", "metadata": {"name": name}}
    return json.dumps({**document, "spec": whole}, sort_keys=True, separators=(",", ":"))


async def add_action_type(site: Site, name: str = "ScaleReplicas") -> None:
    answer = await site.post(
        f"{API}/action-types", {"name": name, "description": DESCRIPTION, "registeredBy": "tester"}
    )
    assert answer.status_code in (200, 201), answer.text


async def add_workflow(site: Site, text: str) -> dict[str, Any]:
    """The record, after the action type is there."""
    await add_action_type(site, json.loads(text)["spec"]["actionType"])
    answer = await site.post(f"{API}/workflows", {"content": text, "source": "crd", "registeredBy": "tester"})
    assert answer.status_code in (200, 201), answer.text
    record: dict[str, Any] = answer.json()
    return record


def event(
    correlation_id: str, event_type: str, data: dict[str, Any], *, at: datetime = NOW, **members: Any
) -> dict[str, Any]:
    """An audit event whose category and action follow from its type."""
    category = {"remediation": "orchestration", "orchestrator": "orchestration"}.get(event_type.split(".")[0])
    return {
        "version": "1.0",
        "event_type": event_type,
        "event_timestamp": at.isoformat().replace("+00:00", "Z"),
        "event_category": category or event_type.split(".")[0],
        "event_action": event_type.split(".", 1)[1][:50],
        "event_outcome": "success",
        "correlation_id": correlation_id,
        "event_data": {"event_type": event_type, **data},
        **members,
    }


def llm_request(correlation_id: str, **members: Any) -> dict[str, Any]:
    data = {
        "event_id": "llm-1",
        "incident_id": correlation_id,
        "model": "example-model",
        "prompt_length": 3,
        "prompt_preview": "abc",
    }
    return event(correlation_id, "aiagent.llm.request", data, **members)


def started(
    uid: str,
    *,
    pre: str = "",
    target: str = "production/Deployment/my-app",
    at: datetime = NOW - timedelta(hours=4),
    **data: Any,
) -> dict[str, Any]:
    """The remediation row."""
    payload = {"rr_name": uid, "namespace": "inquest-system", "target_resource": target, **data}
    return event(
        uid, "remediation.workflow_created", {**payload, **({"pre_remediation_spec_hash": pre} if pre else {})}, at=at
    )


def assessed(
    uid: str, step: str, *, component: str, at: datetime = NOW - timedelta(hours=1), **data: Any
) -> dict[str, Any]:
    """An effectiveness event such as `health.assessed`."""
    payload = {"correlation_id": uid, "namespace": "inquest-system", "component": component, **data}
    return event(uid, f"effectiveness.{step}", payload, at=at)


def hash_computed(uid: str, **data: Any) -> dict[str, Any]:
    return assessed(uid, "hash.computed", component="hash", **data)


async def store(site: Site, *events: dict[str, Any]) -> None:
    answer = await site.post(f"{API}/audit/events/batch", list(events))
    assert answer.status_code == 201, answer.text
