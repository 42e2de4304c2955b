"""Which namespaces may keep workflows."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from inquest.settings.settings import Settings


@pytest.mark.parametrize("namespaces", [[], ["shop", "pay"]], ids=["all are read", "it is among those that are read"])
def test_workflows_are_kept_where_they_can_be_read(namespaces: list[str]) -> None:
    chosen = Settings(
        kubernetes={"namespaces": namespaces}, execution={"workflow_namespaces": ["shop", "inquest-system"]}
    )

    assert chosen.execution.workflow_namespaces == ("shop", "inquest-system")


def test_a_namespace_that_cannot_be_read_keeps_no_workflows() -> None:
    with pytest.raises(ValidationError, match=r"hall, kitchen must be among kubernetes\.namespaces"):
        Settings(kubernetes={"namespaces": ["shop"]}, execution={"workflow_namespaces": ["kitchen", "shop", "hall"]})
