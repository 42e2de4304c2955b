"""Invocation 1: what stands of its root cause after code has checked it.

Two ways lead to a `Diagnosis`: a model's reply whose claims were checked, and, with no model, the findings of the
detectors (pipeline, section 7; resources, 4.1, N12).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from inquest.api.investigation import ClaimRole, ClaimVerdict
from inquest.api.types import TargetRef
from inquest.core.evidence.evidence import Citation, Evidence, Finding, Gap, Health
from inquest.core.llm.reply.reading import Problem, RawClaim, RcaReply, contradictions, labelled_summary

MAX_CAUSES: Final = 5
MAX_FACTORS: Final = 10
MAX_DOUBTS: Final = 600
"""Characters of what speaks against health."""
NO_CLAIMS_CAP: Final = 0.5
"""What claims of which none is supported leave of a figure (pipeline, section 7)."""
UNSUPPORTED_CAP: Final = 0.5
CONTRADICTED_CAP: Final = 0.6
PROSE_CONFIDENCE: Final = 0.5
"""Of a cause that only prose names (behaviours, 13.1)."""
HIGH_CERTAINTY: Final = 0.9
"""From here on a finding can contradict a model."""
MAX_AGREED: Final = 0.97
"""Most that agreement of a model and a detector is worth."""
HEALTHY_CONFIDENCE: Final = 0.9
"""Of "nothing is wrong" without a model (resources, 4.1, N12)."""


@dataclass(frozen=True)
class Caution:
    """A warning of the status: a code for machines, a text for people; only code makes one."""

    code: str
    text: str


# --- categories (behaviours, 13.2 and 13.3) ----------------------------------------------------------

CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("Healthy", "Recovered", "Unknown"),
    "Startup": (
        "CrashLoopBackOff",
        "CommandFailing",
        "ConfigKeyMissing",
        "ConfigMapMissing",
        "SecretMissing",
        "EnvVarMissing",
        "ImagePullFailing",
        "InitContainerFailing",
        "ServiceAccountMissing",
    ),
    "Probe": ("LivenessProbeMisconfigured", "ReadinessProbeMisconfigured", "StartupProbeMisconfigured"),
    "Runtime": ("OOMKilled", "CPUThrottled", "DiskFull", "PodEvicted", "ApplicationError"),
    "Scheduling": ("InsufficientResources", "Unschedulable", "QuotaExceeded", "LimitRangeViolated"),
    "Storage": ("VolumeUnbound", "VolumeAttachFailing", "VolumeMountFailing"),
    "Network": (
        "SelectorMismatch",
        "PortMismatch",
        "NoReadyEndpoints",
        "NetworkPolicyBlocking",
        "DNSFailing",
        "IngressMisconfigured",
        "CertificateExpired",
    ),
    "Rollout": ("RolloutStuck", "BadRevision", "HPAMisconfigured", "PDBBlocking", "FinalizerStuck", "JobFailing"),
    "Admission": ("AdmissionRejected", "RBACDenied"),
    "Node": (
        "NodeNotReady",
        "NodePressure",
        "NodeCordoned",
        "KubeletFailing",
        "ContainerRuntimeFailing",
        "ServiceProxyFailing",
        "NetworkDegraded",
    ),
    "Control plane": ("ControlPlaneFailing", "ClusterDNSFailing", "WebhookFailing"),
    "Dependency": (
        "ScaledToZero",
        "PortConflict",
        "ProtocolMismatch",
        "AddressMisconfigured",
        "CredentialsInvalid",
        "ConnectionsExhausted",
        "Overloaded",
        "MemoryLeaking",
        "ConfigReloadFailing",
        "GitOpsSyncFailing",
        "DependencyFailing",
        "DatabaseFailing",
        "ExternalServiceFailing",
    ),
}
UNKNOWN: Final = "Unknown"
NO_FAULT: Final = frozenset(CATEGORIES[""])
"""Words that name no cause."""
ALIASES: Final[Mapping[str, str]] = {
    "oom": "OOMKilled",
    "memorypressure": "OOMKilled",
    "exitcode137": "OOMKilled",
    "imagepullbackoff": "ImagePullFailing",
    "errimagepull": "ImagePullFailing",
    "taint": "Unschedulable",
    "insufficientcpu": "InsufficientResources",
    "insufficientmemory": "InsufficientResources",
    "pvcpending": "VolumeUnbound",
    "endpointmismatch": "SelectorMismatch",
    "resourcequota": "QuotaExceeded",
}
SYMPTOMS: Final = frozenset(
    {
        "ApplicationError",
        "CrashLoopBackOff",
        "DependencyFailing",
        "InitContainerFailing",
        "JobFailing",
        "NoReadyEndpoints",
        "PodEvicted",
        "RolloutStuck",
        "Unschedulable",
    }
)
"""Words for an effect: a finding of one of them contradicts no finer cause."""


def _squeezed(word: str) -> str:
    return re.sub(r"[\s_-]", "", word).lower()


_CATEGORY_BY_WORD: Final[Mapping[str, str]] = {
    **ALIASES,
    **{_squeezed(name): name for names in CATEGORIES.values() for name in names},
}


def category_from(word: str) -> str:
    """A category of the closed list, by name or alias; any other word is Unknown."""
    return _CATEGORY_BY_WORD.get(_squeezed(word), UNKNOWN)


_EXIT_137: Final = re.compile(r"\bexit[ _]?code\W{0,5}137\b", re.IGNORECASE)
_OUT_OF_MEMORY: Final = re.compile(r"(?<![a-z])oom|out of memory", re.IGNORECASE)


def belied(category: str, evidence: Iterable[Evidence]) -> bool:
    """Whether evidence speaks against a category: 137 without a word of memory is a liveness kill or an eviction."""
    if category != "OOMKilled":
        return False
    texts = [item.text for item in evidence if item.holds]
    return any(map(_EXIT_137.search, texts)) and not any(map(_OUT_OF_MEMORY.search, texts))


# --- claims (pipeline, section 7) --------------------------------------------------------------------


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
    """A supported claim rests on an API fact: what execution needs (reliability, 10.1)."""

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


NOTES: Final = frozenset({"todo_write", "get_runbook"})
"""Tools whose answers hold what a model or an author wrote: they prove nothing about the cluster."""
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
        wanted = _unquoted(_folded(quote))
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


def _unquoted(text: str) -> str:
    return text.strip(_QUOTATION_MARKS)


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
        if _cuts_no_number(text, start, start + len(quote)):
            return True
        start = text.find(quote, start + 1)
    return False


def _cuts_no_number(text: str, start: int, end: int) -> bool:
    """Whether both ends of a hit leave numbers whole: `code 13` is not in `code 137`."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    head = text[start].isdigit() and re.search(r"[0-9]\.?$", before)
    tail = text[end - 1].isdigit() and re.match(r"\.?[0-9]", after)
    return not head and not tail


