"""The Job that runs a workflow, and its lock on the target."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from inquest.api.base import timedelta_from_duration
from inquest.api.catalogue import Execution
from inquest.api.execution import MAX_ENDS, ExecutionSpec, PinnedWorkflow, WorkflowExecution
from inquest.api.names import (
    CATALOGUE_ID_LABEL,
    ENDS_ANNOTATION,
    EXECUTION_LABEL,
    FINGERPRINT_LABEL,
    HEALTH_ANNOTATION,
    SIGNAL_LABEL,
    TARGET_ANNOTATION,
    child_labels,
    job_name,
    label_value,
    target_string,
)
from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import annotations_of, labels_of, metadata_of
from inquest.core.evidence.evidence import Json
from inquest.core.remediation.effectiveness import NOT_KNOWN, HealthBefore
from inquest.core.remediation.job_result import CONTAINER, job_outcome
from inquest.core.remediation.proposal import Manifest
from inquest.core.selection.parameters import TARGET_PREFIX, target_parameters

JOB_TTL_SECONDS: Final = 600
SCRATCH: Final = "/tmp"
SCRATCH_LIMIT: Final = "256Mi"
DEPENDENCIES: Final = "/run/inquest"
TARGET_STRING: Final = re.compile(r"[^/]+/[^/]+(/[^/]+)?")
_END: Final = re.compile(r"[a-z0-9-]{1,63} [A-Za-z-]{1,100} -?\d{1,10}")

_CONTAINER_SECURITY: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
_POD_SECURITY: Final[Mapping[str, Any]] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_NO_HOST: Final = {"hostNetwork": False, "hostPID": False, "hostIPC": False}


def target_fault(target: TargetRef) -> str:
    """Why no Job can be named after this target; empty: it can."""
    text = target_string(target)
    return "" if TARGET_STRING.fullmatch(text) else f"{text!r} is neither namespace/Kind/name nor Kind/name"


def job_of(execution: WorkflowExecution, *, namespace: str, before: HealthBefore = NOT_KNOWN) -> Manifest:
    """The Job of an execution; its name is the lock on the target, and it keeps how that fared `before`."""
    spec, target = execution.spec, target_string(execution.spec.target)
    inherited = {key: execution.metadata.labels.get(key, "") for key in (SIGNAL_LABEL, FINGERPRINT_LABEL)}
    labels = {
        **child_labels(investigation=execution.spec.investigation_ref.name),
        **{key: value for key, value in inherited.items() if value},
        EXECUTION_LABEL: execution.uid,
        CATALOGUE_ID_LABEL: label_value(execution.spec.workflow.workflow_id or execution.spec.workflow.id),
    }
    score = {} if before.score is None else {HEALTH_ANNOTATION: str(before.score)}
    kept = score | ({ENDS_ANNOTATION: ",".join(before.ends)} if before.ends else {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(target),
            "namespace": namespace,
            "labels": labels,
            "annotations": {TARGET_ANNOTATION: target, **kept},
        },
        "spec": {
            "backoffLimit": 0,
            "parallelism": 1,
            "completions": 1,
            "ttlSecondsAfterFinished": JOB_TTL_SECONDS,
            "activeDeadlineSeconds": max(1, int(timedelta_from_duration(spec.timeout).total_seconds())),
            "template": _pod_template(execution, labels),
        },
    }


def health_before(made: Json) -> HealthBefore:
    """What `job_of` kept; nothing where it was not known, or is not what was written."""
    found = annotations_of(made)
    score, ends = str(found.get(HEALTH_ANNOTATION) or ""), str(found.get(ENDS_ANNOTATION) or "").split(",")
    known = float(score) if re.fullmatch(r"0(?:\.\d{1,17})?|1(?:\.0)?", score) else None
    return HealthBefore(known, tuple(one for one in ends if _END.fullmatch(one))[:MAX_ENDS])


def job_env(execution: WorkflowExecution) -> dict[str, str]:
    """What the workflow is told: declared parameters, the target, and who it runs for."""
    spec = execution.spec
    declared = {parameter.name for parameter in spec.workflow.parameters}
    return {
        **{name: value for name, value in spec.parameters.items() if name in declared},
        TARGET_PREFIX: target_string(spec.target),
        **target_parameters(spec.target),
        "INQUEST_INVESTIGATION": spec.investigation_ref.name,
        "INQUEST_EXECUTION": execution.name,
        "INQUEST_WORKFLOW": spec.workflow.id,
    }


def dropped_parameters(spec: ExecutionSpec) -> tuple[str, ...]:
    """Parameters that the workflow does not declare: they do not reach the Job."""
    declared = {parameter.name for parameter in spec.workflow.parameters}
    return tuple(sorted(n for n in spec.parameters if n not in declared and not n.startswith(f"{TARGET_PREFIX}_")))


def _pod_template(execution: WorkflowExecution, labels: Mapping[str, str]) -> Manifest:
    how = execution.spec.workflow.execution
    given: Manifest = deepcopy(dict(how.pod_template or {"spec": {"containers": [_container(how)]}}))
    metadata = metadata_of(given)
    return {
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}},
        "spec": _pod_spec(execution, given["spec"]),
    }


def _container(how: Execution) -> Manifest:
    parts: Manifest = {"name": CONTAINER, "image": how.image, "command": list(how.command), "args": list(how.args)}
    resources = how.resources.to_object() if how.resources else {}
    return {key: value for key, value in (parts | {"resources": resources}).items() if value}


def _pod_spec(execution: WorkflowExecution, given: Manifest) -> Manifest:
    account = execution.spec.workflow.execution.service_account_name
    mounts = tuple(_dependencies(execution.spec.workflow))
    return {
        **{key: value for key, value in given.items() if key not in ("serviceAccount", "serviceAccountName")},
        **_NO_HOST,
        **({"serviceAccountName": account} if account else {}),
        "automountServiceAccountToken": bool(account),
        "restartPolicy": "Never",
        "securityContext": {**(given.get("securityContext") or {}), **_POD_SECURITY},
        "volumes": [*(given.get("volumes") or []), *(volume for volume, _ in mounts), _SCRATCH_VOLUME],
        **{
            key: [_hardened(one, execution, [mount for _, mount in mounts]) for one in given[key]]
            for key in ("initContainers", "containers")
            if given.get(key)
        },
    }


_SCRATCH_VOLUME: Final[Mapping[str, Any]] = {"name": "inquest-scratch", "emptyDir": {"sizeLimit": SCRATCH_LIMIT}}


def _hardened(container: Manifest, execution: WorkflowExecution, mounts: Sequence[Manifest]) -> Manifest:
    """Any container runs without rights; the workflow's own also gets its input."""
    own = container["name"] == CONTAINER
    scratch = {"name": _SCRATCH_VOLUME["name"], "mountPath": SCRATCH}
    return {
        **container,
        "securityContext": {**(container.get("securityContext") or {}), **_CONTAINER_SECURITY},
        # What the code said before it failed is all that the status can tell people.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [*(container.get("env") or []), *(_env(execution) if own else ())],
        "volumeMounts": [*(container.get("volumeMounts") or []), *(mounts if own else ()), scratch],
    }


