"""Choosing one workflow of the catalogue, with a model or by code, and checking what was chosen.

Discovery in three steps, validation, attempts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import spec_of
from inquest.core.evidence.evidence import CaseWarning, Finding
from inquest.core.llm.reply.verdicts import SelectionVerdict, WorkflowChoice
from inquest.core.selection.catalogue import Workflow
from inquest.core.selection.parameter_rules import DerivedParameters, TargetFacts, derive_parameters, quota_facts
from inquest.core.selection.parameters import TARGET_PARAMETERS, CheckedParameters, check_parameters, parameter_schema

# --- validation against the catalogue ------------------------------------------------


WORKFLOW_NOT_FOUND: Final = "workflow_not_found"


IMAGE_MISMATCH: Final = "image_mismatch"
PARAMETERS_INVALID: Final = "parameter_validation_failed"
MAX_TRIES: Final = 3


@dataclass(frozen=True)
class SelectionFault:
    """One reason why a selection is not valid; `code` is a review reason on the wire."""

    code: str
    text: str


@dataclass(frozen=True)
class SelectionCheck:
    """A selection held against the catalogue; `parameters` are completed, without what is not declared."""

    record: Workflow | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[SelectionFault, ...] = ()
    warnings: tuple[CaseWarning, ...] = ()
    stripped: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.faults

    @property
    def reason(self) -> str:
        """Code of the last error."""
        return self.faults[-1].code if self.faults else ""

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(fault.text for fault in self.faults)


def validate_selection(choice: WorkflowChoice | None, record: Workflow | None, target_kind: str = "") -> SelectionCheck:
    """Every check of a selection, all errors collected; `record` is what a look-up by id gave."""
    if choice is None:
        return SelectionCheck(None)
    if record is None or not is_offered(record):
        text = f"workflow {choice.workflow_id!r} is not an active workflow of the catalogue for this incident"
        return SelectionCheck(None, faults=(SelectionFault(WORKFLOW_NOT_FOUND, text),))
    checked = check_parameters(record.parameters, choice.parameters)
    wrong = (SelectionFault(PARAMETERS_INVALID, error) for error in checked.errors)
    return SelectionCheck(
        record=record,
        parameters=checked.values,
        faults=(*_confidence_faults(choice), *_image_faults(choice, record), *wrong),
        warnings=(
            *_stripped_caution(checked),
            *checked.warnings,
            *_engine(choice, record),
            *_scope(record, target_kind),
        ),
        stripped=checked.stripped,
    )


def not_ours(record: Workflow) -> SelectionCheck:
    """What nothing here could execute."""
    text = f"workflow {record.workflow_id!r} cannot be executed here: its content is no RemediationWorkflow"
    return SelectionCheck(None, faults=(SelectionFault(WORKFLOW_NOT_FOUND, text),))


def is_id(word: str) -> bool:
    """Whether a word can be the id of a workflow at all, and no way to another address."""
    return re.fullmatch(r"[A-Za-z0-9](?:[\w.-]{0,251}[A-Za-z0-9])?", word, re.ASCII) is not None


def is_offered(record: Workflow) -> bool:
    """Whether a record is what discovery may offer: active, and the latest of its versions."""
    return record.status.lower() == "active" and record.latest


def _confidence_faults(choice: WorkflowChoice) -> tuple[SelectionFault, ...]:
    figure = choice.confidence
    if figure is None or 0 <= figure <= 1:
        return ()
    return (SelectionFault(PARAMETERS_INVALID, f"confidence {figure:g} is not within 0 and 1"),)


def _image_faults(choice: WorkflowChoice, record: Workflow) -> tuple[SelectionFault, ...]:
    same = {record.bundle, f"{record.bundle.partition('@')[0]}@{record.bundle_digest}"}
    if not choice.bundle or choice.bundle in same:
        return ()
    return (
        SelectionFault(IMAGE_MISMATCH, f"execution_bundle {choice.bundle!r} is not the catalogue's {record.bundle!r}"),
    )


def _stripped_caution(checked: CheckedParameters) -> tuple[CaseWarning, ...]:
    if not checked.stripped:
        return ()
    return (CaseWarning("ParametersStripped", f"Undeclared parameters removed: {', '.join(checked.stripped)}"),)


def _engine(choice: WorkflowChoice, record: Workflow) -> tuple[CaseWarning, ...]:
    if not choice.engine or choice.engine == record.engine:
        return ()
    return (
        CaseWarning("EngineDiffers", f"The model named engine {choice.engine}; the catalogue's {record.engine} holds"),
    )


def _scope(record: Workflow, kind: str) -> tuple[CaseWarning, ...]:
    if not kind or in_scope(record.components, kind):
        return ()
    return (CaseWarning("TargetScope", f"{kind} is outside the workflow's components {', '.join(record.components)}"),)


def in_scope(components: Iterable[str], kind: str) -> bool:
    """Whether a kind is within a component scope: `*`, a kind, or the end of `group/version/Kind`, any case."""
    words = {component.rpartition("/")[2].lower() for component in components}
    return "*" in words or kind.lower() in words


# --- self-correction -----------------------------------------------------------------


@dataclass(frozen=True)
class SelectionAttempt:
    """One try of invocation 2 at the catalogue; `reason` is empty when the reply could not be read."""

    number: int
    workflow_id: str
    errors: tuple[str, ...]
    reason: str
    at: datetime

    @property
    def valid(self) -> bool:
        return not self.errors


def attempt_of(
    number: int, choice: WorkflowChoice | None, validation: SelectionCheck, at: datetime
) -> SelectionAttempt:
    """The record of one try."""
    return SelectionAttempt(number, choice.workflow_id if choice else "", validation.errors, validation.reason, at)


UNREAD: Final = ""
"""Code of a fault that is no validation error: the reply could not be read, or the turns were spent."""


def unreadable_reply(why: str) -> SelectionCheck:
    """A try that failed before anything could be validated."""
    return SelectionCheck(None, faults=(SelectionFault(UNREAD, why),))


def last_reason(attempts: Sequence[SelectionAttempt]) -> str:
    """The review reason after the last try: that of the last real validation error."""
    return next((attempt.reason for attempt in reversed(attempts) if attempt.reason), PARAMETERS_INVALID)


def exhausted_message(attempts: Sequence[SelectionAttempt]) -> str:
    """What people read when no try was valid."""
    last = next((attempt.errors[-1] for attempt in reversed(attempts) if attempt.reason), "the reply could not be read")
    return f"self-correction exhausted after {len(attempts)} attempts: {last}"


def correction_message(number: int, validation: SelectionCheck) -> str:
    """The user message that asks for a valid selection; `number` is the attempt that failed."""
    known = validation.record
    lines = [
        f"Attempt {number} of {MAX_TRIES}: the selection is not valid:",
        *(f"- {error}" for error in validation.errors),
        f"Parameters of {known.workflow_id}:\n{parameter_schema(known)}" if known else "",
        "Look the workflow up with `get_workflow` and use its id as it stands there. Fill every required parameter.",
        "Then submit again; `submit_result_no_workflow` is right if nothing fits.",
    ]
    return "\n".join(line for line in lines if line)


def target_parameters(target: TargetRef) -> dict[str, str]:
    """The `TARGET_RESOURCE_*` values; the version only when it is known."""
    values = (target.name, target.kind, target.namespace or "", target.api_version)
    return {name: value for name, value in zip(TARGET_PARAMETERS, values, strict=True) if value is not None}


# --- choosing by code ----------------------------------------------------------


SOURCE_ACTIONS: Final = frozenset({"GitRevertCommit"})
"""Action types that change the source; what another one changes, a GitOps tool takes back."""


def actions_for(finding: Finding) -> tuple[str, ...]:
    """The action types that answer a finding, the best first; none where nobody should act, or a person must."""
    return tuple(dict.fromkeys(finding.actions)) if finding.act else ()


def wanted_actions(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The action types that answer what was found first; none where nothing was."""
    return actions_for(findings[0]) if findings else ()


