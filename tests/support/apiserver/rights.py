"""Who may do what, by the roles and bindings that are stored, and the reviews that ask for it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.apiserver.selectors import has_labels
from tests.support.apiserver.store import Store

Object = dict[str, Any]

RBAC: Final = "rbac.authorization.k8s.io"
ACCOUNT: Final = "system:serviceaccount:"
MASTERS: Final = "system:masters"


@dataclass(frozen=True)
class User:
    """Who asks."""

    name: str
    groups: frozenset[str] = frozenset()
    uid: str = ""

    @property
    def all_groups(self) -> frozenset[str]:
        """With those that the API server adds."""
        found = {*self.groups, "system:authenticated"}
        if self.name.startswith(ACCOUNT):
            found |= {"system:serviceaccounts", f"system:serviceaccounts:{self.name.split(':')[2]}"}
        return frozenset(found)


ADMIN: Final = User("admin", frozenset({MASTERS}))


@dataclass
class Rights:
    """Tokens and answers."""

    store: Store
    tokens: dict[str, User] = field(default_factory=dict)

    def token_for(self, namespace: str, account: str) -> str:
        """A token of a service account."""
        token = secrets.token_urlsafe(32)
        self.tokens[token] = User(f"{ACCOUNT}{namespace}:{account}")
        return token

    def may(self, user: User, asked: Object) -> bool:
        """`asked` as in the `resourceAttributes` or `nonResourceAttributes` of a review."""
        if MASTERS in user.groups:
            return True
        return any(_allows(rule, asked) for rule in self.rules(user, asked.get("namespace", "")))

    def rules(self, user: User, namespace: str) -> Iterator[Object]:
        """Every rule that holds for somebody in a namespace; those of the whole cluster too."""
        for binding in self.store.list(self.store.kind(RBAC, "clusterrolebindings")):
            if _is_subject(binding, user):
                yield from self._of_role(binding["roleRef"], "")
        if not namespace:
            return
        for binding in self.store.list(self.store.kind(RBAC, "rolebindings"), namespace):
            if _is_subject(binding, user):
                yield from self._of_role(binding["roleRef"], namespace)

    def _of_role(self, ref: Object, namespace: str) -> Iterator[Object]:
        if ref["kind"] == "Role":
            role = self.store.find(self.store.kind(RBAC, "roles"), namespace, ref["name"])
            yield from (role or {}).get("rules") or ()
            return
        kind = self.store.kind(RBAC, "clusterroles")
        role = self.store.find(kind, "", ref["name"]) or {}
        yield from role.get("rules") or ()
        for selector in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
            wanted = ",".join(f"{key}={value}" for key, value in selector.get("matchLabels", {}).items())
            for part in self.store.list(kind):
                if has_labels(part["metadata"].get("labels") or {}, wanted):
                    yield from part.get("rules") or ()

    def review(self, plural: str, body: Object, user: User) -> Object:
        """The answer to a review of any kind."""
        spec = body.get("spec") or {}
        match plural:
            case "selfsubjectreviews":
                groups = sorted(user.all_groups)
                return {**body, "status": {"userInfo": {"username": user.name, "uid": user.uid, "groups": groups}}}
            case "selfsubjectrulesreviews":
                return {**body, "status": self._rules_review(user, spec.get("namespace", ""))}
            case "tokenreviews":
                return {**body, "status": self._token_review(spec.get("token", ""))}
            case "selfsubjectaccessreviews":
                who = user
            case _:
                who = User(spec.get("user", ""), frozenset(spec.get("groups") or ()), spec.get("uid", ""))
        asked = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
        return {**body, "status": {"allowed": self.may(who, asked)}}

    def _rules_review(self, user: User, namespace: str) -> Object:
        if MASTERS in user.groups:
            rules = [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]
        else:
            rules = list(self.rules(user, namespace))
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }

    def _token_review(self, token: str) -> Object:
        user = self.tokens.get(token)
        if user is None:
            return {"authenticated": False, "error": "invalid bearer token"}
        info = {"username": user.name, "uid": user.uid, "groups": sorted(user.all_groups)}
        return {"authenticated": True, "user": info, "audiences": ["https://kubernetes.default.svc"]}


def _allows(rule: Object, asked: Object) -> bool:
    if "path" in asked:
        urls = rule.get("nonResourceURLs") or ()
        return _has(rule["verbs"], asked.get("verb", "")) and any(_is_under(asked["path"], url) for url in urls)
    resource, part = asked.get("resource", ""), asked.get("subresource", "")
    whole = f"{resource}/{part}" if part else resource
    names = rule.get("resourceNames") or ()
    return (
        _has(rule["verbs"], asked.get("verb", ""))
        and _has(rule.get("apiGroups") or (), asked.get("group", ""))
        and (_has(rule.get("resources") or (), whole) or (bool(part) and f"*/{part}" in rule.get("resources", ())))
        and (not names or asked.get("name", "") in names)
    )


def _has(listed: Any, word: str) -> bool:
    return word in listed or "*" in listed


def _is_under(path: str, url: str) -> bool:
    return path == url or (url.endswith("*") and path.startswith(url[:-1]))


def _is_subject(binding: Object, user: User) -> bool:
    for one in binding.get("subjects") or ():
        name = f"{ACCOUNT}{one.get('namespace')}:{one['name']}" if one["kind"] == "ServiceAccount" else one["name"]
        if one["kind"] == "Group" and one["name"] in user.all_groups:
            return True
        if one["kind"] != "Group" and name == user.name:
            return True
    return False
