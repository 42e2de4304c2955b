"""What the cases leave unused: a release with every way in open, whose model looks at every kind, and that keeps none.

A model may look at whatever an investigation may read, so that it is a model that shows those rights in use; here it
is a script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from hack.rights.known import KNOWN
from hack.scripted_model.script import Script
from hack.scripted_model.server import serve
from inquest.api.manifests.rbac import CLUSTER_SCOPED, INVESTIGATOR
from inquest.api.names import INVESTIGATION_ANNOTATION, case_lease_name, child_labels, fingerprint, investigation_name
from inquest.gather.tools.scope import CLUSTER_KINDS
from tests.e2e.chart.cases.broken import NAME, WRONG_COMMAND
from tests.e2e.chart.cases.plays import SECONDS, Team
from tests.e2e.chart.cases.release import Release
from tests.e2e.chart.chart import NAMESPACE
from tests.support.api import Object
from tests.support.kube import eventually

CALLS: Final = 20
"""In one turn."""
NOTHING: Final = {
    "root_cause_analysis": {"summary": "Everything was looked at, and nothing explains it."},
    "confidence": 0.2,
    "investigation_outcome": "insufficient_data",
}
POST: Final = """\
import json, sys, urllib.request
head = {"Authorization": "Bearer " + sys.argv[1], "Content-Type": "application/json"}
place = "http://127.0.0.1:8080/api/v1/signals/alertmanager"
print(urllib.request.urlopen(urllib.request.Request(place, sys.argv[2].encode(), head)).status)
"""
SIGNALS: Final = "signals.inquest.dev"
CASES: Final = "investigations.inquest.dev"


def use_the_rest(live: Release) -> None:
    """A duplicate, an alert that comes and is over, events, every kind in both ways, the end of what is too old."""
    team = live.team(f"rest-{uuid4().hex[:6]}", "staging")
    team.breaks(WRONG_COMMAND)
    meet_a_lease(team)
    before = {kind: there(live, kind) for kind in (SIGNALS, CASES)}
    live.site.kubectl("create", "secret", "generic", "inquest-model", "--from-literal=key=not-a-key", "-n", NAMESPACE)
    with serve(curious(), host=live.site.cluster.host_address) as model:
        live.upgrade(live.values(**_open(team, model.base_url)))
        team.fires()
        team.fires()
        eventually(lambda: len(model.requests) > len(turns()), what="the model has looked at all", seconds=SECONDS)
        alert(live, team, "firing")
        alert(live, team, "resolved")
        for kind, names in before.items():
            eventually(lambda: not names <= there(live, kind), what=f"old {kind} are gone", seconds=SECONDS)  # noqa: B023 - at once
    team.kubectl("delete", "namespace", team.namespace, "--wait=false")


def _open(team: Team, endpoint: str) -> dict[str, Any]:
    """The values of that release, beside the usual ones."""
    sender = {"serviceAccount": "default", "namespace": team.namespace}
    return {
        "model": {"existingSecret": {"name": "inquest-model", "key": "key"}},
        "intake": {"sources": [sender]},
        "changes": {
            "model": {"provider": "openai", "endpoint": endpoint, "name": "scripted"},
            "limits": {"max_calls_per_tool": 200, "max_tool_calls": 300},
            "intake": {"enabled": True, "events": {"enabled": True}},
            "rca": {"blocked_kinds": []},
            "retention": "1s",
        },
    }


def meet_a_lease(team: Team) -> None:
    """One outlived its Signal: whoever opens the next case of that target finds it taken, and reads it."""
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "namespace": team.namespace}
    of = fingerprint(team.namespace, target["kind"], target["name"])
    gone = investigation_name(of, "a Signal that is gone", 1)
    meta = {
        "name": case_lease_name(of),
        "namespace": NAMESPACE,
        "labels": child_labels(signal="gone", investigation=gone, fingerprint=of),
        "annotations": {INVESTIGATION_ANNOTATION: f"{NAMESPACE}/{gone}"},
    }
    spec = {"holderIdentity": gone}
    team.api.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})
    team.reaches("Signal", team.cases.signal(target), "Accepted")


def there(live: Release, kind: str) -> set[str]:
    """Names of what there is."""
    return set(live.site.kubectl("get", kind, "-n", NAMESPACE, "-o", "name").split())


def alert(live: Release, team: Team, status: str) -> None:
    """What Alertmanager would send of the team's workload, with the token of the account that may."""
    labels = {"alertname": "ShopIsDown", "namespace": team.namespace, "deployment": NAME, "severity": "critical"}
    over = "2026-01-02T00:00:00Z" if status == "resolved" else "0001-01-01T00:00:00Z"
    one = {"status": status, "labels": labels, "annotations": {}, "startsAt": "2026-01-01T00:00:00Z", "endsAt": over}
    body = {"version": "4", "groupKey": "rest", "status": status, "receiver": "inquest", "alerts": [one]}
    token = team.kubectl("create", "token", "default").strip()
    assert live.python("-c", POST, token, json.dumps(body)).strip().startswith("2")


# --- the model ------------------------------------------------------------------------------------------------------


def curious() -> Script:
    """It lists every kind that it may, asks for one object of each, and concludes nothing."""
    asks = {"offers": ["submit_result", "kubectl_get"]}
    steps = [{"when": {**asks, "turn": turn}, "reply": {"calls": calls}} for turn, calls in enumerate(turns(), 1)]
    last = {
        "when": {"offers": ["submit_result"]},
        "reply": {"calls": [{"name": "submit_result", "arguments": NOTHING}]},
    }
    return Script.model_validate({"steps": [*steps, last]})


def turns() -> list[list[Object]]:
    """The calls of each turn."""
    calls = list(_calls())
    return [calls[start : start + CALLS] for start in range(0, len(calls), CALLS)]


def _calls() -> Iterator[Object]:
    for kind in kinds():
        yield {"name": "kubectl_get", "arguments": {"kind": kind}}
        yield {"name": "kubectl_get", "arguments": {"kind": kind, "name": "nothing-of-that-name"}}


def kinds() -> list[str]:
    """Those of the investigator's that every cluster serves and that a case may look at, as `plural.group`."""
    given = [(rule.group, name) for rule in INVESTIGATOR for name in rule.resources if "/" not in name]
    readable = {f"{kind.lower()}{end}" for kind in CLUSTER_KINDS for end in ("s", "es")}
    return [
        f"{name}.{group}".rstrip(".")
        for group, name in given
        if group not in KNOWN.optional and ((group, name) not in CLUSTER_SCOPED or name in readable)
    ]
