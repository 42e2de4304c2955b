"""Counts every port call of a case and kills the process at one of them (reliability, 7, T2).

What is not done on behalf of a case (heartbeat, resync, sweeps, catalogue) is not counted, so that the numbers of two
runs can be compared.
"""

from __future__ import annotations

import inspect
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from inquest.core.redaction.redacted import Redacted
from inquest.ports.kubernetes import Json, ResourceKind
from tests.support.crash.points import Point

PORTS: Final = (
    "cluster",
    "target_reader",
    "tools",
    "status",
    "model",
    "policy",
    "catalogue",
    "datastorage",
    "notifier",
)
"""What is wrapped, by its name among the ports."""
OF_CASES: Final = frozenset({"Signal", "Investigation", "RemediationApprovalRequest", "WorkflowExecution"})
"""Kinds whose looks are work on a case."""
UNCOUNTED: Final = frozenset({"now"})
"""Answered from memory: dying there is dying after the call before it."""
PREFIXES: Final = {"RemediationApprovalRequest": "rar-", "WorkflowExecution": "wfe-", "Investigation": ""}
NOT_YET: Final = "Pending"
NO_CASE: Final = "-"

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class CaseInWork:
    """The object that is being looked at."""

    kind: str
    namespace: str
    name: str


_behalf: ContextVar[CaseInWork | None] = ContextVar("behalf", default=None)


@dataclass
class Counter:
    """Numbers the calls, writes each down, and ends the process at the one that was asked for."""

    point: Point
    log: Path
    _file: int = field(init=False)
    _number: int = 0
    _matching: int = 0
    _phases: dict[str, str] = field(default_factory=dict)
    """By Investigation, as its status last said."""
    _cases: dict[str, str] = field(default_factory=dict)
    """Investigation by Signal."""

    def __post_init__(self) -> None:
        self._file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def around(self, name: str, port: Any) -> Any:
        """The same port, counted; None stays None."""
        return None if port is None else Counted(name, port, self)

    def on_behalf(self, kind: str, look: Callable[[str, str], Awaitable[R]]) -> Callable[[str, str], Awaitable[R]]:
        """A look whose port calls count, where it is one at a case."""
        if kind not in OF_CASES:
            return look

        async def counted(namespace: str, name: str) -> R:
            token = _behalf.set(CaseInWork(kind, namespace, name))
            try:
                return await look(namespace, name)
            finally:
                _behalf.reset(token)

        return counted

    async def count(self, call: str, work: Callable[[], Awaitable[R]]) -> R:
        """Number and do it; the process may end right before or right after."""
        behalf = _behalf.get()
        if behalf is None:
            return await work()
        is_last = self._write_down(behalf, call)
        if is_last and self.point.side == "before":
            self._die()
        try:
            return await work()
        finally:
            if is_last and self.point.side == "after":
                self._die()

    def learn(self, kind: ResourceKind, found: Json) -> None:
        """Remember what an object tells about the phase of its case."""
        name, status = str(found["metadata"]["name"]), found.get("status") or {}
        if kind.kind == "Investigation":
            self._phases[name] = str(status.get("phase") or NOT_YET)
            signal_ref = (found.get("spec") or {}).get("signalRef") or {}
            self._cases.setdefault(str(signal_ref.get("name")), name)
        elif kind.kind == "Signal":
            ref = status.get("investigationRef") or status.get("duplicateOf") or {}
            if ref:
                self._cases[name] = str(ref.get("name"))

    def _write_down(self, behalf: CaseInWork, call: str) -> bool:
        """One line; says whether it is the call that was asked for."""
        case = self._case_of(behalf)
        phase = self._phases.get(case, NO_CASE)
        self._number += 1
        matches = self._matches(case, call)
        self._matching += matches
        line = {
            "n": self._number,
            "phase": phase,
            "case": case,
            "for": behalf.kind,
            "call": call,
            "matching": self._matching if matches else 0,
        }
        self._line(line)
        return matches and self._matching == self.point.at

    def _matches(self, case: str, call: str) -> bool:
        wanted = self.point
        return (not wanted.case or wanted.case == case) and wanted.call in call

    def _case_of(self, behalf: CaseInWork) -> str:
        prefix = PREFIXES.get(behalf.kind)
        return behalf.name.removeprefix(prefix) if prefix is not None else self._cases.get(behalf.name, "")

    def _line(self, line: Mapping[str, Any]) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def _die(self) -> None:
        self._line({"killed": self.point.side, "n": self._number})
        os.kill(os.getpid(), signal.SIGKILL)


class Counted:
    """A port whose asynchronous calls are counted; everything else passes through."""

    def __init__(self, name: str, port: Any, counter: Counter) -> None:
        self._name, self._port, self._counter = name, port, counter

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if method in UNCOUNTED or not inspect.iscoroutinefunction(found):
            return found
        return self._counted(method, found)

    def _counted(self, method: str, found: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            label = f"{self._name}.{method}{_about(args)}"
            result = await self._counter.count(label, lambda: found(*args, **kwargs))
            if args and isinstance(args[0], ResourceKind) and isinstance(result, dict):
                self._counter.learn(args[0], result)
            return result

        return call


def _about(args: tuple[Any, ...]) -> str:
    """Kind of the object, with what its content adds: the last fact of a slot, the phase of a status."""
    if not args or not isinstance(args[0], ResourceKind):
        return ""
    content = args[1].value if len(args) > 1 and isinstance(args[1], Redacted) else {}
    return f" {args[0].kind}" + "".join(f"/{word}" for word in (_slot(content), _phase(content)) if word)


def _slot(content: Json) -> str:
    head = (content.get("data") or {}).get("head")
    return str(json.loads(head)["entries"][-1]["kind"]) if head else ""


def _phase(content: Json) -> str:
    return str((content.get("status") or {}).get("phase") or "")
