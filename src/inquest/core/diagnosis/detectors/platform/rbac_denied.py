"""An account that is not allowed what its process needs: the role, the binding or the account that has to change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import event_moment, is_recent
from inquest.core.diagnosis.detectors.citations import cite, cite_event, quoted
from inquest.core.diagnosis.detectors.containers import pod_field
from inquest.core.diagnosis.detectors.events import message_of
from inquest.core.diagnosis.detectors.findings import one_per_field
from inquest.core.diagnosis.detectors.platform.platform_reading import platform_finding
from inquest.core.diagnosis.detectors.workloads import is_ready, is_short, listed, proof_of_absence, ref_to, workload_of
from inquest.core.evidence.evidence import Citation, Finding, Json, ObservedObject
from inquest.core.evidence.snapshot import Snapshot

MAX_LINES: Final = 200
MAX_LINE: Final = 1000
_DENIED: Final = re.compile(
    r'User \\?"system:serviceaccount:(?P<space>[\w.-]{1,63}):(?P<account>[\w.-]{1,253})\\?" cannot (?P<verb>\w{1,30}) '
    r'resource \\?"(?P<resource>[\w./-]{1,253})\\?" in API group \\?"(?P<group>[\w.-]{0,253})\\?"'
    r'(?: in the namespace \\?"(?P<where>[\w.-]{0,63})\\?"| at the cluster scope)?'
)


@dataclass(frozen=True)
class Denial:
    """What an account was not allowed, and who said so."""

    account: TargetRef
    verb: str
    resource: str
    group: str
    where: str
    """Namespace; empty: the whole cluster."""
    said: tuple[Citation, ...]
    pod: ObservedObject | None

    @property
    def words(self) -> str:
        place = f"in {self.where}" if self.where else "in the cluster"
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group} {place}"


@dataclass(frozen=True)
class RightsBlame:
    """The object that has to change, its field and value, and why."""

    ref: TargetRef
    seen: ObservedObject | None
    field: str
    value: str
    why: str
    certainty: float
    actions: tuple[str, ...] = ()


@one_per_field
def rbac_denied(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each object that has to change so that an account may do what it was refused."""
    pods = {(pod.namespace, pod.name): pod for pod in snapshot.of_kind("Pod")}
    for log in snapshot.logs:
        for line in log.text.splitlines()[-MAX_LINES:]:
            match = _DENIED.search(line[:MAX_LINE])
            if match is not None:
                said = (Citation(log.evidence, match[0][:300]),)
                yield _finding(snapshot, _denial(match, said, pods.get((log.namespace, log.pod))))
    for event in snapshot.of_kind("Event"):
        at = event_moment(event.object)
        match = _DENIED.search(message_of(event))
        if match is not None and is_recent(at.isoformat() if at else None, snapshot.taken_at):
            yield _finding(snapshot, _denial(match, cite_event(snapshot, event), None))


def _denial(match: re.Match[str], said: tuple[Citation, ...], pod: ObservedObject | None) -> Denial:
    account = TargetRef(api_version="v1", kind="ServiceAccount", name=match["account"], namespace=match["space"])
    resource = match["resource"]
    return Denial(account, match["verb"], resource, match["group"], match["where"] or "", said, pod)


def _finding(snapshot: Snapshot, denial: Denial) -> Finding:
    blame = _blame(snapshot, denial)
    # An application that works without what it was refused has no trouble.
    suffers = denial.pod is None or not is_ready(denial.pod) or is_short(snapshot, workload_of(snapshot, denial.pod))
    proof = cite(snapshot, blame.seen, quoted(blame.field.rpartition(".")[2], blame.value))
    return platform_finding(
        "RBACDenied",
        blame.ref,
        blame.field,
        blame.value,
        f"ServiceAccount {denial.account.name} may not {denial.words}: {blame.why}",
        confidence=round(blame.certainty - (0.0 if suffers else 0.2), 2),
        citations=(*denial.said, *(proof or _of_pod(snapshot, denial))),
        explains=(f"Pod/{denial.pod.name}: it may not {denial.verb} {denial.resource}",) if denial.pod else (),
        facts={"serviceAccount": denial.account.name, "verb": denial.verb, "resource": denial.resource},
        refuted_by=(f"an access review allows the account to {denial.words}",),
        actions=blame.actions,
    )


def _of_pod(snapshot: Snapshot, denial: Denial) -> tuple[Citation, ...]:
    account = snapshot.find(denial.account)
    found = account or denial.pod
    return cite(snapshot, found)


# --- who is to blame -----------------------------------------------------------------------------------------------


def _blame(snapshot: Snapshot, denial: Denial) -> RightsBlame:
    """The first rule that names an object; the account itself where nothing is bound to it."""
    rules = (_role_away, _role_short, _wrong_subject, _wrong_account)
    return next((blame for rule in rules if (blame := rule(snapshot, denial))), None) or _unbound(snapshot, denial)


def _role_away(snapshot: Snapshot, denial: Denial) -> RightsBlame | None:
    for binding in _bindings(snapshot, denial):
        role = _role_ref(binding)
        if role is not None and proof_of_absence(snapshot, role.kind, role.name, role.namespace):
            why = f"{binding.kind} {binding.name} refers to {role.display}, which does not exist"
            return RightsBlame(binding.ref, binding, "roleRef.name", role.name, why, 0.93, ("RestoreRoleBinding",))
    return None


