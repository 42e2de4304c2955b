"""The intake behind its HTTP face, on an API server of a few lines that refuses what comes too late."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from inquest.controllers.ports import ControllerPorts
from inquest.core.redaction.redacted import Redacted
from inquest.core.redaction.redactor import Redactor
from inquest.errors import AlreadyExists, AmbiguousKind, Conflict, NotFound, UnknownKind
from inquest.ports.kubernetes import ResourceKind
from inquest.server.intake.app import create_app
from inquest.serving.login import Reviewer
from inquest.settings.settings import Settings

Json = dict[str, Any]
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
HOME = "inquest-system"
KINDS = {"ingress": ("Ingress", "networking.k8s.io"), "certificate": ("Certificate", "cert-manager.io")}


@dataclass
class Server:
    """Objects by kind and name, a clock, and a fault that is raised at the next call of a name."""

    held: dict[tuple[str, str], Json] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    seconds: float = 0.0

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if self.faults.get(call):
            raise self.faults[call].pop(0)

    def monotonic(self) -> float:
        return self.seconds

    async def now(self) -> datetime:
        return NOW

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        self._note(f"read {kind.kind}")
        if (kind.kind, name) not in self.held:
            raise NotFound(name)
        return copy.deepcopy(self.held[kind.kind, name])

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        self._note(f"list {kind.kind}")
        key, _, value = labels.partition("=")
        found = [obj for place, obj in self.held.items() if place[0] == kind.kind]
        return tuple(copy.deepcopy(obj) for obj in found if obj["metadata"].get("labels", {}).get(key) == value)

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        self._note(f"create {kind.kind}")
        name = obj.value["metadata"]["name"]
        if (kind.kind, name) in self.held:
            raise AlreadyExists(name)
        return self.put(kind.kind, name, **_body(obj.value))

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        self._note(f"apply {kind.kind}")
        return self._changed(kind, obj, {"status": obj.value["status"]})

    async def swap(self, kind: ResourceKind, obj: Redacted[Json], **_: Any) -> Json:
        self._note(f"swap {kind.kind}")
        return self._changed(kind, obj, {"spec": self.signal()["spec"] | obj.value["spec"]})

    def _changed(self, kind: ResourceKind, obj: Redacted[Json], change: Json) -> Json:
        meta = obj.value["metadata"]
        found = self.held[kind.kind, meta["name"]]
        if found["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise Conflict(meta["name"])
        return self.put(kind.kind, meta["name"], **_body({**found, **change}))

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        self._note(f"kind {word}")
        if word == "gateway" and not api_version:
            raise AmbiguousKind("Gateway", ("gateway.networking.k8s.io/v1", "networking.istio.io/v1"))
        kind, group = ("Gateway", api_version) if word == "gateway" else KINDS.get(word, ("", ""))
        if word == "cert":
            kind = "Certificate"
        if not kind:
            raise UnknownKind(word)
        return ResourceKind(group, "v1", kind, f"{kind.lower()}s", True)

    def put(self, kind: str, name: str, **body: Any) -> Json:
        version = int(
            self.held.get((kind, name), {"metadata": {"resourceVersion": "0"}})["metadata"]["resourceVersion"]
        )
        meta = {"uid": f"uid-{name}", **body.pop("metadata", {}), "name": name, "resourceVersion": str(version + 1)}
        self.held[kind, name] = {"kind": kind, **body, "metadata": meta}
        return self.held[kind, name]

    def signal(self) -> Json:
        """The one Signal that there is."""
        ((_, found),) = [item for item in self.held.items() if item[0][0] == "Signal"]
        return found

    def tell(self, **status: Any) -> None:
        """What the controllers made of that Signal."""
        found = self.signal()
        change = {"status": {**found.get("status", {}), **status}}
        self.put("Signal", found["metadata"]["name"], **_body({**found, **change}))

    def ports(self, **intake: Any) -> ControllerPorts:
        ports = {one.name: None for one in fields(ControllerPorts)} | dict.fromkeys(
            ("cluster", "status", "clock"), self
        )
        return ControllerPorts(**ports | {"settings": Settings(intake=intake), "redactor": Redactor()})  # type: ignore[arg-type]


def _body(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key != "kind"}


Opening = Callable[..., AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def opening(server: Server) -> Opening:
    """Opens the intake: with a reviewer, and with settings of `intake`."""

    @asynccontextmanager
    async def open_(reviewer: Reviewer | None = None, **intake: Any) -> AsyncIterator[httpx2.AsyncClient]:
        app = create_app(server.ports(**intake), reviewer=reviewer)
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://intake") as http:
            yield http

    return open_


@pytest.fixture
async def http(opening: Opening) -> AsyncIterator[httpx2.AsyncClient]:
    """The intake without a login."""
    async with opening() as found:
        yield found
