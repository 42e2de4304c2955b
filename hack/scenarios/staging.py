"""Bringing a scenario's fault about on a real API server, and clearing it away; recorder and live runs share it.

A person writes the head of a scenario's file: `signal`, `expected`, and how it comes about under `live`:

    apply       the objects that are applied, as one text; its first comment says what is wrong, or that nothing is
    tier        control plane | simulated | node
    images      images of ours that the node must hold
    steps       what happens after the first apply, in order; each is one of
                  {wait: {get: [kubectl words], jsonpath: "{…}", matches: a regular expression, timeout: seconds}}
                  {kubectl: [words]}      run; a refusal ends the scenario unless `refused: true` stands beside it
                  {sleep: seconds}
    before      kubectl commands ahead of the first apply
    cleanup     kubectl commands that undo what deleting the applied objects does not
    alone       true where no other scenario may run meanwhile: it changes nodes, or what it shows is over in seconds
    record      kinds of the cluster to be recorded beside the usual ones
    everywhere  namespaced kinds to be recorded of all namespaces: those of a node, or of who else may have a part in it
    metrics     true where the pods' and nodes' metrics belong to the case

Status in `apply` goes through the status subresource: that is how simulated nodes get the status of a broken one.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack import HackError
from hack.cluster import local
from inquest.replay.yaml_pages import Loader

KUBECTL_SECONDS = 60
WAIT_SECONDS = 60
POLL_SECONDS = 0.5
AGE_SECONDS = 90
"""A careful reader blames nothing that is seconds old, so a fault stands this long before it is told."""
SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})

Object = dict[str, Any]


@dataclass(frozen=True)
class Kubectl:
    """kubectl as the administrator of one cluster."""

    cluster: local.Cluster

    def run(self, *words: str, stdin: str | None = None, refused: bool = False) -> str:
        """What it printed; a refusal is an error unless it is what the scenario is about."""
        command = [str(self.cluster.bin / "kubectl"), f"--kubeconfig={self.cluster.kubeconfig}", *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=KUBECTL_SECONDS, check=False
        )
        if done.returncode != 0 and not refused:
            raise HackError(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def list(self, kinds: Iterable[str], *words: str) -> list[Object]:
        """All objects of these kinds."""
        found: Object = json.loads(self.run("get", ",".join(kinds), *words, "-o", "json"))
        return list(found["items"])


@dataclass(frozen=True)
class Scenario:
    """A file under `tests/scenarios`, as far as a person wrote it."""

    place: Path
    head: Mapping[str, Any]
    objects: Sequence[Object]
    text: str
    """The first comment of what is applied: what is wrong here, or that nothing is."""

    @property
    def name(self) -> str:
        return f"{self.place.parent.name}/{self.place.stem}"

    @property
    def needs(self) -> Mapping[str, Any]:
        """What must be there and happen beside what is applied."""
        live: Mapping[str, Any] = self.head["live"]
        return live

    @property
    def is_broken(self) -> bool:
        """Whether a cause is expected."""
        return "cause" in self.head.get("expected", {})

    @property
    def is_alone(self) -> bool:
        """Whether no other scenario may run beside it."""
        return bool(self.needs.get("alone"))

    @property
    def namespaces(self) -> list[str]:
        """The scenario's own, in the order in which they are applied."""
        names = [found["metadata"]["name"] for found in self.objects if found["kind"] == "Namespace"]
        return [name for name in names if name not in SYSTEM_NAMESPACES]


def head_of(place: Path) -> Mapping[str, Any]:
    """The first document of a case's file."""
    head: Mapping[str, Any] = next(yaml.load_all(place.read_text(), Loader=Loader))
    return head


def scenario_of(place: Path) -> Scenario:
    """What the person wrote in the file, whose ending may be left out."""
    place = place if place.suffix == ".yaml" else place.with_name(f"{place.name}.yaml")
    head = head_of(place)
    applied = head["live"]["apply"]
    objects = [found for found in yaml.safe_load_all(applied) if found]
    comment = next((line.lstrip("# ") for line in applied.splitlines() if line.startswith("#")), "")
    return Scenario(place, head, objects, comment)


