"""The catalogue: ActionType (what can be done, in words) and RemediationWorkflow (how it is done).

These objects are the source of truth; the operator registers them into DataStorage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, WithJsonSchema

from inquest.api.base import (
    SET,
    ApiModel,
    Count,
    Digest,
    Duration,
    IntOrText,
    Name,
    Resource,
    StatusBase,
    Text63,
    Text253,
    Text1024,
    Text2000,
    Time,
    Unique,
    cel_rule,
    cel_rules,
    keyed_by,
)
from inquest.api.cel_rules import fixed_field
from inquest.api.types import (
    ActionTypeName,
    Engine,
    Parameters,
    ParameterType,
    PinnedImage,
    Registration,
    UndoWhen,
    Version,
    WorkflowId,
)

Prose = Annotated[str, Field(min_length=1, max_length=2000)]


class Description(ApiModel):
    """Words that the model reads when it chooses."""

    what: Prose
    """What it does."""
    when_to_use: Prose
    """When it is right."""
    when_not_to_use: Text2000 | None = None
    """When it is wrong; steers most."""
    preconditions: Text2000 | None = None
    """What must hold before."""


# --- ActionType ----------------------------------------------------------------------------------------


class ActionTypeSpec(Description):
    """What can be done, in words."""

    model_config = ConfigDict(json_schema_extra=cel_rules(fixed_field("name")))

    name: ActionTypeName
    """Name that workflows refer to; never changes."""


class ActionTypeStatus(StatusBase):
    """Where the action type stands."""

    registration: Registration | None = None
    """Where it stands in the catalogue."""
    registered_at: Time | None = None
    """When it was registered."""
    active_workflows: Count | None = None
    """How many active workflows use it."""
    message: Text1024 | None = None
    """A sentence for people."""


class ActionType(Resource):
    """What can be done, in words."""

    PLURAL: ClassVar[str] = "actiontypes"

    kind: Literal["ActionType"] = "ActionType"
    spec: ActionTypeSpec
    """What it is; all but the name may change."""
    status: ActionTypeStatus = ActionTypeStatus()
    """Where it stands; written by the operator alone."""


# --- RemediationWorkflow --------------------------------------------------------------------------------

_LABEL_WORD = r"^(\*|[A-Za-z0-9][-A-Za-z0-9_.]*)$"
LabelWords = Annotated[
    tuple[Annotated[str, Field(max_length=63, pattern=_LABEL_WORD)], ...],
    Field(min_length=1, max_length=16, json_schema_extra=SET),
    Unique,
]
Components = Annotated[
    tuple[Annotated[str, Field(max_length=253, pattern=r"^(\*|([a-z0-9.-]+/){0,2}[A-Za-z0-9]+)$")], ...],
    Field(min_length=1, max_length=16, json_schema_extra=SET),
    Unique,
]


class DetectedFilter(ApiModel):
    """Detected labels that the workflow is made for; booleans only as true."""

    git_ops_managed: Literal[True] | None = None
    """A GitOps tool owns the manifest."""
    git_ops_tool: Literal["argocd", "flux", "*"] | None = None
    """Which one; `*` is any."""
    helm_managed: Literal[True] | None = None
    """Helm installed the target."""
    pdb_protected: Literal[True] | None = None
    """A PodDisruptionBudget covers the target's pods."""
    hpa_enabled: Literal[True] | None = None
    """A HorizontalPodAutoscaler drives the target."""
    stateful: Literal[True] | None = None
    """The target keeps state."""
    network_isolated: Literal[True] | None = None
    """A NetworkPolicy selects the target's pods."""
    service_mesh: Literal["istio", "linkerd", "*"] | None = None
    """Mesh; `*` is any."""
    resource_quota_constrained: Literal[True] | None = None
    """A ResourceQuota limits the target's namespace."""


