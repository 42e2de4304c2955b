"""Reading what a model wrote: every defence of the reader, then strict validation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.claims import RawClaim
from inquest.core.evidence.evidence import Citation
from inquest.core.llm.messages import Invocation, ModelReply
from inquest.core.llm.reply.contradictions import find_contradictions
from inquest.core.llm.reply.extraction import (
    MAX_LEVELS,
    NOTHING,
    Found,
    find_candidates,
    leading_json,
    objects_in,
    squeeze_key,
    trim_reply,
)
from inquest.core.llm.reply.schemas import (
    DUE_DILIGENCE,
    OUTCOME_ALIASES,
    OUTCOME_WORDS,
    ROLES,
    SEVERITIES,
    SUBMIT_NAMES,
    SUBMIT_NO_WORKFLOW,
    SUBMIT_TOOLS,
    SUBMIT_WITH_WORKFLOW,
)
from inquest.core.llm.reply.verdicts import (
    FieldProblem,
    RcaVerdict,
    Reply,
    SelectionVerdict,
    StreamVerdict,
    WorkflowChoice,
)
from inquest.core.text import abbreviate, make_visible, shorten

T = TypeVar("T")

MAX_LABELLED: Final = 500
"""Characters of a summary that is taken from prose."""
MIN_QUOTE: Final = 3
"""Characters of a quote that is no number."""

EMPTY: Final = "Empty"
NO_JSON: Final = "NoJson"
NO_FIELDS: Final = "NoRecognisedFields"


@dataclass(frozen=True)
class Reading:
    """What the reader made of one reply; no `reply` means unusable, and `failure` says how."""

    reply: Reply | None
    problems: tuple[FieldProblem, ...] = ()
    failure: str = ""
    """Empty, NoJson or NoRecognisedFields."""

    @property
    def usable(self) -> bool:
        return self.reply is not None


# --- reading -----------------------------------------------------------------------------------------


def read_verdict(invocation: Invocation, reply: ModelReply) -> Reading:
    """The first usable verdict of a reply; never raises, whatever the text."""
    readings = [_read_place(invocation, tool, text) for tool, text in _places(invocation, reply)]
    usable = next((reading for reading in readings if reading.usable), None)
    return usable or min(readings, key=lambda reading: _FAILURES.index(reading.failure))


_FAILURES: Final = (NO_FIELDS, NO_JSON, EMPTY)


def _places(invocation: Invocation, reply: ModelReply) -> list[tuple[str, str]]:
    """Where a verdict can stand: own submit tools, the other invocation's, the message."""
    own = {tool.name for tool in SUBMIT_TOOLS[invocation]}
    calls = [call for call in reply.tool_calls if call.name in SUBMIT_NAMES]
    calls.sort(key=lambda call: call.name not in own)
    return [*((call.name, call.arguments) for call in calls), ("", reply.text)]


def _read_place(invocation: Invocation, tool: str, text: str) -> Reading:
    if invocation is Invocation.SELECTION and tool == SUBMIT_NO_WORKFLOW.name:
        # A verdict of `submit_result_no_workflow`: the call itself is the statement.
        form = _Form(next(find_candidates(text), {}), [])
        reply = _verdict(form, None, (), 0, declined=True)
        _require_summary(form, reply)
        return _reading_of((reply, form.problems))
    make = _MAKERS.get(invocation) or (_offered if tool == SUBMIT_WITH_WORKFLOW.name else _told)
    first: Reading | None = None
    for found in find_candidates(text):
        reading = _reading_of(make(found))
        if reading.usable:
            return reading
        first = first or reading
    return first or Reading(None, failure=NO_JSON if trim_reply(text) else EMPTY)


Read = tuple[Reply, list[FieldProblem]]


def _reading_of(read: Read) -> Reading:
    reply, problems = read
    found = (*problems, *(() if isinstance(reply, StreamVerdict) else find_contradictions(reply)))
    return Reading(reply, found) if _is_usable(reply) else Reading(None, found, NO_FIELDS)


