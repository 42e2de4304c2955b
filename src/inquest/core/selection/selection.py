"""Invocation 2: choosing one workflow of the catalogue, with a model or by code.

The seven fields in, discovery in three steps, validation of what was chosen (pipeline, sections 2.6, 8, 12.4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, Generic, TypeVar

from inquest.api.types import DetectedLabels, TargetRef
from inquest.core import patterns
from inquest.core.cluster.detected_labels import Quota
from inquest.core.diagnosis.diagnosis import Caution, Diagnosis
from inquest.core.evidence.evidence import Finding
from inquest.core.llm.messages import Invocation, ModelReply
from inquest.core.llm.reply.reading import Choice, RcaReply, SelectionReply, read
from inquest.core.text import filtered, joined, section, visible

T = TypeVar("T")


@dataclass(frozen=True)
class CatalogueFilters:
    """Sent with every discovery request, from the investigation and never from a model."""

    severity: str
    component: str
    environment: str
    priority: str
    custom_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    detected_labels: DetectedLabels | None = None
    remediation_id: str = ""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a discovery answer."""

    items: tuple[T, ...]
    offset: int
    limit: int
    has_more: bool


@dataclass(frozen=True)
class Described:
    """When to use something and when not, as its author wrote it."""

    what: str
    when_to_use: str
    when_not_to_use: str = ""
    preconditions: str = ""


@dataclass(frozen=True)
class ActionOffer:
    """An action type for which the filters leave at least one workflow."""

    name: str
    description: Described
    workflows: int


@dataclass(frozen=True)
class WorkflowOffer:
    """One workflow as listed."""

    workflow_id: str
    name: str
    version: str
    action_type: str
    description: Described
    parameters: tuple[Mapping[str, Any], ...] | None = None
    """As declared; None where the service does not list them."""


@dataclass(frozen=True)
class WorkflowRecord:
    """A workflow in full; `content` is the registered resource, parsed, and `content_hash` is over its exact text."""

    workflow_id: str
    name: str
    version: str
    action_type: str
    content_hash: str
    status: str
    latest: bool
    description: Described
    engine: str
    bundle: str
    bundle_digest: str
    service_account: str
    parameters: tuple[Mapping[str, Any], ...]
    components: tuple[str, ...]
    content: Mapping[str, Any]


# --- the seven fields (pipeline, 2.6) ----------------------------------------------------------------

Fields = tuple[tuple[str, str], ...]


def seven_fields(diagnosis: Diagnosis) -> Fields:
    """The only words of a model that enter invocation 2, filtered; a field without a value is left out."""
    figure = diagnosis.confidence
    fields = (
        ("RCASummary", diagnosis.summary),
        ("Severity", diagnosis.severity),
        ("ContributingFactors", "; ".join(diagnosis.contributing_factors)),
        ("RemediationTarget", described_target(diagnosis.target) if diagnosis.target else ""),
        ("InvestigationOutcome", diagnosis.outcome),
        ("Confidence", "" if figure is None else f"{figure:.2f}"),
        ("InvestigationAnalysis", diagnosis.analysis),
    )
    return tuple((name, filtered(value)) for name, value in fields if value)


def described_target(target: TargetRef) -> str:
    """`Kind/Name (ns: X)`, without the bracket for cluster-scoped resources."""
    return target.display + (f" (ns: {target.namespace})" if target.namespace else "")


# --- the prompt of invocation 2 (pipeline, section 11) -----------------------------------------------

TASK: Final = """\
You choose a remediation workflow for an incident whose root cause is known. Do not investigate again: you have no tool
for it. Select one workflow at most, and name 2 or 3 alternatives for the people who read this.

## Steps, all three, in this order
1. `list_available_actions`: the kinds of action for which workflows exist.
2. `list_workflows` for the action that fits. Ask for the next page while `hasMore` is true.
3. `get_workflow` for the one you choose: the whole schema of its parameters stands only there.

## Rules
- `what`, `whenToUse` and `whenNotToUse` decide; a workflow whose `whenNotToUse` fits is out.
- Respect the infrastructure (quota, autoscaler, disruption budget) and the history: do not repeat what did not help.
- Every required parameter must come from the findings below. Never invent a value.
- A target that GitOps manages needs a git-based action.
- A fault that began right after a rollout is rolled back.

## Special ends, through `submit_result_no_workflow`
- resolved, with confidence 0.7 or more: `investigation_outcome: problem_resolved`
- cannot be told, with confidence below 0.5: `investigation_outcome: inconclusive`
- nothing in the catalogue fits: say why in `reasoning`
- nobody should act: `investigation_outcome: not_actionable`

## Answer
Call one of the two, once. Examples:
submit_result_with_workflow {"root_cause_analysis": {"summary": "…"}, "selected_workflow": {"workflow_id": "<id>", \
"confidence": 0.9, "rationale": "…", "parameters": {"MEMORY_LIMIT": "256Mi"}}, "confidence": 0.9}
submit_result_no_workflow {"root_cause_analysis": {"summary": "…"}, "reasoning": "…"}
`parameters` holds what the workflow declares; the TARGET_RESOURCE_ values are set for you."""


