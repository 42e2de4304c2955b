"""From a line of a log to a cause: what kind of trouble it is, what has to change, and which setting holds it.

One function for each kind of `log_words.ROWS`. A function that cannot say more than the line does answers None, and
the next line or kind has its turn; at last the line itself is the application's own word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from inquest.core.cluster.pods import start_words
from inquest.core.diagnosis.detectors.citations import cite, cited
from inquest.core.diagnosis.detectors.containers import containers_of, pod_field
from inquest.core.diagnosis.detectors.logs.calls import dns, refused
from inquest.core.diagnosis.detectors.logs.peers import (
    advertised,
    auth,
    broker_full,
    certificate,
    cloud_denied,
    database_broken,
    database_object,
    overload,
    protocol,
    rbac,
    read_only_database,
    store_full,
    too_many_connections,
)
from inquest.core.diagnosis.detectors.logs.settings_named import (
    bad_config,
    behind_file,
    disk_full,
    env_missing,
    file_missing,
    permission,
    privileged,
    read_only_files,
    reload,
)
from inquest.core.diagnosis.detectors.logs.view import LogCause, LogView, command_place
from inquest.core.diagnosis.detectors.logs.words import RANKS, LogFinding, frame_in, lines_of, said_in, telling_line
from inquest.core.diagnosis.detectors.network.callee import is_database
from inquest.core.diagnosis.detectors.platform.bindings import BoundSetting, place_of, variable
from inquest.core.diagnosis.detectors.workloads import node_of, workload_of
from inquest.core.evidence.evidence import ObservedObject

NEAR_END: Final = 100
"""Lines from the end of an ended run's log that can be its reason."""
_TOLERATED: Final = re.compile(
    r"fall(?:ing|s)? ?back|fallback|\boptional\b|\bignor(?:ed|ing)\b|non-?fatal|\bdegraded mode\b|using "
    r"(?:the )?(?:default|cache)"
    r"|skipping|continuing without|deprecat",
    re.IGNORECASE,
)
"""The application says itself that it lives with it."""
_TELEMETRY: Final = re.compile(
    r"\b(?:otel|otlp|jaeger|zipkin|traces?|tracing|spans?|metrics|telemetry)\b.{0,30}\bexport"
    r"|\bexport(?:er|ing|ed)?\b.{0,30}\b(?:otlp|traces?|spans?|metrics|telemetry)\b",
    re.IGNORECASE,
)
"""Who watches it does not hear from it: it serves on, as long as it runs."""
_RECOVERED: Final = re.compile(
    r"\b(?:connected|reconnected|connection (?:established|restored|recovered|ok)|recovered|resolved"
    r"|retry succeeded)\b",
    re.IGNORECASE,
)
_NOT_RECOVERED: Final = re.compile(r"not connected|dis ?connected|unconnected|unable|fail|error|lost", re.IGNORECASE)
_LOADED: Final = re.compile(
    r"(?:completed|finished|successfully|done) (?:re)?load"
    r"|(?:re)?load(?:ed|ing)?\b.{0,60}?\b(?:complete|success|done\b)"
    r"|config(?:uration)?.{0,40}?\b(?:re)?loaded\b",
    re.IGNORECASE,
)
"""It runs with its newest configuration after all."""
_NOT_LOADED: Final = re.compile(r"\bnot\b|n't\b|\bfail|\bunable\b|\bprevious", re.IGNORECASE)
CALLS: Final = frozenset(
    {"dns", "refused", "auth", "tooManyConnections", "certificate", "protocol", "readOnlyDatabase", "storeFull"}
)
"""Kinds that can be cured from outside while the container runs on."""
CURABLE: Final = frozenset(
    {*CALLS, "diskFull", "rbac", "reload", "overload", "databaseBroken", "brokerFull", "advertised", "cloudDenied"}
)
"""Kinds that a container can suffer from without ending."""


def cause_of_end(view: LogView) -> LogCause | None:
    """Why a run ended, as its log says it; a trouble that the log says to be over is none."""
    lines = lines_of(view.log.text)
    said = [each for each in said_in(view.log.text) if each.index >= len(lines) - NEAR_END]
    standing = [each for each in said if not _is_over(each, lines)]
    return _unexpanded(view, standing) or _first_cause(view, standing)


def cause_while_running(view: LogView, *, least: int, within: int) -> LogCause | None:
    """What a running container complains of again and again up to the end of its log; what its clients do is not."""
    lines = lines_of(view.log.text)
    own = (each for each in said_in(view.log.text) if not _TELEMETRY.search(each.line))
    heard = (each for each in own if each.kind in CURABLE and not _is_of_clients(view, each))
    said = [each for each in heard if not _is_over(each, lines)]
    kinds = [each.kind for each in said if each.index >= len(lines) - within]
    lasting = [each for each in said if each.kind in kinds and _count(said, each.kind) >= _LEAST.get(each.kind, least)]
    return _first_cause(view, lasting)


