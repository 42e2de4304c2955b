"""Everything that has to stand before the case can be played: cluster, images, objects, catalogue, operator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from hack import HackError
from hack.cluster import local
from hack.cluster.provider import provider
from hack.cluster.state import Size, cluster_folder, write_atomically
from hack.images import Image
from hack.tools import build
from inquest.api.manifests.admission import render_mutating
from inquest.api.manifests.admission import render_policies as render_admission

REPOSITORY = Path(__file__).resolve().parents[2]
NAMESPACE = "inquest-system"
EXECUTION_NAMESPACE = "inquest-workflows"
CHART = REPOSITORY / "charts" / "inquest"
OF_RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
ACCOUNT = "inquest"
PLACEHOLDER = "localhost/inquest/kubectl@sha256:" + "0" * 64
WAIT_SECONDS = 120.0
STABILIZATION = "10s"


@dataclass(frozen=True)
class Stage:
    """The running cluster and the operator beside it."""

    cluster: local.Cluster
    folder: Path

    @property
    def kubectl_path(self) -> Path:
        return self.cluster.bin / "kubectl"

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True, seconds: float = 60.0) -> str:
        """Output of a kubectl command as the cluster's administrator; a failure is told with what it said."""
        command = [str(self.kubectl_path), f"--kubeconfig={self.cluster.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)
        if check and done.returncode != 0:
            raise HackError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def inquest(self, *arguments: str) -> str:
        """Output of the product's own command, as that administrator."""
        command = [sys.executable, "-m", "inquest.cli.main", *arguments, f"--kubeconfig={self.cluster.kubeconfig}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise HackError(f"inquest {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    @property
    def user(self) -> str:
        """The name of the cluster's administrator."""
        return self.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")

    def read(self, kind: str, name: str, namespace: str = NAMESPACE) -> dict[str, Any]:
        """An object, or an empty mapping where it is not there."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] = json.loads(text) if text.strip() else {}
        return found

    def operator_log(self) -> str:
        """What the operator beside the cluster has written."""
        path = self.folder / "operator.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def operator_metrics(self) -> str:
        """Its metrics as it serves them."""
        served = (json.loads(line) for line in self.operator_log().splitlines() if '"event": "serving"' in line)
        with urlopen(f"http://127.0.0.1:{next(served)['metrics']}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def list(self, kind: str, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
        """All objects of a kind in a namespace."""
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-n", namespace, "-o", "json"))["items"]
        return found


def folder(name: str) -> Path:
    """Where the demo keeps its settings, logs and the operator's pid."""
    found = cluster_folder(name) / "demo"
    found.mkdir(parents=True, exist_ok=True)
    return found


def raise_cluster(name: str) -> Stage:
    """A Kubernetes with a real node."""
    cluster = provider().up(Size.NODE, name=name)
    build(["opa", "helm"])
    return Stage(cluster, folder(name))


def load_images(name: str) -> dict[str, Image]:
    """Build the demo's images and put them into the node; keyed by their short name."""
    found = provider().load_images(["kubectl", "busybox"], name=name)
    return {image.name.rsplit("/", 1)[-1]: image for image in found}


def install(stage: Stage, images: Mapping[str, Image]) -> None:
    """Namespaces, CRDs, admission policies, RBAC; then the catalogue with the digest of the image just built."""
    for namespace in (NAMESPACE, EXECUTION_NAMESPACE):
        stage.kubectl("apply", "-f", "-", stdin=_namespace(namespace))
    stage.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(REPOSITORY / "crds"))
    stage.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s", seconds=90)
    manifests = [
        *_rights(stage.user),
        *render_admission(NAMESPACE, ACCOUNT, EXECUTION_NAMESPACE),
    ]
    if "mutatingadmissionpolicies" in stage.kubectl("api-resources", "--api-group=admissionregistration.k8s.io"):
        manifests += render_mutating(NAMESPACE, ACCOUNT)
    stage.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    install_catalogue(stage, images["kubectl"].pinned)


def install_catalogue(stage: Stage, pinned: str) -> None:
    """Apply the starter catalogue; the image of its workflows is known only now."""
    for path in sorted((REPOSITORY / "catalogue").glob("*.yaml")):
        text = path.read_text().replace(PLACEHOLDER, pinned)
        namespace = ["-n", NAMESPACE] if path.name != "rbac.yaml" else []
        stage.kubectl("apply", *namespace, "-f", "-", stdin=text)


def start_operator(
    stage: Stage, model: Mapping[str, str], changes: Mapping[str, Any] | None = None
) -> subprocess.Popen[bytes]:
    """Run the operator on this machine with the token of its own account.

    `changes` are groups of other settings.
    """
    stop_operator(stage.folder)
    settings = stage.folder / "settings.yaml"
    write_atomically(settings, yaml.safe_dump({**_settings(stage, model), **(changes or {})}))
    with (stage.folder / "operator.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "inquest.cli.main", "run", "--settings", str(settings)],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=stage.folder,
            env=_environment(model),
        )
    write_atomically(stage.folder / "operator.pid", str(process.pid))
    _wait_until_ready(stage, process)
    return process


def _environment(model: Mapping[str, str]) -> dict[str, str]:
    """The key goes by the environment, never by a file; INQUEST_MODEL names a model to the demo, not a setting."""
    kept = {name: value for name, value in os.environ.items() if name not in ("INQUEST_MODEL", "OPENAI_API_KEY")}
    key = model.get("api_key", "")
    return kept | ({"INQUEST_MODEL__API_KEY": key} if key else {})


def stop_operator(home: Path) -> None:
    """Stop an operator that an earlier run left; a pid that is no longer ours is let alone."""
    path = home / "operator.pid"
    if not path.exists():
        return
    pid = int(path.read_text())
    if str(home / "settings.yaml") in _command_of(pid):
        os.kill(pid, signal.SIGTERM)
        _wait_for_exit(pid)
    path.unlink(missing_ok=True)


def _settings(stage: Stage, model: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kubernetes": {"kubeconfig": str(_operator_kubeconfig(stage)), "namespace": NAMESPACE},
        "policy": {"opa_binary": str(stage.cluster.bin / "opa")},
        "effectiveness": {"stabilization": STABILIZATION, "validity": "5m"},
        "datastorage": {"database": f"sqlite:///{stage.folder / 'inquest.db'}"},
        "server": {"health_port": 0, "metrics_port": 0},
        "replica": "inquest-demo",
        "model": {key: value for key, value in model.items() if key != "api_key"},
    }


def _operator_kubeconfig(stage: Stage) -> Path:
    token = stage.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, "--duration=24h").strip()
    authority = json.loads(stage.kubectl("config", "view", "--raw", "-o", "json"))["clusters"][0]["cluster"]
    entry = {"name": "demo", "context": {"cluster": "demo", "user": ACCOUNT, "namespace": NAMESPACE}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "demo", "cluster": authority}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [entry],
        "current-context": "demo",
    }
    path = stage.folder / "operator.kubeconfig"
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def _wait_until_ready(stage: Stage, process: subprocess.Popen[bytes]) -> None:
    ready = stage.folder / "ready"
    ready.unlink(missing_ok=True)
    end = time.monotonic() + WAIT_SECONDS
    while "operator is ready" not in (stage.folder / "operator.log").read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise HackError(f"the operator did not become ready:\n{tail(stage.folder / 'operator.log')}")
        time.sleep(0.2)


