"""What happens in each of the cases: a fault, a Signal, what people do meanwhile; what came of it is for the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Final
from uuid import uuid4

from tests.e2e.chart.cases.broken import NAME, Broken
from tests.e2e.chart.chart import NAMESPACE
from tests.e2e.chart.conftest import EXECUTION, Site
from tests.support.api import Api, Object, Said
from tests.support.process import now
from tests.support.world import ENDED, World, conditions, may_approve, phase_of, word

SECONDS: Final = 400.0
"""Longest wait for anything, with a dozen cases at once on a machine that is many times slower."""
RAISE, BACK = "increase-memory-limit", "rollback-deployment"
REQUEST, CASE, RUN = "RemediationApprovalRequest", "Investigation", "WorkflowExecution"
WORKFLOW = "RemediationWorkflow"


@dataclass(frozen=True)
class Team:
    """A namespace with one workload, and who has to do with it."""

    site: Site
    api: Api
    """The administrator, for what is set up and looked at."""
    people: Mapping[str, Api]
    """By name, each with a certificate of their own."""
    namespace: str

    @property
    def cases(self) -> World:
        """Where Signals, cases and requests stand: a Signal of another namespace is for the operator's own."""
        return World(self.api, None, NAMESPACE, self.site.kubectl.within(NAMESPACE))  # type: ignore[arg-type]

    @property
    def target(self) -> Object:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME, "namespace": self.namespace}

    def kubectl(self, *arguments: str) -> str:
        """The administrator in the namespace."""
        return self.site.kubectl.within(self.namespace)(*arguments)

    def deployment(self) -> Object:
        return self.api.get("Deployment", NAME, self.namespace)

    def pods(self) -> list[Object]:
        """Of the workload, that are not going."""
        found = self.api.list("Pod", self.namespace, labels=f"app={NAME}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def serves(self) -> bool:
        """Whether every pod is of the newest template, and ready."""
        found = self.deployment()
        status, wanted = found.get("status", {}), found["spec"]["replicas"]
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return current and [status.get(key) for key in ("replicas", "updatedReplicas", "readyReplicas")] == [wanted] * 3

    def breaks(self, broken: Broken) -> None:
        """The workload is there and really fails."""
        for one in broken.beside:
            self.api.create({**one, "metadata": {**one["metadata"], "namespace": self.namespace}})
        self.api.create(broken.deployment(self.namespace))
        if broken.change:
            self.until(self.serves, "the first revision serves")
            patch = json.dumps({"spec": {"template": {"spec": broken.change}}})
            self.kubectl("patch", "deployment", NAME, "-p", patch)
        if broken.gone:
            self.api.delete(*broken.gone, self.namespace)
        self.until(lambda: broken.fails in json.dumps([pod.get("status") for pod in self.pods()]), broken.fails)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        self.cases.until(holds, f"{self.namespace}: {what}", SECONDS)

    def fires(self, severity: str = "critical", by: str = "") -> Object:
        """An alert of the workload, or what somebody asks for."""
        whose = replace(self.cases, api=self.people[by]) if by else self.cases
        return whose.signal(self.target, severity=severity)

    def case(self, signal: Object, *phases: str) -> Object:
        """The case of an accepted Signal, once it is in one of these phases."""
        accepted = self.reaches("Signal", signal, "Accepted")
        name = accepted["status"]["investigationRef"]["name"]
        return self.reaches(CASE, self.api.get(CASE, name, NAMESPACE), *phases)

    def reaches(self, kind: str, found: Object, *phases: str) -> Object:
        """Any object of ours, once it is in one of these phases; the case of a Signal has ended unless told."""
        return self.cases.reaches(kind, found, *(phases or ENDED), seconds=SECONDS)

    def by_hand(self) -> Object:
        """A person wants it looked into, without a Signal."""
        signal = {"name": "it does not work", "severity": "critical", "source": {"type": "Manual"}}
        meta = {"name": f"by-hand-{uuid4().hex[:8]}", "namespace": NAMESPACE}
        spec = {"signal": {**signal, "target": self.target}}
        return self.api.create(
            {"apiVersion": "inquest.dev/v1alpha1", "kind": CASE, "metadata": meta, "spec": spec},
        )

    def asked(self, signal: Object) -> Object:
        """The open request of the case."""
        waiting = self.case(signal, "AwaitingApproval", *ENDED)
        assert phase_of(waiting) == "AwaitingApproval", word(waiting, "phase", "reason", "outcome", "message")
        found = self.api.get(REQUEST, f"rar-{waiting['metadata']['name']}", NAMESPACE)
        return self.reaches(REQUEST, found, "Pending")

    def says(self, who: str, request: Object, **spec: Any) -> Said:
        """Somebody changes the request with their own certificate; the API server writes down who decided."""
        return self.people[who].merge(REQUEST, request["metadata"]["name"], NAMESPACE, {"spec": spec})

    def shows(self, case: Object, holds: Callable[[Object], bool]) -> Object:
        """The case, once something holds of it."""
        name = case["metadata"]["name"]
        return self.cases.shows(CASE, name, lambda seen: "status" in seen and holds(seen), seconds=SECONDS)

    def workflow(self, model: str, severity: str, **more: Any) -> str:
        """A workflow of the team's own like one of the catalogue, for this severity alone; gives its name."""
        spec = self.api.get(WORKFLOW, model, NAMESPACE)["spec"]
        name = f"{model}-{self.namespace}"
        labels = {**spec["labels"], "severity": [severity], "custom": {"team": self.namespace}}
        meta = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": "inquest.dev/v1alpha1", "kind": WORKFLOW, "metadata": meta}
        self.api.create({**body, "spec": {**spec, "id": name, "labels": labels, **more}})
        self.registered(name, spec["version"])
        return name

    def registered(self, name: str, version: str) -> None:
        """The catalogue has that version."""

        def is_active() -> bool:
            found = self.api.get(WORKFLOW, name, NAMESPACE)
            seen = found["status"].get("observedGeneration") if "status" in found else None
            return bool(
                found["spec"]["version"] == version
                and seen == found["metadata"]["generation"]
                and found["status"].get("registration") == "Active"
            )

        self.until(is_active, f"{name} {version} is in force")


def is_recorded(case: Object) -> bool:
    """Whether DataStorage has all of it."""
    return conditions(case).get("Recorded") == ("True", "Stored")


@dataclass(frozen=True)
class Played:
    """A case that is over, and what was said on its way."""

    team: Team
    case: Object
    before: Object
    """The Deployment as it stood when the Signal was raised."""
    signal: Object = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)
    trail: tuple[Object, ...] = ()
    """What DataStorage has of it."""

    @property
    def uid(self) -> str:
        return str(self.case["metadata"]["uid"])

    def find(self, kind: str, prefix: str, suffix: str = "") -> Object | None:
        """An object that is named after the case."""
        return self.team.api.find(kind, f"{prefix}-{self.case['metadata']['name']}{suffix}", NAMESPACE)

    @property
    def request(self) -> Object:
        """The approval request."""
        found = self.find(REQUEST, "rar")
        assert found is not None
        return found

    @property
    def run(self) -> Object:
        """The execution."""
        found = self.find(RUN, "wfe")
        assert found is not None
        return found

    @property
    def undo(self) -> Object:
        """The execution that took it back."""
        found = self.find(RUN, "wfe", "-undo")
        assert found is not None
        return found

    @property
    def is_untouched(self) -> bool:
        """Nothing ran, and nobody changed what the pods are made from."""
        same = self.team.deployment()["spec"] == self.before["spec"]
        return same and self.find(RUN, "wfe") is None

    def left(self) -> list[str]:
        """Jobs, journal slots and Leases of the case."""
        api, name = self.team.api, self.case["metadata"]["name"]
        uids = {found["metadata"]["uid"] for end in ("", "-undo") if (found := self.find(RUN, "wfe", end))}
        jobs = api.list("Job", EXECUTION)
        slots = api.list("ConfigMap", NAMESPACE, labels=f"inquest.dev/investigation={self.uid}")
        leases = api.list("Lease", NAMESPACE, labels=f"inquest.dev/investigation={name}")
        of_case = [job for job in jobs if job["metadata"]["labels"].get("inquest.dev/execution") in uids]
        return [f"{one.get('kind')}/{one['metadata']['name']}" for one in (*of_case, *slots, *leases)]

    def leaves_nothing(self) -> None:
        """Its Job goes after the cooldown, its journal and its Lease as soon as it is recorded."""
        self.team.until(lambda: not self.left(), "nothing of the case is left")

    def remembered(self) -> tuple[str, str, str]:
        """Who decided, what ran, and what was found afterwards, as the next case will be told."""
        found = {event["event_type"]: event["event_data"] for event in self.trail}
        decision = found.get("orchestrator.approval.approved") or found.get("orchestrator.approval.rejected") or {}
        who = decision.get("approved_by") or decision.get("rejected_by") or ""
        end = found["inquest.case.ended"]
        assert bool(end["action"]) is ("remediation.workflow_created" in found)
        return " by ".join(filter(None, (decision.get("decision", ""), who))), end["action"], end["check"]