def stage(kubectl: Kubectl, scenario: Scenario, *, patience: float = 1.0) -> None:
    """Apply it and wait for what it waits for; `patience` is a factor on the bounds, for a machine with much to do."""
    for command in scenario.needs.get("before", ()):
        kubectl.run(*command)
    for group in _in_order(scenario.objects):
        manifests = yaml.safe_dump_all([_without_status(found) for found in group])
        kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifests)
        _wait_for_accounts(kubectl, group)
    for found in scenario.objects:
        if "status" in found:
            _patch_status(kubectl, found)
    for step in scenario.needs.get("steps", ()):
        _take(kubectl, step, patience)


def _in_order(objects: Sequence[Object]) -> Iterator[list[Object]]:
    """Namespaces and definitions ahead of what lives in them."""
    first = ("Namespace", "CustomResourceDefinition")
    for group in (
        [found for found in objects if found["kind"] in first],
        [found for found in objects if found["kind"] not in first],
    ):
        if group:
            yield group


def _without_status(found: Object) -> Object:
    return {field: value for field, value in found.items() if field != "status"}


def _wait_for_accounts(kubectl: Kubectl, applied: Sequence[Object]) -> None:
    """Pods made before their namespace has its account would leave refusals that are no part of the scenario."""
    for found in applied:
        if found["kind"] == "Namespace":
            account = ["serviceaccount", "default", "-n", found["metadata"]["name"], "--ignore-not-found"]
            _wait(kubectl, {"get": account, "jsonpath": "{.metadata.name}", "matches": "default"})


def _patch_status(kubectl: Kubectl, found: Object) -> None:
    metadata = found["metadata"]
    place = ["-n", metadata["namespace"]] if "namespace" in metadata else []
    group = found["apiVersion"].rpartition("/")[0]
    kind = f"{found['kind']}.{group}" if group else found["kind"]
    patch = json.dumps({"status": found["status"]})
    kubectl.run("patch", kind, metadata["name"], *place, "--subresource=status", "--type=merge", f"--patch={patch}")


def _take(kubectl: Kubectl, step: Mapping[str, Any], patience: float) -> None:
    if "sleep" in step:
        time.sleep(float(step["sleep"]))
    elif "kubectl" in step:
        kubectl.run(*step["kubectl"], refused=bool(step.get("refused")))
    else:
        _wait(kubectl, step["wait"], patience)


def let_stand(kubectl: Kubectl, scenario: Scenario, age: float, *, patience: float = 1.0) -> None:
    """Containers that come and go may have come meanwhile: what was waited for last must hold once more."""
    time.sleep(age)
    waits = [step for step in scenario.needs.get("steps", ()) if "wait" in step]
    for step in waits[-1:]:
        _take(kubectl, step, patience)


def _wait(kubectl: Kubectl, wanted: Mapping[str, Any], patience: float = 1.0) -> None:
    """Poll: what is waited for may not exist yet, so a refusal is only an answer that does not match."""
    deadline = time.monotonic() + patience * float(wanted.get("timeout", WAIT_SECONDS))
    command = ["get", *wanted["get"], "-o", f"jsonpath={wanted['jsonpath']}"]
    while not re.search(wanted["matches"], seen := kubectl.run(*command, refused=True)):
        if time.monotonic() > deadline:
            raise HackError(f"waited in vain for {wanted['matches']!r}, saw {seen[-500:]!r}")
        time.sleep(POLL_SECONDS)


def wait_until_gone(kubectl: Kubectl, scenario: Scenario) -> None:
    """A namespace of an earlier run may still be on its way out."""
    for namespace in scenario.namespaces:
        kubectl.run("delete", "namespace", namespace, "--ignore-not-found", "--timeout=45s")


def clear(kubectl: Kubectl, scenario: Scenario) -> None:
    """Undo it; what goes slowly goes on going."""
    for command in scenario.needs.get("cleanup", ()):
        kubectl.run(*command, refused=True)
    rest = [found for found in scenario.objects if _is_left_over(found, scenario.namespaces)]
    if rest:
        kubectl.run("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=yaml.safe_dump_all(rest))
    if scenario.namespaces:
        kubectl.run("delete", "namespace", *scenario.namespaces, "--ignore-not-found", "--wait=false")


def _is_left_over(found: Object, namespaces: Sequence[str]) -> bool:
    """Whether deleting the scenario's namespaces does not take it along."""
    return found["kind"] != "Namespace" and found["metadata"].get("namespace") not in namespaces
