"""What came out of a case: all that a person, another program or a model is told of it, as plain JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any

from pydantic import BaseModel

from inquest.core.case.case import Case
from inquest.core.case.journal import dump_fact
from inquest.core.case.transitions import fold_case
from inquest.core.llm.messages import ModelRequest
from inquest.core.reporting.audit import audit_records
from inquest.core.reporting.disclosure import origins_of_conclusions
from inquest.core.reporting.events import case_events
from inquest.core.reporting.metrics import case_measures, case_spans, log_lines
from inquest.core.reporting.notices import notice_or_self_resolved
from inquest.core.reporting.status import status_changes
from inquest.core.reporting.transcript import NO_TOOLS, Offered, transcript_turns
from inquest.presentation.case import CaseObjects
from inquest.presentation.drawing import as_markdown, as_tree
from inquest.presentation.explanation import explanation_of
from inquest.presentation.tree import case_tree
from inquest.replay.player import recorded_investigation

DIGITS = 16
"""Of a digest."""
UID = "11111111-0000-4000-8000-000000000001"


def output_of(case: Case, *, tools: Offered = NO_TOOLS, asked: Sequence[ModelRequest] = ()) -> dict[str, Any]:
    """Everything that is said of a case; `asked` is what its model was sent."""
    steps = [fold_case(case.facts[:number]) for number in range(len(case.facts) + 1)]
    told = CaseObjects(recorded_investigation(case))
    return {
        "facts": [dump_fact(fact) for fact in case.facts],
        "phases": [str(step.phase) for step in steps],
        "status": status_changes(case, tools),
        "tree": as_tree(case_tree(told)),
        "explanation": as_markdown("case", explanation_of(told)),
        "events": [[*case_events(step)] for step in steps[1:]],
        "notices": [notice_or_self_resolved(step) for step in steps[1:]],
        "audit": audit_records(case, UID, {}, tools),
        "measures": [[*case_measures(step, tools), *log_lines(step, tools)] for step in steps[1:]],
        "spans": [[*case_spans(step, UID)] for step in steps[1:]],
        "origins": origins_of_conclusions(case),
        "exchanges": transcript_turns(case, tools),
        "prompts": asked,
    }


def text_of(output: Any) -> str:
    """The same output gives the same text."""
    return json.dumps(plain(output), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def plain(value: Any) -> Any:
    """JSON of a value; classes are not named, their fields are."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return str(value.value)
        case str():
            return value
        case BaseModel():
            return value.model_dump(mode="json")
        case Mapping():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case Set():
            return sorted(plain(each) for each in value)
        case Sequence():
            return [plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        case _:
            return str(value)