# --- the plays ----------------------------------------------------------------------------------------------------

Play = Callable[[Team], Played]


@dataclass(frozen=True)
class Interval:
    """Between two releases: the second one comes when the first has shown what it should."""

    is_held: Event = field(default_factory=Event)
    is_over: Event = field(default_factory=Event)

    def passes(self) -> None:
        assert self.is_over.wait(SECONDS), "the second release did not come"


def _asked(team: Team, broken: Broken, severity: str = "critical", by: str = "") -> tuple[Object, Object, Object]:
    """The broken Deployment, the Signal and the open request."""
    team.breaks(broken)
    before, signal = team.deployment(), team.fires(severity, by)
    return before, signal, team.asked(signal)


def by_itself(broken: Broken, severity: str = "critical") -> Play:
    """Nobody does anything."""

    def play(team: Team) -> Played:
        team.breaks(broken)
        before, signal = team.deployment(), team.fires(severity)
        return Played(team, team.case(signal), before, signal)

    return play


def decided(broken: Broken, decision: str) -> Play:
    """Jane decides, after eve who may not."""

    def play(team: Team) -> Played:
        before, signal, request = _asked(team, broken)
        eve = team.says("eve", request, decision=decision)
        jane = team.says("jane", request, decision=decision)
        return Played(team, team.case(signal), before, signal, {"eve": eve, "jane": jane})

    return play


