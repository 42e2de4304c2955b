"""From a Signal to a case, or to the reason why there is none (resources, sections 2 and 9.1)."""

from __future__ import annotations

import json
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby

import pytest

from inquest.api.installation import NAMESPACE
from tests.integration.story.conftest import Inhabit
from tests.support.api import Object
from tests.support.kube import Cluster
from tests.support.listening import serving
from tests.support.process import Operator
from tests.support.programs import inquest
from tests.support.world import World, conditions, phase_of, word

pytestmark = pytest.mark.xdist_group("story-triage")


def test_an_accepted_signal_opens_a_case_with_pinned_content_and_owner(world: World) -> None:
    """C-LC-1: no version of it skips Pending."""
    world.broken()
    before = world.api.now("Investigation", world.namespace)

    signal = world.signal(message="shop restarts all the time")

    case = world.opened(signal)
    owner = case["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Signal", signal["metadata"]["uid"], True)
    pinned = case["spec"]["signal"]
    assert (pinned["message"], pinned["environment"], pinned["priority"]) == (
        "shop restarts all the time",
        "Production",
        "P0",
    )
    started = world.case(signal, "AwaitingApproval")
    versions = world.api.versions("Investigation", world.namespace, before)
    assert [phase for phase, _ in groupby(map(phase_of, versions)) if phase][:2] == ["Pending", "Investigating"]
    begun = [
        bool(seen["status"].get("startedAt")) for seen in versions if phase_of(seen) in ("Pending", "Investigating")
    ]
    assert begun == sorted(begun), "it starts once"
    assert all(seen["status"].get("startedAt") for seen in versions if phase_of(seen) == "Investigating")
    assert started["status"]["startedAt"]
    world.tells(case, "InvestigationComplete")


def test_a_second_signal_of_the_same_problem_joins_the_open_case(world: World) -> None:
    """C-TR-3: the younger is the duplicate, never the older."""
    world.broken()
    first = world.signal()
    case = world.case(first, "AwaitingApproval")

    second = world.signal(name="KubeDeploymentReplicasMismatch")

    joined = world.triaged(second, "Duplicate")
    assert joined["status"]["duplicateOf"]["name"] == case["metadata"]["name"]
    older = world.shows("Signal", first["metadata"]["name"], lambda seen: seen["status"]["occurrences"] == 2)
    assert phase_of(older) == "Accepted"
    assert len(world.api.list("Investigation", world.namespace)) == 1


def test_a_duplicate_whose_original_was_deleted_is_over_and_the_next_sighting_opens_a_case(world: World) -> None:
    world.broken()
    first = world.signal()
    case = world.case(first, "AwaitingApproval")
    second = world.triaged(world.signal(name="KubeDeploymentReplicasMismatch"), "Duplicate")

    world.api.delete("Signal", first["metadata"]["name"], world.namespace)
    world.api.delete("Investigation", case["metadata"]["name"], world.namespace)
    world.until(
        lambda: world.api.find("Investigation", case["metadata"]["name"], world.namespace) is None, "it is gone"
    )
    world.touch("Signal", second)

    name = second["metadata"]["name"]
    over = world.shows("Signal", name, lambda seen: conditions(seen)["Concluded"] == ("False", "OriginalDeleted"))
    assert phase_of(over) == "Duplicate"
    assert over["status"]["message"] == f"{case['metadata']['name']} was deleted; the next sighting opens a new case"
    world.touch("Signal", over)
    third = world.triaged(world.signal(), "Accepted", "Duplicate")
    assert phase_of(third) == "Accepted"
    opened = [one["metadata"]["name"] for one in world.api.list("Investigation", world.namespace)]
    assert opened == [third["status"]["investigationRef"]["name"]]


def test_two_pods_of_one_deployment_are_one_problem(world: World) -> None:
    """In part C-IN-1, C-CX-2: the fingerprint is that of the root owner."""
    world.broken()
    pod = world.pod()["metadata"]["name"]

    by_pod = world.signal({"kind": "Pod", "name": pod, "namespace": world.namespace})
    opened = world.triaged(by_pod, "Accepted")
    by_name = world.triaged(world.signal(), "Duplicate")

    assert opened["status"]["fingerprint"] == by_name["status"]["fingerprint"]
    assert [owner["kind"] for owner in opened["status"]["ownerChain"]] == ["ReplicaSet", "Deployment"]


