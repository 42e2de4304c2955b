"""Every selector of a PromQL expression, by reading it as Prometheus does.

It is read in full: a name is a metric only where an operand may stand, so a word of the language in that place
(`sum`, `by`) is refused, and with it every extension of the language that might read more than it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from inquest.adapters.monitoring.selectors import (
    QUOTED,
    SECRETS,
    Confinement,
    Selector,
    decline_unreadable,
    matchers_of,
    with_matchers,
)
from inquest.errors import Declined

MOST_NESTED: Final = 40
MOST_CHARACTERS: Final = 100_000
"""Of what others wrote: a rule may be as long as an object of Kubernetes, a model's query is cut much earlier."""
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>\s+)
    |(?P<string>{QUOTED})
    |(?P<duration>(?:\d++(?:\.\d++)?+(?:ms|[smhdwy]))++(?![\w.:]))
    |(?P<number>(?:0[xX][0-9a-fA-F]++|(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?+\d++)?+)(?![\w.:]))
    |(?P<word>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<range>\[[0-9a-zA-Z.:\s]+\])
    |(?P<sign>==|!=|=~|!~|<=|>=|[-+*/%^<>=(){{}},@])
    """,
    re.VERBOSE,
)
"""What was read is not given back: else a long run of digits would be tried in every way."""
_AGGREGATIONS: Final = """
sum avg count min max group stddev stdvar topk bottomk count_values quantile limitk limit_ratio
"""
AGGREGATIONS: Final = frozenset(_AGGREGATIONS.split())
OPERATORS: Final = frozenset(("+", "-", "*", "/", "%", "^", "==", "!=", "<=", ">=", "<", ">"))
WORD_OPERATORS: Final = frozenset(("and", "or", "unless", "atan2"))
GROUPING: Final = frozenset(("by", "without"))
MATCHING: Final = frozenset(("on", "ignoring"))
JOINING: Final = frozenset(("group_left", "group_right"))
NUMBERS: Final = frozenset(("inf", "nan"))
KEYWORDS: Final = AGGREGATIONS | WORD_OPERATORS | GROUPING | MATCHING | JOINING | {"offset", "bool", "start", "end"}
_FUNCTIONS: Final = """
abs absent absent_over_time acos acosh asin asinh atan atanh avg_over_time ceil changes clamp clamp_max clamp_min
cos cosh count_over_time day_of_month day_of_week day_of_year days_in_month deg delta deriv exp first_over_time
floor histogram_avg histogram_count histogram_fraction histogram_quantile histogram_quantiles histogram_stddev
histogram_stdvar histogram_sum holt_winters double_exponential_smoothing hour idelta increase irate label_join
label_replace last_over_time ln log10 log2 mad_over_time max_over_time min_over_time minute month pi predict_linear
present_over_time quantile_over_time rad rate resets round scalar sgn sin sinh sort sort_by_label
sort_by_label_desc sort_desc sqrt stddev_over_time stdvar_over_time sum_over_time tan tanh time timestamp
ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time vector year
"""
FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
"""Functions of their arguments alone; `info` reads series that stand in no selector, and is none of them."""


@dataclass(frozen=True)
class Token:
    """A piece of the text: what it is, how it is written, where it begins."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """In small letters where it is a word: those of the language may be written in any case."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def end(self) -> int:
        return self.at + len(self.text)


def selectors_of(text: str) -> tuple[Selector, ...]:
    """All selectors of an expression, in their order; Declined where it cannot be read."""
    reader = _Reader(text)
    reader.expression()
    if reader.now.kind != "end":
        raise decline_unreadable(text, reader.now.at)
    return tuple(reader.found)


def selector_of(text: str) -> Selector:
    """The text as one selector and nothing else, as discovery takes it."""
    reader = _Reader(text)
    reader.selector()
    if reader.now.kind != "end":
        raise Declined("match must be one series selector", 'such as {job="api"} or http_requests_total')
    return reader.found[0]


def canonical_promql(text: str) -> str:
    """The text with single blanks between its pieces: equal for what differs in white space only."""
    return " ".join(token.text for token in _tokens(text)).strip()


def confine_promql(text: str, within: Confinement) -> str:
    """The expression, every selector of which reads only what the case may; Declined where that cannot be done."""
    return _bound(text, selectors_of(text), within)


def confined_selector(text: str, within: Confinement) -> str:
    """The same of one selector."""
    return _bound(text, (selector_of(text),), within)


def _bound(text: str, selectors: Sequence[Selector], within: Confinement) -> str:
    return with_matchers(text, selectors, [(*_without_secrets(one), *within.matchers_for(one)) for one in selectors])


