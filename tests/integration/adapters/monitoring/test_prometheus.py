"""The contract of `ports.Metrics`, on a real Prometheus."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from inquest.adapters.monitoring.http_client import StackAddress, StackClient
from inquest.adapters.monitoring.prometheus import Prometheus
from inquest.errors import Declined, Invalid
from inquest.ports.kubernetes import SourceAnswer
from tests.integration.adapters.monitoring.servers import BEGIN, FOREIGN, NOW
from tests.support.tables import each_row

SHOP = frozenset({"shop"})


def labels_of(reading: SourceAnswer) -> list[dict[str, str]]:
    return [series["metric"] for series in reading.data["result"]]


async def test_an_instant_query_gives_the_case_only(prometheus: Prometheus) -> None:
    found = await prometheus.query("http_requests_total", SHOP, NOW)

    assert found.data["resultType"] == "vector"
    assert {labels["code"]: labels["namespace"] for labels in labels_of(found)} == {"200": "shop", "500": "shop"}
    assert [series["value"][1] for series in found.data["result"]] == ["2400", "240"]
    assert found.complete
    assert found.notes == ("only what carries namespace shop was looked at",)


async def test_a_case_of_two_namespaces_sees_both(prometheus: Prometheus) -> None:
    found = await prometheus.query("sum by (namespace) (http_requests_total)", frozenset({"shop", "pay"}), NOW)

    assert {labels["namespace"] for labels in labels_of(found)} == {"shop", "pay"}


async def test_a_range_has_a_point_for_every_step(prometheus: Prometheus) -> None:
    query = 'sum(rate(http_requests_total{code="500"}[5m]))'
    found = await prometheus.query_range(query, SHOP, NOW - timedelta(minutes=90), NOW, 300)

    (series,) = found.data["result"]
    assert len(series["values"]) == 19
    assert float(series["values"][0][1]) == 0
    assert float(series["values"][-1][1]) == pytest.approx(2 / 30)


async def test_what_belongs_to_no_tenant_is_read_whole(prometheus: Prometheus) -> None:
    found = await prometheus.query("node_load1", SHOP, NOW)

    assert labels_of(found) == [{"__name__": "node_load1", "instance": "worker-1"}]


async def test_a_case_without_a_namespace_reads_that_alone(prometheus: Prometheus) -> None:
    assert labels_of(await prometheus.query("node_load1", frozenset(), NOW))
    with pytest.raises(Declined, match="no namespace of its own"):
        await prometheus.query("http_requests_total", frozenset(), NOW)


HOSTILE = {
    "a foreign namespace": 'http_requests_total{namespace="other"}',
    "a foreign namespace by pattern": 'http_requests_total{namespace=~"oth.*"}',
    "any namespace": 'http_requests_total{namespace!="shop"}',
    "an empty namespace": 'http_requests_total{namespace=""}',
    "every series": '{__name__=~".+"}',
    "every series of a name by pattern": '{__name__=~"other_only.*"}',
    "the name of another tenant's metric": f"other_only_{FOREIGN}_total",
    "a rule that looks as if it were a node's": "node_tenant:cpu:sum",
    "an aggregate over all": "sum(http_requests_total) by (namespace, code)",
    "one side of an operator": "http_requests_total or ignoring(code) http_requests_total",
    "a subquery": f"max_over_time(other_only_{FOREIGN}_total[1h:1m])",
    "the label written anew": 'label_replace(http_requests_total, "namespace", "$1", "code", "(.*)")',
    "a value counted": f'count_values("code", other_only_{FOREIGN}_total)',
    "a word as a metric": f'sum{{namespace="other"}} or other_only_{FOREIGN}_total',
    "a brace in a text": f'http_requests_total{{pod="}} or other_only_{FOREIGN}_total{{pod="}}',
    "a comment": f"http_requests_total # }}\n or other_only_{FOREIGN}_total",
    "an or within the braces": 'http_requests_total{pod="a" or namespace="other"}',
    "an escaped name": '{__name__="other_only_4711\\u005ftotal"}',
    "one moment of another time": f"other_only_{FOREIGN}_total @ end()",
    "a function that joins": "info(http_requests_total)",
    "the name as a text": f'{{"other_only_{FOREIGN}_total"}}',
    "an earlier time": f"other_only_{FOREIGN}_total offset 30m",
    "a joined side": 'http_requests_total{code="500"} * on() group_left(mark) node_tenant:cpu:sum',
    "labels joined": 'label_join(http_requests_total, "code", "-", "namespace", "code", "pod")',
    "what is left of two": "http_requests_total unless on(pod) node_load1",
    "a shared name beside another": f'{{__name__="node_load1",__name__=~"other.*"}} or other_only_{FOREIGN}_total',
    "raw and single quotes": f"http_requests_total{{pod!=`}} or other_only_{FOREIGN}_total{{`,code!='\"'}}",
    "a label named like a word": 'http_requests_total{offset="",by="",namespace=~".+"}',
    "a long way down": "(" * 40 + "http_requests_total" + ")" * 40,
}


@each_row("query", HOSTILE.values(), ids=HOSTILE.keys())
async def test_no_query_reads_another_tenants_series(prometheus: Prometheus, query: str) -> None:
    try:
        found: Any = (await prometheus.query(query, SHOP, NOW)).data
    except Invalid as error:
        found = getattr(error, "hint", "refused by the server")

    assert FOREIGN not in json.dumps(found)
    assert "other" not in json.dumps(found)


async def test_without_confinement_the_server_decides(prometheus_url: str, prometheus: Prometheus) -> None:
    unbound = Prometheus(prometheus._line, confine=False)
    found = await unbound.query('http_requests_total{namespace="other"}', SHOP, NOW)

    assert labels_of(found)[0]["code"] == FOREIGN
    assert found.notes == ()


@pytest.mark.parametrize("confine", [True, False], ids=["confined", "not confined"])
async def test_names_of_secrets_are_never_read(prometheus: Prometheus, confine: bool) -> None:
    bound = Prometheus(prometheus._line, confine=confine)
    with pytest.raises(Declined, match="name Secrets"):
        await bound.query("kube_secret_info", SHOP, NOW)
    found = [
        await bound.query('{__name__=~"kube_.*|build_.*"}', SHOP, NOW),
        await bound.series('{secret!=""}', SHOP, BEGIN, NOW, 10),
        await bound.values("secret", "", SHOP, BEGIN, NOW),
        await bound.values("__name__", "", SHOP, BEGIN, NOW),
    ]

    assert "kube_secret" not in json.dumps([one.data for one in found])
    assert found[1].data == found[2].data == []


async def test_more_series_than_are_shown_are_cut_and_that_is_said(prometheus: Prometheus) -> None:
    found = await prometheus.query("many", SHOP, NOW)

    assert len(found.data["result"]) == 500
    assert not found.complete
    assert "topk" in found.notes[-1]


async def test_discovery_lists_the_case_and_what_is_shared(prometheus: Prometheus) -> None:
    names = await prometheus.values("__name__", "", SHOP, BEGIN, NOW)
    pods = await prometheus.values("pod", "http_requests_total", SHOP, BEGIN, NOW)
    labels = await prometheus.labels('{__name__="http_requests_total"}', SHOP, BEGIN, NOW)

    assert names.data == ["build_info", "http_requests_total", "many", "node_load1"]
    assert pods.data == ["checkout-1"]
    assert labels.data == ["__name__", "code", "namespace", "pod"]


async def test_series_are_as_many_as_asked(prometheus: Prometheus) -> None:
    some = await prometheus.series("many", SHOP, BEGIN, NOW, 7)
    every = await prometheus.series("http_requests_total", SHOP, BEGIN, NOW, 7)

    assert (len(some.data), some.complete) == (7, False)
    assert (len(every.data), every.complete) == (2, True)


@pytest.mark.parametrize("match", ["sum(up)", "up or down", "up[5m]", "rate(up[5m])"])
async def test_discovery_takes_one_selector(prometheus: Prometheus, match: str) -> None:
    with pytest.raises(Declined):
        await prometheus.series(match, SHOP, BEGIN, NOW, 7)


@each_row(
    "match",
    [
        "",
        "{}",
        "http_requests_total",
        'http_requests_total{namespace=~".*"}',
        'http_requests_total{namespace!="shop"}',
        '{__name__=~"other.*|node_.*"}',
        f"other_only_{FOREIGN}_total",
        '{code=~".+"}',
        '{mark!=""}',
    ],
)
async def test_no_match_finds_another_tenants_series(prometheus: Prometheus, match: str) -> None:
    found = [
        await prometheus.labels(match, SHOP, BEGIN, NOW),
        await prometheus.values("__name__", match, SHOP, BEGIN, NOW),
        await prometheus.values("namespace", match, SHOP, BEGIN, NOW),
        await prometheus.values("code", match, SHOP, BEGIN, NOW),
        *([await prometheus.series(match, SHOP, BEGIN, NOW, 1_000)] if match else []),
    ]

    told = json.dumps([one.data for one in found])
    assert FOREIGN not in told
    assert '"other"' not in told


async def test_a_case_that_may_see_nothing_asks_for_nothing(prometheus: Prometheus) -> None:
    unshared = Prometheus(prometheus._line)
    with pytest.raises(Declined, match="no namespace of its own"):
        await unshared.values("__name__", "", frozenset(), BEGIN, NOW)
    with pytest.raises(Declined, match="no namespace of its own"):
        await unshared.labels("", frozenset(), BEGIN, NOW)


@pytest.mark.parametrize("label", ["../query", "a/../../query", "", "namespace\n", "a.b"])
async def test_what_is_no_label_gets_into_no_path(prometheus: Prometheus, label: str) -> None:
    with pytest.raises(Declined, match="is no name of a label"):
        await prometheus.values(label, "", SHOP, BEGIN, NOW)


async def test_metadata_is_that_of_the_cases_metrics(prometheus: Prometheus) -> None:
    found = await prometheus.metadata("", SHOP, BEGIN, NOW)

    assert found.data == {}


async def test_rules_are_those_of_the_case(prometheus: Prometheus) -> None:
    found = await prometheus.rules(SHOP)

    (group,) = found.data["groups"]
    assert [rule["name"] for rule in group["rules"]] == ["ShopDown", "ErrorsHigh"]
    assert found.notes == ("3 rules about other namespaces are left out",)
    assert "canary" not in json.dumps(found.data)


def ruled(*rules: dict[str, Any], confine: bool = True) -> Prometheus:
    """A server that has these rules."""
    body = {"status": "success", "data": {"groups": [{"name": "all", "rules": rules}]}}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    return Prometheus(StackClient("prometheus", StackAddress("http://metrics"), transport=transport), confine=confine)


@each_row(
    ("matcher", "listed"),
    [
        ('namespace="shop"', True),
        ('namespace=~".*"', True),
        ('namespace=~"shop|pay"', True),
        ('namespace!="kube-system"', True),
        ('namespace!~"kube-.*"', True),
        ('namespace="other"', False),
        ('namespace="oth\\x65r"', False),
        ('namespace=~"oth.*"', False),
        ('namespace=~"other"', False),
        ('namespace=~"oth\\x65r"', False),
        ('namespace=~"("', False),
    ],
)
async def test_a_rule_that_means_only_others_is_left_out(matcher: str, listed: bool) -> None:
    rule = {"type": "alerting", "name": "Errors", "query": f"sum(errors{{{matcher}}}) > 1"}
    found = await ruled(rule).rules(SHOP)

    assert bool(found.data["groups"]) is listed
    assert bool(found.notes) is not listed


@pytest.mark.parametrize(
    ("namespaces", "state", "alerts"),
    [(SHOP, "pending", 1), (frozenset({"pay"}), "inactive", 0), (frozenset({"other"}), "firing", 1)],
)
async def test_a_rule_fires_as_far_as_it_fires_for_the_case(
    namespaces: frozenset[str], state: str, alerts: int
) -> None:
    shop, other = {"labels": {"namespace": "shop"}, "state": "pending"}, {"labels": {"namespace": "other"}}
    told = [shop, {**other, "state": "firing"}, {"labels": {}, "state": "firing"}]
    rule = {"type": "alerting", "name": "Errors", "query": "errors > 1", "state": "firing", "alerts": told}
    (found,) = (await ruled(rule).rules(namespaces)).data["groups"][0]["rules"]

    assert (found["state"], len(found["alerts"])) == (state, alerts)


@pytest.mark.parametrize(
    ("query", "confine"),
    [
        ("errors # of whom", True),
        ("info(errors)", True),
        ("count(kube_secret_info)", True),
        ("kube_secret_info", False),
    ],
)
async def test_a_rule_that_cannot_be_judged_or_names_secrets_is_left_out(query: str, confine: bool) -> None:
    rule = {"type": "recording", "name": "told", "query": query}

    assert (await ruled(rule, confine=confine).rules(SHOP)).data["groups"] == []


async def test_the_server_is_told_what_it_may_spend() -> None:
    asked: list[dict[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(dict(request.url.params))
        data = [] if request.url.path.endswith("/series") else {"resultType": "vector", "result": []}
        return httpx2.Response(200, json={"status": "success", "data": data})

    metrics = Prometheus(
        StackClient("prometheus", StackAddress("http://metrics", whole=20), transport=httpx2.MockTransport(answer))
    )
    await metrics.query("up", SHOP, NOW)
    await metrics.query_range("up", SHOP, BEGIN, NOW, 60)
    await metrics.series("up", SHOP, BEGIN, NOW, 7)

    assert [(one.get("timeout"), one["limit"]) for one in asked] == [("20s", "501"), ("20s", "501"), (None, "8")]


async def test_what_a_failing_rule_says_of_other_tenants_is_kept_back() -> None:
    said = '[{__name__="errors", namespace="shop"}, {__name__="errors", namespace="other"}]; many-to-many'
    rule = {"type": "recording", "name": "pairs", "query": "a * on() b", "health": "err", "lastError": said}
    confined, whole = [await ruled(rule, confine=how).rules(SHOP) for how in (True, False)]

    assert confined.data["groups"][0]["rules"] == [{key: rule[key] for key in rule if key != "lastError"}]
    assert whole.data["groups"][0]["rules"] == [rule]


async def test_a_broken_query_is_told_in_the_servers_words(prometheus: Prometheus) -> None:
    with pytest.raises(Invalid, match=r"prometheus answered 400: .*expected type range vector"):
        await prometheus.query("rate(http_requests_total)", SHOP, NOW)


async def test_a_query_that_costs_too_much_is_refused_by_the_server(prometheus: Prometheus) -> None:
    with pytest.raises(Invalid, match=r"too many samples"):
        await prometheus.query_range("sum_over_time(http_requests_total[2h])", SHOP, BEGIN, NOW, 1)
