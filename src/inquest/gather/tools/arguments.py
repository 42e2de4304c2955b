"""What a model may write into a tool call; the schemas that it is offered come from here.

Surplus keys are ignored and nulls count as not said. What becomes a part of a URL is refused here already unless it is
a plain name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from inquest.core.text import compile_re2
from inquest.errors import Invalid

Kind = Annotated[str, Field(min_length=1, max_length=200, description="Kind, plural or short name, such as Pod.")]
Name = Annotated[str, Field(max_length=253, pattern=r"^[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?$")]
MaybeName = Annotated[str, Field(max_length=253, pattern=r"^([A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9])?)?$")]
Namespace = Annotated[
    str,
    Field(
        max_length=63,
        pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$",
        description="Empty: the namespace of the signal.",
    ),
]
ApiVersion = Annotated[
    str,
    Field(
        max_length=200,
        pattern=r"^[A-Za-z0-9./-]*$",
        description="Such as apps/v1; needed only where several groups serve the kind.",
    ),
]
LabelSelector = Annotated[str, Field(max_length=500, pattern=r"^[A-Za-z0-9_./, =!()-]*$")]
FieldSelector = Annotated[str, Field(max_length=500, pattern=r"^[A-Za-z0-9_./, =!:\[\]-]*$")]


def _plain_or_regular(pattern: str) -> str:
    """A pattern that could run for ever on a long line is refused."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        check_pattern(pattern[1:-1])
    return pattern


Pattern = Annotated[
    str,
    Field(max_length=200, description="Substring, or a regular expression between slashes."),
    AfterValidator(_plain_or_regular),
]


def check_pattern(pattern: str) -> None:
    """A small language, and an engine that never goes back over a line; ValueError for anything else."""
    if re.search(r"\)[*+{?]|\\[1-9]|\(\?P=", pattern):
        raise ValueError("quantified groups and back references are not supported")
    if fault := compile_re2(pattern)[1]:
        raise ValueError(f"not a regular expression: {fault}")