def test_what_nobody_put_into_care_waits_for_the_label(inhabit: Inhabit) -> None:
    """C-TR-6."""
    world = inhabit(**{"inquest.dev/managed": "false"})
    world.broken()
    signal = world.signal()
    blocked = world.triaged(signal, "Blocked")
    assert word(blocked, "reason") == ("OutOfScope",)
    assert conditions(blocked)["InScope"] == ("False", "OutOfScope")
    assert "inquest.dev/managed" in blocked["status"]["message"]
    assert blocked["status"]["blockedUntil"]

    world.api.change("Namespace", world.namespace, "", {"metadata": {"labels": {"inquest.dev/managed": "true"}}})

    accepted = world.triaged(signal, "Accepted")
    assert conditions(accepted)["InScope"] == ("True", "Managed")
    assert "blockedUntil" not in accepted["status"]
    world.tells(signal, "SignalBlocked")


def test_what_nobody_heard_of_a_held_signal_is_told_after_a_kill(inhabit: Inhabit) -> None:
    """Its receiver is away while the operator lives, and there when the next one starts."""
    world = inhabit(**{"inquest.dev/managed": "false"})
    heard: list[Object] = []
    with ExitStack() as after:
        desk = after.enter_context(desk_of(heard))
        after.callback(restart_without, world.operator, "herald")
        world.operator.stop()
        world.operator.write(herald={"webhooks": [f"http://127.0.0.1:{desk.server_port}/"]})
        world.operator.start()
        signal = world.signal()
        waiting = world.shows("Signal", signal["metadata"]["name"], lambda seen: notices_of(seen) == ["Pending"])
        world.operator.kill()
        desk.server_activate()
        after.enter_context(serving(desk))
        world.operator.start()

        told = world.shows("Signal", signal["metadata"]["name"], lambda seen: notices_of(seen) == ["Sent"])

    (key,) = (one["key"] for one in waiting["status"]["notices"])
    assert [one["key"] for one in told["status"]["notices"]] == [key]
    assert [(one["key"], one["type"], one["name"]) for one in heard] == [
        (key, "Escalation", signal["metadata"]["name"])
    ]


def restart_without(operator: Operator, group: str) -> None:
    """As the file's other tests want it."""
    operator.forget(group)
    operator.stop()
    operator.start()


def notices_of(signal: Object) -> list[str]:
    """Where the notices of a Signal stand."""
    return [one["state"] for one in signal.get("status", {}).get("notices", [])]


def desk_of(heard: list[Object]) -> ThreadingHTTPServer:
    """Has its port and does not listen yet; what it hears then is kept."""

    class Desk(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk, bind_and_activate=False)
    server.server_bind()
    return server


def test_out_of_scope_comes_before_duplicate(inhabit: Inhabit) -> None:
    """C-TR-11: the earlier rule decides."""
    world = inhabit()
    world.broken()
    world.case(world.signal(), "AwaitingApproval")
    world.api.change("Namespace", world.namespace, "", {"metadata": {"labels": {"inquest.dev/managed": "false"}}})

    second = world.triaged(world.signal(), "Blocked", "Duplicate")

    assert word(second, "phase", "reason") == ("Blocked", "OutOfScope")


def test_a_signal_may_not_name_a_target_in_another_namespace(inhabit: Inhabit) -> None:
    shop, bank = inhabit(), inhabit()
    bank.broken()

    signal = shop.signal(bank.target())

    assert word(shop.triaged(signal, "Blocked", "Accepted"), "phase", "reason") == ("Blocked", "OutOfScope")


SECRETIVE = {"inquest.dev/team": "treasury", "inquest.dev/business-unit": "vault", "inquest.dev/environment": "staging"}


def asked_about(cluster: Cluster, namespace: str) -> list[str]:
    """What accounts asked the API server about a namespace, by its audit log."""
    if cluster.memory is not None:
        theirs = [one for one in cluster.memory.calls if "inquest" in one.user]
        calls = [one for one in theirs if namespace in (one.namespace, one.name)]
        return [f"{one.verb} {one.resource} {one.name}" for one in calls]
    lines = (cluster.kubeconfig.parents[1] / "audit" / "requests.log").read_text().splitlines()
    found = (json.loads(line) for line in lines if f'"{namespace}"' in line)
    refs = ((one["verb"], one.get("objectRef") or {}) for one in found if "inquest" in one["user"]["username"])
    about = ((verb, ref) for verb, ref in refs if namespace in (ref.get("namespace"), ref.get("name")))
    return [f"{verb} {ref.get('resource')} {ref.get('name', '')}" for verb, ref in about]


def told(found: Object) -> str:
    """All that a status says but its times."""
    status = json.loads(json.dumps(found["status"]))
    for condition in status["conditions"]:
        condition.pop("lastTransitionTime")
    return json.dumps(
        {key: text for key, text in status.items() if not key.endswith(("Seen", "Until", "otices"))}, sort_keys=True
    )


