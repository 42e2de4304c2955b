"""The case itself: what happens, in short lines, and the command that shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hack import HackError
from hack.demo.stage import NAMESPACE, REPOSITORY, Stage, tail_of
from hack.progress import in_words, last_seconds, remember

STEP_SECONDS = 180.0
QUIET_SECONDS = 3.0
"""A longer wait says what it waits for."""
DECISION_SECONDS = 15 * 60.0
WORKLOAD = ("deployment", "checkout", "shop")
TERMINAL = {"Completed", "Failed", "Cancelled"}


@dataclass
class Timetable:
    """Where the time went."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def preparation(self, name: str) -> Iterator[None]:
        """Time a step that shows nothing by itself: it is announced, with how long it took here the last time."""
        known = last_seconds(f"demo: {name}")
        say(f"... {name}" + ("" if known is None else f" ({in_words(known)} the last time here)"))
        with self.step(name):
            yield
        remember(f"demo: {name}", self.spent[name])

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step; a step of the same name adds up."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.spent[name] = self.spent.get(name, 0.0) + time.monotonic() - begun

    def show(self) -> None:
        say("")
        say("Where the time went:")
        for name, seconds in self.spent.items():
            say(f"  {seconds:7.1f} s  {name}")
        say(f"  {sum(self.spent.values()):7.1f} s  in all")


def say(line: str) -> None:
    """One line to the user, at once."""
    print(line, flush=True)


def act(number: int, line: str) -> None:
    """A new scene."""
    say("")
    say(f"[{number}] {line}")


def play(stage: Stage, times: Timetable, *, approve: bool) -> bool:
    """Play the case; True only if the workload is healthy at the end."""
    with times.step("the kernel kills the pod"):
        break_workload(stage)
    with times.step("triage: Signal, duplicate"):
        raise_signal(stage)
    with times.step("investigation up to the ruling"):
        request = watch_investigation(stage)
    if request is not None:
        with times.step("waiting for the decision"):
            decide(stage, request, approve=approve)
    with times.step("execution and verification"):
        investigation = watch_end(stage)
    show_everything(stage, investigation)
    return is_healthy(stage)


def break_workload(stage: Stage) -> None:
    act(1, "A Deployment in production has a memory limit that is too low (examples/oom/workload.yaml)")
    stage.kubectl("apply", "-f", str(REPOSITORY / "examples/oom/workload.yaml"))
    pod = until(lambda: _killed_pod(stage), "the kernel to kill the pod", stage)
    state = _last_state(pod)
    say(f"    the kernel killed it: {state['reason']}, exit code {state['exitCode']}")
    say("    kubectl get pods -n shop")


def raise_signal(stage: Stage) -> None:
    act(2, "Somebody tells Inquest, twice (kubectl apply -f examples/oom/signal.yaml)")
    stage.kubectl("apply", "-f", str(REPOSITORY / "examples/oom/signal.yaml"))
    until(lambda: _is_triaged(stage, "checkout-crashlooping", "Accepted"), "the Signal to be accepted", stage)
    stage.kubectl("apply", "-f", str(REPOSITORY / "examples/oom/signal-again.yaml"))
    name = "checkout-crashlooping-again"
    until(lambda: _is_triaged(stage, name, "Duplicate"), "the second one to be seen as a duplicate", stage)
    say("    the first is Accepted, the second a Duplicate: one case")
    say(f"    kubectl get signals -n {NAMESPACE}")


def watch_investigation(stage: Stage) -> dict[str, Any] | None:
    act(3, "The Investigation runs")
    say(f"    kubectl get investigations -n {NAMESPACE} -w")
    found = until(lambda: _ruled(stage), "the ruling", stage)
    status = found["status"]
    for finding in status.get("findings", [])[:3]:
        say(f"    finding     {finding['category']}: {finding['summary']}")
    say(f"    root cause  {status.get('rootCause', {}).get('summary', '-')}")
    for claim in status.get("claims", [])[:3]:
        say(f"    claim       {claim['verdict']} by {', '.join(claim['evidence'])}: “{claim['quote']}”")
    chosen = status.get("selectedWorkflow", {})
    parameters = {k: v for k, v in chosen.get("parameters", {}).items() if not k.startswith("TARGET_RESOURCE")}
    say(f"    workflow    {status.get('workflowDisplay', '-')} with {parameters}")
    ruling = status.get("ruling", {})
    say(f"    ruling      {ruling.get('decision', '-')}: {ruling.get('reason', '-')}")
    # Before its status says Pending nobody can decide it.
    found = (one for one in stage.list("rar") if (one.get("status") or {}).get("phase"))
    return next(found, None)


