"""What a posted workflow means for what the catalogue holds already. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

ACTIVE = "Active"
DISABLED = "Disabled"
SUPERSEDED = "Superseded"


@dataclass(frozen=True)
class StoredRow:
    """A stored row of the same workflow name."""

    workflow_id: str
    version: str
    content_hash: str
    status: str


class RegistrationAct(Enum):
    """What to do with the posted row itself."""

    KEEP = "keep"
    INSERT = "insert"
    REVIVE = "revive"
    REFUSE = "refuse"


@dataclass(frozen=True)
class RegistrationDecision:
    """`superseded` rows lose their place to the posted one; `previous` is the version it follows."""

    act: RegistrationAct
    status: int
    superseded: tuple[str, ...] = field(default=())
    previous: str | None = None
    clash: StoredRow | None = None


def decide_registration(
    held: Sequence[StoredRow], *, workflow_id: str, version: str, content_hash: str
) -> RegistrationDecision:
    """The lookup order is: active of this version, disabled of this version, active of the name, the id itself."""
    active = _first(held, ACTIVE, version)
    if active is not None:
        return (
            RegistrationDecision(RegistrationAct.KEEP, 200)
            if active.content_hash == content_hash
            else RegistrationDecision(RegistrationAct.REFUSE, 409, clash=active)
        )
    disabled = _first(held, DISABLED, version)
    if disabled is not None and disabled.content_hash == content_hash:
        return _in_place_of(held, RegistrationAct.REVIVE, 200)
    known = any(row.workflow_id == workflow_id for row in held)
    followed = disabled is None and any(row.status == ACTIVE for row in held)
    if known:
        return _in_place_of(held, RegistrationAct.REVIVE, 201 if followed else 200)
    return _in_place_of(held, RegistrationAct.INSERT, 201)


def _in_place_of(held: Sequence[StoredRow], act: RegistrationAct, status: int) -> RegistrationDecision:
    """At most one row of a name is Active and latest, so whatever was Active gives way."""
    gone = [row for row in held if row.status == ACTIVE]
    return RegistrationDecision(act, status, tuple(row.workflow_id for row in gone), gone[0].version if gone else None)


def _first(held: Sequence[StoredRow], status: str, version: str) -> StoredRow | None:
    return next((row for row in held if row.status == status and row.version == version), None)