def test_who_asks_about_another_namespace_learns_nothing_of_it(inhabit: Inhabit, cluster: Cluster) -> None:
    """One name that is there and one that is not, of each kind; nothing is read, and the answers are the same."""
    mallory, bank = inhabit(), inhabit(**SECRETIVE)
    bank.api.change("Namespace", bank.namespace, "", {"metadata": {"labels": SECRETIVE}})
    bank.deployment()
    pod = bank.pod()["metadata"]["name"]
    node = f"vault-{bank.namespace}"
    bank.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": SECRETIVE}})
    before = len(asked_about(cluster, bank.namespace))
    pairs = [("Deployment", "shop"), ("Pod", pod), ("Secret", "default"), ("Unknown", "shop"), ("Node", node)]

    answers, notices = {}, []
    for kind, name in pairs:
        for asked in (name, "x" * len(name)):
            group = {"apiVersion": "apps/v1"} if kind == "Deployment" else {}
            target = {"kind": kind, "name": asked, "namespace": bank.namespace, **group}
            found = mallory.triaged(mallory.signal(target), "Blocked", "Accepted", "Ignored", "Failed")
            answers[kind, asked == name] = told(found).replace(asked, "NAME")
            notices += found["status"].get("notices", [])
    nowhere = mallory.signal({"kind": "Pod", "name": pod, "namespace": "no-such-namespace"})
    answers["Pod", None] = told(mallory.triaged(nowhere, "Blocked", "Failed", "Ignored")).replace(pod, "NAME")

    assert [word(json.loads(f'{{"status": {one}}}'), "phase", "reason") for one in answers.values()] == [
        ("Blocked", "OutOfScope")
    ] * len(answers)
    assert 1 <= len(notices) <= 2, "one for all of them, or two where the hour has just struck"
    for kind, _ in pairs:
        assert answers[kind, True] == answers[kind, False]
    assert answers["Pod", None] == answers["Pod", True]
    everything = "".join(answers.values())
    uid = bank.api.get("Deployment", "shop", bank.namespace)["metadata"]["uid"]
    assert not [
        text for text in (uid, "treasury", "vault", "Staging", "rootOwner", "fingerprint") if text in everything
    ]
    assert asked_about(cluster, bank.namespace)[before:] == []
    bank.api.delete("Node", node)
    bank.triaged(bank.signal(), "Accepted")
    assert asked_about(cluster, bank.namespace)[before:] != [], "the log would show it"


@pytest.mark.parametrize("kind", ["Deployment", "Node"])
def test_a_case_made_by_hand_learns_nothing_of_another_place(inhabit: Inhabit, cluster: Cluster, kind: str) -> None:
    """Also of a node that is given the tenant's own namespace, to pass for something in it."""
    mallory, bank = inhabit(), inhabit(**SECRETIVE)
    bank.deployment()
    where = bank.namespace if kind == "Deployment" else mallory.namespace
    before = len(asked_about(cluster, bank.namespace))
    ended = []
    for name in ("shop", "absent"):
        target = {"kind": kind, "name": name, "namespace": where}
        signal = {"name": "look", "severity": "critical", "source": {"type": "Manual"}, "target": target}
        meta = {"name": f"by-hand-{name}", "namespace": mallory.namespace}
        body = {"apiVersion": "inquest.dev/v1alpha1", "kind": "Investigation", "metadata": meta}
        made = mallory.api.create({**body, "spec": {"signal": signal}})
        ended.append(mallory.reaches("Investigation", made, "Completed", "Failed"))

    assert [word(one, "phase", "reason", "subReason") for one in ended] == [
        ("Failed", "RemediationBlocked", "OutOfScope")
    ] * 2
    assert all("context" not in one["status"] or "rootOwner" not in one["status"]["context"] for one in ended)
    assert "treasury" not in json.dumps(ended)
    assert asked_about(cluster, bank.namespace)[before:] == []


def test_a_signal_about_a_secret_fails_and_says_why(world: World) -> None:
    signal = world.signal({"kind": "Secret", "name": "token", "namespace": world.namespace})

    failed = world.triaged(signal, "Failed", "Accepted", "Blocked")

    assert word(failed, "phase", "reason") == ("Failed", "Malformed")
    assert "Secret" in failed["status"]["message"]
    world.tells(failed, "SignalFailed")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"kind": "Gizmo", "name": "x", "apiVersion": "example.com/v1"}, "Gizmo"),
        ({"kind": "Deployment", "name": "x"}, "needs a namespace"),
        ({"kind": "Deployment", "name": "x", "namespace": "nowhere"}, "nowhere"),
    ],
    ids=["a kind that no group serves", "no namespace for a kind that needs one", "a namespace that is not there"],
)
def test_a_target_that_cannot_exist_fails_the_signal(world: World, target: dict[str, str], said: str) -> None:
    signal = world.signal(target, namespace=NAMESPACE)

    failed = world.triaged(signal, "Failed", "Accepted", "Blocked")

    assert word(failed, "phase", "reason") == ("Failed", "Malformed")
    assert said in failed["status"]["message"]
    assert conditions(failed)["Triaged"] == ("False", "Malformed")
    world.tells(failed, "SignalFailed")


