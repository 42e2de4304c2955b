"""Who may ask about what, by namespaces alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from inquest.api.names import fingerprint_of, fingerprint_of_unknown, read_label
from inquest.api.refs import TargetRef
from inquest.api.signal import SignalContent
from inquest.core.cluster.objects import UNKNOWN_KIND
from inquest.core.signals.classification import Labels
from inquest.core.signals.triage_input import TriageInput, TriageRules


def is_outside(own: str, home: str, namespace: str) -> bool:
    """Whether what stands in `own` must not name a target of that namespace; an empty one is the cluster's.

    Only the operator's namespace `home` may reach into others, or to what is in none. One rule for Signals, cases and
    replays; without a `home`, in a journal of an earlier version, everything is inside.
    """
    return bool(home) and own not in (home, namespace)


NEAR: Final = 2
"""Target and root owner, whose labels come before those of the namespace."""


def fingerprint_of_signal(spec: SignalContent, root: TargetRef | None) -> str:
    """What makes two Signals one case; empty while a named target has no known root."""
    if spec.target.kind == UNKNOWN_KIND:
        return fingerprint_of_unknown(spec.target.namespace, spec.name)
    return fingerprint_of(root) if root is not None else ""


def is_managed(nearest_first: Sequence[Labels], *, require_label: bool = True) -> bool:
    """Whether the nearest `managed` label says true: target, root owner, namespace, which is the last of three.

    What the namespace refuses, nobody below it gives: its label is an administrator's, those below are not.
    """
    words = [read_label(labels, "managed") or "" for labels in nearest_first]
    if len(words) > NEAR and words[NEAR] not in ("", "true"):
        return False
    word = next(filter(None, words), "")
    return word == "true" or (not word and not require_label)


def is_beyond(namespace: str, rules: TriageRules) -> bool:
    """Whether a target there is none that may be read; without a namespace it is the cluster's."""
    return bool(rules.namespaces) and namespace not in rules.namespaces


def is_out_of_reach(seen: TriageInput) -> bool:
    """By namespaces alone, before anything is read."""
    return any(holds for holds, _ in target_reaches(seen))


def target_reaches(seen: TriageInput) -> Iterable[tuple[bool, str]]:
    known = ", ".join(sorted(seen.rules.namespaces))
    too_far = is_outside(seen.namespace, seen.rules.operator_namespace, seen.target_namespace)
    return (
        (too_far, "a Signal of this namespace may name targets in it only"),
        (
            is_beyond(seen.target_namespace, seen.rules),
            f"this operator looks after targets in {known}, and has no right to read others",
        ),
    )
