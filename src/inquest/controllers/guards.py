"""What must hold right before something is changed, read anew from the API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from inquest.api.base import rfc3339
from inquest.api.execution import Holder, WorkflowExecution
from inquest.api.names import EXECUTION_LABEL, job_name, target_string
from inquest.api.refs import PinnedTarget, TargetRef, WorkflowPin
from inquest.api.types import ENDED_EXECUTIONS, ExecutionPhase
from inquest.controllers.catalogue.live import (
    content_hash,
    content_of,
    is_active,
    is_pending,
    newest_workflows,
    versions_of,
)
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, parse_objects
from inquest.controllers.signal.history import chain_rules, known_history
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.objects import labels_of
from inquest.core.remediation.freeze import OpenWindow, open_windows
from inquest.core.remediation.guards import GuardInput, GuardRules, RecentRun
from inquest.core.remediation.job_result import job_outcome
from inquest.core.remediation.proposal import CurrentState, Drift, find_drift
from inquest.core.signals.triage_input import BUILT_IN_PROTECTED
from inquest.errors import InquestError, NotFound, Retryable
from inquest.ports.kinds import CONFIG_MAP, EXECUTION, JOB, NAMESPACE

ACTIVE = "Active"


OVER: Final = ENDED_EXECUTIONS | {ExecutionPhase.VERIFYING}
"""Phases of an execution whose Job has ended."""
FREEZE: Final = "inquest-freeze"
"""A ConfigMap of this name in the operator's namespace stops every effect."""


