"""The API server over plain requests: a look costs a request here and not a process."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml

Object = dict[str, Any]
Objects = list[Object]

_OURS: Final = "apis/inquest.dev/v1alpha1"
_PLACES: Final = {
    "Signal": (_OURS, "signals"),
    "Investigation": (_OURS, "investigations"),
    "RemediationApprovalRequest": (_OURS, "remediationapprovalrequests"),
    "WorkflowExecution": (_OURS, "workflowexecutions"),
    "ActionType": (_OURS, "actiontypes"),
    "RemediationWorkflow": (_OURS, "remediationworkflows"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "ReplicaSet": ("apis/apps/v1", "replicasets"),
    "Job": ("apis/batch/v1", "jobs"),
    "Pod": ("api/v1", "pods"),
    "Event": ("api/v1", "events"),
    "ConfigMap": ("api/v1", "configmaps"),
    "Secret": ("api/v1", "secrets"),
    "Node": ("api/v1", "nodes"),
    "Namespace": ("api/v1", "namespaces"),
    "ResourceQuota": ("api/v1", "resourcequotas"),
    "Lease": ("apis/coordination.k8s.io/v1", "leases"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "CustomResourceDefinition": ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "ValidatingAdmissionPolicy": ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": ("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
}


_SERVED: Final = (
    *(_OURS, "api/v1", "apis/apps/v1", "apis/batch/v1", "apis/rbac.authorization.k8s.io/v1"),
    *("apis/coordination.k8s.io/v1", "apis/admissionregistration.k8s.io/v1", "apis/apiextensions.k8s.io/v1"),
    "apis/policy/v1",
)


@cache
def _resources(client: httpx2.Client, place: str) -> tuple[Object, ...]:
    """What is served there, but for subresources."""
    found = client.get(f"/{place}").raise_for_status().json()["resources"]
    return tuple(one for one in found if "/" not in one["name"])


@dataclass(frozen=True)
class Said:
    """What the API server answered."""

    code: int
    body: Object

    @property
    def accepted(self) -> bool:
        return self.code < 300

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


@dataclass(frozen=True)
class Api:
    """Requests as the administrator, or in the name of somebody else."""

    client: httpx2.Client
    user: str = ""
    groups: tuple[str, ...] = ()

    def named(self, user: str, *groups: str) -> Api:
        """The same as another user, who is in these groups."""
        return Api(self.client, user, groups)

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """One object, None where there is none."""
        said = self.send("GET", _path(kind, namespace, name))
        assert said.accepted or said.code == 404, said
        return said.body if said.accepted else None

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        """One object that is there."""
        found = self.find(kind, name, namespace)
        assert found is not None, f"{kind} {namespace}/{name} is not there"
        return found

    def list(self, kind: str, namespace: str = "", *, labels: str = "") -> list[Object]:
        """Every object of a kind, of one namespace or of all."""
        said = self.send("GET", _path(kind, namespace), params={"labelSelector": labels} if labels else {})
        assert said.accepted, said
        return list(said.body["items"])

    def versions(self, kind: str, namespace: str, since: str) -> Objects:
        """Every version of every object that there was after a resourceVersion, in order."""
        params = {"watch": "1", "resourceVersion": since, "timeoutSeconds": "1"}
        told = self.client.get(_path(kind, namespace), params=params).text.splitlines()
        return [json.loads(line)["object"] for line in told]

    def now(self, kind: str, namespace: str) -> str:
        """The resourceVersion of a list of this moment."""
        said = self.send("GET", _path(kind, namespace))
        assert said.accepted, said
        return str(said.body["metadata"]["resourceVersion"])

    def ask_create(self, body: Object) -> Said:
        """Create, and give the answer."""
        return self.send("POST", _path(body["kind"], body["metadata"].get("namespace", "")), json=body)

    def create(self, body: Object) -> Object:
        """Create what must be accepted."""
        said = self.ask_create(body)
        assert said.accepted, said
        return said.body

    def merge(self, kind: str, name: str, namespace: str, change: Object, *, part: str = "") -> Said:
        """A merge patch of the object or of a subresource."""
        path = _path(kind, namespace, name) + (f"/{part}" if part else "")
        return self.send("PATCH", path, json=change, headers={"content-type": "application/merge-patch+json"})

    def change(self, kind: str, name: str, namespace: str, change: Object, *, part: str = "") -> Object:
        """A merge patch that must be accepted."""
        said = self.merge(kind, name, namespace, change, part=part)
        assert said.accepted, said
        return said.body

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete in the background; already gone is as good."""
        said = self.send("DELETE", _path(kind, namespace, name), params={"propagationPolicy": "Background"})
        assert said.accepted or said.code == 404, said

    def token(self, account: str, namespace: str) -> str:
        """A token of a service account, for two hours."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        said = self.send("POST", f"{_path('ServiceAccount', namespace, account)}/token", json=asked)
        assert said.accepted, said
        return str(said.body["status"]["token"])

    def bind(self, pod: str, namespace: str, node: str) -> None:
        """Give a pod its node, as a scheduler does."""
        meta, target = {"name": pod, "namespace": namespace}, {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        said = self.send("POST", f"{_path('Pod', namespace, pod)}/binding", json=body)
        assert said.accepted, said

    def text(self, path: str) -> str:
        """Any path of the API server, as it is."""
        return self.client.get(f"/{path}").text

    def resource(self, word: str, namespace: str = "", *places: str) -> str:
        """The path of a resource by its kind, plural or short name; in these groups, or in those that tests use."""
        for place in places or _SERVED:
            for one in _resources(self.client, place):
                if word in (one["kind"], one["name"], one.get("singularName"), *one.get("shortNames", ())):
                    within = ("namespaces", namespace or "default") if one["namespaced"] else ()
                    return "/".join(("", place, *within, one["name"]))
        raise AssertionError(f"{word}: nothing of that name is served at {', '.join(places or _SERVED)}")

    def send(self, method: str, path: str, **more: Any) -> Said:
        """Any request."""
        headers = [*more.pop("headers", {}).items(), *([("Impersonate-User", self.user)] if self.user else [])]
        headers += [("Impersonate-Group", group) for group in self.groups]
        answer = self.client.request(method, path, headers=headers, **more)
        return Said(answer.status_code, answer.json())


def _path(kind: str, namespace: str, name: str = "") -> str:
    group, plural = _PLACES[kind]
    return "/".join(("", group, *(("namespaces", namespace) if namespace else ()), plural, *((name,) if name else ())))


@contextmanager
def opened(kubeconfig: Path) -> Iterator[Api]:
    """A client for the first user of a kubeconfig."""
    config = yaml.safe_load(kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    if "token" in user:
        bearer = {"Authorization": f"Bearer {user['token']}"}
        with httpx2.Client(base_url=server["server"], headers=bearer, timeout=120, trust_env=False) as client:
            yield Api(client)
        return
    context = ssl.create_default_context(cadata=_decoded(server["certificate-authority-data"]))
    with tempfile.TemporaryDirectory() as folder:
        for part in ("certificate", "key"):
            (Path(folder) / part).write_text(_decoded(user[f"client-{part}-data"]))
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    with httpx2.Client(base_url=server["server"], verify=context, timeout=120, trust_env=False) as client:
        yield Api(client)


def with_token(kubeconfig: Path, token: str, path: Path) -> Path:
    """Write the same kubeconfig for the holder of a token."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path.write_text(yaml.safe_dump(config))
    return path


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