# --- confidence (pipeline, section 7) ----------------------------------------------------------------


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


def contradicting(findings: Iterable[Finding], category: str, target: TargetRef | None) -> Finding | None:
    """A finding of high certainty that names another cause for the target; None also where one agrees."""
    here = [found for found in findings if target is not None and same_object(found.object, target)]
    if category == UNKNOWN or any(found.category == category for found in here):
        return None
    sure = (found for found in here if found.confidence >= HIGH_CERTAINTY and found.category not in SYMPTOMS)
    return next(sure, None)


def same_object(one: TargetRef, other: TargetRef) -> bool:
    """Whether two references name one object; kinds compare in any case."""
    names = (one.name, one.namespace or "") == (other.name, other.namespace or "")
    return names and one.kind.lower() == other.kind.lower()


# --- the diagnosis -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cause:
    """One candidate in the words of the verdict (cases, section 3)."""

    category: str
    object: TargetRef
    field: str
    value: str
    summary: str
    confidence: float | None
    evidence: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """What invocation 1 came to, by a model or by code; invocation 2 never changes it."""

    summary: str = ""
    severity: str = ""
    signal_type: str = ""
    """A category where one fits, else the model's own word."""
    contributing_factors: tuple[str, ...] = ()
    analysis: str = ""
    causal_chain: tuple[str, ...] = ()
    target: TargetRef | None = None
    causes: tuple[Cause, ...] = ()
    """Ranked; the first is the root cause, the second the runner-up."""
    checked: CheckedClaims = CheckedClaims()
    model_confidence: float | None = None
    confidence: float | None = None
    """Overall: computed from the checks, before the floor."""
    outcome: str = ""
    actionable: bool | None = None
    needs_review: bool = False
    review_reason: str = ""
    warnings: tuple[Caution, ...] = ()
    notes: tuple[str, ...] = ()
    """What was asked for and not given; costs nothing."""
    stopped: str = ""
    """Why the model gave no verdict that can be used; then nothing is selected (pipeline, 3.8)."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether selection is skipped (pipeline, section 1)."""
        return self.actionable is False or self.outcome in ("problem_resolved", "not_actionable")


