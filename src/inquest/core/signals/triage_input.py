"""What triage looks at, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from inquest.api.refs import ObjectRef
from inquest.api.signal import SignalContent
from inquest.api.types import EffectivenessReason, Phase, Reason, Resolution, SignalPhase, SubReason
from inquest.core.history.chain_guards import ChainRules
from inquest.core.history.history import History

BUILT_IN_NOISE: Final = frozenset({"Watchdog", "InfoInhibitor", "DeadMansSwitch"})
BUILT_IN_PROTECTED: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Investigated like others, never remediated; the operator's and the execution namespace come on top."""


@dataclass(frozen=True)
class TriageRules:
    """The settings that triage reads."""

    operator_namespace: str = "inquest-system"
    namespaces: frozenset[str] = frozenset()
    """Of targets that are looked after; empty: all."""
    noise: frozenset[str] = BUILT_IN_NOISE
    require_label: bool = True
    chain: ChainRules = field(default_factory=ChainRules)
    consecutive_failures: int = 3
    failure_block: timedelta = timedelta(hours=1)
    no_action_hold: timedelta = timedelta(hours=24)
    rate: int = 30
    rate_per_namespace: int = 10


@dataclass(frozen=True)
class OpenCase:
    """An Investigation of this fingerprint that has not ended."""

    investigation: ObjectRef
    signal: str
    opened_at: datetime


@dataclass(frozen=True)
class EndedCase:
    """An Investigation of this fingerprint that has ended."""

    phase: Phase
    ended_at: datetime
    reason: Reason | None = None
    sub_reason: SubReason | None = None
    resolution: Resolution | None = None
    effectiveness: EffectivenessReason | None = None
    next_allowed: datetime | None = None
    reviewed: bool = False
    workflow_came: bool = False
    """It found no workflow for its cause, and one has been registered since."""
    namespace: str = ""
    """Namespace of the Signal's target."""
    place: tuple[str, str] = ("", "")
    """Namespace and name of the Investigation itself."""


@dataclass(frozen=True)
class AcceptedSignal:
    """A place that a Signal took lately and its case still needs, for the rate limit."""

    at: datetime
    namespace: str


@dataclass(frozen=True)
class TriageInput:
    """All that triage may look at."""

    name: str
    namespace: str
    spec: SignalContent
    now: datetime
    rules: TriageRules = field(default_factory=TriageRules)
    fingerprint: str = ""

    kind_known: bool = True
    never_read: str = ""
    """Why objects of this kind are looked at for nobody."""
    namespaced: bool = True
    namespace_exists: bool = True
    target_exists: bool = True

    scope_labels: tuple[Mapping[str, str], ...] = ()
    """Labels of the target, its root owner and its namespace, in this order."""
    scope_unknown: bool = False
    """Some of these labels could not be read."""
    by_person: bool = False
    """A person asked, and the API server says so: triage neither takes it for small talk nor lets it cool down."""
    event_type: str = ""
    """`Normal` or `Warning` where the source is an event."""

    open_cases: tuple[OpenCase, ...] = ()
    ended: tuple[EndedCase, ...] = ()
    """Newest first."""
    history: History = field(default_factory=lambda: History(available=True))
    spec_hash: str = ""
    accepted: tuple[AcceptedSignal, ...] = ()

    blocked_for: str = ""
    """Triage reason of the block that it comes from."""
    blocked_count: int = 0

    @property
    def has_case(self) -> bool:
        """Without fingerprint or target name nothing can be said about earlier cases."""
        return bool(self.fingerprint and self.spec.target.name)

    @property
    def target_namespace(self) -> str:
        return self.spec.target.namespace or ""


@dataclass(frozen=True)
class TriageDecision:
    """What becomes of the Signal; `until` is the next look at a block, None: never."""

    phase: SignalPhase
    reason: str
    message: str
    until: datetime | None = None
    duplicate_of: ObjectRef | None = None
    opened: ObjectRef | None = None
    """The Investigation of its own."""
