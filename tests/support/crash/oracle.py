"""The oracle: the same end as the undisturbed run, and the invariants on the way there (reliability, sections 1 and 7).

Everything of a run was watched from outside, slots that are gone by now included; nothing here asks the operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inquest.api.names import EXECUTION_LABEL, INVESTIGATION_LABEL
from inquest.controllers.journal import fold
from inquest.core.case.facts import ApprovalRequested, Closed, ExecutionCreated, Fact, PolicyRuled
from inquest.core.case.journal import load_fact
from inquest.errors import InquestError

Object = dict[str, Any]

TERMINAL = {"Completed", "Failed", "Cancelled"}
VOLATILE_KEYS = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "managedFields",
        "attempts",
        "owner",
        "journal",
        "timeRemaining",
        "durationSeconds",
        "milliseconds",
        "preview",
        "phaseSeconds",
        "lastSeen",
        "firstSeen",
        "since",
        "digest",
        "argsDigest",
        "fingerprint",
        "consumedBy",
        "size",
        "labels",
        "annotations",
    }
)
"""Times, identities, what is hashed from them, and counters of attempts; `size` is that of what the pods logged."""
VOLATILE_ENDS = ("At", "Time", "Timestamp", "Until", "After", "Hash", "Uid", "Tokens")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
JOB = re.compile(r"\bwfe-[0-9a-f]{16}\b")
RESTARTS = re.compile(r"\b\d+ restarts\b")
POD_SUFFIX = re.compile(r"-[a-f0-9]{8,10}-[a-z0-9]{5}\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)")
ADOPTED = {"JobAdopted": "JobCreated"}
"""A Job that was found under its name is the one that was created; the word tells which start saw it."""


@dataclass
class Seen:
    """What was watched during one run, by uid, in the order in which it came."""

    namespace: str
    """Of the workload: names are compared without it."""
    versions: dict[str, list[Object]] = field(default_factory=dict)
    """By kind: every version of every object."""
    deployment: Object = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    """What stands after the end and should not."""

    def of(self, kind: str) -> list[Object]:
        """The last version of each object of a kind."""
        last = {found["metadata"]["uid"]: found for found in self.versions.get(kind, [])}
        return list(last.values())

    @property
    def case(self) -> Object:
        """The one Investigation."""
        found = self.of("Investigation")
        return found[0] if found else {}


def ending(seen: Seen) -> Object:
    """The final objects without what may differ between two runs."""
    kinds = ("Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution")
    names = _names(seen)
    found = {kind: sorted((_plain(one, names) for one in seen.of(kind)), key=repr) for kind in kinds}
    return {**found, "memory limit": _limit(seen.deployment)}


def differences(expected: Any, actual: Any, place: str = "") -> Iterator[str]:
    """Where two endings differ."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from differences(expected.get(key), actual.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif expected != actual:
        yield f"{place}: {expected!r} became {actual!r}"


def violations(seen: Seen) -> list[str]:
    """Every promise that this run broke."""
    parts = (_one_of_each, _journal, _finality, _approved, _owned, _over, _in_order)
    return [text for part in parts for text in part(seen)]


def double_effects(found: Iterable[str]) -> int:
    """How many of the violations are effects that happened twice."""
    return sum(1 for text in found if text.startswith("I3"))


def is_lost(found: Iterable[str]) -> bool:
    """Whether the case never came to its end."""
    return any(text.startswith("I5") for text in found)


def facts_of(seen: Seen) -> tuple[Fact, ...]:
    """What the journal held, slots that were deleted at the end included."""
    log = fold(seen.case["metadata"]["uid"], list(_slots(seen).values()))
    return tuple(load_fact(entry.payload) for entry in log.entries)


# --- invariants ---------------------------------------------------------------------------------------------------


def _one_of_each(seen: Seen) -> Iterator[str]:
    """I3: one request, one execution, one Job for the target, one case for the fingerprint."""
    for kind in ("Investigation", "RemediationApprovalRequest", "WorkflowExecution", "Job"):
        uids = {found["metadata"]["uid"] for found in seen.versions.get(kind, [])}
        if len(uids) > 1:
            yield f"I3: {len(uids)} objects of kind {kind} were created"


def _journal(seen: Seen) -> Iterator[str]:
    """I1 and I2: one content for a number, an unbroken chain from slot 1, no request without a ruling."""
    contents: dict[str, set[str]] = {}
    for slot in seen.versions.get("ConfigMap", []):
        contents.setdefault(slot["metadata"]["name"], set()).add(repr((slot["data"], slot.get("binaryData"))))
    for name, found in contents.items():
        if len(found) > 1:
            yield f"I1: slot {name} had {len(found)} contents"
    try:
        facts = facts_of(seen)
    except InquestError as error:
        yield f"I1: {error}"
        return
    if not any(isinstance(fact, Closed) for fact in facts):
        yield "I1: the journal was not closed"
    asked, ruled = (_place(facts, kind) for kind in (ApprovalRequested, PolicyRuled))
    if asked is not None and (ruled is None or asked < ruled):
        yield "I2: an approval was asked for without a recorded ruling"