def diagnosis_from_reply(
    reply: RcaReply,
    checked: CheckedClaims,
    findings: Sequence[Finding] = (),
    *,
    signal_target: TargetRef | None = None,
    problems: Sequence[Problem] = (),
    evidence: Iterable[Evidence] = (),
) -> Diagnosis:
    """A model's verdict as the checks leave it; `problems` are those that the corrective turn did not heal."""
    if (proof := _disproof(reply, findings)) is not None:
        return _unwell(reply, checked, proof, findings, problems)
    target, evidence = reply.target or signal_target, tuple(evidence)
    said = _said(reply.signal_name, evidence)
    is_belied = belied(said, evidence)
    category = UNKNOWN if is_belied else said
    against = contradicting(findings, category, target)
    figure = overall_confidence(reply.confidence, checked, contradicted=is_belied or against is not None)
    return Diagnosis(
        summary=reply.summary,
        severity=reply.severity,
        signal_type=reply.signal_name if said == UNKNOWN else category,
        contributing_factors=reply.contributing_factors[:MAX_FACTORS],
        analysis=reply.analysis,
        causal_chain=reply.causal_chain,
        target=reply.target,
        causes=_ranked(_cause_of(reply, checked, category, target, figure), findings),
        checked=checked,
        model_confidence=reply.confidence,
        confidence=figure,
        outcome=reply.outcome,
        actionable=reply.actionable,
        needs_review=reply.needs_review or bool(reply.review_reason),
        review_reason=reply.review_reason,
        warnings=(
            *_cautions(checked, against),
            *((_belied_caution(said),) if is_belied else ()),
            *cautions_from(problems, contradictions(reply)),
        ),
        notes=_notes(reply, checked),
    )


def _said(word: str, evidence: Iterable[Evidence]) -> str:
    """The category of a model's word; pressure on memory is a kill for memory only where a termination says so."""
    category = category_from(word)
    is_pressure = _squeezed(word) == "memorypressure"
    killed = (item for item in evidence if item.holds and item.api_fact and _KILLED.search(item.text))
    return UNKNOWN if is_pressure and next(killed, None) is None else category


_KILLED: Final = re.compile(r"\bOOMKilled\b")
WELL: Final = "Healthy"


def _disproof(reply: RcaReply, findings: Sequence[Finding]) -> Finding | None:
    """The finding of high certainty that is there although the model says that all is well."""
    said = category_from(reply.signal_name)
    says_well = said == WELL or (said == UNKNOWN and reply.outcome == "problem_resolved")
    sure = (found for found in findings if found.act and found.confidence >= HIGH_CERTAINTY)
    return next(sure, None) if says_well else None


def _unwell(
    reply: RcaReply,
    checked: CheckedClaims,
    proof: Finding,
    findings: Sequence[Finding],
    problems: Sequence[Problem],
) -> Diagnosis:
    """What code has proven stands in the place of a verdict that denies it; a warning keeps the model's words."""
    said = f"A detector proves the contrary of the verdict: {proof.category} of {proof.object.display}"
    against = Caution("FindingContradicts", f"{said}; the model said: {reply.summary}"[:MAX_DOUBTS])
    return Diagnosis(
        summary=proof.summary,
        severity=reply.severity,
        signal_type=proof.category,
        contributing_factors=tuple(found.summary for found in findings if found is not proof)[:MAX_FACTORS],
        causal_chain=(*proof.explains[:1], proof.summary),
        target=proof.object,
        causes=_ranked((), findings),
        checked=checked,
        model_confidence=reply.confidence,
        confidence=overall_confidence(reply.confidence, checked, contradicted=True),
        outcome=reply.outcome,
        actionable=reply.actionable,
        needs_review=reply.needs_review or bool(reply.review_reason),
        review_reason=reply.review_reason,
        warnings=(against, *cautions_from(problems, contradictions(reply))),
        notes=_notes(reply, checked),
    )


