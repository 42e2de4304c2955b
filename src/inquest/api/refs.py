"""References to objects, and what is pinned of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from inquest.api.base import SET, ApiModel, Digest, Name, SpecHash, Text63, Text253, Text512, Uid, Unique
from inquest.api.types import (
    ActionTypeName,
    BusinessRank,
    Criticality,
    Detection,
    Engine,
    GitOpsTool,
    Kind,
    PinnedImage,
    ServiceMesh,
    SlaRequirement,
    Version,
    WorkflowId,
)


class TargetRef(ApiModel):
    """One object of the cluster; no namespace means cluster-scoped."""

    api_version: Text253 | None = None
    """Group and version, such as `apps/v1`."""
    kind: Kind
    """Kind, such as `Deployment`."""
    name: Name
    """Name of the object."""
    namespace: Text63 | None = None
    """Namespace; absent for cluster-scoped objects."""

    @property
    def display(self) -> str:
        """`Kind/name`, never cut."""
        return f"{self.kind}/{self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name, to compare; the namespace is empty where there is none."""
        return self.kind, self.namespace or "", self.name


class OwnerRef(TargetRef):
    """An object that was read, so that its uid is known."""

    uid: Uid | None = None
    """Uid as last read."""


class PinnedTarget(TargetRef):
    """One object, as it was at the moment of the proposal."""

    uid: Uid
    """Uid; an object made again under the same name is another one."""
    resource_version: Text63 | None = None
    """Resource version as read; for people, a change alone is not drift."""
    spec_hash: SpecHash | None = None
    """Hash of the spec; the key for history."""
    drift_hash: SpecHash | None = None
    """Hash of the spec and the ConfigMaps it uses; when it changes the approval is void."""


class ObjectRef(ApiModel):
    """Another object of Inquest's, always in the same namespace."""

    name: Name
    """Name of the object."""
    uid: Uid | None = None
    """Uid of the object."""


class Business(ApiModel):
    """What the business thinks of the target."""

    business_unit: Text63 | None = None
    """Unit that pays."""
    service_owner: Text63 | None = None
    """Who owns the service."""
    criticality: Criticality | None = None
    """How much depends on it."""
    sla_requirement: SlaRequirement | None = None
    """Service level that was promised."""
    derived: Annotated[tuple[BusinessRank, ...], Field(max_length=2, json_schema_extra=SET), Unique] = ()
    """Which of the two nobody wrote down: they follow from the environment."""


class DetectedLabels(ApiModel):
    """What Inquest found out about the target by itself."""

    git_ops_managed: bool | None = None
    """A GitOps tool owns the manifest."""
    git_ops_tool: GitOpsTool | None = None
    """Which one."""
    helm_managed: bool | None = None
    """Helm installed it."""
    pdb_protected: bool | None = None
    """A PodDisruptionBudget covers its pods."""
    hpa_enabled: bool | None = None
    """A HorizontalPodAutoscaler drives it."""
    stateful: bool | None = None
    """It is a StatefulSet, is owned by one, or mounts volume claims."""
    network_isolated: bool | None = None
    """A NetworkPolicy selects its pods."""
    service_mesh: ServiceMesh | None = None
    """Mesh it is part of."""
    resource_quota_constrained: bool | None = None
    """A ResourceQuota limits its namespace."""
    failed_detections: Annotated[tuple[Detection, ...], Field(max_length=9, json_schema_extra=SET), Unique] = ()
    """Labels that could not be detected: their absence says nothing."""


class WorkflowPin(ApiModel):
    """One version of one workflow, so exact that another content cannot pass for it."""

    id: WorkflowId
    """The author's id."""
    version: Version
    """Semantic version."""
    workflow_id: Text63 | None = None
    """The catalogue's UUID."""
    action_type: ActionTypeName
    """Name of the ActionType."""
    content_hash: Digest
    """Hash of the workflow's content in the catalogue."""
    engine: Engine
    """What runs it."""
    image: PinnedImage | None = None
    """Image with its digest; absent where a pod template is used."""
    service_account_name: Text253 | None = None
    """Account in the execution namespace; absent: no token is mounted."""


class RiskFactor(ApiModel):
    """One reason for caution, with a score; scores never change the decision."""

    score: Annotated[int, Field(ge=0, le=100)]
    """0 to 100."""
    reason: Text512
    """What the policy said."""