@dataclass(frozen=True)
class SelectionContext:
    """What the prompt of invocation 2 is made of; `infrastructure` and `history` are written by code
    around names and words that are the cluster's."""

    signal_name: str
    severity: str
    namespace: str
    fields: Fields
    predicted: bool = False
    infrastructure: str = ""
    history: str = ""


def system_prompt(context: SelectionContext) -> str:
    """The system message: the static task first."""
    return joined(
        TASK,
        section("Incident", _header(context)),
        section(
            "Root cause, from an investigation that is over", *(f"- {name}: {text}" for name, text in context.fields)
        ),
        section("Infrastructure", filtered(context.infrastructure)),
        filtered(context.history),
    )


def first_message(summary: str) -> str:
    """The first user message; conversation starts as system and user, nothing else."""
    return f"RCA findings: {filtered(summary)}\n\nSelect the appropriate remediation workflow."


def _header(context: SelectionContext) -> str:
    when = "is predicted" if context.predicted else "occurred"
    return filtered(f"{context.severity} {context.signal_name} {when} in {context.namespace}")


# --- validation against the catalogue (pipeline, 8.1) ------------------------------------------------

WORKFLOW_NOT_FOUND: Final = "workflow_not_found"
IMAGE_MISMATCH: Final = "image_mismatch"
PARAMETERS_INVALID: Final = "parameter_validation_failed"
MAX_TRIES: Final = 3


@dataclass(frozen=True)
class Fault:
    """One reason why a selection is not valid; `code` is a review reason on the wire."""

    code: str
    text: str


@dataclass(frozen=True)
class Validation:
    """A selection held against the catalogue; `parameters` are completed, without what is not declared."""

    record: WorkflowRecord | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Caution, ...] = ()
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


def is_same_choice(one: Choice, other: Choice) -> bool:
    """Whether what was found out about one choice holds for another: figures and reasons do not count."""
    return (one.workflow_id, one.parameters, one.engine, one.bundle) == (
        other.workflow_id,
        other.parameters,
        other.engine,
        other.bundle,
    )


def validate(choice: Choice | None, record: WorkflowRecord | None, target_kind: str = "") -> Validation:
    """Every check of a selection, all errors collected; `record` is what a look-up by id gave (pipeline, 8.1)."""
    if choice is None:
        return Validation(None)
    if record is None or not is_offered(record):
        text = f"workflow {choice.workflow_id!r} is not an active workflow of the catalogue for this incident"
        return Validation(None, faults=(Fault(WORKFLOW_NOT_FOUND, text),))
    checked = check_parameters(record.parameters, choice.parameters)
    return Validation(
        record=record,
        parameters=checked.values,
        faults=(*_confidence_faults(choice), *_image_faults(choice, record), *_as_faults(checked.errors)),
        warnings=(
            *_stripped_caution(checked),
            *checked.warnings,
            *_engine(choice, record),
            *_scope(record, target_kind),
        ),
        stripped=checked.stripped,
    )


def not_ours(record: WorkflowRecord) -> Validation:
    """What nothing here could execute."""
    text = f"workflow {record.workflow_id!r} cannot be executed here: its content is no RemediationWorkflow"
    return Validation(None, faults=(Fault(WORKFLOW_NOT_FOUND, text),))


def is_id(word: str) -> bool:
    """Whether a word can be the id of a workflow at all, and no way to another address."""
    return re.fullmatch(r"[A-Za-z0-9](?:[\w.-]{0,251}[A-Za-z0-9])?", word, re.ASCII) is not None


def is_offered(record: WorkflowRecord) -> bool:
    """Whether a record is what discovery may offer: active, and the latest of its versions."""
    return record.status.lower() == "active" and record.latest


