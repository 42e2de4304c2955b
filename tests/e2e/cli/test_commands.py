"""`inquest` on a real API server, as real users with the roles that people are given, and with no operator there."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from inquest.cli.app import app
from inquest.cli.completion import candidates
from inquest.cli.exits import Exit
from tests.e2e.conftest import Person
from tests.support import programs
from tests.support.kube import Cluster, Kubectl, Object, eventually, own_namespace, proposal, sample
from tests.support.programs import Ran

SECONDS = 180
AT_ONCE = ("--no-wait",)
"""No operator is there that could take a decision up."""
HOSTILE = "\x1b[2J\x1b]0;owned\x07 checkout \u202e\x9b31m"


Inquest = Callable[..., Ran]


def _words(cluster: Cluster, namespace: str, *arguments: str, user: str) -> list[str]:
    place = [f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}", *([f"--as={user}"] if user else [])]
    return [*arguments, *place]


def _command(cluster: Cluster, namespace: str, *arguments: str, user: str) -> list[str]:
    return [sys.executable, "-m", "inquest.cli.main", *_words(cluster, namespace, *arguments, user=user)]


@pytest.fixture
def inquest(cluster: Cluster, namespace: str) -> Inquest:
    """The program in the test's namespace, as the administrator or as a user."""

    def run(*arguments: str, user: str = "") -> Ran:
        return programs.inquest(*_words(cluster, namespace, *arguments, user=user))

    return run


@pytest.fixture
def case(operator: Kubectl) -> Object:
    """A case that waits for a person; the name of its request is the one that Inquest gives."""
    found, request = sample("Investigation"), proposal("RemediationApprovalRequest")
    assert operator.create({key: value for key, value in found.items() if key != "status"}).accepted
    assert operator.status("inv", "inv-checkout", found["status"] | {"message": HOSTILE}).accepted
    assert operator.create(request).accepted
    assert operator.status("rar", "rar-inv-checkout", {"phase": "Pending"}).accepted
    return operator.get("rar", "rar-inv-checkout")


def _decision(kubectl: Kubectl) -> dict[str, Any]:
    spec = kubectl.get("rar", "rar-inv-checkout")["spec"]
    return {key: spec.get(key) for key in ("decision", "decidedBy", "decisionReason")}


# --- deciding -----------------------------------------------------------------------------------------------


def test_an_approver_approves_in_their_own_name_what_they_were_shown(
    inquest: Inquest, kubectl: Kubectl, case: Object, person: Person
) -> None:
    person("jane", "inquest-approver")

    ran = inquest("approve", "inv-checkout", "--reason", "roll it back", "--yes", "--no-wait", user="jane")

    assert ran.code == Exit.OK, ran.err
    assert "RollbackDeployment: crashloop-rollback 1.0.0" in ran.out
    assert "+revision: 6" in ran.out
    assert _decision(kubectl) == {"decision": "Approved", "decidedBy": "jane", "decisionReason": "roll it back"}


# --- what becomes of it ----------------------------------------------------------------------------------------------


@pytest.fixture
def settling(operator: Kubectl, kubectl: Kubectl) -> Iterator[Callable[..., None]]:
    """Plays the operator: as soon as there is a decision, the request has this status."""
    with ThreadPoolExecutor(1) as pool:
        started: list[Future[None]] = []

        def settle(**status: Any) -> None:
            eventually(lambda: bool(_decision(kubectl)["decision"]), what="there is a decision")
            assert operator.status("rar", "rar-inv-checkout", status).accepted

        yield lambda **status: started.append(pool.submit(settle, **status))
        for one in started:
            one.result()


READY = {"type": "Ready", "lastTransitionTime": "2026-11-20T10:17:00Z", "observedGeneration": 1}


