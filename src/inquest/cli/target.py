"""The object that a person asks about: named as kubectl names it, and there before anything is made for it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from inquest.cli.options import Session
from inquest.cli.output import print_warning
from inquest.errors import AmbiguousKind, Forbidden, InquestError, Invalid, NotFound, Retryable
from inquest.ports.kinds import NAMESPACE
from inquest.ports.kubernetes import Json, ResourceKind

MOST_NAMES: Final = 3
"""That are offered where one is not there."""


async def target_of(at: Session, words: str, *, missing: bool) -> Json:
    """`KIND/NAME` as a Signal names its target; NotFound where no such object is there, unless it may be missing.

    What cannot be looked at is not refused for that: the person is told, and the operator looks for itself.
    """
    word, slash, name = words.partition("/")
    if not slash or not name:
        raise Invalid(f"{words!r} is no KIND/NAME such as deployment/checkout")
    kind = await _kind(at, word)
    if not missing:
        await _must_be_there(at, kind, name)
    place = {"namespace": at.namespace} if kind.namespaced else {}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, **place}


async def _kind(at: Session, word: str) -> ResourceKind:
    try:
        return await at.kube.cluster.kind(word)
    except AmbiguousKind as error:
        name = word.partition(".")[0]
        forms = (".".join((name, *reversed(group.split("/")))) for group in error.groups)
        raise Invalid(f"several API groups serve {name}: write one of {', '.join(forms)}") from error


async def _must_be_there(at: Session, kind: ResourceKind, name: str) -> None:
    what = f'{kind.plural}{f".{kind.group}" if kind.group else ""} "{name}"'
    try:
        await at.kube.cluster.get(kind, name, at.namespace)
    except NotFound:
        where = f" in namespace {at.namespace}" if kind.namespaced else ""
        hint = await _hint(at, kind, name)
        raise NotFound(
            f"Error from server (NotFound): {what} not found{where}{hint} "
            "Nothing was created; --allow-missing asks why something is gone"
        ) from None
    except (Forbidden, Retryable) as error:
        print_warning(f"whether {what} is there could not be checked: {error}")


async def _hint(at: Session, kind: ResourceKind, name: str) -> str:
    """What may have been meant, as far as this person may look."""
    try:
        if kind.namespaced:
            await at.kube.cluster.get(NAMESPACE, at.namespace)
    except NotFound:
        return ", which is not there either."
    except InquestError:
        pass
    try:
        found = await at.kube.status.table(kind, at.namespace if kind.namespaced else "")
    except InquestError:
        return "."
    near = nearest(name, [str(row["object"]["metadata"]["name"]) for row in found["rows"]])
    return f". Did you mean {' or '.join(near)}?" if near else "."


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """At most three: those that begin with what was typed, as a pod does with its Deployment, then the most alike."""
    known = sorted(names)
    longer = [one for one in known if one.startswith(name)]
    return list(dict.fromkeys((*longer, *get_close_matches(name, known, MOST_NAMES))))[:MOST_NAMES]
