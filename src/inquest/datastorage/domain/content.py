"""What may enter the catalogue: the text of a RemediationWorkflow, read and checked. Pure.

Two dialects: `kubernaut.ai/v1alpha1` is the peer's, `inquest.dev/v1alpha1` is ours and may say more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from inquest.datastorage.domain.identity import content_hash, workflow_id
from inquest.datastorage.domain.scoring import BOOLEAN_LABELS, TEXT_LABELS, texts_of
from inquest.datastorage.wire.types import (
    MOST_NAME,
    MOST_VERSION,
    PRIORITIES,
    SEVERITIES,
    WILDCARD,
    storage_fault,
    text_in,
)

PEER_API = "kubernaut.ai/v1alpha1"
OWN_API = "inquest.dev/v1alpha1"
KIND = "RemediationWorkflow"
SCHEMA_VERSION = "1.0"
PARAMETER_TYPES = ("string", "integer", "boolean", "array", "float")
OWN_SEVERITIES = {"warning": "medium", "info": "low", **{text: text for text in SEVERITIES}}
ENGINES = ("tekton", "job", "ansible")
PINNED_ENGINES = ("tekton", "job")

_PINNED = re.compile(r"\S+@sha256:([0-9a-f]{64})")
_FIELD_NOT_SCORED = "resourceQuotaConstrained"


class ContentError(ValueError):
    """The content is no workflow that can be registered; the text names the field."""


@dataclass(frozen=True)
class ParsedWorkflow:
    """A workflow as content says it; lists and texts already in the stored form."""

    workflow_id: str
    workflow_name: str
    name: str
    version: str
    content: str
    content_hash: str
    action_type: str
    description: Mapping[str, str]
    labels: Mapping[str, Any]
    custom_labels: Mapping[str, list[str]]
    detected_labels: Mapping[str, bool | str]
    parameters: list[Mapping[str, Any]]
    execution_engine: str
    execution_bundle: str | None = None
    service_account_name: str | None = None
    engine_config: Mapping[str, Any] | None = None
    dependencies: Mapping[str, Any] = field(default_factory=dict)
    owner: str | None = None
    maintainer: str | None = None
    schema_version: str = SCHEMA_VERSION

    @property
    def bundle_digest(self) -> str | None:
        """The 64 hex digits a pinned bundle ends in."""
        match = _PINNED.fullmatch(self.execution_bundle or "")
        return match.group(1) if match else None


class _PlainLoader(yaml.SafeLoader):
    """Refuses aliases, which grow beyond any body limit, and keeps dates as the text they are."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise ContentError("aliases are not accepted")
        return super().compose_node(parent, index)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def workflow_from_content(content: str) -> ParsedWorkflow:
    """Parse and check; ContentError names the first field that does not fit."""
    document = _document(content)
    spec = document["spec"]
    for fault in _faults(document, spec, is_own=document["apiVersion"] == OWN_API):
        raise ContentError(fault)
    return _workflow(content, document, spec)