@pytest.mark.parametrize(
    ("said", "options"), [("Approved", ["approve"]), ("Rejected", ["reject", "--reason", "not now"])]
)
def test_success_is_told_once_the_operator_has_taken_the_decision_up(
    said: str,
    options: list[str],
    inquest: Inquest,
    case: Object,
    person: Person,
    settling: Callable[..., None],
) -> None:
    person("jane", "inquest-approver")
    settling(phase=said, decidedBy="jane")

    ran = inquest(*options, "inv-checkout", "--yes", "--timeout=60s", user="jane")

    assert ran.code == Exit.OK, ran.err
    assert f"{said} by jane, taken up" in ran.out


def test_a_decision_that_nobody_takes_up_is_no_success(
    inquest: Inquest, operator: Kubectl, kubectl: Kubectl, case: Object, person: Person
) -> None:
    person("jane", "inquest-approver")
    held = "ApprovalRequired: jane may not approve"
    assert operator.status("inv", "inv-checkout", {"message": held}).accepted

    ran = inquest("approve", "inv-checkout", "--yes", "--timeout=1s", user="jane")

    assert ran.code == int(Exit.NOT_TAKEN_UP) == 11
    assert f"Approved by jane, and not taken up within 1s; the case says: {held}" in ran.err
    assert "taken up" not in ran.out
    assert _decision(kubectl)["decision"] == "Approved", "it is on record all the same"


def test_a_decision_that_came_too_late_is_no_success(
    inquest: Inquest, case: Object, person: Person, settling: Callable[..., None]
) -> None:
    person("jane", "inquest-approver")
    why = {**READY, "status": "False", "reason": "Voided", "message": "the signal is resolved"}
    settling(phase="Voided", conditions=[why])

    ran = inquest("approve", "inv-checkout", "--yes", "--timeout=60s", user="jane")

    assert ran.code == Exit.NOT_TAKEN_UP
    assert "Approved by jane, and not used: the request is Voided: the signal is resolved" in ran.err


def test_a_right_that_comes_through_a_group_is_enough_and_is_on_record(
    inquest: Inquest, kubectl: Kubectl, case: Object
) -> None:
    kubectl.bind("oncall", ("ClusterRole", "inquest-approver"), ("Group", "oncall"))
    grace = kubectl.user("grace", "oncall")
    eventually(lambda: grace.may("approve", "remediationapprovalrequests.inquest.dev"), what="grace may approve")
    groups, uid = ("--as-group=oncall", "--as-group=payments"), "--as-uid=u-1"

    ran = inquest("approve", "inv-checkout", "--yes", *AT_ONCE, *groups, uid, user="grace")

    assert ran.code == Exit.OK, ran.err
    spec = kubectl.get("rar", "rar-inv-checkout")["spec"]
    known = {"uid": "u-1", "groups": ["oncall", "payments", "system:authenticated"]}
    assert (spec["decidedBy"], spec["deciderIdentity"]) == ("grace", known)


def test_a_right_on_one_request_alone_is_enough(inquest: Inquest, kubectl: Kubectl, case: Object) -> None:
    kinds = "remediationapprovalrequests.inquest.dev"
    one = ("--verb=get,patch,approve", f"--resource={kinds}", "--resource-name=rar-inv-checkout")
    kubectl("create", "role", "one", *one)
    kubectl.bind("one", ("Role", "one"), ("User", "ken"))
    ken = kubectl.user("ken")
    eventually(lambda: ken.may("approve", f"{kinds}/rar-inv-checkout"), what="ken may approve")

    ran = inquest("approve", "rar-inv-checkout", "--yes", *AT_ONCE, user="ken")

    assert ran.code == Exit.OK, ran.err


def test_a_decision_is_final(inquest: Inquest, kubectl: Kubectl, case: Object, person: Person) -> None:
    person("jane", "inquest-approver")
    assert (
        inquest("reject", "rar/rar-inv-checkout", "--reason", "not now", "--yes", *AT_ONCE, user="jane").code == Exit.OK
    )

    again = inquest("approve", "inv-checkout", "--yes", user="jane")

    assert again.code == Exit.CONFLICT
    assert "was decided: Rejected by jane" in again.err
    assert _decision(kubectl)["decision"] == "Rejected"


