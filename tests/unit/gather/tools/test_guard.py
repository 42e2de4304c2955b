"""What a case may read, asked of the guards themselves."""

from __future__ import annotations

import pytest

from inquest.gather.tools.arguments import check_pattern
from inquest.gather.tools.hints import CallRefused
from inquest.gather.tools.kubernetes import _matcher
from inquest.gather.tools.scope import Scope, check_namespace, without_blocked


@pytest.mark.parametrize("scope", [Scope(""), Scope("", frozenset({"", "pay"}))], ids=["alone", "with another"])
def test_a_case_of_the_cluster_does_not_read_all_namespaces(scope: Scope) -> None:
    assert not scope.holds("")
    with pytest.raises(CallRefused, match="is not part of this case"):
        check_namespace("", scope)


def test_a_list_of_secrets_counts_as_many_as_it_holds() -> None:
    secrets = {"kind": "SecretList", "items": [{}, {}, {}]}

    assert without_blocked(secrets) == (None, 3)
    assert without_blocked({"kind": "List", "items": [secrets, {"kind": "Pod"}]}) == (
        {"kind": "List", "items": [{"kind": "Pod"}]},
        3,
    )


@pytest.mark.parametrize("pattern", ["(a+)+", "(a)(b)\\2", "(?P<x>a)(?P=x)", "(a|b){9}", "("])
def test_a_pattern_that_could_run_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"not supported|not a regular expression"):
        check_pattern(pattern)


@pytest.mark.timeout(10)
def test_repeats_in_a_row_over_a_long_line_end_at_once() -> None:
    keep = _matcher("/^a*a*a*a*a*b$/")

    assert not keep("a" * 4_000)
