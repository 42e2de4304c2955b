"""Whether a person's question may be answered from the snapshot alone.

A soft bias: the choice is a sentence in the prompt or nothing; no call is ever refused because of it. A list of named
doubts, the first that holds wins, and in doubt the model is told nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from inquest.api.types import SourceType
from inquest.core.cluster.objects import UNKNOWN_KIND
from inquest.core.diagnosis.health import Flags, flags_of
from inquest.core.evidence.snapshot import Snapshot


class Sufficiency(StrEnum):
    """How strongly a fresh and healthy snapshot is recommended."""

    OFF = "off"
    LENIENT = "lenient"
    STRICT = "strict"


class SufficiencyDoubt(StrEnum):
    """Why the model is not told that the snapshot may do; the order of the table is that of `DOUBTS`."""

    OFF = "Off"
    NO_QUESTION = "NoQuestion"
    NAMED_OBJECT = "NamedObject"
    NEEDS_TELEMETRY = "NeedsTelemetry"
    NEEDS_HISTORY = "NeedsHistory"
    WANTS_NOW = "WantsNow"
    JUST_MUTATED = "JustMutated"
    NOT_READ_ONLY = "NotReadOnly"
    NOT_LIST_SHAPED = "NotListShaped"
    INCOMPLETE = "Incomplete"
    HAS_ISSUES = "HasIssues"
    HAS_WARNINGS = "HasWarnings"
    STALE = "Stale"


@dataclass(frozen=True)
class SnapshotQuestion:
    """What was asked, of whom, and when; everything the gate may look at."""

    text: str
    source: SourceType
    target_kind: str
    """`Unknown` where the Signal names no object."""
    snapshot: Snapshot
    now: datetime
    freshness: timedelta = timedelta(seconds=30)
    mutated: bool = False
    """A change was made in this attempt."""


@dataclass(frozen=True)
class Include:
    """The sentence for the prompt."""

    text: str


@dataclass(frozen=True)
class Skip:
    """Nothing is said, and why."""

    reason: SufficiencyDoubt


def judge_sufficiency(question: SnapshotQuestion, mode: Sufficiency = Sufficiency.LENIENT) -> Include | Skip:
    """Include a sentence, or skip with the first doubt that holds."""
    if mode is Sufficiency.OFF:
        return Skip(SufficiencyDoubt.OFF)
    doubt = next((reason for reason, holds in DOUBTS if holds(question)), None)
    return Include(TEXTS[mode]) if doubt is None else Skip(doubt)


TEXTS: Final = {
    Sufficiency.LENIENT: "The snapshot is fresh, complete and healthy: prefer it for this question, and fetch if in "
    "doubt.",
    Sufficiency.STRICT: "The snapshot is fresh, complete and healthy: strongly prefer it for this question, and fetch "
    "only if in doubt.",
}

# --- words ---------------------------------------------------------------------------------------------------


def _words(*words: str) -> re.Pattern[str]:
    """Whole words only: neither "know" nor "snow" is "now"."""
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)


_TELEMETRY: Final = _words(
    "logs?", "metrics?", "cpu", "memory", "usage", "latency", "latencies", "rates?", "trends?", "trending"
)
_HISTORY: Final = _words(
    "yesterday", "today", "ago", "since", "history", "historical", "before",
    r"(?:last|past)\s+(?:\d+|(?:few\s+|couple\s+of\s+)?(?:seconds?|minutes?|mins?|hours?|days?|nights?|weeks?|months?|years?))",
)  # fmt: skip
_NOW: Final = _words("now", "right now", "currently", r"at\s+the\s+moment", r"this\s+second")
_CHANGE: Final = _words(
    *(f"{verb}(?:s|ed|ing)?" for verb in ("restart", "patch", "drain", "cordon", "fix(?:e)?")),
    r"scal(?:e|es|ed|ing)", r"deletes?|deleted|deleting", r"appl(?:y|ies|ied|ying)", r"roll(?:s|ed|ing)?\s?-?back",
    "rollback", r"creat(?:e|es|ed|ing)", "set", "sets", "setting",
)  # fmt: skip
_LIST: Final = _words(
    "list", "which", "how many", "count", "number of", "enumerate",
    r"(?:show|give|tell|get|display)\s+(?:me\s+)?(?:all|the|every|a\s+list)",
    r"what\s+(?:\w+\s+){1,3}(?:are|exist|run)",
    r"(?:is|are)\s+(?:everything|all(?:\s+\w+){0,2}|things)\s+(?:well|ok|okay|fine|healthy|good|running|up|alright)",
    r"(?:any|are there)\s+(?:problems?|issues?|errors?|warnings?)", r"health\s?check",
)  # fmt: skip
_GENERATED: Final = re.compile(r"(?<![\w-])[a-z0-9]+(?:-[a-z0-9]+)*-[a-z0-9]{5}(?![\w-])")
_KINDS: Final = (
    "pods?|deployments?|deploy|services?|svc|nodes?|statefulsets?|daemonsets?|jobs?|cronjobs?|replicasets?|configmaps?|"
    "ingress(?:es)?|namespaces?|pvcs?"
)
_REFERENCE: Final = re.compile(rf"(?<![\w/-])(?:{_KINDS})/[a-z0-9][\w.-]*", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[\"'`‘’“”][a-z0-9][a-z0-9.-]{1,252}[\"'`‘’“”]", re.IGNORECASE)
_TOKEN: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)

# --- doubts ---------------------------------------------------------------------------------------------------


def _is_no_question(question: SnapshotQuestion) -> bool:
    return question.source is not SourceType.MANUAL or not question.text.strip()


def _names_object(question: SnapshotQuestion) -> bool:
    """The target, `kind/name`, a quoted name, a generated suffix, or a name that stands in the snapshot."""
    if question.target_kind != UNKNOWN_KIND:
        return True
    forms = (_REFERENCE, _QUOTED)
    if any(form.search(question.text) for form in forms) or _has_generated_suffix(question.text):
        return True
    # Names of objects; namespaces are where one looks, not what one looks for.
    names = {
        seen.name.lower() for seen in question.snapshot.objects if seen.kind not in ("Namespace", "Event") and seen.name
    }
    return not names.isdisjoint(token.lower() for token in _TOKEN.findall(question.text))


def _has_generated_suffix(text: str) -> bool:
    """Five letters and digits after a dash, a digit among them: no word of a language looks like that."""
    return any(re.search(r"\d", hit[0].rpartition("-")[2]) for hit in _GENERATED.finditer(text.lower()))


def _says(pattern: re.Pattern[str]) -> Callable[[SnapshotQuestion], bool]:
    return lambda question: bool(pattern.search(question.text))


def _has(flag: Callable[[Flags], bool]) -> Callable[[SnapshotQuestion], bool]:
    return lambda question: flag(flags_of(question.snapshot))


def _has_any_warning(question: SnapshotQuestion) -> bool:
    """Of the whole listing: a question without an object is about all that was read."""
    return any(event.object.get("type") == "Warning" for event in question.snapshot.of_kind("Event"))


def _is_stale(question: SnapshotQuestion) -> bool:
    return question.now - question.snapshot.taken_at > question.freshness


DOUBTS: Final[tuple[tuple[SufficiencyDoubt, Callable[[SnapshotQuestion], bool]], ...]] = (
    (SufficiencyDoubt.NO_QUESTION, _is_no_question),
    (SufficiencyDoubt.NAMED_OBJECT, _names_object),
    (SufficiencyDoubt.NEEDS_TELEMETRY, _says(_TELEMETRY)),
    (SufficiencyDoubt.NEEDS_HISTORY, _says(_HISTORY)),
    (SufficiencyDoubt.WANTS_NOW, _says(_NOW)),
    (SufficiencyDoubt.JUST_MUTATED, lambda question: question.mutated),
    (SufficiencyDoubt.NOT_READ_ONLY, _says(_CHANGE)),
    (SufficiencyDoubt.NOT_LIST_SHAPED, lambda question: not _LIST.search(question.text)),
    (SufficiencyDoubt.INCOMPLETE, lambda question: not question.snapshot.complete),
    (SufficiencyDoubt.HAS_ISSUES, _has(lambda flags: bool(flags.issues) or flags.has_issues)),
    (SufficiencyDoubt.HAS_WARNINGS, _has_any_warning),
    (SufficiencyDoubt.STALE, _is_stale),
)
