"""The three steps of discovery: the filters are the investigation's, whatever a model writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from inquest.api.refs import DetectedLabels
from inquest.core.llm.messages import Invocation
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
from tests.unit.gather.tools.conftest import NOW, FakeCluster, run_of

FILTERS = CatalogueFilters("critical", "Deployment", "production", "P0", {"team": ("checkout",)})
RAISE = "IncreaseMemoryLimits"
WHEN = WorkflowDescription("Raises a limit", "OOMKilled", "Leaks")


@dataclass
class FakeCatalogue:
    """Three action types, one with a workflow; remembers what was asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    parameters: tuple[Mapping[str, Any], ...] | None = None

    async def actions(self, filters: CatalogueFilters, offset: int = 0, limit: int = 10) -> Page[ActionOffer]:
        self.asked.append((filters, offset, limit))
        names = ("IncreaseMemoryLimits", "RestartPod", "RollBack")[offset : offset + limit]
        return Page(tuple(ActionOffer(name, WHEN, 1) for name in names), offset, limit, offset + limit < 3)

    async def workflows(
        self, action_type: str, filters: CatalogueFilters, offset: int = 0, limit: int = 10
    ) -> Page[WorkflowOffer]:
        self.asked.append((filters, offset, limit))
        offers = (WorkflowOffer("w-1", "increase-memory", "1.0.0", action_type, WHEN, self.parameters),)
        return Page(offers if action_type == "IncreaseMemoryLimits" else (), offset, limit, False)

    async def workflow(self, workflow_id: str, filters: CatalogueFilters) -> Workflow:
        self.asked.append((filters,))
        raise NotFound(f"no workflow {workflow_id!r}")


async def step(catalogue: FakeCatalogue, name: str, filters: CatalogueFilters | None = FILTERS, /, **given: Any) -> Any:
    backends = Backends(FakeCluster(), Redactor(), RecordedClock(NOW), catalogue)  # type: ignore[arg-type]
    context = ToolContext(backends, Scope("shop"), filters, infrastructure="Target resource is stateful.")
    (result,) = await Toolset(backends).batch(Invocation.SELECTION, (run_of(name, 1, **given),), context)
    assert result.evidence is not None
    assert not result.evidence.api_fact
    return json.loads(result.evidence.text)


async def test_actions_are_shown_without_counts_or_scores() -> None:
    shown = await step(FakeCatalogue(), "list_available_actions")

    assert [offer["actionType"] for offer in shown["actionTypes"]] == ["IncreaseMemoryLimits", "RestartPod", "RollBack"]
    assert shown["actionTypes"][0]["description"] == {
        "what": "Raises a limit",
        "whenToUse": "OOMKilled",
        "whenNotToUse": "Leaks",
    }
    assert "pagination" not in shown
    assert shown["cluster_context"] == "Target resource is stateful."


@pytest.mark.parametrize(
    ("given", "asked"),
    [({"offset": -5, "limit": 0}, (0, 10)), ({"limit": 1_000}, (0, 100)), ({"offset": 2, "limit": 1}, (2, 1))],
    ids=["below", "above", "inside"],
)
async def test_pages_stay_within_bounds(given: dict[str, int], asked: tuple[int, int]) -> None:
    catalogue = FakeCatalogue()
    await step(catalogue, "list_available_actions", **given)

    assert catalogue.asked == [(FILTERS, *asked)]


async def test_a_page_says_whether_more_follows() -> None:
    first = await step(FakeCatalogue(), "list_available_actions", limit=2)
    last = await step(FakeCatalogue(), "list_available_actions", offset=2, limit=2)

    assert first["pagination"] == {"offset": 0, "limit": 2, "hasMore": True}
    assert last["pagination"] == {"offset": 2, "limit": 2, "hasMore": False}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("list_available_actions", {"severity": "low", "environment": "test", "custom_labels": {}}),
        ("list_workflows", {"action_type": "IncreaseMemoryLimits", "component": "Node"}),
        ("get_workflow", {"workflow_id": "w-1", "severity": "low"}),
    ],
    ids=["actions", "workflows", "workflow"],
)
async def test_a_model_cannot_change_the_filters(name: str, given: dict[str, Any]) -> None:
    catalogue = FakeCatalogue()
    await step(catalogue, name, **given)

    assert [asked[0] for asked in catalogue.asked] == [FILTERS]


@pytest.mark.parametrize("name", ["list_available_actions", "list_workflows", "get_workflow"])
async def test_without_context_nothing_is_listed(name: str) -> None:
    catalogue = FakeCatalogue()
    shown = await step(catalogue, name, None, action_type="x", workflow_id="x")

    assert shown["status"] == "error"
    assert catalogue.asked == []


async def test_the_list_shows_what_a_workflow_needs() -> None:
    limit = {"name": "MEMORY_LIMIT", "type": "string", "required": True, "pattern": "^[0-9]+Mi$"}
    target = {"name": "TARGET_RESOURCE_NAME", "type": "string", "required": True}
    declared = (limit, {"name": "GRACE", "type": "integer"}, target)

    (known,) = (await step(FakeCatalogue(parameters=declared), "list_workflows", action_type=RAISE))["workflows"]
    (untold,) = (await step(FakeCatalogue(), "list_workflows", action_type=RAISE))["workflows"]

    assert known["parameters"] == [
        {"name": "MEMORY_LIMIT", "type": "string", "required": True},
        {"name": "GRACE", "type": "integer", "required": False},
    ]
    assert "parameters" not in untold


async def test_an_unknown_action_type_gets_the_known_names() -> None:
    shown = await step(FakeCatalogue(), "list_workflows", action_type="Nonsense")

    assert shown["workflows"] == []
    assert "RestartPod" in shown["hint"]


async def test_an_unknown_workflow_is_an_error() -> None:
    assert (await step(FakeCatalogue(), "get_workflow", workflow_id="w-9"))["status"] == "error"


async def test_a_gitops_target_asks_for_changes_in_git() -> None:
    managed = CatalogueFilters(
        "critical", "Deployment", "production", "P0", detected_labels=DetectedLabels(git_ops_managed=True)
    )
    shown = await step(FakeCatalogue(), "list_available_actions", managed)

    assert "in git" in shown["cluster_context"]
