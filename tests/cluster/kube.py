"""The real kubectl as a value, and the few verbs that the tests of this tier need."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from inquest.api.installation import NAMESPACE, SERVICE_ACCOUNT
from tests.support.apiserver.server import ApiServer

OPERATOR = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
SAMPLES = Path(__file__).parent / "contract" / "objects"
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
    options: tuple[str, ...] = ()

    def ask(self, *arguments: str, stdin: str = "") -> Answer:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *self.options, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        answer = self.ask(*arguments, stdin=stdin)
        assert answer.accepted, f"kubectl {' '.join(arguments)}: {answer.err}"
        return answer.out

    def user(self, name: str, *groups: str) -> Kubectl:
        """The same place as another user."""
        them = (f"--as={name}", *(f"--as-group={group}" for group in groups))
        return replace(self, options=(*self.options, *them))

    def within(self, namespace: str) -> Kubectl:
        """The same user in a namespace."""
        return replace(self, options=(*self.options, f"--namespace={namespace}"))

    def may(self, verb: str, resource: str) -> bool:
        """Whether the API server would let this user; `resource` may be `plural.group` or `plural/name`."""
        return self.ask("auth", "can-i", verb, resource).accepted

    def create(self, found: Object, *options: str) -> Answer:
        """Create one object as it is."""
        return self.ask("create", "-f", "-", *options, stdin=json.dumps(found))

    def apply(self, *found: Object) -> str:
        """Server-side apply of objects as they are."""
        text = "---\n".join(yaml.safe_dump(one) for one in found)
        return self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def get(self, kind: str, name: str) -> Object:
        """One object as the API server has it."""
        found: Object = json.loads(self("get", kind, name, "-o", "json"))
        return found

    def merge(self, kind: str, name: str, change: Object, *options: str) -> Answer:
        """A merge patch."""
        return self.ask("patch", kind, name, "--type=merge", "-p", json.dumps(change), *options)

    def status(self, kind: str, name: str, status: Object, *options: str) -> Answer:
        """A merge patch of the status."""
        return self.merge(kind, name, {"status": status}, "--subresource=status", *options)


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
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


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