def _is_usable(reply: Reply) -> bool:
    """The partial guard."""
    if isinstance(reply, StreamVerdict):
        return bool(reply.hypothesis)
    if isinstance(reply, RcaVerdict):
        return bool(reply.summary)
    return reply.declined or bool(reply.summary) or reply.choice is not None


def better(old: Reading, new: Reading) -> Reading:
    """Which of two replies counts after the corrective turn: the new one if it is usable and no worse than the old."""
    if not new.usable:
        return old
    return new if not old.usable or len(new.problems) <= len(old.problems) else old


# --- keys and fields ---------------------------------------------------------


REQUIRED: Final = "is required"


@dataclass(frozen=True)
class _Form:
    """One object of a reply, its keys in any spelling; `problems` is shared by all forms of a reply."""

    found: Found
    problems: list[FieldProblem]
    path: str = ""

    def raw(self, name: str) -> Any:
        if name in self.found:
            return self.found[name]
        wanted = squeeze_key(name)
        return next((value for key, value in self.found.items() if squeeze_key(key) == wanted), None)

    def text(self, name: str) -> str:
        """A trimmed string; other types count as empty."""
        raw = self.raw(name)
        return raw.strip() if isinstance(raw, str) else ""

    def prose(self, name: str) -> str:
        """Words for people: what nobody sees is shown."""
        return make_visible(self.text(name))

    def take(self, name: str, coerce: Callable[[Any], T | None], rule: str) -> T | None:
        """A coerced value; a bad one counts as absent and is reported."""
        raw = self.raw(name)
        value = None if raw is None else coerce(raw)
        if raw is not None and value is None:
            self.report(name, raw, rule)
        return value

    def inner(self, name: str) -> _Form:
        """An object below this one; an absent one is empty."""
        found = self.take(name, _object_from, "must be an object")
        return _Form(found or {}, self.problems, self.where(name))

    def report(self, name: str, raw: Any, rule: str) -> None:
        self.problems.append(FieldProblem(self.where(name), _shown(raw), rule))

    def require(self, name: str, present: object) -> None:
        """Report a field that the schema asks for; one that was dropped is reported already."""
        path = self.where(name)
        if not present and not any(problem.path == path for problem in self.problems):
            self.problems.append(FieldProblem(path, "", REQUIRED))

    def where(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    # The fields of the schemas, each with its rule.

    def confidence(self, name: str = "confidence") -> float | None:
        return self.take(name, confidence_from, "must be a number from 0 to 1")

    def boolean(self, name: str) -> bool | None:
        return self.take(name, _boolean_from, "must be true or false")

    def severity(self) -> str:
        return self.take("severity", _word_from(SEVERITIES), f"must be one of {', '.join(SEVERITIES)}") or ""

    def outcome(self) -> str:
        rule = f"must be one of {', '.join(OUTCOME_WORDS)}"
        return self.take("investigation_outcome", _outcome_from, rule) or ""

    def texts(self, name: str) -> tuple[str, ...]:
        return self.take(name, _texts_from, "must be a list of strings") or ()

    def entries(self, name: str) -> list[Any]:
        return self.take(name, _list_from, "must be a list of objects") or []

    def target(self) -> TargetRef | None:
        form = self.inner("remediation_target")
        kind, name = form.text("kind"), form.text("name")
        if not kind and not name:
            return None
        target = _target_from(kind, name, form.text("namespace"), form.text("api_version"))
        if target is None:
            self.report("remediation_target", dict(form.found), "must have kind and name of a resource")
        return target

    def review_reason(self) -> str:
        reason = self.prose("human_review_reason")
        return "" if reason.lower() in NOTHING else reason


def _shown(raw: Any) -> str:
    try:
        text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = str(type(raw).__name__)
    return abbreviate(text, 100)


_NUMBER: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(%?)")


def confidence_from(raw: Any) -> float | None:
    """A figure from 0 to 1, or None; 95 is never guessed to be a percentage."""
    figure = _figure_in(raw) if isinstance(raw, str) else raw
    if isinstance(figure, bool) or not isinstance(figure, int | float) or not 0 <= figure <= 1:
        return None
    return float(figure)


def _figure_in(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[1]) / (100 if found[2] else 1) if found else None


def _boolean_from(raw: Any) -> bool | None:
    if isinstance(raw, str):
        return {"true": True, "false": False}.get(raw.strip().lower())
    return raw if isinstance(raw, bool) else None


def _word_from(words: Sequence[str]) -> Callable[[Any], str | None]:
    def word(raw: Any) -> str | None:
        text = raw.strip().lower() if isinstance(raw, str) else ""
        return text if text in words else None

    return word


def _outcome_from(raw: Any) -> str | None:
    text = re.sub(r"[-\s]+", "_", raw.strip().lower()) if isinstance(raw, str) else ""
    word = OUTCOME_ALIASES.get(text, text)
    return word if word in OUTCOME_WORDS else None


def _object_from(raw: Any) -> Found | None:
    """An object, or the one that a string contains; lists are never halved."""
    return None if isinstance(raw, list) else next(objects_in(raw), None)


def _list_from(raw: Any) -> list[Any] | None:
    value = _json_in(raw)
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list) else None


