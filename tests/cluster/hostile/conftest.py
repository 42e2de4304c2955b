"""The operator, the stage and the control plane of `tests/cluster/outcomes`."""

from __future__ import annotations

from tests.cluster.control_plane import cluster
from tests.cluster.outcomes.conftest import api, operator_kubeconfig, process, stage

__all__ = ["api", "cluster", "operator_kubeconfig", "process", "stage"]
