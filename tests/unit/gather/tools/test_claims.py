"""The claim checker knows what every tool of invocation 1 gives: a tool without a row here fails (behaviours, 13.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inquest.api.findings import ClaimVerdict
from inquest.core.diagnosis.claims import NOTES, RawClaim, check_claims
from inquest.core.evidence.evidence import Citation, Evidence, EvidenceStatus, digest_of
from inquest.core.llm.messages import Invocation
from inquest.gather.tools.toolset import REGISTRY, Toolset
from inquest.ports.kubernetes import Json, SourceAnswer
from tests.unit.gather.tools.conftest import NOW, Bench, deployment, event, pod

Make = Callable[..., Bench]
POD = "checkout-6d5f7c9b8-x2x4q"
USAGE: Json = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "metadata": {"name": POD, "namespace": "shop"},
    "containers": [{"name": "app", "usage": {"cpu": "10m", "memory": "31Mi"}}],
}
PODS_USE: Json = {**USAGE, "kind": "PodMetrics"}
NODES_USE: Json = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "kind": "NodeMetrics",
    "metadata": {"name": "worker-1"},
    "usage": {"cpu": "100m", "memory": "900Mi"},
}
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "worker-1"},
    "status": {"capacity": {"cpu": "4"}},
}

CITED: dict[str, dict[str, Any]] = {
    "kubectl_describe": {"kind": "Pod", "name": POD},
    "kubectl_get": {"kind": "Pod"},
    "kubectl_get_yaml": {"kind": "Pod", "name": POD},
    "kubectl_find_resource": {"kind": "Pod", "keyword": "checkout"},
    "kubectl_events": {},
    "kubectl_count": {"kind": "Pod"},
    "kubectl_logs": {"name": POD},
    "kubectl_previous_logs": {"name": POD},
    "kubectl_top_pods": {},
    "kubectl_top_nodes": {},
    "kubectl_memory_requests": {},
    "get_namespaced_resource_context": {"kind": "Deployment", "name": "checkout", "namespace": "shop"},
    "get_cluster_resource_context": {"kind": "Node", "name": "worker-1"},
    "query_prometheus": {"query": "up"},
    "get_metric_names": {},
    "get_label_values": {"label": "pod"},
    "get_all_labels": {},
    "get_metric_metadata": {},
    "list_prometheus_rules": {},
    "get_series": {"match": "up"},
    "query_loki": {"query": '{app="checkout"}'},
    "read_evidence": {"id": "E90"},
    "get_runbook": {"name": "OOM"},
}


class Measured:
    """Prometheus and Loki of one series and one line."""

    async def query(self, *_: Any, **asked: Any) -> SourceAnswer:
        told: Any = [{"metric": {"pod": POD}, "value": [1795348800, "0"]}]
        line: Any = [{"stream": {"pod": POD}, "values": [["1795348800000000000", "out of memory"]]}]
        kind, result = ("streams", line) if asked else ("vector", told)
        return SourceAnswer({"resultType": kind, "result": result})

    async def rules(self, *_: Any) -> SourceAnswer:
        return SourceAnswer({"groups": [{"name": "shop", "rules": [{"name": "PodDown", "state": "firing"}]}]})

    async def metadata(self, *_: Any) -> SourceAnswer:
        return SourceAnswer({"up": [{"type": "gauge", "help": "Whether the target answers."}]})

    async def values(self, *_: Any) -> SourceAnswer:
        return SourceAnswer([POD])

    labels = series = values


async def _context(kind: str, name: str, namespace: str) -> Json:
    return {"root_owner": {"kind": kind, "name": name}, "current_spec_hash": "sha256:0"}


def test_every_tool_has_a_row() -> None:
    assert set(CITED) == set(REGISTRY[Invocation.RCA])
    assert set(CITED) > NOTES


@pytest.mark.parametrize("tool", CITED, ids=[f"T45 {tool}" for tool in CITED])
async def test_a_line_of_what_a_tool_gave_supports_a_claim(bench: Make, tool: str) -> None:
    objects = (pod(), event("e-1"), deployment(), PODS_USE, NODES_USE, NODE)
    made = bench(*objects, texts={("app", False): "out of memory\n", ("app", True): "killed by the kernel\n"})
    made = _with_everything(made)
    stored = Evidence("E90", "kubectl_get", {}, "reason: OOMKilled", digest_of("x"), EvidenceStatus.OK, NOW)
    made.context.evidence["E90"] = stored

    result = await made(tool, **CITED[tool])

    assert result.evidence is not None
    line = max(result.evidence.text.splitlines(), key=len)
    claims = [RawClaim("s", "root_cause", (Citation(result.evidence.id, line),))]
    checked = check_claims(claims, [stored, result.evidence])
    expected = ClaimVerdict.UNSUPPORTED if tool in NOTES else ClaimVerdict.SUPPORTED
    assert [claim.verdict for claim in checked.claims] == [expected]


def _with_everything(made: Bench) -> Bench:
    runbooks = {"OOM": "Look at the limit first."}
    measured: Any = Measured()
    backends = replace(made.context.backends, context=_context, runbooks=runbooks, metrics=measured, logs=measured)
    made.context = replace(made.context, backends=backends)
    return replace(made, tools=Toolset(backends))
