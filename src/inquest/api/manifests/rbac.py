"""Who may do what: `rights.yaml`, from which the manifests, the chart, the docs and the self-check come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from inquest.api.installation import (
    CONFINED_BINDING,
    DATASTORAGE_ACCOUNT,
    DATASTORAGE_CLIENT,
    EXECUTION_NAMESPACE,
    NAMESPACE,
    SERVICE_ACCOUNT,
    WATCHING,
)
from inquest.tables import read_table

Manifest = dict[str, Any]
Words = tuple[str, ...]


@dataclass(frozen=True)
class AccessRule:
    """One rule of a role."""

    group: str
    resources: Words
    verbs: Words
    names: Words = ()
    """Of these objects only; empty: of all."""

    def manifest(self) -> Manifest:
        """The rule as Kubernetes writes it."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), **named, "verbs": list(self.verbs)}


@dataclass(frozen=True)
class PeopleRole:
    """A ClusterRole for people; `aggregated_to` names a built-in role that takes it in."""

    name: str
    rules: tuple[AccessRule, ...]
    aggregated_to: str | None = None


@dataclass(frozen=True)
class RequiredAccess:
    """One right to ask about; an empty group is the core group."""

    group: str
    resource: str
    subresource: str
    verb: str

    @property
    def text(self) -> str:
        """`verb resource/subresource.group`, for messages and settings."""
        path = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {path}.{self.group}" if self.group else f"{self.verb} {path}"


_RIGHTS: Final = read_table(__package__, "rights.yaml")


def _rules(rows: Iterable[Mapping[str, Any]]) -> tuple[AccessRule, ...]:
    return tuple(AccessRule(**row) for row in rows)


INSTALLED: Final = _rules(_RIGHTS["installed"])
OPERATOR: Final = _rules(_RIGHTS["operator"])
HOME: Final = _rules(_RIGHTS["home"])
EXECUTION: Final = _rules(_RIGHTS["execution"])
INVESTIGATOR: Final = _rules(_RIGHTS["investigator"])
REVIEWS: Final = _rules(_RIGHTS["reviews"])
DATASTORAGE_USE: Final = _rules(_RIGHTS["datastorage_use"])
TOKENS: Final = REVIEWS[0]
"""Whose token it is: only a role of the whole cluster can grant the question."""
PEOPLE: Final = tuple(
    PeopleRole(row["name"], _rules(row["rules"]), row.get("aggregated_to")) for row in _RIGHTS["people"]
)
NEVER: Final = tuple(
    RequiredAccess(row["group"], resource, row.get("subresource", ""), verb)
    for row in _RIGHTS["never"]
    for resource in row["resources"]
    for verb in row["verbs"]
)
CLUSTER_SCOPED: Final = frozenset((group, name) for group, names in _RIGHTS["cluster_scoped"].items() for name in names)
"""By group, and the kind's plural."""


def of_the_cluster(found: Iterable[AccessRule]) -> tuple[AccessRule, ...]:
    """What is left of the rules for kinds that stand in no namespace."""
    return _kept(found, lambda kind: kind in CLUSTER_SCOPED)


def of_namespaces(found: Iterable[AccessRule]) -> tuple[AccessRule, ...]:
    """What is left of the rules for kinds that stand in a namespace."""
    return _kept(found, lambda kind: kind not in CLUSTER_SCOPED)


def _kept(found: Iterable[AccessRule], fits: Callable[[tuple[str, str]], bool]) -> tuple[AccessRule, ...]:
    parts = ((one, tuple(name for name in one.resources if fits((one.group, name)))) for one in found)
    return tuple(replace(one, resources=names) for one, names in parts if names)


WATCHED: Final = (*of_namespaces(OPERATOR), *_rules(_RIGHTS["watched"]))
"""The operator that looks after single namespaces, in each of them and in its own."""


def lost_in_namespaces() -> dict[str, str]:
    """What an operator of single namespaces goes without, by `resource.group`, and what stops working with it."""
    wide = (*of_the_cluster(OPERATOR), *of_the_cluster(INVESTIGATOR))
    kept = {(one.group, name) for one in INSTALLED for name in one.resources} | _FOUND_ANOTHER_WAY
    gone = ((one.group, name) for one in wide for name in one.resources if (one.group, name) not in kept)
    return {f"{name}.{group}" if group else name: loss_of(group, name) for group, name in gone}


