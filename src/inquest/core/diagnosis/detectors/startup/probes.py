"""A probe that asks the wrong question: another port, path or scheme, too soon, too short, or with a missing command.

An event says that a probe failed, never whose fault it is. The probe is blamed only where something else speaks for the
application: it listens elsewhere, it answers that there is no such page, it is killed before it has started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from inquest.core.cluster.objects import event_moment, is_recent, parse_time
from inquest.core.cluster.quantities import parse_quantity
from inquest.core.diagnosis.detectors.citations import cite_event, cited, limited
from inquest.core.diagnosis.detectors.containers import Container, container_field, every_container, logs_of
from inquest.core.diagnosis.detectors.events import count_of, events_on, is_about_container, is_fresh, message_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.workloads import is_going, workload_of
from inquest.core.evidence.evidence import Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

_RECENT: Final = timedelta(minutes=30)
_KINDS: Final = {"Liveness": "livenessProbe", "Readiness": "readinessProbe", "Startup": "startupProbe"}
_FAILED: Final = re.compile(
    r"(?P<kind>Liveness|Readiness|Startup) probe (?:failed|errored)[^:]{0,60}: ?(?P<why>[\s\S]{0,600})"
)
_CODE: Final = re.compile(r"statuscode: (?P<code>\d{3})")
_REFUSED: Final = re.compile(r"connection refused|failed to connect service|connect: connection", re.IGNORECASE)
_TIMEOUT: Final = re.compile(
    r"Client\.Timeout|context deadline exceeded|timed out|i/o timeout|request canceled|timeout: ", re.IGNORECASE
)
_SCHEME: Final = re.compile(
    r"server gave HTTP response to HTTPS client|first record does not look like a TLS handshake|malformed HTTP|"
    r"HTTP/1\.x transport connection broken|wrong version number|certificate|tls: ",
    re.IGNORECASE,
)
_HTTPS_WANTED: Final = re.compile(r"HTTP request (?:was sent )?to (?:an )?HTTPS", re.IGNORECASE)
_NO_COMMAND: Final = re.compile(
    r"executable file not found|"
    r"(?:exec: \"|stat |fork/exec )[^\n]{0,200}(?:no such file or directory|permission denied)|"
    r"\bsh: (?:\d+: |line \d+: )?[^\s:]+: (?:command )?not found",
    re.IGNORECASE,
)
"""The runtime or a shell cannot run the command. What a command that runs prints, of a file that is not there yet for
instance, is its way to say that the application is not ready."""
_NO_SERVICE: Final = re.compile(r"unknown service|unimplemented|UNIMPLEMENTED")
_MISPLACED: Final = frozenset({301, 302, 307, 308, 400, 404, 405, 410, 421, 426, 501})
"""Codes by which a server says that this is no page of it, or not in this way."""
_GUARDED: Final = frozenset({401, 403})
_PORT: Final = r"[^\n]{0,60}?(?:\bport\(?s?\)?:? ?|:)(?P<port>80|\d{3,5})\b"
_LISTENS: Final = (
    re.compile(rf"\b(?:listen(?:ing|s)?|serving|bound)\b{_PORT}", re.IGNORECASE),
    re.compile(
        rf"\b(?:started|running|available|ready|initialized|up)\b[^\n]{{0,40}}? (?:on|at|with)\b{_PORT}", re.IGNORECASE
    ),
)
_STARTED_LATE: Final = re.compile(
    r"\b(?:loading|warming|migrat|starting|initiali[sz]|booting|preparing|compil|restoring|replaying|building)",
    re.IGNORECASE,
)
_IS_UP: Final = re.compile(
    r"\b(?:listening|started in|startup complete|ready to (?:accept|serve)|server (?:is )?(?:up|started"
    r"|running)|accepting connections)\b",
    re.IGNORECASE,
)
_WAKING: Final = 300.0
"""Seconds within which a container that never became ready may still be starting."""


@dataclass(frozen=True)
class ProbeFailure:
    """A probe of a container that fails, with what the kubelet said last."""

    container: Container
    kind: str
    probe: Json
    event: ObservedObject
    why: str

    @property
    def field(self) -> str:
        return _KINDS[self.kind]

    @property
    def action(self) -> Json:
        for word in ("httpGet", "tcpSocket", "grpc", "exec"):
            if word in self.probe:
                return self.probe[word] or {}
        return {}

    @property
    def command(self) -> str:
        """What an `exec` probe runs."""
        return " ".join(map(str, self.action.get("command") or ()))

    @property
    def how(self) -> str:
        return next((word for word in ("httpGet", "tcpSocket", "grpc", "exec") if word in self.probe), "")

    @property
    def port(self) -> str:
        return str(self.action.get("port") or "")


@dataclass(frozen=True)
class ProbeFault:
    """Which part of a probe is wrong, and why that is believed."""

    rest: str
    value: str
    confidence: float
    why: str
    refuted: str
    wants: str = ""
    """What should stand there, where it is known."""
    category: str = ""
    """Where it is not the probe's fault."""


