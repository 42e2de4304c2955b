"""What accounts may do by the roles and bindings of a cluster, one right for each verb on each resource; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from hack.rights.audit import ACCOUNTS, Asked

ANY: Final = "*"

Json = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource, by one binding."""

    account: str
    """`namespace:name`."""
    role: str
    namespace: str
    """Where it holds; empty: everywhere."""
    group: str
    resource: str
    """With its subresource: `pods/log`; a path where it is no resource."""
    verb: str
    name: str = ""
    """Of this object only; empty: of all."""

    @property
    def is_wider_than_any_request(self) -> bool:
        """Whether it holds a `*`: what that gives is never shown in use as a whole."""
        return ANY in (self.group, self.verb) or self.resource.startswith(ANY) or self.resource.endswith(ANY)

    @property
    def width(self) -> int:
        """0 for one object in one namespace, more the more it holds for."""
        return 2 * (not self.namespace) + (not self.name)

    @property
    def text(self) -> str:
        """One line for people."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        name = f" {self.name}" if self.name else ""
        where = f"in {self.namespace}" if self.namespace else "everywhere"
        return f"{self.account}: {self.verb} {kind}{name} {where} (role {self.role})"

    def permits(self, asked: Asked) -> bool:
        """Whether the API server would allow that request by this right alone."""
        return (
            self.account == asked.account
            and self.namespace in ("", asked.namespace)
            and self.group in (ANY, asked.group)
            and self.verb in (ANY, asked.verb)
            and self._covers(asked.resource)
            and self.name in ("", asked.name)
        )

    def _covers(self, resource: str) -> bool:
        if self.resource.startswith("/") and self.resource.endswith(ANY):
            return resource.startswith(self.resource[:-1])
        _, _, below = resource.partition("/")
        return self.resource in (ANY, resource) or (bool(below) and self.resource == f"{ANY}/{below}")


def rights(objects: Iterable[Json], namespaces: Iterable[str]) -> frozenset[Right]:
    """What the accounts of these namespaces may do, out of roles and bindings of the whole cluster.

    What is bound to groups is not theirs in particular and left out.
    """
    several, homes = list(objects), frozenset(namespaces)
    roles = {_key(one): one for one in several if one["kind"] in ("Role", "ClusterRole")}
    return frozenset(
        right
        for binding in several
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for account in _accounts(binding)
        if account.partition(":")[0] in homes
        for right in _of_binding(binding, roles, account)
    )


def _key(found: Json) -> tuple[str, str, str]:
    meta = found["metadata"]
    return found["kind"], str(meta.get("namespace") or ""), str(meta["name"])


def _accounts(binding: Json) -> Iterator[str]:
    home = str(binding["metadata"].get("namespace") or "")
    for subject in binding.get("subjects") or ():
        if subject["kind"] == "ServiceAccount":
            yield f"{subject.get('namespace') or home}:{subject['name']}"
        elif subject["kind"] == "User" and str(subject["name"]).startswith(ACCOUNTS):
            yield str(subject["name"]).removeprefix(ACCOUNTS)


def _of_binding(binding: Json, roles: Mapping[tuple[str, str, str], Json], account: str) -> Iterator[Right]:
    """A binding to a role that is not there gives nothing."""
    place = str(binding["metadata"].get("namespace") or "")
    kind, name = binding["roleRef"]["kind"], str(binding["roleRef"]["name"])
    role = roles.get((kind, place if kind == "Role" else "", name), {})
    for rule in role.get("rules") or ():
        yield from _of_rule(rule, account, name, place)


def _of_rule(rule: Json, account: str, role: str, place: str) -> Iterator[Right]:
    verbs = rule["verbs"]
    for path, verb in product(rule.get("nonResourceURLs") or () if not place else (), verbs):
        yield Right(account, role, "", "", path, verb)
    of_objects = (rule.get("apiGroups") or (), rule.get("resources") or (), verbs, rule.get("resourceNames") or ("",))
    for group, resource, verb, name in product(*of_objects):
        yield Right(account, role, place, group, resource, verb, name)
