"""`ports.Metrics` over the recorded answers of a case: what was not asked then is NotRecorded, never an empty answer.

An answer is found by its query, or, for a plain selector, by metric and labels: then it may also be narrowed. Nothing
is computed: a rate that nobody recorded is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import re2

from inquest.adapters.monitoring.promql import canonical_promql, confine_promql, selector_of, selectors_of
from inquest.adapters.monitoring.selectors import Confinement, Matcher, Selector
from inquest.api.base import rfc3339
from inquest.errors import Declined, NotRecorded
from inquest.ports.kubernetes import Namespaces, SourceAnswer
from inquest.replay.case import RecordedCase, RecordedQuery

NAMESPACE: Final = "namespace"
LOOK_BACK: Final = timedelta(minutes=5)
"""How long a sample stands for what comes after it, as with Prometheus."""
PART: Final = "what was recorded; there may have been more"


@dataclass(frozen=True)
class RecordedSeries:
    """Labels and samples; `moment` where one instant was recorded and no range."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, str], ...]
    moment: bool

    def at(self, when: float) -> tuple[float, str] | None:
        """The sample that stands for a moment; between two samples the earlier one does."""
        before = [sample for sample in self.samples if sample[0] <= when]
        if not before:
            return None
        after = len(before) < len(self.samples)
        return before[-1] if after or when - before[-1][0] <= LOOK_BACK.total_seconds() else None


@dataclass(frozen=True)
class RecordedAnswer:
    """One recorded answer."""

    query: str
    """In canonical form; empty where it is about a metric."""
    metric: str
    labels: Mapping[str, str]
    series: tuple[RecordedSeries, ...]