@pytest.mark.parametrize(("verbs", "verb"), [("get", "patch"), ("get,patch", "approve")])
def test_who_may_not_decide_learns_which_verb_on_which_object_is_missing(
    verbs: str, verb: str, inquest: Inquest, kubectl: Kubectl, namespace: str, case: Object, person: Person
) -> None:
    requests = "remediationapprovalrequests.inquest.dev"
    kubectl("create", "role", "some", f"--verb={verbs}", f"--resource={requests}")
    kubectl.bind("bob-has-some", ("Role", "some"), ("User", "bob"))
    bob = person("bob", "inquest-viewer")
    eventually(lambda: bob.may(verbs.rpartition(",")[2], requests), what=f"bob may {verbs}")

    ran = inquest("approve", "inv-checkout", "--yes", user="bob")

    assert ran.code == Exit.FORBIDDEN
    assert f"bob may not {verb} remediationapprovalrequests.inquest.dev in namespace {namespace}" in ran.err
    assert _decision(kubectl)["decision"] is None


def test_who_may_not_even_read_a_request_learns_which_binding_is_missing(
    inquest: Inquest, namespace: str, case: Object
) -> None:
    ran = inquest("approve", "inv-checkout", "--yes", user="nobody")

    assert ran.code == Exit.FORBIDDEN
    assert f"create rolebinding NAME -n {namespace} --clusterrole=inquest-approver --user=nobody" in ran.err


def test_nothing_is_decided_where_nobody_can_be_asked(
    inquest: Inquest, kubectl: Kubectl, case: Object, person: Person
) -> None:
    person("jane", "inquest-approver")

    ran = inquest("approve", "inv-checkout", user="jane")

    assert ran.code == Exit.MISUSED
    assert "--yes" in ran.err
    assert _decision(kubectl)["decision"] is None


@pytest.mark.parametrize(("said", "code", "decision"), [("n", Exit.NO, None), ("y", Exit.OK, "Approved")])
def test_a_person_at_a_terminal_is_asked_once_more(
    said: str,
    code: Exit,
    decision: str | None,
    cluster: Cluster,
    namespace: str,
    kubectl: Kubectl,
    case: Object,
    person: Person,
) -> None:
    person("jane", "inquest-approver")
    mine, theirs = pty.openpty()
    os.write(mine, f"{said}\n".encode())
    command = _command(cluster, namespace, "approve", "inv-checkout", *AT_ONCE, user="jane")

    done = subprocess.run(
        command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True, timeout=SECONDS, check=False
    )

    os.close(theirs)
    asked = os.read(mine, 65536).decode()
    os.close(mine)
    assert "+revision: 6" in done.stdout
    assert "Approve this as jane? [y/N]" in asked
    assert done.returncode == code, asked
    assert _decision(kubectl)["decision"] == decision


def test_several_agree_one_after_the_other(
    inquest: Inquest, kubectl: Kubectl, operator: Kubectl, person: Person
) -> None:
    request = proposal("RemediationApprovalRequest")
    request["spec"]["requiredApprovals"] = 2
    assert operator.create(request).accepted
    assert operator.status("rar", "rar-inv-checkout", {"phase": "Pending"}).accepted
    person("jane", "inquest-approver")
    person("bob", "inquest-approver")

    first = inquest("approve", "rar-inv-checkout", "--yes", user="bob")
    second = inquest("approve", "rar-inv-checkout", "--yes", *AT_ONCE, user="jane")

    assert (first.code, second.code) == (Exit.OK, Exit.OK), first.err + second.err
    assert "1 more must agree" in first.out
    assert _decision(kubectl)["decidedBy"] == "jane"


def test_a_kubeconfig_that_acts_as_somebody_decides_in_their_name(
    cluster: Cluster, namespace: str, kubectl: Kubectl, case: Object, person: Person, tmp_path: Path
) -> None:
    person("jane", "inquest-approver")
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "jane"
    config["contexts"][0]["context"]["namespace"] = namespace
    own = tmp_path / "kubeconfig"
    own.write_text(yaml.safe_dump(config))

    done = programs.inquest("approve", "inv-checkout", "--yes", *AT_ONCE, KUBECONFIG=str(own))

    assert done.code == Exit.OK, done.err
    assert _decision(kubectl)["decidedBy"] == "jane"