def by_group(broken: Broken) -> Play:
    """Jane asks. Mallory may change requests and not approve; grace may approve by a group alone."""

    def play(team: Team) -> Played:
        before, signal, request = _asked(team, broken, by="jane")
        forged = {"groups": ["oncall", "payments", "system:authenticated", "system:masters"]}
        said = {
            "eve": team.says("eve", request, decision="Approved"),
            "mallory": team.says("mallory", request, decision="Approved"),
            "mallory as grace": team.says("mallory", request, decision="Approved", decidedBy="grace"),
            "mallory in her group": team.says("mallory", request, decision="Approved", deciderIdentity=forged),
            "grace in another's group": team.says("grace", request, decision="Approved", deciderIdentity=forged),
            "jane": team.says("jane", request, decision="Approved"),
            "still": team.api.get(REQUEST, request["metadata"]["name"], NAMESPACE),
            "grace": team.says("grace", request, decision="Approved"),
        }
        return Played(team, team.case(signal), before, signal, said)

    return play


def by_a_leaver(broken: Broken) -> Play:
    """Ivan agrees, by a group that loses its right before the second has decided."""

    def play(team: Team) -> Played:
        before, signal, request = _asked(team, broken)
        binding, right = may_approve(NAMESPACE, "leavers", "Group"), "remediationapprovalrequests.inquest.dev"
        ivan = team.cases.kubectl.user("ivan", "leavers")
        team.api.create(binding)
        team.until(lambda: ivan.may("approve", right), "ivan may approve")
        entered = team.says("ivan", request, approvals=[{"user": "ivan"}])
        team.api.delete("RoleBinding", binding["metadata"]["name"], NAMESPACE)
        team.until(lambda: not ivan.may("approve", right), "ivan has lost the right")
        said = {"ivan": entered, "bob": team.says("bob", request, decision="Approved")}
        return Played(team, team.case(signal), before, signal, said)

    return play


