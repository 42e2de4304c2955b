"""What the server answers where it does not do what it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass
class Refused(Exception):
    """An answer of 400 and above, as a `Status`."""

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=dict)

    def body(self) -> Object:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        return {**status, "reason": self.reason, "details": self.details, "code": self.code}


def not_found(group: str, plural: str, name: str) -> Refused:
    """No such object; the details name it, which the answer for a missing kind does not."""
    what = f"{plural}.{group}" if group else plural
    return Refused(404, "NotFound", f'{what} "{name}" not found', {"name": name, "group": group, "kind": plural})


def no_such_path() -> Refused:
    """No such kind."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def conflict(group: str, plural: str, name: str, why: str) -> Refused:
    """The version or uid that was meant is not the one that is there."""
    what = f"{plural}.{group}" if group else plural
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return Refused(409, "Conflict", message, {"name": name, "group": group, "kind": plural})


def invalid(kind: str, name: str, faults: list[str]) -> Refused:
    """422 with every field and what is wrong with it."""
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    return Refused(422, "Invalid", f'{kind} "{name}" is invalid: {listed}', {"name": name, "kind": kind})
