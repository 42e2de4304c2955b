"""Thirteen cases on a real node, end to end, as the chart runs the product: each with a broken workload of its own.

The cases are played at once, each in its namespace; `plays.py` says what happens in them. When ten have ended the
release is upgraded to one whose policy does not compile: OPA is away, and the window that held the eleventh is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest
import yaml

from hack.rights.judging import Verdict, judge
from hack.rights.known import KNOWN
from tests.e2e.chart.cases import broken, plays
from tests.e2e.chart.cases.plays import BACK, RAISE, REQUEST, SECONDS, Interval, Play, Played, is_recorded
from tests.e2e.chart.cases.release import Release, release
from tests.e2e.chart.cases.rest import use_the_rest
from tests.e2e.chart.chart import NAMESPACE
from tests.e2e.chart.conftest import Site
from tests.support.api import Object
from tests.support.kube import eventually
from tests.support.world import conditions, phase_of, word

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(1500)]

NO_POLICY = "package inquest.approval\n\nrequire_approval :="
INTERVAL = Interval()
GOING = ("--ignore-not-found", "--wait=false")
FROZEN, AWAY = "frozen", "away"
PLAYS: Mapping[str, tuple[str, Play]] = {
    "staging": ("staging", plays.by_itself(broken.LIMIT_TOO_LOW)),
    "approved": ("production", plays.by_group(broken.WRONG_IMAGE)),
    "rejected": ("production", plays.decided(broken.WRONG_COMMAND, "Rejected")),
    "expired": ("production", plays.by_itself(broken.VARIABLE_MISSING)),
    "drift": ("production", plays.drifts(broken.WRONG_PROBE_PATH)),
    "two-people": ("somewhere", plays.by_two(broken.WRONG_OPTION)),
    "leaver": ("somewhere", plays.by_a_leaver(broken.WRONG_OPTION)),
    "undo": ("staging", plays.taken_back(broken.NO_WAY_BACK)),
    "in-vain": ("staging", plays.in_vain(broken.OUTGROWS_EVERY_LIMIT)),
    "resolved": ("production", plays.resolves(broken.WRONG_PROBE_PORT)),
    "changed": ("production", plays.changes(broken.MOUNT_OVER_A_FILE)),
    FROZEN: ("staging", plays.held(broken.INIT_FAILS, INTERVAL)),
    AWAY: ("staging", plays.without_policy(broken.MUST_NOT_BE_ROOT, INTERVAL)),
}
"""Environment and play by the name of the case."""


@dataclass(frozen=True)
class Season:
    """What was played, and the release that stands until the last test."""

    live: Release
    played: Mapping[str, Future[Played]]
    namespaces: tuple[str, ...]


@pytest.fixture(scope="module")
def season(request: pytest.FixtureRequest, cluster: Site) -> Iterator[Season]:
    """Every case that this run has selected, over."""
    items = request.session.items
    calls = (getattr(item, "callspec", None) for item in items)
    wanted = {call.params["done"] for call in calls if call and "done" in call.params} or {*PLAYS}
    wanted = {*PLAYS} if any("whole" in getattr(item, "fixturenames", ()) for item in items) else wanted
    mark = uuid4().hex[:6]
    window = {"name": "always", "schedule": "* * * * *", "duration": "1h", "namespaces": [f"{FROZEN}-{mark}"]}
    with release(cluster, window) as live, ThreadPoolExecutor(len(PLAYS)) as pool:
        teams = {name: live.team(f"{name}-{mark}", PLAYS[name][0]) for name in wanted}
        found = {name: pool.submit(PLAYS[name][1], team) for name, team in teams.items()}
        try:
            _interval(live, found)
        finally:
            INTERVAL.is_over.set()
        wait(found.values())
        yield Season(live, found, tuple(team.namespace for team in teams.values()))
        cluster.kubectl("delete", "namespace", *(team.namespace for team in teams.values()), *GOING)
        cluster.kubectl("delete", "sig,inv,rar,wfe", "--all", "-A", "--timeout=120s")


def _interval(live: Release, found: Mapping[str, Future[Played]]) -> None:
    """The second release, as soon as the first has done its work."""
    wait([future for name, future in found.items() if name not in (FROZEN, AWAY)])
    if FROZEN in found:
        INTERVAL.is_held.wait(SECONDS)
    if {FROZEN, AWAY} & found.keys():
        live.upgrade(live.values(policy={"content": NO_POLICY}))


@pytest.fixture
def whole(season: Season) -> Season:
    """The season with every case, whatever else was selected."""
    return season


@pytest.fixture(scope="module")
def trail(season: Season) -> Mapping[str, tuple[Object, ...]]:
    """What DataStorage has of each case, by its uid."""
    ended = [future.result() for future in season.played.values() if future.exception() is None]
    for one in ended:
        one.team.shows(one.case, is_recorded)
    found: dict[str, tuple[Object, ...]] = {}
    for event in season.live.trail():
        found[event["correlation_id"]] = (*found.get(event["correlation_id"], ()), event)
    return found


@pytest.fixture
def done(request: pytest.FixtureRequest, season: Season, trail: Mapping[str, tuple[Object, ...]]) -> Played:
    """One of the cases."""
    found = season.played[request.param].result()
    print(yaml.safe_dump(found.case["status"]))
    return replace(found, trail=trail[found.uid])


def case(name: str, rows: str = "") -> pytest.MarkDecorator:
    """Which case a test is about, and the rows of the conformance tables that it proves."""
    return pytest.mark.parametrize("done", [pytest.param(name, id=rows or name)], indirect=True)


def ended(case: Object) -> tuple[object, ...]:
    """The words in which a case ends."""
    return word(case, "phase", "reason", "outcome", "resolution")


REMEDIED = ("Completed", "VerificationCompleted", "WorkflowSelected", "Remediated")


@case("staging")
def test_in_staging_a_fault_is_mended_without_asking_anybody(done: Played) -> None:
    """A container that is killed at its memory limit gets a higher one."""
    assert ended(done.case) == REMEDIED
    assert (word(done.case, "approval")[0]["state"], done.find(REQUEST, "rar")) == ("Auto", None)
    assert conditions(done.case)["ApprovalRequired"] == ("False", "AutoApproved")
    run = done.run
    assert (phase_of(run), run["spec"]["workflow"]["id"], "approvalRef" in run["spec"]) == ("Succeeded", RAISE, False)
    assert run["status"]["preSpecHash"] != run["status"]["postSpecHash"]
    assert limit(done.before) == "32Mi"
    assert limit(done.team.deployment()) == "64Mi"
    assert done.team.serves()
    assert done.remembered() == ("", "IncreaseMemoryLimits", "Resolved")
    done.leaves_nothing()


@case("approved", "C-LC-2")
def test_in_production_nothing_runs_before_a_person_has_approved(done: Played) -> None:
    """An image that is nowhere is rolled back, once one has approved who may by a group, and who did not ask."""
    said, right = done.said, "remediationapprovalrequests.inquest.dev"
    refused = {who: one.message for who, one in said.items() if who not in ("still", "grace")}
    assert {one.code for who, one in said.items() if who in refused} == {403}
    lacks = f'mallory may not approve {right} "{done.request["metadata"]["name"]}" in namespace {NAMESPACE}'
    assert all(lacks in text for who, text in refused.items() if who.startswith("mallory"))
    assert "spec.deciderIdentity must be your own" in refused["grace in another's group"]
    assert "jane asked for this, and who asked may not approve" in refused["jane"]
    assert phase_of(said["still"]) == "Pending"
    assert not said["still"]["spec"].keys() & {"decision", "decidedBy", "deciderIdentity", "approvals"}
    assert said["grace"].code == 200
    assert ended(done.case) == REMEDIED
    request, run = done.request, done.run
    assert word(request, "phase", "decidedBy", "consumedBy") == ("Approved", "grace", run["metadata"]["uid"])
    assert sorted(request["spec"]["deciderIdentity"]["groups"]) == ["oncall", "payments", "system:authenticated"]
    assert (phase_of(run), run["spec"]["approvalRef"]["name"]) == ("Succeeded", request["metadata"]["name"])
    assert done.case["status"]["approval"]["decidedBy"] == "grace"
    assert "Approval" in [notice["type"] for notice in done.case["status"]["notices"]]
    assert "registry.example.test" in image(done.before)
    assert image(done.team.deployment()) == broken.IMAGE
    assert done.team.serves()
    assert done.remembered() == ("Approved by grace", "RollbackDeployment", "Resolved")
    done.leaves_nothing()


@case("rejected", "C-RA-3")
def test_what_a_person_rejects_is_not_done(done: Played) -> None:
    """A command that does not exist stays, and the case says who rejected."""
    assert (done.said["eve"].code, done.said["jane"].code) == (403, 200)
    assert ended(done.case) == ("Failed", "ApprovalRejected", "WorkflowSelected", None)
    assert done.case["status"]["message"].endswith("; Rejected by jane")
    assert word(done.request, "phase", "decidedBy", "consumedBy") == ("Rejected", "jane", None)
    assert done.is_untouched
    done.team.cases.tells(done.case, "ApprovalRejected")
    assert done.remembered() == ("Rejected by jane", "", "Unknown")
    done.leaves_nothing()


@case("expired")
def test_what_nobody_answers_is_not_done(done: Played) -> None:
    """A variable stays missing; people were told twice."""
    assert ended(done.case) == ("Failed", "ApprovalExpired", "WorkflowSelected", None)
    assert word(done.request, "phase", "decidedBy", "consumedBy") == ("Expired", None, None)
    told = [notice["type"] for notice in done.case["status"]["notices"]]
    assert (told.count("Approval"), told.count("Escalation")) == (2, 1)
    assert not done.team.says("jane", done.request, decision="Approved").accepted, "too late is too late"
    assert done.is_untouched
    assert done.remembered() == ("", "", "Unknown")
    done.leaves_nothing()


@case("drift")
def test_what_was_approved_for_another_state_of_the_target_is_not_done(done: Played) -> None:
    """Somebody set a variable beside the probe that asks for a wrong path."""
    assert ended(done.case) == ("Failed", "ApprovalVoided", "WorkflowSelected", None)
    assert word(done.request, "phase", "voidReason", "consumedBy") == ("Voided", "TargetDrifted", None)
    assert "nextAllowed" not in done.case["status"], "that is no failure"
    assert done.is_untouched
    assert done.remembered() == ("", "", "Unknown")
    done.leaves_nothing()


@case("two-people", "C-RA-8")
def test_where_two_must_agree_one_is_not_enough(done: Played) -> None:
    """An option that the program does not know is rolled back, once jane and bob have both said so."""
    assert {who: said.accepted for who, said in done.said.items()} == {
        "alone": False,
        "for bob": False,
        "entered": True,
        "twice": False,
        "bob": True,
    }
    assert ended(done.case) == REMEDIED
    request = done.request
    entered = [(one["user"], one["identity"]["groups"]) for one in request["spec"]["approvals"]]
    assert (request["spec"]["requiredApprovals"], entered) == (2, [("jane", ["system:authenticated"])])
    assert word(request, "phase", "decidedBy", "consumedBy") == ("Approved", "bob", done.run["metadata"]["uid"])
    assert command(done.before)[0] == "httpd"
    assert command(done.team.deployment())[0] == "/bin/sh"
    assert done.team.serves()
    assert done.remembered() == ("Approved by bob", "RollbackDeployment", "Resolved")
    done.leaves_nothing()


@case("leaver")
def test_an_approval_whose_giver_has_lost_the_right_is_not_used(done: Played) -> None:
    """Two had agreed; the group of the first one was taken off the list before the second decided."""
    assert (done.said["ivan"].code, done.said["bob"].code) == (200, 200)
    assert ended(done.case) == ("Failed", "ApprovalExpired", "WorkflowSelected", None)
    assert "ivan may not approve" in done.case["status"]["message"]
    assert done.request["status"].get("consumedBy") is None
    assert done.is_untouched
    assert done.remembered()[1:] == ("", "Unknown")
    done.leaves_nothing()


@case("undo")
def test_what_did_no_good_is_taken_back(done: Played) -> None:
    """The revision before cannot run any more either: its ConfigMap is gone."""
    assert ended(done.case) == ("Completed", "RolledBack", "WorkflowSelected", "Ineffective")
    run, undo = done.run, done.undo
    assert (phase_of(run), phase_of(undo)) == ("RolledBack", "Succeeded")
    assert run["status"]["effectiveness"]["health"] == 0
    assert (undo["spec"]["purpose"], undo["spec"]["undoOf"]["uid"]) == ("Undo", run["metadata"]["uid"])
    assert undo["spec"]["workflow"]["id"] == BACK
    now, then = done.team.deployment(), done.before
    assert now["metadata"]["generation"] == then["metadata"]["generation"] + 2, "there and back"
    assert now["spec"]["template"] == then["spec"]["template"]
    done.team.cases.tells(done.case, "UndoStarted")
    assert done.remembered() == ("", "RollbackDeployment", "Partial")
    done.leaves_nothing()


@case("in-vain", "C-TR-9")
def test_what_did_no_good_twice_is_not_done_a_third_time(done: Played) -> None:
    """Memory that grows without end: two limits were raised, the third is left as it is."""
    first, second = done.said["first"], done.said["second"]
    in_vain = ("Completed", "VerificationCompleted", "WorkflowSelected", "Ineffective")
    assert [ended(first), ended(second)] == [in_vain, in_vain]
    entries = [one["status"]["context"]["history"].get("entries", 0) for one in (first, second, done.case)]
    assert entries == [0, 1, 2]
    assert word(done.signal, "phase", "reason") == ("Blocked", "IneffectiveChain")
    assert ended(done.case) == ("Failed", "RemediationBlocked", "WorkflowSelected", "ManualReviewRequired")
    assert word(done.case, "subReason", "humanReviewReason") == ("IneffectiveChain", "IneffectiveChain")
    told = [(notice["type"], notice["priority"]) for notice in done.case["status"]["notices"]]
    assert told == [("ManualReview", "High")]
    assert done.team.cases.events(done.case).count("RemediationBlocked") == 1
    assert done.is_untouched
    assert limit(done.before) == "128Mi"
    assert done.remembered() == ("", "", "Unknown")
    done.leaves_nothing()


@case("resolved")
def test_an_alert_that_is_over_takes_the_question_away(done: Played) -> None:
    """While a person thinks; who answers afterwards is refused."""
    assert ended(done.case) == ("Completed", "WorkflowNotNeeded", "WorkflowSelected", "NoActionRequired")
    assert word(done.case, "subReason") == ("SignalResolved",)
    assert word(done.request, "phase", "voidReason", "consumedBy") == ("Voided", "SignalResolved", None)
    assert not done.said["late"].accepted
    signal = done.team.api.get("Signal", done.signal["metadata"]["name"], NAMESPACE)
    assert phase_of(signal) == "Resolved"
    assert done.is_untouched
    assert done.remembered() == ("", "", "Unknown")
    done.leaves_nothing()


@case(FROZEN)
def test_a_freeze_window_holds_what_was_ruled_until_it_is_over(done: Played) -> None:
    """An init container that fails is rolled back by the second release, under the ruling of the first."""
    held = done.said["held"]
    assert (phase_of(held), done.said["kept"]) == ("Analyzing", True)
    assert held["status"]["message"].startswith("EffectsFrozen: effects are frozen by the window always (until 20")
    done.team.cases.tells(held, "EffectsFrozen")
    assert ended(done.case) == REMEDIED
    assert done.case["status"]["ruling"] == held["status"]["ruling"]
    assert (done.case["status"]["approval"]["state"], done.find(REQUEST, "rar")) == ("Auto", None)
    assert "initContainers" in done.before["spec"]["template"]["spec"]
    assert "initContainers" not in done.team.deployment()["spec"]["template"]["spec"]
    assert done.team.serves()
    assert done.remembered() == ("", "RollbackDeployment", "Resolved")
    done.leaves_nothing()


@case(AWAY)
def test_without_a_policy_a_person_is_asked_where_nobody_else_is(done: Played) -> None:
    """In staging, for a container that may not run as root."""
    assert done.said["jane"].accepted
    ruling = done.case["status"]["ruling"]
    assert (ruling["decision"], ruling["degraded"]) == ("ApprovalRequired", True)
    assert "OPA cannot be reached" in ruling["reason"]
    assert conditions(done.case)["ApprovalRequired"] == ("True", "PolicyDegraded")
    done.team.cases.tells(done.case, "PolicyDegraded")
    assert done.request["spec"]["policy"]["degraded"] is True
    assert word(done.request, "phase", "decidedBy", "consumedBy") == ("Approved", "jane", done.run["metadata"]["uid"])
    assert ended(done.case) == REMEDIED
    assert done.team.serves()
    assert done.remembered() == ("Approved by jane", "RollbackDeployment", "Resolved")
    done.leaves_nothing()


@case("changed")
def test_what_was_approved_with_another_content_of_the_workflow_is_not_done(done: Played) -> None:
    """A folder stays mounted in the place of a file."""
    assert ended(done.case) == ("Failed", "ApprovalVoided", "WorkflowSelected", None)
    assert word(done.request, "phase", "voidReason", "consumedBy") == ("Voided", "WorkflowChanged", None)
    assert done.request["spec"]["workflow"]["version"] == "1.0.0"
    assert done.is_untouched
    assert done.remembered() == ("", "", "Unknown")
    done.leaves_nothing()


def test_the_audit_trail_of_all_cases_holds(season: Season, trail: Mapping[str, tuple[Object, ...]]) -> None:
    """Over both releases, whose database is on one volume."""
    events = sum(map(len, trail.values()))

    told = season.live.inquest("audit", "verify").splitlines()[-1]

    assert told.endswith("all hold")
    assert int(told.split()[2]) >= events > 0


def test_every_right_of_the_release_is_in_use_and_none_is_missing(whole: Season) -> None:
    """By the API server's own log; the release after this one uses what no case needs."""
    for one in whole.played.values():
        one.result()
    whole.live.site.kubectl("delete", "namespace", *whole.namespaces, "--timeout=180s")

    use_the_rest(whole.live)

    verdict = judged(whole.live)
    print("\n".join((*verdict.lines(), *verdict.apart)))
    assert verdict.faults() == []


def judged(live: Release) -> Verdict:
    """Once nothing is missing any more, or for good: what was asked for last may still be on its way."""
    looks: list[Verdict] = []

    def is_shown() -> bool:
        looks.append(judge(live.standing.run(), KNOWN))
        return not looks[-1].unused

    with suppress(AssertionError):
        eventually(is_shown, what="every right is in use", seconds=60)
    return looks[-1]


# --- what a container is made from ----------------------------------------------------------------------------------


def limit(deployment: Object) -> str:
    """Memory limit of its container."""
    return str(app(deployment)["resources"]["limits"]["memory"])


def image(deployment: Object) -> str:
    return str(app(deployment)["image"])


def command(deployment: Object) -> list[str]:
    return list(app(deployment)["command"])


def app(deployment: Object) -> Object:
    """Its container."""
    return next(one for one in deployment["spec"]["template"]["spec"]["containers"] if one["name"] == "app")
