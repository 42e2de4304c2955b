"""Which cluster this is: read once, and unknown where it may not be read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from inquest.adapters.kubernetes.identity import ClusterIdentity
from inquest.errors import Forbidden, NotFound, Unavailable
from inquest.ports.kubernetes import Json, ResourceKind


@dataclass
class Answers:
    """A cluster that gives these answers, one after the other."""

    queue: list[Json | Exception]
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def get(self, kind: ResourceKind, name: str, namespace: str = "") -> Json:
        self.asked.append((kind.plural, name))
        answer = self.queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def identity(*answers: Json | Exception) -> tuple[ClusterIdentity, Answers]:
    cluster = Answers(list(answers))
    return ClusterIdentity(cast(Any, cluster)), cluster


def test_the_uid_of_kube_system_is_read_once() -> None:
    found, cluster = identity({"metadata": {"uid": "u-1"}})

    assert [asyncio.run(found.uid()) for _ in range(2)] == ["u-1", "u-1"]
    assert cluster.asked == [("namespaces", "kube-system")]


@pytest.mark.parametrize("error", [Forbidden("no"), NotFound("no")], ids=["forbidden", "not there"])
def test_a_cluster_that_may_not_be_read_has_no_name(error: Exception) -> None:
    found, cluster = identity(error)

    assert [asyncio.run(found.uid()) for _ in range(2)] == ["", ""]
    assert len(cluster.asked) == 1


def test_a_read_that_failed_is_tried_again_and_is_no_missing_name() -> None:
    found, _ = identity(Unavailable("kubernetes"), {"metadata": {"uid": "u-1"}})

    with pytest.raises(Unavailable):
        asyncio.run(found.uid())
    assert asyncio.run(found.uid()) == "u-1"
