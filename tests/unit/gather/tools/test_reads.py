"""What the Kubernetes tools show."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inquest.core.evidence.evidence import EvidenceStatus
from inquest.errors import Forbidden, Unavailable
from inquest.gather.tools.scope import Scope
from tests.support.tables import row
from tests.unit.gather.tools.conftest import Bench, deployment, event, pod

Make = Callable[..., Bench]


def configmap(number: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number:03}", "namespace": "shop"}} | more


async def test_describe_says_in_words_why_a_pod_restarts(bench: Make) -> None:
    make = bench(pod(), event("one"), event("other", about="another-pod"))
    text = make.text_of(await make("kubectl_describe", kind="pods", name="checkout-6d5f7c9b8-x2x4q"))

    assert "Status: CrashLoopBackOff" in text
    assert "State: Waiting, reason CrashLoopBackOff, message back-off 1m20s" in text
    assert "Last State: Terminated, reason OOMKilled, exit code 137" in text
    assert "Limits: memory 32Mi" in text
    assert "Owner: ReplicaSet/checkout-6d5f7c9b8 (controller)" in text
    assert "  Ready is False, reason ContainersNotReady" in text
    assert text.count("Back-off restarting failed container") == 1
    assert "env TOKEN: {" in text
    assert "secretKeyRef" in text
    assert "hunter2-canary" not in text
    assert "managedFields" not in text


@row("T09", "T10")
@pytest.mark.parametrize("tool", ["kubectl_describe", "kubectl_get", "kubectl_get_yaml"])
@pytest.mark.parametrize("output", ["json", "yaml", "table"])
async def test_no_secret_value_leaves_by_any_form(bench: Make, tool: str, output: str) -> None:
    make = bench(pod())
    result = await make(tool, kind="Pod", name="checkout-6d5f7c9b8-x2x4q", output=output)

    assert "hunter2-canary" not in f"{result}"


@row("T09")
async def test_an_error_text_is_redacted_too(bench: Make) -> None:
    broken = {"Pod": Forbidden("list pods: password=hunter2-canary-value denied")}
    result = await bench(broken=broken)("kubectl_get", kind="Pod")

    assert "hunter2-canary-value" not in f"{result}"
    assert result.error


async def test_events_that_cannot_be_read_are_not_none_found(bench: Make) -> None:
    make = bench(deployment(), broken={"Event": Forbidden("list events: denied")})
    text = make.text_of(await make("kubectl_describe", kind="Deployment", name="checkout"))

    assert "Events: UNAVAILABLE" in text


async def test_a_workload_is_described_with_its_template(bench: Make) -> None:
    make = bench(deployment())
    text = make.text_of(await make("kubectl_describe", kind="deployments", name="checkout"))

    assert "Limits: memory 32Mi" in text
    assert '"unavailableReplicas":1' in text
    assert text.endswith("Events: none found")


@pytest.mark.parametrize((), [()], ids=["L12"])
async def test_nothing_is_remembered_of_what_was_read(bench: Make) -> None:
    """The same call after a change gives what is there now."""
    make = bench(deployment())
    before = make.text_of(await make("kubectl_get_yaml", kind="deployments", name="checkout"))
    changed = deployment()
    changed["spec"]["replicas"] = 7
    make.cluster.objects[:] = [changed]

    after = make.text_of(await make("kubectl_get_yaml", kind="deployments", name="checkout"))

    assert ("replicas: 7" in before, "replicas: 7" in after) == (False, True)


async def test_a_list_is_a_table_unless_told(bench: Make) -> None:
    make = bench(pod(), pod(namespace="other"))
    text = make.text_of(await make("kubectl_get", kind="pods"))

    assert [line.split() for line in text.splitlines()] == [
        ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "NODE", "AGE"],
        ["shop", "checkout-6d5f7c9b8-x2x4q", "0/1", "CrashLoopBackOff", "4", "worker-1", "10m"],
        ["total:", "1"],
    ]


@pytest.mark.parametrize(("output", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"])
async def test_a_list_says_when_it_was_cut(bench: Make, output: str, parse: Callable[[str], Any]) -> None:
    make = bench(*(configmap(number) for number in range(201)))
    result = await make("kubectl_get", kind="ConfigMap", output=output)
    listed = parse(make.text_of(result))

    assert (len(listed["items"]), listed["total"], listed["truncated"]) == (200, 200, True)
    assert result.evidence is not None
    assert result.evidence.status is EvidenceStatus.TRUNCATED


@pytest.mark.parametrize(("output", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"])
async def test_a_list_of_long_objects_holds_those_that_fit_whole(
    bench: Make, output: str, parse: Callable[[str], Any]
) -> None:
    make = bench(*(configmap(number, data={"page": "some words " * 30_000}) for number in range(5)))
    result = await make("kubectl_get", kind="ConfigMap", output=output)
    listed = parse(make.text_of(result))

    assert ([item["metadata"]["name"] for item in listed["items"]], listed["total"]) == (["c000", "c001", "c002"], 5)
    assert listed["truncated"]
    assert result.evidence is not None
    assert result.evidence.status is EvidenceStatus.TRUNCATED


async def test_an_object_longer_than_a_list_may_be_is_shown_alone(bench: Make) -> None:
    make = bench(*(configmap(number, data={"page": "some words " * 100_000}) for number in range(2)))
    listed = json.loads(make.text_of(await make("kubectl_get", kind="ConfigMap", output="json")))

    assert (len(listed["items"]), listed["total"], listed["truncated"]) == (1, 2, True)


async def test_the_containers_of_a_pod_share_what_its_logs_may_hold(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pod()
    found["spec"]["containers"] = [{"name": f"part-{number}"} for number in range(8)]
    make, limits = bench(found), []

    async def logs(*_: Any, limit_bytes: int, **__: Any) -> str:
        limits.append(limit_bytes)
        return "a line\n"

    monkeypatch.setattr(make.cluster, "logs", logs)
    await make("kubectl_logs", name="checkout-6d5f7c9b8-x2x4q")
    await make("kubectl_logs", name="checkout-6d5f7c9b8-x2x4q", container="part-3")

    assert limits == [*[512 * 1024] * 8, 1024 * 1024]


async def test_none_found_is_an_answer(bench: Make) -> None:
    result = await bench()("kubectl_get", kind="Pod")

    assert result.evidence is not None
    assert (result.evidence.status, result.evidence.empty, result.error) == (EvidenceStatus.OK, True, False)
    assert "No resources found" in result.content


async def test_a_missing_object_is_a_gap_with_a_hint(bench: Make) -> None:
    result = await bench()("kubectl_describe", kind="Pod", name="gone")

    assert result.evidence is not None
    assert (result.evidence.status, result.evidence.holds, result.error) == (EvidenceStatus.GAP, False, True)
    said = json.loads(result.evidence.text)
    assert said["status"] == "error"
    assert said["error"].endswith('pods "gone" not found')
    assert "rescheduled" in said["hint"]


async def test_events_agree_in_kind_and_name_and_come_newest_first(bench: Make) -> None:
    late, early = "2026-11-22T11:59:30Z", "2026-11-22T11:00:00Z"
    make = bench(
        event("a", about="web", lastTimestamp=early),
        event("b", about="web", lastTimestamp=late),
        event("c", about="web", kind="Service"),
        event("d", about="web", type="Normal"),
    )
    rows = json.loads(make.text_of(await make("kubectl_events", kind="Pod", name="web", warnings_only=True)))

    assert [entry["last"] for entry in rows] == [late, early]
    assert rows[0] == {
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container app in pod",
        "count": 12,
        "first": "2026-11-22T11:59:00Z",
        "last": late,
        "object": "Pod/web",
        "source": "kubelet",
    }


async def test_events_are_no_fact_of_the_api_alone(bench: Make) -> None:
    make = bench(pod(), event("one"))
    found = await make("kubectl_events")
    seen = await make("kubectl_get", kind="Pod")

    assert found.evidence is not None
    assert seen.evidence is not None
    assert (found.evidence.api_fact, seen.evidence.api_fact) == (False, True)


async def test_a_count_gives_a_number_and_ten_names(bench: Make) -> None:
    make = bench(*(configmap(number) for number in range(12)))
    counted = json.loads(make.text_of(await make("kubectl_count", kind="ConfigMap")))

    assert (counted["count"], counted["capped"], len(counted["sample"])) == (12, False, 10)


@pytest.mark.parametrize(
    ("keyword", "names"),
    [("checkout", ["x"]), ("C0*", ["c001"]), ("none", [])],
    ids=["label-in-any-case", "glob", "nothing"],
)
async def test_a_word_finds_names_and_labels(bench: Make, keyword: str, names: list[str]) -> None:
    labelled = {"name": "x", "namespace": "shop", "labels": {"app": "Checkout"}}
    make = bench(configmap(1), configmap(2, metadata=labelled))
    found = json.loads(make.text_of(await make("kubectl_find_resource", kind="ConfigMap", keyword=keyword)))

    assert [entry["name"] for entry in found] == names


async def test_a_blank_keyword_is_an_error(bench: Make) -> None:
    result = await bench()("kubectl_find_resource", kind="Pod", keyword="  ")

    assert "arguments.keyword" in result.content


def two_containers() -> dict[str, Any]:
    found = pod("web")
    found["spec"]["containers"].append({"name": "proxy"})
    return found


async def test_logs_of_several_containers_carry_their_names(bench: Make) -> None:
    texts = {("app", False): "started\nerror: no route\n", ("proxy", False): "ready\n"}
    make = bench(two_containers(), texts=texts)
    text = make.text_of(await make("kubectl_logs", name="web"))

    assert text.splitlines()[:3] == ["[app] started", "[app] error: no route", "[proxy] ready"]
    assert "containers: app, proxy; lines: 3" in text


@pytest.mark.parametrize(
    ("filters", "lines"),
    [
        ({"grep": "error"}, ["error 1", "error 2"]),
        ({"grep": "/error [2-9]/"}, ["error 2"]),
        ({"exclude": "error"}, ["ok"]),
    ],
    ids=["substring", "regular-expression", "exclude"],
)
async def test_logs_are_filtered(bench: Make, filters: dict[str, str], lines: list[str]) -> None:
    make = bench(pod("web"), texts={("app", False): "error 1\nok\nerror 2\n"})
    text = make.text_of(await make("kubectl_logs", name="web", **filters))

    assert text.splitlines()[:-1] == lines


async def test_a_pod_without_a_node_has_no_log_and_that_is_said(bench: Make) -> None:
    waiting = pod("web")
    del waiting["spec"]["nodeName"]
    make = bench(waiting, texts={("app", False): ""})

    found = await make("kubectl_logs", name="web")

    assert "(no logs available: the pod has no node yet)" in found.content
    assert not found.error


async def test_the_lost_log_of_a_run_before_is_an_error_and_so_is_no_pod(bench: Make) -> None:
    make = bench(pod("web"))
    lost = await make("kubectl_previous_logs", name="web")
    gone = await make("kubectl_previous_logs", name="gone")

    assert "previous terminated container" in lost.content
    assert (lost.error, gone.error) == (True, True)


async def test_usage_is_a_table_with_containers_summed(bench: Make) -> None:
    usage = [
        {"name": "a", "usage": {"cpu": "100m", "memory": "10Mi"}},
        {"name": "b", "usage": {"cpu": "23000000n", "memory": "35840Ki"}},
    ]
    metrics = {
        "apiVersion": "v1",
        "kind": "PodMetrics",
        "metadata": {"name": "web", "namespace": "shop"},
        "containers": usage,
    }
    make = bench(metrics)

    assert make.text_of(await make("kubectl_top_pods")).splitlines() == [
        "NAMESPACE  NAME  CPU   MEMORY",
        "shop       web   123m  45Mi",
    ]


async def test_no_figures_are_unknown_and_not_zero(bench: Make) -> None:
    assert "unknown, not zero" in (await bench()("kubectl_top_nodes")).content


async def test_memory_requests_come_largest_first(bench: Make) -> None:
    small, large = pod("small"), pod("large")
    large["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    make = bench(small, large)
    text = make.text_of(await make("kubectl_memory_requests"))

    assert [line.split()[1:] for line in text.splitlines()[1:]] == [["large", "1024Mi"], ["small", "16Mi"]]


async def test_events_of_a_node_are_read_where_they_stand(bench: Make) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "worker-1"},
        "status": {"images": [{"names": ["x"]}]},
    }
    about = event(
        "n", about="worker-1", kind="Node", metadata={"name": "n", "namespace": "default"}, reason="NodeNotReady"
    )
    make = bench(node, about)
    text = make.text_of(await make("kubectl_describe", kind="Node", name="worker-1"))

    assert "NodeNotReady" in text
    assert "images" not in text


async def test_the_target_may_stand_in_another_namespace(bench: Make) -> None:
    make = bench(pod("web", namespace="payments"))
    make.context.scope = Scope("shop", frozenset({"payments"}))

    assert not (await make("kubectl_get", kind="Pod", name="web", namespace="payments")).error


@pytest.mark.parametrize(
    ("given", "said", "hint", "terminal"),
    [
        ({"kind": "Pod", "name": "gone"}, "not found", False, False),
        ({"kind": "Secret", "name": "db"}, "[refused] kind Secret is blocked", True, False),
    ],
    ids=["H07 a known failure", "a refusal of ours says how to go on"],
)
async def test_with_hints_switched_off_a_failure_has_its_own_words_only(
    bench: Make, given: dict[str, str], said: str, hint: bool, terminal: bool
) -> None:
    make = bench()
    told = await make("kubectl_describe", **given)
    make.context.hints = False
    bare = await make("kubectl_describe", **given)

    assert "hint" in json.loads(make.text_of(told))
    assert said in json.loads(make.text_of(bare))["error"]
    assert ("hint" in json.loads(make.text_of(bare))) is hint
    assert bare.terminal is told.terminal is terminal


async def test_what_is_hopeless_stays_so_without_its_hint(bench: Make) -> None:
    """A switch takes no brake along (T54)."""
    make = bench(broken={"Pod": Unavailable("the API server", "connection refused")})
    make.context.hints = False
    result = await make("kubectl_get", kind="Pod")

    assert result.terminal
    assert "hint" not in json.loads(make.text_of(result))


async def test_a_container_that_was_not_restarted_has_no_run_before_and_nobody_is_asked(bench: Make) -> None:
    fresh = pod("web")
    fresh["status"]["containerStatuses"][0] |= {"restartCount": 0, "lastState": {}}
    make = bench(fresh)

    found = await make("kubectl_previous_logs", name="web")

    assert "(no logs available: app: it was not restarted, so there is no run before this one)" in found.content
    assert not found.error
    assert not [call for call in make.cluster.asked if call.startswith("logs")]


async def test_a_container_whose_earlier_run_could_not_be_started_wrote_nothing(bench: Make) -> None:
    stuck = pod("web")
    never = {"reason": "StartError", "exitCode": 128, "startedAt": "1970-01-01T00:00:00Z"}
    stuck["status"]["containerStatuses"][0]["lastState"] = {"terminated": never}

    assert not (await bench(stuck)("kubectl_previous_logs", name="web")).error
