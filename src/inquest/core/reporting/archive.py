"""A case as it can be kept and played once more: its facts in pieces, and the steps that they answer.

Everything that came from outside (the model's replies, what tools and the catalogue said, the snapshot) is taken from
the recorded facts; everything that code concluded is concluded anew. A step to which the recording has no answer means
that the code now goes another way than it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from inquest.core.case import decide, facts
from inquest.core.case.case import Case
from inquest.core.case.facts import Fact
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.steps import (
    AskPolicy,
    BeginCase,
    BindProposal,
    CallModel,
    ChooseByCode,
    Execute,
    MoveStreams,
    Observed,
    RecheckTarget,
    RecordFact,
    RequestApproval,
    ResolveContext,
    RunToolBatch,
    Step,
    TakeSnapshot,
    ValidateSelection,
    Wait,
)
from inquest.core.case.transitions import advance_case, fold_case
from inquest.core.diagnosis.detectors.registry import examine
from inquest.core.diagnosis.health import health_of
from inquest.core.llm.messages import Invocation
from inquest.core.reporting.audit import AGENT, OWN, AuditRecord, event_id
from inquest.core.reporting.transcript import NO_TOOLS, Offered
from inquest.core.selection import selection
from inquest.errors import NotRecorded

FACT: Final = f"{OWN}case.fact"
PIECE: Final = 500_000
"""Characters of JSON after which the objects of a snapshot go on in another record."""
AFTER: Final = (AskPolicy, Wait, RequestApproval, Execute)
"""Steps that no replay takes."""


# --- kept -------------------------------------------------------------------------------------------------


def fact_records(case: Case, uid: str) -> Iterator[AuditRecord]:
    """The facts up to the choice of a workflow, as records; a snapshot's objects in as many as they need."""
    for number, fact in enumerate(case.facts):
        payloads = list(_parts(dump_fact(fact)))
        for part, payload in enumerate(payloads, start=1):
            step = f"fact:{number}:{part}"
            head = {"event_type": FACT, "event_id": event_id(uid, step), "incident_id": uid}
            body = {"fact": number, "part": part, "parts": len(payloads), "payload": payload}
            yield AuditRecord(step, FACT, AGENT, "case_fact", "success", moment_of(fact, case), head | body)


def case_from_records(found: Iterable[Mapping[str, Any]]) -> Case:
    """The case that these records make, in any order; NotRecorded where one is missing."""
    numbered = sorted(
        (one for one in found if one.get("event_type") == FACT), key=lambda one: (one["fact"], one["part"])
    )
    payloads: dict[int, dict[str, Any]] = {}
    for one in numbered:
        known = payloads.setdefault(one["fact"], one["payload"])
        if known is not one["payload"]:
            known["body"]["snapshot"]["objects"] += one["payload"]["objects"]
    if not numbered:
        raise NotRecorded("nothing is stored of this investigation")
    whole = sum(one["parts"] for one in numbered if one["part"] == 1)
    if whole != len(numbered) or sorted(payloads) != list(range(len(payloads))):
        raise NotRecorded("what is stored of this investigation is not whole, so it cannot be made again")
    return fold_case(load_fact(payload) for _, payload in sorted(payloads.items()))


