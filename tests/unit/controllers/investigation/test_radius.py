"""How far a change reaches (resources, section 5.2)."""

from __future__ import annotations

from typing import Any

import pytest

from inquest.controllers.investigation.radius import BlastRadius
from inquest.core.remediation.blast_radius import blast_radius
from inquest.core.remediation.policy import Blast
from inquest.errors import Forbidden, NotFound
from inquest.ports.kubernetes import Listing, ResourceKind
from tests.support.tables import each_row
from tests.unit.core.cases import DEPLOYMENT

Object = dict[str, Any]
APP = {"matchLabels": {"app": "api"}}


def pod(app: str = "api", namespace: str = "shop") -> Object:
    return {"metadata": {"namespace": namespace, "labels": {"app": app}}}


def service(app: str | None = "api", namespace: str = "shop") -> Object:
    return {"metadata": {"namespace": namespace}, "spec": {"selector": {"app": app} if app else None}}


def budget(allowed: int | None, selector: Object | None = APP, namespace: str = "shop") -> Object:
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    return {"metadata": {"namespace": namespace}, "spec": {"selector": selector}, "status": status}


FIGURES: dict[str, tuple[Blast, Blast]] = {
    "pods, what sends traffic to them, what guards them": (
        blast_radius([pod(), pod()], [service(), service("other"), service()], [budget(1), budget(0, {**APP})], {}),
        Blast(2, 2, 0),
    ),
    "no pod now: the template stands for them": (
        blast_radius([], [service()], [budget(2)], {"metadata": {"labels": {"app": "api"}}}),
        Blast(0, 1, 2),
    ),
    "a Service without a selector stands on nothing": (
        blast_radius([pod()], [service(None)], [], {}),
        Blast(1, 0, None),
    ),
    "a budget without a rule guards every pod of its namespace": (
        blast_radius([pod("x")], [], [budget(3, {}), budget(0, {}, "bank")], {}),
        Blast(1, 0, 3),
    ),
    "a budget that has not counted yet leaves it unknown": (
        blast_radius([pod()], [], [budget(2), budget(None)], {}),
        Blast(1, 0, None),
    ),
    "another namespace": (
        blast_radius([pod()], [service(namespace="bank")], [budget(0, namespace="bank")], {}),
        Blast(1, 0),
    ),
    "unread lists are unknown and not 0": (blast_radius([pod()], None, None, {}), Blast(1, None, None)),
    "unread pods leave everything unknown": (blast_radius(None, [service()], [budget(0)], {}), Blast()),
}


@each_row(("figures", "expected"), FIGURES.values(), ids=FIGURES.keys())
def test_what_a_change_reaches_is_counted(figures: Blast, expected: Blast) -> None:
    assert figures == expected


class Shop:
    """A cluster with one workload; what is not in `lists` may not be read."""

    def __init__(self, target: Object | None, **lists: Listing) -> None:
        self.target, self.lists, self.asked = target, lists, list[tuple[str, str, str]]()

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        return ResourceKind("", "v1", word, word.lower(), True)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Object:
        if self.target is None:
            raise NotFound(name)
        return self.target

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        self.asked.append((kind.kind, namespace, labels or fields))
        if kind.kind not in self.lists:
            raise Forbidden(kind.plural)
        return self.lists[kind.kind]


class Ports:
    def __init__(self, cluster: Shop) -> None:
        self.cluster = cluster


async def figures(shop: Shop, kind: str = "Deployment") -> Blast:
    target = DEPLOYMENT.model_copy(update={"kind": kind, **({"namespace": None} if kind == "Node" else {})})
    return await BlastRadius(Ports(shop)).of(target)  # type: ignore[arg-type]


WORKLOAD: Object = {"spec": {"selector": {**APP, "matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}}}
CANARY = {"metadata": {"namespace": "shop", "labels": {"app": "api", "canary": "yes"}}}


async def test_the_pods_of_a_workload_are_those_of_its_whole_selector() -> None:
    found = Shop(WORKLOAD, Pod=Listing((pod(), CANARY)), Service=Listing((service(),)), PodDisruptionBudget=Listing(()))

    assert await figures(found) == Blast(1, 1, None)
    assert found.asked[0] == ("Pod", "shop", "app=api")


async def test_a_node_reaches_the_pods_on_it_in_every_namespace() -> None:
    pods = Listing((pod(), pod("db", "bank")))
    found = Shop({"spec": {}}, Pod=pods, Service=Listing((service("db", "bank"),)), PodDisruptionBudget=Listing(()))

    assert await figures(found, "Node") == Blast(2, 1, None)
    assert [asked[1] for asked in found.asked] == ["", "", ""]
    assert found.asked[0][2] == f"spec.nodeName={DEPLOYMENT.name}"


@pytest.mark.parametrize(
    "found",
    [
        Shop(None),
        Shop(WORKLOAD),
        Shop(WORKLOAD, Pod=Listing((pod(),), complete=False)),
        Shop({"spec": {"selector": {"app": "api"}}}, Pod=Listing((pod(),))),
        Shop({"data": {}}, Pod=Listing((pod(),))),
    ],
    ids=["gone", "forbidden", "cut", "a selector of another shape", "no pods of its own"],
)
async def test_what_cannot_be_counted_is_unknown_and_never_nothing(found: Shop) -> None:
    assert await figures(found) == Blast()
