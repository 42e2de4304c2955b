"""Whether evidence says what a claim quotes, and how sure that makes a diagnosis."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from inquest.api.findings import ClaimRole, ClaimVerdict
from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import same_object
from inquest.core.diagnosis.categories import SYMPTOMS, UNKNOWN
from inquest.core.evidence.evidence import Citation, Evidence, Finding

NO_CLAIMS_CAP: Final = 0.5
"""What claims of which none is supported leave of a figure."""
UNSUPPORTED_CAP: Final = 0.5
CONTRADICTED_CAP: Final = 0.6
PROSE_CONFIDENCE: Final = 0.5
"""Of a cause that only prose names."""
HIGH_CERTAINTY: Final = 0.9
"""From here on a finding can contradict a model."""

_EXIT_137: Final = re.compile(r"\bexit[ _]?code\W{0,5}137\b", re.IGNORECASE)
_OUT_OF_MEMORY: Final = re.compile(r"(?<![a-z])oom|out of memory", re.IGNORECASE)


def speaks_against(category: str, evidence: Iterable[Evidence]) -> bool:
    """Whether evidence speaks against a category: 137 without a word of memory is a liveness kill or an eviction."""
    if category != "OOMKilled":
        return False
    texts = [item.text for item in evidence if item.holds]
    return any(map(_EXIT_137.search, texts)) and not any(map(_OUT_OF_MEMORY.search, texts))


@dataclass(frozen=True)
class CheckedClaim:
    """A claim and what its quotes are worth; `note` names bad citations."""

    text: str
    role: ClaimRole
    citations: tuple[Citation, ...]
    verdict: ClaimVerdict
    note: str = ""

    @property
    def evidence(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(citation.id for citation in self.citations))

    @property
    def quote(self) -> str:
        return self.citations[0].quote if self.citations else ""


@dataclass(frozen=True)
class CheckedClaims:
    """All claims that got a verdict; `claims` are those that are kept and shown."""

    claims: tuple[CheckedClaim, ...] = ()
    judged: int = 0
    supported: int = 0
    dropped: int = 0
    """Unsupported ones of a role that is not the root cause."""
    proven: bool = False
    """A supported claim rests on an API fact: what execution needs."""

    @property
    def root_cause_unsupported(self) -> bool:
        return any(_is_lost(claim) and claim.role is ClaimRole.ROOT_CAUSE for claim in self.claims)


def check_claims(
    claims: Iterable[RawClaim], evidence: Iterable[Evidence], unreadable: Collection[str] = ()
) -> CheckedClaims:
    """Whether every quote stands where it is said to stand; `unreadable` are ids whose text is away now."""
    stored = {item.id: item for item in evidence}
    looked_up = _Library(stored, frozenset(unreadable))
    checked = [_checked(claim, looked_up) for claim in claims]
    kept = tuple(claim for claim in checked if not _is_dropped(claim, unreadable))
    supported = [claim for claim in checked if claim.verdict is ClaimVerdict.SUPPORTED]
    return CheckedClaims(
        claims=kept,
        judged=len(checked),
        supported=len(supported),
        dropped=len(checked) - len(kept),
        proven=any(stored[name].api_fact for claim in supported for name in claim.evidence),
    )


def _is_lost(claim: CheckedClaim) -> bool:
    return claim.verdict is ClaimVerdict.UNSUPPORTED


def _is_dropped(claim: CheckedClaim, unreadable: Collection[str]) -> bool:
    if not _is_lost(claim) or claim.role is ClaimRole.ROOT_CAUSE:
        return False
    return not any(name in unreadable for name in claim.evidence)


def _checked(claim: RawClaim, library: _Library) -> CheckedClaim:
    faults = [library.fault(citation) for citation in claim.citations]
    bad = tuple(dict.fromkeys(fault for fault in faults if fault))
    verdict = _verdict(len([fault for fault in faults if not fault]), len(faults))
    return CheckedClaim(claim.statement, _ROLES[claim.role], claim.citations, verdict, "; ".join(bad)[:200])


def _verdict(held: int, cited: int) -> ClaimVerdict:
    if not held:
        return ClaimVerdict.UNSUPPORTED
    return ClaimVerdict.SUPPORTED if held == cited else ClaimVerdict.PARTIAL


_ROLES: Final[Mapping[str, ClaimRole]] = {
    "root_cause": ClaimRole.ROOT_CAUSE,
    "contributing": ClaimRole.CONTRIBUTING,
    "symptom": ClaimRole.SYMPTOM,
    "ruled_out": ClaimRole.RULED_OUT,
}

NOTES: Final = frozenset({"get_runbook"})
"""Tools whose answers hold what an author wrote: they prove nothing about the cluster."""
READ_AGAIN: Final = "read_evidence"


@dataclass(frozen=True)
class _Library:
    """The evidence of one investigation; texts are folded once, however many claims cite them."""

    stored: Mapping[str, Evidence]
    unreadable: frozenset[str]
    folded: dict[str, _Text] = field(default_factory=dict)

    def fault(self, citation: Citation) -> str:
        """Why a citation does not hold; empty when it does."""
        found = self.stored.get(citation.id)
        if citation.id in self.unreadable:
            return f"{citation.id}: cannot be read now"
        if found is None:
            return f"{citation.id}: no such evidence"
        source = self._source(found)
        if not found.holds or not source.holds:
            return f"{citation.id}: the read gave nothing ({source.status.value})"
        if source.tool in NOTES:
            return f"{citation.id}: {source.tool} reads nothing of the cluster"
        return "" if self._text(found).holds(citation.quote) else f"{citation.id}: the quote does not stand there"

    def _source(self, found: Evidence) -> Evidence:
        """Where a page of stored text comes from; reading a text again makes no more of it."""
        for _ in range(len(self.stored)):
            if found.tool != READ_AGAIN:
                break
            found = self.stored.get(str(found.arguments.get("id")), found)
        return found

    def _text(self, found: Evidence) -> _Text:
        if found.id not in self.folded:
            self.folded[found.id] = _Text.of(found)
        return self.folded[found.id]


def stands(quote: str, evidence: Evidence) -> bool:
    """Whether a quote stands in a piece of evidence, in what was stored or in what was shown."""
    return evidence.holds and _Text.of(evidence).holds(quote)


@dataclass(frozen=True)
class _Text:
    """Evidence in the forms in which quotes are looked for."""

    plain: tuple[str, ...]
    compact: tuple[str, ...]

    @classmethod
    def of(cls, found: Evidence) -> _Text:
        texts = tuple(dict.fromkeys(text for text in (found.text, found.shown) if text))
        compact = (_compact(text) for text in texts)
        return cls(tuple(_folded(text) for text in texts), tuple(text for text in compact if text))

    def holds(self, quote: str) -> bool:
        wanted = _folded(quote).strip(_QUOTATION_MARKS)
        if not _PLACEHOLDER.sub("", wanted).strip(_EMPTY_SHELL):
            return False
        if any(_occurs(wanted, text) for text in self.plain):
            return True
        tight = _tight(_compact(quote) or wanted)
        return any(_occurs(tight, text) for text in self.compact)


_QUOTATION_MARKS: Final = "\"'`\u2018\u2019\u201c\u201d\u00ab\u00bb\u201e "
_PLACEHOLDER: Final = re.compile(r"\[REDACTED[^\]]*\]")
_EMPTY_SHELL: Final = " \"'`:=,;.{}[]()-"
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_NUMBERS: Final = re.compile(r"(?<![\w.])[-+]?[0-9]+(?:\.[0-9]+)?(?!\w|\.[0-9])")
_JOINTS: Final = re.compile(r"\s*([:,{}\[\]])\s*")


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _compact(text: str) -> str:
    """JSON without white space between its parts; empty where the text is no object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return ""
    try:
        return _tight(_folded(json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))))
    except (ValueError, RecursionError):
        return ""