# --- looking ------------------------------------------------------------------------------------------------


def test_columns_and_forms_are_those_of_kubectl(inquest: Inquest, kubectl: Kubectl, case: Object) -> None:
    def words(text: str) -> list[list[str]]:
        # The age grows between two calls.
        return [line.split()[:-1] for line in text.splitlines()]

    assert words(inquest("list").out) == words(kubectl("get", "inv"))
    assert words(inquest("list", "approvals").out) == words(kubectl("get", "rar"))
    assert inquest("list", "-o", "name").out == kubectl("get", "inv", "-o", "name")
    assert json.loads(inquest("list", "-o", "json").out) == json.loads(kubectl("get", "inv", "-o", "json"))
    # kubectl itself cannot write as YAML what this case says.
    assert yaml.safe_load(inquest("get", "inv-checkout", "-o", "yaml").out) == json.loads(
        kubectl("get", "inv", "inv-checkout", "-o", "json")
    )
    assert inquest("list", "-l", "no=such").out == ""


def test_a_terminal_of_eighty_columns_shows_what_fits_and_names_the_rest(
    cluster: Cluster, namespace: str, inquest: Inquest, case: Object
) -> None:
    listed = _on_terminal(_command(cluster, namespace, "list", user=""), columns=80)
    wide = _on_terminal(_command(cluster, namespace, "list", "-o", "wide", user=""), columns=80)
    told = _on_terminal(_command(cluster, namespace, "get", "inv-checkout", user=""), columns=40)

    table, row = listed.out.splitlines()
    assert table.split()[:1] == ["NAME"]
    assert {"TARGET", "PHASE"} <= set(table.split())
    assert "AwaitingApproval" in row
    assert max(map(len, (table, row))) <= 80
    assert listed.err.startswith("inquest: without ")
    assert listed.err.endswith("; -o wide shows all\n")
    # The header alone: the age grows between two calls.
    assert (wide.out.splitlines()[0], wide.err) == (inquest("list", "-o", "wide").out.splitlines()[0], "")
    longer = [line for line in told.out.splitlines() if len(line) > 40 and len(line.split()) > 3]
    assert [line.partition("to decide: ")[2] for line in longer] == [f"inquest approve inv-checkout -n {namespace}"]
    assert len(told.out.splitlines()) > len(inquest("get", "inv-checkout").out.splitlines())


def _on_terminal(command: list[str], *, columns: int) -> Ran:
    """What a terminal of that width shows, and what is said beside it."""
    mine, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns)}
    with subprocess.Popen(command, stdin=-3, stdout=theirs, stderr=subprocess.PIPE, text=True, env=env) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while more := os.read(mine, 65536):
                shown += more
        _, err = running.communicate(timeout=SECONDS)
    os.close(mine)
    return Ran(running.returncode, shown.replace(b"\r\n", b"\n"), err)


@pytest.mark.parametrize("command", [["get"], ["explain"], ["report"], ["evidence"]])
def test_a_viewer_reads_all_of_a_case_and_its_text_drives_no_terminal(
    command: list[str], inquest: Inquest, case: Object, person: Person
) -> None:
    person("vera", "inquest-viewer")

    ran = inquest(*command, "inv-checkout", user="vera")

    assert ran.code == Exit.OK, ran.err
    assert ran.out
    assert not any(sign in ran.out + ran.err for sign in ("\x1b", "\x07", "\x9b", "\u202e"))


@pytest.mark.parametrize("words", [["evidence", "inv-checkout", "E1"], ["export", "inv-checkout", "-o", "case"]])
def test_where_no_operator_shows_cases_it_is_said_what_to_switch_on(
    words: list[str], inquest: Inquest, case: Object, person: Person
) -> None:
    person("vera", "inquest-viewer")

    ran = inquest(*words, user="vera")

    assert ran.code != Exit.OK
    assert "this cluster has no APIService v1alpha1.evidence.inquest.dev" in ran.err
    assert "evidence.enabled" in ran.err