_LEAST: Final = {"reload": 1}
"""Said once and true until it says otherwise: what it was told last is not what it does."""


def _is_of_clients(view: LogView, said: LogFinding) -> bool:
    """A server writes down what others do to it: bad logins, broken connections, foreign protocols."""
    if _CLIENTS.search(said.line):
        return True
    if said.kind == "auth":
        return is_database(view.container.pod) or not (_LOGIN.search(said.line) or set(said.named) - {"host", "port"})
    return said.kind == "refused" and not _OWN_CALL.search(said.line)


_CLIENTS: Final = re.compile(
    r"handshake error from|while (?:reading|waiting for) (?:client|request)|client (?:closed|disconnected|timed out)"
    r"|remote error: tls|reading response header from client|from client",
    re.IGNORECASE,
)
_LOGIN: Final = re.compile(r"WRONGPASS|NOAUTH|ACCESS_REFUSED|SASL|SCRAM|authentication failed against", re.IGNORECASE)
_OWN_CALL: Final = re.compile(
    r"refused|no route|unreachable|i/o timeout|ETIMEDOUT|connect\w* (?:attempt )?timed? ?out|ConnectTimeout|Max retries"
    r"|(?:could not|cannot|can't|failed to|unable to)(?: \w+)? (?:connect|reach)|Unavailable|no live upstreams|upstream"
    r"|dial tcp|waiting for|failed connecting|established|50[234]\b",
    re.IGNORECASE,
)
"""Words of the one who calls."""


def _count(said: Iterable[LogFinding], kind: str) -> int:
    return sum(each.kind == kind for each in said)


def _is_over(said: LogFinding, lines: Sequence[str]) -> bool:
    if _TOLERATED.search(said.line):
        return True
    later = lines[said.index + 1 :]
    if said.kind == "reload":
        return any(_LOADED.search(line) and not _NOT_LOADED.search(line) for line in later)
    return said.kind in CALLS and any(_RECOVERED.search(line) and not _NOT_RECOVERED.search(line) for line in later)


def _first_cause(view: LogView, said: Sequence[LogFinding]) -> LogCause | None:
    tried: set[tuple[str, ...]] = set()
    for each in said:
        key = (each.kind, *each.named.values())
        if key not in tried:
            tried.add(key)
            found = _CAUSES[each.kind](view, each)
            if found is not None:
                return _grounded(view, each, found)
    return None


def _grounded(view: LogView, said: LogFinding, found: LogCause) -> LogCause:
    """Every cause cites its line, and the object of the API server that the container stands in."""
    image = str(view.container.spec.get("image") or "")
    own = cited(view.snapshot, view.container.pod.evidence, f'"name":"{view.container.name}"', f'"image":"{image}"')
    line = cited(view.snapshot, view.log.evidence, said.line)
    facts = {"cause": said.kind, **found.facts}
    return replace(
        found,
        says=f"{found.says}: {said.line}" if found.line_follows else found.says,
        citations=tuple(dict.fromkeys((*line, *found.place.citations, *found.citations, *own))),
        facts=facts,
        line=said.line,
        kind=said.kind,
    )


def summary_of(found: LogCause, doing: str) -> str:
    """One sentence that names the object, whoever the words are about; `doing` says what the container does."""
    ref = found.place.ref
    if ref.display in found.says.partition(": ")[0]:
        return found.says
    about = "" if ref.name in doing else f"{ref.display} {found.place.field}: "
    return f"{about}{doing}: {found.says}"


# --- references that stay as they are written -------------------------------------------------------------------


_REFERENCE: Final = re.compile(r"\$\((?P<name>[A-Za-z_][\w.-]{0,120})\)")


def _unexpanded(view: LogView, said: Iterable[LogFinding]) -> LogCause | None:
    """`$(NAME)` of its own arguments or variables in a complaint: Kubernetes knew no value for it at that place."""
    for each in said:
        for match in _REFERENCE.finditer(each.line):
            place = place_of(view.snapshot, view.container, match[0])
            if place is not None and not _is_script(view, place.value):
                return _grounded(view, each, _left_as_written(view, match["name"], place))
    return None


def _is_script(view: LogView, text: str) -> bool:
    """A shell has a `$(...)` of its own."""
    words = start_words(view.container.spec)
    return any(flag in _RUNS_TEXT and text == script for flag, script in pairwise(words))


