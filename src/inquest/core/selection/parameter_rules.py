"""Values that follow from facts: a rule for each kind of parameter, within the quota."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from inquest.api.refs import DetectedLabels
from inquest.core.cluster.detected_labels import Quota
from inquest.core.cluster.quantities import bytes_from, quantity_from, thousandths_from
from inquest.core.selection.catalogue import Workflow
from inquest.core.selection.parameters import check_parameters


@dataclass(frozen=True)
class TargetFacts:
    """What code knows of a target beside the finding."""

    labels: DetectedLabels | None = None
    quota: Mapping[str, Quota] = field(default_factory=dict)
    custom: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Custom labels, as discovery was asked with them."""

    @property
    def is_git_ops(self) -> bool:
        return self.labels is not None and bool(self.labels.git_ops_managed)

    @property
    def tool(self) -> str:
        """The GitOps tool in words for people."""
        return str((self.labels and self.labels.git_ops_tool) or "a GitOps tool")


@dataclass(frozen=True)
class DerivedParameters:
    """Parameters that rules gave; `missing` says why they are not enough."""

    values: Mapping[str, Any]
    rules: tuple[str, ...]
    missing: tuple[str, ...]


def derive_parameters(record: Workflow, facts: Mapping[str, str]) -> DerivedParameters:
    """A workflow's parameters from facts; rules give them, nothing is guessed."""
    values: dict[str, Any] = {}
    rules: list[str] = []
    for declaration in record.parameters:
        name = str(declaration.get("name"))
        rule = PARAMETER_RULES.get(name)
        value = rule.give(facts) if rule else ""
        if rule and value:
            values[name] = typed_value(value, str(declaration.get("type", "")))
            rules.append(f"{name}={value}: {rule.says}")
    return DerivedParameters(values, tuple(rules), check_parameters(record.parameters, values).errors)


def typed_value(text: str, kind: str) -> Any:
    """A text as the value of a declared type; one that is none stays a text, and validation says so."""
    if kind == "array":
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, list) else text
    if kind == "integer" and re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return float(text) if kind == "float" and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text) else text


Facts = Mapping[str, str]


@dataclass(frozen=True)
class ParameterRule:
    """How a parameter of a known name follows from facts; an empty value means that it does not."""

    says: str
    give: Callable[[Facts], str]


def _fact(name: str, says: str) -> ParameterRule:
    return ParameterRule(says, lambda facts: facts.get(name, ""))