def test_names_of_cases_and_namespaces_are_completed(cluster: Cluster, namespace: str, case: Object) -> None:
    place = [f"--kubeconfig={cluster.kubeconfig}", "-n"]

    assert candidates(app, ["get", "-o", "json", *place, namespace, "inv-"]) == ["inv-checkout"]
    assert candidates(app, ["export", *place, namespace, "-o", "inv-"]) == []
    assert candidates(app, ["get", *place, namespace[:-1]]) == [namespace]


def test_a_case_is_watched_to_its_end_and_the_exit_status_says_how(
    cluster: Cluster, namespace: str, operator: Kubectl, case: Object
) -> None:
    command = _command(cluster, namespace, "get", "inv-checkout", "--watch", user="")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        first = watching.stdout.readline()
        assert operator.status("inv", "inv-checkout", {"phase": "Failed", "reason": "ApprovalRejected"}).accepted
        rest, _ = watching.communicate(timeout=SECONDS)

    assert "AwaitingApproval" in first
    assert "end: Failed" in rest
    assert watching.returncode == Exit.FAILED


def test_a_terminal_shows_the_tree_as_it_grows_and_then_the_whole(
    cluster: Cluster, namespace: str, operator: Kubectl, case: Object
) -> None:
    mine, theirs = pty.openpty()
    command = _command(cluster, namespace, "get", "inv-checkout", "--watch", user="")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True) as watching:
        os.close(theirs)
        first = os.read(mine, 65536).decode()
        assert operator.status("inv", "inv-checkout", {"phase": "Cancelled", "reason": "Cancelled"}).accepted
        shown = first
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while more := os.read(mine, 65536).decode(errors="replace"):
                shown += more
        watching.communicate(timeout=SECONDS)
    os.close(mine)

    assert watching.returncode == Exit.CANCELLED
    assert "inv-checkout" in shown
    assert shown.count("Cancelled") > 1
    assert "\x1b]0;owned" not in shown


def test_a_low_terminal_shows_where_a_case_is_and_ctrl_c_ends_the_watch_with_nothing_else_said(
    cluster: Cluster, namespace: str, case: Object
) -> None:
    mine, theirs = pty.openpty()
    command = _command(cluster, namespace, "get", "inv-checkout", "--watch", user="")
    env = {**os.environ, "COLUMNS": "100", "LINES": "8"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, env=env) as watching:
        os.close(theirs)
        shown = ""
        while "Verifying" not in shown and "..." not in shown:
            shown += os.read(mine, 65536).decode(errors="replace")
        watching.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
            while more := os.read(mine, 65536).decode(errors="replace"):
                shown += more
        _, err = watching.communicate(timeout=SECONDS)
    os.close(mine)

    assert "to decide: inquest approve inv-checkout" in shown
    assert "Signal:" not in shown
    assert (watching.returncode, err) == (Exit.INTERRUPTED, "")
    # The cursor is there again.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_a_case_that_is_deleted_ends_its_watch(
    cluster: Cluster, namespace: str, kubectl: Kubectl, case: Object
) -> None:
    command = _command(cluster, namespace, "get", "inv-checkout", "--watch", user="")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        watching.stdout.readline()
        kubectl("delete", "inv", "inv-checkout")
        _, err = watching.communicate(timeout=SECONDS)

    assert watching.returncode == Exit.NOT_FOUND
    assert "deleted" in err


def test_waiting_has_an_end(inquest: Inquest, case: Object) -> None:
    assert inquest("get", "inv-checkout", "--watch", "--timeout", "2s").code == Exit.TIMED_OUT


def test_a_case_is_followed_by_the_name_of_its_signal_too(cluster: Cluster, joined: str, operator: Kubectl) -> None:
    assert operator.status("inv", "inv-checkout", {"phase": "Cancelled", "reason": "Cancelled"}).accepted

    ran = _ran(cluster, joined, "follow", "sig/slow", "-o", "json")

    assert (ran.code, ran.err) == (Exit.OK, "")
    assert json.loads(ran.out.splitlines()[-1])["event"] == "end"


