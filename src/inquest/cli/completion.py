"""Shell completion: the scripts for `inquest`, and what kubectl asks a plugin for `kubectl inquest …<TAB>`.

kubectl runs `kubectl_complete-inquest` with the words so far, the last one unfinished; each line of the answer is a
candidate, the last line a number of cobra's that says how the shell goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from cyclopts import App, Argument

from inquest.cli.cases.list import KINDS_BY_WORD
from inquest.cli.options import KubeOptions, Session, at_place
from inquest.cli.output import print_lines
from inquest.ports.kinds import INVESTIGATION, NAMESPACE
from inquest.ports.kubernetes import ResourceKind

NO_FILES: Final = ":4"
"""Cobra's ShellCompDirectiveNoFileComp: nothing else is offered."""
NAMING: Final = frozenset(
    {"get", "explain", "report", "evidence", "approve", "reject", "cancel", "rerun", "follow", "export"}
)
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

    print_lines(*candidates(app, sys.argv[1:]), NO_FILES)


def candidates(app: App, words: Sequence[str]) -> list[str]:
    """What the last word may become."""
    *before, last = words or [""]
    path, apps, rest = app.parse_commands(before)
    arguments = apps[-1].assemble_argument_collection() if apps[-1].default_command else ()
    option = _expecting(arguments, rest)
    if option is not None:
        offered = _values(option, before)
    elif last.startswith("-"):
        offered = (name for argument in arguments for name in argument.names if name.startswith("--"))
    else:
        offered = _words(apps[-1], path, before, _positional(arguments, rest))
    return sorted(word for word in offered if word.startswith(last))


def _expecting(arguments: Sequence[Argument], rest: Sequence[str]) -> Argument | None:
    """The option whose value the next word is."""
    word = rest[-1] if rest else ""
    return next((one for one in arguments if word.startswith("-") and word in one.names and one.token_count()[0]), None)


def _positional(arguments: Sequence[Argument], rest: Sequence[str]) -> int:
    """How many words of a command stand there that are neither options nor values of some."""
    return sum(
        not word.startswith("-") and _expecting(arguments, rest[:number]) is None for number, word in enumerate(rest)
    )


def _values(option: Argument, before: Sequence[str]) -> Iterable[str]:
    if "--namespace" in option.names:
        return _names(_place(before[:-1]), NAMESPACE)
    return option.get_choices() or ()


def _words(app: App, path: Sequence[str], before: Sequence[str], given: int) -> Iterable[str]:
    command = path[0] if path else ""
    subcommands = [name for name in app if not name.startswith("-")]
    if given:
        return ()
    if subcommands:
        return subcommands
    if command == "list":
        return KINDS_BY_WORD
    return _names(_place(before), INVESTIGATION) if command in NAMING else ()


def _place(words: Sequence[str]) -> KubeOptions:
    """Where the words so far say that names are to be looked for."""
    found: dict[str, Any] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in PLACES:
            found[PLACES[option]] = value if equals else following
    return KubeOptions(**found, request_timeout=SECONDS)


def _names(place: KubeOptions, kind: ResourceKind) -> list[str]:
    """Names of objects; none where the cluster does not say, for a Tab key is no place for errors."""

    async def names(at: Session) -> list[str]:
        found = await at.kube.status.list(kind, at.namespace if kind.namespaced else "")
        return [str(one["metadata"]["name"]) for one in found]

    try:
        return at_place(place, names)
    except Exception:
        return []