def _tight(text: str) -> str:
    return _JOINTS.sub(r"\1", text)


def _occurs(quote: str, text: str) -> bool:
    if _NUMBER.fullmatch(quote):
        return any(token[0].lstrip("+") == quote.lstrip("+") for token in _NUMBERS.finditer(text))
    start = text.find(quote)
    while start >= 0:
        # Whether both ends of a hit leave numbers whole: `code 13` is not in `code 137`.
        end = start + len(quote)
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        head = text[start].isdigit() and re.search(r"[0-9]\.?$", before)
        tail = text[end - 1].isdigit() and re.match(r"\.?[0-9]", after)
        if not head and not tail:
            return True
        start = text.find(quote, start + 1)
    return False


def overall_confidence(model: float | None, checked: CheckedClaims, *, contradicted: bool = False) -> float | None:
    """The computed figure: checks only ever lower what the model said; None is unknown."""
    figure = _by_claims(model, checked)
    caps = (
        (checked.root_cause_unsupported, UNSUPPORTED_CAP),
        (contradicted, CONTRADICTED_CAP),
    )
    for hit, cap in caps:
        figure = min(figure, cap) if hit and figure is not None else figure
    return figure


def _by_claims(model: float | None, checked: CheckedClaims) -> float | None:
    if not checked.judged:
        return model
    if model is None:
        return NO_CLAIMS_CAP if checked.supported == checked.judged else None
    return min(model, NO_CLAIMS_CAP + 0.5 * checked.supported / checked.judged)


def find_contradicting(findings: Iterable[Finding], category: str, target: TargetRef | None) -> Finding | None:
    """A finding of high certainty that names another cause for the target; None also where one agrees."""
    here = [found for found in findings if target is not None and same_object(found.object, target)]
    if category == UNKNOWN or any(found.category == category for found in here):
        return None
    sure = (found for found in here if found.confidence >= HIGH_CERTAINTY and found.category not in SYMPTOMS)
    return next(sure, None)


@dataclass(frozen=True)
class RawClaim:
    """A claim as the model made it; `role` is root_cause, contributing, symptom or ruled_out."""

    statement: str
    role: str
    citations: tuple[Citation, ...]
