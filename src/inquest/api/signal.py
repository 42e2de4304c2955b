"""Signal: something that may deserve an investigation. An alert, an event, a prediction, a request."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field

from inquest.api.base import (
    ApiModel,
    Fingerprint,
    Name,
    Resource,
    StatusBase,
    Text63,
    Text127,
    Text253,
    Text500,
    Text1000,
    Text1024,
    Text2048,
    Text4096,
    Text8192,
    Time,
    cel_rule,
)
from inquest.api.cel_rules import field_set_once, fixed_fields
from inquest.api.notices import Notices
from inquest.api.refs import Business, ObjectRef, OwnerRef, TargetRef
from inquest.api.types import (
    CustomLabels,
    Environment,
    Mode,
    Priority,
    RiskTolerance,
    Severity,
    SignalPhase,
    SourceType,
)


class Source(ApiModel):
    """Where the Signal comes from."""

    type: SourceType
    """Kind of source."""
    name: Text63 | None = None
    """Receiver or component."""
    generator_url: Annotated[Text2048 | None, Field(alias="generatorURL")] = None
    """Link back to the rule."""


class SignalContent(ApiModel):
    """What a Signal says; an Investigation pins a copy of it."""

    name: Name
    """Alert name, event reason, or a person's title."""
    severity: Severity
    """How bad it is."""
    mode: Mode = Mode.REACTIVE
    """Whether it happened or is predicted; for Proactive doing nothing is an acceptable answer."""
    source: Source
    """Where it comes from."""
    target: TargetRef
    """Object that it is about; `Unknown`/`unknown` where nothing names one."""
    message: Text4096 | None = None
    """What happened, in the source's words; untrusted."""
    description: Text8192 | None = None
    """The longer text; untrusted."""
    firing_time: Time | None = None
    """Since when it fires."""
    received_time: Time | None = None
    """When Inquest received it; set by intake."""
    labels: Annotated[Mapping[str, Text1024], Field(max_length=64)] = Field(default_factory=dict)
    """Labels as received; untrusted."""
    annotations: Annotated[Mapping[str, Text4096], Field(max_length=64)] = Field(default_factory=dict)
    """Annotations as received; untrusted."""
    cluster_name: Text63 | None = None
    """Cluster; the setting `clusterName` where absent."""
    environment: Environment | None = None
    """Counts where no label around the target is stricter."""
    priority: Priority | None = None
    """Beats every label in notices; a policy is told the stricter one."""
    risk_tolerance: RiskTolerance | None = None
    """Beats every label in notices; a policy is told the stricter one."""
    business_category: Text63 | None = None
    """Override; beats every label."""
    resolved_time: Time | None = None
    """When the source said that the problem is over; set once."""


_KINDS: Final = (
    "['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Pod', 'Job', 'CronJob', 'Service', 'Ingress', 'Node', "
    "'Namespace', 'ConfigMap', 'Secret', 'PersistentVolume', 'PersistentVolumeClaim', 'HorizontalPodAutoscaler']"
)
"""Kinds that people type in small letters, as a CEL list."""
_MEANT: Final = _KINDS + ".filter(kind, kind.lowerAscii() == self.target.kind.lowerAscii())"
_KIND_AS_SERVED: Final = cel_rule(
    f"{_MEANT}.all(kind, kind == self.target.kind)",
    "spec.target.kind is written as kubectl api-resources shows it",
    ".target.kind",
) | {"messageExpression": f"'spec.target.kind: write ' + {_MEANT}[0]"}


class SignalSpec(SignalContent):
    """What a Signal says; fixed but for `resolvedTime`, which may be set once."""

    model_config = ConfigDict(
        json_schema_extra=fixed_fields(
            field_set_once("resolvedTime"),
            cel_rule(
                "!has(self.resolvedTime) || !has(self.firingTime) || self.resolvedTime >= self.firingTime",
                "spec.resolvedTime must not lie before spec.firingTime",
                ".resolvedTime",
            ),
            _KIND_AS_SERVED,
            changeable=("resolvedTime",),
        )
    )