def by_two(broken: Broken) -> Play:
    """Jane alone is not enough; bob is the second."""

    def play(team: Team) -> Played:
        before, signal, request = _asked(team, broken)
        alone = team.says("jane", request, decision="Approved")
        for_bob = team.says("jane", request, approvals=[{"user": "bob"}])
        entered = team.says("jane", request, approvals=[{"user": "jane"}])
        twice = team.says("jane", request, decision="Approved")
        bob = team.says("bob", request, decision="Approved")
        said = {"alone": alone, "for bob": for_bob, "entered": entered, "twice": twice, "bob": bob}
        return Played(team, team.case(signal), before, signal, said)

    return play


def drifts(broken: Broken) -> Play:
    """Somebody else changes the target while jane reads; then she approves what she read."""

    def play(team: Team) -> Played:
        _, signal, request = _asked(team, broken)
        team.kubectl("set", "env", f"deployment/{NAME}", "LOG_LEVEL=debug")
        before = team.deployment()
        jane = team.says("jane", request, decision="Approved")
        return Played(team, team.case(signal), before, signal, {"jane": jane})

    return play


def changes(broken: Broken) -> Play:
    """The team's workflow becomes another one while jane reads; then she approves what she read."""

    def play(team: Team) -> Played:
        own = team.workflow(BACK, "low")
        before, signal, request = _asked(team, broken, "low")
        team.api.change(WORKFLOW, own, NAMESPACE, {"spec": {"version": "1.1.0", "execution": {"timeout": "9m"}}})
        team.registered(own, "1.1.0")
        jane = team.says("jane", request, decision="Approved")
        return Played(team, team.case(signal), before, signal, {"jane": jane})

    return play


def resolves(broken: Broken) -> Play:
    """The source says that it is over while jane thinks."""

    def play(team: Team) -> Played:
        before, signal, request = _asked(team, broken)
        team.api.change("Signal", signal["metadata"]["name"], NAMESPACE, {"spec": {"resolvedTime": now()}})
        case = team.case(signal)
        return Played(team, case, before, signal, {"late": team.says("jane", request, decision="Approved")})

    return play


def taken_back(broken: Broken) -> Play:
    """The team has a workflow that is taken back where it did no good."""

    def play(team: Team) -> Played:
        team.workflow(BACK, "high", undo={"id": BACK, "version": "1.0.0", "when": "OnIneffective"})
        return by_itself(broken, "high")(team)

    return play


def in_vain(broken: Broken) -> Play:
    """Twice the remedy does no good; then it fires again, and a person wants it looked into all the same."""

    def play(team: Team) -> Played:
        team.breaks(broken)
        first = team.case(team.fires())
        team.shows(first, is_recorded)
        second = team.reaches(CASE, team.by_hand())
        team.shows(second, is_recorded)
        before, again = team.deployment(), team.cases.handed_on(target=team.target)
        signal = team.reaches("Signal", again, "Blocked", "Accepted")
        third = team.reaches(CASE, team.by_hand())
        return Played(team, third, before, signal, {"first": first, "second": second})

    return play


def held(broken: Broken, interval: Interval) -> Play:
    """It is ruled while a window is open, and nobody does anything."""

    def play(team: Team) -> Played:
        try:
            team.breaks(broken)
            before, signal = team.deployment(), team.fires()
            ruled = team.case(signal, "Analyzing", *ENDED)
            ruled = team.shows(ruled, lambda seen: phase_of(seen) in ENDED or "Frozen" in seen["status"]["message"])
            kept = Played(team, ruled, before, signal).is_untouched
        finally:
            interval.is_held.set()
        interval.passes()
        return Played(team, team.case(signal), before, signal, {"held": ruled, "kept": kept})

    return play


def without_policy(broken: Broken, interval: Interval) -> Play:
    """It fires when OPA is away; jane approves."""

    def play(team: Team) -> Played:
        team.breaks(broken)
        interval.passes()
        before, signal = team.deployment(), team.fires()
        jane = team.says("jane", team.asked(signal), decision="Approved")
        return Played(team, team.case(signal), before, signal, {"jane": jane})

    return play