def _confidence_faults(choice: Choice) -> tuple[Fault, ...]:
    figure = choice.confidence
    if figure is None or 0 <= figure <= 1:
        return ()
    return (Fault(PARAMETERS_INVALID, f"confidence {figure:g} is not within 0 and 1"),)


def _image_faults(choice: Choice, record: WorkflowRecord) -> tuple[Fault, ...]:
    same = {record.bundle, f"{record.bundle.partition('@')[0]}@{record.bundle_digest}"}
    if not choice.bundle or choice.bundle in same:
        return ()
    return (Fault(IMAGE_MISMATCH, f"execution_bundle {choice.bundle!r} is not the catalogue's {record.bundle!r}"),)


def _as_faults(errors: Iterable[str]) -> tuple[Fault, ...]:
    return tuple(Fault(PARAMETERS_INVALID, error) for error in errors)


def _stripped_caution(checked: CheckedParameters) -> tuple[Caution, ...]:
    if not checked.stripped:
        return ()
    return (Caution("ParametersStripped", f"Undeclared parameters removed: {', '.join(checked.stripped)}"),)


def _engine(choice: Choice, record: WorkflowRecord) -> tuple[Caution, ...]:
    if not choice.engine or choice.engine == record.engine:
        return ()
    return (Caution("EngineDiffers", f"The model named engine {choice.engine}; the catalogue's {record.engine} holds"),)


def _scope(record: WorkflowRecord, kind: str) -> tuple[Caution, ...]:
    if not kind or in_scope(record.components, kind):
        return ()
    return (Caution("TargetScope", f"{kind} is outside the workflow's components {', '.join(record.components)}"),)


def in_scope(components: Iterable[str], kind: str) -> bool:
    """Whether a kind is within a component scope: `*`, a kind, or the end of `group/version/Kind`, any case."""
    words = {component.rpartition("/")[2].lower() for component in components}
    return "*" in words or kind.lower() in words


# --- parameters (pipeline, 8.3) ----------------------------------------------------------------------

TARGET_PARAMETERS: Final = (
    "TARGET_RESOURCE_NAME",
    "TARGET_RESOURCE_KIND",
    "TARGET_RESOURCE_NAMESPACE",
    "TARGET_RESOURCE_API_VERSION",
)

Declaration = Mapping[str, Any]


@dataclass(frozen=True)
class CheckedParameters:
    """Parameters after all checks: completed by defaults, without the undeclared ones."""

    values: Mapping[str, Any]
    errors: tuple[str, ...] = ()
    warnings: tuple[Caution, ...] = ()
    stripped: tuple[str, ...] = ()


def check_parameters(declared: Sequence[Declaration], given: Mapping[str, Any]) -> CheckedParameters:
    """All rules for all parameters, in the order of the table; null is absent."""
    names = {str(declaration.get("name")) for declaration in declared}
    present = {name: value for name, value in given.items() if value is not None}
    kept = {name: value for name, value in present.items() if name in names or name in TARGET_PARAMETERS}
    defaults = {str(d["name"]): d["default"] for d in declared if d.get("name") and d.get("default") is not None}
    values = defaults | kept
    found = [
        _check(declaration, values) for declaration in declared if declaration.get("name") not in TARGET_PARAMETERS
    ]
    return CheckedParameters(
        values=values,
        errors=tuple(text for errors, _ in found for text in errors),
        warnings=tuple(Caution("ParameterUnchecked", text) for _, warnings in found for text in warnings),
        stripped=tuple(sorted(set(present) - set(kept))),
    )


Notes = tuple[list[str], list[str]]
"""Errors and warnings about one parameter."""


def _check(declaration: Declaration, values: Mapping[str, Any]) -> Notes:
    name = str(declaration.get("name"))
    if name not in values:
        return ([f"{name}: required parameter is missing"], []) if declaration.get("required") else ([], [])
    value, kind = values[name], str(declaration.get("type", ""))
    test = _TYPES.get(kind)
    if test and not test(value):
        return [f"{name}: must be {kind}, got {_shown(value)}"], []
    warnings = [] if test else [f"{name}: type {kind!r} is not known, not checked"]
    pattern_errors, pattern_warnings = _pattern(declaration, name, value)
    rules = (_hidden, _bounds, _enum)
    errors = [text for rule in rules for text in rule(declaration, name, value)]
    return [*errors, *pattern_errors, *_depends(declaration, name, values)], [*warnings, *pattern_warnings]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "float": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple),
}


