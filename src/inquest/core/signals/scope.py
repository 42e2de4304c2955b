"""Who may ask about what, by namespaces alone (reliability, section 12, tenancy)."""

from __future__ import annotations


def is_outside(own: str, home: str, namespace: str) -> bool:
    """Whether what stands in `own` must not name a target of that namespace; an empty one is the cluster's.

    Only the operator's namespace `home` may reach into others, or to what is in none. One rule for Signals, cases and
    replays; without a `home`, in a journal of an earlier version, everything is inside.
    """
    return bool(home) and own not in (home, namespace)
