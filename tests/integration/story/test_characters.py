"""Every character in every field that the cluster or a person fills: the case comes to its end, and its status says so.

No character of Unicode, no half of one and no length may keep a status from arriving.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from hack.cluster import local
from tests.integration.hostile.kubelet import bind, kubelet
from tests.support.api import Api, Object
from tests.support.control_plane import cluster_name
from tests.support.process import now
from tests.support.world import World, conditions, phase_of

pytestmark = [pytest.mark.xdist_group("story-real"), pytest.mark.timeout(900)]
REAL = True

ONE = "\U0001f4a5"
PLANES = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0x41, 0x1F4A, 0xFFFC, 0xFFFE, 0xFFFF))
CONTROLS = "".join(map(chr, (*range(1, 0x20), *range(0x7F, 0xA0))))
MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\u200b\ufeff"
HALVES = "\ud83d \udca5 \udbff"
"""As a client writes them that escapes what it has cut in the middle."""
LONG = 700_000


@pytest.fixture(scope="module")
def logs(api: Api) -> Iterator[dict[str, str]]:
    """What pods say, by namespace."""
    found = local.find(name=cluster_name())
    assert found is not None
    with kubelet(api, found.certificate_authority.parent) as said:
        yield said


def sent(world: World, body: Object) -> Object:
    """Created from bytes: half a character goes as the escape that a client would send."""
    said = world.api.send("POST", _place(body), content=_bytes(body), headers={"content-type": "application/json"})
    assert said.accepted, said
    return said.body


def _bytes(body: Object) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


def _place(body: Object) -> str:
    group = "api/v1" if body["apiVersion"] == "v1" else f"apis/{body['apiVersion']}"
    return f"/{group}/namespaces/{body['metadata']['namespace']}/{body['kind'].lower()}s"


def deployed(world: World, odd: str) -> None:
    """A workload with the text in its arguments, variables and annotations, plain and inside JSON."""
    container: Object = {"name": "app", "image": "registry.example/shop:1.0", "args": [f"--say={odd}"[:100_000]]}
    container |= {"resources": {"limits": {"memory": "64Mi"}}, "env": [{"name": "GREETING", "value": odd}]}
    notes = {"example.com/note": odd[:20_000], "example.com/json": json.dumps({"note": odd[:3_000]})}
    # No kubelet ends it: with grace its namespace would stay for most of a minute.
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": "shop"}, "annotations": notes}, "spec": pod}
    meta = {"name": "shop", "namespace": world.namespace, "annotations": notes}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}}, "template": template}
    sent(world, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})


def happened(world: World, logs: dict[str, str], odd: str) -> None:
    """It is killed again and again, and log, event and both messages of its container hold the text."""
    pod, at = world.pod(), now()
    plain = odd.encode(errors="replace").decode()
    logs[world.namespace] = f"starting\n{plain}\n{json.dumps({'msg': odd, 'level': 'error'})}\nfatal: {plain}\n"
    bind(world.api, pod)
    ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": at, "finishedAt": at, "message": plain[:10_000]}
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": plain[:10_000]}}
    world.fare(pod, waits, last={"terminated": ended}, restarts=4)
    about = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")} | {"apiVersion": "v1", "kind": "Pod"}
    meta = {"name": f"e-{uuid4().hex[:8]}", "namespace": world.namespace}
    event: Object = {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about, "type": "Warning"}
    event |= {"reason": "BackOff", "message": odd[:20_000], "count": 3, "firstTimestamp": at, "lastTimestamp": at}
    sent(world, event)


def signalled(world: World, odd: str) -> Object:
    """A Signal with the text wherever its schema takes text."""
    spec: dict[str, Any] = {"name": f"Crash {odd}"[:60], "severity": "critical", "source": {"type": "Manual"}}
    spec |= {"target": world.target(), "message": f"it does not work {odd}"[:1_000], "description": odd[:1_000]}
    spec |= {"labels": {"pod": odd[:1_000]}, "annotations": {"summary": odd[:4_000]}}
    meta = {"name": f"sig-{uuid4().hex[:16]}", "namespace": world.namespace}
    return sent(world, {"apiVersion": "inquest.dev/v1alpha1", "kind": "Signal", "metadata": meta, "spec": spec})


@pytest.mark.parametrize(
    "odd",
    [PLANES + CONTROLS + MARKS, HALVES, ONE * (LONG // 4)],
    ids=["every kind", "halves", "long"],
)
def test_the_status_arrives_whatever_stands_in_the_cluster_and_in_what_people_say(
    world: World, logs: dict[str, str], odd: str
) -> None:
    deployed(world, odd)
    happened(world, logs, odd)

    request = world.asked(signalled(world, odd))
    waiting = world.case_of(request, "AwaitingApproval")
    assert waiting["status"]["rootCause"]["summary"]
    assert "StatusRefused" not in world.events(waiting)

    plain = odd.encode(errors="replace").decode()
    assert world.decide(request, "Rejected", decisionReason=plain[:1_000]).accepted
    name = waiting["metadata"]["name"]
    ended = world.case_of(request, "Completed", "Failed", "Cancelled")
    assert phase_of(world.reaches("RemediationApprovalRequest", request, "Rejected")) == "Rejected"
    feedback = {"verdict": "Partial", "cause": plain[:490], "by": "admin"}
    assert world.api.merge("Investigation", name, world.namespace, {"spec": {"feedback": feedback}}).accepted
    world.shows("Investigation", name, lambda seen: conditions(seen).get("Recorded") == ("True", "Stored"))
    assert "StatusRefused" not in world.events(ended)