def _texts_from(raw: Any) -> tuple[str, ...] | None:
    value = raw if isinstance(raw, list) else _json_in(raw)
    texts = [raw] if isinstance(raw, str) and not isinstance(value, list) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return tuple(make_visible(text.strip()) for text in texts if text.strip())


def _json_in(raw: Any) -> Any:
    """What a string holds as JSON, through at most three levels; another value as it is."""
    for _ in range(MAX_LEVELS):
        if not isinstance(raw, str):
            break
        value, end = leading_json(trim_reply(raw))
        if not end:
            break
        raw = value
    return raw


def _target_from(kind: str, name: str, namespace: str, api_version: str) -> TargetRef | None:
    """A reference as far as its words go; that it exists is for a look-up to say."""
    spelled = kind[:1].upper() + kind[1:]
    try:
        return TargetRef(kind=spelled, name=name, namespace=namespace or None, api_version=api_version or None)
    except ValidationError:
        return None


# --- the two replies ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Core:
    """What both invocations say about the root cause."""

    summary: str
    severity: str
    factors: tuple[str, ...]
    target: TargetRef | None


def _core(form: _Form, cause: _Form) -> _Core:
    inner = cause.severity()
    return _Core(
        summary=cause.prose("summary") or cause.prose("rca_summary") or form.prose("rca_summary"),
        severity=form.severity() or inner,
        factors=cause.texts("contributing_factors") or form.texts("contributing_factors"),
        target=cause.target() or form.target(),
    )


def _rca(found: Found) -> Read:
    form = _Form(found, [])
    cause = form.inner("root_cause_analysis")
    core = _core(form, cause)
    where = cause.inner("cause")
    claims, dropped = _claims(cause)
    reply = RcaVerdict(
        summary=core.summary,
        severity=core.severity,
        signal_name=cause.prose("signal_name"),
        contributing_factors=core.factors,
        target=core.target,
        cause_field=make_visible(_scalar(where.raw("field"))),
        cause_value=make_visible(_scalar(where.raw("value"))),
        analysis=cause.prose("investigation_analysis"),
        causal_chain=cause.texts("causal_chain"),
        due_diligence=_diligence(cause),
        claims=claims,
        dropped_claims=dropped,
        confidence=form.confidence(),
        outcome=form.outcome(),
        actionable=form.boolean("actionable"),
        needs_review=form.boolean("needs_human_review") or False,
        review_reason=form.review_reason(),
    )
    cause.require("summary", reply.summary)
    form.require("confidence", reply.confidence is not None)
    return reply, form.problems


def _found_in_part(found: Found) -> Read:
    form = _Form(found, [])
    reply = StreamVerdict(
        hypothesis=form.prose("hypothesis"),
        signals=form.texts("signals"),
        confidence=form.confidence(),
        evidence=form.texts("evidence"),
    )
    form.require("hypothesis", reply.hypothesis)
    form.require("confidence", reply.confidence is not None)
    return reply, form.problems


_MAKERS: Final[Mapping[Invocation, Callable[[Found], Read]]] = {
    Invocation.RCA: _rca,
    Invocation.STREAM: _found_in_part,
}