def _hidden(declaration: Declaration, name: str, value: Any) -> list[str]:
    """Who approves a value must see all of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if visible(text) == text:
        return []
    return [f"{name}: {visible(_shown(value))} holds characters that nobody sees"]


def _bounds(declaration: Declaration, name: str, value: Any) -> list[str]:
    low, high = declaration.get("minimum"), declaration.get("maximum")
    if not _is_number(value):
        return []
    below = [f"{name}: {_shown(value)} is below the minimum {low}"] if _is_number(low) and value < low else []
    above = [f"{name}: {_shown(value)} is above the maximum {high}"] if _is_number(high) and value > high else []
    return below + above


def _enum(declaration: Declaration, name: str, value: Any) -> list[str]:
    words = declaration.get("enum") or ()
    if not words or any(_same(value, word) for word in words):
        return []
    return [f"{name}: {_shown(value)} is none of {', '.join(map(str, words))}"]


def _same(value: Any, word: Any) -> bool:
    # 1 equals True in Python; in JSON it does not.
    return value == word and isinstance(value, bool) == isinstance(word, bool)


def _pattern(declaration: Declaration, name: str, value: Any) -> Notes:
    pattern = str(declaration.get("pattern") or "")
    if not pattern or not isinstance(value, str):
        return [], []
    search, fault = patterns.compiled(pattern)
    if fault:
        return [], [f"{name}: the pattern cannot be used, not checked"]
    # Half a character reaches neither the expression nor a Job.
    whole = value.encode(errors="replace").decode()
    return ([], []) if search.search(whole) else ([f"{name}: {_shown(value)} does not match {pattern}"], [])


def _depends(declaration: Declaration, name: str, values: Mapping[str, Any]) -> list[str]:
    missing = [str(other) for other in declaration.get("dependsOn") or () if other not in values]
    return [f"{name}: depends on {', '.join(missing)}, which is missing"] if missing else []


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:79] + "…"


def parameter_line(declaration: Declaration) -> str:
    """One line about a parameter for a prompt (pipeline, 8.3)."""
    words = declaration.get("enum")
    parts = (
        str(declaration.get("type", "")),
        "required" if declaration.get("required") else "",
        _bound("min", declaration.get("minimum")),
        _bound("max", declaration.get("maximum")),
        f"enum=[{', '.join(map(str, words))}]" if words else "",
        f'pattern="{declaration["pattern"]}"' if declaration.get("pattern") else "",
    )
    return f"  - {declaration.get('name')} ({', '.join(part for part in parts if part)})"


def _bound(word: str, bound: Any) -> str:
    return "" if bound is None else f"{word}={bound}"


def parameter_schema(record: WorkflowRecord) -> str:
    """All parameters of a workflow for a prompt."""
    return "\n".join(map(parameter_line, record.parameters)) or "No parameter schema available."


def parameter_texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Values as the Job gets them: booleans `true`/`false`, 3.0 as `3`, arrays as JSON."""
    return {name: _text_of(value) for name, value in parameters.items()}


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else json.dumps(value, ensure_ascii=False)


# --- self-correction (pipeline, 8.2) -----------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """One try of invocation 2 at the catalogue; `reason` is empty when the reply could not be read."""

    number: int
    workflow_id: str
    errors: tuple[str, ...]
    reason: str
    at: datetime

    @property
    def valid(self) -> bool:
        return not self.errors


def attempt_of(number: int, choice: Choice | None, validation: Validation, at: datetime) -> Attempt:
    """The record of one try."""
    return Attempt(number, choice.workflow_id if choice else "", validation.errors, validation.reason, at)


UNREAD: Final = ""
"""Code of a fault that is no validation error: the reply could not be read, or the turns were spent."""


def unread(why: str) -> Validation:
    """A try that failed before anything could be validated."""
    return Validation(None, faults=(Fault(UNREAD, why),))


def last_reason(attempts: Sequence[Attempt]) -> str:
    """The review reason after the last try: that of the last real validation error."""
    return next((attempt.reason for attempt in reversed(attempts) if attempt.reason), PARAMETERS_INVALID)


def exhausted_message(attempts: Sequence[Attempt]) -> str:
    """What people read when no try was valid."""
    last = next((attempt.errors[-1] for attempt in reversed(attempts) if attempt.reason), "the reply could not be read")
    return f"self-correction exhausted after {len(attempts)} attempts: {last}"