def decide(stage: Stage, request: dict[str, Any], *, approve: bool) -> None:
    act(4, "Production: a person is asked")
    name = request["metadata"]["name"]
    patch = '{"spec":{"decision":"Approved","decisionReason":"raise it"}}'
    arguments = ["patch", "rar", name, "-n", NAMESPACE, "--type", "merge", "-p", patch]
    for line in str(request["spec"].get("previewDiff", "")).splitlines():
        if line.startswith(("+", "-")):
            say(f"      {line}")
    say("    approve it with:")
    say(f"      KUBECONFIG={stage.cluster.kubeconfig} \\")
    say(f"      {stage.kubectl_path} {' '.join(arguments[:-1])} '{patch}'")
    if approve:
        say("    APPROVE=yes: running that command")
        stage.kubectl(*arguments)
    until(lambda: _is_decided(stage, name), "the decision", stage, DECISION_SECONDS)
    say(f"    decided: {_phase(stage, 'rar', name)} by {stage.read('rar', name)['spec'].get('decidedBy', '-')}")


def watch_end(stage: Stage) -> dict[str, Any]:
    act(5, "A Job raises the limit in a real pod; then its effect is verified")
    say("    kubectl get jobs -n inquest-workflows")
    say("    (the demo lets the workload settle for seconds; the default is five minutes)")
    found: dict[str, Any] = until(lambda: _ended(stage), "the end of the case", stage, STEP_SECONDS * 2)
    if found["status"].get("resolution") != "Remediated":
        raise HackError(_told(found))
    say(f"    {found['status']['phase']}: {found['status'].get('message', '-')}")
    return found


def show_everything(stage: Stage, investigation: dict[str, Any]) -> None:
    act(6, "kubectl get sig,inv,rar,wfe -A")
    say(stage.kubectl("get", "sig,inv,rar,wfe", "-A"))
    name = investigation["metadata"]["name"]
    act(7, f"kubectl inquest get {name} -n {NAMESPACE}")
    say(stage.inquest("get", name, "-n", NAMESPACE))
    say(f"The whole story: kubectl inquest explain {name} -n {NAMESPACE}")


def is_healthy(stage: Stage) -> bool:
    """Whether the workload runs with every replica ready."""
    kind, name, namespace = WORKLOAD
    found = stage.read(kind, name, namespace)
    ready, wanted = found.get("status", {}).get("readyReplicas", 0), found.get("spec", {}).get("replicas", 1)
    return int(ready) == int(wanted)


def until(look: Callable[[], Any], what: str, stage: Stage, seconds: float = STEP_SECONDS) -> Any:
    """Look twice a second until there is something to see; a failure shows the operator's last words."""
    begun, told = time.monotonic(), False
    while not (seen := look()):
        waited = time.monotonic() - begun
        if waited > seconds:
            raise HackError(f"waited {seconds:.0f} s for {what}\n{tail_of(stage.operator_log())}")
        if waited > QUIET_SECONDS and not told:
            say(f"    ... waiting for {what}")
            told = True
        time.sleep(0.5)
    return seen


def _killed_pod(stage: Stage) -> dict[str, Any] | None:
    return next((pod for pod in stage.list("pods", "shop") if _last_state(pod).get("reason") == "OOMKilled"), None)


def _last_state(pod: dict[str, Any]) -> dict[str, Any]:
    for status in pod.get("status", {}).get("containerStatuses", []):
        for state in (status.get("lastState", {}), status.get("state", {})):
            if "terminated" in state:
                return dict(state["terminated"])
    return {}


def _phase(stage: Stage, kind: str, name: str) -> str:
    return str(stage.read(kind, name).get("status", {}).get("phase", ""))


def _is_triaged(stage: Stage, name: str, wanted: str) -> bool:
    """Whether a Signal is in that phase; HackError where it is in another that it does not leave soon."""
    status = stage.read("signal", name).get("status", {})
    if status.get("phase") not in (None, "Pending", wanted):
        case = _ended(stage)
        told = f"Signal {name} is {status['phase']}, not {wanted}: {status.get('message', '-')}"
        raise HackError(f"{told}\n{_told(case)}" if case else told)
    return bool(status.get("phase") == wanted)


def _ruled(stage: Stage) -> dict[str, Any] | None:
    """The case once it is past its ruling; HackError where it ended instead."""
    past = {"AwaitingApproval", "Executing", "Verifying"}
    return next((inv for inv in _going(stage) if inv.get("status", {}).get("phase") in past), None)


def _is_decided(stage: Stage, name: str) -> bool:
    return bool(_going(stage)) and _phase(stage, "rar", name) not in ("Pending", "")


def _going(stage: Stage) -> list[dict[str, Any]]:
    """The cases; HackError where one has ended already."""
    case = _ended(stage)
    if case is not None:
        raise HackError(_told(case))
    return stage.list("inv")


def _told(case: dict[str, Any]) -> str:
    """How a case ended, and why."""
    status = case["status"]
    words = [status.get(key) for key in ("phase", "outcome", "reason", "subReason", "resolution")]
    said = ", ".join(dict.fromkeys(word for word in words if word))
    return f"the case {case['metadata']['name']} ended otherwise than expected: {said}: {status.get('message', '-')}"


def _ended(stage: Stage) -> dict[str, Any] | None:
    return next((inv for inv in stage.list("inv") if inv.get("status", {}).get("phase") in TERMINAL), None)


def fail(error: HackError) -> int:
    """Tell what went wrong and give the exit status."""
    print(f"\nerror: {error}", file=sys.stderr, flush=True)
    return 1