_FOUND_ANOTHER_WAY: Final = {
    ("", "namespaces"),  # by name, `WATCHED`
    ("authorization.k8s.io", "subjectaccessreviews"),  # the local one, `WATCHED`
    # Every account may ask about itself.
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
}


def loss_of(group: str, resource: str) -> str:
    """What stops working without the right to a resource that `OPERATOR`, `HOME`, `EXECUTION` or `INVESTIGATOR` has."""
    losses: Mapping[str, str] = _RIGHTS["losses"][group]
    return losses.get(resource) or losses[""]


# --- manifests ---------------------------------------------------------------------------------------------------

_RBAC: Final = "rbac.authorization.k8s.io"


def render_rbac(
    namespace: str = NAMESPACE,
    execution_namespace: str = EXECUTION_NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Every role and binding; the operator investigates itself, as it does by default."""
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    return [
        *_cluster_wide("inquest-operator", OPERATOR, account),
        *_within(namespace, "inquest-operator", HOME, account),
        *_cluster_wide("inquest-investigator", INVESTIGATOR, account),
        *_within(execution_namespace, "inquest-execution", EXECUTION, account),
        *(people_role(role) for role in PEOPLE),
    ]


def render_confined(
    namespaces: Iterable[str],
    namespace: str = NAMESPACE,
    execution_namespace: str = EXECUTION_NAMESPACE,
    service_account: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Roles and bindings of an operator that looks after these namespaces alone; those of people are another's."""
    account = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    places = tuple(namespaces)
    return [
        *_cluster_wide(CONFINED_BINDING, INSTALLED, account),
        *_within(namespace, "inquest-operator", HOME, account),
        *_within(execution_namespace, "inquest-execution", EXECUTION, account),
        *(one for place in dict.fromkeys((namespace, *places)) for one in watched_in(place, account)),
        *(one for place in places for one in investigated_in(place, account)),
    ]


def watched_in(place: str, account: Manifest) -> list[Manifest]:
    """Role and binding of `WATCHED` in one namespace."""
    return [*_within(place, WATCHING, WATCHED, account)]


def investigated_in(place: str, account: Manifest) -> list[Manifest]:
    """Role and binding of what an investigation reads in one namespace."""
    return [*_within(place, "inquest-investigator", of_namespaces(INVESTIGATOR), account)]


def render_datastorage(
    namespace: str = NAMESPACE,
    service_account: str = DATASTORAGE_ACCOUNT,
    client: str = SERVICE_ACCOUNT,
) -> list[Manifest]:
    """Account, roles and bindings of a DataStorage that is served by itself; `client` is the operator's account."""
    server = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    user = {"kind": "ServiceAccount", "name": client, "namespace": namespace}
    metadata = {"name": service_account, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        *_cluster_wide("inquest-datastorage", REVIEWS, server),
        *_within(namespace, DATASTORAGE_CLIENT, DATASTORAGE_USE, user),
    ]


def people_role(role: PeopleRole) -> Manifest:
    """The ClusterRole of a role for people."""
    found = _role("ClusterRole", {"name": role.name}, role.rules)
    if role.aggregated_to:
        label = f"{_RBAC}/aggregate-to-{role.aggregated_to}"
        found["metadata"]["labels"] = {label: "true"}
    return found


def _cluster_wide(name: str, found: tuple[AccessRule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("ClusterRole", {"name": name}, found)
    yield _binding("ClusterRoleBinding", {"name": name}, "ClusterRole", account)


def _within(namespace: str, name: str, found: tuple[AccessRule, ...], account: Manifest) -> Iterator[Manifest]:
    yield _role("Role", {"name": name, "namespace": namespace}, found)
    yield _binding("RoleBinding", {"name": name, "namespace": namespace}, "Role", account)


def _role(kind: str, metadata: Manifest, found: tuple[AccessRule, ...]) -> Manifest:
    rules = [rule.manifest() for rule in found]
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def _binding(kind: str, metadata: Manifest, role_kind: str, account: Manifest) -> Manifest:
    role = {"apiGroup": _RBAC, "kind": role_kind, "name": metadata["name"]}
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "roleRef": role, "subjects": [account]}
