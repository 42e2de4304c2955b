"""The product on the stage as its users have it: images in the node, the chart through Helm, the operator as a pod."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import yaml

from hack import HackError
from hack.cluster.provider import provider
from hack.cluster.state import write_atomically
from hack.demo.stage import CHART, NAMESPACE, STABILIZATION, Stage, tail_of
from hack.images import Image

RELEASE = "inquest"
IMAGES = ("operator", "opa", "kubectl", "busybox")
SECRET = "inquest-model"
HELM_SECONDS = 300
READ_METRICS = (
    "/opt/inquest/bin/python",
    "-c",
    "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9090/metrics', timeout=10).read().decode())",
)
"""From elsewhere they ask for a token."""
OVER_ANYTHING = ("--take-ownership", "--force-conflicts")
"""A demo beside the cluster may have made the same objects by kubectl."""
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


class ReleaseStage(Stage):
    """The operator is a pod of its release."""

    def operator_log(self) -> str:
        return self.kubectl("logs", f"deployment/{RELEASE}", "-c", "operator", "-n", NAMESPACE, check=False)

    def operator_metrics(self) -> str:
        return self.kubectl("exec", f"deployment/{RELEASE}", "-c", "operator", "-n", NAMESPACE, "--", *READ_METRICS)


def load_images(name: str) -> dict[str, Image]:
    """Build what the release is made of and put it into the node; keyed by short name."""
    return {image.name.rsplit("/", 1)[-1]: image for image in provider().load_images(IMAGES, name=name)}


def forget_release(stage: Stage) -> None:
    """Uninstall what an earlier demo installed, its volume too."""
    _helm(stage, "uninstall", RELEASE, "--ignore-not-found", "--wait")
    stage.kubectl("delete", "pvc", "--all", "-n", NAMESPACE, "--timeout=60s", seconds=90)


def install_release(stage: Stage, images: Mapping[str, Image], model: Mapping[str, str]) -> None:
    """As docs/how-to/install-with-helm.md says; until it is ready."""
    provider().offer_volume(name=stage.cluster.name)
    objects: list[Mapping[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}
    ]
    if model.get("api_key"):
        objects.append(_secret("key", model["api_key"]))
    stage.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    values = values_of(images, model, stage.user)
    write_atomically(stage.folder / "values.yaml", yaml.safe_dump(values, sort_keys=False))
    try:
        _helm(stage, "install", RELEASE, str(CHART), *OVER_ANYTHING, "--wait", values=values)
    except HackError as error:
        raise HackError(f"{error}\n{tail_of(stage.operator_log())}") from error


def values_of(images: Mapping[str, Image], model: Mapping[str, str], approver: str) -> dict[str, Any]:
    """The values of the demo: its images, who may approve, a short stabilisation, and the model."""
    settings = {
        "effectiveness": {"stabilization": STABILIZATION, "validity": "5m"},
        "model": {key: model[key] for key in ("provider", "endpoint", "name") if key in model},
    }
    values = {
        "image": _image(images["operator"]),
        "opa": {"image": _image(images["opa"])},
        "rbac": {"approvers": [approver]},
        "settings": settings,
        "evidence": {"enabled": True},
        "catalogue": {"enabled": True, "image": images["kubectl"].pinned},
    }
    if model.get("api_key"):
        values["model"] = {"existingSecret": {"name": SECRET, "key": "key"}}
    if model.get("proxy"):
        values["extraEnv"] = [{"name": "INQUEST_MODEL__PROXY", "value": model["proxy"]}]
    return values


def _image(found: Image) -> dict[str, str]:
    """No registry has it: what is not in the node must not be looked for elsewhere."""
    return {"repository": found.name, "digest": found.digest, "pullPolicy": "Never"}


def _secret(key: str, value: str) -> dict[str, Any]:
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {key: value}}


def _helm(stage: Stage, *arguments: str, values: Mapping[str, Any] | None = None) -> None:
    given = ["--values=-"] if values is not None else []
    place = [f"--kubeconfig={stage.cluster.kubeconfig}", f"--namespace={NAMESPACE}"]
    command = [str(stage.cluster.bin / "helm"), *arguments, *place, *given]
    text = yaml.safe_dump(dict(values)) if values is not None else ""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=HELM_SECONDS, check=False)
    if done.returncode != 0:
        raise HackError(f"helm {arguments[0]}: {done.stderr.strip()}")