def _diligence(cause: _Form) -> Mapping[str, str]:
    form = cause.inner("due_diligence")
    return {name: text for name in DUE_DILIGENCE if (text := form.prose(name))}


def _scalar(raw: Any) -> str:
    if isinstance(raw, str):
        return raw.strip()
    return _shown(raw) if isinstance(raw, bool | int | float) else ""


def _claims(cause: _Form) -> tuple[tuple[RawClaim, ...], int]:
    """Claims that can be checked, and how many were dropped."""
    entries = cause.entries("claims")
    claims = [claim for entry in entries if (claim := _claim(entry))]
    return tuple(claims), len(entries) - len(claims)


def _claim(entry: Any) -> RawClaim | None:
    form = _Form(entry if isinstance(entry, Mapping) else {}, [])
    statement, role = form.prose("statement"), re.sub(r"[-\s]+", "_", form.text("role").lower())
    cited = [_citation(item) for item in form.entries("evidence")]
    citations = tuple(citation for citation in cited if citation)
    if not statement or not citations or len(citations) < len(cited):
        return None
    return RawClaim(statement, role if role in ROLES else "contributing", citations)


def _citation(item: Any) -> Citation | None:
    form = _Form(item if isinstance(item, Mapping) else {}, [])
    found, quote = form.text("id"), _scalar(form.raw("quote"))
    return Citation(found, quote) if found and is_quote(quote) else None


def is_quote(text: str) -> bool:
    """Whether a quote says enough to be checked: three characters, or a number."""
    return len(text.strip()) >= MIN_QUOTE or _NUMBER.fullmatch(text.strip()) is not None


def _told(found: Found) -> Read:
    """A verdict of invocation 2 that came as text or through the wrong tool."""
    form, reply = _selection(found)
    _require_summary(form, reply)
    if reply.choice:
        _require_workflow(form, reply)
    return reply, form.problems


def _offered(found: Found) -> Read:
    """A verdict of `submit_result_with_workflow`."""
    form, reply = _selection(found)
    _require_summary(form, reply)
    _require_workflow(form, reply)
    return reply, form.problems


def _selection(found: Found) -> tuple[_Form, SelectionVerdict]:
    form = _Form(found, [])
    alternatives, dropped = _alternatives(form)
    return form, _verdict(form, _choice(form), alternatives, dropped, declined=False)


def _verdict(
    form: _Form,
    choice: WorkflowChoice | None,
    alternatives: tuple[WorkflowChoice, ...],
    dropped: int,
    *,
    declined: bool,
) -> SelectionVerdict:
    core = _core(form, form.inner("root_cause_analysis"))
    overall = form.confidence()
    if choice and choice.confidence is None:
        # The overall figure of the same reply stands in for a workflow's own.
        choice = replace(choice, confidence=overall)
    return SelectionVerdict(
        summary=core.summary,
        severity=core.severity,
        contributing_factors=core.factors,
        target=core.target,
        choice=choice,
        alternatives=alternatives,
        dropped_alternatives=dropped,
        reasoning=form.prose("reasoning"),
        declined=declined,
        confidence=overall,
        outcome=form.outcome(),
        actionable=form.boolean("actionable"),
        needs_review=form.boolean("needs_human_review") or False,
        review_reason=form.review_reason(),
    )


def _choice(form: _Form) -> WorkflowChoice | None:
    """The nested workflow, or the flat form; where both name one and differ the nested one counts."""
    chosen = form.inner("selected_workflow")
    flat, nested = form.text("workflow_id"), chosen.text("workflow_id")
    if flat and nested and flat != nested:
        form.report("workflow_id", flat, "contradicts selected_workflow.workflow_id")
    if nested:
        return _choice_of(chosen, "rationale")
    return _flat_choice(form) if flat else None


def _choice_of(form: _Form, rationale: str) -> WorkflowChoice:
    return WorkflowChoice(
        workflow_id=form.text("workflow_id"),
        confidence=form.confidence(),
        rationale=form.prose(rationale),
        parameters=form.take("parameters", _object_from, "must be an object") or {},
        engine=form.text("execution_engine"),
        bundle=form.text("execution_bundle"),
    )