@dataclass(frozen=True)
class Guards:
    """Gathers what the guards look at."""

    ports: ControllerPorts

    async def frozen(self, target: TargetRef) -> str:
        """Why no effect on the target may begin now, empty: it may. A switch that cannot be read is on."""
        if self.ports.settings.freeze:
            return "effects are frozen by the setting freeze"
        try:
            await self.ports.status.read(CONFIG_MAP, FREEZE, self.ports.namespace)
        except NotFound:
            return self._in_a_window(self.open_windows(target, await self.ports.now()))
        except InquestError:
            return f"effects are frozen: whether the ConfigMap {FREEZE} is there cannot be read"
        return f"effects are frozen by the ConfigMap {FREEZE}"

    def open_windows(self, target: TargetRef, now: datetime) -> tuple[OpenWindow, ...]:
        """The freeze windows that hold the target now."""
        windows = [found.window() for found in self.ports.settings.freeze_windows]
        return open_windows(windows, target.namespace or "", now)

    def _in_a_window(self, found: tuple[OpenWindow, ...]) -> str:
        names = ", ".join(f"{window.name} (until {rfc3339(window.until)})" for window in found)
        return f"effects are frozen by the window {names}" if found else ""

    async def view(
        self,
        target: PinnedTarget,
        workflow: WorkflowPin,
        *,
        execution_uid: str = "",
        signal_resolved: bool = False,
        approved_by_person: bool = False,
        context: ResourceContext | None = None,
    ) -> GuardInput:
        """Everything in one value; what cannot be read holds the execution back.

        `context` is the target as the same look has read it already.
        """
        now = await self.ports.now()
        context = context or await self.pin(target)
        labels, unknown = await self._scope(context, target)
        return GuardInput(
            target=target,
            workflow_id=workflow.id,
            now=now,
            rules=self._rules(),
            signal_resolved=signal_resolved,
            scope_labels=labels,
            scope_unknown=unknown,
            drift=await self.drift(target, workflow, context),
            approved_by_person=approved_by_person,
            history=await known_history(self.ports, context),
            spec_hash=context.spec_hash,
            holder=await self._holder(target, execution_uid),
            recent=await self._recent(target, now),
        )

    async def pin(self, target: TargetRef) -> ResourceContext:
        """The target as it is now, as far as guards compare it."""
        return await self.ports.target_reader.pin(bare_reference(target))

    async def drift(
        self, target: PinnedTarget, workflow: WorkflowPin, context: ResourceContext | None = None
    ) -> Drift | None:
        """Why the proposal no longer fits; a read that fails raises, for not knowing is neither yes nor no."""
        context = context or await self.pin(target)
        if context.failure:
            raise Retryable(context.failure)
        pin = context.target_pin
        workflow_hash, active = await self._workflow(workflow, target.namespace or "")
        seen = CurrentState(
            target_uid=None if context.deleted else (pin.uid if pin else None),
            drift_hash=(pin.drift_hash or "") if pin else "",
            workflow_hash=workflow_hash,
            workflow_active=active,
        )
        return find_drift(target, workflow, seen)

    async def _workflow(self, workflow: WorkflowPin, target: str) -> tuple[str, bool]:
        """Content hash of the workflow as it is now, and whether it is in force for a target in that namespace.

        An empty hash: it is gone.

        The resource decides; DataStorage may have withdrawn it besides, and while it is away it delays no decision.
        """
        same = versions_of(await self.ports.workflow_sources.workflows(self.ports.status, target), workflow.id)
        found = next(iter(newest_workflows(same)), None)
        if found is None or found.metadata.deletion_timestamp is not None:
            return "", False
        digest = content_hash(content_of(found))
        if digest == workflow.content_hash and is_pending(found):
            raise Retryable(f"RemediationWorkflow {found.namespace}/{found.name} is not registered yet")
        if not is_active(found):
            return digest, False
        try:
            record = await self.ports.datastorage.workflow(workflow.workflow_id or workflow.id, None)
        except NotFound:
            return digest, False
        except Retryable:
            return digest, True
        return record.content_hash, record.status == ACTIVE and record.latest

    async def _scope(self, context: ResourceContext, target: TargetRef) -> tuple[tuple[Mapping[str, str], ...], bool]:
        near = (context.target_labels, context.root_labels)
        if not target.namespace:
            return near, False
        if context.namespace_labels and context.root.namespace == target.namespace:
            return (*near, context.namespace_labels), False
        try:
            found = await self.ports.cluster.get(NAMESPACE, target.namespace)
        except InquestError:
            return near, True
        return (*near, dict(labels_of(found))), False

    async def _holder(self, target: TargetRef, execution_uid: str) -> Holder | None:
        name = job_name(target_string(target))
        job = await find(self.ports.status, JOB, name, self.ports.execution_namespace)
        if job is None:
            return None
        uid = labels_of(job).get(EXECUTION_LABEL, "")
        # A Job without our label is not waited for: the execution that meets it fails.
        busy = bool(uid) and uid != execution_uid and not job_outcome(job, (), ()).ended
        return Holder(name=job["metadata"]["name"], uid=uid) if busy else None

    async def _recent(self, target: TargetRef, now: datetime) -> tuple[RecentRun, ...]:
        """Runs of any workflow on the target that ended lately."""
        runs = parse_objects(WorkflowExecution, await self.ports.status.list(EXECUTION))
        wanted = target_string(target).lower()
        return tuple(
            RecentRun(run.spec.workflow.id, run.status.completed_at)
            for run in runs
            if run.status.completed_at
            and run.status.phase in OVER
            and now - run.status.completed_at < timedelta(hours=1)
            and target_string(run.spec.target).lower() == wanted
        )

    def _rules(self) -> GuardRules:
        chosen = self.ports.settings
        own = {self.ports.namespace, self.ports.execution_namespace}
        return GuardRules(
            protected_namespaces=frozenset({*BUILT_IN_PROTECTED, *own, *chosen.execution.protected_namespaces}),
            require_label=chosen.scope.require_label,
            chain=chain_rules(self.ports),
            recently_remediated=chosen.triage.recently_remediated,
        )


def bare_reference(target: TargetRef) -> TargetRef:
    return TargetRef(api_version=target.api_version, kind=target.kind, name=target.name, namespace=target.namespace)
