"""What `inquest cleanup` takes for being in the way, and what it leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from inquest.api.execution import JOB_CLEANUP_FINALIZER
from inquest.api.names import EXECUTION_LABEL
from inquest.cli.admin.cleanup_blocks import CleanupAction, Leftovers, find_blockers, job_namespaces

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def _execution(uid: str, namespace: str, **status: Any) -> dict[str, Any]:
    meta = {"name": f"wfe-{uid}", "namespace": namespace, "uid": uid, "finalizers": [JOB_CLEANUP_FINALIZER]}
    return {"metadata": meta, "status": status}


def _job(uid: str) -> dict[str, Any]:
    return {"metadata": {"name": f"job-{uid}", "namespace": "workflows", "labels": {EXECUTION_LABEL: uid}}}


def _deeds(remains: Leftovers) -> dict[str, CleanupAction]:
    return {one.obj["metadata"]["name"]: one.deed for one in find_blockers(remains)}


def test_a_job_of_another_namespaces_case_is_not_killed_with_those_of_one() -> None:
    objects = {"workflowexecutions": [_execution("a", "shop")], "jobs": [_job("a"), _job("b")]}

    assert _deeds(Leftovers(NOW, objects, "shop")) == {"job-a": CleanupAction.DELETE_JOB, "wfe-a": CleanupAction.NONE}
    assert _deeds(Leftovers(NOW, objects))["job-b"] is CleanupAction.DELETE_JOB


def test_a_finalizer_stays_while_the_job_runs_and_goes_without_one() -> None:
    objects = {"workflowexecutions": [_execution("a", "shop"), _execution("b", "shop")], "jobs": [_job("b")]}

    assert _deeds(Leftovers(NOW, objects)) == {
        "wfe-a": CleanupAction.FREE,
        "wfe-b": CleanupAction.NONE,
        "job-b": CleanupAction.DELETE_JOB,
    }


def test_jobs_are_looked_for_wherever_an_execution_says_that_its_own_is() -> None:
    there = _execution("a", "shop", job={"namespace": "elsewhere", "name": "job-a"})

    assert job_namespaces([there, _execution("b", "shop")], "workflows") == ("elsewhere", "workflows")
