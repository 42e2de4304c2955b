"""What is changed in the end: the target of a diagnosis, and what has to be asked about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import api_group, same_kind
from inquest.core.llm.messages import Invocation, ModelReply
from inquest.core.llm.prompts.selection import described_target
from inquest.core.llm.reply.reading import read_verdict
from inquest.core.llm.reply.verdicts import RcaVerdict
from inquest.core.selection.parameters import TARGET_PARAMETERS
from inquest.core.selection.selection import target_parameters
from inquest.core.text import filter_text


@dataclass(frozen=True)
class FinalTarget:
    """The final target; none with `ask` set: one corrective question, then outcome 5."""

    target: TargetRef | None
    ask: bool = False


def final_target(
    *, root: TargetRef | None, named: TargetRef | None, known: Iterable[TargetRef] = (), found: TargetRef | None = None
) -> FinalTarget:
    """Where the remedy goes.

    `root` is the verified root owner, `named` the target of invocation 2, `known` the enriched resource, the signal's
    and the owner chain, `found` what a look-up of `named` gave.
    """
    if root is None:
        return FinalTarget(None)
    if not needs_lookup(root=root, named=named, known=known):
        return FinalTarget(root)
    return FinalTarget(found, ask=found is None)


def needs_lookup(*, root: TargetRef, named: TargetRef | None, known: Iterable[TargetRef] = ()) -> bool:
    """Whether the named target is of a kind of its own, so that the cluster must say whether it exists."""
    return named is not None and not any(same_kind(named, other) for other in (root, *known))


def target_question(named: TargetRef, why: str, root: TargetRef) -> str:
    """The one question after a target of another kind that was not found."""
    return (
        f"`remediation_target` {filter_text(named.display)} cannot be used: {filter_text(why)}. Name an object "
        "that exists, or leave `remediation_target` out: the workflow then acts on "
        f"{filter_text(described_target(root))}. Submit the whole answer again."
    )


def group_question(named: TargetRef, choices: Sequence[str]) -> str:
    """The one question which API group the target's kind is of."""
    said = (
        f"`api_version` {named.api_version} does not serve {named.kind}"
        if named.api_version
        else (f"{named.kind} is served by several API groups")
    )
    return (
        f"{said}. Which one is {filter_text(named.display)}? Set `remediation_target.api_version` to one of "
        f"{', '.join(choices)}, and submit the whole answer again."
    )


def group_named(answer: ModelReply, choices: Sequence[str]) -> str:
    """The one of the choices that an answer names, in its target or in its words; empty: none or several."""
    reply = read_verdict(Invocation.RCA, answer).reply
    target = reply.target if isinstance(reply, RcaVerdict) else None
    if target is not None and target.api_version:
        return next((choice for choice in choices if api_group(choice) == api_group(target.api_version)), "")
    words = {word.strip("./-") for word in re.split(r"[^\w./-]+", answer.text)}
    named = [choice for choice in choices if choice in words]
    return named[0] if len(named) == 1 else ""


def injected(parameters: Mapping[str, Any], target: TargetRef) -> dict[str, Any]:
    """Parameters with the target written over whatever stood under its names."""
    others = {name: value for name, value in parameters.items() if name not in TARGET_PARAMETERS}
    return others | target_parameters(target)