def correction_message(number: int, validation: Validation) -> str:
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


# --- the target (pipeline, section 9) ----------------------------------------------------------------


@dataclass(frozen=True)
class Aim:
    """The final target; none with `ask` set: one corrective question, then outcome 5."""

    target: TargetRef | None
    ask: bool = False


def final_target(
    *, root: TargetRef | None, named: TargetRef | None, known: Iterable[TargetRef] = (), found: TargetRef | None = None
) -> Aim:
    """Where the remedy goes.

    `root` is the verified root owner, `named` the target of invocation 2, `known` the enriched resource, the signal's
    and the owner chain, `found` what a look-up of `named` gave.
    """
    if root is None:
        return Aim(None)
    if not needs_lookup(root=root, named=named, known=known):
        return Aim(root)
    return Aim(found, ask=found is None)


def needs_lookup(*, root: TargetRef, named: TargetRef | None, known: Iterable[TargetRef] = ()) -> bool:
    """Whether the named target is of a kind of its own, so that the cluster must say whether it exists."""
    return named is not None and not any(same_kind(named, other) for other in (root, *known))


def same_kind(one: TargetRef, other: TargetRef) -> bool:
    """Kinds in any case; groups too, when both sides have one."""
    groups = {_group(ref.api_version) for ref in (one, other) if ref.api_version}
    return one.kind.lower() == other.kind.lower() and len(groups) < 2


def is_secret(target: TargetRef) -> bool:
    """Secrets are never read, so nothing about one is ever verified."""
    return target.kind.lower() in ("secret", "secrets") and (target.api_version or "v1") == "v1"


def target_question(named: TargetRef, why: str, root: TargetRef) -> str:
    """The one question after a target of another kind that was not found."""
    return (
        f"`remediation_target` {filtered(named.display)} cannot be used: {filtered(why)}. Name an object "
        "that exists, or leave `remediation_target` out: the workflow then acts on "
        f"{filtered(described_target(root))}. Submit the whole answer again."
    )


def group_question(named: TargetRef, choices: Sequence[str]) -> str:
    """The one question which API group the target's kind is of."""
    said = (
        f"`api_version` {named.api_version} does not serve {named.kind}"
        if named.api_version
        else (f"{named.kind} is served by several API groups")
    )
    return (
        f"{said}. Which one is {filtered(named.display)}? Set `remediation_target.api_version` to one of "
        f"{', '.join(choices)}, and submit the whole answer again."
    )


def group_named(answer: ModelReply, choices: Sequence[str]) -> str:
    """The one of the choices that an answer names, in its target or in its words; empty: none or several."""
    reply = read(Invocation.RCA, answer).reply
    target = reply.target if isinstance(reply, RcaReply) else None
    if target is not None and target.api_version:
        return next((choice for choice in choices if _group(choice) == _group(target.api_version)), "")
    words = {word.strip("./-") for word in re.split(r"[^\w./-]+", answer.text)}
    named = [choice for choice in choices if choice in words]
    return named[0] if len(named) == 1 else ""


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def target_parameters(target: TargetRef) -> dict[str, str]:
    """The `TARGET_RESOURCE_*` values; the version only when it is known."""
    values = (target.name, target.kind, target.namespace or "", target.api_version)
    return {name: value for name, value in zip(TARGET_PARAMETERS, values, strict=True) if value is not None}


def injected(parameters: Mapping[str, Any], target: TargetRef) -> dict[str, Any]:
    """Parameters with the target written over whatever stood under its names."""
    others = {name: value for name, value in parameters.items() if name not in TARGET_PARAMETERS}
    return others | target_parameters(target)


# --- choosing by code (resources, 4.1, N12) ----------------------------------------------------------


SOURCE_ACTIONS: Final = frozenset({"GitRevertCommit"})
"""Action types that change the source; what another one changes, a GitOps tool takes back."""


@dataclass(frozen=True)
class Around:
    """What code knows of a target beside the finding."""

    labels: DetectedLabels | None = None
    quota: Mapping[str, Quota] = field(default_factory=dict)
    custom: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Custom labels, as discovery was asked with them."""

    @property
    def is_git_ops(self) -> bool:
        return self.labels is not None and bool(self.labels.git_ops_managed)

    @property
    def tool(self) -> str:
        """The GitOps tool in words for people."""
        return str((self.labels and self.labels.git_ops_tool) or "a GitOps tool")


def actions_for(finding: Finding) -> tuple[str, ...]:
    """The action types that answer a finding, the best first; none where nobody should act, or a person must."""
    return tuple(dict.fromkeys(finding.actions)) if finding.act else ()


def wanted_actions(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The action types that answer what was found first; none where nothing was."""
    return actions_for(findings[0]) if findings else ()


