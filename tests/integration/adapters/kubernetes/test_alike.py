"""The API server in memory beside the real one: the same random requests, the same answers and the same objects."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.integration.adapters.kubernetes.conftest import cluster
from tests.support.api import Api, Object, Said, opened
from tests.support.kube import Cluster, proposal
from tests.support.memory import in_memory

__all__ = ["cluster"]

NAMESPACE: Final = f"alike-{uuid.uuid4().hex[:10]}"
KINDS: Final = {"ConfigMap": "v1", "Signal": "inquest.dev/v1alpha1", "Lease": "coordination.k8s.io/v1"}
OF_A_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations")
"""What each server gives an object by itself; annotations are those of its admission policies."""
NAMES: Final = ("a", "b")
COLOURS: Final = ("red", "blue")
WORDS: Final = st.sampled_from(["", "one", "two", None])


@dataclass(frozen=True)
class Step:
    """One request; `seen` says how old the version is that it goes by."""

    verb: str
    kind: str
    name: str
    content: Mapping[str, Any] = field(default_factory=dict)
    colour: str = COLOURS[0]
    seen: str = ""
    manager: str = "one"
    force: bool = False


CONTENT: Final = {
    "ConfigMap": st.fixed_dictionaries({"data": st.dictionaries(st.sampled_from("xyz"), WORDS, max_size=3)}),
    "Lease": st.fixed_dictionaries({"spec": st.fixed_dictionaries({"holderIdentity": WORDS})}),
    "Signal": st.fixed_dictionaries(
        {
            "spec": st.fixed_dictionaries(
                {},
                optional={
                    "severity": st.sampled_from(["high", "low", "huge", None]),
                    "message": WORDS,
                    "unknown": WORDS,
                    "labels": st.dictionaries(st.sampled_from("xy"), WORDS, max_size=2),
                },
            )
        }
    ),
}


VERBS: Final = {
    "ConfigMap": ("create", "merge", "apply", "delete", "delete all"),
    "Lease": ("create", "merge", "apply", "delete", "delete all"),
    # Rules in CEL, which guard what is changed afterwards, are the real server's alone.
    "Signal": ("create", "delete", "delete all"),
}


def steps_of(kind: str) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        verb=st.sampled_from(VERBS[kind]),
        kind=st.just(kind),
        name=st.sampled_from(NAMES),
        content=CONTENT[kind],
        colour=st.sampled_from(COLOURS),
        seen=st.sampled_from(["", "now", "before"]),
        manager=st.sampled_from(["one", "other"]),
        force=st.booleans(),
    )


STEPS: Final = st.sampled_from([*KINDS]).flatmap(lambda kind: st.lists(steps_of(kind), min_size=6, max_size=12))
"""Of one kind a run: otherwise few requests meet an object that another has changed."""


@dataclass
class Side:
    """One of the two servers, and the versions that it gave."""

    api: Api
    prefix: str
    versions: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def takes(self, step: Step) -> tuple[int, str, Object]:
        """Status, reason and object of the answer, without what differs by nature."""
        said = self._sent(step)
        if said.accepted and "metadata" in said.body and step.verb in ("create", "merge", "apply"):
            self.versions.setdefault((step.kind, step.name), []).append(said.body["metadata"]["resourceVersion"])
            return said.code, "", alike(said.body)
        return said.code, "" if said.accepted else str(said.body.get("reason")), {}

    def _sent(self, step: Step) -> Said:
        name, path = f"{self.prefix}-{step.name}", self.api.resource(step.kind, NAMESPACE)
        if step.verb == "delete all":
            return self.api.send("DELETE", path, params={"labelSelector": f"of={self.prefix},colour={step.colour}"})
        if step.verb == "delete":
            return self.api.send("DELETE", f"{path}/{name}")
        body = self._body(step, name)
        if step.verb == "create":
            return self.api.ask_create(body)
        if step.verb == "merge":
            return self.api.merge(step.kind, name, NAMESPACE, {key: body[key] for key in ("metadata", *step.content)})
        params = {"fieldManager": step.manager, "force": str(step.force).lower()}
        headers = {"content-type": "application/apply-patch+yaml"}
        return self.api.send("PATCH", f"{path}/{name}", params=params, json=body, headers=headers)

    def _body(self, step: Step, name: str) -> Object:
        metadata: Object = {"name": name, "namespace": NAMESPACE, "labels": {"of": self.prefix, "colour": step.colour}}
        if step.verb != "create" and (version := self._version(step)):
            metadata["resourceVersion"] = version
        content = dict(step.content)
        if step.verb != "merge":
            # An empty map is a field of its own to one server and none to the other.
            content = {key: value for key, value in without_nulls(content).items() if value}
            if step.kind == "Signal":
                content["spec"] = proposal("Signal")["spec"] | content.get("spec", {})
        return {"apiVersion": KINDS[step.kind], "kind": step.kind, "metadata": metadata, **content}

    def _version(self, step: Step) -> str:
        known = self.versions.get((step.kind, step.name), [])
        if not step.seen or not known:
            return ""
        return known[-1] if step.seen == "now" else known[0]

    def holds(self) -> list[Object]:
        """Everything that is there, by kind and name."""
        return [alike(one) for kind in KINDS for one in self.api.list(kind, NAMESPACE, labels=f"of={self.prefix}")]


def alike(found: Object) -> Object:
    """The object as both servers give it; the real one leaves empty fields of its own kinds out."""
    metadata = {key: value for key, value in found["metadata"].items() if key not in OF_A_SERVER}
    whole = {key: value for key, value in found.items() if key not in ("apiVersion", "kind")} | {"metadata": metadata}
    return {key: value for key, value in whole.items() if value not in ({}, None)}


def different(memory: object, real: object) -> dict[str, tuple[object, object]]:
    """Where they differ, with what stands there in memory and on the real server."""
    ours, theirs = dict(leaves(memory)), dict(leaves(real))
    return {
        place: (ours.get(place), theirs.get(place)) for place in ours | theirs if ours.get(place) != theirs.get(place)
    }


def leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Path and value of each leaf."""
    if not isinstance(value, dict | list | tuple):
        yield place, value
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield from leaves(part, f"{place}.{key}")


