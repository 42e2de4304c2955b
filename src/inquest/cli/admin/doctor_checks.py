"""What is wrong with an installation, and the command that mends it: `inquest doctor`, without the looking.

One check for each thing that has to hold before a Signal becomes a fix. Each is given what was read, and gives
findings; a part that could not be read is said to be unknown and never taken for well.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from inquest.api.base import GROUP
from inquest.api.installation import CONFINED_BINDING, INSTALL, INVESTIGATOR_ACCOUNT
from inquest.api.manifests.admission import not_in_force
from inquest.api.manifests.admission import render_policies as admission_policies
from inquest.api.manifests.crd import render_crds
from inquest.api.names import API_SERVICE, FAULTS_ANNOTATION, MANAGED_LABEL, VERSION_ANNOTATION
from inquest.api.registry import PLURALS
from inquest.cli.admin.installation import (
    ENDED,
    MOST_NAMED,
    REPLICA,
    Installation,
    Json,
    Unread,
    is_renewed,
    list_replicas,
    place_of,
    time_from,
)
from inquest.core.cluster.objects import annotations_of, labels_of, status_of
from inquest.core.signals.scope import is_managed


class Level(StrEnum):
    """How bad it is."""

    FAULT = "fault"
    """Something does not work."""
    WARNING = "warning"
    """Something will surprise somebody."""
    UNKNOWN = "unknown"
    """It could not be looked at."""
    OK = "ok"


@dataclass(frozen=True)
class CheckResult:
    """One line of the report."""

    part: str
    level: Level
    message: str
    fix: str = ""
    """The command that mends it, or shows more; empty where the message says all."""


LONG_OPEN: Final = timedelta(hours=1)
LONG_PENDING: Final = timedelta(minutes=10)


def examine_installation(seen: Installation) -> tuple[CheckResult, ...]:
    """Every check in the order in which things have to be mended; a check without a finding says OK."""
    # Whether none of the kinds is there; one that is missing among others is a finding of its own.
    own = [seen.objects.get(plural) for plural in PLURALS]
    is_absent = all(isinstance(one, Unread) and not one.is_served for one in own)
    if is_absent:
        message = "Inquest's kinds are not installed in this cluster; every other check rests on them and is left out"
        return (CheckResult("kinds", Level.FAULT, message, INSTALL),)
    return tuple(found for part, check in CHECKS.items() for found in _told(part, check, seen))


def _told(part: str, check: DoctorCheck, seen: Installation) -> tuple[CheckResult, ...]:
    unread = [(plural, found) for plural in check.needs if isinstance(found := seen.objects.get(plural), Unread)]
    if unread:
        return tuple(
            CheckResult(part, Level.UNKNOWN, found.why, f"kubectl auth can-i list {plural} -A")
            for plural, found in unread
        )
    return tuple(check.findings(seen)) or (CheckResult(part, Level.OK, ""),)


# --- what is installed -----------------------------------------------------------------------------------------------


def _kinds(seen: Installation) -> Iterator[CheckResult]:
    there = {one["metadata"]["name"]: one for one in seen.items("customresourcedefinitions")}
    for wanted in render_crds().values():
        name = wanted["metadata"]["name"]
        if name not in there:
            yield CheckResult("kinds", Level.FAULT, f"{name} is missing", _APPLY_CRDS)
        elif fault := _kind_fault(there[name], wanted):
            yield CheckResult("kinds", Level.FAULT, f"{name}: {fault}", _APPLY_CRDS)


_APPLY_CRDS: Final = "kubectl apply --server-side -f crds/"


def _kind_fault(found: Json, wanted: Json) -> str:
    established = {one["type"]: one["status"] for one in status_of(found).get("conditions") or ()}
    (version,) = wanted["spec"]["versions"]
    served: Json = next((one for one in found["spec"]["versions"] if one["name"] == version["name"]), {})
    if not served.get("served"):
        return f"does not serve {version['name']}"
    if established.get("Established") != "True":
        return "is not established"
    same = _has(served.get("schema"), version["schema"])
    return "" if same else "its schema is not the one of this version of the program"


def _has(found: object, wanted: object) -> bool:
    """Whether all that is wanted is found; the API server adds defaults of its own, and keeps no empty list."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_has(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        there = found or []
        return isinstance(there, list) and len(there) == len(wanted) and all(map(_has, there, wanted))
    return found == wanted