def _without_secrets(selector: Selector) -> Iterator[str]:
    """Names of Secrets are in metrics too; a selector that may mean several metrics means no such one."""
    if selector.name.startswith(SECRETS):
        raise Declined(
            f"metrics {SECRETS}* are blocked: they name Secrets",
            "Secrets are never read: look at the pod's events; secretKeyRef and volumes name the Secret and the key",
        )
    if not selector.name:
        yield f'__name__!~"{SECRETS}.+"'


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tuple(_tokens(text))
        self._at = 0
        self._nested = 0
        self.found: list[Selector] = []

    @property
    def now(self) -> Token:
        return self._tokens[self._at]

    def expression(self) -> None:
        """Operands with operators between them."""
        self._operand()
        while self.now.text in OPERATORS or self.now.word in WORD_OPERATORS:
            self._at += 1
            self._operator_words()
            self._operand()

    def selector(self) -> None:
        """`name`, `name{…}` or `{…}`."""
        metric = ""
        if self.now.kind == "word" and self.now.word not in KEYWORDS | NUMBERS:
            metric, end = self.now.text, self.now.end
            self._at += 1
            if self.now.text != "{":
                self.found.append(Selector(metric, (), end, braces=False))
                return
        if self.now.text != "{":
            raise self._fault()
        self._braces(metric)

    def _braces(self, metric: str) -> None:
        place = self.now.end
        matchers, end = matchers_of(self._text, place)
        self.found.append(Selector(metric, matchers, place, braces=True))
        while self.now.at < end and self.now.kind != "end":
            self._at += 1

    # --- operands

    def _operand(self) -> None:
        while self.now.text in ("+", "-"):
            self._at += 1
        self._primary()
        while self._more():
            pass

    def _primary(self) -> None:
        token = self.now
        if token.kind in ("number", "duration", "string") or token.word in NUMBERS:
            self._at += 1
        elif token.text == "(":
            self._inside(self.expression)
        elif token.word in AGGREGATIONS:
            self._aggregation()
        elif token.kind == "word" and self._tokens[min(self._at + 1, len(self._tokens) - 1)].text == "(":
            self._call()
        else:
            self.selector()

    def _aggregation(self) -> None:
        """`sum by (a) (…)`, `sum(…) by (a)`."""
        self._at += 1
        grouped = self._grouping()
        self._inside(self._arguments)
        if not grouped:
            self._grouping()

    def _grouping(self) -> bool:
        if self.now.word not in GROUPING:
            return False
        self._at += 1
        self._labels()
        return True

    def _call(self) -> None:
        if self.now.text not in FUNCTIONS:
            raise Declined(f"there is no function {self.now.text[:40]!r} here", "use functions of PromQL")
        self._at += 1
        self._inside(self._arguments)

    def _arguments(self) -> None:
        if self.now.text == ")":
            return
        self.expression()
        while self.now.text == ",":
            self._at += 1
            self.expression()

    def _inside(self, read: Callable[[], None]) -> None:
        self._expect("(")
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise Declined("the query is nested too deeply", "write it in fewer brackets")
        read()
        self._nested -= 1
        self._expect(")")

    # --- what follows an operand or an operator

    def _more(self) -> bool:
        """A range, an offset or a moment."""
        if self.now.kind == "range":
            self._at += 1
            return True
        if self.now.word == "offset":
            self._at += 1
            self._figure("duration", "number")
            return True
        if self.now.text == "@":
            self._at += 1
            self._moment()
            return True
        return False

    def _moment(self) -> None:
        if self.now.word in ("start", "end"):
            self._at += 1
            self._expect("(")
            self._expect(")")
        else:
            self._figure("number")

    def _figure(self, *kinds: str) -> None:
        if self.now.text in ("+", "-"):
            self._at += 1
        if self.now.kind not in kinds:
            raise self._fault()
        self._at += 1

    def _operator_words(self) -> None:
        """`bool`, `on (a)`, `group_left (b)`."""
        if self.now.word == "bool":
            self._at += 1
        if self.now.word in MATCHING:
            self._at += 1
            self._labels()
            if self.now.word in JOINING:
                self._at += 1
                if self.now.text == "(":
                    self._labels()

    def _labels(self) -> None:
        self._expect("(")
        while self.now.text != ")":
            if self.now.kind not in ("word", "string"):
                raise self._fault()
            self._at += 1
            if self.now.text != ")":
                self._expect(",")
        self._expect(")")

    def _expect(self, sign: str) -> None:
        if self.now.text != sign:
            raise self._fault()
        self._at += 1

    def _fault(self) -> Declined:
        return decline_unreadable(self._text, self.now.at)


def _tokens(text: str) -> Iterator[Token]:
    if len(text) > MOST_CHARACTERS:
        raise Declined(f"the query is longer than {MOST_CHARACTERS} characters", "ask for less")
    at = 0
    while at < len(text):
        hit = _TOKEN.match(text, at)
        if hit is None:
            raise decline_unreadable(text, at)
        if hit.lastgroup != "space":
            yield Token(str(hit.lastgroup), hit[0], at)
        at = hit.end()
    yield Token("end", "", at)
