"""What a case may read: no Secrets in any spelling, no foreign namespace, a short list of cluster-scoped kinds.

Checked when a call runs, not when tools are listed, and before any request is made (reliability, sections 9, 12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from inquest.adapters.tools.hints import Refused
from inquest.ports import ResourceKind

SECRET_WORDS: Final = frozenset({"secret", "secrets", "secretlist"})
SECRET_HINT: Final = (
    "Secrets are never read, their names neither: look at the pod's events and container statuses; "
    "secretKeyRef and volumes name the Secret and the key"
)
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


def check_word(word: str) -> None:
    """Refuse lists, categories, paths and every spelling of Secrets."""
    pieces = re.split(r"[,/\s]+", word.strip().lower())
    if any(piece.split(".")[0] in SECRET_WORDS for piece in pieces):
        raise Refused("kind Secret is blocked", SECRET_HINT)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9.-]*", word.strip()) or word.strip().lower() in ("all", "list"):
        raise Refused(f"{word[:80]!r} is not one kind", "name one kind; give the group as api_version")


def check_kind(kind: ResourceKind) -> None:
    """Refuse what a word turned out to mean."""
    check_word(kind.kind)
    check_word(kind.plural)


def namespace_of(kind: ResourceKind, namespace: str, name: str, scope: Scope) -> str:
    """The namespace to read in; empty for cluster-scoped kinds, which ignore it."""
    if kind.namespaced:
        return check_namespace(namespace or scope.namespace, scope)
    if kind.kind in CLUSTER_KINDS or (kind.kind == "Namespace" and scope.holds(name)):
        return ""
    raise Refused(
        f"{kind.kind} is not among the cluster-scoped facts of a case",
        f"cluster-scoped kinds that can be read: {', '.join(sorted(CLUSTER_KINDS))}, and the case's own Namespace",
    )


def check_namespace(namespace: str, scope: Scope) -> str:
    """The namespace, if it is one of the case."""
    if scope.holds(namespace):
        return namespace
    own = ", ".join(sorted({scope.namespace, *scope.others} - {""})) or "none"
    raise Refused(f"namespace {namespace!r} is not part of this case", f"namespaces of this case: {own}")
