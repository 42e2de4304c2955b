"""WorkflowExecution: one run of one workflow on one target, with its verification."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from inquest.api.base import (
    SET,
    ApiModel,
    Confidence,
    Count,
    Duration,
    Name,
    Resource,
    Score,
    SpecHash,
    StatusBase,
    Text63,
    Text253,
    Text500,
    Text1024,
    Text2000,
    Time,
    Uid,
    Unique,
    cel_rule,
    cel_rules,
)
from inquest.api.catalogue import Dependencies, Execution, ParameterSchemas
from inquest.api.cel_rules import STATUS_STAYS, field_set_once
from inquest.api.notices import Notices
from inquest.api.refs import ObjectRef, PinnedTarget, WorkflowPin
from inquest.api.types import EffectivenessReason, ExecutionPhase, FailureReason, Parameters, Purpose

JOB_CLEANUP_FINALIZER = "inquest.dev/job-cleanup"
MAX_ENDS = 16


class PinnedWorkflow(WorkflowPin):
    """The workflow as it was; a changed or deleted RemediationWorkflow does not disturb the run."""

    execution: Execution
    """How it runs."""
    dependencies: Dependencies | None = None
    """Objects that must exist in the execution namespace."""
    parameters: ParameterSchemas = ()
    """Schema of its parameters."""


class ExecutionSpec(ApiModel):
    """What is run; never changes."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule("self == oldSelf", "spec is fixed at creation: no field of an execution changes"),
            cel_rule(
                "duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('2h')",
                "spec.timeout must be longer than zero and at most 2h",
                ".timeout",
            ),
        )
    )

    investigation_ref: ObjectRef
    """Investigation that it serves."""
    approval_ref: ObjectRef | None = None
    """Approval request; absent: approved by policy."""
    workflow: PinnedWorkflow
    """Full copy of the workflow."""
    parameters: Parameters
    """Values of its parameters."""
    target: PinnedTarget
    """Object that it changes, as it was at the proposal."""
    purpose: Purpose = Purpose.REMEDY
    """Remedy, or undo of one."""
    undo_of: ObjectRef | None = None
    """Execution that it takes back."""
    timeout: Duration
    """How long the Job may run."""
    confidence: Confidence | None = None
    """Confidence of the selected workflow."""
    rationale: Text2000 | None = None
    """Why this workflow."""


class JobRef(ApiModel):
    """The Job, in the execution namespace."""

    namespace: Text63
    """Its namespace."""
    name: Text63
    """Its name; made from the target, so it is the lock on the target."""
    uid: Uid | None = None
    """Its uid."""


class Holder(ApiModel):
    """Execution that holds the target; may stand in another namespace."""

    namespace: Text63 | None = None
    """Its namespace."""
    name: Name
    """Its name."""
    uid: Uid | None = None
    """Its uid."""


class Failure(ApiModel):
    """Why the execution failed."""

    reason: FailureReason
    """One word."""
    message: Text1024 | None = None
    """What the cluster said."""
    exit_code: int | None = None
    """Exit code of the container."""
    container: Text63 | None = None
    """Container that failed."""
    ran: bool | None = None
    """Whether the workflow's own code ran: then the cluster may be half changed."""
    summary: Text500
    """A sentence for people and for the next prompt."""
    failed_at: Time
    """When."""


class Effectiveness(ApiModel):
    """How much the execution helped."""

    health: Score | None = None
    """Health of the target; absent: not assessed."""
    alert: Score | None = None
    """1 where the alert is gone, 0 where it fires; absent: not assessed."""
    metrics: Score | None = None
    """Improvement of the metrics; absent: not assessed."""
    score: Score | None = None
    """Weighted mean of what was assessed."""
    reason: EffectivenessReason | None = None
    """How the assessment ended."""
    health_before: Score | None = None
    """Health of the target right before the run; absent: not known."""
    ends_before: Annotated[tuple[Text253, ...], Field(max_length=MAX_ENDS)] = ()
    """Container, reason and exit code of failed ends of its containers before the run: the same again is no success."""
    check_after: Time | None = None
    """When the first check is due."""
    alert_check_after: Time | None = None
    """When the alert is first looked at."""
    deadline: Time | None = None
    """When the assessment ends whatever is known."""


class ExecutionStatus(StatusBase):
    """How the run goes."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(field_set_once("preSpecHash", "status"), field_set_once("postSpecHash", "status"))
    )

    phase: ExecutionPhase | None = None
    """Where it stands."""
    reason: Text63 | None = None
    """Why."""
    message: Text1024 | None = None
    """A sentence for people."""
    job: JobRef | None = None
    """The Job."""
    started_at: Time | None = None
    """When the Job was created."""
    completed_at: Time | None = None
    """When the Job ended."""
    duration_seconds: Count | None = None
    """From start to end."""
    dropped_parameters: Annotated[tuple[Text253, ...], Field(max_length=50, json_schema_extra=SET), Unique] = ()
    """Parameters that the workflow does not declare; not passed."""
    pre_spec_hash: SpecHash | None = None
    """Hash of the target's spec before; set once."""
    post_spec_hash: SpecHash | None = None
    """Hash of the target's spec after; set once."""
    blocked_by: Holder | None = None
    """Execution that holds the target."""
    blocked_until: Time | None = None
    """When it is looked at again."""
    failure: Failure | None = None
    """Why it failed."""
    effectiveness: Effectiveness | None = None
    """How much it helped."""
    notices: Notices = ()
    """Messages to people that it waits."""


class WorkflowExecution(Resource):
    """One run of one workflow on one target."""

    model_config = ConfigDict(json_schema_extra=cel_rules(STATUS_STAYS))

    PLURAL: ClassVar[str] = "workflowexecutions"

    kind: Literal["WorkflowExecution"] = "WorkflowExecution"
    spec: ExecutionSpec
    """What is run; never changes."""
    status: ExecutionStatus = ExecutionStatus()
    """How the run goes; written by the operator alone."""
