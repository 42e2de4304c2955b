"""Which pods are a workload's, for what a proposal reaches and for how its target fares afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from inquest.api.refs import TargetRef
from inquest.controllers.execution.controller import ExecutionController
from inquest.controllers.investigation.radius import BlastRadius
from inquest.ports.kubernetes import Json, ResourceKind
from tests.support.tables import each_row

WORKLOAD = TargetRef(kind="Deployment", name="cart", namespace="shop")
BLUE = {"matchExpressions": [{"key": "colour", "operator": "In", "values": ["blue"]}]}


def pod(name: str, **labels: str) -> Json:
    return {"metadata": {"name": name, "labels": labels}}


PODS = (pod("a", app="cart", colour="blue"), pod("b", app="cart", colour="red"), pod("c", app="till", colour="blue"))


@dataclass
class Cluster:
    """One workload and three pods, served as an API server does: by labels alone."""

    shown: Json
    complete: bool = True
    asked: list[str] = field(default_factory=list)

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        return ResourceKind("apps", "v1", word, "deployments", True)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        return self.shown

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "") -> Any:
        self.asked.append(labels)
        wanted = dict(part.split("=") for part in labels.split(",") if part)
        items = tuple(one for one in PODS if wanted.items() <= one["metadata"]["labels"].items())
        return SimpleNamespace(items=items, complete=self.complete)


SPECS: dict[str, tuple[Any, list[str] | None]] = {
    "labels": ({"selector": {"matchLabels": {"app": "cart"}}}, ["a", "b"]),
    "expressions alone": ({"selector": BLUE}, ["a", "c"]),
    "labels and expressions": ({"selector": {"matchLabels": {"app": "cart"}, **BLUE}}, ["a"]),
    "no selector": ({}, None),
    "a selector of another make": ({"selector": {"app": "cart"}}, None),
    "a text for a selector": ({"selector": "app=cart"}, None),
    "a text for labels": ({"selector": {"matchLabels": "app=cart"}}, None),
    "a text for an expression": ({"selector": {"matchExpressions": ["app"]}}, None),
    "a text for a spec": ("cart", None),
}


@each_row(("spec", "names"), SPECS.values(), ids=SPECS.keys())
def test_a_workload_has_the_pods_that_its_whole_selector_takes(spec: Any, names: list[str] | None) -> None:
    cluster = Cluster({"spec": spec})
    ports = cast(Any, SimpleNamespace(cluster=cluster))

    found = asyncio.run(ExecutionController(ports)._pods(WORKLOAD, cluster.shown))
    reached = asyncio.run(BlastRadius(ports).of(WORKLOAD))

    assert (None if found is None else [one["metadata"]["name"] for one in found]) == names
    assert reached.pods == (None if names is None else len(names))


def test_a_list_that_was_cut_is_no_answer() -> None:
    cluster = Cluster({"spec": {"selector": {"matchLabels": {"app": "cart"}}}}, complete=False)
    ports = cast(Any, SimpleNamespace(cluster=cluster))

    assert asyncio.run(ExecutionController(ports)._pods(WORKLOAD, cluster.shown)) is None
    assert asyncio.run(BlastRadius(ports).of(WORKLOAD)).pods is None