def choose_workflow(
    finding: Finding, records: Sequence[Workflow], around: TargetFacts | None = None
) -> SelectionVerdict:
    """One workflow for the first cause, or none with the reason; `records` are discovery's, in its order."""
    known, actions = around or TargetFacts(), actions_for(finding)
    if not actions:
        return _none(
            finding, f"no action type answers {finding.category} of {finding.object.display}: a person must act"
        )
    ranked = sorted(records, key=lambda record: _is_for_others(record, known))
    offered = [one for action in actions for one in ranked if one.action_type == action and is_offered(one)]
    lasting = [record for record in offered if not _is_taken_back(record, finding, known)]
    taken = [record for record in lasting if not known.is_git_ops or _changes_source(record)]
    if offered and not lasting:
        return _none(finding, "an autoscaler sets the replicas of the target and would take the change back")
    if lasting and not taken:
        names = ", ".join(dict.fromkeys(record.action_type for record in lasting))
        why = f"{known.tool} manages the target: only its source may be changed, by none of {names}"
        return _none(finding, why)
    facts = {**finding.facts, **quota_facts(finding.facts, known.quota)}
    tries = [(record, derive_parameters(record, facts)) for record in taken]
    ready = [_chosen(record, filling, finding) for record, filling in tries if not filling.missing]
    if not ready:
        return _none(finding, _why_none(actions, tries))
    return SelectionVerdict(
        summary=finding.summary,
        target=finding.object,
        choice=ready[0],
        alternatives=tuple(ready[1:4]),
        confidence=finding.confidence,
        outcome="actionable",
    )