def _finality(seen: Seen) -> Iterator[str]:
    """I4: a terminal phase and an outcome never change."""
    ended: tuple[Any, ...] = ()
    for version in seen.versions.get("Investigation", []):
        status = version.get("status") or {}
        now = (status.get("phase"), status.get("outcome"), status.get("resolution"))
        if ended and now != ended:
            yield f"I4: {ended} became {now}"
        if status.get("phase") in TERMINAL:
            ended = now


def _approved(seen: Seen) -> Iterator[str]:
    """I8: an execution rests on an approval that was given, is used by it, and is named by the journal."""
    for run in seen.of("WorkflowExecution"):
        uid = run["metadata"]["uid"]
        requests = seen.of("RemediationApprovalRequest")
        if not any((one.get("status") or {}).get("consumedBy") == uid for one in requests):
            yield "I8: an execution without an approval that it has used up"
        if not any(isinstance(fact, ExecutionCreated) and fact.uid == uid for fact in _facts(seen)):
            yield "I8: an execution that no journal names"
    owners = {job["metadata"]["labels"].get(EXECUTION_LABEL) for job in seen.of("Job")}
    if owners - {run["metadata"]["uid"] for run in seen.of("WorkflowExecution")}:
        yield "I8: a Job of an unknown execution"


def _owned(seen: Seen) -> Iterator[str]:
    """I9: whatever was made has an owner, and nothing of the working state is left."""
    for kind in ("Investigation", "RemediationApprovalRequest", "WorkflowExecution"):
        for found in seen.of(kind):
            if not found["metadata"].get("ownerReferences"):
                yield f"I9: {kind} {found['metadata']['name']} has no owner"
    yield from (f"I9: {name} is left" for name in seen.left)


def _over(seen: Seen) -> Iterator[str]:
    """I5: the case came to an end."""
    phase = (seen.case.get("status") or {}).get("phase")
    if phase not in TERMINAL:
        yield f"I5: the case stands in {phase or 'nothing'}"


def _in_order(seen: Seen) -> Iterator[str]:
    """Times are no part of the comparison, but a run that began after its end was dated by a restart."""
    for run in seen.of("WorkflowExecution"):
        status = run.get("status") or {}
        if status.get("startedAt", "") > status.get("completedAt", "~"):
            yield f"times: {run['metadata']['name']} started {status['startedAt']}, ended {status['completedAt']}"


def _facts(seen: Seen) -> tuple[Fact, ...]:
    try:
        return facts_of(seen)
    except InquestError:
        return ()


def _slots(seen: Seen) -> dict[str, Object]:
    uid = seen.case["metadata"]["uid"]
    slots = seen.versions.get("ConfigMap", [])
    return {one["metadata"]["name"]: one for one in slots if one["metadata"]["labels"][INVESTIGATION_LABEL] == uid}


def _place(facts: tuple[Fact, ...], kind: type[Fact]) -> int | None:
    return next((place for place, fact in enumerate(facts) if isinstance(fact, kind)), None)


# --- comparing ----------------------------------------------------------------------------------------------------


def _names(seen: Seen) -> dict[str, str]:
    """Names that follow from uids or from the run, and what stands for them."""
    words = {"Investigation": "CASE", "Signal": "SIGNAL"}
    named = {one["metadata"]["name"]: word for kind, word in words.items() for one in seen.of(kind)}
    return {**named, seen.namespace: "SHOP"}


def _plain(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one, names) for key, one in value.items() if not _is_volatile(key)}
    if isinstance(value, list):
        return [_plain(one, names) for one in value]
    return _text(value, names) if isinstance(value, str) else value


def _is_volatile(key: str) -> bool:
    return key in VOLATILE_KEYS or key.endswith(VOLATILE_ENDS)


def _text(text: str, names: Mapping[str, str]) -> str:
    for name, word in names.items():
        text = text.replace(name, word)
    for pattern, word in ((UUID, "UID"), (POD_SUFFIX, "-POD"), (TIME, "TIME"), (JOB, "JOB"), (RESTARTS, "N restarts")):
        text = pattern.sub(word, text)
    return ADOPTED.get(text, text)


def _limit(deployment: Object) -> str:
    containers = deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("resources", {}).get("limits", {}).get("memory", ""))
