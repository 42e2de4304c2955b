"""The Kubernetes tools of invocation 1, on `ports.Cluster` alone."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from inquest.computing import compute
from inquest.core.cluster.objects import metadata_of, spec_of, status_of, value_at
from inquest.core.cluster.pods import all_statuses, had_a_run_before
from inquest.core.text import compile_re2
from inquest.errors import InquestError, Invalid, NotFound
from inquest.gather.snapshot.newest_lines import newest_lines
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, ToolContext
from inquest.gather.tools.render import (
    EVENTS_SHOWN,
    align_columns,
    as_json,
    as_yaml,
    describe_object,
    event_rows,
    objects_table,
    sum_cores,
    sum_mebibytes,
)
from inquest.gather.tools.scope import check_kind, check_namespace, check_word, namespace_of
from inquest.ports.kubernetes import Listing, ResourceKind

LIST_ITEMS: Final = 200
LISTED_CHARACTERS: Final = 1_000_000
"""Of a list shown as JSON or YAML: so many whole objects, and at least one."""
LOG_BYTES: Final = 4 * 1024 * 1024
"""Of all containers of a pod together."""
EVENT_ITEMS: Final = 200
COUNTED: Final = 10_000
SAMPLE: Final = 10
TABLE_ROWS: Final = 500
METRICS: Final = "metrics.k8s.io/v1beta1"
NO_LOG: Final = re.compile(
    r"previous terminated container|is waiting to start|not found.*in pod|not yet|choose one of|unable to retrieve"
)


async def resolve_kind(context: ToolContext, word: str, api_version: str = "") -> ResourceKind:
    """The kind behind a word; blocked spellings are refused before discovery is asked."""
    check_word(word, context.backends.blocked)
    kind = await context.backends.cluster.kind(word.strip(), api_version)
    check_kind(kind, context.backends.blocked)
    return kind


def _withheld_note(count: int) -> str:
    return f"\nwithheld: {count} (of a kind that is never read)" if count else ""


def _said(kind: ResourceKind, namespace: str) -> dict[str, Any]:
    return {"kind": kind.kind, "namespace": namespace}


# --- objects -------------------------------------------------------------------------------------------


async def kubectl_describe(context: ToolContext, given: args.OneObject) -> Output:
    """Object, conditions in words, owner, newest events."""
    kind = await resolve_kind(context, given.kind, given.api_version)
    namespace = namespace_of(kind, given.namespace, given.name, context.scope)
    found = await context.backends.cluster.get(kind, given.name, namespace)
    events = await _events_of(context, kind.kind, given.name, namespace)
    kept, withheld = context.readable([found])
    now = context.backends.clock.now()
    texts = [await compute(describe_object, shown, events, now) for shown in await context.redacted(kept)]
    text = "\n".join(texts) + _withheld_note(withheld)
    return Output(text, api_fact=True, resolved=_said(kind, namespace))


async def _events_of(context: ToolContext, kind: str, name: str, namespace: str) -> list[dict[str, Any]] | None:
    """None: they could not be read, which is not the same as none."""
    try:
        listing = await _event_listing(context, kind, name, namespace)
    except InquestError:
        return None
    return event_rows(await context.redacted(listing.items))[:EVENTS_SHOWN]


async def _event_listing(context: ToolContext, kind: str, name: str, namespace: str) -> Listing:
    """Events of cluster-scoped objects stand in the namespace `default`."""
    event = await context.backends.cluster.kind("Event", "v1")
    fields = [f"involvedObject.{key}={value}" for key, value in (("kind", kind), ("name", name)) if value]
    listing = await context.backends.cluster.list(event, namespace or "default", fields=",".join(fields), limit=COUNTED)
    kept = [item for item in listing.items if _is_about(item, kind, name)]
    return Listing(tuple(kept), listing.complete)


def _is_about(event: Mapping[str, Any], kind: str, name: str) -> bool:
    about = event.get("involvedObject") or {}
    return kind in ("", about.get("kind")) and name in ("", about.get("name"))


async def kubectl_get(context: ToolContext, given: args.GetArguments) -> Output:
    """One object, or a list of a namespace or of a cluster-scoped kind."""
    kind = await resolve_kind(context, given.kind, given.api_version)
    namespace = namespace_of(kind, given.namespace, given.name, context.scope)
    if given.name:
        found = await context.backends.cluster.get(kind, given.name, namespace)
        kept, withheld = context.readable([found])
        shown = await context.redacted(kept)
        text = await compute(_one, shown, given.output, context) if kept else ""
        return Output(text + _withheld_note(withheld), api_fact=True, resolved=_said(kind, namespace))
    listing = await _listing(context, kind, namespace, given)
    kept, withheld = context.readable(listing.items)
    shown = await context.redacted(kept)
    text, cut = await compute(_many, shown, listing, given.output, context)
    said = _said(kind, namespace)
    return Output(text + _withheld_note(withheld), api_fact=True, empty=not listing.items, cut=cut, resolved=said)


async def kubectl_get_yaml(context: ToolContext, given: args.OneObject) -> Output:
    """The raw object."""
    asked = args.GetArguments(kind=given.kind, name=given.name, namespace=given.namespace, output="yaml")
    return await kubectl_get(context, asked.model_copy(update={"api_version": given.api_version}))


def _one(found: Sequence[Mapping[str, Any]], output: str, context: ToolContext) -> str:
    if output == "table":
        return objects_table(found, context.backends.clock.now())
    return as_json(found[0]) if output == "json" else as_yaml(found[0])


async def _listing(
    context: ToolContext, kind: ResourceKind, namespace: str, given: args.GetArguments | args.CountArguments
) -> Listing:
    limit = COUNTED if isinstance(given, args.CountArguments) else LIST_ITEMS
    labels, fields = given.label_selector, given.field_selector
    return await context.backends.cluster.list(kind, namespace, labels=labels, fields=fields, limit=limit)


def _many(items: Sequence[Mapping[str, Any]], listing: Listing, output: str, context: ToolContext) -> tuple[str, bool]:
    """The list, and whether it was cut, which it says; then what is not in it proves nothing."""
    cut = not listing.complete
    if output in ("json", "yaml"):
        ends = accumulate(len(as_json(item)) for item in items)
        shown = [
            item for at, (item, end) in enumerate(zip(items, ends, strict=True)) if at == 0 or end <= LISTED_CHARACTERS
        ]
        cut = cut or len(shown) < len(items)
        whole = {"items": shown, "total": len(items), "truncated": cut}
        return (as_json(whole) if output == "json" else as_yaml(whole)), cut
    more = " (cut: there are more, narrow it down with a selector)" if cut else ""
    return f"{objects_table(items, context.backends.clock.now())}\ntotal: {len(items)}{more}", cut


async def kubectl_find_resource(context: ToolContext, given: args.FindArguments) -> Output:
    """Substring or glob over name, namespace and labels."""
    kind = await resolve_kind(context, given.kind)
    namespace = namespace_of(kind, given.namespace, "", context.scope)
    listing = await context.backends.cluster.list(kind, namespace, limit=COUNTED)
    kept, withheld = context.readable(listing.items)
    found = [item for item in kept if _matches(item, given.keyword.strip().lower())]
    rows = [_found_row(item) for item in await context.redacted(found[:LIST_ITEMS])]
    cut = not listing.complete or len(found) > LIST_ITEMS
    text = as_json(rows) + _cut_note(cut) + _withheld_note(withheld)
    return Output(text, True, not rows, cut, _said(kind, namespace))


def _matches(item: Mapping[str, Any], keyword: str) -> bool:
    metadata = metadata_of(item)
    labels = [f"{key}={value}" for key, value in (metadata.get("labels") or {}).items()]
    texts = [str(text).lower() for text in (metadata.get("name"), metadata.get("namespace") or "", *labels)]
    return any(keyword in text or fnmatch.fnmatchcase(text, keyword) for text in texts)


def _found_row(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = metadata_of(item)
    return {"kind": item.get("kind")} | {key: metadata.get(key) for key in ("namespace", "name", "labels")}


def _cut_note(cut: bool) -> str:
    return "\n[TRUNCATED] there are more; narrow it down" if cut else ""


async def kubectl_events(context: ToolContext, given: args.EventArguments) -> Output:
    """Events whose object agrees in kind and name, newest first."""
    kind = await resolve_kind(context, given.kind) if given.kind else None
    namespace = (
        namespace_of(kind, given.namespace, given.name, context.scope) if kind else _own(context, given.namespace)
    )
    listing = await _event_listing(context, kind.kind if kind else "", given.name, namespace)
    items = [item for item in listing.items if not given.warnings_only or item.get("type") == "Warning"]
    rows = event_rows(await context.redacted(items))
    cut = not listing.complete or len(rows) > EVENT_ITEMS
    text = "[" + ",\n".join(as_json(row) for row in rows[:EVENT_ITEMS]) + "]" + _cut_note(cut)
    said = {"namespace": namespace} | ({"kind": kind.kind} if kind else {})
    return Output(text, empty=not rows, cut=cut, resolved=said)


def _own(context: ToolContext, namespace: str) -> str:
    return check_namespace(namespace or context.scope.namespace, context.scope)


async def kubectl_count(context: ToolContext, given: args.CountArguments) -> Output:
    """How many, and ten names."""
    kind = await resolve_kind(context, given.kind)
    namespace = namespace_of(kind, given.namespace, "", context.scope)
    listing = await _listing(context, kind, namespace, given)
    kept, withheld = context.readable(listing.items)
    names = [str(metadata_of(item).get("name")) for item in kept[:SAMPLE]]
    counted = {"count": len(kept), "capped": not listing.complete, "sample": names}
    said = _said(kind, namespace)
    return Output(as_json(counted) + _withheld_note(withheld), True, not listing.items, not listing.complete, said)


# --- logs ------------------------------------------------------------------------------------------------


async def kubectl_logs(context: ToolContext, given: args.LogArguments) -> Output:
    """The log of the present run."""
    return await _logs(context, given, previous=False)


async def kubectl_previous_logs(context: ToolContext, given: args.LogArguments) -> Output:
    """The log of the run before."""
    return await _logs(context, given, previous=True)


async def _logs(context: ToolContext, given: args.LogArguments, *, previous: bool) -> Output:
    namespace = _own(context, given.namespace)
    pod = await context.backends.cluster.get(await context.backends.cluster.kind("Pod", "v1"), given.name, namespace)
    if not spec_of(pod).get("nodeName"):
        # The API server answers with an empty text: nothing has run that could have written one.
        return Output("(no logs available: the pod has no node yet)", empty=True, resolved={"namespace": namespace})
    containers = [given.container] if given.container else _containers(pod)
    limit_bytes = min(given.limit_bytes, LOG_BYTES // max(1, len(containers)))
    never = _never_restarted(pod) if previous else frozenset()
    texts = [
        NoLog(f"{container}: it was not restarted, so there is no run before this one")
        if container in never
        else await _log(context, given, namespace, container, limit_bytes, previous=previous)
        for container in containers
    ]
    if lost := _lost(texts):
        raise lost
    lines, absent = await compute(_joined, containers, texts, given)
    said: dict[str, Any] = {"namespace": namespace}
    if not lines:
        reasons = "; ".join(absent) or "nothing was written, or nothing matches the filters"
        return Output(f"(no logs available: {reasons})", empty=True, resolved=said)
    cut = any(text[1] for text in texts if not isinstance(text, NoLog))
    filters = [f"{name}={value}" for name, value in (("grep", given.grep), ("exclude", given.exclude)) if value]
    parts = [f"containers: {', '.join(containers)}", f"lines: {len(lines)}", f"tail: {given.tail_lines}"]
    parts += [f"filters: {', '.join(filters)}"] if filters else []
    parts += [f"no log: {'; '.join(absent)}"] if absent else []
    footer = f"({'; '.join(parts)})"
    return Output("\n".join([*lines, footer]), cut=cut, resolved=said)


def _containers(pod: Mapping[str, Any]) -> list[str]:
    """Init containers that did not end well come first: then they are why nothing else ran."""
    status, spec = status_of(pod), spec_of(pod)
    stuck = [str(one["name"]) for one in status.get("initContainerStatuses") or () if not one.get("ready")]
    return stuck + [str(one["name"]) for one in spec.get("containers") or ()]


async def _log(
    context: ToolContext, given: args.LogArguments, namespace: str, container: str, limit_bytes: int, *, previous: bool
) -> tuple[str, bool] | NoLog:
    try:
        return await newest_lines(
            context.backends.cluster,
            namespace,
            given.name,
            container,
            previous=previous,
            tail_lines=given.tail_lines,
            since_seconds=given.since_seconds or None,
            limit_bytes=limit_bytes,
        )
    except (Invalid, NotFound) as error:
        if NO_LOG.search(str(error)):
            # Asked of the run before, this container had one: what it wrote is gone, which nobody may take for silence.
            return NoLog(f"{container}: {error}", error if previous else None)
        raise


def _never_restarted(pod: Mapping[str, Any]) -> frozenset[str]:
    """Containers of which the status says that there was no run before."""
    return frozenset(str(one.get("name")) for one in all_statuses(status_of(pod)) if not had_a_run_before(one))


def _lost(texts: Sequence[tuple[str, bool] | NoLog]) -> InquestError | None:
    """Why a log that was written cannot be shown, where no other can either."""
    if any(not isinstance(text, NoLog) for text in texts):
        return None
    return next((text.lost for text in texts if isinstance(text, NoLog) and text.lost), None)


class NoLog:
    """Why a container has no such log; an answer, unless one was written and is `lost`."""

    def __init__(self, why: str, lost: InquestError | None = None) -> None:
        self.why, self.lost = why, lost


def _joined(
    containers: list[str], texts: Sequence[tuple[str, bool] | NoLog], given: args.LogArguments
) -> tuple[list[str], list[str]]:
    keep = _line_filter(given)
    absent = [text.why for text in texts if isinstance(text, NoLog)]
    lines: list[str] = []
    for container, text in zip(containers, texts, strict=True):
        prefix = f"[{container}] " if len(containers) > 1 else ""
        said = "" if isinstance(text, NoLog) else text[0]
        lines += [prefix + line for line in said.splitlines() if keep(line)]
    return lines, absent


def _line_filter(given: args.LogArguments) -> Callable[[str], bool]:
    wanted, unwanted = _matcher(given.grep), _matcher(given.exclude)
    return lambda line: (not given.grep or wanted(line)) and not (given.exclude and unwanted(line))


def _matcher(pattern: str) -> Callable[[str], bool]:
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        expression, _ = compile_re2(pattern[1:-1])
        return lambda line: expression.search(line[:4_000].encode(errors="replace").decode()) is not None
    return lambda line: pattern in line


# --- usage -----------------------------------------------------------------------------------------------


async def kubectl_top_pods(context: ToolContext, given: args.TopPods) -> Output:
    """CPU and memory of pods, containers summed."""
    namespace = _own(context, given.namespace)
    kind = await context.backends.cluster.kind("PodMetrics", METRICS)
    listing = await context.backends.cluster.list(kind, namespace, labels=given.label_selector, limit=TABLE_ROWS)
    rows = [_usage_row(item, item.get("containers") or ()) for item in listing.items]
    return _usage_table(["NAMESPACE", "NAME", "CPU", "MEMORY"], rows, listing, {"namespace": namespace})


async def kubectl_top_nodes(context: ToolContext, given: args.NoArguments) -> Output:
    """CPU and memory of nodes."""
    kind = await context.backends.cluster.kind("NodeMetrics", METRICS)
    listing = await context.backends.cluster.list(kind, "", limit=TABLE_ROWS)
    rows = [_usage_row(item, [item])[1:] for item in listing.items]
    return _usage_table(["NAME", "CPU", "MEMORY"], rows, listing, {})


def _usage_row(item: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> list[str]:
    metadata = metadata_of(item)
    usages = [part.get("usage") or {} for part in parts]
    figures = [sum_cores(usage.get("cpu") for usage in usages), sum_mebibytes(usage.get("memory") for usage in usages)]
    return [str(metadata.get("namespace")), str(metadata.get("name")), *figures]


def _usage_table(head: list[str], rows: list[list[str]], listing: Listing, said: dict[str, Any]) -> Output:
    text = align_columns([head, *rows]) if rows else "no figures: unknown, not zero"
    return Output(text + _cut_note(not listing.complete), True, not rows, not listing.complete, said)


async def kubectl_memory_requests(context: ToolContext, given: args.InNamespace) -> Output:
    """Memory requests of pods, largest first."""
    namespace = _own(context, given.namespace)
    kind = await context.backends.cluster.kind("Pod", "v1")
    listing = await context.backends.cluster.list(kind, namespace, limit=TABLE_ROWS)
    rows = sorted((_request_row(item) for item in listing.items), key=lambda row: (-int(row[2][:-2]), row[1]))
    return _usage_table(["NAMESPACE", "NAME", "MEMORY REQUESTS"], rows, listing, {"namespace": namespace})


def _request_row(pod: Mapping[str, Any]) -> list[str]:
    metadata, containers = metadata_of(pod), spec_of(pod).get("containers") or ()
    requests = [value_at(one, "resources", "requests").get("memory") for one in containers]
    return [str(metadata.get("namespace")), str(metadata.get("name")), sum_mebibytes(filter(None, requests))]
