"""What a container that runs complains of: an init container that waits, one never ready, one that serves badly.

A log is full of errors that nobody minds. A running container is heard only where it is in trouble, or where the same
complaint about something outside it comes again and again up to the end of its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from inquest.core.diagnosis.detectors.citations import cited, limited
from inquest.core.diagnosis.detectors.containers import Container, every_container, logs_of
from inquest.core.diagnosis.detectors.findings import one_per_container
from inquest.core.diagnosis.detectors.logs.causes import cause_of_end, cause_while_running, summary_of
from inquest.core.diagnosis.detectors.logs.view import LogCause, view_of
from inquest.core.diagnosis.detectors.revisions import possible, rollout_facts
from inquest.core.diagnosis.detectors.workloads import is_going, workload_of
from inquest.core.evidence.evidence import Finding
from inquest.core.evidence.snapshot import LogTail, Snapshot, TextSeen

INIT_PATIENCE: Final = timedelta(minutes=2)
"""An init container that runs longer waits for something."""
UNREADY_PATIENCE: Final = timedelta(seconds=60)
_OFTEN: Final = 3
_AT_END: Final = 12
"""Lines from the end of the log among which the complaint still comes."""
_OWN_WORDS: Final = frozenset({"panic", "error", "leak"})
_SERVING: Final = 0.12
"""What a complaint of a container that is ready loses: it may live with it."""
_UNREADY: Final = 0.05
_WAITING: Final = 0.65
"""Of an init container that runs and does not say why."""
_TEXT: Final = 0.1
"""What another check's words lose beside a container's own."""


@one_per_container
def application_log(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each running container whose log tells of trouble."""
    for container in every_container(snapshot):
        if container.is_running and not is_going(container.pod):
            yield from _of(snapshot, container)
    for text in snapshot.texts:
        yield from _of_text(snapshot, text)


def _of(snapshot: Snapshot, container: Container) -> Iterator[Finding]:
    logs = [log for log in logs_of(snapshot, container) if not log.previous]
    if container.init and not container.is_sidecar:
        if _has_run(snapshot, container, INIT_PATIENCE):
            yield _waiting(snapshot, container, next(iter(logs), None))
        return
    unready = not container.is_ready and _has_run(snapshot, container, UNREADY_PATIENCE)
    for log in logs:
        found = _unready(snapshot, container, log) if unready else _serving(snapshot, container, log)
        if found is not None:
            loss = _UNREADY if unready else _SERVING
            yield _finding(snapshot, container, found, loss, "is not ready" if unready else "complains")


def _has_run(snapshot: Snapshot, container: Container, patience: timedelta) -> bool:
    return container.started is None or snapshot.taken_at - container.started >= patience


def _unready(snapshot: Snapshot, container: Container, log: LogTail) -> LogCause | None:
    """Its last word while it is not ready; an error of its own is not why, unless it says what of."""
    view = view_of(snapshot, container, log)
    found = cause_while_running(view, least=1, within=_AT_END) or cause_of_end(view)
    return None if found is None or found.kind in _OWN_WORDS else found


def _serving(snapshot: Snapshot, container: Container, log: LogTail) -> LogCause | None:
    return cause_while_running(view_of(snapshot, container, log), least=_OFTEN, within=_AT_END)


def _finding(snapshot: Snapshot, container: Container, found: LogCause, loss: float, doing: str) -> Finding:
    ref = workload_of(snapshot, container.pod)
    facts = {**rollout_facts(snapshot, ref), "container": container.name, "pod": container.pod.name, **found.facts}
    return Finding(
        category=found.category,
        object=found.place.ref,
        field=found.place.field,
        value=limited(found.place.value),
        summary=summary_of(found, f"{ref.display}: container {container.name} {doing}"),
        confidence=round(max(0.1, found.confidence - loss), 2),
        citations=found.citations,
        explains=(f"{ref.display}: container {container.name} {doing}",),
        felt_by=(ref,),
        facts=facts,
        refuted_by=found.refuted_by,
        actions=possible(snapshot, found.actions, facts, ref, found.place.field),
    )


# --- init containers that wait ------------------------------------------------------------------------------------


def _waiting(snapshot: Snapshot, container: Container, log: LogTail | None) -> Finding:
    found = cause_of_end(view_of(snapshot, container, log)) if log else None
    if found is not None and found.kind not in _OWN_WORDS:
        return _finding(snapshot, container, found, 0.0, "waits")
    ref, line = workload_of(snapshot, container.pod), log.last_line.strip() if log else ""
    started = container.started
    since = f" since {started:%Y-%m-%dT%H:%M:%SZ}" if started else ""
    said = f": {line}" if line else ""
    facts = {
        **rollout_facts(snapshot, ref),
        "container": container.name,
        "pod": container.pod.name,
        "lastLine": limited(line),
    }
    return Finding(
        category="InitContainerFailing",
        object=ref,
        field="log" if line else "process",
        value=limited(line),
        summary=f"{ref.display}: init container {container.name} runs{since} and does not end{said}",
        confidence=_WAITING,
        citations=(
            *cited(snapshot, container.pod.evidence, f'"name":"{container.name}"'),
            *(cited(snapshot, log.evidence, line) if log else ()),
        ),
        explains=(f"{ref.display}: its containers are not started",),
        facts=facts,
        refuted_by=("The init container makes progress and ends with exit code 0.",),
        actions=possible(snapshot, ("RollbackDeployment",), facts, ref),
    )


# --- what other checks printed -------------------------------------------------------------------------------------


def _of_text(snapshot: Snapshot, text: TextSeen) -> Iterator[Finding]:
    """Log lines that another check collected: its title says of which workload."""
    # The container of the pod or workload whose name is in the title, the longest name first.
    named = [
        (max(len(name) for name in names), container)
        for container in every_container(snapshot)
        if not container.init and (names := [n for n in _names(snapshot, container) if _is_in(n, text.title)])
    ]
    container = max(named, key=lambda pair: pair[0])[1] if named else None
    if container is None or not container.is_running:
        return
    found = cause_while_running(view_of(snapshot, container, text), least=1, within=200)
    if found is not None:
        yield _finding(snapshot, container, found, _TEXT, "complains")


def _names(snapshot: Snapshot, container: Container) -> tuple[str, str]:
    return container.pod.name, workload_of(snapshot, container.pod).name


def _is_in(name: str, title: str) -> bool:
    words = title.replace("=", " ").replace("/", " ").replace(",", " ").replace(":", " ").replace('"', " ").split()
    return name in words
