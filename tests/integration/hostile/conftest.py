"""The operator, the stage and the API server of `tests/integration/cases`."""

from __future__ import annotations

from tests.integration.cases.conftest import api, cluster, control_plane, operator_kubeconfig, process, stage

__all__ = ["api", "cluster", "control_plane", "operator_kubeconfig", "process", "stage"]