class Arguments(BaseModel):
    """Base of all argument models."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NoArguments(Arguments):
    """No arguments."""


class OneObject(Arguments):
    """Names one object."""

    kind: Kind
    name: Name
    namespace: Namespace = ""
    api_version: ApiVersion = ""


class GetArguments(Arguments):
    """Names one object, or a list."""

    kind: Kind
    name: MaybeName = ""
    namespace: Namespace = ""
    api_version: ApiVersion = ""
    label_selector: LabelSelector = ""
    field_selector: FieldSelector = ""
    output: Literal["", "json", "yaml", "table"] = ""


class FindArguments(Arguments):
    """Looks for objects by a word."""

    kind: Kind
    keyword: Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S", description="Substring or glob.")]
    namespace: Namespace = ""


class EventArguments(Arguments):
    """Narrows events down to an object."""

    kind: Annotated[str, Field(max_length=200, description="Kind of the object that the events are about.")] = ""
    name: MaybeName = ""
    namespace: Namespace = ""
    warnings_only: bool = False


class CountArguments(Arguments):
    """Narrows a count."""

    kind: Kind
    namespace: Namespace = ""
    label_selector: LabelSelector = ""
    field_selector: FieldSelector = ""


class LogArguments(Arguments):
    """Which log, and which of its lines."""

    name: Annotated[Name, Field(description="Name of the pod.")]
    namespace: Namespace = ""
    container: Annotated[MaybeName, Field(description="Empty: all containers.")] = ""
    tail_lines: Annotated[int, Field(ge=1, le=10_000)] = 500
    since_seconds: Annotated[int, Field(ge=0, le=604_800, description="0: from the beginning.")] = 0
    grep: Pattern = ""
    exclude: Pattern = ""
    limit_bytes: Annotated[int, Field(ge=1, le=1_048_576)] = 1_048_576


class TopPods(Arguments):
    """Narrows usage figures."""

    namespace: Namespace = ""
    label_selector: LabelSelector = ""


class InNamespace(Arguments):
    """A namespace."""

    namespace: Namespace = ""


class NamespacedContext(Arguments):
    """A namespaced object."""

    kind: Kind
    name: Name
    namespace: Namespace


class ClusterContext(Arguments):
    """A cluster-scoped object."""

    kind: Kind
    name: Name


class ReadEvidence(Arguments):
    """A page of stored text."""

    id: Annotated[str, Field(pattern=r"^E[0-9]{1,6}$", description="Such as E3.")]
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=100_000)] = 20_000


class Runbook(Arguments):
    """A runbook."""

    name: Annotated[str, Field(min_length=1, max_length=200)]


Time = Annotated[str, Field(max_length=40, description="RFC 3339, or minus seconds from now, such as -3600.")]
Selector = Annotated[
    str, Field(max_length=1_000, description='A series selector such as {job="api"}; empty: all of the case.')
]
PromQL = Annotated[str, Field(min_length=1, max_length=2_000, description="PromQL; bound to the case's namespaces.")]
LogQL = Annotated[
    str,
    Field(
        min_length=1, max_length=2_000, description='LogQL, such as {app="api"} |= "error"; bound to the namespaces.'
    ),
]
MetricLabel = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
MetricName = Annotated[str, Field(max_length=300, pattern=r"^([A-Za-z_:][A-Za-z0-9_:]*)?$")]


class QueryPrometheus(Arguments):
    """A query at a moment or over a range."""

    query: PromQL
    range_minutes: Annotated[int, Field(ge=0, le=10_080, description="Above 0: a range that ends at end.")] = 0
    time: Annotated[Time, Field(description="Moment of an instant query; empty: the end of the incident, or now.")] = ""
    start: Annotated[Time, Field(description="Makes it a range.")] = ""
    end: Time = ""
    step: Annotated[str, Field(max_length=20, description="Such as 30s; empty: by the length of the range.")] = ""


class Match(Arguments):
    """Narrows discovery."""

    match: Selector = ""


class LabelValues(Match):
    """Values of a label."""

    label: MetricLabel


class MetricArguments(Arguments):
    """One metric, or all."""

    metric: Annotated[MetricName, Field(description="Empty: all of the case.")] = ""


class SeriesArguments(Arguments):
    """Label sets of a selector."""

    match: Annotated[Selector, Field(min_length=1)]
    start: Time = ""
    end: Time = ""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class QueryLoki(Arguments):
    """Log lines of a time."""

    query: LogQL
    since: Annotated[str, Field(max_length=20, description="Such as 1h or 2d; empty: since the incident began.")] = ""
    start: Time = ""
    end: Time = ""
    limit: Annotated[int, Field(ge=1, le=5_000)] = 100


class Paged(Arguments):
    """A page; what lies outside the bounds is drawn in."""

    offset: Annotated[int, AfterValidator(lambda value: max(0, value))] = 0
    limit: Annotated[int, AfterValidator(lambda value: 10 if value < 1 else min(value, 100))] = 10


class ListWorkflows(Paged):
    """Workflows of an action type."""

    action_type: Annotated[str, Field(min_length=1, max_length=200)]


class GetWorkflow(Arguments):
    """One workflow."""

    workflow_id: Annotated[str, Field(min_length=1, max_length=200)]


NOISE: Final = frozenset({"title", "$defs"})
CHECKED: Final = frozenset({"pattern", "minLength", "maxLength"})
"""What no model gets wrong in earnest: all schemas are sent on every turn, and `parse_arguments` checks each call."""
UNSAID: Final[tuple[Any, ...]] = ("", 0, False)
"""Defaults that say nothing: what is not required may be left out."""


@cache
def schema_of(model: type[Arguments]) -> dict[str, Any]:
    """JSON Schema without titles, draft, references and what tells a model nothing.

    Made once, for every step of a case asks for all of them.
    """
    whole = model.model_json_schema()
    return {"type": "object"} | _plain(whole, whole.get("$defs", {}))  # type: ignore[no-any-return]


def _plain(node: Any, defs: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(defs[node["$ref"].rpartition("/")[2]], defs)
    kept = {key: value for key, value in node.items() if key not in NOISE or not isinstance(value, str | dict)}
    kept = {key: value for key, value in kept.items() if not (key == "description" and "properties" in node)}
    inner = {"properties": _properties}
    return {key: inner.get(key, _plain)(value, defs) for key, value in kept.items()}


def _properties(found: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(_telling(schema), defs) for name, schema in found.items()}


def _telling(schema: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: value for key, value in schema.items() if key not in CHECKED}
    return {key: value for key, value in told.items() if key != "default" or value not in UNSAID}


def parse_arguments(model: type[Arguments], given: Mapping[str, Any]) -> Arguments:
    """The arguments, typed; Invalid names each path that does not fit."""
    try:
        return model.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        lines = [f"arguments.{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:8]]
        raise Invalid("; ".join(lines)) from error
