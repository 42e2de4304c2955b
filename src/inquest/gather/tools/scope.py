"""What a case may read: no Secrets in any spelling, no foreign namespace, a short list of cluster-scoped kinds.

Checked when a call runs, not when tools are listed, and before any request is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inquest.gather.tools.hints import CallRefused
from inquest.ports.kubernetes import ResourceKind

SECRET_WORDS: Final = frozenset({"secret", "secrets", "secretlist"})
SECRET_HINT: Final = (
    "Secrets are never read, their names neither: look at the pod's events and container statuses; "
    "secretKeyRef and volumes name the Secret and the key"
)
BLOCKED_HINT: Final = "the settings say that this kind is not read; look at what refers to it"
CLUSTER_KINDS: Final = frozenset(
    {
        "Node",
        "PersistentVolume",
        "StorageClass",
        "CustomResourceDefinition",
        "IngressClass",
        "PriorityClass",
        "RuntimeClass",
        "NodeMetrics",
    }
)
"""Cluster-scoped facts that belong to no tenant."""


@dataclass(frozen=True)
class Scope:
    """The namespaces of a case: the signal's, which is the default, and the target's."""

    namespace: str
    others: frozenset[str] = frozenset()

    def holds(self, namespace: str) -> bool:
        """Whether the case may read there."""
        return bool(namespace) and (namespace == self.namespace or namespace in self.others)


def check_word(word: str, blocked: Iterable[str] = ()) -> None:
    """Refuse lists, categories, paths, every spelling of Secrets and what the settings add to them."""
    pieces = re.split(r"[,/\s]+", word.strip().lower())
    if any(piece.split(".")[0] in SECRET_WORDS for piece in pieces):
        raise CallRefused("kind Secret is blocked", SECRET_HINT)
    if any(_means(one, piece) for one in blocked for piece in pieces):
        raise CallRefused(f"kind {word.strip()[:80]} is blocked", BLOCKED_HINT)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", word.strip()) or word.strip().lower() in ("all", "list"):
        raise CallRefused(f"{word[:80]!r} is not one kind", "name one kind; give the group as api_version")


def check_kind(kind: ResourceKind, blocked: Iterable[str] = ()) -> None:
    """Refuse what a word turned out to mean."""
    for word in (kind.kind, kind.plural):
        check_word(f"{word}.{kind.group}".rstrip("."), blocked)


def _means(setting: str, word: str) -> bool:
    """Whether a setting (`configmaps`, `ConfigMap`, `widgets.example.com`) means this kind, singular or plural.

    Without a group, that kind of any group is meant.
    """
    ours, group = _split(setting)
    theirs, other = _split(word)
    return bool(ours) and bool(_forms(ours) & _forms(theirs)) and group in ("", other)


def _split(word: str) -> tuple[str, str]:
    name, _, group = word.strip().lower().partition(".")
    return name, group


def _forms(word: str) -> set[str]:
    bare = word.removesuffix("list")
    return {bare, f"{bare}s", f"{bare}es", f"{bare[:-1]}ies" if bare.endswith("y") else bare}


def without_blocked(found: Mapping[str, Any], blocked: Iterable[str] = ()) -> tuple[dict[str, Any] | None, int]:
    """The object without what is of a blocked kind in it, and how many objects that were.

    None where the object itself is of a blocked kind; a list of such a kind holds as many as it has items, whether or
    not they say what they are.
    """
    items = found.get("items")
    listed = items if isinstance(items, list | tuple) else None
    kind, group = str(found.get("kind") or ""), str(found.get("apiVersion") or "").rpartition("/")[0]
    is_blocked = kind.lower() in SECRET_WORDS or any(_means(one, f"{kind}.{group}") for one in blocked)
    if is_blocked:
        return None, 1 if listed is None else len(listed)
    if listed is None:
        return dict(found), 0
    looked = [without_blocked(item, blocked) if isinstance(item, Mapping) else (item, 0) for item in listed]
    kept = [item for item, _ in looked if item is not None]
    return {**found, "items": kept}, sum(count for _, count in looked)


def namespace_of(kind: ResourceKind, namespace: str, name: str, scope: Scope) -> str:
    """The namespace to read in; empty for cluster-scoped kinds, which ignore it."""
    if kind.namespaced:
        return check_namespace(namespace or scope.namespace, scope)
    if kind.kind in CLUSTER_KINDS or (kind.kind == "Namespace" and scope.holds(name)):
        return ""
    raise CallRefused(
        f"{kind.kind} is not among the cluster-scoped facts of a case",
        f"cluster-scoped kinds that can be read: {', '.join(sorted(CLUSTER_KINDS))}, and the case's own Namespace",
    )


def check_namespace(namespace: str, scope: Scope) -> str:
    """The namespace, if it is one of the case."""
    if scope.holds(namespace):
        return namespace
    own = ", ".join(sorted({scope.namespace, *scope.others} - {""})) or "none"
    raise CallRefused(f"namespace {namespace!r} is not part of this case", f"namespaces of this case: {own}")
