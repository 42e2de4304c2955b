"""Find regular expressions that can take far longer than their text is long: `python -m hack.backtracking`.

Python's engine goes back over a text, so an expression that can read the same text in many ways may take for ever on
one that it does not match. Each literal expression of `src` becomes a position automaton. It is dangerous where one
loop can read a word in two ways (exponential), and where two loops in a row can share a word (a power of the length).
Look-around and back-references count as nothing, which can only find too much.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sre = importlib.import_module("re._constants")
"""Imported by name: type checkers do not agree whether the two private modules are there."""
parser = importlib.import_module("re._parser")
SOURCE: Final = Path(__file__).resolve().parents[1] / "src" / "inquest"
CALLS: Final = frozenset({"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
LOOP: Final = 32
"""A repeat that may go on so often counts as one without end."""
CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}
SAMPLES: Final = "\n\t aZ0_-.é/"


@dataclass(frozen=True)
class Part:
    """A piece of an expression: whether it may be empty, where it begins and where it ends."""

    empty: bool
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


NOTHING: Final = Part(True)


@dataclass
class Automaton:
    """One position for each character class; `follow` counts the ways from one to the next."""

    flags: int
    letters: str
    masks: list[int] = field(default_factory=list)
    follow: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, op: Any, value: Any) -> Part:
        """A position for one class."""
        self.masks.append(sum(1 << n for n, char in enumerate(self.letters) if self._holds(op, value, char)))
        here = (len(self.masks) - 1,)
        return Part(False, here, here)

    def _holds(self, op: Any, value: Any, char: str) -> bool:
        forms = {char, char.lower(), char.upper()} if self.flags & re.IGNORECASE else {char}
        if op is sre.ANY:
            return char != "\n" or bool(self.flags & re.DOTALL)
        if op is sre.NOT_LITERAL:
            return chr(value) not in forms
        if op is sre.IN:
            negated = value[0][0] is sre.NEGATE
            return negated != any(self._holds(kind, one, char) for kind, one in value[negated:])
        if op is sre.RANGE:
            return any(value[0] <= ord(form) <= value[1] for form in forms if len(form) == 1)
        if op is sre.CATEGORY:
            return re.match(CATEGORIES[value], char) is not None
        return chr(value) in forms

    def joined(self, one: Part, other: Part) -> Part:
        """One after the other."""
        self.follow.update((a, b) for a in one.last for b in other.first)
        return Part(
            one.empty and other.empty,
            (*one.first, *(other.first if one.empty else ())),
            (*other.last, *(one.last if other.empty else ())),
        )

    def sequence(self, items: Iterable[Any]) -> Part:
        """All in a row."""
        found = NOTHING
        for op, value in items:
            found = self.joined(found, self.item(op, value))
        return found

    def item(self, op: Any, value: Any) -> Part:
        """One piece."""
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return self.add(op, value)
        if op is sre.SUBPATTERN:
            return self.within(value[1], value[3])
        if op is sre.ATOMIC_GROUP:
            return self.sequence(value)
        if op is sre.BRANCH:
            parts = [self.sequence(one) for one in value[1]]
            return Part(
                any(one.empty for one in parts),
                tuple(p for one in parts for p in one.first),
                tuple(p for one in parts for p in one.last),
            )
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(*value)
        if op is sre.POSSESSIVE_REPEAT:
            # What it has read it keeps: one way only.
            low, _, body = value
            return replace_empty(self.sequence(body), low == 0)
        return NOTHING

    def within(self, flags: int, items: Any) -> Part:
        """A group with flags of its own."""
        before, self.flags = self.flags, self.flags | flags
        try:
            return self.sequence(items)
        finally:
            self.flags = before

    def repeat(self, low: int, high: Any, items: Any) -> Part:
        """So often."""
        found = NOTHING
        for _ in range(min(low, 3) - 1):
            found = self.joined(found, self.sequence(items))
        body = self.sequence(items)
        if high is sre.MAXREPEAT or high >= LOOP:
            self.follow.update((a, b) for a in body.last for b in body.first)
            return self.joined(found, replace_empty(body, body.empty or low == 0))
        found = self.joined(found, replace_empty(body, body.empty or low == 0))
        for _ in range(min(high - max(low, 1), 3)):
            found = self.joined(found, replace_empty(self.sequence(items), True))
        return found


def replace_empty(part: Part, empty: bool) -> Part:
    """The same, which may or may not be empty."""
    return Part(empty, part.first, part.last)


def automaton(pattern: str, flags: int = 0) -> Automaton:
    """Of an expression; raises re.error where it is none."""
    tree = parser.parse(pattern, flags)
    found = Automaton(tree.state.flags, "".join(sorted(set(SAMPLES) | set(_letters(tree)))))
    found.sequence(tree)
    return found


def _letters(tree: Any) -> Iterator[str]:
    """Characters at which classes of the expression begin or end."""
    if isinstance(tree, tuple) and len(tree) == 2 and tree[0] in (sre.LITERAL, sre.NOT_LITERAL):
        yield chr(tree[1])
    elif isinstance(tree, tuple) and len(tree) == 2 and tree[0] is sre.RANGE:
        yield from map(chr, tree[1])
    elif isinstance(tree, tuple | list | parser.SubPattern):
        for one in tree:
            yield from _letters(one)


def components(nodes: Iterable[Any], edges: dict[Any, list[Any]]) -> dict[Any, int]:
    """The strongly connected component of each node (Kosaraju, without recursion)."""
    back: dict[Any, list[Any]] = {}
    for one, others in edges.items():
        for other in others:
            back.setdefault(other, []).append(one)
    seen: set[Any] = set()
    order = [node for root in nodes for node in _finished(root, edges, seen)]
    found: dict[Any, int] = {}
    for number, root in enumerate(reversed(order)):
        todo = [root]
        while todo:
            node = todo.pop()
            if node not in found:
                found[node] = number
                todo += back.get(node, ())
    return found


def _finished(root: Any, edges: dict[Any, list[Any]], seen: set[Any]) -> Iterator[Any]:
    """What can be reached from there and was not seen before, each after all that follows it."""
    todo = [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            yield node
        elif node not in seen:
            seen.add(node)
            todo.append((node, True))
            todo += [(after, False) for after in edges.get(node, ()) if after not in seen]


def fault(pattern: str, flags: int = 0) -> str:
    """`exponential`, `power`, or empty where the expression reads any word in one way only."""
    made = automaton(pattern, flags)
    after: dict[int, list[int]] = {}
    for one, other in made.follow:
        after.setdefault(one, []).append(other)
    block = components(range(len(made.masks)), after)
    inner = {one: [other for other in after.get(one, ()) if block[other] == block[one]] for one in block}
    loops = [one for one in block if inner[one]]
    if any(count > 1 and block[one] == block[other] for (one, other), count in made.follow.items()):
        return "exponential"
    if _reads_twice(made, inner, loops):
        return "exponential"
    return "power" if _shares(made, after, inner, block, loops) else ""


def _reads_twice(made: Automaton, inner: dict[int, list[int]], loops: list[int]) -> bool:
    """Whether a loop can leave a position by two ways and be back there with both, over the same word."""
    edges: dict[Any, list[Any]] = {}
    todo = [(one, one) for one in loops]
    while todo:
        pair = todo.pop()
        if pair in edges:
            continue
        steps = ((a, b) for a in inner[pair[0]] for b in inner[pair[1]] if made.masks[a] & made.masks[b])
        edges[pair] = list(steps)
        todo += edges[pair]
    block = components(edges, edges)
    same = {block[pair] for pair in edges if pair[0] == pair[1] and edges[pair]}
    return any(block[pair] in same for pair in edges if pair[0] != pair[1])


def _shares(
    made: Automaton, after: dict[int, list[int]], inner: dict[int, list[int]], block: dict[int, int], loops: list[int]
) -> bool:
    """Whether one loop, the way from it to a later loop, and that one can all read the same word."""
    pairs = ((one, other) for one in loops for other in loops if block[one] != block[other])
    return any(_shared(made.masks, after, inner, one, other) for one, other in pairs)


def _shared(masks: list[int], after: dict[int, list[int]], inner: dict[int, list[int]], one: int, other: int) -> bool:
    seen: set[tuple[int, int, int]] = set()
    todo = [(one, one, other)]
    while todo:
        a, b, c = todo.pop()
        steps = (
            (x, y, z) for x in inner[a] for z in inner[c] for y in after.get(b, ()) if masks[x] & masks[y] & masks[z]
        )
        fresh = set(steps) - seen
        if (one, other, other) in fresh:
            return True
        seen |= fresh
        todo += fresh
    return False


@dataclass(frozen=True)
class Use:
    """One call of Python's engine."""

    path: str
    line: int
    pattern: str
    flags: int = 0