def _cautions(checked: CheckedClaims, against: Finding | None) -> tuple[Caution, ...]:
    found = []
    if not checked.judged:
        found.append(Caution("NoClaims", "No claim that could be checked was made; the confidence is the model's own"))
    if against:
        text = f"A detector names another cause: {against.category} of {against.object.display}"
        found.append(Caution("FindingContradicts", text))
    return tuple(found)


def _belied_caution(said: str) -> Caution:
    return Caution("CategoryContradicted", f"Exit code 137 without a word of memory in the evidence is not {said}")


def cautions_from(problems: Sequence[Problem], conflicts: Sequence[Problem]) -> tuple[Caution, ...]:
    """What is left of a reply's problems after the corrective turn (pipeline, 3.8)."""
    paths = tuple(dict.fromkeys(problem.path for problem in problems if problem not in conflicts))
    found = []
    if paths:
        found.append(Caution("ReplyProblems", f"Parts of the reply could not be used: {', '.join(paths)}"))
    if conflicts:
        found.append(contradictory(conflicts))
    return tuple(found)


def contradictory(conflicts: Sequence[Problem]) -> Caution:
    """The warning that policy sees when a verdict contradicts itself."""
    texts = "; ".join(f"{conflict.path} {conflict.value} {conflict.rule}" for conflict in conflicts)
    return Caution("ContradictoryVerdict", f"Contradictory verdict: {texts}")


def _notes(reply: RcaReply, checked: CheckedClaims) -> tuple[str, ...]:
    asked = (
        ("cause", reply.cause_field),
        ("causal_chain", len(reply.causal_chain) > 1),
        ("due_diligence", reply.due_diligence),
        ("claims", reply.claims),
    )
    missing = [name for name, given in asked if not given]
    notes = [f"not given: {', '.join(missing)}"] if missing else []
    dropped = reply.dropped_claims + checked.dropped
    return tuple(notes + ([f"{dropped} claims dropped"] if dropped else []))


def _cause_of(
    reply: RcaReply, checked: CheckedClaims, category: str, target: TargetRef | None, figure: float | None
) -> tuple[Cause, ...]:
    if target is None:
        return ()
    proofs = [claim for claim in checked.claims if claim.verdict is ClaimVerdict.SUPPORTED]
    evidence = tuple(dict.fromkeys(name for claim in proofs for name in claim.evidence))
    return (Cause(category, target, reply.cause_field, reply.cause_value, reply.summary, figure, evidence),)


