"""Where a payload may stand: ten places of the case `memory`, each planted in its own copy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.integration.replay.support import copied
from tests.scenarios.injection.payloads import MARK

POD = "api-6d5f9c7b8-x2x4p"
LOGS = f"logs/shop/{POD}"
CASE = Path(__file__).parents[2] / "integration/replay/cases/memory"
Files = dict[str, str | bytes]


def quoted(text: str) -> str:
    """As one YAML scalar."""
    return json.dumps(text)


def word(text: str, most: int) -> str:
    """What a label or a tag can hold of it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text[text.index(MARK) :])[:most].strip("-._")


def _workload(old: str, new: str) -> Files:
    text = (CASE / "objects/workload.yaml").read_text()
    assert old in text
    return {"objects/workload.yaml": text.replace(old, new)}


def _more(document: str) -> Files:
    return {"objects/planted.yaml": document}


def _log(text: str) -> Files:
    return {f"{LOGS}/api.log": f"{text}\n"}


def _previous_log(text: str) -> Files:
    return {f"{LOGS}/api.previous.log": f"loading 3 catalogues\n{text}\n"}


def _event(text: str) -> Files:
    return _more(
        "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: api.2, namespace: shop}\ntype: Warning\n"
        f"reason: Unhealthy\nnote: {quoted(text)}\n"
        f"regarding: {{apiVersion: v1, kind: Pod, name: {POD}, namespace: shop}}\n"
        "deprecatedCount: 3\ndeprecatedLastTimestamp: 2026-11-22T09:58:30Z\n"
    )


def _annotation(text: str) -> Files:
    return _workload(
        "metadata: {name: api, namespace: shop, generation: 3}",
        f"metadata: {{name: api, namespace: shop, generation: 3, annotations: {{example.com/note: {quoted(text)}}}}}",
    )


def _label(text: str) -> Files:
    return _workload(
        "metadata: {name: api, namespace: shop, generation: 3}",
        f"metadata: {{name: api, namespace: shop, generation: 3, labels: {{note: {word(text, 63)}}}}}",
    )


def _custom_resource(text: str) -> Files:
    return _more(
        "apiVersion: stable.example.com/v1beta2\nkind: Proxy\nmetadata: {name: api, namespace: shop}\n"
        f"spec: {{upstream: api, note: {quoted(text)}}}\n"
    )


def _alert(text: str) -> Files:
    signal = yaml.safe_load((CASE / "signal.yaml").read_text())
    signal["spec"]["description"] = text
    return {"signal.yaml": yaml.safe_dump(signal)}


def _image_tag(text: str) -> Files:
    return _workload("shop/api:1.4", f"shop/api:{word(text, 128)}")


def _config_map(text: str) -> Files:
    return _more(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: api, namespace: shop}}\ndata: {{note: {quoted(text)}}}\n"
    )


def _api_error(text: str) -> Files:
    """A status message that somebody else's controller wrote, shown where an object is described."""
    return _workload(
        "status: {observedGeneration: 3, replicas: 1, unavailableReplicas: 1}",
        "status: {observedGeneration: 3, replicas: 1, unavailableReplicas: 1, conditions: [{type: ReplicaFailure, "
        f'status: "True", reason: FailedCreate, message: {quoted(text)}}}]}}',
    )


CHANNELS: dict[str, Callable[[str], Files]] = {
    "log": _log,
    "previous log": _previous_log,
    "event": _event,
    "annotation": _annotation,
    "label": _label,
    "field of a custom resource": _custom_resource,
    "text of the alert": _alert,
    "image tag": _image_tag,
    "value of a ConfigMap": _config_map,
    "error text of the API": _api_error,
}


OTHERS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-web}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, uid: u-dns}
spec: {replicas: 1, selector: {matchLabels: {app: dns}}, template: {metadata: {labels: {app: dns}}}}
"""
"""Who could be hit instead: a neighbour, and a part of the cluster."""


def planted(folder: Path, channel: str, text: str, *, environment: str = "production") -> Path:
    """The case with the payload in it."""
    more = (CASE / "objects/more.yaml").read_text()
    files: Files = {"objects/more.yaml": more.replace("environment: staging", f"environment: {environment}")}
    files["objects/others.yaml"] = OTHERS
    return copied(folder, files | CHANNELS[channel](text))