def _document(content: str) -> dict[str, Any]:
    try:
        document = yaml.load(content, Loader=_PlainLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ContentError(f"content is not readable: {error}") from error
    if not isinstance(document, dict):
        raise ContentError("content must be a mapping")
    if fault := storage_fault(document):
        raise ContentError(fault)
    if document.get("apiVersion") not in (PEER_API, OWN_API):
        raise ContentError(f"apiVersion: must be {PEER_API} or {OWN_API}")
    if document.get("kind") != KIND:
        raise ContentError(f"kind: must be {KIND}")
    if not isinstance(document.get("spec"), dict):
        raise ContentError("spec: is required")
    return document


def _workflow(content: str, document: Mapping[str, Any], spec: Mapping[str, Any]) -> ParsedWorkflow:
    is_own, execution, metadata = (
        document["apiVersion"] == OWN_API,
        _mapping(spec.get("execution")),
        document["metadata"],
    )
    return ParsedWorkflow(
        workflow_id=workflow_id(content),
        workflow_name=str(spec["id"]) if is_own and spec.get("id") else metadata["name"],
        name=metadata["name"],
        version=str(spec["version"]),
        content=content,
        content_hash=content_hash(content),
        action_type=spec["actionType"],
        description={name: text for name, text in spec["description"].items() if isinstance(text, str) and text},
        labels=_labels(spec["labels"], is_own=is_own),
        custom_labels={key: list(texts_of(value)) for key, value in _custom(spec).items()},
        detected_labels={key: _detected_value(value) for key, value in _detected(spec).items()},
        parameters=list(spec.get("parameters") or []),
        execution_engine=_engine(execution, is_own=is_own),
        execution_bundle=execution.get("bundle") or execution.get("image"),
        service_account_name=execution.get("serviceAccountName"),
        engine_config=execution.get("engineConfig"),
        dependencies=_mapping(spec.get("dependencies")),
        owner=text_in(spec, "owner"),
        maintainer=text_in(spec, "maintainer"),
    )


def _faults(document: Mapping[str, Any], spec: Mapping[str, Any], *, is_own: bool) -> Iterator[str]:
    """The checks, in the order in which a person would read the file."""
    yield from _name_faults(document)
    yield from _head_faults(spec)
    yield from _label_faults(spec, is_own=is_own)
    yield from _custom_faults(spec)
    yield from _detected_faults(spec)
    yield from _parameter_faults(spec, is_own=is_own)
    yield from _execution_faults(_mapping(spec.get("execution")), is_own=is_own)


def _name_faults(document: Mapping[str, Any]) -> Iterator[str]:
    name = _mapping(document.get("metadata")).get("name")
    if not isinstance(name, str) or not name:
        yield "metadata.name: is required"
    elif len(name) > MOST_NAME:
        yield f"metadata.name: is longer than {MOST_NAME} characters"


def _head_faults(spec: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(spec.get("version"), str | int | float) or not str(spec["version"]):
        yield "version: is required"
    if not isinstance(spec.get("actionType"), str) or not spec["actionType"]:
        yield "actionType: is required"
    for name, most in {"id": MOST_NAME, "version": MOST_VERSION, "actionType": MOST_NAME}.items():
        if len(str(spec.get(name) or "")) > most:
            yield f"{name}: is longer than {most} characters"
    description = _mapping(spec.get("description"))
    for name in ("what", "whenToUse"):
        if not isinstance(description.get(name), str) or not description[name]:
            yield f"description.{name}: is required"


def _label_faults(spec: Mapping[str, Any], *, is_own: bool) -> Iterator[str]:
    labels = _mapping(spec.get("labels"))
    for name in ("severity", "environment", "component", "priority"):
        if not texts_of(labels.get(name)):
            yield f"labels.{name}: is required"
    if isinstance(labels["priority"], list) and not is_own:
        yield "labels.priority: must be a text"
    yield from _outside("severity", _severities(labels, is_own=is_own), SEVERITIES)
    yield from _outside("priority", [text.upper() for text in texts_of(labels["priority"])], PRIORITIES)


def _outside(name: str, values: Any, allowed: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value not in (*allowed, WILDCARD):
            yield f"labels.{name}: {value} is not one of {', '.join(allowed)}, {WILDCARD}"


def _custom_faults(spec: Mapping[str, Any]) -> Iterator[str]:
    for key, value in _custom(spec).items():
        if not isinstance(key, str) or not texts_of(value):
            yield f"customLabels.{key}: must be a text or a list of texts"


def _detected_faults(spec: Mapping[str, Any]) -> Iterator[str]:
    for key, value in _detected(spec).items():
        if key in (*BOOLEAN_LABELS, _FIELD_NOT_SCORED):
            if value not in ("true", True):
                yield f'detectedLabels.{key}: only "true" is accepted'
        elif key not in TEXT_LABELS:
            yield f"detectedLabels.{key}: unknown label"
        elif value not in (*TEXT_LABELS[key].known, WILDCARD):
            yield f"detectedLabels.{key}: {value} is not one of {', '.join(sorted(TEXT_LABELS[key].known))}, {WILDCARD}"


def _parameter_faults(spec: Mapping[str, Any], *, is_own: bool) -> Iterator[str]:
    parameters = spec.get("parameters") or []
    if not isinstance(parameters, list):
        yield "parameters: must be a list"
        return
    if not parameters and not is_own:
        yield "parameters: at least one parameter is required"
    for index, parameter in enumerate(parameters):
        yield from _one_parameter_faults(f"parameters[{index}]", _mapping(parameter))


def _one_parameter_faults(where: str, parameter: Mapping[str, Any]) -> Iterator[str]:
    for name in ("name", "type", "description"):
        if not isinstance(parameter.get(name), str) or not parameter[name]:
            yield f"{where}.{name}: is required"
    if parameter["type"] not in PARAMETER_TYPES:
        yield f"{where}.type: {parameter['type']} is not one of {', '.join(PARAMETER_TYPES)}"


def _execution_faults(execution: Mapping[str, Any], *, is_own: bool) -> Iterator[str]:
    engine = _engine(execution, is_own=is_own)
    bundle = execution.get("bundle") or execution.get("image")
    inline = is_own and isinstance(execution.get("podTemplate"), dict)
    if engine not in ENGINES:
        yield f"execution.engine: {engine} is not one of {', '.join(ENGINES)}"
    if not inline and not isinstance(bundle, str):
        yield "execution.bundle: is required"
    if not inline and engine in PINNED_ENGINES and not _PINNED.fullmatch(str(bundle)):
        yield "execution.bundle: must end in @sha256: and 64 hex digits"
    if engine == "ansible" and not _mapping(execution.get("engineConfig")).get("playbookPath"):
        yield "execution.engineConfig.playbookPath: is required"
    if execution.get("serviceAccountName") is not None and not isinstance(execution["serviceAccountName"], str):
        yield "execution.serviceAccountName: must be a text"


def _engine(execution: Mapping[str, Any], *, is_own: bool) -> str:
    return str(execution.get("engine") or ("job" if is_own else "tekton"))


def _labels(labels: Mapping[str, Any], *, is_own: bool) -> dict[str, Any]:
    priority = [text.upper() for text in texts_of(labels["priority"])]
    return {
        "severity": _severities(labels, is_own=is_own),
        "component": [_kind_of(text) if is_own else text for text in texts_of(labels["component"])],
        "environment": list(texts_of(labels["environment"])),
        "priority": priority if isinstance(labels["priority"], list) else priority[0],
    }


def _severities(labels: Mapping[str, Any], *, is_own: bool) -> list[str]:
    """Our own words beyond the wire's four mean one of them; a word may then stand twice and is kept once."""
    given = texts_of(labels["severity"])
    return list(dict.fromkeys(OWN_SEVERITIES.get(text.lower(), text) for text in given)) if is_own else list(given)


def _kind_of(component: str) -> str:
    """Of `group/version/Kind` the Kind: queries name nothing else."""
    return component.rsplit("/", 1)[-1]


def _custom(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(spec.get("customLabels") or _mapping(spec.get("labels")).get("custom"))


def _detected(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(spec.get("detectedLabels") or _mapping(spec.get("labels")).get("detected"))


def _detected_value(value: object) -> bool | str:
    return True if value in ("true", True) else str(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
