"""Shell completion: the scripts for `inquest`, and what kubectl asks a plugin for `kubectl inquest …<TAB>`.

kubectl runs `kubectl_complete-inquest` with the words so far, the last one unfinished; each line of the answer is a
candidate, the last line a number of cobra's that says how the shell goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from cyclopts import App

from inquest.cli.listing import KINDS_BY_WORD
from inquest.cli.output import say
from inquest.cli.place import Connection, Place, at_place
from inquest.conductor.house import INVESTIGATION

NO_FILES: Final = ":4"
"""Cobra's ShellCompDirectiveNoFileComp: nothing else is offered."""
NAMING: Final = frozenset({"get", "explain", "report", "evidence", "approve", "reject", "cancel", "rerun", "follow"})
"""Commands whose first word is a case."""
SECONDS: Final = "2s"
"""Longest wait for the names of cases: somebody holds the Tab key."""
PLACES: Final = {
    "--namespace": "namespace",
    "-n": "namespace",
    "--context": "context",
    "--kubeconfig": "kubeconfig",
    "--as": "user",
}


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell for `inquest`; kubectl completes its plugin by itself.

    Parameters
    ----------
    shell
        Such as in `source <(inquest completion bash)`.
    """
    from inquest.cli.app import app

    print(app.generate_completion(prog_name="inquest", shell=shell))


def main() -> None:
    """Entry point of `kubectl_complete-inquest`."""
    from inquest.cli.app import app

    say(*candidates(app, sys.argv[1:]), NO_FILES)


def candidates(app: App, words: Sequence[str]) -> list[str]:
    """What the last word may become."""
    *before, last = words or [""]
    path, apps, rest = app.parse_commands(before)
    offered = _options(apps[-1]) if last.startswith("-") else _words(apps[-1], path, before, _positional(rest))
    return sorted(word for word in offered if word.startswith(last))


def _positional(rest: Sequence[str]) -> int:
    """How many words of a command stand there that are no options, roughly: an option's value counts with it."""
    return sum(
        not word.startswith("-") and not (number and rest[number - 1] in PLACES) for number, word in enumerate(rest)
    )


def _options(app: App) -> Iterator[str]:
    for argument in app.assemble_argument_collection():
        yield from (name for name in argument.names if name.startswith("--"))


def _words(app: App, path: Sequence[str], before: Sequence[str], given: int) -> Iterator[str]:
    command = path[0] if path else ""
    subcommands = [name for name in app if not name.startswith("-")]
    if subcommands:
        yield from subcommands if given == 0 else ()
    elif command == "list" and given == 0:
        yield from KINDS_BY_WORD
    elif command in NAMING and given == 0:
        yield from _cases(_place(before))


def _place(words: Sequence[str]) -> Place:
    """Where the words so far say that names are to be looked for."""
    found: dict[str, Any] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in PLACES:
            found[PLACES[option]] = value if equals else following
    return Place(**found, request_timeout=SECONDS)


def _cases(place: Place) -> list[str]:
    """Names of Investigations; none where the cluster does not say, for a Tab key is no place for errors."""

    async def names(at: Connection) -> list[str]:
        found = await at.kube.status.list(INVESTIGATION, at.namespace)
        return [str(one["metadata"]["name"]) for one in found]

    try:
        return at_place(place, names)
    except Exception:
        return []
