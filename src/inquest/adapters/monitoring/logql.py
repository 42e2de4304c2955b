"""Every stream selector of a LogQL query: each pair of braces outside of texts is one.

Texts are what could hide a brace, so whatever begins one in a way of its own (comments, single quotes) is refused.
"""

from __future__ import annotations

import re
from typing import Final

from inquest.adapters.monitoring.selectors import (
    STRING,
    Confinement,
    Selector,
    decline_unreadable,
    matchers_of,
    with_matchers,
)
from inquest.errors import Declined

_PIECE: Final = re.compile(rf"(?P<string>{STRING})|(?P<brace>\{{)|(?P<other>[^\"'`{{}}#\\/]+|/(?![/*]))")

_TEXTS: Final = re.compile(STRING)


def selectors_of(text: str) -> tuple[Selector, ...]:
    """All stream selectors; Declined where the text cannot be read, or has none."""
    found: list[Selector] = []
    at = 0
    while at < len(text):
        hit = _PIECE.match(text, at)
        if hit is None:
            raise decline_unreadable(text, at)
        at = hit.end()
        if hit["brace"]:
            matchers, end = matchers_of(text, at)
            if "'" in _TEXTS.sub("", text[at:end]):
                raise decline_unreadable(text, at)
            found.append(Selector("", matchers, at, braces=True))
            at = end
    if not found:
        raise Declined("the query selects no stream", 'begin with a selector such as {app="api"}')
    return tuple(found)


def confine_logql(text: str, within: Confinement) -> str:
    """The query, every selector of which reads only streams of the case."""
    selectors = selectors_of(text)
    return with_matchers(text, selectors, [within.matchers_for(one) for one in selectors])
