"""Whether a replayed case said what was expected of it, and the table over many cases.

A case is right at 1 when the first cause names a right category and a right object, at 3 when one of the first three
does; the stricter figure asks for the field too. A case that expects no cause is right when nothing is blamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from inquest.api.refs import TargetRef
from inquest.api.types import Outcome
from inquest.core.diagnosis.diagnosis import Cause

CALM: Final = frozenset({str(Outcome.PROBLEM_RESOLVED), str(Outcome.NOT_ACTIONABLE)})
"""Outcomes of a healthy control; a cause that is named beside them asks nobody to act."""
EXTERNAL: Final = "External"
BEST: Final = 3


@dataclass(frozen=True)
class WantedObject:
    """An object that a cause may name; empty parts are not compared."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""


@dataclass(frozen=True)
class WantedCause:
    """A cause as it is described; an empty part is not compared."""

    categories: tuple[str, ...] = ()
    objects: tuple[WantedObject, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expectation:
    """What `expected.yaml` says."""

    outcome: str = ""
    cause: WantedCause | None = None
    acceptable: tuple[WantedCause, ...] = ()
    """Other objects, or causes, that a careful reader would accept."""
    forbidden: tuple[WantedCause, ...] = ()
    """Causes that must not be named first."""
    action_types: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether nothing may be blamed here."""
        return self.cause is None


@dataclass(frozen=True)
class Judged:
    """How a case compares; `field` holds only where at 1 does, `outcome` also where none is expected."""

    at1: bool
    at3: bool
    field: bool
    outcome: bool

    @property
    def holds(self) -> bool:
        """Whether every expectation was met."""
        return self.at1 and self.outcome


def judge_result(expected: Expectation, causes: Sequence[Cause], outcome: str) -> Judged:
    """Hold a ranked list of causes and an outcome against what was expected."""
    is_outcome = expected.outcome in ("", outcome)
    if expected.cause is None:
        calm = not causes or outcome in CALM
        return Judged(calm, calm, calm, is_outcome)
    best = causes[:BEST]
    right = [is_right(expected, cause) for cause in best]
    at1 = bool(right) and right[0] and not any(_fits(one, best[0]) for one in expected.forbidden)
    named = at1 and (not expected.cause.fields or any(same_field(one, best[0].field) for one in expected.cause.fields))
    return Judged(at1, any(right), named, is_outcome)


def is_right(expected: Expectation, cause: Cause) -> bool:
    """Whether a cause is of a right category and names a right object."""
    wanted = expected.cause
    if wanted is None:
        return False
    if _fits(wanted, cause):
        return True
    return any(
        _is_category(other.categories or wanted.categories, cause.category) and _is_object(other.objects, cause.object)
        for other in expected.acceptable
    )


def _fits(wanted: WantedCause, cause: Cause) -> bool:
    return _is_category(wanted.categories, cause.category) and _is_object(wanted.objects, cause.object)


def _is_category(words: Sequence[str], said: str) -> bool:
    return not words or said.lower() in {word.lower() for word in words}


def _is_object(wanted: Sequence[WantedObject], said: TargetRef) -> bool:
    return not wanted or any(same_object(one, said) for one in wanted)


def same_object(wanted: WantedObject, said: TargetRef) -> bool:
    """Kinds in any case; groups where both sides name one; a host outside by its name, whatever the port."""
    if wanted.kind.lower() != said.kind.lower():
        return False
    if wanted.kind.lower() == EXTERNAL.lower():
        return _host(wanted.name) == _host(said.name)
    places = {wanted.namespace, said.namespace or ""}
    groups = {version.rpartition("/")[0] for version in (wanted.api_version, said.api_version) if version}
    return wanted.name == said.name and len(places) == 1 and len(groups) < 2


def _host(name: str) -> str:
    bare = name.lower().partition("://")[2] or name.lower()
    return re.sub(r":[0-9]{1,5}$", "", bare.partition("/")[0]).rstrip(".")


# --- fields ---------------------------------------------------------------------------------------------

_STEP: Final = re.compile(r"""\[\s*["']([^"'\]]*)["']\s*\]|\[([^\]]*)\]|((?:\\.|[^.\[\]\\])+)""")
_NAME: Final = re.compile(r"""\(?\??\(?\s*@?\.?\w+\s*={1,2}\s*["']?([^"')]*)["']?\s*\)?""")


def same_field(wanted: str, said: str) -> bool:
    """Whether two paths name one field, or `said` one inside it.

    An element is compared by its name where both sides give one; an index or a star says nothing of which.
    """
    ours, theirs = _steps(wanted), _steps(said)
    if not ours or len(ours) > len(theirs):
        return False
    return all(
        one.key == other.key and (not one.element or not other.element or one.element == other.element)
        for one, other in zip(ours, theirs, strict=False)
    )


@dataclass(frozen=True)
class _Step:
    key: str
    element: str = ""


def _steps(path: str) -> list[_Step]:
    """The keys of a path with the elements that they pick; `log` and `process` are paths of one key."""
    found: list[_Step] = []
    for quoted, picked, plain in _STEP.findall(path.strip().removeprefix("$")):
        if picked or (not quoted and not plain):
            found[-1:] = [_Step(each.key, _element(picked)) for each in found[-1:]]
        else:
            found += [_Step(key) for key in _keys(quoted or re.sub(r"\\(.)", r"\1", plain))]
    return found


def _keys(text: str) -> list[str]:
    # A key that holds dots (`app.conf`) is written with and without brackets: both come to the same steps.
    return [part.lower() for part in text.split(".") if part]


def _element(picked: str) -> str:
    hit = _NAME.fullmatch(picked.strip())
    return hit[1].lower() if hit else ""


# --- many cases -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """One replayed case as the table needs it."""

    expected: Expectation | None
    judged: Judged | None
    causes: int
    outcome: str
    reads: int

    @property
    def category(self) -> str:
        """The row it counts in."""
        if self.expected is None or self.expected.cause is None:
            return ""
        return next(iter(self.expected.cause.categories), "Unknown")

    @property
    def alarmed(self) -> bool:
        """Something is blamed where nothing is wrong."""
        return self.expected is not None and self.expected.healthy and bool(self.causes) and self.outcome not in CALM


@dataclass(frozen=True)
class Share:
    """How many of how many."""

    cases: int = 0
    at1: int = 0
    at3: int = 0
    field: int = 0

    def plus(self, judged: Judged) -> Share:
        return Share(
            self.cases + 1, self.at1 + judged.at1, self.at3 + (judged.at3 or judged.at1), self.field + judged.field
        )


@dataclass(frozen=True)
class Table:
    """Accuracy over many cases; healthy controls stand apart."""

    total: Share = Share()
    by_category: dict[str, Share] = field(default_factory=dict)
    healthy: int = 0
    alarms: int = 0
    cases: int = 0
    reads: int = 0
    told: int = 0
    """Cases of which the outcome was foretold."""
    outcomes: int = 0
    """Of those, cases that ended so."""
    unjudged: int = 0
    """Cases without an expectation: neither right nor wrong."""


def tabulate(played: Iterable[Played]) -> Table:
    """Right at 1, at 3 and with the field, by the first right category; false alarms among the healthy."""
    total, by_category = Share(), dict[str, Share]()
    healthy = alarms = cases = reads = told = outcomes = unjudged = 0
    for one in played:
        cases, reads = cases + 1, reads + one.reads
        if one.expected is None or one.judged is None:
            unjudged += 1
            continue
        if one.expected.outcome:
            told, outcomes = told + 1, outcomes + one.judged.outcome
        if one.expected.cause is None:
            healthy, alarms = healthy + one.expected.healthy, alarms + one.alarmed
            continue
        total = total.plus(one.judged)
        by_category[one.category] = by_category.get(one.category, Share()).plus(one.judged)
    return Table(total, dict(sorted(by_category.items())), healthy, alarms, cases, reads, told, outcomes, unjudged)