class WorkflowLabels(ApiModel):
    """What the workflow is for: hard filters, and two kinds of labels that rank."""

    severity: LabelWords
    """Severities; `*` is any."""
    environment: LabelWords
    """Environments; `*` is any."""
    component: Components
    """`Kind`, `version/Kind` or `group/version/Kind`; `*` is any."""
    priority: LabelWords
    """Priorities; `*` is any."""
    custom: Annotated[Mapping[str, Text253], Field(max_length=10)] = Field(default_factory=dict)
    """Custom labels; ranks, never filters."""
    detected: DetectedFilter | None = None
    """Detected labels; ranks."""


ParameterName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Z][A-Z0-9_]*$")]


class ParameterSchema(ApiModel):
    """One parameter of a workflow."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",
                "parameters.minimum must not be above parameters.maximum",
                ".minimum",
            ),
            cel_rule(
                "!has(self.default) || !has(self.enum) || self.default in self.enum",
                "parameters.default must be a member of parameters.enum",
                ".default",
            ),
        )
    )

    name: ParameterName
    """Name of the parameter and of the variable that carries it."""
    type: ParameterType
    """Type of its value."""
    required: bool
    """Whether it must be given."""
    description: Annotated[str, Field(min_length=1, max_length=1024)]
    """What it means; read by the model."""
    default: IntOrText | None = None
    """Value where none is given; whole numbers as they are, everything else as text."""
    enum: Annotated[tuple[IntOrText, ...], Field(max_length=32)] = ()
    """Allowed values."""
    pattern: Text1024 | None = None
    """Regular expression of RE2 that must be found in the value."""
    minimum: float | None = None
    """Lowest value, inclusive."""
    maximum: float | None = None
    """Highest value, inclusive."""
    depends_on: Annotated[tuple[ParameterName, ...], Field(max_length=10, json_schema_extra=SET), Unique] = ()
    """Parameters that must be given with it."""


ParameterSchemas = Annotated[tuple[ParameterSchema, ...], Field(max_length=50, json_schema_extra=keyed_by("name"))]


def _containers(name: str, *more: JsonValue) -> dict[str, JsonValue]:
    return {
        "description": f"{name}; every image is pinned by digest.",
        "type": "array",
        "maxItems": 10,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["name", "image"],
            "properties": {
                "name": {"type": "string", "maxLength": 63, "description": "Name of the container."},
                "image": {
                    "type": "string",
                    "maxLength": 512,
                    "pattern": r"^[^@\s]+@sha256:[0-9a-f]{64}$",
                    "description": "Image with its digest.",
                },
            },
        },
        "x-kubernetes-validations": list(more),
    }


PodTemplate = Annotated[
    Mapping[str, JsonValue],
    WithJsonSchema(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["spec"],
            "properties": {
                "spec": {
                    "description": "Pod spec.",
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "required": ["containers"],
                    "properties": {
                        "containers": _containers(
                            "Containers",
                            cel_rule(
                                "self.exists_one(c, c.name == 'workflow')",
                                "podTemplate.spec.containers needs one container named workflow",
                            ),
                        ),
                        "initContainers": _containers("Init containers"),
                    },
                }
            },
        }
    ),
]
"""A PodTemplateSpec; the parts that Inquest relies on are checked, the rest is kept as it is."""

Quantities = Annotated[
    Mapping[str, Annotated[IntOrText, Field(json_schema_extra={"maxLength": 63})]], Field(max_length=10)
]


class Resources(ApiModel):
    """Compute resources of the workflow's container."""

    requests: Quantities = Field(default_factory=dict)
    """What is reserved."""
    limits: Quantities = Field(default_factory=dict)
    """What may be used."""


class PreviewEntry(ApiModel):
    """One field of the target that the workflow will set."""

    path: Name
    """Path in the target; members of lists by name."""
    value: Text1024
    """Value that it will have; `$(NAME)` is expanded as in the Job."""