ACCEPTED: Final[dict[tuple[str, str], str]] = {
    ("core/redaction/documents.py", r"^(?P<head>(?P<indent>"): "back-references read as nothing; it goes line by line",
    ("core/redaction/keyvalues.py", r"^(?P<head>(?P<indent>"): "back-references read as nothing; it goes line by line",
    ("core/redaction/keyvalues.py", r"^(?P<head>[ \t]*(?:-"): "back-references read as nothing; it goes line by line",
    ("core/redaction/keyvalues.py", r"(?:^|\n|[ \t]{2})"): "run over the short text before a key",
    ("core/redaction/credentials.py", r"(?P<kept>\b(?:(?:mysql"): "every repeat is bounded by 200",
    ("core/llm/reply/extraction.py", r"\s{0,3}#{1,6}"): "the line has 80 characters at most",
    ("replay/scoring.py", r"\(?\??\("): "run over one step of a path in a recorded case's own expectation",
    ("core/diagnosis/detectors/storage/disk_full.py", r"node was low"): "what follows the loops cannot fail",
    ("core/diagnosis/detectors/logs/words.py", ""): "lines are cut, and nearly all repeats are bounded",
    ("core/diagnosis/detectors/startup/probes.py", r"\b(?:started|"): "lines are cut, the repeats bounded by 60",
    ("core/llm/recommendation.py", r"(?i)(?:^|\s)(?:-{3"): "what follows the loops cannot fail",
    (
        "core/diagnosis/detectors/network/network_reading.py",
        r"lookup [^\n]",
    ): "lines are cut, the repeats bounded by 300",
    ("core/diagnosis/detectors/network/service_port.py", r"\b(?:listen"): "lines are cut, the repeats bounded by 60",
    ("core/diagnosis/detectors/scheduling/unschedulable.py", r"^(?P<fit>"): "the message is cut at 4,000 characters",
    ("core/evidence/short_forms.py", r"^\S*\d\d"): "what follows the loops cannot fail",
}
"""By file and beginning of the expression: why it is harmless all the same."""


