"""What a line of kubectl would do: read, write, or something that no agent may do (behaviours, section 15.4).

Nothing here is ever run. Advice holds command text, and whoever reads it is told what it does. In doubt it writes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class CommandEffect(StrEnum):
    """What a command does."""

    READ = "read"
    WRITE = "write"
    REFUSED = "refused"


@dataclass(frozen=True)
class Command:
    """One line, judged; `namespace` is empty where none is named."""

    effect: CommandEffect
    namespace: str = ""
    high_risk: bool = False


_READS: Final = frozenset(
    {
        *("get", "describe", "logs", "top", "events", "explain", "diff", "version"),
        *("api-resources", "api-versions", "cluster-info"),
        *("auth can-i", "auth whoami", "rollout history", "config current-context", "config get-contexts"),
    }
)
_WRITES: Final = frozenset(
    {
        *("annotate", "apply", "autoscale", "certificate", "cordon", "create", "delete", "drain", "expose", "label"),
        *("patch", "replace", "run", "scale", "set", "taint", "uncordon"),
        *("rollout pause", "rollout restart", "rollout resume", "rollout undo"),
    }
)
"""Every other verb is refused: a plugin, or one that opens a way into the cluster."""
_REFUSED: Final = frozenset({"create token", "cluster-info dump"})
_NESTED: Final = frozenset({"auth", "rollout", "config", "set", "create", "cluster-info", "top", "certificate"})
_BLOCKED: Final = re.compile(r"(?i)^secrets?(?:list)?(?:[./].*)?$")
_IDENTITY: Final = frozenset(
    {
        *("--server", "-s", "--kubeconfig", "--token", "--as", "--as-group", "--as-uid", "--context", "--cluster"),
        *("--user", "--client-certificate", "--client-key", "--certificate-authority", "--insecure-skip-tls-verify"),
        *("--tls-server-name", "--username", "--password", "--raw", "--kustomize", "-k", "--watch", "-w"),
        *("--watch-only", "--follow"),
    }
)
"""Who one is, where one goes, and what does not end: refused whatever the verb."""
_VALUED: Final = frozenset(
    {
        *("-n", "--namespace", "-o", "--output", "-l", "--selector", "-f", "--filename", "-c", "--container"),
        *("--field-selector", "--since", "--since-time", "--tail", "--sort-by", "--limit-bytes", "--for", "--types"),
        *("--replicas", "--revision", "--to-revision", "--type", "-p", "--patch", "--timeout", "--grace-period"),
        *("--image", "--port", "--chunk-size", "--template", "--subresource", "--limits", "--requests", "--resource"),
    }
)
_BARE: Final = frozenset(
    {
        *("-A", "--all-namespaces", "-R", "--recursive", "--all", "--force", "--previous", "--timestamps", "--prefix"),
        *("--show-labels", "--no-headers", "--ignore-not-found", "--all-containers", "--client", "--show-kind"),
        *("--ignore-daemonsets", "--delete-emptydir-data", "--overwrite", "--now", "--containers", "--list", "-i"),
        *("--wait", "--cascade", "--dry-run", "--server-side", "--local", "--record", "--show-managed-fields"),
        *("-t", "--tty", "--stdin", "-q", "--quiet"),
    }
)
_SHORT: Final = {flag[1]: flag in _VALUED for flag in _VALUED | _BARE | {"-w", "-k", "-s"} if len(flag) == 2} | {
    "f": True,
    "s": True,
    "k": True,
}
_BARE_OF: Final = {"logs": frozenset("pf")}
"""Letters that take a value elsewhere and none behind these verbs: `logs -p` is the run before."""
_COMPOSITE: Final = re.compile(r"[;&|`\n<>]|\$[({A-Za-z_]")
_RISKY_KINDS: Final = re.compile(
    r"(?i)^(namespaces?|ns|persistentvolumes?|pv|persistentvolumeclaims?|pvc|customresourcedefinitions?|crds?)(?:[./].*)?$"
)


@dataclass(frozen=True)
class _CommandLine:
    """The words and flags of a command, as kubectl takes them apart."""

    words: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]
    unknown: bool

    @property
    def verb(self) -> str:
        first = self.words[0] if self.words else ""
        return " ".join(self.words[:2]) if first in _NESTED and len(self.words) > 1 else first

    def value(self, *names: str) -> str:
        """Of the last of these flags."""
        return next((value for name, value in reversed(self.flags) if name in names), "")

    def has(self, *names: str) -> bool:
        return any(name in names for name, _ in self.flags)


def judged(text: str) -> Command:
    """What one line does; `kubectl` at its begin may be missing."""
    try:
        words = shlex.split(text.strip())
    except ValueError:
        return Command(CommandEffect.WRITE)
    line = _parsed(words[1:] if words[:1] == ["kubectl"] else words)
    effect = next((effect for rule, effect in _RULES if rule(line)), CommandEffect.REFUSED)
    if effect is CommandEffect.READ and (_COMPOSITE.search(text) or line.unknown):
        effect = CommandEffect.WRITE
    return Command(effect, line.value("-n", "--namespace"), effect is CommandEffect.WRITE and _is_risky(line))


def _parsed(words: list[str]) -> _CommandLine:
    rest, plain, flags, unknown = list(words), [], [], False
    while rest:
        word = rest.pop(0)
        if word == "--":
            plain += rest
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
            continue
        found, known = _flags(word, rest, _BARE_OF.get(plain[0] if plain else "", frozenset()))
        flags += found
        unknown = unknown or not known
    return _CommandLine(tuple(plain), tuple(flags), unknown)


def _flags(word: str, rest: list[str], bare: frozenset[str]) -> tuple[list[tuple[str, str]], bool]:
    """A long flag, or a bundle of short ones; the value of the last may be the next word."""
    if word.startswith("--"):
        name, has_value, value = word.partition("=")
        if not has_value and name in _VALUED | (_IDENTITY - {"--watch", "--watch-only", "--follow"}) and rest:
            value = rest.pop(0)
        return [(name, value)], name in _VALUED | _BARE | _IDENTITY
    return _short_flags(word[1:], rest, bare)


def _short_flags(letters: str, rest: list[str], bare: frozenset[str]) -> tuple[list[tuple[str, str]], bool]:
    found: list[tuple[str, str]] = []
    for at, letter in enumerate(letters):
        if letter not in _SHORT:
            return [*found, (f"-{letter}", "")], False
        if _SHORT[letter] and letter not in bare:
            value = letters[at + 1 :].removeprefix("=") or (rest.pop(0) if rest else "")
            return [*found, (f"-{letter}", value)], True
        found.append((f"-{letter}", ""))
    return found, True


# --- rules, the first that holds decides ------------------------------------------------------------------


def _is_refused(line: _CommandLine) -> bool:
    follows = line.verb == "logs" and line.has("-f")
    return line.verb in _REFUSED or line.has(*_IDENTITY) or follows or _names_blocked(line)


def _names_blocked(line: _CommandLine) -> bool:
    """A Secret by any word that stands where a kind may stand: behind the verb, and before a slash."""
    kinds = (*line.words[1:3], *(word for word in line.words[3:] if "/" in word))
    return any(_BLOCKED.match(piece) for word in kinds for piece in word.split(","))


def _reads(line: _CommandLine) -> bool:
    return line.verb in _READS or line.words[:1] == ("top",)


def _only_tries(line: _CommandLine) -> bool:
    return _is_write(line) and line.value("--dry-run") in ("client", "server")


def _is_write(line: _CommandLine) -> bool:
    return line.verb in _WRITES or (line.words[:1] or ("",))[0] in _WRITES


_RULES: Final = (
    (_is_refused, CommandEffect.REFUSED),
    (_reads, CommandEffect.READ),
    (_only_tries, CommandEffect.READ),
    (_is_write, CommandEffect.WRITE),
)


def _is_risky(line: _CommandLine) -> bool:
    deletes_much = line.verb == "delete" and any(_RISKY_KINDS.match(word) for word in line.words[1:2])
    wide = line.has("--all", "-A", "--all-namespaces", "--force") or line.value("--grace-period") == "0"
    return deletes_much or wide or line.verb in ("drain", "taint")


# --- in a text ----------------------------------------------------------------------------------------------

_INLINE: Final = re.compile(r"`(kubectl [^`\n]{1,500})`")


def label_commands(text: str) -> str:
    """A text in which every command in backticks says what it does."""
    return _INLINE.sub(lambda found: f"`{found[1]}` ({_label(judged(found[1]))})", text)


def _label(found: Command) -> str:
    return ", ".join(_words(found))


def _words(found: Command) -> Iterator[str]:
    yield {CommandEffect.READ: "reads", CommandEffect.WRITE: "changes", CommandEffect.REFUSED: "not for an agent"}[
        found.effect
    ]
    if found.high_risk:
        yield "high risk"
