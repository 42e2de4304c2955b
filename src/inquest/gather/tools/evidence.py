"""Tools about the investigation itself: stored evidence, runbooks, resource context."""

from __future__ import annotations

from typing import Any

from inquest.core.llm.tool_calls import KIND_WORDS
from inquest.errors import NotFound, Unavailable
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, ToolContext
from inquest.gather.tools.kubernetes import resolve_kind
from inquest.gather.tools.render import as_json
from inquest.gather.tools.scope import check_namespace, check_word, namespace_of
from inquest.ports.kubernetes import Json


async def read_evidence(context: ToolContext, given: args.ReadEvidence) -> Output:
    """A page of a stored text, which is redacted already."""
    found = context.evidence.get(given.id)
    if found is None:
        raise NotFound(f"there is no evidence {given.id}; the last one is E{len(context.evidence)}")
    page = found.text[given.offset : given.offset + given.limit]
    end = given.offset + len(page)
    more = f'\n({found.size - end} characters follow: read_evidence("{given.id}", offset={end}))' if page else ""
    text = page + (more if end < found.size else "")
    return Output(text or "(nothing at this offset)", api_fact=found.api_fact, empty=not page)


async def get_runbook(context: ToolContext, given: args.Runbook) -> Output:
    """The text of a playbook."""
    if given.name not in context.backends.runbooks:
        raise NotFound(f"no runbook {given.name!r}; there are: {', '.join(sorted(context.backends.runbooks))}")
    return Output(context.backends.runbooks[given.name])


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
