"""What is read around a Signal: its target, labels, owner and context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from inquest.api.investigation import Investigation
from inquest.api.names import FINGERPRINT_LABEL, REQUESTER_ANNOTATION, case_lease_name
from inquest.api.refs import OwnerRef, TargetRef
from inquest.api.signal import Signal, SignalContext
from inquest.api.types import TERMINAL_PHASES, SignalPhase, SourceType
from inquest.controllers.catalogue.live import is_active
from inquest.controllers.ports import ControllerPorts
from inquest.controllers.reading import find, parse_objects
from inquest.controllers.signal.acceptance import Acceptance
from inquest.controllers.signal.earlier_cases import ended_case, is_case_of, newest_first, open_case, place_in
from inquest.controllers.signal.history import chain_rules, known_history
from inquest.controllers.targets import kinds_of, place_target
from inquest.core.cluster.context import ResourceContext
from inquest.core.cluster.objects import UNKNOWN_KIND, labels_of
from inquest.core.signals.classification import LabelsAround, classify_signal, surroundings_of
from inquest.core.signals.scope import fingerprint_of_signal, is_out_of_reach
from inquest.core.signals.triage_input import BUILT_IN_NOISE, TriageInput, TriageRules
from inquest.errors import Forbidden, InquestError, NeverRead, NotFound, Retryable, UnknownKind
from inquest.ports.kinds import INVESTIGATION, LEASE, NAMESPACE

_MACHINES: Final = ("system:serviceaccount:", "system:node:")
"""How the API server names those who are nobody."""


@dataclass(frozen=True)
class SignalSurroundings:
    """What was read around a Signal."""

    observed: TriageInput
    context: SignalContext
    resource: ResourceContext | None
    read_failed: str = ""
    earlier: tuple[datetime, ...] = ()
    """When each ended case of the same fingerprint was opened."""
    warnings: tuple[str, ...] = ()
    """Words around the target that count for nothing, and why."""


def labels_around(resource: ResourceContext | None, labels: tuple[Mapping[str, str], ...]) -> LabelsAround:
    read = surroundings_of(resource) if resource is not None else LabelsAround(degraded=True)
    return replace(read, namespace=labels[2] if len(labels) > 2 else {})


def read_labels(resource: ResourceContext | None, namespace: str) -> Mapping[str, str]:
    """Labels of the namespace where they were read around the target just now; every namespace there is has one."""
    return resource.namespace_labels if resource is not None and resource.root.namespace == namespace else {}


def owner_of_target(resource: ResourceContext | None) -> OwnerRef | None:
    return OwnerRef(**resource.root.model_dump(), uid=resource.root_uid or None) if resource else None


@dataclass(frozen=True)
class SignalSurvey:
    """Gathers what triage looks at."""

    ports: ControllerPorts
    acceptance: Acceptance

    async def normalised(self, found: Signal) -> Signal:
        """The Signal with the namespace dropped from a cluster-scoped target: it would pass for the tenant's own."""
        target = await place_target(self.ports.cluster, found.spec.target)
        if target == found.spec.target:
            return found
        return found.model_copy(update={"spec": found.spec.model_copy(update={"target": target})})

    async def survey(self, found: Signal) -> SignalSurroundings:
        """Gather all that triage may look at."""
        now = await self.ports.now()
        target = found.spec.target
        # A bot hands on what people say to one another, so its own word that somebody asks is not enough.
        who = found.metadata.annotations.get(REQUESTER_ANNOTATION, "")
        by_person = found.spec.source.type is SourceType.MANUAL and bool(who) and not who.startswith(_MACHINES)
        observed = TriageInput(found.name, found.namespace, found.spec, now, self.rules(), by_person=by_person)
        if is_out_of_reach(observed):
            # Nothing is read there, not even whether it exists.
            return SignalSurroundings(observed, SignalContext(), None)
        if target.kind == UNKNOWN_KIND:
            return await self._with_cases(found, observed, None)
        try:
            kinds = await kinds_of(self.ports.cluster, target)
        except UnknownKind:
            return SignalSurroundings(replace(observed, kind_known=False), SignalContext(), None)
        except NeverRead as error:
            return SignalSurroundings(replace(observed, never_read=str(error)), SignalContext(), None)
        except Retryable as error:
            return SignalSurroundings(observed, SignalContext(), None, str(error))
        namespaced = any(kind.namespaced for kind in kinds)
        observed = replace(observed, namespaced=namespaced)
        if namespaced and not target.namespace:
            return SignalSurroundings(observed, SignalContext(), None)
        return await self._with_resource(found, observed)

    async def _with_resource(self, found: Signal, observed: TriageInput) -> SignalSurroundings:
        resource = await self.ports.target_reader.context(found.spec.target)
        if resource.failure:
            return SignalSurroundings(observed, SignalContext(), None, resource.failure)
        namespace = found.spec.target.namespace or ""
        exists = bool(read_labels(resource, namespace)) or await self._namespace_exists(namespace)
        observed = replace(observed, target_exists=not resource.deleted, namespace_exists=exists)
        return await self._with_cases(found, observed, resource)

    async def _with_cases(
        self, found: Signal, observed: TriageInput, resource: ResourceContext | None
    ) -> SignalSurroundings:
        labels, unknown_scope = await self._scope(found.spec.target, resource)
        around = labels_around(resource, labels)
        settings = self.ports.settings
        classified = classify_signal(
            found.spec,
            around,
            custom_keys=settings.classification.custom_labels,
            proactive_names=settings.intake.predictions,
        )
        fingerprint = fingerprint_of_signal(found.spec, resource.root if resource else None)
        investigations = await self._investigations(fingerprint, found.spec.target.namespace or "")
        history = await known_history(self.ports, resource)
        ended = newest_first(tuple(inv for inv in investigations if inv.status.phase in TERMINAL_PHASES))
        came = bool(ended) and await self._workflow_came(ended[0])
        observed = replace(
            observed,
            fingerprint=fingerprint,
            scope_labels=labels,
            scope_unknown=unknown_scope,
            open_cases=tuple(open_case(inv) for inv in investigations if inv.status.phase not in TERMINAL_PHASES),
            ended=tuple(replace(ended_case(inv), workflow_came=came and inv is ended[0]) for inv in ended),
            history=history,
            spec_hash=resource.spec_hash if resource else "",
            accepted=self.acceptance.taken(observed.now, (found.namespace, found.name)),
            blocked_for=found.status.reason or "" if found.status.phase is SignalPhase.BLOCKED else "",
            blocked_count=found.status.blocked_count or 0,
        )
        earlier = (inv.metadata.creation_timestamp for inv in ended)
        return SignalSurroundings(
            observed,
            classified.context,
            resource,
            earlier=tuple(sorted(at for at in earlier if at is not None)),
            warnings=classified.warnings,
        )

    async def _workflow_came(self, inv: Investigation) -> bool:
        """Whether a workflow for what an ended case wanted has been registered since it ended."""
        status = inv.status
        if not status.wanted_actions or status.completed_at is None:
            return False
        target = inv.spec.signal.target.namespace or ""
        found = await self.ports.workflow_sources.workflows(self.ports.status, target)
        return any(
            is_active(one)
            and one.spec.action_type in status.wanted_actions
            and one.status.registered_at is not None
            and one.status.registered_at >= status.completed_at
            for one in found
        )

    async def _scope(
        self, target: TargetRef, resource: ResourceContext | None
    ) -> tuple[tuple[Mapping[str, str], ...], bool]:
        """Labels of target, root owner and namespace; the second part says that they could not be read."""
        near = (resource.target_labels, resource.root_labels) if resource else ({}, {})
        if not target.namespace:
            return near, False
        known = read_labels(resource, target.namespace)
        if known:
            return (*near, known), False
        try:
            found = await self.ports.cluster.get(NAMESPACE, target.namespace)
        except NotFound:
            return (*near, {}), False
        except InquestError:
            return (*near, {}), True
        return (*near, dict(labels_of(found))), False

    async def _namespace_exists(self, name: str) -> bool:
        try:
            await self.ports.cluster.get(NAMESPACE, name) if name else None
        except NotFound:
            return False
        except Forbidden:
            # It is not known to be absent; without its labels the scope is unknown, and that is said.
            return True
        return True

    async def _investigations(self, fingerprint: str, namespace: str) -> tuple[Investigation, ...]:
        """Cases of a fingerprint: the label, which anybody may set, only finds them."""
        labels = f"{FINGERPRINT_LABEL}={fingerprint[:16]}"
        found = parse_objects(Investigation, await self.ports.status.list(INVESTIGATION, labels=labels))
        here = [inv for inv in found if inv.namespace in (self.ports.namespace, namespace)]
        untold = any(not inv.status.fingerprint for inv in here)
        opened = await self._opened(fingerprint) if untold else ""
        return tuple(inv for inv in here if is_case_of(inv, fingerprint, opened))

    async def _opened(self, fingerprint: str) -> str:
        """`namespace/name` of the Investigation that the case Lease names; empty where no case is open."""
        lease = await find(self.ports.status, LEASE, case_lease_name(fingerprint), self.ports.namespace)
        return place_in(lease) if lease else ""

    def rules(self) -> TriageRules:
        """As the settings have them now."""
        chosen = self.ports.settings.triage
        return TriageRules(
            operator_namespace=self.ports.namespace,
            namespaces=frozenset(self.ports.settings.kubernetes.namespaces),
            noise=BUILT_IN_NOISE | set(chosen.noise),
            require_label=self.ports.settings.scope.require_label,
            chain=chain_rules(self.ports),
            consecutive_failures=chosen.consecutive_failures,
            failure_block=chosen.failure_block,
            no_action_hold=chosen.no_action_hold,
            rate=chosen.rate,
            rate_per_namespace=chosen.rate_per_namespace,
        )
