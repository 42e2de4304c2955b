"""The peer's form of a workflow, with our own text inside. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from inquest.adapters.datastorage.convert import mapping_of
from inquest.adapters.datastorage.requests import SEVERITIES
from inquest.core.evidence.evidence import canonical_json
from inquest.errors import Invalid

PEER_API: Final = "kubernaut.ai/v1alpha1"
SOURCE_ANNOTATION: Final = "inquest.dev/source"
"""Our own text inside the peer's form, so that nothing is lost there and the sync knows its own."""

_PARAMETER_MEMBERS = (
    "name",
    "type",
    "description",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "default",
    "dependsOn",
)
_TEXT: TypeAdapter[str] = TypeAdapter(str)


class NotExpressible(Invalid):
    """The peer's form of a workflow cannot say what ours says."""

    reason = "NotExpressible"


def peer_content(content: str) -> str:
    """The `kubernaut.ai` form as canonical JSON: its id follows from ours. NotExpressible where there is none."""
    own = mapping_of(content)
    if own.get("apiVersion") == PEER_API:
        return content
    spec: Mapping[str, Any] = own["spec"]
    execution: Mapping[str, Any] = spec["execution"]
    if not execution.get("image"):
        raise NotExpressible("spec.execution.podTemplate: the catalogue takes workflows with an image only")
    if not spec.get("parameters"):
        raise NotExpressible("spec.parameters: the catalogue takes workflows with parameters only")
    metadata = {"name": own["metadata"]["name"], "annotations": {SOURCE_ANNOTATION: content}}
    return canonical_json(
        {"apiVersion": PEER_API, "kind": own["kind"], "metadata": metadata, "spec": _peer_spec(spec, execution)}
    )


def _peer_spec(spec: Mapping[str, Any], execution: Mapping[str, Any]) -> dict[str, Any]:
    labels: Mapping[str, Any] = spec["labels"]
    body = {
        "version": spec["version"],
        "actionType": spec["actionType"],
        "description": spec["description"],
        "labels": _peer_labels(labels),
        "customLabels": dict(labels.get("custom") or {}),
        "detectedLabels": {k: "true" if v is True else v for k, v in (labels.get("detected") or {}).items()},
        "parameters": [{k: p[k] for k in _PARAMETER_MEMBERS if k in p} for p in spec["parameters"]],
        "execution": {
            "engine": execution["engine"],
            "bundle": execution["image"],
            "serviceAccountName": execution.get("serviceAccountName"),
        },
        "dependencies": spec.get("dependencies"),
    }
    body["execution"] = {name: value for name, value in body["execution"].items() if value}
    return {name: value for name, value in body.items() if value}


def _peer_labels(labels: Mapping[str, Any]) -> dict[str, Any]:
    priorities = [str(text) for text in labels["priority"]]
    if len(priorities) > 1 and "*" not in priorities:
        raise NotExpressible("spec.labels.priority: the catalogue takes one priority or *")
    severities = [text if text == "*" else SEVERITIES.get(text.lower(), "medium") for text in labels["severity"]]
    return {
        "severity": sorted(set(severities)),
        "environment": list(labels["environment"]),
        "component": [text.rsplit("/", 1)[-1] for text in labels["component"]],
        "priority": "*" if "*" in priorities else priorities[0],
    }


def wrapped_text(content: str) -> str | None:
    """Our own text inside the peer's form; None where there is none."""
    if SOURCE_ANNOTATION not in content or not content.startswith("{"):
        return None
    try:
        return _TEXT.validate_python(json.loads(content)["metadata"]["annotations"][SOURCE_ANNOTATION], strict=True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