@pytest.mark.parametrize("words", [["explain"], ["follow"], ["export", "-o", "nowhere"]])
def test_what_is_not_there_is_named(words: list[str], inquest: Inquest, namespace: str) -> None:
    ran = inquest(*words, "inv-nobody")

    assert ran.code == Exit.NOT_FOUND
    assert f"inv-nobody in namespace {namespace}: -n names another one, `inquest list -A`" in ran.err


def test_who_may_read_nothing_learns_what_is_missing(inquest: Inquest, case: Object) -> None:
    ran = inquest("get", "inv-checkout", user="eve")

    assert ran.code == Exit.FORBIDDEN
    assert 'User "eve" cannot get resource "investigations"' in ran.err


# --- a case of another namespace ------------------------------------------------------------------------------


@pytest.fixture
def joined(cluster: Cluster, case: Object, operator: Kubectl) -> Iterator[str]:
    """A namespace with a Signal that joined the open case of the test's own."""
    uid = operator.get("inv", "inv-checkout")["metadata"]["uid"]
    with own_namespace(cluster) as name:
        there = cluster.operator.within(name)
        signal = sample("Signal")
        assert there.create({**signal, "metadata": {"name": "slow"}}).accepted
        joined = {"phase": "Duplicate", "duplicateOf": {"name": "inv-checkout", "uid": uid}}
        assert there.status("sig", "slow", joined).accepted
        yield name


def _ran(cluster: Cluster, namespace: str, *words: str, user: str = "") -> Ran:
    return programs.inquest(*_words(cluster, namespace, *words, user=user))


@pytest.mark.parametrize("words", [["get"], ["explain"], ["get", "-o", "wide"]])
def test_a_signal_leads_to_the_case_that_it_joined_in_another_namespace(
    words: list[str], cluster: Cluster, joined: str, inquest: Inquest
) -> None:
    ran = _ran(cluster, joined, *words, "slow")

    own = inquest(*words, "inv-checkout")
    assert (ran.code, ran.err) == (Exit.OK, "")
    # Ages grow between two calls: what stands before them.
    assert [line.split()[:8] for line in ran.out.splitlines()] == [line.split()[:8] for line in own.out.splitlines()]


def test_a_case_of_another_namespace_is_watched_decided_and_stopped_there(
    cluster: Cluster, joined: str, kubectl: Kubectl
) -> None:
    watched = _ran(cluster, joined, "get", "slow", "--watch", "--timeout", "2s")
    decided = _ran(cluster, joined, "reject", "slow", "--reason", "no", "--yes", *AT_ONCE)
    again = _ran(cluster, joined, "rerun", "slow", "--name", "again")
    stopped = _ran(cluster, joined, "cancel", "slow")

    assert (watched.code, decided.code, again.code, stopped.code) == (Exit.TIMED_OUT, Exit.OK, Exit.OK, Exit.OK)
    assert _decision(kubectl)["decision"] == "Rejected"
    assert kubectl.get("inv", "again")
    assert kubectl.get("inv", "inv-checkout")["spec"]["cancel"] is True


def test_who_may_not_look_everywhere_is_told_to_name_the_namespace_of_a_joined_case(
    cluster: Cluster, joined: str
) -> None:
    kubectl = cluster.kubectl.within(joined)
    kubectl.bind("vera", ("ClusterRole", "inquest-viewer"), ("User", "vera"))
    vera = kubectl.user("vera")
    eventually(lambda: vera.may("get", "signals.inquest.dev"), what="vera may look")

    ran = _ran(cluster, joined, "get", "slow", user="vera")

    assert ran.code == Exit.NOT_FOUND
    assert "belongs to Investigation inv-checkout" in ran.err
    assert "name its namespace with -n" in ran.err


# --- asking -------------------------------------------------------------------------------------------------


