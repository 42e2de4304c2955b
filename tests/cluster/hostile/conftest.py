"""The operator, the stage and the control plane of `tests/cluster/outcomes`."""

from __future__ import annotations

from tests.cluster.outcomes.conftest import api, operator_kubeconfig, process, stage
from tests.cluster.outcomes.control_plane import cluster

__all__ = ["api", "cluster", "operator_kubeconfig", "process", "stage"]