def _flat_choice(form: _Form) -> WorkflowChoice:
    return WorkflowChoice(
        workflow_id=form.text("workflow_id"),
        confidence=None,
        rationale=form.prose("workflow_rationale"),
        parameters=form.take("parameters", _object_from, "must be an object") or {},
    )


def _alternatives(form: _Form) -> tuple[tuple[WorkflowChoice, ...], int]:
    entries = form.entries("alternative_workflows")
    forms = [
        _Form(entry if isinstance(entry, Mapping) else {}, form.problems, f"alternative_workflows[{index}]")
        for index, entry in enumerate(entries)
    ]
    kept = tuple(_choice_of(entry, "rationale") for entry in forms if entry.text("workflow_id"))
    return kept, len(entries) - len(kept)


def _require_summary(form: _Form, reply: SelectionVerdict) -> None:
    form.require("root_cause_analysis.summary", reply.summary)


def _require_workflow(form: _Form, reply: SelectionVerdict) -> None:
    """What the schema of `submit_result_with_workflow` asks for."""
    form.require("selected_workflow", reply.choice)
    form.require("confidence", reply.confidence is not None)
    if reply.choice:
        form.require("selected_workflow.confidence", reply.choice.confidence is not None)


_LABELLED: Final = re.compile(r"^[ \t#*_>-]*+root[ _-]?cause[\s*_]*+:[\s*_]*+(\S.*)$", re.IGNORECASE | re.MULTILINE)


def labelled_summary(text: str) -> str:
    """What prose says after `Root cause:`; for people only, never a verdict."""
    found = _LABELLED.search(trim_reply(text))
    return shorten(found[1].strip(" *_\r"), MAX_LABELLED) if found else ""


# --- the corrective turn -------------------------------------------------------------


_EXAMPLES: Final[Mapping[Invocation, str]] = {
    Invocation.RCA: json.dumps(
        {
            "root_cause_analysis": {
                "summary": "Deployment/api: the memory limit 128Mi of container app is too low",
                "claims": [
                    {
                        "statement": "The container was killed for memory.",
                        "role": "root_cause",
                        "evidence": [{"id": "E3", "quote": "reason: OOMKilled"}],
                    }
                ],
            },
            "confidence": 0.8,
        }
    ),
    Invocation.SELECTION: json.dumps(
        {
            "root_cause_analysis": {"summary": "Deployment/api: the memory limit of container app is too low"},
            "selected_workflow": {"workflow_id": "<id from the catalogue>", "confidence": 0.8, "parameters": {}},
            "confidence": 0.8,
        }
    ),
    Invocation.STREAM: json.dumps(
        {"signals": ["reason: OOMKilled"], "hypothesis": "app needs more memory than its limit", "confidence": 0.7}
    ),
}


_CAUSE_IS_AN_OBJECT: Final = "`root_cause_analysis` must be an object, not text. "
_SHAPES: Final = dict.fromkeys((Invocation.RCA, Invocation.SELECTION), _CAUSE_IS_AN_OBJECT)
_FAILURE_WORDS: Final[Mapping[str, str]] = {
    "": "Your answer was read, but parts of it break the schema:",
    EMPTY: "Your answer was empty.",
    NO_JSON: "Your answer holds no JSON object.",
    NO_FIELDS: "Your answer holds no verdict that can be used:",
}


def corrective_message(invocation: Invocation, reading: Reading) -> str:
    """The one user message that asks for a better answer."""
    tools = " or ".join(tool.name for tool in SUBMIT_TOOLS[invocation])
    lines = [
        _FAILURE_WORDS[reading.failure],
        *(_problem_line(problem) for problem in reading.problems),
        f"Answer now, once, by calling {tools}; no other tool is open.",
        f"{_SHAPES.get(invocation, '')}A minimal valid example:",
        _EXAMPLES[invocation],
    ]
    return "\n".join(lines)


def _problem_line(problem: FieldProblem) -> str:
    return f"- {problem.path} {problem.rule}" + (f"; found: {problem.value}" if problem.value else "")