@one_per_container
def probes(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each container whose probe is at fault."""
    for container in every_container(snapshot):
        for failure in _failures(snapshot, container):
            fault = next((fault for rule in _RULES if (fault := rule(snapshot, failure))), None)
            if fault is not None:
                yield _finding(snapshot, failure, fault)


def _failures(snapshot: Snapshot, container: Container) -> Iterator[ProbeFailure]:
    """The newest failure of each probe, where the container is in trouble now."""
    if is_going(container.pod):
        return
    seen: set[str] = set()
    for event in _newest_first(events_on(snapshot, container.pod, "Unhealthy", "ProbeWarning", recent=False)):
        said = _FAILED.search(message_of(event)) if is_fresh(snapshot, event, _RECENT) else None
        probe = container.spec.get(_KINDS[said["kind"]]) if said else None
        if said and probe and said["kind"] not in seen and is_about_container(event, container.name):
            seen.add(said["kind"])
            failure = ProbeFailure(container, said["kind"], probe, event, said["why"].strip())
            if _hurts(snapshot, failure):
                yield failure


def _newest_first(events: Sequence[ObservedObject]) -> list[ObservedObject]:
    return sorted(events, key=lambda event: str(event_moment(event.object) or ""), reverse=True)


def _hurts(snapshot: Snapshot, failure: ProbeFailure) -> bool:
    """Whether the failure is why something is wrong now, rather than what every start looks like."""
    container = failure.container
    if failure.kind == "Readiness":
        return not container.is_ready and _is_past_start(snapshot, failure)
    killed = (container.last_ended or container.ended).get("finishedAt")
    if container.is_ready:
        return container.restarts > 1 and is_recent(killed, snapshot.taken_at, _JUST)
    return container.restarts > 0 and is_recent(killed, snapshot.taken_at)


_JUST: Final = timedelta(minutes=15)
"""A container that was killed twice, the last time within it, is between two kills, though it is ready now."""


def _is_past_start(snapshot: Snapshot, failure: ProbeFailure) -> bool:
    """The probe has been asked long enough; a single refusal belongs to a start."""
    started = failure.container.started
    patience = max(60.0, _number(failure.probe, "initialDelaySeconds", 0) + _budget(failure.probe))
    if started is None:
        return failure.container.restarts > 0
    return (snapshot.taken_at - started).total_seconds() >= patience or count_of(failure.event) >= _MANY


_MANY: Final = 12


def _number(probe: Json, name: str, default: int) -> float:
    found = probe.get(name)
    return float(found) if isinstance(found, int | float) else float(default)


def _budget(probe: Json) -> float:
    """Seconds from the first question to the verdict."""
    return _number(probe, "periodSeconds", 10) * _number(probe, "failureThreshold", 3)


# --- the rules, what proves most first ------------------------------------------------------------------------


def _unknown_port(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """A port by a name that the container does not give."""
    names = {str(each.get("name")) for each in failure.container.spec.get("ports") or ()}
    if not failure.port or failure.port.isdigit() or failure.port in names:
        return None
    return ProbeFault(
        f"{failure.how}.port",
        failure.port,
        0.95,
        f"asks port {failure.port}, and the container names no such port",
        f"The container has a port named {failure.port}.",
    )


def _wrong_scheme(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    secure = failure.action.get("scheme") == "HTTPS"
    if failure.how != "httpGet" or not (
        _SCHEME.search(failure.why) or _HTTPS_WANTED.search(_text_around(snapshot, failure))
    ):
        return None
    spoken = "HTTPS" if secure else "HTTP"
    if re.search(r"certificate", failure.why, re.IGNORECASE):
        return None
    return ProbeFault(
        "httpGet.scheme" if secure or _HTTPS_WANTED.search(_text_around(snapshot, failure)) else "httpGet",
        spoken,
        0.92,
        f"speaks {spoken}, which the server on port {failure.port} does not",
        f"The server on port {failure.port} answers {spoken}.",
        "HTTP" if secure else "HTTPS",
    )


def _text_around(snapshot: Snapshot, failure: ProbeFailure) -> str:
    """The refusal, and what the server wrote of it."""
    logs = "\n".join(log.text[-4000:] for log in logs_of(snapshot, failure.container))
    return f"{failure.why}\n{logs}" if failure.why.startswith("HTTP probe failed with statuscode: 400") else failure.why


_LOOPBACK: Final = re.compile(r"(?<![\w.])(?:127\.0\.0\.1|localhost|\[::1\]):(?P<port>\d{2,5})\b")
_SERVES: Final = re.compile(r"\b(?:listen\w*|serving|running|started|bound|available)\b", re.IGNORECASE)


def _only_inside(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """Refused on the pod's address, because the application listens on the loopback only."""
    if failure.how not in ("httpGet", "tcpSocket", "grpc") or not _REFUSED.search(failure.why):
        return None
    lines = [line[:400] for log in logs_of(snapshot, failure.container) for line in log.text.splitlines()[-200:]]
    said = [match["port"] for line in lines if _SERVES.search(line) for match in _LOOPBACK.finditer(line)]
    port = _as_number(failure)
    if port not in said or any(f"0.0.0.0:{port}" in line or f"[::]:{port}" in line for line in lines):
        return None
    return ProbeFault(
        f"{failure.how}.port",
        failure.port,
        0.9,
        f"asks port {failure.port} of the pod's address, and the application listens on the loopback only",
        f"The application listens on port {port} of every address.",
    )


def _other_port(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """Refused, while the application listens somewhere else."""
    if failure.how not in ("httpGet", "tcpSocket", "grpc") or not _REFUSED.search(failure.why):
        return None
    port = _as_number(failure)
    declared = [
        str(each.get("containerPort"))
        for each in failure.container.spec.get("ports") or ()
        if each.get("containerPort")
    ]
    heard = _heard(snapshot, failure.container)
    if not port or port in heard or (not heard and _died_by_itself(failure.container)):
        return None
    if heard:
        confidence = 0.93
    elif declared and port not in declared and failure.container.is_running and _seems_up(snapshot, failure.container):
        confidence = 0.88
    elif declared and port not in declared:
        confidence = 0.85
    else:
        return None
    wants = (heard or declared)[0]
    return ProbeFault(
        f"{failure.how}.port",
        failure.port,
        confidence,
        f"asks port {failure.port}, where nothing listens; the container has {', '.join(heard or declared)}",
        f"The application listens on port {port}.",
        wants,
    )


def _as_number(failure: ProbeFailure) -> str:
    if failure.port.isdigit():
        return failure.port
    ports = failure.container.spec.get("ports") or ()
    return next((str(each.get("containerPort")) for each in ports if each.get("name") == failure.port), "")


def _heard(snapshot: Snapshot, container: Container) -> list[str]:
    """Ports that its log says it listens on."""
    found: dict[str, None] = {}
    for log in logs_of(snapshot, container):
        for line in log.text.splitlines()[-200:]:
            for pattern in _LISTENS:
                if (match := pattern.search(line[:400])) and int(match["port"]) <= 65535:
                    found[match["port"]] = None
    return list(found)


def _seems_up(snapshot: Snapshot, container: Container) -> bool:
    started = container.started
    return started is not None and (snapshot.taken_at - started).total_seconds() > _WAKING / 2


def _wrong_path(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    code = _CODE.search(failure.why)
    number = int(code["code"]) if code else 0
    if failure.how != "httpGet" or number not in _MISPLACED | _GUARDED:
        return None
    path = str(failure.action.get("path") or "/")
    guarded = number in _GUARDED
    return ProbeFault(
        "httpGet.path",
        path,
        0.75 if guarded else 0.92 if number == 404 else 0.82,
        f"asks {path}, and the application answers {number}",
        f"The application answers {path} with a code from 200 to 399.",
    )


def _no_command(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    if failure.how != "exec" or not _NO_COMMAND.search(failure.why):
        return None
    return ProbeFault(
        "exec.command",
        failure.command,
        0.9,
        f"runs {failure.command}, which does not work in this image: {failure.why[:120]}",
        "The command exists in the image and ends with 0 when the application is well.",
    )


def _no_health_service(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    if failure.how != "grpc" or not _NO_SERVICE.search(failure.why):
        return None
    return ProbeFault(
        "grpc.service",
        str(failure.action.get("service") or ""),
        0.88,
        "asks for a gRPC health service that the application does not have",
        "The application serves grpc.health.v1.Health with this service name.",
    )


def _too_soon(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """It is killed before it has come up: every run lasts about as long as the probe's patience."""
    if failure.kind == "Readiness" or not (_REFUSED.search(failure.why) or _TIMEOUT.search(failure.why)):
        return None
    guarded = failure.kind == "Liveness" and bool(failure.container.spec.get("startupProbe"))
    if guarded or _died_by_itself(failure.container):
        return None
    delay, budget = _number(failure.probe, "initialDelaySeconds", 0), _budget(failure.probe)
    ran = _lasted(failure.container)
    # The log of the run that was killed says that it was up.
    logs = [log for log in logs_of(snapshot, failure.container) if log.previous] or logs_of(snapshot, failure.container)
    awake = any(_IS_UP.search(log.text[-8000:]) for log in logs)
    if awake or (ran is not None and ran > delay + budget + _grace(failure.container) + 60):
        return None
    word = "failureThreshold" if failure.kind == "Startup" else "initialDelaySeconds"
    value = int(_number(failure.probe, word, 3 if failure.kind == "Startup" else 0))
    starting = _is_starting_up(snapshot, failure.container)
    return ProbeFault(
        word,
        str(value),
        0.88 if starting else 0.72,
        f"gives up after {int(delay + budget)} s (initialDelaySeconds {int(delay)}, periodSeconds "
        f"{int(_number(failure.probe, 'periodSeconds', 10))}, failureThreshold "
        f"{int(_number(failure.probe, 'failureThreshold', 3))}), "
        "before the application is up",
        f"The application listens within {int(delay + budget)} s of its start.",
    )


def _died_by_itself(container: Container) -> bool:
    """A process that ends by an error of its own was not killed by the kubelet."""
    end = container.last_ended or container.ended
    return bool(end) and (end.get("reason") == "OOMKilled" or end.get("exitCode") not in (0, 2, 137, 143, None))


def _grace(container: Container) -> float:
    return _number(container.pod.spec, "terminationGracePeriodSeconds", 30)


def _lasted(container: Container) -> float | None:
    end = container.last_ended or container.ended
    began, ended = parse_time(end.get("startedAt")), parse_time(end.get("finishedAt"))
    return (ended - began).total_seconds() if began and ended else None


def _is_starting_up(snapshot: Snapshot, container: Container) -> bool:
    logs = logs_of(snapshot, container)
    return any(_STARTED_LATE.search(line[:400]) for log in logs for line in log.text.splitlines()[-5:])


def _never_passed(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """A command that ran and has ended no run of the container well: each lasted no longer than the probe's patience.

    One that had passed before speaks for the application, which became unwell.
    """
    ran, delay = _lasted(failure.container), _number(failure.probe, "initialDelaySeconds", 0)
    period = _number(failure.probe, "periodSeconds", 10)
    if failure.how != "exec" or failure.kind == "Readiness" or _TIMEOUT.search(failure.why):
        return None
    if failure.container.restarts < _KILLED or ran is None or _died_by_itself(failure.container):
        return None
    if ran > delay + _budget(failure.probe) + _grace(failure.container) + period:
        return None
    return ProbeFault(
        "exec.command",
        failure.command,
        0.72,
        f"has it killed in every run before {failure.command} has passed once: {failure.why[:120]}",
        f"The command passes within {int(delay + _budget(failure.probe))} s of a start.",
    )


_KILLED: Final = 2
"""Restarts from which on it is no accident."""


def _too_short(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """A timeout of a second or two that is not met; with a tiny CPU limit that is the reason instead."""
    timeout = _number(failure.probe, "timeoutSeconds", 1)
    cpu = parse_quantity(failure.container.limit("cpu"))
    if (
        not _TIMEOUT.search(failure.why)
        or timeout > 2
        or (cpu is not None and cpu < 0.2)
        or _died_by_itself(failure.container)
    ):
        return None
    return ProbeFault(
        "timeoutSeconds",
        str(int(timeout)),
        0.6 if failure.kind == "Readiness" else 0.7,
        f"waits {int(timeout)} s for an answer that takes longer",
        f"The application answers the probe within {int(timeout)} s.",
    )


def _unwell(snapshot: Snapshot, failure: ProbeFailure) -> ProbeFault | None:
    """The application itself says that it is not well: the probe does its work."""
    code = _CODE.search(failure.why)
    if not code or int(code["code"]) < 500:
        return None
    return ProbeFault(
        "",
        f"statuscode: {code['code']}",
        0.5,
        f"gets {code['code']} from the application, which says so that it is not well",
        "The application answers its probe with a code from 200 to 399.",
        category="ApplicationError",
    )


Rule = Callable[[Snapshot, ProbeFailure], ProbeFault | None]
_RULES: Final[tuple[Rule, ...]] = (
    _unknown_port,
    _wrong_scheme,
    _only_inside,
    _other_port,
    _wrong_path,
    _no_command,
    _no_health_service,
    _never_passed,
    _too_soon,
    _too_short,
    _unwell,
)


# --- the finding -------------------------------------------------------------------------------------------------


def _finding(snapshot: Snapshot, failure: ProbeFailure, fault: ProbeFault) -> Finding:
    container = failure.container
    ref = workload_of(snapshot, container.pod)
    whole = container_field(ref, container, "").rstrip(".")
    field = f"{whole}.{failure.field}.{fault.rest}".rstrip(".")
    facts = rollout_facts(snapshot, ref)
    return Finding(
        category=fault.category or f"{failure.kind}ProbeMisconfigured",
        object=ref,
        field=field,
        value=limited(fault.value),
        summary=f"{ref.display}: the {failure.kind.lower()} probe of container {container.name} {fault.why}",
        confidence=fault.confidence,
        citations=(
            *cited(snapshot, container.pod.evidence, *_quotes(failure, fault)),
            *cite_event(snapshot, failure.event),
        ),
        explains=_symptoms(failure),
        facts={
            **facts,
            "container": container.name,
            "pod": container.pod.name,
            "probe": failure.field,
            "wants": fault.wants,
            "restartCount": str(container.restarts),
        },
        refuted_by=(fault.refuted,),
        # Whatever of its container was changed may be why a probe that was kept is not answered any more.
        actions=possible(snapshot, ("RollbackDeployment", "PatchConfiguration"), facts, ref, whole),
    )


def _quotes(failure: ProbeFailure, fault: ProbeFault) -> tuple[str, ...]:
    """The part that is wrong as it stands in the object, else the probe's own name."""
    word = fault.rest.rpartition(".")[2]
    stands: Any = (failure.action if "." in fault.rest else failure.probe).get(word)
    exact = f'"{word}":{json.dumps(stands, separators=(",", ":"))}' if stands is not None else ""
    return (exact, f'"{failure.field}"') if exact else (f'"{failure.field}"',)


def _symptoms(failure: ProbeFailure) -> tuple[str, ...]:
    container = failure.container
    if failure.kind == "Readiness":
        return (f"container {container.name} is not ready",)
    return (f"{container.restarts} restarts of container {container.name}",)
