"""What people see with the real kubectl: columns, short names, the category, field selectors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from inquest.api.registry import BY_KIND
from tests.support.kube import Cluster, Kubectl, own_namespace, proposal, sample

D64 = "a" * 64

SHOWN = {
    "sig": (
        "NAME SEVERITY TARGET ENV PRIORITY PHASE REASON COUNT AGE",
        "sig-checkout critical Deployment/checkout Production P0 Accepted Accepted 3",
        "SOURCE MODE INVESTIGATION LAST-SEEN FINGERPRINT",
        f"Alertmanager Reactive inv-checkout {D64}",
    ),
    "inv": (
        "NAME SIGNAL TARGET PHASE OUTCOME RESULT CONFIDENCE WORKFLOW APPROVAL AGE",
        "inv-checkout KubePodCrashLooping Deployment/checkout AwaitingApproval WorkflowSelected 0.88"
        " RollbackDeployment:crashloop-rollback Pending",
        "MODEL TOKENS TURNS COST",
        "big-model 8335 4 0.0412",
    ),
    "rar": (
        "NAME INVESTIGATION TARGET WORKFLOW CONFIDENCE PHASE BY EXPIRES AGE",
        "rar-inv-checkout inv-checkout checkout crashloop-rollback 0.92 Pending 2026-11-20T10:17:00Z",
        "REASON RISK APPROVALS VOID",
        "Production environment 70",
    ),
    "wfe": (
        "NAME PHASE WORKFLOW TARGET SCORE DURATION AGE",
        "wfe-inv-checkout Verifying crashloop-rollback checkout 0.8125 30",
        "REASON JOB APPROVAL BLOCKED-BY",
        "JobSucceeded wfe-0123456789abcdef rar-inv-checkout wfe-inv-other",
    ),
    "at": (
        "NAME NAME WORKFLOWS REGISTRATION AGE",
        "rollback-deployment RollbackDeployment 1 Active",
        "WHAT",
        "Return a Deployment to its previous revision",
    ),
    "rwf": (
        "NAME ID VERSION ACTION ENGINE REGISTRATION AGE",
        "crashloop-rollback crashloop-rollback 1.0.0 RollbackDeployment job Active",
        "SEVERITY ENVIRONMENT WORKFLOW-ID",
        '["critical","high"] ["production","staging"] e3301bbf-f684-5251-9d0c-2f3b1a776c9f',
    ),
}
KINDS = {entry.short: kind for kind, entry in BY_KIND.items()}


@pytest.fixture(scope="module")
def shop(cluster: Cluster) -> Iterator[Kubectl]:
    """One rich object of every kind."""
    with own_namespace(cluster) as name:
        operator, admin = cluster.operator.within(name), cluster.kubectl.within(name)
        for kind in BY_KIND:
            found = sample(kind)
            assert (operator if "Approval" in kind else admin).create(proposal(kind)).accepted
            assert operator.status(kind, found["metadata"]["name"], found["status"]).accepted
        yield admin


def _words(line: str) -> str:
    """The words of a row without its ages, which change while one looks."""
    return re.sub(r" (\d+[smhdy])+\b(?! left)", "", re.sub(r"\s+", " ", line)).strip()


@pytest.mark.parametrize("short", SHOWN)
def test_the_columns_tell_the_story(short: str, shop: Kubectl) -> None:
    header, row = shop("get", short).splitlines()

    expected_header, expected_row, _, _ = SHOWN[short]
    assert header.split() == expected_header.split()
    assert _words(row) == _words(expected_row)


@pytest.mark.parametrize("short", SHOWN)
def test_wide_adds_the_details(short: str, shop: Kubectl) -> None:
    header, row = shop("get", short, "-o", "wide").splitlines()

    narrow, narrow_row, more, more_row = SHOWN[short]
    assert header.split() == [*narrow.split(), *more.split()]
    assert _words(row) == _words(f"{narrow_row} {more_row}")


def test_one_word_lists_every_kind_everywhere(shop: Kubectl, cluster: Cluster) -> None:
    lines = cluster.kubectl("get", "inquest", "-A", "-o", "name").splitlines()

    assert {line.partition("/")[0] for line in lines} >= {
        entry.crd_name.replace("s.", ".", 1) for entry in BY_KIND.values()
    }


@pytest.mark.parametrize("short", SHOWN)
def test_the_short_name_is_the_kind(short: str, shop: Kubectl) -> None:
    assert shop("get", short, "-o", "jsonpath={.items[0].kind}") == KINDS[short]


SELECTED = [
    ("sig", "spec.name", "KubePodCrashLooping"),
    ("sig", "spec.severity", "critical"),
    ("inv", "spec.signalRef.name", "sig-checkout"),
    ("rar", "spec.investigationRef.name", "inv-checkout"),
    ("wfe", "spec.investigationRef.name", "inv-checkout"),
    ("rwf", "spec.id", "crashloop-rollback"),
    ("rwf", "spec.actionType", "RollbackDeployment"),
]


@pytest.mark.parametrize(("short", "path", "value"), SELECTED)
def test_a_field_selector_finds_it_and_nothing_else(short: str, path: str, value: str, shop: Kubectl) -> None:
    found = shop("get", short, f"--field-selector={path}={value}", "-o", "name")
    others = shop("get", short, f"--field-selector={path}!={value}", "-o", "name")

    assert (len(found.splitlines()), others) == (1, "")


def test_kubectl_explain_says_what_a_field_means(shop: Kubectl) -> None:
    assert "Earliest next Investigation of this fingerprint." in shop("explain", "inv.status.nextAllowed")