def test_who_asks_for_an_investigation_makes_a_signal(
    inquest: Inquest, kubectl: Kubectl, namespace: str, person: Person
) -> None:
    person("edna", "inquest-editor")
    asked = ("investigate", "deploy/checkout", "-m", "slow since noon", "--severity", "critical", "--name", "slow")

    once, twice = inquest(*asked, user="edna"), inquest(*asked, user="edna")

    assert once.code == Exit.OK, once.err
    # Who edits cases has no right to read Deployments by that.
    assert once.err.startswith('inquest: whether deployments.apps "checkout" is there could not be checked: ')
    assert len(once.err.splitlines()) == 1
    assert f"inquest get slow -n {namespace} --watch" in once.out
    assert twice.code == Exit.CONFLICT
    spec = kubectl.get("sig", "slow")["spec"]
    assert spec["target"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "checkout",
        "namespace": namespace,
    }
    assert (spec["severity"], spec["message"], spec["source"]["type"]) == ("critical", "slow since noon", "Manual")


def test_a_secret_in_a_message_is_not_stored(inquest: Inquest, kubectl: Kubectl) -> None:
    ran = inquest(
        "investigate", "node/worker", "-m", "password=hunter2hunter2 was refused", "--name", "node", "--allow-missing"
    )

    assert ran.code == Exit.OK, ran.err
    assert "hunter2hunter2" not in json.dumps(kubectl.get("sig", "node")["spec"])
    assert "namespace" not in kubectl.get("sig", "node")["spec"]["target"]


def _config_map(kubectl: Kubectl, name: str) -> None:
    kubectl("create", "configmap", name)


@pytest.mark.parametrize("target", ["configmap/chekkout", "cm/checkout-v", "configmap.v1./chekkout"])
def test_a_target_that_is_not_there_is_refused_with_the_names_that_come_near(
    target: str, inquest: Inquest, kubectl: Kubectl, namespace: str
) -> None:
    _config_map(kubectl, "checkout-v2")

    ran = inquest("investigate", target)

    name = target.partition("/")[2]
    assert ran.code == Exit.NOT_FOUND
    assert ran.err == (
        f'inquest: Error from server (NotFound): configmaps "{name}" not found in namespace {namespace}. '
        "Did you mean checkout-v2? Nothing was created; --allow-missing asks why something is gone\n"
    )
    assert kubectl("get", "sig", "-o", "name") == ""


def test_only_who_may_list_a_kind_is_offered_names(
    inquest: Inquest, kubectl: Kubectl, namespace: str, person: Person
) -> None:
    _config_map(kubectl, "checkout")
    person("edna", "inquest-editor")
    kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps")
    kubectl.bind("edna-reads", ("Role", "reader"), ("User", "edna"))
    eventually(lambda: kubectl.user("edna").may("get", "configmaps"), what="edna may read")

    ran = inquest("investigate", "cm/chekkout", user="edna")

    assert ran.code == Exit.NOT_FOUND
    assert f'configmaps "chekkout" not found in namespace {namespace}. Nothing was created;' in ran.err


def test_a_target_that_is_there_or_may_be_missing_is_asked_about(inquest: Inquest, kubectl: Kubectl) -> None:
    _config_map(kubectl, "checkout")

    there = inquest("investigate", "cm/checkout", "--name", "there")
    gone = inquest("investigate", "deploy/checkout", "--name", "gone", "--allow-missing")

    assert (there.code, there.err, gone.code, gone.err) == (Exit.OK, "", Exit.OK, "")
    assert kubectl.get("sig", "gone")["spec"]["target"]["name"] == "checkout"


def test_a_namespace_that_is_not_there_is_named(inquest: Inquest, cluster: Cluster) -> None:
    command = _command(cluster, "no-such-place", "investigate", "deploy/checkout", user="")

    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)

    assert ran.returncode == Exit.NOT_FOUND
    assert (
        'deployments.apps "checkout" not found in namespace no-such-place, which is not there either. Nothing'
        in ran.stderr
    )