def doubled_memory(facts: Facts) -> str:
    """Twice the present limit, or a quarter above what was used where that is more, at most `memoryMax`."""
    present = bytes_from(facts.get("memoryLimit", ""))
    if not present:
        return ""
    used = bytes_from(facts.get("memoryUsage", "")) or 0
    ceiling = bytes_from(facts.get("memoryMax", ""))
    wanted = max(2 * present, _rounded(used * 5 // 4))
    wanted = wanted if ceiling is None else min(wanted, ceiling)
    return quantity_from(wanted, facts["memoryLimit"]) if wanted > present else ""


def _rounded(size: int) -> int:
    """Up to whole Mi."""
    unit = 1024**2
    return -(-size // unit) * unit


def doubled_cpu(facts: Facts) -> str:
    """Twice the present limit, at most `cpuMax`, in thousandths; empty when that leaves no room above it."""
    present = thousandths_from(facts.get("cpuLimit", ""))
    if not present:
        return ""
    ceiling = thousandths_from(facts.get("cpuMax", ""))
    wanted = 2 * present if ceiling is None else min(2 * present, ceiling)
    if wanted <= present:
        return ""
    return f"{wanted}m" if wanted % 1000 else str(wanted // 1000)


def more_replicas(facts: Facts) -> str:
    """What the evidence says that was wanted; else half as many again, at most `maxReplicas`."""
    wanted = facts.get("wantedReplicas", "")
    if wanted:
        return wanted if _COUNT.fullmatch(wanted) else ""
    present, most = facts.get("replicas", ""), facts.get("maxReplicas", "")
    if not _COUNT.fullmatch(present) or present == "0":
        return ""
    more = int(present) + max(1, int(present) // 2)
    more = min(more, int(most)) if _COUNT.fullmatch(most) else more
    return str(more) if more > int(present) else ""


def raised_maximum(facts: Facts) -> str:
    """Half as many again as an autoscaler may run that stands at its maximum; at another one no figure is wrong."""
    present = facts.get("maxReplicas", "")
    if facts.get("cause") != "atMaximum" or not _COUNT.fullmatch(present) or present == "0":
        return ""
    return str(int(present) + max(1, int(present) // 2))


def larger_storage(facts: Facts) -> str:
    """Half as much again as the claim asks for, at most `storageMax`."""
    present = bytes_from(facts.get("storageSize", ""))
    if not present:
        return ""
    ceiling = bytes_from(facts.get("storageMax", ""))
    wanted = _rounded(present * 3 // 2)
    wanted = wanted if ceiling is None else min(wanted, ceiling)
    return quantity_from(wanted, facts["storageSize"]) if wanted > present else ""


_COUNT: Final = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True)
class _Room:
    """A quota that bounds a parameter: the fact it gives, and how the amounts are read and written."""

    fact: str
    present: str
    resources: tuple[str, ...]
    read: Callable[[str], int | None]
    written: Callable[[int], str]


def quota_facts(facts: Facts, quota: Mapping[str, Quota]) -> dict[str, str]:
    """Upper bounds that the namespace's quota sets; a bound that the finding knows is kept where it is lower."""
    return {room.fact: text for room in _ROOMS for text in (_bound_by(room, facts, quota),) if text}


def _bound_by(room: _Room, facts: Facts, quota: Mapping[str, Quota]) -> str:
    """New pods come beside the old ones: what is free must hold one, and the growth of all."""
    found = next((quota[name] for name in room.resources if name in quota), None)
    hard, used = (room.read(found.hard), room.read(found.used)) if found else (None, None)
    present, known = room.read(facts.get(room.present, "")), room.read(facts.get(room.fact, ""))
    if hard is None or used is None or present is None:
        return ""
    replicas = int(facts["replicas"]) if _COUNT.fullmatch(facts.get("replicas", "")) else 1
    free = max(0, hard - used)
    most = min(free, present + free // max(1, replicas)) if room.fact != "storageMax" else present + free
    return room.written(most if known is None else min(most, known))


_CONTAINER: Final = _fact("container", "the container that the finding names")
_MEMORY: Final = ParameterRule("twice the present limit, or above what was used, within the quota", doubled_memory)
_CPU: Final = ParameterRule("twice the present limit, within the quota", doubled_cpu)
_REVISION: Final = _fact("previousRevision", "the revision before the present one")
_REPLICAS: Final = ParameterRule("as many as were wanted, or half as many again", more_replicas)
_MAXIMUM: Final = ParameterRule("half as many again as the autoscaler's maximum", raised_maximum)
_STORAGE: Final = ParameterRule("half as much again, within the quota", larger_storage)
_POD: Final = _fact("pod", "the pod that the finding names")
_NODE: Final = _fact("node", "the node that the finding names")

PARAMETER_RULES: Final[Mapping[str, ParameterRule]] = {
    **dict.fromkeys(("CONTAINER", "CONTAINER_NAME"), _CONTAINER),
    **dict.fromkeys(("MEMORY_LIMIT", "NEW_MEMORY_LIMIT"), _MEMORY),
    **dict.fromkeys(("CPU_LIMIT", "NEW_CPU_LIMIT"), _CPU),
    **dict.fromkeys(("REVISION", "TO_REVISION", "TARGET_REVISION"), _REVISION),
    **dict.fromkeys(("REPLICAS", "REPLICA_COUNT", "TARGET_REPLICAS"), _REPLICAS),
    **dict.fromkeys(("MAX_REPLICAS", "NEW_MAX_REPLICAS"), _MAXIMUM),
    **dict.fromkeys(("STORAGE_SIZE", "NEW_STORAGE_SIZE", "VOLUME_SIZE"), _STORAGE),
    **dict.fromkeys(("POD", "POD_NAME"), _POD),
    **dict.fromkeys(("NODE", "NODE_NAME"), _NODE),
}
"""Named rules; an image tag has none, because no evidence says which one is right."""

_ROOMS: Final = (
    _Room("memoryMax", "memoryLimit", ("limits.memory",), bytes_from, quantity_from),
    _Room("cpuMax", "cpuLimit", ("limits.cpu",), thousandths_from, lambda amount: f"{amount}m"),
    _Room("storageMax", "storageSize", ("requests.storage",), bytes_from, quantity_from),
)
