"""Tools about the investigation itself: stored evidence and runbooks."""

from __future__ import annotations

from inquest.errors import NotFound
from inquest.gather.tools import arguments as args
from inquest.gather.tools.context import Output, ToolContext


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