def _policies(seen: Installation) -> Iterator[CheckResult]:
    plurals = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    wanted = admission_policies(seen.namespace, seen.account, seen.execution_namespace)
    for name in not_in_force([one for plural in plurals for one in seen.items(plural)], wanted):
        message = f"{name} is missing or says something else: no approval is used"
        yield CheckResult("admission policies", Level.FAULT, message, "kubectl apply -f policies/admission/")


# --- the operator ----------------------------------------------------------------------------------------------------


def _operator(seen: Installation) -> Iterator[CheckResult]:
    leases = list_replicas(seen.items("leases"))
    alive = [one for one in leases if is_renewed(one, seen.now)]
    if not alive:
        last = max((str(one["spec"].get("renewTime", "")) for one in leases), default="")
        message = f"no replica has renewed its Lease since {last}" if last else "no replica runs"
        fix = f"kubectl get pods -n {seen.namespace}; kubectl logs -n {seen.namespace} deployment/inquest --tail=50"
        yield CheckResult("operator", Level.FAULT, message, fix)
    for one in alive:
        notes = annotations_of(one)
        runs = str(notes.get(VERSION_ANNOTATION, "of an earlier version"))
        if runs != seen.version:
            message = f"{_replica(one)} is {runs}, this program is {seen.version}"
            yield CheckResult("operator", Level.WARNING, message, _upgrade(seen))
        for line in str(notes.get(FAULTS_ANNOTATION, "")).splitlines():
            yield _reported(seen, one, *line.partition(": ")[::2])


def _replica(lease: Json) -> str:
    return str(lease["metadata"]["name"]).removeprefix(REPLICA)


def _reported(seen: Installation, lease: Json, part: str, fault: str) -> CheckResult:
    """What a replica says of itself; a part that is not in the table makes it not ready."""
    level = Level.WARNING if part in _REPORTED else Level.FAULT
    fix = _REPORTED.get(part, _LOGS).format(namespace=seen.namespace)
    if part == "missing rights" and _is_confined(seen):
        fix = _upgrade(seen)
    return CheckResult("operator", level, f"{_replica(lease)}: {part}: {fault}", fix)


def _upgrade(seen: Installation) -> str:
    """With the values of the installation: what an upgrade is not given falls back to the chart's own."""
    return f"helm upgrade inquest charts/inquest -n {seen.namespace} -f values.yaml"


def _is_confined(seen: Installation) -> bool:
    """Whether it looks after single namespaces: the roles of policies/rbac would then give it far too much."""
    names = {one["metadata"]["name"] for one in seen.items("clusterrolebindings")}
    return CONFINED_BINDING in names and "inquest-operator" not in names


_LOGS: Final = "kubectl logs -n {namespace} deployment/inquest --tail=50"
_REPORTED: Final[Mapping[str, str]] = {
    "missing rights": "kubectl apply -f policies/rbac/",
    "policy": _LOGS,
    "admission policies": "kubectl apply -f policies/admission/",
    "events": _LOGS,
    "settings": "kubectl rollout restart deployment/inquest -n {namespace}",
}
"""What only shows in the readiness probe, and what to do about it."""


def _rights(seen: Installation) -> Iterator[CheckResult]:
    if isinstance(seen.too_many, Unread):
        yield CheckResult("rights", Level.UNKNOWN, f"of the operator: {seen.too_many.why}")
        return
    for right in seen.too_many:
        subject = f"system:serviceaccount:{seen.namespace}:{seen.account}"
        message = f"the operator must not have: {right}; with it, it claims no case"
        yield CheckResult("rights", Level.FAULT, message, f"kubectl auth can-i --list --as={subject}")


# --- what it works on ------------------------------------------------------------------------------------------------


def _namespaces(seen: Installation) -> Iterator[CheckResult]:
    names = {one["metadata"]["name"] for one in seen.items("namespaces")}
    for name in (seen.namespace, seen.execution_namespace):
        if name not in names:
            yield CheckResult("namespaces", Level.FAULT, f"{name} is missing", f"kubectl create namespace {name}")
    if not any(is_managed([labels_of(one)]) for one in seen.items("namespaces")):
        message = "no namespace is managed: unless workloads are, or scope.require_label is false, nothing ever happens"
        yield CheckResult("namespaces", Level.WARNING, message, f"kubectl label namespace NAME {MANAGED_LABEL}=true")


def _evidence(seen: Installation) -> Iterator[CheckResult]:
    """An aggregated API that does not answer holds up every namespace of the cluster that is being deleted."""
    served = next((one for one in seen.items("apiservices") if one["metadata"]["name"] == API_SERVICE), None)
    if served is None:
        told = "the API for readers of cases is off; the chart's evidence.enabled switches it on"
        yield CheckResult("evidence", Level.OK, told)
        return
    found = _condition(served, "Available")
    if found.get("status") != "True":
        why = found.get("message") or "it says nothing of itself yet"
        told = f"{API_SERVICE} is not available, so no namespace of the cluster can be deleted: {why}"
        yield CheckResult("evidence", Level.FAULT, told, f"kubectl delete apiservice {API_SERVICE}")


