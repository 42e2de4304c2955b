"""Selectors of a query, and the matchers that are forced upon them: what a case may not see is not asked for.

A query is never trusted to name its own namespace. Its reader finds every selector, or refuses the query; whatever the
reader and the server could understand differently (comments, names in place of words of the language) is refused too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import re2

from inquest.errors import Declined

SECRETS: Final = "kube_secret_"
"""Metrics that name Secrets; names of Secrets are never read."""
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
STRING: Final = r'"(?:[^"\\\n]|\\.)*"|`[^`]*`'
QUOTED: Final = rf"{STRING}|'(?:[^'\\\n]|\\.)*'"
_MATCHER: Final = re.compile(
    rf"\s*(?:(?P<label>{_NAME}|{QUOTED})\s*(?P<op>=~|!~|!=|=)\s*(?P<value>{QUOTED})|(?P<metric>{QUOTED}))\s*"
)
_CLOSING: Final = re.compile(r"\s*\}")


@dataclass(frozen=True)
class Matcher:
    """`label="value"`; `literal` is the value, None where it is written with escapes that are not read here."""

    label: str
    op: str
    literal: str | None


@dataclass(frozen=True)
class Selector:
    """One selector, and where a matcher can be put into it."""

    metric: str
    """Empty where it is not named in plain words."""
    matchers: tuple[Matcher, ...]
    place: int
    """Offset behind the opening brace, or behind the name where there are no braces."""
    braces: bool

    @property
    def name(self) -> str:
        """The one metric that it can mean; empty where that may be several."""
        named = (one.literal for one in self.matchers if one.label == "__name__" and one.op == "=")
        return self.metric or next(named, "") or ""


@dataclass(frozen=True)
class Confinement:
    """Whose series are read: by a label, and by name what belongs to no tenant."""

    label: str
    namespaces: frozenset[str] | None
    """None: of all."""
    shared: tuple[str, ...] = ()
    """Metrics by glob that are read whole; rules recorded over others (`a:b:c`) are none of them."""

    def is_shared(self, metric: str) -> bool:
        """Whether a metric belongs to no tenant."""
        plain = bool(metric) and ":" not in metric and not metric.startswith(SECRETS)
        return plain and any(fnmatchcase(metric, glob) for glob in self.shared)

    def own(self) -> str:
        """The matcher of the case's namespaces; Declined where it has none."""
        if not self.namespaces:
            raise Declined("this case has no namespace of its own", self._shared_hint())
        names = sorted(self.namespaces)
        if not all(_NAMESPACE.fullmatch(name) for name in names):
            # A Signal says what it likes; here it would become a part of the query.
            raise Declined("a namespace of this case is no name of one", self._shared_hint())
        return f'{self.label}="{names[0]}"' if len(names) == 1 else f'{self.label}=~"{"|".join(names)}"'

    def matchers_for(self, selector: Selector) -> tuple[str, ...]:
        """What is added to a selector; Declined where it asks for what is not the case's."""
        if self.namespaces is None or self.is_shared(selector.name):
            return ()
        self.check(selector)
        return (self.own(),)

    def check(self, selector: Selector) -> None:
        """Declined where a selector names a foreign namespace outright; the answer would be empty for no reason."""
        for matcher in selector.matchers:
            self._check(matcher)

    def _check(self, matcher: Matcher) -> None:
        named = matcher.literal if matcher.label == self.label and matcher.op == "=" else None
        if named is not None and named not in (self.namespaces or ()):
            own = ", ".join(sorted(self.namespaces or ())) or "none"
            raise Declined(f"namespace {named!r} is not part of this case", f"namespaces of this case: {own}")

    def covers(self, selector: Selector) -> bool:
        """Whether what somebody else wrote may mean series of the case; what names only others does not."""
        return all(self._covers(one) for one in selector.matchers if one.label == self.label)

    def _covers(self, matcher: Matcher) -> bool:
        own = self.namespaces or ()
        if matcher.op == "=~":
            return any(_fits(matcher.literal, name) for name in own)
        return matcher.op != "=" or matcher.literal in own

    def said(self) -> str:
        """A sentence for whoever reads the answer: what is not in it proves nothing about others."""
        if self.namespaces is None:
            return ""
        return f"only what carries {self.label} {' or '.join(sorted(self.namespaces)) or '(none)'} was looked at"

    def _shared_hint(self) -> str:
        return f"metrics that can be read: {', '.join(self.shared) or 'none'}; others belong to namespaces"


def _fits(pattern: str | None, word: str) -> bool:
    """Whether a pattern means a word; what cannot be read means none."""
    try:
        return pattern is not None and re2.fullmatch(pattern, word) is not None
    except re2.error:
        return False


def matchers_of(text: str, start: int) -> tuple[tuple[Matcher, ...], int]:
    """The matchers from behind an opening brace on, and the offset behind the closing one."""
    found: list[Matcher] = []
    at = start
    while not _closes(text, at):
        hit = _MATCHER.match(text, at)
        if hit is None:
            raise decline_unreadable(text, at)
        found.append(_matcher(hit))
        at = hit.end()
        if text[at : at + 1] == ",":
            at += 1
        elif not _closes(text, at):
            raise decline_unreadable(text, at)
    return tuple(found), text.index("}", at) + 1


def _closes(text: str, at: int) -> bool:
    return _CLOSING.match(text, at) is not None


def _matcher(hit: re.Match[str]) -> Matcher:
    if hit["metric"]:
        return Matcher("__name__", "=", _plain(hit["metric"]))
    label = hit["label"] if hit["label"][0] not in "\"'`" else _plain(hit["label"]) or hit["label"]
    return Matcher(label, hit["op"], _plain(hit["value"]))


def _plain(quoted: str) -> str | None:
    """What stands between the quotes; None where it takes more than taking away the backslash of a sign."""
    inner = quoted[1:-1]
    if quoted.startswith("`") or "\\" not in inner:
        return inner
    escaped = re.findall(r"\\(.)", inner)
    return re.sub(r"\\(.)", r"\1", inner) if set(escaped) <= set("\\\"'") else None


def with_matchers(text: str, selectors: Sequence[Selector], added: Iterable[tuple[str, ...]]) -> str:
    """The query with matchers put into its selectors."""
    for selector, more in reversed(list(zip(selectors, added, strict=True))):
        if not more:
            continue
        joined = ",".join(more)
        tail = "," if selector.matchers else ""
        piece = f"{joined}{tail}" if selector.braces else f"{{{joined}}}"
        text = text[: selector.place] + piece + text[selector.place :]
    return text


def decline_unreadable(text: str, at: int) -> Declined:
    """The query is not sent, for nobody knows what it would read."""
    return Declined(
        f"the query cannot be read at position {at + 1}: {text[at : at + 20]!r}",
        "write plain selectors, functions and operators; comments are not accepted",
    )