def _role_short(snapshot: Snapshot, denial: Denial) -> RightsBlame | None:
    """A role of the account's that speaks of the resource and lacks the verb comes before one that does not."""
    roles = [role for ref in map(_role_ref, _bindings(snapshot, denial)) if ref and (role := snapshot.find(ref))]
    if not roles:
        return None
    near = sorted(roles, key=lambda role: not _speaks_of(role.object, denial))
    why = f"{near[0].kind} {near[0].name} does not grant {denial.verb} on {denial.resource}"
    return RightsBlame(near[0].ref, near[0], "rules", _granted(near[0].object, denial), why, 0.9)


def _wrong_subject(snapshot: Snapshot, denial: Denial) -> RightsBlame | None:
    """A binding in the right place to a role that would do, for somebody else."""
    for binding in snapshot.of_kind("RoleBinding", "ClusterRoleBinding"):
        role = _role_ref(binding)
        seen = snapshot.find(role) if role else None
        there = binding.kind == "ClusterRoleBinding" or binding.namespace == denial.where
        if seen is None or not there or not _grants(seen.object, denial):
            continue
        names = [str(each.get("name")) for each in listed(binding.object, "subjects")]
        if _is_meant(snapshot, binding, denial):
            why = f"{binding.kind} {binding.name} grants it to {', '.join(names) or 'nobody'}"
            value = names[0] if names else ""
            return RightsBlame(binding.ref, binding, "subjects", value, why, 0.9, ("RestoreRoleBinding",))
    return None


def _is_meant(snapshot: Snapshot, binding: ObservedObject, denial: Denial) -> bool:
    """A subject that does not exist, or an account of that name elsewhere, was meant for this one."""
    for subject in listed(binding.object, "subjects"):
        name, space = str(subject.get("name")), str(subject.get("namespace") or binding.namespace)
        if subject.get("kind") == "ServiceAccount" and (
            name == denial.account.name or proof_of_absence(snapshot, "ServiceAccount", name, space)
        ):
            return True
    return not listed(binding.object, "subjects")


def _wrong_account(snapshot: Snapshot, denial: Denial) -> RightsBlame | None:
    """A process that runs as the default account while another account has the right that it needs."""
    if denial.pod is None or denial.account.name != "default":
        return None
    able = next((name for name in _able(snapshot, denial) if name != "default"), "")
    if not able:
        return None
    ref = workload_of(snapshot, denial.pod)
    used = str(denial.pod.spec.get("serviceAccountName") or "default")
    why = f"its pods run as {used}, and {able} has the right"
    return RightsBlame(ref, denial.pod, pod_field(ref, "serviceAccountName"), used, why, 0.9)


def _able(snapshot: Snapshot, denial: Denial) -> Iterator[str]:
    for binding in snapshot.of_kind("RoleBinding", "ClusterRoleBinding"):
        role = _role_ref(binding)
        seen = snapshot.find(role) if role else None
        if seen is not None and _grants(seen.object, denial):
            own = listed(binding.object, "subjects")
            yield from (str(each.get("name")) for each in own if each.get("kind") == "ServiceAccount")


def _unbound(snapshot: Snapshot, denial: Denial) -> RightsBlame:
    why = "no binding that was read gives it any role there"
    return RightsBlame(denial.account, snapshot.find(denial.account), "metadata.name", denial.account.name, why, 0.75)


# --- roles and bindings --------------------------------------------------------------------------------------------


def _bindings(snapshot: Snapshot, denial: Denial) -> list[ObservedObject]:
    """Bindings of this account that hold where it asked."""
    found = snapshot.of_kind("RoleBinding", "ClusterRoleBinding")
    return [each for each in found if _holds_there(each, denial) and _binds(each, denial.account)]


def _holds_there(binding: ObservedObject, denial: Denial) -> bool:
    return binding.kind == "ClusterRoleBinding" or binding.namespace == denial.where


def _binds(binding: ObservedObject, account: TargetRef) -> bool:
    return any(_is_subject(each, binding.namespace, account) for each in listed(binding.object, "subjects"))


def _is_subject(subject: Json, space: str, account: TargetRef) -> bool:
    if subject.get("kind") == "ServiceAccount":
        return (subject.get("name"), subject.get("namespace") or space) == (account.name, account.namespace)
    # Groups such as all accounts give what everybody has: nobody would add a right there.
    return subject.get("name") == f"system:serviceaccount:{account.namespace}:{account.name}"


def _role_ref(binding: ObservedObject) -> TargetRef | None:
    role = binding.object.get("roleRef") or {}
    kind = str(role.get("kind") or "Role")
    space = binding.namespace if kind == "Role" else None
    return ref_to(kind, str(role.get("name") or ""), space, "rbac.authorization.k8s.io/v1")


def _rules(role: Json) -> tuple[Json, ...]:
    return listed(role, "rules")


def _has(rule: Mapping[str, object], word: str, value: str) -> bool:
    values = rule.get(word)
    return isinstance(values, list | tuple) and (value in values or "*" in values)


def _speaks_of(role: Json, denial: Denial) -> bool:
    return any(_has(rule, "resources", denial.resource) for rule in _rules(role))


def _grants(role: Json, denial: Denial) -> bool:
    wanted = (("verbs", denial.verb), ("resources", denial.resource), ("apiGroups", denial.group))
    return any(all(_has(rule, word, value) for word, value in wanted) for rule in _rules(role))


def _granted(role: Json, denial: Denial) -> str:
    """The verbs that the role has on the resource."""
    verbs = [str(verb) for rule in _rules(role) if _has(rule, "resources", denial.resource) for verb in _verbs(rule)]
    return f"{denial.resource}: {', '.join(dict.fromkeys(verbs)) or 'nothing'}"


def _verbs(rule: Json) -> tuple[object, ...]:
    verbs = rule.get("verbs")
    return tuple(verbs) if isinstance(verbs, list | tuple) else ()
