"""`inquest list`: what there is, in the columns that the API server has for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter, Token

from inquest.api.base import GROUP
from inquest.api.registry import KINDS
from inquest.cli.exits import Exit
from inquest.cli.options import ListOptions, Session, at_place
from inquest.cli.output import machine_text, print_lines, print_warning, say_table, table_lines
from inquest.core.cluster.objects import metadata_of
from inquest.ports.kinds import ACTION_TYPE, APPROVAL, EXECUTION, INVESTIGATION, SIGNAL, WORKFLOW
from inquest.ports.kubernetes import Json, ResourceKind

What = Literal["investigations", "signals", "approvals", "executions", "workflows", "actiontypes"]
KINDS_BY_WORD: Final[dict[What, ResourceKind]] = {
    "investigations": INVESTIGATION,
    "signals": SIGNAL,
    "approvals": APPROVAL,
    "executions": EXECUTION,
    "workflows": WORKFLOW,
    "actiontypes": ACTION_TYPE,
}
_SHORT: Final = {entry.kind: entry.short for entry in KINDS}
MEANT: Final[dict[str, What]] = {
    word: what
    for what, kind in KINDS_BY_WORD.items()
    for word in (what, what.removesuffix("s"), kind.plural, kind.kind.lower(), _SHORT[kind.kind])
}
"""What each word stands for: ours, and those by which kubectl knows the kind."""
SPARE: Final = (
    *("COUNT", "ENV", "PRIORITY", "ENGINE", "VERSION", "CONFIDENCE", "INVESTIGATION", "WORKFLOWS", "DURATION"),
    *("WORKFLOW", "SCORE", "SIGNAL", "BY", "REASON", "APPROVAL", "SEVERITY", "OUTCOME", "AGE", "EXPIRES"),
)
"""Headers of columns that a narrow terminal goes without, the one that is missed least first.

What is never spared says which object it is, of what, and how it stands.
"""
ListOutput = Literal["table", "wide", "json", "yaml", "name"]


def _meant(_type: Any, tokens: Sequence[Token]) -> What:
    """The kind in kubectl's words too, with or without the group."""
    (token,) = tokens
    word, _, group = token.value.lower().partition(".")
    if word not in MEANT or group not in ("", GROUP):
        raise ValueError(f"invalid value {token.value!r} for WHAT. Choose from: {', '.join(KINDS_BY_WORD)}")
    return MEANT[word]


def list_(
    what: Annotated[What, Parameter(converter=_meant)] = "investigations",
    /,
    *,
    output: Annotated[ListOutput, Parameter(alias="-o")] = "table",
    place: ListOptions = ListOptions(),  # noqa: B008 - frozen
) -> int:
    """List investigations, or what belongs to them, in kubectl's columns.

    Parameters
    ----------
    what
        What is listed; `inv`, `sig`, `rar`, `wfe`, `rwf`, `at` and the names of the kinds will do.
    output
        `table` leaves out columns that a narrow terminal has no room for, and names them; `wide` has more, all of
        them; `name`: `kind/name`, a line for each.
    """
    kind = KINDS_BY_WORD[what]

    async def work(at: Session) -> Exit:
        namespace = "" if place.all_namespaces else at.namespace
        if output in ("table", "wide"):
            found = await at.kube.status.table(kind, namespace, labels=place.selector)
            _print_table(found, kind, wide=output == "wide", namespace=namespace)
        else:
            print_lines(*_written(await at.kube.status.list(kind, namespace, labels=place.selector), kind, output))
        return Exit.OK

    return at_place(place, work)


def _print_table(found: Json, kind: ResourceKind, *, wide: bool, namespace: str) -> None:
    if not found["rows"]:
        here = f"namespace {namespace}; -A looks in all of them" if namespace else "any namespace"
        print_warning(f"there are no {kind.plural} in {here}")
        return
    header, rows = table_columns(found, wide=wide, everywhere=not namespace)
    if wide:
        print_lines(*table_lines(header, rows))
    else:
        say_table(header, rows, SPARE, "-o wide shows all")


def table_columns(found: Json, *, wide: bool, everywhere: bool) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the API server's table; what is not wide has priority 0."""
    shown = [number for number, one in enumerate(found["columnDefinitions"]) if wide or not one.get("priority")]
    head = [str(found["columnDefinitions"][number]["name"]).upper() for number in shown]
    rows = [[_cell(row["cells"][number]) for number in shown] for row in found["rows"]]
    if not everywhere:
        return head, rows
    places = [str(metadata_of(row.get("object") or {}).get("namespace", "")) for row in found["rows"]]
    return ["NAMESPACE", *head], [[place, *row] for place, row in zip(places, rows, strict=True)]


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _written(found: tuple[Json, ...], kind: ResourceKind, output: ListOutput) -> Iterator[str]:
    if output == "name":
        yield from (f"{kind.kind.lower()}.{GROUP}/{one['metadata']['name']}" for one in found)
        return
    items = [without_managed_fields(one) for one in found]
    document = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    yield machine_text(document, "yaml" if output == "yaml" else "json")


def without_managed_fields(found: Json) -> Json:
    """As kubectl shows an object: who wrote which field is left out."""
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "managedFields"}}