def choose(finding: Finding, records: Sequence[WorkflowRecord], around: Around | None = None) -> SelectionReply:
    """One workflow for the first cause, or none with the reason; `records` are discovery's, in its order."""
    known, actions = around or Around(), actions_for(finding)
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
        why = f"{known.tool} manages the target: only its source may be changed, by none of {_list(lasting)}"
        return _none(finding, why)
    facts = {**finding.facts, **quota_facts(finding.facts, known.quota)}
    tries = [(record, filled(record, facts)) for record in taken]
    ready = [_chosen(record, filling, finding) for record, filling in tries if not filling.missing]
    if not ready:
        return _none(finding, _why_none(actions, tries))
    return SelectionReply(
        summary=finding.summary,
        target=finding.object,
        choice=ready[0],
        alternatives=tuple(ready[1:4]),
        confidence=finding.confidence,
        outcome="actionable",
    )


def _is_for_others(record: WorkflowRecord, known: Around) -> bool:
    """It names another team, tier or the like; discovery puts it level with one that names none (datastorage, 6.3)."""
    custom = _labels(record).get("custom")
    named = custom.items() if isinstance(custom, Mapping) else ()
    return any(value not in ("*", *known.custom.get(key, ())) for key, value in named)


def _is_taken_back(record: WorkflowRecord, finding: Finding, known: Around) -> bool:
    """An autoscaler sets the replicas itself, but for a workload at zero, which it leaves alone."""
    scaled = known.labels is not None and bool(known.labels.hpa_enabled)
    return scaled and record.action_type == "ScaleReplicas" and finding.facts.get("replicas") != "0"


def _changes_source(record: WorkflowRecord) -> bool:
    """An action on the source, or a workflow that its author made for targets under GitOps."""
    detected = _labels(record).get("detected", {})
    made_for = isinstance(detected, Mapping) and ("gitOpsManaged" in detected or "gitOpsTool" in detected)
    return record.action_type in SOURCE_ACTIONS or made_for


def _labels(record: WorkflowRecord) -> Mapping[str, Any]:
    """What its author says of where it fits."""
    labels = record.content.get("spec", {}).get("labels", {})
    return labels if isinstance(labels, Mapping) else {}


def _list(records: Iterable[WorkflowRecord]) -> str:
    return ", ".join(dict.fromkeys(record.action_type for record in records))


def _none(finding: Finding, why: str) -> SelectionReply:
    return SelectionReply(summary=finding.summary, reasoning=why, declined=True, confidence=finding.confidence)


def _why_none(actions: Sequence[str], tries: Sequence[tuple[WorkflowRecord, Filling]]) -> str:
    if not tries:
        return f"the catalogue has no workflow for {', '.join(actions)}"
    texts = (f"{record.workflow_id}: {'; '.join(filling.missing)}" for record, filling in tries)
    return f"no workflow for {', '.join(actions)} can be filled from the evidence: {', '.join(texts)}"


def _chosen(record: WorkflowRecord, filling: Filling, finding: Finding) -> Choice:
    evidence = ", ".join(finding.evidence)
    rules = "".join(f"; {rule}" for rule in filling.rules)
    rationale = f"{finding.category} calls for {record.action_type} (evidence {evidence}){rules}"
    return Choice(record.workflow_id, finding.confidence, rationale, filling.values)


@dataclass(frozen=True)
class Filling:
    """Parameters that rules gave; `missing` says why they are not enough."""

    values: Mapping[str, Any]
    rules: tuple[str, ...]
    missing: tuple[str, ...]


def filled(record: WorkflowRecord, facts: Mapping[str, str]) -> Filling:
    """A workflow's parameters from facts; rules give them, nothing is guessed."""
    values: dict[str, Any] = {}
    rules: list[str] = []
    for declaration in record.parameters:
        name = str(declaration.get("name"))
        rule = PARAMETER_RULES.get(name)
        value = rule.give(facts) if rule else ""
        if rule and value:
            values[name] = typed(value, str(declaration.get("type", "")))
            rules.append(f"{name}={value}: {rule.says}")
    return Filling(values, tuple(rules), check_parameters(record.parameters, values).errors)


