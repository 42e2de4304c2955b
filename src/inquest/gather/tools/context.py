"""What every tool of an invocation works with, and what it hands back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from inquest.computing import compute
from inquest.core.evidence.evidence import Evidence
from inquest.core.llm.messages import ToolSchema
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.core.signals.incident import IncidentWindow
from inquest.gather.tools.arguments import Arguments, schema_of
from inquest.gather.tools.render import without_noise
from inquest.gather.tools.scope import Scope, without_blocked
from inquest.ports.clock import Clock
from inquest.ports.datastorage import Catalogue
from inquest.ports.kubernetes import Cluster, Json
from inquest.ports.process import Redactor
from inquest.ports.sources import Logs, Metrics

SHOWN_CHARACTERS: Final = 100_000
"""Of one result; the rest is read page by page."""
Place = tuple[str, str, str]
"""Kind in lower case, name, namespace."""
ResourceContextOf = Callable[[str, str, str], Awaitable[Json]]
"""Kind, name, namespace to the object of pipeline 12.3; raises what its read raised."""


@dataclass(frozen=True)
class Output:
    """What a tool found, before the last redaction, the cut and the frame."""

    text: str
    api_fact: bool = False
    empty: bool = False
    cut: bool = False
    resolved: Mapping[str, Any] = field(default_factory=dict)
    """Arguments as they turned out: kind resolved, namespace filled in."""


@dataclass(frozen=True)
class Backends:
    """What tools reach; a tool without its backend is not offered."""

    cluster: Cluster
    redactor: Redactor
    clock: Clock
    catalogue: Catalogue | None = None
    context: ResourceContextOf | None = None
    runbooks: Mapping[str, str] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    """Kinds that are not read either; Secrets never are, whatever stands here."""
    metrics: Metrics | None = None
    logs: Logs | None = None


@dataclass
class ToolContext:
    """The tools' side of one invocation; what is kept here is rebuilt from evidence after a crash."""

    backends: Backends
    scope: Scope
    filters: CatalogueFilters | None = None
    """From the investigation, never from a model; without them nothing of the catalogue is listed."""
    infrastructure: str = ""
    """The sentence of pipeline 15.4, for `cluster_context`."""
    evidence: dict[str, Evidence] = field(default_factory=dict)
    contexts: Mapping[Place, Json] = field(default_factory=dict)
    """Answers of the resource-context tools that are known already."""
    window: IncidentWindow | None = None
    """Where metrics and logs are looked for unless a call says otherwise."""
    hints: bool = True
    """Whether it is said what a known failure means."""

    def readable(self, objects: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
        """Objects without those of blocked kinds, and how many were withheld."""
        looked = [without_blocked(found, self.backends.blocked) for found in objects]
        return [found for found, _ in looked if found is not None], sum(count for _, count in looked)

    async def redacted(self, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Objects by structure, in a thread: the redactor never holds up the event loop."""
        plain = [without_noise(found) for found in objects]
        return await compute(lambda: [self.backends.redactor.data(found).value for found in plain])


Runner = Callable[[ToolContext, Any], Awaitable[Output]]


@dataclass(frozen=True)
class Tool:
    """One row of the registry."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Runner
    available: Callable[[Backends], bool] = lambda _: True
    system: str = ""
    """What it asks where that is not Kubernetes; its failures are told in other words."""
    most: int = SHOWN_CHARACTERS
    narrower: str = ""
    """How to ask for less where more than `most` characters came."""

    @cached_property
    def schema(self) -> ToolSchema:
        """As a model is offered it."""
        return ToolSchema(self.name, self.description, schema_of(self.arguments))