def without_nulls(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


@pytest.fixture(scope="module")
def both(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    """The one in memory and the real one."""
    folder = tmp_path_factory.mktemp("memory")
    with in_memory(folder) as found, opened(found.kubeconfig) as memory, opened(cluster.kubeconfig) as real:
        for api in (memory, real):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for kind in KINDS:
            # A definition that was just applied is served a moment later.
            while real.send("GET", real.resource(kind, NAMESPACE)).code == 429:
                time.sleep(0.1)
        yield memory, real
        real.delete("Namespace", NAMESPACE)


_runs: Final = count()


@settings(
    max_examples=60,
    phases=(Phase.explicit, Phase.generate),  # to shrink takes the real server minutes
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(steps=STEPS)
def test_random_requests_are_answered_alike(both: tuple[Api, Api], steps: list[Step]) -> None:
    prefix = f"run-{next(_runs)}"
    memory, real = (Side(api, prefix) for api in both)

    for number, step in enumerate(steps):
        assert different(memory.takes(step), real.takes(step)) == {}, f"answer to step {number} of {steps}"
        assert different(memory.holds(), real.holds()) == {}, f"what is there after step {number} of {steps}"


# --- found by them -----------------------------------------------------------------------------------------------


def applied(api: Api, namespace: str, name: str, **more: Any) -> Said:
    """A ConfigMap, applied by another manager than the one that made it."""
    path = f"{api.resource('ConfigMap', namespace)}/{name}"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more.pop("metadata", {})}, **more}
    headers = {"content-type": "application/apply-patch+yaml"}
    return api.send("PATCH", path, params={"fieldManager": "other", "force": "true"}, json=body, headers=headers)


def test_an_apply_of_an_empty_map_takes_nothing_out(api: Api, namespace: str) -> None:
    meta = {"name": "a", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "1"}})

    assert applied(api, namespace, "a", data={}).accepted
    assert api.get("ConfigMap", "a", namespace)["data"] == {"x": "1"}


def test_an_apply_of_what_is_not_there_passes_over_its_version(api: Api, namespace: str) -> None:
    assert applied(api, namespace, "b", metadata={"resourceVersion": "1"}, data={"x": "1"}).code == 201