_RUNS_TEXT: Final = frozenset({"-c", "-ec", "-lc", "-xc", "-ce", "-exc", "-euc"})


def _left_as_written(view: LogView, name: str, place: BoundSetting) -> LogCause:
    return LogCause(
        "EnvVarMissing",
        place,
        0.92,
        f"{place.ref.display} {place.field} refers to $({name}), and container {view.container.name} has no variable "
        f"of that name there, so it stays as it is written",
        facts={"variable": name},
        refuted_by=(f"The container has the environment variable {name}, given before it is referred to.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


# --- the command -----------------------------------------------------------------------------------------------


def _command_missing(view: LogView, said: LogFinding) -> LogCause:
    what = next(iter(said.named.values()), "")
    mounted = behind_file(view, what) if what.startswith("/") else None
    if mounted is not None:
        return mounted
    field, value = command_place(view)
    return LogCause(
        "CommandFailing",
        BoundSetting(view.ref, field, value),
        0.9,
        f"{what or 'its command'} does not exist in the image",
        facts={"missing": what},
        refuted_by=("The file or program exists in the image and can be run.",),
        actions=("RollbackDeployment", "PatchConfiguration"),
    )


def _exec_format(view: LogView, said: LogFinding) -> LogCause:
    image = str(view.container.spec.get("image") or "")
    return LogCause(
        "CommandFailing",
        BoundSetting(view.ref, view.field("image"), image),
        0.9,
        f"image {image} is built for another platform than the node's, or its entry point is no program",
        facts={"image": image},
        refuted_by=(
            "The image is of the node's platform, and its entry point is a program or a script with a first line.",
        ),
        actions=("RollbackDeployment", "PatchConfiguration"),
    )


_FLAGS: Final = ("for", "flag", "defined", "option", "vm", "needed", "flags", "argument", "value")


def _bad_flag(view: LogView, said: LogFinding) -> LogCause:
    words = [said.named[key] for key in _FLAGS if key in said.named]
    place = place_of(view.snapshot, view.container, *(word for word in words if word.startswith("-")))
    return LogCause(
        "CommandFailing",
        place or BoundSetting(view.ref, *command_place(view)),
        0.88 if place else 0.8,
        f"it does not start with these arguments{f' ({words[0]})' if words else ''}",
        facts={"argument": words[0] if words else ""},
        refuted_by=("This version of the program takes that argument.",),
        actions=("RollbackDeployment", "PatchConfiguration"),
    )


# --- ports -----------------------------------------------------------------------------------------------------


def _port_in_use(view: LogView, said: LogFinding) -> LogCause:
    port = said.named.get("port", "")
    rival = _rival(view, port)
    if _is_on_node(view.container.pod) and not rival:
        return _taken_on_node(view, port)
    place = place_of(view.snapshot, view.container, port) if port else None
    with_whom = f", which container {rival} of the same pod has" if rival else ""
    return LogCause(
        "PortConflict",
        place or BoundSetting(view.ref, view.field("ports"), port),
        0.9 if rival or place else 0.8,
        f"it cannot listen on port {port or 'that it wants'}{with_whom}",
        facts={"port": port, "rival": rival},
        refuted_by=("No other process in the pod listens on this port.",),
        actions=("PatchConfiguration", "RollbackDeployment"),
    )


def _is_on_node(pod: ObservedObject) -> bool:
    return bool(pod.spec.get("hostNetwork"))


def _taken_on_node(view: LogView, port: str) -> LogCause:
    """The ports of the node are everybody's: a pod that says that it has this one, or somebody who does not say so."""
    holder = _holder_on_node(view, port)
    whose = workload_of(view.snapshot, holder).display if holder else ""
    node = node_of(view.container.pod)
    return LogCause(
        "PortConflict",
        BoundSetting(view.ref, pod_field(view.ref, "hostNetwork"), "true"),
        0.9 if holder else 0.85,
        f"it uses the network of its node{f' {node}' if node else ''}, where "
        f"{whose or 'another process'} has port {port or 'that it wants'}",
        citations=(
            *cited(view.snapshot, view.container.pod.evidence, '"hostNetwork":true'),
            *cite(view.snapshot, holder),
        ),
        facts={"port": port, "node": node, "rival": whose},
        refuted_by=("No other process on the node listens on this port.",),
        actions=("PatchConfiguration",),
    )


def _holder_on_node(view: LogView, port: str) -> ObservedObject | None:
    node = node_of(view.container.pod)
    for pod in view.snapshot.of_kind("Pod") if node and port else ():
        same = node_of(pod) == node
        if same and workload_of(view.snapshot, pod) != view.ref and port in _ports_on_node(pod):
            return pod
    return None


def _ports_on_node(pod: ObservedObject) -> set[str]:
    ports = [each for container in containers_of(pod) for each in container.spec.get("ports") or ()]
    word = "containerPort" if _is_on_node(pod) else "hostPort"
    return {str(each.get(word)) for each in ports}


def _rival(view: LogView, port: str) -> str:
    """Another container of the pod that says that it has the port."""
    for other in containers_of(view.container.pod):
        ports = [str(each.get("containerPort")) for each in other.spec.get("ports") or ()]
        if other.name != view.container.name and not other.init and port in ports:
            return other.name
    others = [
        each.name for each in containers_of(view.container.pod) if each.name != view.container.name and not each.init
    ]
    return others[0] if len(others) == 1 else ""


# --- memory, and the application's own word ---------------------------------------------------------------------------


def _heap(view: LogView, said: LogFinding) -> LogCause:
    flags = place_of(view.snapshot, view.container, "JAVA_OPTS", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS")
    settings = (variable(view.snapshot, view.container, name) for name in _HEAP_SETTINGS)
    known, limit = next((found for found in settings if found), flags), view.container.limit("memory")
    place = known or BoundSetting(view.ref, view.field("resources.limits.memory"), limit)
    return LogCause(
        "MemoryLeaking",
        replace(place, ref=view.ref),
        0.72,
        f"it used up its own heap ({place.field})",
        facts={"memoryLimit": limit},
        refuted_by=("The heap is large enough for the load, and its use does not grow from hour to hour.",),
        actions=_SET_HEAP if known else _FREE_HEAP,
    )


_SET_HEAP: Final = ("PatchConfiguration", "RollbackDeployment")
_FREE_HEAP: Final = ("IncreaseMemoryLimits", "RestartDeployment")
_HEAP_SETTINGS: Final = ("JAVA_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JVM_OPTS", "NODE_OPTIONS", "GOMEMLIMIT")


def _leak(view: LogView, said: LogFinding) -> LogCause | None:
    if not re.search(r"memory|heap", said.line, re.IGNORECASE):
        return None
    return LogCause(
        "MemoryLeaking",
        BoundSetting(view.ref, view.field("resources.limits.memory"), view.container.limit("memory")),
        0.6,
        "it says itself that its memory leaks",
        refuted_by=("Its memory does not grow while the load stays.",),
        actions=("RestartDeployment", "RollbackDeployment"),
    )


def _exception(view: LogView, said: LogFinding) -> LogCause:
    """The application's own word; the exception's message rather than the words around it."""
    line = _message(view, said)
    frame = frame_in(view.log.text)
    at = f" at {frame}" if frame else ""
    return LogCause(
        "ApplicationError",
        BoundSetting(view.ref, "log", line),
        0.75,
        f"{line}{at}",
        citations=cited(view.snapshot, view.log.evidence, line, frame),
        facts={"frame": frame},
        refuted_by=("The process ends without this error, or ended before it was written.",),
        actions=("RollbackDeployment",),
        line_follows=False,
    )


_CAUSED: Final = re.compile(r"^Caused by: (?P<why>.{1,400})")


def _message(view: LogView, said: LogFinding) -> str:
    """The innermost cause that a stack trace names, else the line."""
    caused = [line for line in lines_of(view.log.text) if _CAUSED.search(line)]
    if caused:
        return caused[-1].strip()
    return said.line if len(said.line) > 12 else telling_line(view.log.text) or said.line


def _last_word(view: LogView, said: LogFinding) -> LogCause:
    return replace(_exception(view, said), confidence=0.75)


Handler = Callable[[LogView, LogFinding], LogCause | None]
_CAUSES: Final[dict[str, Handler]] = {
    "portInUse": _port_in_use,
    "execFormat": _exec_format,
    "commandMissing": _command_missing,
    "badFlag": _bad_flag,
    "dns": dns,
    "rbac": rbac,
    "tooManyConnections": too_many_connections,
    "readOnlyDatabase": read_only_database,
    "storeFull": store_full,
    "brokerFull": broker_full,
    "advertised": advertised,
    "cloudDenied": cloud_denied,
    "auth": auth,
    "certificate": certificate,
    "protocol": protocol,
    "diskFull": disk_full,
    "readOnlyFiles": read_only_files,
    "privileged": privileged,
    "permission": permission,
    "envMissing": env_missing,
    "badConfig": bad_config,
    "fileMissing": file_missing,
    "heap": _heap,
    "leak": _leak,
    "refused": refused,
    "databaseObject": database_object,
    "databaseBroken": database_broken,
    "overload": overload,
    "reload": reload,
    "panic": _exception,
    "error": _last_word,
}
assert set(_CAUSES) == set(RANKS)