def _ranked(first: tuple[Cause, ...], findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """The model's cause, then what the detectors name besides; what names the same is put together."""
    ranked = list(first)
    for cause in map(cause_from_finding, findings):
        at = next((index for index, known in enumerate(ranked) if _is_same_cause(known, cause)), None)
        if at is None:
            ranked.append(cause)
        else:
            is_agreed = at < len(first)
            figure = _agreed(ranked[at].confidence, cause.confidence) if is_agreed else ranked[at].confidence
            ranked[at] = replace(_united(ranked[at], cause), confidence=figure)
    return tuple(ranked[:MAX_CAUSES])


def _is_same_cause(one: Cause, other: Cause) -> bool:
    fields = {one.field, other.field} - {""}
    return one.category == other.category and same_object(one.object, other.object) and len(fields) < 2


def _united(one: Cause, other: Cause) -> Cause:
    return replace(
        one,
        field=one.field or other.field,
        value=one.value or other.value,
        evidence=tuple(dict.fromkeys((*one.evidence, *other.evidence))),
        explains=tuple(dict.fromkeys((*one.explains, *other.explains))),
    )


def _agreed(one: float | None, other: float | None) -> float | None:
    """Two who say the same by different ways are right more often than either: their doubts multiply.

    Of the cause alone: the overall figure of a case is never raised by a check (pipeline, section 7).
    """
    figures = [figure for figure in (one, other) if figure is not None]
    if len(figures) < 2:
        return figures[0] if figures else None
    together = 1 - (1 - figures[0]) * (1 - figures[1])
    return round(max(*figures, min(MAX_AGREED, together)), 2)


def cause_from_finding(found: Finding) -> Cause:
    """A detector's conclusion as a candidate."""
    return Cause(
        category=found.category,
        object=found.object,
        field=found.field,
        value=found.value,
        summary=found.summary,
        confidence=found.confidence,
        evidence=found.evidence,
        explains=found.explains,
    )


# --- without a model (resources, 4.1, N12) -----------------------------------------------------------


def diagnose(
    findings: Sequence[Finding],
    health: Health,
    evidence: Iterable[Evidence] = (),
    gaps: Sequence[Gap] = (),
    *,
    recovered: bool = False,
    settling: str = "",
    doubts: Sequence[str] = (),
) -> Diagnosis:
    """The diagnosis of `provider: none`: the findings, in their order, form the RCA and its claims.

    `settling` is the change that is on its way with nothing wrong: it is real, and nobody should act. `doubts` say
    what speaks against health though no object shows it.
    """
    if findings:
        return _of_findings(findings, evidence)
    if settling:
        return _settling(settling)
    if health is not Health.HEALTHY:
        return _insufficient(gaps, doubts)
    return _recovered() if recovered else _healthy()


def diagnosis_without_verdict(
    findings: Sequence[Finding], evidence: Iterable[Evidence], why: str, reason: str = "", *, prose: str = ""
) -> Diagnosis:
    """What stays when a model gave nothing usable: the findings, else its prose, else that nothing is known."""
    if findings:
        found = _of_findings(findings, evidence)
        notes = (f"by detectors alone: {why}",)
        return replace(found, outcome="", actionable=None, review_reason=reason, notes=notes, stopped=why)
    said = labelled_summary(prose)
    if said:
        notes = (f"from prose: {why}",)
        return Diagnosis(said, confidence=PROSE_CONFIDENCE, review_reason=reason, notes=notes, stopped=why)
    return Diagnosis(
        f"not determined: {why}",
        signal_type=UNKNOWN,
        confidence=0.0,
        review_reason=reason,
        causal_chain=(why,),
        stopped=why,
    )


def _of_findings(findings: Sequence[Finding], evidence: Iterable[Evidence]) -> Diagnosis:
    first, *others = findings
    checked = check_claims(_claims_of(findings), evidence)
    return Diagnosis(
        summary=first.summary,
        signal_type=first.category,
        contributing_factors=tuple(dict.fromkeys(found.summary for found in others))[:MAX_FACTORS],
        causal_chain=(*first.explains[:1], first.summary),
        target=first.object,
        causes=_ranked((), findings),
        checked=checked,
        confidence=overall_confidence(first.confidence, _of_first(first, evidence)),
        outcome="actionable" if first.act else "not_actionable",
        actionable=None if first.act else False,
    )


def _of_first(first: Finding, evidence: Iterable[Evidence]) -> CheckedClaims:
    # The figure is that finding's (N12): what else was found must not lower it.
    return check_claims(_claims_of((first,)), evidence)


def _claims_of(findings: Sequence[Finding]) -> tuple[RawClaim, ...]:
    roles = ("root_cause", *("contributing" for _ in findings[1:]))
    return tuple(
        RawClaim(found.summary, role, found.citations)
        for found, role in zip(findings, roles, strict=True)
        if found.citations
    )


def _healthy() -> Diagnosis:
    return Diagnosis(
        summary="No fault found: every read was answered and the target is healthy now",
        signal_type="Healthy",
        confidence=HEALTHY_CONFIDENCE,
        outcome="problem_resolved",
    )


def _recovered() -> Diagnosis:
    """Was unhealthy, is well now (behaviours, 13.1)."""
    summary = "The target became ready again and is healthy now: every read was answered and nothing is wrong"
    return replace(_healthy(), summary=summary, signal_type="Recovered")


def _settling(change: str) -> Diagnosis:
    summary = f"A change is on its way and nothing is wrong with it: {change}"
    return replace(_healthy(), summary=summary, outcome="not_actionable", actionable=False)


def _insufficient(gaps: Sequence[Gap], doubts: Sequence[str] = ()) -> Diagnosis:
    failed = f"; {len(gaps)} reads failed" if gaps else ""
    why = f": {'; '.join(doubts)}"[:MAX_DOUBTS] if doubts else ""
    return Diagnosis(
        summary=f"No detector found a cause, and the target is not known to be healthy{why}{failed}",
        signal_type=UNKNOWN,
        outcome="insufficient_data",
    )
