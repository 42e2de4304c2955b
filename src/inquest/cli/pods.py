"""What the pods of a release run, started by the words that stand in the chart.

Reading what people type takes a library that is 2 MB of every process that imports it, for as long as it lives. The
words of a pod are known, so that its process does without; whatever else is typed is read as every other command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from inquest.errors import Misconfigured
from inquest.settings import Settings


def program_of(words: Sequence[str]) -> Callable[[], None] | None:
    """What these words start; None where they are not those of a pod."""
    match words:
        case ["run", "--settings", file] if not file.startswith("-"):
            return partial(run_operator, Path(file))
        case ["datastorage", "serve", "--settings", file] if not file.startswith("-"):
            return partial(serve_datastorage, Path(file))
    return None


def run_operator(file: Path | None) -> None:
    """Until it is told to stop."""
    from inquest.operator.main import operate  # imported late: the other commands do not need kopf

    settings = Settings.load(file)
    asyncio.run(_must_begin(settings))
    asyncio.run(operate(settings, file))


async def _must_begin(settings: Settings) -> None:
    """Misconfigured where the operator has no login or no OPA.

    Asked first: the first thing that it makes is its database, which whoever cannot begin would leave where they stand.
    """
    from inquest.adapters.kube import from_kubeconfig, in_cluster  # imported late: a served DataStorage may do without

    chosen = settings.kubernetes.kubeconfig
    try:
        await (from_kubeconfig(chosen) if chosen else in_cluster())()
    except Misconfigured as error:
        if chosen:
            raise
        raise Misconfigured(f"{error}: name one by kubernetes.kubeconfig or INQUEST_KUBERNETES__KUBECONFIG") from error
    if not settings.policy.url:
        opa_of(settings)


def opa_of(settings: Settings) -> str:
    """The program of the settings; Misconfigured where there is none."""
    from inquest.adapters.opa import find_binary

    binary = find_binary(settings.policy.opa_binary)
    if binary is None:
        raise Misconfigured(f"policy.opa_binary: there is no program {settings.policy.opa_binary}")
    return binary


def serve_datastorage(file: Path | None) -> None:
    """Until it is told to stop."""
    from inquest import standalone

    asyncio.run(standalone.serve(Settings.load(file)))