def _catalogue(seen: Installation) -> Iterator[CheckResult]:
    if not seen.items("remediationworkflows"):
        message = "there is no workflow: every case ends with a cause and without a fix"
        yield CheckResult("catalogue", Level.WARNING, message, f"kubectl apply -n {seen.namespace} -f catalogue/")
    for plural, short in (("actiontypes", "at"), ("remediationworkflows", "rwf")):
        for one in seen.items(plural):
            status = status_of(one)
            state = str(status.get("registration") or "not registered yet")
            if state not in ("Active", "Superseded", "Disabled"):
                message = f"{place_of(one)} is {state}: {status.get('message', '')}".rstrip(": ")
                yield CheckResult("catalogue", Level.FAULT, message, _describe(short, one))


def _accounts(seen: Installation) -> Iterator[CheckResult]:
    there = {one["metadata"]["name"] for one in seen.items("serviceaccounts")}
    bound = set(_bound_accounts(seen))
    for one in seen.items("remediationworkflows"):
        name = str((one["spec"].get("execution") or {}).get("serviceAccountName") or "")
        place = f"-n {seen.execution_namespace}"
        if name and name not in there:
            message = f"{place_of(one)} runs as {name}, which is missing in {seen.execution_namespace}"
            yield CheckResult(
                "accounts", Level.FAULT, message, f"kubectl create serviceaccount {shell_word(name)} {place}"
            )
        elif name and name not in bound:
            message = f"{place_of(one)} runs as {name}, to which no role is bound"
            subject = f"system:serviceaccount:{seen.execution_namespace}:{name}"
            yield CheckResult(
                "accounts", Level.WARNING, message, f"kubectl auth can-i --list --as={shell_word(subject)}"
            )


def _bound_accounts(seen: Installation) -> Iterator[str]:
    for one in (*seen.items("rolebindings"), *seen.items("clusterrolebindings")):
        for subject in one.get("subjects") or ():
            if subject.get("kind") == "ServiceAccount" and subject.get("namespace") == seen.execution_namespace:
                yield str(subject.get("name"))


def _approvers(seen: Installation) -> Iterator[CheckResult]:
    granting = {_identity(one) for one in (*seen.items("roles"), *seen.items("clusterroles")) if _may_approve(one)}
    bindings = (*seen.items("rolebindings"), *seen.items("clusterrolebindings"))
    subjects = [one for binding in bindings if _role(binding) in granting for one in binding.get("subjects") or ()]
    if any((one.get("kind"), one.get("name")) != ("Group", "system:masters") for one in subjects):
        return
    fix = f"kubectl create rolebinding approver -n {seen.namespace} --clusterrole=inquest-approver --user=NAME"
    yield CheckResult("approvers", Level.WARNING, "nobody may approve: requests expire", fix)


def _may_approve(role: Json) -> bool:
    return any(
        {GROUP, "*"} & set(one.get("apiGroups") or ())
        and {"remediationapprovalrequests", "*"} & set(one.get("resources") or ())
        and {"approve", "*"} & set(one.get("verbs") or ())
        for one in role.get("rules") or ()
    )


def _deciders(seen: Installation) -> Iterator[CheckResult]:
    """Rights are read for what is open alone: where nothing is, nobody has to know them."""
    is_needed = any(_is_open(one, seen.now) for one in seen.items("remediationapprovalrequests"))
    unread = [plural for plural in _ROLES if isinstance(seen.objects.get(plural), Unread)]
    if is_needed and unread:
        message = f"whether anybody may decide what is open is not known: {', '.join(unread)} may not be read"
        yield CheckResult("deciders", Level.UNKNOWN, message, f"kubectl auth can-i list {unread[0]} -A")
        return

    def told(one: Json) -> CheckResult | None:
        if not _is_open(one, seen.now) or _may_be_decided(seen, one):
            return None
        namespace = one["metadata"].get("namespace", "")
        message = f"{place_of(one)} is open, and nobody but a cluster administrator may decide it"
        fix = (
            f"kubectl create rolebinding approver -n {shell_word(namespace)} --clusterrole=inquest-approver --user=NAME"
        )
        return CheckResult("deciders", Level.FAULT, message, fix)

    yield from _some("deciders", seen.items("remediationapprovalrequests"), told)