class Execution(ApiModel):
    """How the workflow runs."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "has(self.image) != has(self.podTemplate)",
                "execution.image or execution.podTemplate: exactly one of the two",
            ),
            cel_rule(
                "!has(self.podTemplate) || (!has(self.command) && !has(self.args) && !has(self.resources))",
                "execution.command, execution.args and execution.resources go with execution.image,"
                " a podTemplate carries its own",
            ),
            cel_rule(
                "!has(self.timeout) || (duration(self.timeout) > duration('0s')"
                " && duration(self.timeout) <= duration('2h'))",
                "execution.timeout must be longer than zero and at most 2h",
                ".timeout",
            ),
        )
    )

    engine: Engine
    """What runs it."""
    image: PinnedImage | None = None
    """Image with its digest."""
    command: Annotated[tuple[Text1024, ...], Field(max_length=32)] = ()
    """Command of the container."""
    args: Annotated[tuple[Text1024, ...], Field(max_length=32)] = ()
    """Arguments of the container."""
    resources: Resources | None = None
    """Compute resources of the container."""
    pod_template: PodTemplate | None = None
    """Whole pod template, instead of an image."""
    service_account_name: Text253 | None = None
    """Account in the execution namespace; absent: no token is mounted."""
    timeout: Duration = "10m"
    """The clock of Executing."""
    dry_run: bool | None = None
    """Whether the image understands a dry run; for readers, Inquest asks for none."""
    preview: Annotated[tuple[PreviewEntry, ...], Field(max_length=8, json_schema_extra=keyed_by("path"))] = ()
    """What it will set in the target; shown to the approver."""


_Names = Annotated[tuple[Name, ...], Field(max_length=10, json_schema_extra=SET), Unique]


class Dependencies(ApiModel):
    """Objects that must exist in the execution namespace."""

    secrets: _Names = ()
    """Names of Secrets."""
    config_maps: _Names = ()
    """Names of ConfigMaps."""


class Undo(ApiModel):
    """The workflow that takes this one back."""

    id: WorkflowId
    """Id of the workflow."""
    version: Version
    """Version of the workflow."""
    when: UndoWhen = UndoWhen.MANUAL
    """When it runs."""
    parameters: Parameters = Field(default_factory=dict)
    """Values of its parameters."""


class Maintainer(ApiModel):
    """Somebody to ask."""

    name: Name
    """Name."""
    email: Text253 | None = None
    """Address."""


class RemediationWorkflowSpec(ApiModel):
    """One version of one workflow; other content needs another version."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "self.version != oldSelf.version || self == oldSelf",
                "spec.version must change when the content does",
                ".version",
            ),
            fixed_field("id"),
        )
    )

    id: WorkflowId
    """The author's id; never changes."""
    version: Version
    """Semantic version; every other content needs another one."""
    action_type: ActionTypeName
    """Name of an ActionType."""
    description: Description
    """Words that the model reads when it chooses."""
    labels: WorkflowLabels
    """What it is for."""
    parameters: ParameterSchemas
    """Its parameters; may be empty."""
    execution: Execution
    """How it runs."""
    dependencies: Dependencies | None = None
    """Objects that must exist in the execution namespace."""
    undo: Undo | None = None
    """Workflow that takes it back."""
    maintainers: Annotated[tuple[Maintainer, ...], Field(max_length=10, json_schema_extra=keyed_by("name"))] = ()
    """Whom to ask."""


class RemediationWorkflowStatus(StatusBase):
    """Where the workflow stands."""

    registration: Registration | None = None
    """Where it stands in the catalogue."""
    workflow_id: Text63 | None = None
    """The catalogue's UUID."""
    content_hash: Digest | None = None
    """Hash of its content in the catalogue."""
    registered_at: Time | None = None
    """When it was registered."""
    message: Text1024 | None = None
    """A sentence for people."""


class RemediationWorkflow(Resource):
    """How something is done: one version of one workflow."""

    PLURAL: ClassVar[str] = "remediationworkflows"

    kind: Literal["RemediationWorkflow"] = "RemediationWorkflow"
    spec: RemediationWorkflowSpec
    """The workflow; everything may change if the version does."""
    status: RemediationWorkflowStatus = RemediationWorkflowStatus()
    """Where it stands; written by the operator alone."""