def tail(path: Path) -> str:
    """The end of a log."""
    return tail_of(path.read_text(errors="replace")) if path.exists() else ""


def tail_of(text: str, lines: int = 25) -> str:
    """The last lines."""
    return "\n".join(text.splitlines()[-lines:])


def _namespace(name: str) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def _rights(approver: str) -> list[dict[str, Any]]:
    """Account, roles and bindings out of the chart: an operator beside the cluster may no more than a pod of a release.

    The user of the demo may approve; an approver is bound by name.
    """
    values = yaml.safe_dump({"image": {"repository": "none"}, "rbac": {"approvers": [approver]}})
    command = [str(build(["helm"]) / "helm"), "template", "inquest", str(CHART), f"--namespace={NAMESPACE}"]
    done = subprocess.run(
        [*command, "--values=-"], input=values, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )
    if done.returncode != 0:
        raise HackError(f"helm template: {done.stderr.strip()}")
    return [_placed(found) for found in yaml.safe_load_all(done.stdout) if found and _is_a_right(found)]


def _is_a_right(found: dict[str, Any]) -> bool:
    """Whether it stays: what comes for the time of `helm test` belongs to no operator."""
    return found["kind"] in OF_RIGHTS and "helm.sh/hook" not in found["metadata"].get("annotations", {})


def _placed(found: dict[str, Any]) -> dict[str, Any]:
    """Where Helm would put it."""
    place = {} if found["kind"].startswith("Cluster") else {"namespace": NAMESPACE}
    return {**found, "metadata": {**place, **found["metadata"]}}


def _command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _wait_for_exit(pid: int) -> None:
    end = time.monotonic() + 30
    while _command_of(pid):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.1)
