"""Tools over metrics and logs of a monitoring stack.

Namespaces are the case's and are forced by the adapters. Where no time is given, the incident's window is meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from inquest.api.base import rfc3339
from inquest.core.signals.incident import LONGEST, IncidentWindow, incident_window
from inquest.errors import Invalid, NotConfigured
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, ToolContext
from inquest.gather.tools.hints import CallRefused
from inquest.gather.tools.render import as_json
from inquest.ports.kubernetes import Namespaces, SourceAnswer
from inquest.ports.sources import Metrics

PROMETHEUS: Final = "prometheus"
LOKI: Final = "loki"
METRIC_CHARACTERS: Final = 30_000
"""Of one answer of Prometheus that is shown at once."""
MOST_POINTS: Final = 11_000
"""Of one series, as Prometheus has it."""
USUAL_POINTS: Final = 240
"""Of one series where no step is given: enough to see a curve."""
STEPS: Final = (15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
"""Seconds; a step below the usual scrape interval shows nothing more."""
SERIES_BACK: Final = timedelta(hours=1)
NARROWER: Final = "Take the largest with topk, aggregate, or name more labels."


@dataclass(frozen=True)
class Range:
    """From `start` to `end`, a point every `step` seconds."""

    start: datetime
    end: datetime
    step: float


# --- times -------------------------------------------------------------------------------------------------------


def _window(context: ToolContext) -> IncidentWindow:
    now = context.backends.clock.now()
    return context.window or incident_window(None, now, now)


def moment(text: str, now: datetime, *, else_at: datetime) -> datetime:
    """RFC 3339, or minus seconds from now; never after now."""
    if not text:
        return else_at
    if re.fullmatch(r"-\d{1,9}", text):
        return now - timedelta(seconds=int(text[1:]))
    try:
        # What is finer than a clock of ours is rounded up, so that a page never skips a line.
        finer = re.search(r"(\.\d{6})(\d{1,3})", text)
        found = datetime.fromisoformat(text.replace(finer[0], finer[1]) if finer else text)
        found += timedelta(microseconds=1 if finer is not None and int(finer[2]) else 0)
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"arguments: {text!r} is no time: write 2026-11-22T10:00:00Z, or minus seconds") from error
    return min(found, now)


def _before(end: datetime, seconds: float) -> datetime:
    try:
        return end - timedelta(seconds=seconds)
    except OverflowError as error:
        raise Invalid(f"arguments: {seconds:g} s before {rfc3339(end)} is no time of the calendar") from error


SPAN: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def seconds_of(text: str) -> float:
    """A span such as `90s`, `1h30m`, `2d`; a bare number is seconds."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,3})?", text):
        return float(text)
    parts = re.findall(r"(\d{1,9})([smhdw])", text)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != text:
        raise Invalid(f"arguments: {text!r} is no span: write 30s, 5m, 1h or 2d")
    return float(sum(int(number) * SPAN[unit] for number, unit in parts))


def usual_step(start: datetime, end: datetime) -> float:
    """So wide that a series stays readable."""
    wanted = (end - start).total_seconds() / USUAL_POINTS
    return float(next((step for step in STEPS if step >= wanted), math.ceil(wanted)))


def range_of(given: args.QueryPrometheus, context: ToolContext) -> Range | None:
    """The range that is asked for; None: one moment."""
    if not given.range_minutes and not given.start:
        return None
    now, window = context.backends.clock.now(), _window(context)
    end = moment(given.end or given.time, now, else_at=window.end)
    start = moment(given.start, now, else_at=_before(end, given.range_minutes * 60))
    _check_order(start, end)
    step = seconds_of(given.step) if given.step else usual_step(start, end)
    if step <= 0:
        raise Invalid("arguments.step: must be above zero")
    length = (end - start).total_seconds()
    if length / step > MOST_POINTS:
        wider = max(usual_step(start, end), math.ceil(length / MOST_POINTS))
        raise CallRefused(
            f"a step of {step:g} s gives {math.ceil(length / step)} points, more than {MOST_POINTS}",
            f"call again with step {wider:g}s or wider",
        )
    return Range(start, end, step)


def _check_order(start: datetime, end: datetime) -> None:
    if start >= end:
        raise Invalid(f"arguments.start: {rfc3339(start)} is not before the end, {rfc3339(end)}")


# --- what is reached ---------------------------------------------------------------------------------------------


def _metrics(context: ToolContext) -> Metrics:
    if context.backends.metrics is None:
        raise NotConfigured(f"NotConfigured: {PROMETHEUS} is not configured")
    return context.backends.metrics


def _namespaces(context: ToolContext) -> Namespaces:
    return frozenset({context.scope.namespace, *context.scope.others} - {""})


EMPTY: Final = "nothing was found: what it would show is unknown, not zero"


async def _told(
    context: ToolContext, reading: SourceAnswer, *, empty: bool, said: Mapping[str, Any], **more: Any
) -> Output:
    """An answer of Prometheus in its own words, redacted by structure."""
    said_too = (*reading.notes, EMPTY) if empty else reading.notes
    notes = {"notes": list(said_too)} if said_too else {}
    whole = {"status": "success", "data": reading.data, **more, **notes}
    (shown,) = await context.redacted([whole])
    return Output(as_json(shown), empty=empty, cut=not reading.complete, resolved=said)


# --- Prometheus --------------------------------------------------------------------------------------------------


async def query_prometheus(context: ToolContext, given: args.QueryPrometheus) -> Output:
    """One moment, or a range."""
    port, namespaces, spread = _metrics(context), _namespaces(context), range_of(given, context)
    if spread is None:
        at = moment(given.time, context.backends.clock.now(), else_at=_window(context).end)
        reading, said = await port.query(given.query, namespaces, at), {"time": rfc3339(at)}
    else:
        reading = await port.query_range(given.query, namespaces, spread.start, spread.end, spread.step)
        said = {"start": rfc3339(spread.start), "end": rfc3339(spread.end), "step": f"{spread.step:g}s"}
    return await _told(context, reading, empty=not reading.data.get("result"), said=said)