def uses() -> Iterator[Use]:
    """Every literal expression of the source, and every one that is compiled when its module is loaded."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _is_engine(node.func) and node.args:
                given = node.args[0]
                if isinstance(given, ast.Constant) and isinstance(given.value, str):
                    yield Use(str(path.relative_to(SOURCE)), node.lineno, given.value, _flags(node))
    yield from _compiled_on_load()


def _is_engine(func: ast.expr) -> bool:
    named = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    return named and func.value.id == "re" and func.attr in CALLS  # type: ignore[attr-defined]


def _flags(node: ast.Call) -> int:
    given = [*node.args[1:], *(word.value for word in node.keywords)]
    parts = (part for one in given for part in ast.walk(one) if isinstance(part, ast.Attribute))
    flags = 0
    for part in parts:
        flags |= int(getattr(re, part.attr, 0))
    return flags


def _compiled_on_load() -> list[Use]:
    """Of modules that are loaded here for the first time."""
    found: list[Use] = []
    plain = re.compile

    def noted(pattern: Any, flags: Any = 0) -> Any:
        frame = sys._getframe(1)
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE) and isinstance(pattern, str):
            found.append(Use(str(path.relative_to(SOURCE)), frame.f_lineno, pattern, int(flags)))
        return plain(pattern, flags)

    re.compile = noted
    try:
        for module in pkgutil.walk_packages([str(SOURCE)], "inquest."):
            # The migrations' environment is loaded by their tool alone.
            if not module.name.endswith(("__main__", "migrations.env")):
                importlib.import_module(module.name)
    finally:
        re.compile = plain
    return found


def dangerous() -> Iterator[tuple[Use, str]]:
    """What is dangerous and not accepted."""
    for use in sorted(set(uses()), key=lambda one: (one.path, one.line)):
        why = fault(use.pattern, use.flags)
        if why and not _is_accepted(use, why):
            yield use, why


def _is_accepted(use: Use, why: str) -> bool:
    """An exponential one only where it is none: back-references keep its ways apart."""
    harmless = why == "power" or "(?P=" in use.pattern
    return harmless and any(use.path == path and use.pattern.startswith(begin) for path, begin in ACCEPTED)


def main() -> int:
    """Print what is dangerous; 1 where there is any."""
    found = list(dangerous())
    for use, why in found:
        print(f"src/inquest/{use.path}:{use.line}: {why}: {use.pattern}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