class RecordedMetrics:
    """What `metrics/prometheus.yaml` of a case answers."""

    def __init__(self, case: RecordedCase) -> None:
        self._entries = tuple(_entry(one) for one in case.measured)

    async def query(self, query: str, namespaces: Namespaces, at: datetime) -> SourceAnswer:
        for found in self._answers(query, namespaces):
            samples = [(one, one.at(at.timestamp())) for one in found]
            result = [{"metric": dict(one.labels), "value": list(sample)} for one, sample in samples if sample]
            if result or not found:
                return SourceAnswer({"resultType": "vector", "result": result}, len(result) == len(found))
        raise NotRecorded(f"{query} at {rfc3339(at)} is not in the recorded case")

    async def query_range(
        self, query: str, namespaces: Namespaces, start: datetime, end: datetime, step: float
    ) -> SourceAnswer:
        for found in self._answers(query, namespaces):
            reading = _within_time([one for one in found if not one.moment], start.timestamp(), end.timestamp())
            if reading.data["result"] or not found:
                return reading
        raise NotRecorded(f"{query} from {rfc3339(start)} to {rfc3339(end)} is not in the recorded case")

    async def series(
        self, match: str, namespaces: Namespaces, start: datetime, end: datetime, limit: int
    ) -> SourceAnswer:
        found = [dict(one.labels) for one in self._of(match, namespaces)]
        return _part(found[:limit], match)

    async def values(
        self, label: str, match: str, namespaces: Namespaces, start: datetime, end: datetime
    ) -> SourceAnswer:
        labels = [one.labels for one in self._of(match, namespaces)]
        return _part(sorted({found[label] for found in labels if label in found}), label)

    async def labels(self, match: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        return _part(sorted({label for one in self._of(match, namespaces) for label in one.labels}), "labels")

    async def metadata(self, metric: str, namespaces: Namespaces, start: datetime, end: datetime) -> SourceAnswer:
        raise NotRecorded("what metrics mean is not in the recorded case")

    async def rules(self, namespaces: Namespaces) -> SourceAnswer:
        raise NotRecorded("rules are not in the recorded case")

    # --- which answer

    def _answers(self, query: str, namespaces: Namespaces) -> list[tuple[RecordedSeries, ...]]:
        """The series of each recorded answer to a query; NotRecorded where nobody asked it then."""
        confine_promql(query, Confinement(NAMESPACE, namespaces))
        asked = canonical_promql(query)
        equal = [entry for entry in self._entries if entry.query and entry.query == asked]
        found = [tuple(one for one in entry.series if _is_own(one, namespaces)) for entry in equal]
        narrowed = None if found else self._narrowed(query, namespaces)
        if not found and narrowed is None:
            raise NotRecorded(f"{query} is not in the recorded case")
        return found or [narrowed or ()]

    def _narrowed(self, query: str, namespaces: Namespaces) -> tuple[RecordedSeries, ...] | None:
        """Of a plain selector: the recorded series of its metric, if those were all that it can mean."""
        try:
            selector = selector_of(query)
        except Declined:
            return None
        for entry in self._entries:
            if entry.metric and entry.metric == selector.name and _within(entry.labels, selector, namespaces):
                kept = [one for one in entry.series if _is_own(one, namespaces)]
                wanted = [each for each in selector.matchers if each.label != "__name__"]
                return tuple(one for one in kept if all(_fits(one, each) for each in wanted))
        return None

    def _of(self, match: str, namespaces: Namespaces) -> Iterator[RecordedSeries]:
        """Every recorded series that a selector may mean; of one without a name those of all metrics."""
        selector = selector_of(match) if match else None
        for entry in self._entries:
            for name in _names(entry):
                for one in entry.series:
                    named = replace(one, labels={"__name__": name, **one.labels})
                    if _is_own(one, namespaces) and (selector is None or _suits(named, selector)):
                        yield named


# --- as they were written down ---------------------------------------------------------------------------------------


def _entry(found: RecordedQuery) -> RecordedAnswer:
    result = found.result
    rows = result.get("result") or () if isinstance(result, Mapping) else result or ()
    series = tuple(_series(row, found.labels) for row in rows if isinstance(row, Mapping))
    return RecordedAnswer(_query(found.query), found.metric, found.labels, series)


def _query(text: str) -> str:
    try:
        return canonical_promql(text)
    except Declined:
        return text.strip()


def _series(row: Mapping[str, Any], labels: Mapping[str, str]) -> RecordedSeries:
    """Labels that all series of an answer share may be left out of each."""
    own = {str(key): str(word) for key, word in (row.get("metric") or {}).items()}
    moment = "values" not in row
    samples: Sequence[Any] = [row.get("value")] if moment else row["values"]
    told = sorted((_seconds(sample[0]), str(sample[1])) for sample in samples if sample)
    return RecordedSeries({**labels, **own}, tuple(told), moment)


def _seconds(said: Any) -> float:
    """A moment as Prometheus writes it, or as people do."""
    if isinstance(said, datetime):
        return said.timestamp()
    return float(said) if isinstance(said, int | float) else datetime.fromisoformat(str(said)).timestamp()


# --- what fits -------------------------------------------------------------------------------------------------------


def _is_own(series: RecordedSeries, namespaces: Namespaces) -> bool:
    return series.labels.get(NAMESPACE) in (None, *namespaces)


def _within(labels: Mapping[str, str], selector: Selector, namespaces: Namespaces) -> bool:
    """Whether a selector asks for no more than was recorded."""
    said = {one.label: one.literal for one in selector.matchers if one.op == "="}
    if len(namespaces) == 1:
        said.setdefault(NAMESPACE, next(iter(namespaces)))
    return all(said.get(label) == word for label, word in labels.items())


def _fits(series: RecordedSeries, matcher: Matcher) -> bool:
    """Whether a matcher holds; NotRecorded where nobody wrote the label down."""
    if matcher.label not in series.labels:
        raise NotRecorded(f"label {matcher.label} is not in the recorded case")
    return _holds(series.labels[matcher.label], matcher)


def _holds(word: str, matcher: Matcher) -> bool:
    if matcher.literal is None:
        raise NotRecorded(f"a value of {matcher.label} with escapes is not read in a recorded case")
    if matcher.op in ("=", "!="):
        return (word == matcher.literal) is (matcher.op == "=")
    try:
        hit = re2.fullmatch(matcher.literal, word) is not None
    except re2.error as error:
        raise Declined(f"{matcher.literal!r} is no regular expression", "write it as RE2 has it") from error
    return hit is (matcher.op == "=~")


def _suits(series: RecordedSeries, selector: Selector) -> bool:
    if selector.metric and series.labels.get("__name__") != selector.metric:
        return False
    return all(one.label in series.labels and _holds(series.labels[one.label], one) for one in selector.matchers)


def _names(entry: RecordedAnswer) -> tuple[str, ...]:
    if entry.metric:
        return (entry.metric,)
    try:
        return tuple(dict.fromkeys(one.name for one in selectors_of(entry.query) if one.name))
    except Declined:
        return ()


def _within_time(found: Sequence[RecordedSeries], first: float, last: float) -> SourceAnswer:
    """The samples of a time; of one that was not recorded as a whole they are a part."""
    shown = [(one, [list(sample) for sample in one.samples if first <= sample[0] <= last]) for one in found]
    result = [{"metric": dict(one.labels), "values": samples} for one, samples in shown if samples]
    whole = all(_covers(one, first, last) for one in found)
    notes = () if whole else ("not all of this time was recorded",)
    return SourceAnswer({"resultType": "matrix", "result": result}, whole, notes)


def _covers(series: RecordedSeries, first: float, last: float) -> bool:
    slack = LOOK_BACK.total_seconds()
    return series.samples[0][0] <= first + slack and last <= series.samples[-1][0] + slack


def _part(found: list[Any], what: str) -> SourceAnswer:
    if not found:
        raise NotRecorded(f"{what} is not in the recorded case")
    return SourceAnswer(found, False, (PART,))