def typed(text: str, kind: str) -> Any:
    """A text as the value of a declared type; one that is none stays a text, and validation says so."""
    if kind == "array":
        return _array(text)
    if kind == "integer" and re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return float(text) if kind == "float" and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text) else text


def _array(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, list) else text


Facts = Mapping[str, str]


@dataclass(frozen=True)
class ParameterRule:
    """How a parameter of a known name follows from facts; an empty value means that it does not."""

    says: str
    give: Callable[[Facts], str]


def _fact(name: str, says: str) -> ParameterRule:
    return ParameterRule(says, lambda facts: facts.get(name, ""))


def doubled_memory(facts: Facts) -> str:
    """Twice the present limit, or a quarter above what was used where that is more, at most `memoryMax`."""
    present = bytes_from(facts.get("memoryLimit", ""))
    if not present:
        return ""
    used = bytes_from(facts.get("memoryUsage", "")) or 0
    ceiling = bytes_from(facts.get("memoryMax", ""))
    wanted = max(2 * present, _rounded(used * 5 // 4))
    wanted = wanted if ceiling is None else min(wanted, ceiling)
    return quantity_from(wanted, facts["memoryLimit"]) if wanted > present else ""


def _rounded(size: int) -> int:
    """Up to whole Mi."""
    unit = 1024**2
    return -(-size // unit) * unit


def doubled_cpu(facts: Facts) -> str:
    """Twice the present limit, at most `cpuMax`, in thousandths; empty when that leaves no room above it."""
    present = thousandths_from(facts.get("cpuLimit", ""))
    if not present:
        return ""
    ceiling = thousandths_from(facts.get("cpuMax", ""))
    wanted = 2 * present if ceiling is None else min(2 * present, ceiling)
    if wanted <= present:
        return ""
    return f"{wanted}m" if wanted % 1000 else str(wanted // 1000)


def more_replicas(facts: Facts) -> str:
    """What the evidence says that was wanted; else half as many again, at most `maxReplicas`."""
    wanted = facts.get("wantedReplicas", "")
    if wanted:
        return wanted if _COUNT.fullmatch(wanted) else ""
    present, most = facts.get("replicas", ""), facts.get("maxReplicas", "")
    if not _COUNT.fullmatch(present) or present == "0":
        return ""
    more = int(present) + max(1, int(present) // 2)
    more = min(more, int(most)) if _COUNT.fullmatch(most) else more
    return str(more) if more > int(present) else ""


def raised_maximum(facts: Facts) -> str:
    """Half as many again as an autoscaler may run that stands at its maximum; at another one no figure is wrong."""
    present = facts.get("maxReplicas", "")
    if facts.get("cause") != "atMaximum" or not _COUNT.fullmatch(present) or present == "0":
        return ""
    return str(int(present) + max(1, int(present) // 2))


def larger_storage(facts: Facts) -> str:
    """Half as much again as the claim asks for, at most `storageMax`."""
    present = bytes_from(facts.get("storageSize", ""))
    if not present:
        return ""
    ceiling = bytes_from(facts.get("storageMax", ""))
    wanted = _rounded(present * 3 // 2)
    wanted = wanted if ceiling is None else min(wanted, ceiling)
    return quantity_from(wanted, facts["storageSize"]) if wanted > present else ""


_COUNT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True)
class _Room:
    """A quota that bounds a parameter: the fact it gives, and how the amounts are read and written."""

    fact: str
    present: str
    resources: tuple[str, ...]
    read: Callable[[str], int | None]
    written: Callable[[int], str]


def quota_facts(facts: Facts, quota: Mapping[str, Quota]) -> dict[str, str]:
    """Upper bounds that the namespace's quota sets; a bound that the finding knows is kept where it is lower."""
    return {room.fact: text for room in _ROOMS for text in (_bound_by(room, facts, quota),) if text}


def _bound_by(room: _Room, facts: Facts, quota: Mapping[str, Quota]) -> str:
    """New pods come beside the old ones: what is free must hold one, and the growth of all."""
    found = next((quota[name] for name in room.resources if name in quota), None)
    hard, used = (room.read(found.hard), room.read(found.used)) if found else (None, None)
    present, known = room.read(facts.get(room.present, "")), room.read(facts.get(room.fact, ""))
    if hard is None or used is None or present is None:
        return ""
    replicas = int(facts["replicas"]) if _COUNT.fullmatch(facts.get("replicas", "")) else 1
    free = max(0, hard - used)
    most = min(free, present + free // max(1, replicas)) if room.fact != "storageMax" else present + free
    return room.written(most if known is None else min(most, known))


_CONTAINER: Final = _fact("container", "the container that the finding names")
_MEMORY: Final = ParameterRule("twice the present limit, or above what was used, within the quota", doubled_memory)
_CPU: Final = ParameterRule("twice the present limit, within the quota", doubled_cpu)
_REVISION: Final = _fact("previousRevision", "the revision before the present one")
_REPLICAS: Final = ParameterRule("as many as were wanted, or half as many again", more_replicas)
_MAXIMUM: Final = ParameterRule("half as many again as the autoscaler's maximum", raised_maximum)
_STORAGE: Final = ParameterRule("half as much again, within the quota", larger_storage)
_POD: Final = _fact("pod", "the pod that the finding names")
_NODE: Final = _fact("node", "the node that the finding names")

PARAMETER_RULES: Final[Mapping[str, ParameterRule]] = {
    **dict.fromkeys(("CONTAINER", "CONTAINER_NAME"), _CONTAINER),
    **dict.fromkeys(("MEMORY_LIMIT", "NEW_MEMORY_LIMIT"), _MEMORY),
    **dict.fromkeys(("CPU_LIMIT", "NEW_CPU_LIMIT"), _CPU),
    **dict.fromkeys(("REVISION", "TO_REVISION", "TARGET_REVISION"), _REVISION),
    **dict.fromkeys(("REPLICAS", "REPLICA_COUNT", "TARGET_REPLICAS"), _REPLICAS),
    **dict.fromkeys(("MAX_REPLICAS", "NEW_MAX_REPLICAS"), _MAXIMUM),
    **dict.fromkeys(("STORAGE_SIZE", "NEW_STORAGE_SIZE", "VOLUME_SIZE"), _STORAGE),
    **dict.fromkeys(("POD", "POD_NAME"), _POD),
    **dict.fromkeys(("NODE", "NODE_NAME"), _NODE),
}
"""Named rules; an image tag has none, because no evidence says which one is right."""


# --- quantities --------------------------------------------------------------------------------------

_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_QUANTITY: Final = re.compile(
    r"([0-9]{1,30}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[kMGTPE]|m))?"
)


def bytes_from(quantity: str) -> int | None:
    """A Kubernetes quantity of memory as whole bytes, exactly; None where it is none."""
    found = _QUANTITY.fullmatch(quantity.strip())
    if not found:
        return None
    scale = Fraction(1, 1000) if found[3] == "m" else Fraction((_BINARY | _DECIMAL).get(found[3] or "", 1))
    size = Fraction(f"0{found[1]}".rstrip(".") + (found[2] or "")) * scale
    return size.numerator if size.denominator == 1 else None


def thousandths_from(quantity: str) -> int | None:
    """A Kubernetes quantity of CPU in thousandths, exactly; None where it is none or finer."""
    found = _QUANTITY.fullmatch(quantity.strip())
    if not found or found[3] not in (None, "m", "k"):
        return None
    scale = {"m": 1, "k": 10**6}.get(found[3] or "", 1000)
    amount: Fraction = Fraction(f"0{found[1]}".rstrip(".") + (found[2] or "")) * scale
    return amount.numerator if amount.denominator == 1 else None


def quantity_from(size: int, like: str = "") -> str:
    """Bytes in the largest unit that says them exactly, in the family of units that `like` uses, else binary."""
    families = (_DECIMAL, _BINARY) if like.strip()[-1:] in _DECIMAL else (_BINARY, _DECIMAL)
    for units in families:
        fitting = [(factor, suffix) for suffix, factor in units.items() if size and size % factor == 0]
        if fitting:
            factor, suffix = max(fitting)
            return f"{size // factor}{suffix}"
    return str(size)


_ROOMS: Final = (
    _Room("memoryMax", "memoryLimit", ("limits.memory",), bytes_from, quantity_from),
    _Room("cpuMax", "cpuLimit", ("limits.cpu",), thousandths_from, lambda amount: f"{amount}m"),
    _Room("storageMax", "storageSize", ("requests.storage",), bytes_from, quantity_from),
)