@pytest.mark.parametrize("words", [[], ["--allow-missing"]])
def test_a_kind_that_nobody_serves_is_named(words: list[str], inquest: Inquest, kubectl: Kubectl) -> None:
    ran = inquest("investigate", "gizmo/x", *words)

    assert ran.code == Exit.NOT_FOUND
    assert "gizmo" in ran.err
    assert kubectl("get", "sig", "-o", "name") == ""


def _served_by(group: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"sprockets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Sprocket", "plural": "sprockets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_a_kind_of_several_groups_is_told_with_the_words_that_mean_one(inquest: Inquest, cluster: Cluster) -> None:
    both = [_served_by(group) for group in ("one.example", "two.example")]
    names = [f"crd/{found['metadata']['name']}" for found in both]
    try:
        cluster.kubectl.apply(*both)
        cluster.kubectl("wait", "--for=condition=Established", *names, f"--timeout={SECONDS}s")
        eventually(lambda: "several API groups" in inquest("investigate", "sprocket/x").err, what="both are served")

        several = inquest("investigate", "sprocket/x")
        one = inquest("investigate", "sprocket.v1.two.example/x")
    finally:
        cluster.kubectl("delete", *names)

    assert several.code == Exit.MISUSED
    assert several.err.endswith("write one of sprocket.v1.one.example, sprocket.v1.two.example\n")
    assert 'sprockets.two.example "x" not found' in one.err


def test_a_case_is_stopped_once_and_begun_again(
    inquest: Inquest, kubectl: Kubectl, operator: Kubectl, case: Object, person: Person
) -> None:
    person("edna", "inquest-editor")

    stopped = inquest("cancel", "inv-checkout", user="edna")
    again = inquest("rerun", "inv-checkout", "--name", "again", "--model", "small", user="edna")

    assert (stopped.code, again.code) == (Exit.OK, Exit.OK), stopped.err + again.err
    assert kubectl.get("inv", "inv-checkout")["spec"]["cancel"] is True
    new = kubectl.get("inv", "again")["spec"]
    old = kubectl.get("inv", "inv-checkout")["spec"]
    assert new["signal"] == old["signal"]
    assert new["model"] == "small"
    assert not {"signalRef", "feedback"} & set(new)
    assert operator.status("inv", "inv-checkout", {"phase": "Cancelled"}).accepted
    assert inquest("cancel", "inv-checkout", user="edna").code == Exit.CONFLICT


def test_a_diagnosis_is_judged_once_after_the_end_in_ones_own_name(
    inquest: Inquest, kubectl: Kubectl, operator: Kubectl, case: Object, person: Person
) -> None:
    person("edna", "inquest-editor")
    words = ("feedback", "inv-checkout", "wrong", "--cause", "the quota of shop was used up")
    early = inquest(*words, user="edna")
    status = kubectl.get("inv", "inv-checkout")["status"]
    assert operator.status("inv", "inv-checkout", status | {"phase": "Completed", "playbooks": ["my-own"]}).accepted

    given = inquest(*words, user="edna")
    again = inquest("feedback", "inv-checkout", "right", user="edna")
    tree = inquest("get", "inv-checkout", user="edna").out

    assert (early.code, given.code, again.code) == (Exit.CONFLICT, Exit.OK, Exit.CONFLICT), given.err
    told = {"verdict": "Wrong", "by": "edna", "cause": "the quota of shop was used up"}
    assert kubectl.get("inv", "inv-checkout")["spec"]["feedback"] == told
    assert "edna says that the diagnosis was Wrong: the quota of shop was used up" in tree
    assert "playbooks: my-own" in tree


def test_a_viewer_cannot_stop_a_case(inquest: Inquest, kubectl: Kubectl, case: Object, person: Person) -> None:
    person("vera", "inquest-viewer")

    ran = inquest("cancel", "inv-checkout", user="vera")

    assert ran.code == Exit.FORBIDDEN
    assert 'cannot patch resource "investigations"' in ran.err
    assert kubectl.get("inv", "inv-checkout")["spec"]["cancel"] is False