def _is_open(request: Json, now: datetime) -> bool:
    phase, expires = status_of(request).get("phase"), time_from(request["spec"].get("expiresAt"))
    is_late = expires is not None and expires <= now
    return phase in (None, "Pending") and not request["spec"].get("decision") and not is_late


def _may_be_decided(seen: Installation, request: Json) -> bool:
    """Whether somebody has the verb `approve` on it and may write it; of a group nobody knows who is in it."""
    approving, writing = _holders(seen, request, {"approve"}), _holders(seen, request, {"update", "patch"})
    is_open = any(kind == "Group" for kind, *_ in approving | writing)
    return bool(approving & writing) or bool(approving and writing and is_open)


Subject = tuple[str, str, str]
"""Kind, namespace and name."""


def _holders(seen: Installation, request: Json, verbs: set[str]) -> set[Subject]:
    """Who has one of these verbs on a request; neither who may everything nor an account of Inquest's own."""
    namespace, name = str(request["metadata"].get("namespace", "")), str(request["metadata"]["name"])
    roles = (*seen.items("roles"), *seen.items("clusterroles"))
    granting = {_identity(role) for role in roles if _grants(role, verbs, name)}
    local = (one for one in seen.items("rolebindings") if one["metadata"].get("namespace") == namespace)
    bindings = (*local, *seen.items("clusterrolebindings"))
    subjects = (one for binding in bindings if _role(binding) in granting for one in binding.get("subjects") or ())
    found = {(str(one.get("kind")), str(one.get("namespace", "")), str(one.get("name"))) for one in subjects}
    return {one for one in found if not _decides_never(seen, one)}


def _grants(role: Json, verbs: set[str], name: str) -> bool:
    return any(
        {GROUP, "*"} & set(one.get("apiGroups") or ())
        and {"remediationapprovalrequests", "*"} & set(one.get("resources") or ())
        and {*verbs, "*"} & set(one.get("verbs") or ())
        and (not one.get("resourceNames") or name in one["resourceNames"])
        and not all("*" in (one.get(key) or ()) for key in ("apiGroups", "resources", "verbs"))
        for one in role.get("rules") or ()
    )


def _decides_never(seen: Installation, subject: Subject) -> bool:
    """Administrators of the cluster by their group, and accounts that admission refuses whatever their rights."""
    kind, namespace, name = subject
    own = (seen.namespace, seen.account), (seen.namespace, INVESTIGATOR_ACCOUNT)
    is_ours = kind == "ServiceAccount" and ((namespace, name) in own or namespace == seen.execution_namespace)
    return is_ours or (kind, name) == ("Group", "system:masters")


def _identity(role: Json) -> tuple[str, str]:
    """Namespace and name; a ClusterRole has no namespace."""
    return str(role["metadata"].get("namespace", "")), str(role["metadata"]["name"])


def _role(binding: Json) -> tuple[str, str]:
    ref = binding["roleRef"]
    return ("" if ref["kind"] == "ClusterRole" else str(binding["metadata"].get("namespace", ""))), str(ref["name"])


# --- what it has to do -----------------------------------------------------------------------------------------------


def _signals(seen: Installation) -> Iterator[CheckResult]:
    def told(one: Json) -> CheckResult | None:
        status = status_of(one)
        phase, since = status.get("phase") or "Pending", _age(one, seen.now)
        if phase == "Blocked":
            until = f" until {status['blockedUntil']}" if status.get("blockedUntil") else ""
            message = f"{place_of(one)} is Blocked{until}: {status.get('reason', '')}: {status.get('message', '')}"
        elif phase == "Pending" and since > LONG_PENDING:
            message = f"{place_of(one)} was not looked at for {_span(since)}"
        else:
            return None
        return CheckResult("signals", Level.WARNING, message, _describe("sig", one))

    yield from _some("signals", seen.items("signals"), told)


def _cases(seen: Installation) -> Iterator[CheckResult]:
    def told(one: Json) -> CheckResult | None:
        status = status_of(one)
        phase, since = status.get("phase") or "Pending", _age(one, seen.now)
        if phase in ENDED or phase == "AwaitingApproval" or since < LONG_OPEN:
            return None
        message = f"{place_of(one)} is {phase} for {_span(since)}: {status.get('message', '')}"
        return CheckResult("cases", Level.WARNING, message, _describe("inv", one))

    yield from _some("cases", seen.items("investigations"), told)


