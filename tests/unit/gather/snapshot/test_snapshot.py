"""The snapshot's promises: same ids twice, gaps that do not look empty, cuts that are said, nothing secret."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from inquest.api.refs import TargetRef
from inquest.core.diagnosis.detectors.registry import detect, examine
from inquest.core.diagnosis.health import flags_of, health_of
from inquest.core.evidence.evidence import Citation, Evidence, EvidenceStatus, Health
from inquest.core.evidence.rendering import MAX_LISTING
from inquest.core.evidence.snapshot import Snapshot
from inquest.core.redaction.redactor import Redactor
from inquest.errors import Forbidden, InquestError, Invalid, NotFound, NotKept, Unavailable
from inquest.gather.snapshot.collector import take_snapshot
from inquest.gather.snapshot.limits import MAX_EVENTS, MAX_PODS
from tests.support.tables import each_row
from tests.unit.gather.snapshot.support import NOW, FakeClock, FakeCluster, cluster, made, owner

DEPLOYMENT = TargetRef(api_version="apps/v1", kind="Deployment", name="api", namespace="shop")
POD = TargetRef(kind="Pod", name="api-2-b", namespace="shop")


async def taken(found: FakeCluster, target: TargetRef = DEPLOYMENT) -> Snapshot:
    return await take_snapshot(found, Redactor(), FakeClock(), target)


def entry(snapshot: Snapshot, read: str, about: str = "") -> Evidence:
    fitting = [each for each in snapshot.evidence if each.arguments["read"] == read]
    return next(each for each in fitting if about in " ".join(map(str, each.arguments.values())))


async def test_the_reads_come_in_their_order_without_gaps_in_the_numbers() -> None:
    snapshot = await taken(cluster())

    assert [each.id for each in snapshot.evidence] == [f"E{n}" for n in range(1, len(snapshot.evidence) + 1)]
    assert [each.arguments["read"] for each in snapshot.evidence] == [
        "target",
        "namespace",
        "pods",
        "warning events",
        "log",
        "previous log",
        "revisions",
        "difference of the last two revisions",
        "recent changes",
        "node",
        "services",
        "endpoint slices",
        "ingresses",
        "claims",
        "quotas",
        "limit ranges",
        "autoscalers",
        "disruption budgets",
        "network policies",
        "service accounts",
        "neighbour pods",
        "neighbour events",
        "neighbour normal events",
        "neighbour deployments",
        "neighbour replica sets",
        "cluster nodes",
        "neighbour listings without objects",
    ]
    assert snapshot.complete


async def test_twice_the_same_cluster_is_twice_the_same_snapshot() -> None:
    assert await taken(cluster()) == await taken(cluster())


async def test_a_pod_is_read_up_to_its_root() -> None:
    snapshot = await taken(cluster(), POD)

    assert [ref.display for ref in snapshot.chain] == ["ReplicaSet/api-2", "Deployment/api"]
    assert snapshot.root.display == "Deployment/api"
    assert snapshot.root_verified
    assert [each.arguments["read"] for each in snapshot.evidence[:3]] == ["target", "owner", "owner"]


async def test_objects_carry_the_entry_they_stand_in() -> None:
    snapshot = await taken(cluster())

    counts = Counter(seen.kind for seen in snapshot.objects)
    assert counts == {
        "Deployment": 1,
        "Pod": 3,
        "Event": 3,
        "ReplicaSet": 2,
        "Node": 1,
        "Namespace": 1,
        "Service": 2,
        "EndpointSlice": 1,
        "ResourceQuota": 1,
        "HorizontalPodAutoscaler": 1,
    }
    for seen in [each for each in snapshot.objects if each.kind != "Event"]:
        assert seen.name in next(each.text for each in snapshot.evidence if each.id == seen.evidence)


async def test_the_detectors_find_quotes_in_what_was_read() -> None:
    snapshot = await taken(cluster())

    finding, *_ = detect(snapshot)

    assert (finding.category, finding.object.display, finding.value) == ("OOMKilled", "Deployment/api", "64Mi")
    assert {citation.id for citation in finding.citations} == {entry(snapshot, "pods").id}
    assert health_of(snapshot) is Health.UNHEALTHY


async def test_the_unwell_pod_stands_first() -> None:
    text = entry(await taken(cluster()), "pods").text

    assert json.loads(text.splitlines()[0])["metadata"]["name"] == "api-2-b"


async def test_events_are_newest_first_and_neighbours_apart() -> None:
    snapshot = await taken(cluster())

    ours = [json.loads(line)["message"] for line in entry(snapshot, "warning events").text.splitlines()]
    assert ours == ["newest", "Back-off restarting; password=[REDACTED]"]
    assert "web-1" in entry(snapshot, "neighbour events").text


async def test_api_answers_are_facts_and_texts_are_not() -> None:
    facts = {each.arguments["read"]: each.api_fact for each in (await taken(cluster())).evidence}

    assert {read for read, fact in facts.items() if not fact} == {
        *("warning events", "neighbour events", "neighbour normal events", "log", "previous log")
    }


async def test_nothing_secret_and_nothing_bookkept_is_kept() -> None:
    snapshot = await taken(cluster())
    everything = str(snapshot)

    assert "hunter2" not in everything
    assert "abcdef" not in everything
    assert "fieldsV1" not in everything
    assert "DB_PASSWORD" in everything


async def test_logs_are_read_of_failing_containers_only() -> None:
    found = cluster()

    snapshot = await taken(found)

    assert [(log.pod, log.previous, log.last_line) for log in snapshot.logs] == [
        ("api-2-b", False, "starting"),
        ("api-2-b", True, "token=[REDACTED] allocating"),
    ]
    assert all("api-2-b" in call for call in found.asked if call.startswith("logs"))


LOST: dict[str, tuple[InquestError, str, bool]] = {
    "never ran": (NotFound("previous terminated container not found"), "1970-01-01T00:00:00Z", False),
    "ran, and is not there": (NotFound("previous terminated container not found"), "2026-11-20T11:59:00Z", False),
    "asked for in a way that is refused": (Invalid("the answer exceeds 2101248 bytes"), "2026-11-20T11:59:00Z", True),
    "taken away by the runtime": (NotKept("unable to retrieve container logs"), "2026-11-20T11:59:00Z", False),
    "not readable now": (Unavailable("the kubelet", "timed out"), "2026-11-20T11:59:00Z", True),
}


@pytest.mark.parametrize(("error", "started", "is_gap"), LOST.values(), ids=LOST.keys())
async def test_the_log_of_a_run_before_is_a_gap_where_it_may_be_read_now(
    error: InquestError, started: str, is_gap: bool
) -> None:
    found = without_previous_logs(cluster(), error, started)

    snapshot = await taken(found)

    assert any(gap.what.startswith("previous log") for gap in snapshot.gaps) is is_gap
    is_lost = not is_gap and started != "1970-01-01T00:00:00Z"
    assert (entry(snapshot, "previous log").text == "the container runtime no longer keeps it") is is_lost


def without_previous_logs(found: FakeCluster, error: InquestError, started: str) -> FakeCluster:
    """The runs before began at that time, and reading their logs fails."""

    class Forgetful(FakeCluster):
        async def logs(self, namespace: str, pod: str, container: str, *, previous: bool = False, **more: Any) -> str:
            if previous:
                raise error
            return await super().logs(namespace, pod, container, **more)

    for each in found.objects:
        for status in (each.get("status") or {}).get("containerStatuses") or ():
            if last := (status.get("lastState") or {}).get("terminated"):
                last["startedAt"] = started
    return Forgetful(**vars(found))


async def test_the_difference_names_what_changed() -> None:
    text = entry(await taken(cluster()), "difference of the last two revisions").text

    assert '-    "image": "api:1",' in text or '-    "image": "api:1"' in text
    assert "+++ revision 2" in text


FAILURES: dict[str, str] = {
    "list Pod": "pods",
    "list Event": "warning events",
    "list ReplicaSet": "revisions",
    "list Service": "services",
    "list EndpointSlice": "endpoint slices",
    "list ResourceQuota": "quotas",
    "list NetworkPolicy": "network policies",
    "get Node": "node",
    "logs": "log",
}


@each_row(("call", "read"), FAILURES.items(), ids=FAILURES.keys())
@each_row("error", [Forbidden("no"), Unavailable("kubernetes", "timed out")], ids=["denied", "down"])
async def test_a_read_that_fails_is_a_gap_with_an_entry(call: str, read: str, error: InquestError) -> None:
    snapshot = await taken(cluster(broken={call: [error]}))

    found = entry(snapshot, read)
    assert found.status is EvidenceStatus.GAP
    assert found.text.startswith("UNAVAILABLE: ")
    assert not found.holds
    assert not found.api_fact
    assert not found.empty
    assert snapshot.gaps
    assert health_of(snapshot) is not Health.HEALTHY


@pytest.mark.parametrize("text", ["Error from server (Forbidden): pods is forbidden"], ids=["P16"])
async def test_the_text_of_a_refusal_is_no_listing(text: str) -> None:
    snapshot = await taken(cluster(broken={"list Pod": [Forbidden(text)]}))

    assert snapshot.of_kind("Pod") == ()
    assert "pods Deployment/api" in [gap.what for gap in snapshot.gaps]
    assert flags_of(snapshot).pod_count is None
    assert not flags_of(snapshot).has_issues
    assert health_of(snapshot) is not Health.HEALTHY


async def test_a_target_that_is_gone_leaves_what_stands_around_it() -> None:
    gone = TargetRef(kind="Pod", name="gone", namespace="shop")

    snapshot = await taken(cluster(), gone)

    assert snapshot.evidence[0].status is EvidenceStatus.GAP
    assert not snapshot.root_verified
    assert "api-2-a" in entry(snapshot, "neighbour pods").text


GONE = TargetRef(kind="Pod", name="api-2-gone", namespace="shop")


def made_by(**regarded: str) -> FakeCluster:
    """The shop with a Pod that is gone, of which a Warning and the event of its maker are left."""
    maker = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-2", "uid": "ReplicaSet-api-2"} | regarded
    pod = {"kind": "Pod", "name": GONE.name, "namespace": "shop"}
    made_it = {"type": "Normal", "reason": "SuccessfulCreate", "message": f"Created pod: {GONE.name}"}
    failed = {"type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container"}
    at = "2026-11-22T09:59:00Z"
    return cluster(
        made("Event", "made", involvedObject=maker, lastTimestamp=at, **made_it),
        made("Event", "failed", involvedObject=pod, lastTimestamp=at, **failed),
    )


@pytest.mark.parametrize((), [pytest.param(id="S09")])
async def test_of_a_pod_that_is_gone_its_owner_and_its_events_are_used() -> None:
    snapshot = await taken(made_by(), GONE)

    assert snapshot.evidence[0].status is EvidenceStatus.GAP
    assert [gap.what for gap in snapshot.gaps] == ["get Pod/api-2-gone"]
    assert snapshot.root == DEPLOYMENT
    assert not snapshot.root_verified
    assert "Deployment/api" in [each.arguments.get("object") for each in snapshot.evidence]
    assert "Back-off restarting failed container" in entry(snapshot, "warning events").text
    killed = next(found for found in detect(snapshot) if found.category == "OOMKilled")
    assert killed.object == DEPLOYMENT


@pytest.mark.parametrize(
    "regarded",
    [
        pytest.param({"uid": "another"}, id="the maker was replaced"),
        pytest.param({"name": "api-9"}, id="the maker is gone too"),
        pytest.param({"kind": "Widget", "apiVersion": "a.example/v1"}, id="nobody who makes pods"),
    ],
)
async def test_an_event_alone_makes_nobody_an_owner(regarded: dict[str, str]) -> None:
    snapshot = await taken(made_by(**regarded), GONE)

    assert snapshot.root == GONE
    assert not snapshot.root_verified


async def test_an_empty_listing_says_so() -> None:
    found = entry(await taken(cluster()), "limit ranges")

    assert (found.text, found.empty, found.status) == ("none found", True, EvidenceStatus.OK)


async def test_many_pods_are_cut_at_a_line_end_and_said() -> None:
    template = {"containers": [{"name": "app", "image": "x" * 300}]}
    more = [_replica(number, template) for number in range(60)]

    snapshot = await taken(cluster(*more))

    pages = [each for each in snapshot.evidence if each.arguments["read"] == "pods"]
    assert [each.arguments.get("part", "1") for each in pages] == [str(n) for n in range(1, len(pages) + 1)]
    assert len(pages) > 1
    assert pages[-1].text.splitlines()[-1] == "… cut: 50 of 62 shown"
    assert pages[-1].status is EvidenceStatus.TRUNCATED
    assert all(len(each.text) <= MAX_LISTING + 50 for each in pages)
    assert any(name.startswith("pods") for name in snapshot.cut)


async def test_what_is_kept_stands_in_the_text_of_its_entry() -> None:
    template = {"containers": [{"name": "app", "image": "x" * 300}]}

    snapshot = await taken(cluster(*(_replica(number, template) for number in range(60))))

    texts = {each.id: each.text for each in snapshot.evidence}
    pods = snapshot.of_kind("Pod")
    assert len(pods) == MAX_PODS + 1
    assert all(f'"name":"{pod.name}"' in texts[pod.evidence] for pod in pods)


async def test_an_object_that_is_too_long_for_its_entry_is_no_cut_listing() -> None:
    long = made("LimitRange", "long", spec={"note": "many words " * 1000})

    snapshot = await taken(cluster(long))

    assert entry(snapshot, "limit ranges").status is EvidenceStatus.TRUNCATED
    assert snapshot.cut == ()
    assert snapshot.of_kind("LimitRange")


def _replica(number: int, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"labels": {"app": "api"}, "ownerReferences": [owner("ReplicaSet", "api-2")]}
    return made("Pod", f"more-{number:02}", metadata=metadata, spec=spec, status={"phase": "Running"})


async def test_many_events_are_cut_to_the_newest() -> None:
    regarding = {"kind": "Pod", "name": "api-2-a"}
    more = [
        made(
            "Event",
            f"e{number}",
            type="Warning",
            involvedObject=regarding,
            lastTimestamp=f"2026-11-22T09:{number % 60:02}:00Z",
        )
        for number in range(150)
    ]

    snapshot = await taken(cluster(*more))

    events = snapshot.of_kind("Event")
    assert len(events) == MAX_EVENTS
    assert events[0].object["lastTimestamp"] >= events[-1].object["lastTimestamp"]
    assert any(name.startswith("warning events") for name in snapshot.cut)


async def test_a_list_that_the_server_cut_is_said_to_be_cut() -> None:
    snapshot = await taken(cluster(most=1))

    assert not snapshot.complete
    assert entry(snapshot, "pods").status is EvidenceStatus.TRUNCATED


async def test_a_pod_without_owner_is_its_own_root() -> None:
    lone = made("Pod", "lone", spec={"containers": []}, status={"phase": "Running"})

    snapshot = await taken(cluster(lone), TargetRef(kind="Pod", name="lone", namespace="shop"))

    assert snapshot.root.display == "Pod/lone"
    assert snapshot.chain == ()


async def test_a_node_shows_the_pods_on_it_and_no_rows_of_others() -> None:
    snapshot = await taken(cluster(), TargetRef(kind="Node", name="node-1", namespace="shop"))

    assert snapshot.target.namespace is None
    assert {seen.name for seen in snapshot.of_kind("Pod")} == {"api-2-a", "api-2-b"}
    (findings, beside), _ = examine(snapshot)
    assert findings == ()
    assert [finding.object.display for finding in beside] == ["Deployment/api"]


async def test_the_pods_of_a_cron_job_are_found_through_its_jobs() -> None:
    nightly = made("CronJob", "nightly", api_version="batch/v1", spec={"jobTemplate": {}})
    run = made(
        "Job",
        "nightly-1",
        api_version="batch/v1",
        metadata={"ownerReferences": [owner("CronJob", "nightly", "batch/v1")]},
    )
    failed = made(
        "Pod",
        "nightly-1-x",
        metadata={"ownerReferences": [owner("Job", "nightly-1", "batch/v1")]},
        spec={"containers": [{"name": "app"}]},
        status={"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]},
    )
    target = TargetRef(api_version="batch/v1", kind="CronJob", name="nightly", namespace="shop")
    found = cluster(nightly, run, failed)
    found.texts["nightly-1-x", "app", False] = "no such table\n"

    snapshot = await taken(found, target)

    first, *_ = detect(snapshot)
    assert (first.category, first.object.display) == ("ApplicationError", "CronJob/nightly")


async def test_claims_and_their_volumes_are_read() -> None:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    lone = made("Pod", "lone", spec={"containers": [], "volumes": volumes}, status={"phase": "Pending"})
    claim = made("PersistentVolumeClaim", "data", spec={"volumeName": "pv-1"}, status={"phase": "Bound"})
    volume = made("PersistentVolume", "pv-1", "", status={"phase": "Bound"})

    snapshot = await taken(cluster(lone, claim, volume), TargetRef(kind="Pod", name="lone", namespace="shop"))

    assert "data" in entry(snapshot, "claims").text
    assert "pv-1" in entry(snapshot, "volume").text


async def test_secrets_are_never_asked_for() -> None:
    found = cluster()

    await taken(found)

    assert not [call for call in found.asked if "Secret" in call]


async def test_a_programming_error_is_raised() -> None:
    found = cluster(broken={"logs": [KeyError("oops")]})

    with pytest.raises(KeyError):
        await taken(found)


async def test_a_node_that_left_is_an_answer_and_no_gap() -> None:
    gone = cluster()
    gone.objects = [each for each in gone.objects if each["kind"] != "Node"]

    snapshot = await taken(gone)

    found = entry(snapshot, "node")
    assert (found.text, found.empty, found.api_fact) == ("NotFound: Node/node-1", True, True)
    assert snapshot.gaps == ()
    assert snapshot.absence(TargetRef(kind="Node", name="node-1")) == Citation(found.id, "NotFound: Node/node-1")
    assert health_of(snapshot) is Health.UNHEALTHY


def service(name: str) -> TargetRef:
    return TargetRef(kind="Service", name=name, namespace="shop")


async def test_a_listing_that_was_answered_whole_proves_absence() -> None:
    snapshot = await taken(cluster())

    proof = snapshot.absence(service("db"))

    assert proof == Citation(entry(snapshot, "services").id, "listed whole: 2 Service in shop")
    assert proof.quote in entry(snapshot, "services").text


async def test_what_was_listed_and_not_kept_is_not_absent() -> None:
    snapshot = await taken(cluster())

    assert snapshot.proves_absent(service("web")) == ""
    assert snapshot.proves_absent(service("api")) == ""


async def test_a_cut_listing_is_no_proof_of_absence() -> None:
    snapshot = await taken(cluster(most=1))

    assert snapshot.proves_absent(service("db")) == ""


async def test_a_selected_listing_is_no_proof_of_absence() -> None:
    snapshot = await taken(cluster())

    assert "Event" not in {each.kind for each in snapshot.listings}


async def test_the_beginning_and_the_words_of_other_checks_are_kept() -> None:
    since = NOW - timedelta(minutes=5)

    snapshot = await take_snapshot(
        cluster(), Redactor(), FakeClock(), DEPLOYMENT, since=since, texts=[("df -h", "/var 100%\npassword=hunter2\n")]
    )

    (text,) = snapshot.texts
    assert snapshot.since == since
    assert (text.title, text.text) == ("df -h", "/var 100%\npassword=[REDACTED]")
    assert not entry(snapshot, "text").api_fact
    assert entry(snapshot, "text").id == text.evidence
