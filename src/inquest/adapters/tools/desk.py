"""What every tool of an invocation works with, and what it hands back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inquest.adapters.tools.arguments import Arguments
from inquest.adapters.tools.guard import Scope
from inquest.adapters.tools.render import without_noise
from inquest.ports import Clock, Cluster, DataStorage, Json, Redactor
from inquest.story.evidence import Evidence
from inquest.story.selection import CatalogueFilters

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
    datastorage: DataStorage | None = None
    context: ResourceContextOf | None = None
    runbooks: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Desk:
    """The tools' side of one invocation; what is kept here is rebuilt from evidence after a crash."""

    backends: Backends
    scope: Scope
    filters: CatalogueFilters | None = None
    """From the investigation, never from a model; without them nothing of the catalogue is listed."""
    infrastructure: str = ""
    """The sentence of pipeline 15.4, for `cluster_context`."""
    evidence: dict[str, Evidence] = field(default_factory=dict)
    todos: dict[str, dict[str, str]] = field(default_factory=dict)

    async def redacted(self, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Objects by structure, in a thread: the redactor never holds up the event loop."""
        plain = [without_noise(found) for found in objects]
        return await asyncio.to_thread(lambda: [self.backends.redactor.data(found).value for found in plain])


Runner = Callable[[Desk, Any], Awaitable[Output]]


@dataclass(frozen=True)
class Tool:
    """One row of the registry."""

    name: str
    description: str
    arguments: type[Arguments]
    run: Runner
    available: Callable[[Backends], bool] = lambda _: True
