"""The real kubectl as a value, and the few verbs that the tests of this tier need.

Those that say nothing of kubectl itself are requests: a look costs milliseconds then, and not a process.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.support.api import Api, Said, opened
from tests.support.apiserver.server import ApiServer

OPERATOR = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
SAMPLES = Path(__file__).parent / "objects"
CALL_SECONDS = 180
EFFECT_SECONDS = 180
"""Bounds of a machine that is many times slower; nothing waits for them."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What one call of kubectl said."""

    code: int
    out: str
    err: str

    @property
    def accepted(self) -> bool:
        return self.code == 0


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl; a call that is refused raises, `ask` gives the answer instead."""

    program: Path
    kubeconfig: Path
    namespace: str = ""
    name: str = ""
    """Of the user in whose name it asks; empty: the administrator."""
    groups: tuple[str, ...] = ()

    @property
    def api(self) -> Api:
        """The same user's requests."""
        return _client(self.kubeconfig, self.kubeconfig.read_text()).named(self.name, *self.groups)

    def ask(self, *arguments: str, stdin: str = "") -> Answer:
        place = [f"--kubeconfig={self.kubeconfig}", *([f"--namespace={self.namespace}"] if self.namespace else [])]
        place += [*([f"--as={self.name}"] if self.name else []), *(f"--as-group={group}" for group in self.groups)]
        command = [str(self.program), *place, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        answer = self.ask(*arguments, stdin=stdin)
        assert answer.accepted, f"kubectl {' '.join(arguments)}: {answer.err}"
        return answer.out

    def user(self, name: str, *groups: str) -> Kubectl:
        """The same place as another user."""
        return replace(self, name=name, groups=groups)

    def within(self, namespace: str) -> Kubectl:
        """The same user in a namespace."""
        return replace(self, namespace=namespace)

    def may(self, verb: str, resource: str) -> bool:
        """Whether the API server would let this user; `resource`: `plural.group`, `plural.group/name` or `/path`."""
        full, _, name = resource.partition("/")
        plural, _, group = full.partition(".")
        asked = {"verb": verb, "resource": plural, "group": group, "name": name, "namespace": self.namespace}
        spec = {"resourceAttributes": asked} if full else {"nonResourceAttributes": {"verb": verb, "path": resource}}
        body = {"kind": "SelfSubjectAccessReview", "spec": spec}
        said = self.api.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=body)
        # Who is nobody may not even ask.
        return said.accepted and bool(said.body["status"]["allowed"])

    def create(self, found: Object, *, dry: bool = False) -> Answer:
        """Create one object as it is; a field that its kind does not have is refused."""
        said = self.api.send("POST", self._of(found), json=found, params={"fieldValidation": "Strict", **_dry(dry)})
        return _answer(said)

    def apply(self, *found: Object) -> None:
        """Server-side apply of objects as they are."""
        for one in found:
            path = f"{self._of(one)}/{one['metadata']['name']}"
            apply = {"fieldManager": "kubectl", "force": "true"}
            form = {"content-type": "application/apply-patch+yaml"}
            said = self.api.send("PATCH", path, content=json.dumps(one), params=apply, headers=form)
            assert said.accepted, said.message

    def get(self, kind: str, name: str) -> Object:
        """One object as the API server has it."""
        said = self.api.send("GET", self._path(kind, name))
        assert said.accepted, said.message
        said.body["metadata"].pop("managedFields", None)
        return said.body

    def merge(self, kind: str, name: str, change: Object, *, part: str = "", dry: bool = False) -> Answer:
        """A merge patch of an object, or of a part of it."""
        path, form = self._path(kind, name, part), {"content-type": "application/merge-patch+json"}
        return _answer(self.api.send("PATCH", path, json=change, params=_dry(dry), headers=form))

    def status(self, kind: str, name: str, status: Object, *, dry: bool = False) -> Answer:
        """A merge patch of the status."""
        return self.merge(kind, name, {"status": status}, part="status", dry=dry)

    def bind(self, name: str, role: tuple[str, str], subject: tuple[str, str]) -> None:
        """A RoleBinding: kind and name of the role, kind and name of who gets it."""
        group = "rbac.authorization.k8s.io"
        body: Object = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": name}}
        body |= {"roleRef": {"apiGroup": group, "kind": role[0], "name": role[1]}}
        body |= {"subjects": [{"apiGroup": group, "kind": subject[0], "name": subject[1]}]}
        answer = self.create(body)
        assert answer.accepted, answer.err

    def delete(self, kind: str, name: str) -> None:
        """Delete in the background."""
        said = self.api.send("DELETE", self._path(kind, name), params={"propagationPolicy": "Background"})
        assert said.accepted, said.message

    def _path(self, kind: str, name: str, part: str = "") -> str:
        """Of an object, by the kind's name, plural or short name."""
        return "/".join((self.api.resource(kind, self.namespace), name, *((part,) if part else ())))

    def _of(self, found: Object) -> str:
        """Of all objects like this one, in its namespace."""
        version = found["apiVersion"]
        place = f"apis/{version}" if "/" in version else f"api/{version}"
        return self.api.resource(found["kind"], found["metadata"].get("namespace") or self.namespace, place)


@cache
def _client(kubeconfig: Path, _text: str) -> Api:
    """One for each kubeconfig and what stands in it, open until the process ends."""
    return _open.enter_context(opened(kubeconfig))


_open = ExitStack()
atexit.register(_open.close)


def _dry(dry: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry else {}


def _answer(said: Said) -> Answer:
    """As kubectl says it."""
    told = "" if said.accepted else f"Error from server ({said.body.get('reason')}): {said.message}"
    return Answer(0 if said.accepted else 1, json.dumps(said.body), told)


@dataclass(frozen=True)
class Cluster:
    """The running control plane."""

    kubeconfig: Path
    kubectl: Kubectl
    """The administrator, in no namespace."""
    memory: ApiServer | None = None
    """The server itself where it is the one in memory."""

    @property
    def operator(self) -> Kubectl:
        """The operator's service account, in no namespace."""
        return self.kubectl.user(OPERATOR)


@contextmanager
def own_namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace that goes at the end."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    assert cluster.kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).accepted
    yield name
    cluster.kubectl.delete("Namespace", name)


def eventually(holds: Callable[[], bool], *, what: str, seconds: float = EFFECT_SECONDS) -> None:
    """Wait, for a bounded time, until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.1)


def sample(kind: str) -> Object:
    """A rich object of this kind, status included."""
    found: Object = yaml.safe_load((SAMPLES / f"{kind.lower()}.yaml").read_text())
    return found


def proposal(kind: str) -> Object:
    """A rich object of this kind without its status, as it is created."""
    return {key: value for key, value in sample(kind).items() if key != "status"}
