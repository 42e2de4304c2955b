"""What stands in the way of removing Inquest: `inquest cleanup`, without the doing.

The order is the one in which things have to go: cases first, while somebody works on them, the operator last. What an
operator that lives will do by itself is left to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from inquest.api.execution import JOB_CLEANUP_FINALIZER
from inquest.api.names import EXECUTION_LABEL
from inquest.cli.admin.doctor_checks import shell_word
from inquest.cli.admin.installation import ENDED, is_renewed, is_running, list_replicas, place_of
from inquest.core.cluster.objects import labels_of, spec_of, status_of

Json = Mapping[str, Any]


class CleanupAction(StrEnum):
    """What `inquest cleanup` can do about it; each may happen twice."""

    CANCEL = "cancel"
    """Ask for the end of a case: the operator ends it."""
    DELETE_JOB = "delete Job"
    """Kill a workflow in the middle of what it does."""
    FREE = "free"
    """Take the finalizer off an execution whose Job is gone and that no operator will look at."""
    DELETE_LEASE = "delete Lease"
    """Forget a replica that does not live."""
    NONE = "none"


@dataclass(frozen=True)
class Blocker:
    """One object in the way."""

    kind: str
    obj: Json
    why: str
    command: str
    deed: CleanupAction

    @property
    def text(self) -> str:
        """What it is and why it is in the way."""
        return f"{self.kind} {place_of(self.obj)}: {self.why}"


@dataclass(frozen=True)
class Leftovers:
    """What is there, by plural."""

    now: datetime
    objects: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    namespace: str = ""
    """Of the cases; empty: of every namespace."""

    def items(self, plural: str) -> Sequence[Json]:
        """None where there is none."""
        return self.objects.get(plural, ())

    @property
    def is_worked_on(self) -> bool:
        """Whether a replica lives, and so finishes what it began."""
        return is_running(self.items("leases"), self.now)


def job_namespaces(executions: Sequence[Json], usual: str) -> tuple[str, ...]:
    """Where Jobs may be: the usual namespace, and those that executions name."""
    jobs = [status_of(one).get("job") or {} for one in executions]
    return tuple(sorted({usual, *(str(job["namespace"]) for job in jobs if job.get("namespace"))}))


def find_blockers(found: Leftovers) -> tuple[Blocker, ...]:
    """In the order in which they have to go."""
    return (*_cases(found), *_requests(found), *_jobs(found), *_finalizers(found), *_leases(found))


def _cases(found: Leftovers) -> Iterator[Blocker]:
    for one in found.items("investigations"):
        phase = status_of(one).get("phase") or "Pending"
        if phase in ENDED:
            continue
        if spec_of(one).get("cancel"):
            command, deed = "kubectl logs deployment/inquest --tail=50", CleanupAction.NONE
            why = f"is {phase}, and its end was asked for" + ("" if found.is_worked_on else "; no operator runs")
        else:
            patch = '{"spec":{"cancel":true}}'
            command, deed = f"kubectl patch inv {_named(one)} --type=merge -p '{patch}'", CleanupAction.CANCEL
            why = f"is {phase}"
        yield Blocker("Investigation", one, why, command, deed)


def _requests(found: Leftovers) -> Iterator[Blocker]:
    for one in found.items("remediationapprovalrequests"):
        if (status_of(one).get("phase") or "Pending") == "Pending":
            yield Blocker(
                "RemediationApprovalRequest",
                one,
                "waits for a decision; it goes with its case",
                f"kubectl describe rar {_named(one)}",
                CleanupAction.NONE,
            )


def _jobs(found: Leftovers) -> Iterator[Blocker]:
    ours = {one["metadata"].get("uid") for one in found.items("workflowexecutions")}
    for one in found.items("jobs"):
        # Cases of another namespace are not what was asked about; a Job whose case is gone belongs to all of them.
        if not _is_over(one) and (not found.namespace or _execution(one) in ours):
            why = "runs a workflow: killed in the middle, its target may be left half changed"
            yield Blocker("Job", one, why, f"kubectl delete job {_named(one)}", CleanupAction.DELETE_JOB)


def _finalizers(found: Leftovers) -> Iterator[Blocker]:
    running = {_execution(one) for one in found.items("jobs") if not _is_over(one)}
    for one in found.items("workflowexecutions"):
        if JOB_CLEANUP_FINALIZER not in (one["metadata"].get("finalizers") or ()):
            continue
        command = f"kubectl patch wfe {_named(one)} --type=merge -p '{_FREED}'"
        if found.is_worked_on:
            why = "has a finalizer, which the operator takes off: delete it while that one runs"
            yield Blocker("WorkflowExecution", one, why, f"kubectl delete wfe {_named(one)}", CleanupAction.NONE)
        elif one["metadata"].get("uid") in running:
            yield Blocker("WorkflowExecution", one, "has a finalizer, and its Job runs", command, CleanupAction.NONE)
        else:
            why = "has a finalizer, and no operator runs that would take it off"
            yield Blocker("WorkflowExecution", one, why, command, CleanupAction.FREE)


_FREED: Final = '{"metadata":{"finalizers":null}}'


def _leases(found: Leftovers) -> Iterator[Blocker]:
    for one in list_replicas(found.items("leases")):
        if is_renewed(one, found.now):
            scale = f"kubectl scale deployment/inquest --replicas=0 -n {shell_word(one['metadata']['namespace'])}"
            yield Blocker("Lease", one, "is of a replica that lives; stop it last", scale, CleanupAction.NONE)
        else:
            command = f"kubectl delete lease {_named(one)}"
            yield Blocker("Lease", one, "is of a replica that does not live", command, CleanupAction.DELETE_LEASE)


def _is_over(job: Json) -> bool:
    conditions = status_of(job).get("conditions") or ()
    return any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in conditions)


def _execution(job: Json) -> str:
    return str(labels_of(job).get(EXECUTION_LABEL, ""))


def _named(one: Json) -> str:
    return f"{shell_word(one['metadata']['name'])} -n {shell_word(one['metadata'].get('namespace', ''))}"
