"""The resource-context tools: owner, spec hash, labels, quota and history of an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inquest.api.refs import TargetRef
from inquest.core.cluster.context import ResourceContext
from inquest.core.history.history import UNAVAILABLE, History, history_envelope
from inquest.core.llm.tool_calls import KIND_WORDS
from inquest.errors import Unavailable
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, Place, ResourceContextOf, ToolContext
from inquest.gather.tools.kubernetes import resolve_kind
from inquest.gather.tools.render import as_json
from inquest.gather.tools.scope import check_namespace, check_word, namespace_of
from inquest.ports.datastorage import DataStorage
from inquest.ports.kubernetes import Json, TargetReader
from inquest.ports.model import Reach


async def get_namespaced_resource_context(context: ToolContext, given: args.NamespacedContext) -> Output:
    """Root owner, spec hash, labels, quota and history of a namespaced object."""
    check_word(given.kind)
    namespace = check_namespace(given.namespace or context.scope.namespace, context.scope)
    return await _context(context, given.kind, given.name, namespace)


async def get_cluster_resource_context(context: ToolContext, given: args.ClusterContext) -> Output:
    """The same of a cluster-scoped object."""
    kind = await resolve_kind(context, given.kind)
    namespace_of(kind, "", given.name, context.scope)
    return await _context(context, given.kind, given.name, "")


async def _context(context: ToolContext, kind: str, name: str, namespace: str) -> Output:
    if context.backends.context is None:
        raise Unavailable("resource context")
    place = (KIND_WORDS.get(kind.lower(), kind.lower()), name, namespace)
    found: Json = context.contexts.get(place) or await context.backends.context(kind, name, namespace)
    shown: dict[str, Any] = context.backends.redactor.data(found).value
    return Output(as_json(shown), api_fact=True)


def context_tool(target_reader: TargetReader, datastorage: DataStorage) -> ResourceContextOf:
    """What the tools ask: about the root, gaps by name, never an empty lie."""

    async def read(kind: str, name: str, namespace: str) -> Json:
        context = await target_reader.context(TargetRef(kind=kind, name=name, namespace=namespace or None))
        if context.failure:
            raise Unavailable("kubernetes", context.failure)
        known = await datastorage.history(context.root, context.spec_hash) if context.spec_hash else UNAVAILABLE
        return answer_about(context, known)

    return read


def answer_about(context: ResourceContext, known: History) -> Json:
    """All parts are about the root."""
    return {
        "root_owner": context.root.to_object(),
        "owner_chain": [ref.to_object() for ref in context.chain],
        "current_spec_hash": context.spec_hash,
        "detected_labels": context.labels.to_object(),
        "quota_details": {key: {"hard": found.hard, "used": found.used} for key, found in context.quota.items()},
        "remediation_history": history_envelope(known, context.spec_hash) if known.available else "unavailable",
        "gaps": [f"{gap.what}: {gap.why}" for gap in context.gaps],
    }


def known_answers(reach: Reach) -> Iterator[tuple[Place, Json]]:
    """What the tools would read again of each target and of its root, which differs by the chain alone."""
    for context, known in reach.contexts:
        answer = answer_about(context, known)
        yield _place(context.root), {**answer, "owner_chain": []}
        yield _place(context.target), answer


def _place(ref: TargetRef) -> Place:
    return ref.kind.lower(), ref.name, ref.namespace or ""
