"""The causal order of findings, as a table of sentences (cases, section 3), and what must hold for any of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, permutations
from typing import Any

import pytest

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.causality import EVERY, RELATIONS
from inquest.core.diagnosis.detectors.links import links
from inquest.core.diagnosis.detectors.ranking import ranked
from inquest.core.diagnosis.detectors.registry import detect, examine
from inquest.core.evidence.evidence import Citation, Finding, Gap
from inquest.core.evidence.snapshot import Snapshot
from tests.support.tables import each_row
from tests.unit.core.diagnosis.detectors.support import cases, snapshot_of

CASES = cases("ranking_order")
FACTS = {
    "container": "container",
    "place": "onNode",
    "hosts": "hosts",
    "account": "serviceAccount",
    "part": "component",
}
CLUSTER_SCOPED = {"Node", "Namespace", "PersistentVolume"}


def reference(text: str, namespace: str = "shop") -> TargetRef:
    kind, _, name = text.partition("/")
    return TargetRef(api_version="v1", kind=kind, name=name, namespace=None if kind in CLUSTER_SCOPED else namespace)


def finding_of(case: dict[str, Any]) -> Finding:
    return Finding(
        detector=case.get("by", "by hand"),
        category=case["category"],
        object=reference(case["object"], case.get("namespace", "shop")),
        field=case.get("field", ""),
        value=case.get("value", ""),
        summary=f"{case['object']}: {case['category']}",
        confidence=case["confidence"],
        citations=tuple(Citation(entry, "quote") for entry in case.get("cites", ())),
        felt_by=tuple(reference(each) for each in case.get("felt", ())),
        facts={name: case[word] for word, name in FACTS.items() if word in case},
    )


def said(expected: dict[str, Any], finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = {
        "category": finding.category,
        "object": finding.object.display,
        "confidence": finding.confidence,
        "relation": finding.facts.get("relation"),
        "outside": expected.get("outside") if str(expected.get("outside")) in finding.summary else finding.summary,
        "explains": sorted(text.partition(":")[0] for text in finding.explains),
    }
    return {word: found[word] for word in expected}


def test_a_call_that_fails_explains_why_its_caller_is_not_well() -> None:
    snapshot = snapshot_of({"objects": CASES["red herring: a neighbour that nobody calls"]["objects"]})
    seen = {"pod": "web-1-a", "container": "app"}
    unwell = finding_of({"category": "ApplicationError", "object": "Deployment/web", "confidence": 0.6})
    partner = finding_of({"category": "ExternalServiceFailing", "object": "External/partner", "confidence": 0.55})
    partner = replace(partner, summary="External/partner does not answer Deployment/web: 503")

    told = ranked(snapshot, (replace(unwell, facts=seen), replace(partner, facts=seen)))
    apart = ranked(snapshot, (replace(unwell, facts={**seen, "pod": "web-1-b"}), replace(partner, facts=seen)))

    assert [each.category for each in told.findings] == ["ExternalServiceFailing", "ApplicationError"]
    assert apart.findings[0].category == "ApplicationError"


@each_row("case", CASES.values(), ids=list(CASES))
def test_what_explains_the_others_stands_above_them(case: dict[str, Any]) -> None:
    told = ranked(snapshot_of(case), map(finding_of, case["findings"]))

    expected = [
        {**each, **({"explains": sorted(each["explains"])} if "explains" in each else {})} for each in case["expected"]
    ]
    for found, wanted in ((told.findings, expected), (told.observations, case.get("apart", []))):
        assert [said(want, finding) for want, finding in zip(wanted, found, strict=False)] == wanted
        assert len(found) == len(wanted)


@each_row("case", CASES.values(), ids=list(CASES))
def test_the_order_in_which_detectors_speak_does_not_matter(case: dict[str, Any]) -> None:
    snapshot, findings = snapshot_of(case), [finding_of(each) for each in case["findings"]]

    firsts = {next(chain(*ranked(snapshot, order))).category for order in permutations(findings)}

    assert len(firsts) == 1


def test_every_word_of_the_table_is_a_category() -> None:
    for row in RELATIONS:
        assert row.causes <= EVERY, row.says
        assert row.effects <= EVERY, row.says


def test_a_ranking_that_fails_leaves_a_gap_and_blames_nobody() -> None:
    case = CASES["a kill explains the crash loop of its container"]
    snapshot = snapshot_of(
        {
            **case,
            "objects": [
                *case["objects"][:1],
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p", "namespace": "shop", "ownerReferences": 7},
                },
            ],
        }
    )
    findings = [finding_of(each) for each in case["findings"]]

    def told(_: Snapshot, /) -> list[Finding]:
        return findings

    found, gaps = examine(snapshot, (told,))

    assert found.findings == ()
    assert [each.category for each in found.observations] == ["OOMKilled", "CrashLoopBackOff"]
    assert gaps == (Gap("ranking", "TypeError"),)


def test_a_setting_that_only_looks_like_a_host_is_no_call() -> None:
    case = CASES["the callee rather than the caller"]
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
    texts = {"a": "see api and db for more", "b": "https://api.example.com/db", "c": "level: info"}
    found = links(snapshot_of({**case, "objects": [*case["objects"], {**settings, "data": texts}]}))

    assert not found.reach(("ConfigMap", "shop", "c"))


@each_row(
    "text",
    [
        "http://db/x",
        "db:5432",
        "db",
        "host: db",
        'HOST="db"',
        "postgres://u@db.shop:5432/x",
        "db.shop.svc",
        "server db.shop.svc.cluster.local:5432;",
    ],
)
def test_a_setting_that_names_a_service_is_a_call(text: str) -> None:
    case = CASES["the callee rather than the caller"]
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "shop"},
        "data": {"k": text},
    }
    found = links(snapshot_of({**case, "objects": [*case["objects"], settings]}))

    assert ("Service", "shop", "db") in found.reach(("ConfigMap", "shop", "c"))


@pytest.mark.parametrize(
    "sentence", ["somebody of a higher priority took its room", "who tells the nodes of their devices does not run"]
)
def test_who_is_known_to_harm_the_target_is_linked_to_it(sentence: str) -> None:
    case = cases("unschedulable")[sentence]
    waits = case["objects"][0]["metadata"]
    target = {"apiVersion": "v1", "kind": "Pod", "name": waits["name"], "namespace": "shop"}
    owner = {key: waits["ownerReferences"][0][key] for key in ("apiVersion", "kind", "name")}

    first = detect(snapshot_of({**case, "target": target, "chain": [{**owner, "namespace": "shop"}]}))[0]

    assert (first.facts["relation"], first.confidence) == ("needed", 0.88)


def of_revision(after: str) -> Finding:
    found = finding_of({"object": "Deployment/web", "category": "BadRevision", "confidence": 0.75})
    return replace(found, facts={"after": after}, explains=("Pod/web-1-a: Error",))


@pytest.mark.parametrize(
    ("after", "field", "first"),
    [
        ("web:2", "status.readyReplicas", "DependencyFailing"),
        ("http://db:5432", "status.readyReplicas", "BadRevision"),
        ("web:2", "process", "BadRevision"),
    ],
    ids=["it is down", "the revision set its address", "nobody knows that it is down"],
)
def test_a_revision_is_not_to_blame_for_who_is_down(after: str, field: str, first: str) -> None:
    snapshot = snapshot_of({"objects": CASES["red herring: a neighbour that nobody calls"]["objects"]})
    down = finding_of({"object": "StatefulSet/db", "category": "DependencyFailing", "confidence": 0.7, "field": field})
    down = replace(down, facts={"pod": "web-1-a", "container": "app"})

    assert ranked(snapshot, (down, of_revision(after))).findings[0].category == first