def _parts(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    snapshot = payload["body"].get("snapshot")
    if not isinstance(snapshot, dict):
        yield payload
        return
    first, *others = list(_portions(snapshot["objects"])) or [[]]
    yield {**payload, "body": {**payload["body"], "snapshot": {**snapshot, "objects": first}}}
    yield from ({"objects": portion} for portion in others)


def _portions(objects: Sequence[Any]) -> Iterator[list[Any]]:
    portion: list[Any] = []
    size = 0
    for one in objects:
        own = len(json.dumps(one, ensure_ascii=False))
        if portion and size + own > PIECE:
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += own
    if portion:
        yield portion


def moment_of(fact: Fact, case: Case) -> datetime:
    """When a fact was written down, as far as it says so."""
    if isinstance(fact, facts.SnapshotTaken):
        return fact.snapshot.taken_at
    found = getattr(fact, "at", None)
    return found if isinstance(found, datetime) else case.opened.at


# --- played once more ---------------------------------------------------------------------------------------


def replay_case(recorded: Case, tools: Offered = NO_TOOLS) -> Case:
    """The case as code would conclude it now; NotRecorded where it asks for what nobody was asked then.

    `tools` are those that the second invocation was offered; the first one's stand in its brief.
    """
    tape = _Tape(recorded, tools)
    case = Case()
    while case.closed is None:
        step = decide.next_step(case, tape.view())
        if isinstance(step, AFTER):
            break
        case = advance_case(case, tape.answer(step))
    return case


class _Tape:
    """The recorded answers in order."""

    def __init__(self, recorded: Case, tools: Offered) -> None:
        self._recorded = recorded
        self._facts = [fact for fact in recorded.facts if isinstance(fact, (*_ANSWERS_OF_ALL, facts.Closed))]
        briefed = recorded.first(facts.Prepared)
        self._tools = {**NO_TOOLS, **tools} | ({Invocation.RCA: briefed.brief.tools} if briefed else {})

    def view(self) -> Observed:
        """As it was just before the next answer."""
        upcoming = self._facts[0] if self._facts else self._recorded.facts[-1]
        return Observed(now=moment_of(upcoming, self._recorded), tools=self._tools)

    def answer(self, step: Step) -> Fact:
        """The next answer, where it is one to this step."""
        if isinstance(step, RecordFact):
            self._pass_over(step.fact)
            return step.fact
        upcoming = self._facts.pop(0) if self._facts else None
        if upcoming is None or not isinstance(upcoming, (*_ANSWERS[type(step)], facts.Closed)):
            given = type(upcoming).__name__ if upcoming else "nothing more"
            raise NotRecorded(f"the recording goes another way: {type(step).__name__} was asked, it has {given}")
        return _anew(upcoming, step)

    def _pass_over(self, fact: Fact) -> None:
        """What code wrote down by itself then is no answer to anything now."""
        if self._facts and type(self._facts[0]) is type(fact):
            self._facts.pop(0)


def _anew(fact: Fact, step: Step) -> Fact:
    """What code has to say about an answer, said by the code of now."""
    match fact, step:
        case facts.SnapshotTaken(), _:
            (findings, observations), _failed = examine(fact.snapshot)
            return facts.SnapshotTaken(fact.snapshot, findings, health_of(fact.snapshot), observations)
        case facts.SelectionTried(), ValidateSelection():
            record = fact.validation.record
            checked = (
                selection.validate_selection(step.reply.choice, record, step.target_kind) if record else fact.validation
            )
            return replace(fact, number=step.number, reply=step.reply, validation=checked, cautions=step.cautions)
        case facts.Proposed(), BindProposal():
            return replace(fact, verdict=step.verdict)
        case _:
            return fact


_ANSWERS: Final[Mapping[type, tuple[type[Fact], ...]]] = {
    BeginCase: (facts.Opened,),
    TakeSnapshot: (facts.SnapshotTaken,),
    ResolveContext: (facts.ContextResolved,),
    CallModel: (facts.RcaReplied, facts.SelectionReplied),
    RunToolBatch: (facts.ToolsRan,),
    MoveStreams: (facts.StreamsMoved,),
    RecheckTarget: (facts.TargetRechecked,),
    ChooseByCode: (facts.SelectionTried, facts.NothingSelected),
    ValidateSelection: (facts.SelectionTried,),
    BindProposal: (facts.Proposed,),
}
"""Which facts can answer a step."""
_ANSWERS_OF_ALL: Final = tuple(dict.fromkeys(kind for kinds in _ANSWERS.values() for kind in kinds))
