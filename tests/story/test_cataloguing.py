"""What the catalogue disables, while people go on applying workflows (resources, section 7.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from inquest.api.catalogue import RemediationWorkflow
from inquest.conductor.catalogue import Catalogue, content_hash, content_of
from inquest.ports import Json, Registration, ResourceKind
from tests.cluster.kube import proposal
from tests.story.test_signals import HOME, World


@dataclass
class Busy(World):
    """Right after the first of any two reads somebody applies a workflow, and another worker registers it."""

    coming: bool = True
    registrations: list[Registration] = field(default_factory=list)
    disabled: list[str] = field(default_factory=list)

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        found = tuple(obj for place, obj in self.held.items() if place[0] == kind.kind)
        self._somebody_applies()
        return found

    async def registered(self) -> tuple[Registration, ...]:
        found = tuple(self.registrations)
        self._somebody_applies()
        return found

    async def disable_workflow(self, id: str, reason: str) -> None:  # noqa: A002 - the port's word
        self.disabled.append(id)

    def _somebody_applies(self) -> None:
        if self.coming:
            self.coming = False
            self.apply("new")

    def apply(self, name: str) -> None:
        spec = proposal("RemediationWorkflow")["spec"] | {"id": name}
        body = self.put("RemediationWorkflow", name, HOME, apiVersion="inquest.dev/v1alpha1", spec=spec)
        digest = content_hash(content_of(RemediationWorkflow.from_object(body)))
        self.registrations.append(Registration(name, digest, "Active"))


async def test_what_is_applied_during_a_sweep_is_no_orphan() -> None:
    world = Busy()
    world.apply("old")
    world.registrations.append(Registration("gone", "0" * 64, "Active"))

    await Catalogue(world.house()).sweep()

    assert world.disabled == ["gone"]