def _requests(seen: Installation) -> Iterator[CheckResult]:
    def told(one: Json) -> CheckResult | None:
        if (status_of(one).get("phase") or "Pending") != "Pending":
            return None
        expires = time_from(one["spec"].get("expiresAt"))
        if expires is None or expires > seen.now:
            return None
        message = f"{place_of(one)} is past its time and still Pending: nobody works on its case"
        return CheckResult("requests", Level.WARNING, message, _describe("rar", one))

    yield from _some("requests", seen.items("remediationapprovalrequests"), told)


def _executions(seen: Installation) -> Iterator[CheckResult]:
    def told(one: Json) -> CheckResult | None:
        status = status_of(one)
        if status.get("phase") != "Blocked":
            return None
        message = f"{place_of(one)} is Blocked: {status.get('message', '')}"
        return CheckResult("executions", Level.WARNING, message, _describe("wfe", one))

    yield from _some("executions", seen.items("workflowexecutions"), told)


NEWEST_CASES: Final = 5
"""Cases that tell how a service fares: what went wrong last week is history."""


def _services(seen: Installation) -> Iterator[CheckResult]:
    """The model and DataStorage, as the newest cases met them."""
    newest = sorted(seen.items("investigations"), key=_made, reverse=True)[:NEWEST_CASES]
    for condition, service in (("ModelAvailable", "the model"), ("Recorded", "DataStorage")):
        for one in newest:
            found = _condition(one, condition)
            if found.get("status") == "False" and found.get("reason") != "Pending":
                why = f"{found.get('reason')}: {found.get('message', '')}"
                message = f"{service} failed in {place_of(one)}: {why}"
                yield CheckResult("services", Level.WARNING, message, _describe("inv", one))
                break


@dataclass(frozen=True)
class DoctorCheck:
    """One thing that has to hold."""

    findings: Callable[[Installation], Iterator[CheckResult]]
    needs: tuple[str, ...] = ()
    """What it has to know; without it nothing can be said."""


_ROLES: Final = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
CHECKS: Final[Mapping[str, DoctorCheck]] = {
    "kinds": DoctorCheck(_kinds, ("customresourcedefinitions",)),
    "admission policies": DoctorCheck(_policies, ("validatingadmissionpolicies", "validatingadmissionpolicybindings")),
    "operator": DoctorCheck(_operator, ("leases",)),
    "rights": DoctorCheck(_rights),
    "namespaces": DoctorCheck(_namespaces, ("namespaces",)),
    "evidence": DoctorCheck(_evidence, ("apiservices",)),
    "catalogue": DoctorCheck(_catalogue, ("remediationworkflows", "actiontypes")),
    "accounts": DoctorCheck(_accounts, ("remediationworkflows", "serviceaccounts", *_ROLES[2:])),
    "approvers": DoctorCheck(_approvers, _ROLES),
    "deciders": DoctorCheck(_deciders, ("remediationapprovalrequests",)),
    "services": DoctorCheck(_services, ("investigations",)),
    "signals": DoctorCheck(_signals, ("signals",)),
    "cases": DoctorCheck(_cases, ("investigations",)),
    "requests": DoctorCheck(_requests, ("remediationapprovalrequests",)),
    "executions": DoctorCheck(_executions, ("workflowexecutions",)),
}


# --- words -----------------------------------------------------------------------------------------------------------


def _some(part: str, items: Iterable[Json], told: Callable[[Json], CheckResult | None]) -> Iterator[CheckResult]:
    """The oldest by name, the others by number."""
    found = [one for item in sorted(items, key=_made) if (one := told(item)) is not None]
    yield from found[:MOST_NAMED]
    if len(found) > MOST_NAMED:
        yield CheckResult(part, Level.WARNING, f"and {len(found) - MOST_NAMED} more")


def _describe(short: str, one: Json) -> str:
    meta = one["metadata"]
    return f"kubectl describe {short} -n {shell_word(meta.get('namespace', ''))} {shell_word(meta['name'])}"


def shell_word(text: object) -> str:
    """Names of the cluster are data: none of them ends a word of a command that somebody copies."""
    return shlex.quote(str(text))


def _made(one: Json) -> str:
    return str(one["metadata"].get("creationTimestamp", ""))


def _age(one: Json, now: datetime) -> timedelta:
    made = time_from(one["metadata"].get("creationTimestamp"))
    return now - made if made else timedelta(0)


def _span(found: timedelta) -> str:
    minutes = int(found.total_seconds()) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def _condition(one: Json, kind: str) -> Json:
    conditions = status_of(one).get("conditions") or ()
    return next((found for found in conditions if found.get("type") == kind), {})