async def get_metric_names(context: ToolContext, given: args.Match) -> Output:
    """Names of metrics that the case has."""
    window = _window(context)
    reading = await _metrics(context).values("__name__", given.match, _namespaces(context), window.start, window.end)
    return await _told(context, reading, empty=not reading.data, said=_seen(window))


async def get_label_values(context: ToolContext, given: args.LabelValues) -> Output:
    """Values of one label."""
    window = _window(context)
    reading = await _metrics(context).values(given.label, given.match, _namespaces(context), window.start, window.end)
    return await _told(context, reading, empty=not reading.data, said=_seen(window))


async def get_all_labels(context: ToolContext, given: args.Match) -> Output:
    """Names of labels."""
    window = _window(context)
    reading = await _metrics(context).labels(given.match, _namespaces(context), window.start, window.end)
    return await _told(context, reading, empty=not reading.data, said=_seen(window))


async def get_metric_metadata(context: ToolContext, given: args.MetricArguments) -> Output:
    """What a metric means."""
    window = _window(context)
    reading = await _metrics(context).metadata(given.metric, _namespaces(context), window.start, window.end)
    return await _told(context, reading, empty=not reading.data, said=_seen(window))


async def list_prometheus_rules(context: ToolContext, given: args.NoArguments) -> Output:
    """Rules, and which of them fire for this case."""
    reading = await _metrics(context).rules(_namespaces(context))
    return await _told(context, reading, empty=not reading.data["groups"], said={})


async def get_series(context: ToolContext, given: args.SeriesArguments) -> Output:
    """Label sets; the last hour unless told."""
    now = context.backends.clock.now()
    end = moment(given.end, now, else_at=now)
    start = moment(given.start, now, else_at=_before(end, SERIES_BACK.total_seconds()))
    _check_order(start, end)
    reading = await _metrics(context).series(given.match, _namespaces(context), start, end, given.limit)
    cut: dict[str, Any] = {}
    if len(reading.data) == given.limit:
        cut = {"_truncated": True, "_message": f"{given.limit} rows, the limit: there may be more. {NARROWER}"}
    said = {"start": rfc3339(start), "end": rfc3339(end)}
    output = await _told(context, reading, empty=not reading.data, said=said, **cut)
    return output if not cut else Output(output.text, empty=output.empty, cut=True, resolved=said)


def _seen(window: IncidentWindow) -> dict[str, str]:
    return {"start": rfc3339(window.start), "end": rfc3339(window.end)}


# --- Loki --------------------------------------------------------------------------------------------------------


async def query_loki(context: ToolContext, given: args.QueryLoki) -> Output:
    """Lines, the newest last; of a metric query its series."""
    start, end = _of_logs(given, context)
    step = usual_step(start, end)
    if context.backends.logs is None:
        raise NotConfigured(f"NotConfigured: {LOKI} is not configured")
    logs = context.backends.logs
    reading = await logs.query(given.query, _namespaces(context), start, end, limit=given.limit, step=step)
    said = {"start": rfc3339(start), "end": rfc3339(end), "limit": given.limit}
    if reading.data["resultType"] != "streams":
        return await _told(context, reading, empty=not reading.data["result"], said=said)
    streams = reading.data["result"]
    # `time {labels that differ} line`, the newest last.
    common = _common(streams)
    rows = [
        (int(value[0]), _labels(stream["stream"], common), str(value[1]))
        for stream in streams
        for value in stream["values"]
    ]
    lines = [f"{_stamp(at)} {labels}{line.rstrip()}" for at, labels, line in sorted(rows)]
    text = "\n".join([*lines, *_footer(streams, reading)])
    return Output(text, empty=not streams, cut=not reading.complete, resolved=said)


def _of_logs(given: args.QueryLoki, context: ToolContext) -> tuple[datetime, datetime]:
    now, window = context.backends.clock.now(), _window(context)
    end = moment(given.end, now, else_at=window.end)
    usual = min(window.start, _before(end, SERIES_BACK.total_seconds()))
    back = _before(end, seconds_of(given.since)) if given.since else usual
    start = moment(given.start, now, else_at=back)
    _check_order(start, end)
    if end - start > LONGEST:
        raise CallRefused(f"more than {LONGEST.days} days of logs", "ask for a shorter time, around the incident")
    return start, end


def _common(streams: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What all streams agree in, said once."""
    first: Mapping[str, str] = streams[0]["stream"] if streams else {}
    return {key: word for key, word in first.items() if all(one["stream"].get(key) == word for one in streams)}


def _labels(labels: Mapping[str, str], common: Iterable[str]) -> str:
    own = [f'{key}="{word}"' for key, word in sorted(labels.items()) if key not in common]
    return f"{{{', '.join(own)}}} " if own else ""


def _stamp(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def _footer(streams: Sequence[Mapping[str, Any]], reading: SourceAnswer) -> list[str]:
    count = sum(len(stream["values"]) for stream in streams)
    common = ", ".join(f'{key}="{word}"' for key, word in sorted(_common(streams).items()))
    head = [f"({count} lines of {len(streams)} streams" + (f", all of {{{common}}}" if common else "") + ")"]
    if not streams:
        head = ["(no lines: nothing in this time matches)"]
    if not reading.complete:
        oldest = min(int(value[0]) for stream in streams for value in stream["values"])
        head.append(f"[TRUNCATED] there may be earlier lines: call again with end={_stamp(oldest)}")
    return [*head, *(f"({note})" for note in reading.notes)]