class SignalContext(ApiModel):
    """What Inquest knows about the target's place in the business."""

    environment: Environment | None = None
    """What the namespace is for."""
    environment_source: Text253 | None = None
    """Where that was read."""
    priority: Priority | None = None
    """Business priority."""
    priority_source: Text63 | None = None
    """Where that was read."""
    business: Business | None = None
    """Business classification."""
    risk_tolerance: RiskTolerance | None = None
    """How much risk is accepted; Medium where nothing says so."""
    business_category: Text63 | None = None
    """Category; `standard` where nothing says so."""
    custom_labels: CustomLabels = Field(default_factory=dict)
    """Labels that rank workflows."""
    signal_name: Text253 | None = None
    """Name after mapping; a predicted name becomes its base."""
    degraded: bool | None = None
    """The target could not be read and the Signal's own labels had to serve."""


class Urgency(StrEnum):
    """How soon somebody should act."""

    IMMEDIATE = "Immediate"
    SOON = "Soon"
    ROUTINE = "Routine"
    NONE = "None"


class RecommendationSource(StrEnum):
    """Who wrote the recommendation."""

    MODEL = "Model"
    PLAYBOOK = "Playbook"


class Recommendation(ApiModel):
    """What a person should do; one for each accepted Signal, refreshed when its Investigation ends."""

    diagnosis: Text500 | None = None
    """One or two sentences about what is wrong."""
    action: Text500 | None = None
    """One or two sentences about what to do; Inquest runs no command of it."""
    urgency: Urgency | None = None
    """How soon."""
    remediate: bool | None = None
    """Whether the catalogue has an action for it; decided by code."""
    prompt: Text1000 | None = None
    """Text of the Investigation to be made; absent where remediate is false."""
    source: RecommendationSource | None = None
    """Who wrote it."""
    cached: bool | None = None
    """Whether it was written for an equal Signal before."""
    generated_at: Time | None = None
    """When it was written."""


class SignalStatus(StatusBase):
    """What triage made of it."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [field_set_once("fingerprint", "status")]})

    phase: SignalPhase | None = None
    """Where it stands."""
    reason: Text63 | None = None
    """Reason of triage."""
    message: Text1024 | None = None
    """A sentence for people."""
    fingerprint: Fingerprint | None = None
    """Identity of the case: hash of the root owner; set once."""
    root_owner: OwnerRef | None = None
    """Topmost controller of the target, or the target itself."""
    owner_chain: Annotated[tuple[OwnerRef, ...], Field(max_length=10)] = ()
    """Controllers from the target upwards; the target itself is not listed."""
    context: SignalContext | None = None
    """Classification."""
    occurrences: Annotated[int, Field(ge=1)] | None = None
    """How often it was seen."""
    first_seen: Time | None = None
    """When it was first seen."""
    first_fired: Time | None = None
    """The earliest firing time of those that joined its case, where it is earlier than its own."""
    last_seen: Time | None = None
    """When it was last seen."""
    round: Annotated[int, Field(ge=1)] | None = None
    """How many Investigations were begun for it."""
    investigation_ref: ObjectRef | None = None
    """Its own case."""
    duplicate_of: ObjectRef | None = None
    """The open case that it joined."""
    blocked_until: Time | None = None
    """When a block is looked at again."""
    blocked_count: Annotated[int, Field(ge=0)] | None = None
    """How often it was blocked."""
    recommendation: Recommendation | None = None
    """What a person should do."""
    target_display: Text127 | None = None
    """`Kind/name`, for columns."""
    notices: Notices = ()
    """Messages to people about it, where it is not looked at or was seen often."""


class Signal(Resource):
    """Something that may deserve an investigation: an alert, an event, a prediction, a request."""

    PLURAL: ClassVar[str] = "signals"

    kind: Literal["Signal"] = "Signal"
    spec: SignalSpec
    """What was observed; fixed but for `resolvedTime`."""
    status: SignalStatus = SignalStatus()
    """What triage made of it; written by the operator alone."""
