"""No false all-clear: what speaks against health though no object shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inquest.api.signal import SignalContent
from inquest.core.diagnosis.health import doubts_of, health_of
from inquest.core.diagnosis.question import speaks_of_measures, speaks_of_requests, speaks_of_throttling
from inquest.core.evidence.evidence import Health
from inquest.core.evidence.snapshot import Snapshot
from tests.support.tables import each_row
from tests.unit.core.diagnosis.detectors.support import snapshot_of

Found = dict[str, Any]


def made(kind: str, name: str, namespace: str = "shop", **rest: Any) -> Found:
    metadata = {"name": name, "namespace": namespace, **rest.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **rest}


POD = made(
    "Pod",
    "web-1",
    metadata={"labels": {"app": "web"}},
    spec={},
    status={
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-22T06:00:00Z"}],
        "containerStatuses": [{"name": "app", "ready": True, "state": {"running": {}}}],
    },
)
SERVICE = made("Service", "web", spec={"selector": {"app": "web"}})
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
INGRESS = made("Ingress", "site", spec={"rules": [{"http": {"paths": [{"backend": BACKEND}]}}]})
STRANGER = made("Ingress", "other", spec={"rules": [{"http": {"paths": [{"backend": {"service": {"name": "x"}}}]}}]})
CARRIER = {"read": "cluster carrier log", "namespace": "edge", "pod": "edge-1", "container": "proxy"}


def seen(*objects: Found, requests: bool = False, **rest: Any) -> Snapshot:
    """The pod is the target, well in every object."""
    return replace(snapshot_of({"objects": [POD, *objects], **rest}), about_requests=requests)


def said(*lines: str, **rest: Any) -> dict[str, Any]:
    return {"logs": [{"pod": "web-1", "text": "\n".join(lines), **rest}]}


SPOKEN: dict[str, tuple[list[str], bool]] = {
    "nothing": ([], True),
    "work": (["INFO served", "INFO served"], True),
    "errors and little else": (["2026-11-22T09:59:00Z ERROR upstream timed out"] * 2 + ["INFO served"], False),
    "errors in JSON": (['{"level":"error","msg":"x"}', '{"level": "fatal","msg":"x"}'], False),
    "errors of klog": (["E1122 09:59:00.1 1 x.go:1] x", "E1122 09:59:01.1 1 x.go:1] y"], False),
    "errors of nginx": (["2026/11/22 09:59:00 [error] 3#3: x", "2026/11/22 09:59:01 [crit] 3#3: x"], False),
    "an error with its stack": (["ERROR x", "\tat a.b.C", "Caused by: y", "at d.E", "ERROR x"], False),
    "one error": (["ERROR x"], True),
    "some errors among work": (["ERROR x", "ERROR x", *["INFO served"] * 3], True),
    "errors long before work": (["ERROR x"] * 90 + ["INFO served"] * 20, True),
    "errors of yesterday": (["2026-11-21T03:00:00Z ERROR x", "2026-11-21T03:00:01Z ERROR x"], True),
    "errors with an impossible time": (["2026-13-41T03:00:00Z ERROR x", "2026-13-41T03:00:00Z ERROR y"], False),
    "the word in a sentence": (["no error so far", "errors: 0"], True),
    "complaints without a level": (["orders: dial tcp: connection refused"] * 3, False),
    "a wait for a lock": (["waiting for the migration lock"] * 3, False),
    "an idle server": (["waiting for connections", "waiting for jobs"], True),
    "counts of none": (["10 sent, 0 failed", "failed=0 refused=0"], True),
}


@each_row(("lines", "well"), SPOKEN.values(), ids=SPOKEN.keys())
def test_a_target_whose_newest_words_are_errors_is_not_called_healthy(lines: list[str], well: bool) -> None:
    snapshot = seen(**said(*lines))

    assert health_of(snapshot) is (Health.HEALTHY if well else Health.UNKNOWN)
    assert bool(doubts_of(snapshot)) is not well


@pytest.mark.parametrize(("phase", "well"), [("Running", True), ("Succeeded", False)])
def test_one_complaint_counts_where_it_is_the_last_word(phase: str, well: bool) -> None:
    pod = {**POD, "status": {**POD["status"], "phase": phase}}

    assert bool(doubts_of(snapshot_of({"objects": [pod], **said("0 rows written: permission denied")}))) is not well


@pytest.mark.parametrize(
    "log", [{"previous": True}, {"pod": "stranger"}], ids=["of the run before", "of somebody else"]
)
def test_errors_of_another_run_or_pod_are_not_the_targets(log: dict[str, Any]) -> None:
    assert health_of(seen(**said("ERROR x", "ERROR x", **log))) is Health.HEALTHY


def carrier(*lines: str) -> dict[str, Any]:
    return {"logs": [{**CARRIER, "text": "\n".join(lines)}]}


QUIET, LOUD = carrier("I1122 loaded"), carrier("[error] 1", "[error] 2", "[error] 3")
WARNED = made("Event", "e", "edge", type="Warning", reason="RELOAD", involvedObject={"kind": "Pod", "name": "edge-1"})
WAYS: dict[str, tuple[list[Found], dict[str, Any], bool]] = {
    "no way from outside": ([SERVICE], {}, True),
    "an Ingress whose controller is well": ([SERVICE, INGRESS], QUIET, True),
    "an Ingress whose controller was not read": ([SERVICE, INGRESS], {}, False),
    "an Ingress whose controller tells of errors": ([SERVICE, INGRESS], LOUD, False),
    "an Ingress that leads elsewhere": ([SERVICE, STRANGER], {}, True),
    "Ingresses that were not read": ([SERVICE], {"gaps": ["ingresses shop"]}, False),
    "Gateway routes that were not read": ([SERVICE], {"gaps": ["cluster routes"]}, False),
    "a listing of routes that was cut": ([SERVICE], {"cut": ["cluster routes"]}, False),
    "a controller's log that was refused": ([SERVICE, INGRESS], {**QUIET, "gaps": ["cluster carrier log x"]}, False),
    "another gap beside": ([SERVICE, INGRESS], {**QUIET, "gaps": ["system events kube-system"]}, True),
}


@each_row(("objects", "rest", "well"), WAYS.values(), ids=WAYS.keys())
def test_failing_requests_are_not_over_while_their_way_is_unknown_or_ill(
    objects: list[Found], rest: dict[str, Any], well: bool
) -> None:
    snapshot = seen(*objects, requests=True, **rest)

    assert health_of(snapshot) is (Health.HEALTHY if well else Health.UNKNOWN)
    assert health_of(replace(snapshot, about_requests=False)) is Health.HEALTHY


def test_a_warning_about_the_controller_speaks_against_health() -> None:
    snapshot = seen(SERVICE, INGRESS, WARNED, requests=True, **QUIET)
    place = snapshot.of_kind("Event")[0].evidence
    reads = {place: {"read": "cluster carrier events"}}
    told = tuple(replace(each, arguments=reads.get(each.id, each.arguments)) for each in snapshot.evidence)

    assert health_of(snapshot) is Health.HEALTHY
    assert health_of(replace(snapshot, evidence=told)) is Health.UNKNOWN


def route(status: str, service: str = "web", kind: str = "HTTPRoute") -> Found:
    conditions = [{"type": "Accepted", "status": "True"}, {"type": "ResolvedRefs", "status": status, "reason": "R"}]
    rules = [{"backendRefs": [{"name": service, "namespace": "shop"}]}]
    return made(kind, "r", "far", spec={"rules": rules}, status={"parents": [{"conditions": conditions}]})


@pytest.mark.parametrize(
    ("found", "well"),
    [
        (route("False"), False),
        (route("False", kind="GRPCRoute"), False),
        (route("True"), True),
        (route("False", "x"), True),
    ],
    ids=["refused", "refused of gRPC", "taken", "refused and somebody else's"],
)
def test_a_refused_route_to_the_target_speaks_against_health(found: Found, well: bool) -> None:
    assert health_of(seen(SERVICE, found)) is (Health.HEALTHY if well else Health.UNKNOWN)


REQUESTS = {
    "ProbeFailed": True,
    "Blackbox probe of http://a.example fails with 404": True,
    "More than 20% of requests fail": True,
    "p99 latency above 2 s": True,
    "checkout answers 503": True,
    "KubePodCrashLooping": False,
    "Deployment has not matched the expected number of replicas": False,
    "Job failed": False,
    "1500 pods wait": False,
}


@each_row(("message", "expected"), REQUESTS.items(), ids=list(REQUESTS))
def test_a_signal_speaks_of_requests_by_its_words(message: str, expected: bool) -> None:
    target = {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"}
    content = {"name": "Alert", "severity": "high", "source": {"type": "Alertmanager", "name": "a"}, "target": target}

    assert speaks_of_requests(SignalContent.model_validate({**content, "message": message})) is expected


MEASURES = {
    "The PersistentVolume claimed by data-0 is only 1.2% free": (True, False),
    "72% throttling of CPU in namespace shop for container api": (True, True),
    "Consumer group orders has a lag of 40000": (True, False),
    "Memory usage of web is above 90%": (True, False),
    "Pod shop/web is in waiting state (CrashLoopBackOff)": (False, False),
    "Deployment has not matched the expected number of replicas": (False, False),
}


@each_row(("message", "expected"), MEASURES.items(), ids=list(MEASURES))
def test_a_signal_speaks_of_figures_by_its_words(message: str, expected: tuple[bool, bool]) -> None:
    target = {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"}
    content = {"name": "Alert", "severity": "high", "source": {"type": "Alertmanager", "name": "a"}, "target": target}
    signal = SignalContent.model_validate({**content, "message": message})

    assert (speaks_of_measures(signal), speaks_of_throttling(signal)) == expected


def test_a_figure_that_no_object_shows_is_not_called_healthy() -> None:
    calm = seen()

    assert health_of(calm) is Health.HEALTHY
    assert health_of(replace(calm, about_measures=True)) is Health.UNKNOWN


# --- what is asked for and not there ------------------------------------------------------------------------------


def web(**spec: Any) -> Found:
    """A Deployment that was made a moment ago."""
    meta = {"creationTimestamp": "2026-11-22T09:59:50Z"}
    return made("Deployment", "web", api_version="apps/v1", metadata=meta, spec={"replicas": 1, **spec}, status={})


def listening(*ports: int) -> Found:
    return {**POD, "spec": {"containers": [{"name": "app", "ports": [{"containerPort": port} for port in ports]}]}}


def sending(to: int) -> Found:
    return made("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": to}]})


WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
IN_FRONT = {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"}
UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "fewer ready than wanted": ({"objects": [web()], "target": WEB}, "Deployment/web: 0 of 1 pods are ready"),
    "none is wanted": ({"objects": [web(replicas=0)], "target": WEB}, ""),
    "paused": ({"objects": [web(replicas=0, paused=True)], "target": WEB}, "spec.paused is true"),
    "no pod behind a Service": ({"objects": [SERVICE], "target": IN_FRONT}, "no pod stands behind Service/web"),
    "a port that no container names": ({"objects": [listening(9090), sending(8080)]}, "sends to port 8080"),
    "a port that one names": ({"objects": [listening(8080, 9090), sending(8080)]}, ""),
    "containers that name no port": ({"objects": [listening(), sending(8080)]}, ""),
}


@each_row(("case", "told"), UNMET.values(), ids=UNMET.keys())
def test_what_is_asked_for_and_not_there_is_a_doubt(case: dict[str, Any], told: str) -> None:
    found = doubts_of(snapshot_of(case))

    assert (len(found) == 1 and told in found[0]) if told else not found
