"""Both conversations of the demo: the scripted model over HTTP, the loop, the tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from hack.scripted_model.server import serve
from inquest.adapters.llm.endpoint import ModelEndpoint
from inquest.adapters.llm.model import OpenAIModel
from inquest.core.diagnosis.claims import stands
from inquest.core.llm.conversation import AskModel, Concluded, Conversation, RunTools
from inquest.core.llm.loop import begin_conversation, fold, next_move
from inquest.core.llm.messages import Invocation, Message, ModelReply, ToolResult
from inquest.core.llm.reply.verdicts import RcaVerdict, SelectionVerdict
from inquest.core.redaction.redacted import seal
from inquest.core.redaction.redactor import Redactor
from inquest.core.selection.catalogue import (
    ActionOffer,
    CatalogueFilters,
    Page,
    Workflow,
    WorkflowDescription,
    WorkflowOffer,
)
from inquest.errors import NotFound
from inquest.gather.tools.context import Backends, ToolContext
from inquest.gather.tools.scope import Scope
from inquest.gather.tools.toolset import Toolset
from inquest.replay.clock import RecordedClock
from tests.unit.gather.tools.conftest import NOW, FakeCluster, deployment, event, pod

SCRIPT = Path(__file__).parents[4] / "hack/scripted_model/scripts/oom.yaml"
FILTERS = CatalogueFilters("critical", "Deployment", "production", "P0")
WHEN = WorkflowDescription("Raises a memory limit", "A container is OOMKilled")


@dataclass
class FakeCatalogue:
    """One workflow, for one action type."""

    asked: list[CatalogueFilters]

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        self.asked.append(filters)
        return Page((ActionOffer("IncreaseMemoryLimits", WHEN, 1),), offset, limit, False)

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        self.asked.append(filters)
        offers = (WorkflowOffer("5f0e-1", "increase-memory", "1.0.0", action_type, WHEN),)
        return Page(offers if action_type == "IncreaseMemoryLimits" else (), offset, limit, False)

    async def workflow(self, workflow_id: str, filters: CatalogueFilters) -> Workflow:
        self.asked.append(filters)
        if workflow_id != "5f0e-1":
            raise NotFound(f"no workflow {workflow_id!r}")
        parameters: Sequence[dict[str, Any]] = ({"name": "CONTAINER"}, {"name": "MEMORY_LIMIT"})
        return Workflow(
            "5f0e-1", "increase-memory", "1.0.0", "IncreaseMemoryLimits", "sha256:0", "Active", True, WHEN, "job",
            "r/x:1", "sha256:1", "sa", tuple(parameters), ("Deployment",), {},
        )  # fmt: skip


async def converse(
    model: OpenAIModel, tools: Toolset, context: ToolContext, inquiry: Conversation
) -> tuple[Conversation, list[ModelReply | tuple[ToolResult, ...]]]:
    kept: list[ModelReply | tuple[ToolResult, ...]] = []
    while not isinstance(move := next_move(inquiry), Concluded):
        match move:
            case AskModel():
                kept.append(move.stamp(await model.ask(seal(move.request))))
            case RunTools(runs):
                kept.append(await tools.batch(inquiry.invocation, runs, context))
        inquiry = fold(inquiry, kept[-1:])
    return inquiry, kept


def prompt(system: str, user: str) -> tuple[Message, ...]:
    return (Message("system", system), Message("user", user))


RCA_PROMPT = prompt(
    "## Incident\n- namespace: shop\n\n## Technical\n- kind: Deployment\n- resource: checkout\n",
    "Investigate: critical KubePodCrashLooping in shop — Pods of checkout restart",
)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_the_script_finds_the_limit_and_chooses_the_workflow(stream: bool) -> None:
    cluster = FakeCluster(
        [pod(), deployment(), event("one")], {("app", True): "starting\nloading price list (48 MiB)\n"}
    )
    catalogue = FakeCatalogue([])
    backends = Backends(cluster, Redactor(), RecordedClock(NOW), catalogue)  # type: ignore[arg-type]
    tools, context = Toolset(backends), ToolContext(backends, Scope("shop"), FILTERS)

    with serve(SCRIPT) as server:
        model = OpenAIModel(
            [ModelEndpoint(server.base_url, "scripted", SecretStr("x"))], clock=RecordedClock(NOW), stream=stream
        )
        rca, kept = await converse(
            model,
            tools,
            context,
            begin_conversation(
                Invocation.RCA,
                model="scripted",
                opening=RCA_PROMPT,
                tools=tools.schemas(Invocation.RCA),
                seed="00",
            ),
        )
        verdict = rca.concluded and rca.concluded.reading and rca.concluded.reading.reply
        assert isinstance(verdict, RcaVerdict)
        choice, _ = await converse(
            model,
            tools,
            context,
            begin_conversation(
                Invocation.SELECTION,
                model="scripted",
                opening=prompt(f"- RCASummary: {verdict.summary}", f"RCA findings: {verdict.summary}"),
                tools=tools.schemas(Invocation.SELECTION),
                seed="01",
                calls=rca.calls,
                first_evidence=len(context.evidence) + 1,
            ),
        )
        await model.aclose()

    assert verdict.target is not None
    assert (verdict.target.kind, verdict.target.name, verdict.target.namespace) == ("Deployment", "checkout", "shop")
    assert (verdict.cause_field, verdict.cause_value) == (
        "spec.template.spec.containers[name=app].resources.limits.memory",
        "32Mi",
    )
    cited = [citation for claim in verdict.claims for citation in claim.citations]
    assert len(cited) == 4
    assert all(stands(citation.quote, context.evidence[citation.id]) for citation in cited)
    assert any(context.evidence[citation.id].api_fact for citation in cited)
    selected = choice.concluded and choice.concluded.reading and choice.concluded.reading.reply
    assert isinstance(selected, SelectionVerdict)
    assert selected.choice is not None
    assert selected.choice.workflow_id == "5f0e-1"
    assert selected.choice.parameters == {"CONTAINER": "app", "MEMORY_LIMIT": "64Mi"}
    assert catalogue.asked == [FILTERS] * len(catalogue.asked)
    assert list(context.evidence) == [f"E{n}" for n in range(1, len(context.evidence) + 1)]
    assert choice.calls.total == 8
    begun = begin_conversation(
        Invocation.RCA, model="scripted", opening=RCA_PROMPT, tools=tools.schemas(Invocation.RCA), seed="00"
    )
    assert fold(begun, kept) == rca