def _env(execution: WorkflowExecution) -> Iterator[Manifest]:
    # The kubelet would expand references inside values; doubled dollars keep a parameter what it is.
    return ({"name": name, "value": value.replace("$", "$$")} for name, value in job_env(execution).items())


def _dependencies(workflow: PinnedWorkflow) -> Iterator[tuple[Manifest, Manifest]]:
    """A volume and its mount for each Secret and ConfigMap that the workflow names."""
    needs = workflow.dependencies
    for name in needs.secrets if needs else ():
        yield _mounted("secrets", name, {"secret": {"secretName": name}})
    for name in needs.config_maps if needs else ():
        yield _mounted("configmaps", name, {"configMap": {"name": name}})


def _mounted(folder: str, name: str, source: Manifest) -> tuple[Manifest, Manifest]:
    # Names of objects may be longer than names of volumes and hold dots.
    volume = f"inquest-{hashlib.sha256(f'{folder}/{name}'.encode()).hexdigest()[:16]}"
    return {"name": volume, **source}, {
        "name": volume,
        "mountPath": f"{DEPENDENCIES}/{folder}/{name}",
        "readOnly": True,
    }


class TargetLock(StrEnum):
    """Whose Job holds the target."""

    FREE = "Free"
    OURS = "Ours"
    BUSY = "Busy"
    """Another execution's, and it runs: wait."""
    ENDED = "Ended"
    """Another execution's, and it has ended: delete it, then create ours."""
    FOREIGN = "Foreign"
    """Not made by Inquest: never touched."""


def lock_on(found: Json | None, execution_uid: str) -> TargetLock:
    """What the Job that stands under the target's name means for this execution."""
    if found is None:
        return TargetLock.FREE
    holder = labels_of(found).get(EXECUTION_LABEL)
    if not holder:
        return TargetLock.FOREIGN
    if holder == execution_uid:
        return TargetLock.OURS
    return TargetLock.ENDED if job_outcome(found, (), ()).ended else TargetLock.BUSY


def clean_up_is_due(found: Json, execution_uid: str, *, ended_at: datetime, now: datetime, cooldown: timedelta) -> bool:
    """Whether the Job may go: it is still ours and its target has rested."""
    return labels_of(found).get(EXECUTION_LABEL) == execution_uid and now - ended_at >= cooldown
