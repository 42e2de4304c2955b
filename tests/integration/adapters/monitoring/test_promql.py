"""PromQL bound to a case's namespaces, without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.adapters.monitoring import logql, promql
from inquest.adapters.monitoring.logql import confine_logql
from inquest.adapters.monitoring.promql import MOST_NESTED, confine_promql, confined_selector, selectors_of
from inquest.adapters.monitoring.selectors import Confinement, Selector
from inquest.errors import Declined
from tests.support.tables import each_row

SHOP = Confinement("namespace", frozenset({"shop"}), ("node_*",))
OWN = 'namespace="shop"'
BARE = f'__name__!~"kube_secret_.+",{OWN}'
BOUND = {
    "up": f"up{{{OWN}}}",
    "up{}": f"up{{{OWN}}}",
    "{}": f"{{{BARE}}}",
    "up\n{ }": f"up\n{{{OWN} }}",
    'up{a="b",}': f'up{{{OWN},a="b",}}',
    "up offset -5m": f"up{{{OWN}}} offset -5m",
    "up @ end() offset 1h30m": f"up{{{OWN}}} @ end() offset 1h30m",
    "max_over_time(rate(up[5m])[1h:1m] @ 1.5e9)": f"max_over_time(rate(up{{{OWN}}}[5m])[1h:1m] @ 1.5e9)",
    '{"a.b", "x.y"="z"}': f'{{{OWN},"a.b", "x.y"="z"}}',
    'sum by ("x.y", by) (a)': f'sum by ("x.y", by) (a{{{OWN}}})',
    "SUM(a) WITHOUT (b,)": f"SUM(a{{{OWN}}}) WITHOUT (b,)",
    'a * on(x) group_left("y.z") b': f'a{{{OWN}}} * on(x) group_left("y.z") b{{{OWN}}}',
    "a unless ignoring() b or c": f"a{{{OWN}}} unless ignoring() b{{{OWN}}} or c{{{OWN}}}",
    "a > bool -b ^ 0x1F": f"a{{{OWN}}} > bool -b{{{OWN}}} ^ 0x1F",
    "label_replace(a, `x}`, '$1', \"{y\\\"\", '(.*)')": (
        f"label_replace(a{{{OWN}}}, `x}}`, '$1', \"{{y\\\"\", '(.*)')"
    ),
    'up{offset="x", by=~"y", __name__!=`z`}': f'up{{{OWN},offset="x", by=~"y", __name__!=`z`}}',
    'up{a="}"} + up{a=\'"\'} + up{a=`\\`}': f'up{{{OWN},a="}}"}} + up{{{OWN},a=\'"\'}} + up{{{OWN},a=`\\`}}',
    '{__name__=~"node_.*"}': f'{{{BARE},__name__=~"node_.*"}}',
    '{__name__="node\\u005fload1"}': f'{{{BARE},__name__="node\\u005fload1"}}',
    "node_load1": "node_load1",
    '{"node_load1"}': '{"node_load1"}',
    "node_load1:sum": f"node_load1:sum{{{OWN}}}",
}


@each_row(("query", "sent"), BOUND.items(), ids=BOUND.keys())
def test_every_selector_is_bound(query: str, sent: str) -> None:
    assert confine_promql(query, SHOP) == sent


@each_row(
    "query",
    [
        "",
        "up # x",
        "up{a='b' # }\n}",
        'up{a="b" or c="d"}',
        'up{a="b"',
        'up{a="b}',
        'up{"a}',
        "up{,}",
        'up{é="x"}',
        "up{a=b}",
        "up{a=$b}",
        "up[$__interval]",
        "up[5m # x\n]",
        "up[5m",
        "up{} {}",
        "1{}",
        '"x"{}',
        "(up){}",
        "sum{}",
        "By",
        "offset",
        "start",
        "a.b",
        "up anchored",
        "up fill(0) down",
        "up + fill(0) down",
        "up keep_metric_names",
        "up offset step()",
        "info(up)",
        "WITH (x = up) x",
        "Rate(up[5m])",
        "sum(up) limit 5",
        "up down",
        "up\x00",
        "up\\{}",
        '{namespace="other"}',
        "{\"namespace\"='other'}",
        "kube_secret_info",
        '{"kube_secret_info"}',
    ],
)
def test_what_cannot_be_bound_is_not_sent(query: str) -> None:
    with pytest.raises(Declined):
        confine_promql(query, SHOP)


@each_row("match", ["up or up", "sum(up)", "up[5m]", "up offset 5m", '{namespace="other"}', "up}", "1", "Inf"])
def test_a_match_is_one_selector(match: str) -> None:
    with pytest.raises(Declined):
        confined_selector(match, SHOP)


def test_brackets_are_read_to_a_bound() -> None:
    assert selectors_of("(" * MOST_NESTED + "up" + ")" * MOST_NESTED)
    assert len(selectors_of("+".join(["(up)"] * (MOST_NESTED + 1)))) == MOST_NESTED + 1
    with pytest.raises(Declined, match="nested too deeply"):
        selectors_of("sum(" * (MOST_NESTED + 1))


def test_metrics_that_name_secrets_are_not_shared_by_any_glob() -> None:
    within = Confinement("namespace", frozenset({"shop"}), ("*",))

    assert within.is_shared("node_load1")
    assert not within.is_shared("kube_secret_info")


LONG = {
    "digits": "1" * 90_000 + "_",
    "a fraction": "1" * 45_000 + "." + "1" * 45_000 + "_",
    "a text without an end": '"' + "\\a" * 45_000,
    "blanks": "up{a" + " " * 90_000 + "!",
    "too long": "up+" * 50_000 + "up",
}


@pytest.mark.parametrize("query", LONG.values(), ids=LONG.keys())
def test_a_long_query_is_refused_without_delay(query: str) -> None:
    with pytest.raises(Declined):
        selectors_of(query)


TEXT = st.sampled_from(["b", "}", "{", '\\"', "'", "`", "\\\\", "#", "//", "other", "x\\x41"]).map(
    lambda said: f'"{said}"'
)
LABEL = st.sampled_from(["a", "namespace", "__name__", "by", '"x.y"', "'namespace'"])
MATCHER = st.builds(lambda *parts: "".join(parts), LABEL, st.sampled_from(["=", "!=", "=~", " !~\n"]), TEXT)
BRACES = st.lists(st.one_of(MATCHER, TEXT), max_size=3).map(lambda found: f"{{{','.join(found)}}}")
SELECTOR = st.builds(lambda name, braces: name + braces, st.sampled_from(["up", "a:b", "node_load1", ""]), BRACES)
EXPRESSION = st.recursive(
    SELECTOR | st.sampled_from(["up", "1", "Inf", '"}{"', "`#`", "sum", "$x"]),
    lambda inner: st.one_of(
        st.builds("rate({}[5m] offset 1h)".format, inner),
        st.builds('label_replace({}, \'}}{{\', "$1", `(`, "#")'.format, inner),
        st.builds("sum by (a) ({})".format, inner),
        st.builds("max_over_time(({})[1h:1m] @ end())".format, inner),
        st.builds("{} or on(a) group_left {}".format, inner, inner),
        st.builds('{} |= "{{" # {}'.format, inner, inner),
        st.builds("{} - -{}".format, inner, inner),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("confine", "read"),
    [(confine_promql, promql.selectors_of), (confine_logql, logql.selectors_of)],
    ids=["promql", "logql"],
)
@settings(max_examples=500, deadline=None)
@given(text=EXPRESSION)
def test_every_selector_is_bound_or_the_text_declined(
    confine: Callable[[str, Confinement], str], read: Callable[[str], Sequence[Selector]], text: str
) -> None:
    try:
        sent = confine(text, SHOP)
    except Declined:
        return
    for selector in read(sent):
        own = any((one.label, one.op, one.literal) == ("namespace", "=", "shop") for one in selector.matchers)
        assert own or selector.name == "node_load1"