def test_heartbeats_are_ignored(world: World) -> None:
    signal = world.handed_on(name="Watchdog")

    ignored = world.triaged(signal, "Ignored", "Accepted")

    assert word(ignored, "phase", "reason") == ("Ignored", "Noise")


def test_a_pod_that_is_gone_needs_nobody(world: World) -> None:
    """C-IN-2."""
    signal = world.signal({"kind": "Pod", "name": "shop-1-abcde", "namespace": world.namespace})

    assert word(world.triaged(signal, "Ignored", "Accepted"), "phase", "reason") == ("Ignored", "TargetGone")


def test_a_missing_deployment_is_a_case_with_a_degraded_context(world: World) -> None:
    """In part C-CX-1, first column."""
    accepted = world.triaged(world.signal(world.target("absent")), "Accepted", "Ignored", "Failed")

    assert phase_of(accepted) == "Accepted"
    assert accepted["status"]["context"]["degraded"] is True
    assert conditions(accepted)["ContextResolved"] == ("True", "Degraded")


def test_a_signal_that_is_over_opens_no_case(world: World) -> None:
    world.broken()
    at = "2026-11-20T10:00:00Z"

    over = world.triaged(world.signal(firingTime=at, resolvedTime=at), "Resolved", "Accepted")

    assert word(over, "phase", "reason") == ("Resolved", "Resolved")
    assert "investigationRef" not in over["status"]


def test_a_problem_that_ends_while_a_person_is_asked_ends_the_case(world: World) -> None:
    world.broken()
    signal = world.signal()
    request = world.asked(signal)

    name = signal["metadata"]["name"]
    world.api.change("Signal", name, world.namespace, {"spec": {"resolvedTime": "2100-01-01T00:00:00Z"}})

    case = world.case_of(request, "Completed", "Failed")
    assert word(case, "reason", "subReason", "resolution") == (
        "WorkflowNotNeeded",
        "SignalResolved",
        "NoActionRequired",
    )
    voided = world.reaches("RemediationApprovalRequest", request, "Voided")
    assert voided["status"]["voidReason"] == "SignalResolved"
    assert phase_of(world.reaches("Signal", signal, "Resolved")) == "Resolved"


def test_a_target_that_nobody_knows_is_investigated_by_its_namespace(world: World) -> None:
    target = {"kind": "Unknown", "name": "unknown", "namespace": world.namespace}

    case = world.case(world.signal(target))

    assert case["status"]["message"]
    assert word(case, "needsHumanReview") == (True,)
    assert world.operator.is_running()


def test_the_same_case_is_not_opened_again_while_a_person_is_expected(world: World) -> None:
    """Row 10 of 9.1, and its end by the annotation."""
    world.deployment()
    world.crash()
    case = world.case(world.signal())
    assert word(case, "resolution") == ("ManualReviewRequired",)

    second = world.handed_on()
    held = world.triaged(second, "Blocked", "Accepted")

    assert word(held, "phase", "reason") == ("Blocked", "ManualReviewPending")
    meta = case["metadata"]
    world.api.change(
        "Investigation",
        meta["name"],
        meta["namespace"],
        {"metadata": {"annotations": {"inquest.dev/reviewed": "jane: looked at it"}}},
    )
    assert phase_of(world.triaged(second, "Accepted")) == "Accepted"


def test_a_person_who_asks_again_is_answered_again(world: World) -> None:
    """By the command, in the words of somebody in a hurry; the same of a program is small talk."""
    world.deployment()
    world.crash()
    assert word(world.case(world.signal()), "resolution") == ("ManualReviewRequired",)
    small = world.triaged(world.handed_on(message="again"), "Ignored", "Blocked", "Accepted")

    asked = ["investigate", "deploy/shop", "-m", "again", "--name", "again", f"--namespace={world.namespace}"]
    done = inquest(*asked, f"--kubeconfig={world.kubectl.kubeconfig}")

    assert done.code == 0, done.err
    second = world.triaged(
        {"metadata": {"name": "again", "namespace": world.namespace}}, "Accepted", "Ignored", "Blocked"
    )
    assert word(small, "phase", "reason") == ("Ignored", "Noise")
    assert word(second, "phase") == ("Accepted",)
    assert "an earlier case ended with ManualReviewRequired" in second["status"]["message"]
