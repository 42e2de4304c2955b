"""A language model, and the tools that it may call."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

from inquest.core.cluster.context import ResourceContext
from inquest.core.evidence.evidence import Evidence
from inquest.core.history.history import History
from inquest.core.llm.conversation import ToolRun
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest, ToolResult, ToolSchema
from inquest.core.redaction.redacted import Redacted
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.core.signals.incident import IncidentWindow


@dataclass(frozen=True)
class Reach:
    """What the tools of one case may reach; set by code, never by a model."""

    namespace: str
    """Of the Signal's target; where a call that names none looks."""
    others: frozenset[str] = frozenset()
    filters: CatalogueFilters | None = None
    infrastructure: str = ""
    evidence: tuple[Evidence, ...] = ()
    window: IncidentWindow | None = None
    """Where metrics and logs are looked for unless a call says otherwise."""
    contexts: tuple[tuple[ResourceContext, History], ...] = ()
    """What code has read around targets of the case, whole; it is not read again for a tool."""
    seconds: float | None = None
    """After so many seconds a call that has not answered is a failed one; None: each has its own limit only."""
    hints: bool = True
    """Whether it is said what a known failure means."""


class Tools(Protocol):
    """The tools that a model may call: read-only, checked when they run, redacted, bounded in time and size."""

    def schemas(self, invocation: Invocation) -> tuple[ToolSchema, ...]: ...

    async def run(self, invocation: Invocation, runs: tuple[ToolRun, ...], reach: Reach) -> tuple[ToolResult, ...]:
        """Results in the order of the runs; a call that fails is a gap and does not touch the others."""
        ...


TroubleHeard = Callable[[str, int, int], None]
"""Told the class of the fault, which attempt failed, and how many there may be."""


def _deaf(kind: str, attempt: int, most: int) -> None:
    """Nobody waits for that call in particular."""


MODEL_TROUBLE: Final[ContextVar[TroubleHeard]] = ContextVar("model_trouble", default=_deaf)
"""Who waits for an answer of the model: told of each call that failed and is repeated, while it waits."""


class Model(Protocol):
    """Any endpoint that speaks the OpenAI protocol; errors: Unavailable, RateLimited, ModelRefused."""

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply: ...
