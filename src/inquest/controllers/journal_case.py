"""The case that a journal holds, kept beside the log that makes it."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from inquest.controllers.journal import Log
from inquest.core.case.case import Case
from inquest.core.case.journal import load_fact
from inquest.core.case.transitions import advance_case, fold_case
from inquest.errors import InvalidTransition, Tampered
from inquest.ports.kubernetes import Json

_CASE: Final = "case"
"""What a log remembers of it."""


def fold_journal(journal: Log) -> Case:
    """The case that a journal holds; Tampered where it is not one that this product could have written."""
    kept = journal.memory.get(_CASE)
    if isinstance(kept, Case):
        return kept
    try:
        return remember_case(journal, fold_case(load_fact(entry.payload) for entry in journal.entries))
    except (InvalidTransition, ValidationError) as error:
        raise Tampered(f"the journal makes no case: {type(error).__name__}") from error


def remember_case(journal: Log, case: Case) -> Case:
    """Keep a case beside the journal that makes it, with what was worked out from its facts."""
    journal.memory[_CASE] = case
    return case


def case_with(case: Case, payload: Json) -> Case:
    """The case with what is about to be written, as it will be read back: a slot cannot be taken back."""
    try:
        return advance_case(case, load_fact(payload))
    except (InvalidTransition, ValidationError) as error:
        raise Tampered(f"a fact that could not be read back was not written: {error}"[:500]) from error