def _is_for_others(record: Workflow, known: TargetFacts) -> bool:
    """It names another team, tier or the like; discovery puts it level with one that names none."""
    custom = _labels(record).get("custom")
    named = custom.items() if isinstance(custom, Mapping) else ()
    return any(value not in ("*", *known.custom.get(key, ())) for key, value in named)


def _is_taken_back(record: Workflow, finding: Finding, known: TargetFacts) -> bool:
    """An autoscaler sets the replicas itself, but for a workload at zero, which it leaves alone."""
    scaled = known.labels is not None and bool(known.labels.hpa_enabled)
    return scaled and record.action_type == "ScaleReplicas" and finding.facts.get("replicas") != "0"


def _changes_source(record: Workflow) -> bool:
    """An action on the source, or a workflow that its author made for targets under GitOps."""
    detected = _labels(record).get("detected", {})
    made_for = isinstance(detected, Mapping) and ("gitOpsManaged" in detected or "gitOpsTool" in detected)
    return record.action_type in SOURCE_ACTIONS or made_for


def _labels(record: Workflow) -> Mapping[str, Any]:
    """What its author says of where it fits."""
    labels = spec_of(record.content).get("labels", {})
    return labels if isinstance(labels, Mapping) else {}


def _none(finding: Finding, why: str) -> SelectionVerdict:
    return SelectionVerdict(summary=finding.summary, reasoning=why, declined=True, confidence=finding.confidence)


def _why_none(actions: Sequence[str], tries: Sequence[tuple[Workflow, DerivedParameters]]) -> str:
    if not tries:
        return f"the catalogue has no workflow for {', '.join(actions)}"
    texts = (f"{record.workflow_id}: {'; '.join(filling.missing)}" for record, filling in tries)
    return f"no workflow for {', '.join(actions)} can be filled from the evidence: {', '.join(texts)}"


def _chosen(record: Workflow, filling: DerivedParameters, finding: Finding) -> WorkflowChoice:
    evidence = ", ".join(finding.evidence)
    rules = "".join(f"; {rule}" for rule in filling.rules)
    rationale = f"{finding.category} calls for {record.action_type} (evidence {evidence}){rules}"
    return WorkflowChoice(record.workflow_id, finding.confidence, rationale, filling.values)
