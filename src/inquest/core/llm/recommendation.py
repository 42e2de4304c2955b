"""What a person should do about an accepted Signal, before its investigation has ended.

One small question about a kind of trouble, not about an object: names and figures are taken out of it first, so that an
equal Signal of another team has the same answer and no answer carries anybody's names; they are filled in afterwards.
Whether the catalogue has an action for it is decided here, never by the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from inquest.api.investigation import Investigation
from inquest.api.refs import TargetRef
from inquest.api.signal import Signal, Urgency
from inquest.core.diagnosis.playbooks import Playbook
from inquest.core.evidence.evidence import digest_of
from inquest.core.llm.messages import Message, ModelReply, ModelRequest
from inquest.core.text import frame_text, make_visible
from inquest.tables import read_text

MAX_TOKENS: Final = 400
MAX_REASON: Final = 1_000
MAX_TEXT: Final = 500
MAX_PROMPT: Final = 1_000
PHASE: Final = "recommendation"
BOUNDARY: Final = "reason"

TASK: Final = read_text(__package__, "prompts/texts/recommendation.md") + "\n"
ACTIONS: Final = "\nActions of this cluster; every one of them changes something:\n"
NO_ACTIONS: Final = "\nThere are no actions in this cluster: REMEDIATE is always no.\n"


@dataclass(frozen=True)
class ActionWords:
    """An action type as the catalogue describes it."""

    name: str
    what: str


@dataclass(frozen=True)
class AdviceTopic:
    """What is asked for: equal topics have equal answers."""

    name: str
    severity: str
    reason: str
    """Normalised text of the Signal."""


@dataclass(frozen=True)
class AdviceRequest:
    """A topic, the catalogue of this moment, and the model: the key of the cache."""

    topic: AdviceTopic
    actions: tuple[ActionWords, ...]
    """By name, so that equal catalogues are equal however they were listed."""
    model: str

    @property
    def prompt(self) -> str:
        """The system part: the same for every Signal while the catalogue stays."""
        lines = [f"- {each.name}: {make_visible(each.what)}" for each in self.actions]
        return TASK + (ACTIONS + "\n".join(lines) + "\n" if lines else NO_ACTIONS)


@dataclass(frozen=True)
class Advice:
    """An answer; texts may hold `<name>` and `<ns>`."""

    diagnosis: str
    action: str
    urgency: Urgency = Urgency.SOON
    with_action: str = ""
    """The action type that it names, as it stands in the catalogue; empty: none."""
    prompt: str = ""

    @property
    def remediate(self) -> bool:
        return bool(self.with_action)


# --- the question -----------------------------------------------------------------------------------------


def question_of(topic: AdviceTopic, actions: Iterable[ActionWords], model: str) -> AdviceRequest:
    """What is asked about a topic."""
    return AdviceRequest(topic, tuple(sorted(actions, key=lambda each: each.name)), model)


def advice_request(question: AdviceRequest) -> ModelRequest:
    """One call without tools; urgency behind every investigation's."""
    topic = question.topic
    facts = f"signal: {topic.name}\nseverity: {topic.severity}"
    text = f"{facts}\n{frame_text(make_visible(topic.reason), BOUNDARY, PHASE, digest_of(topic.reason)[-16:])}"
    messages = (Message("system", question.prompt), Message("user", text))
    return ModelRequest(question.model, messages, (), max_tokens=MAX_TOKENS, phase=PHASE, urgency=9)


def topic_of(name: str, severity: str, text: str, target: TargetRef, owner: TargetRef) -> AdviceTopic:
    """The Signal without what is anybody's own."""
    names = sorted({target.name, owner.name}, key=len, reverse=True)
    namespaces = sorted({ref.namespace for ref in (target, owner) if ref.namespace}, key=len, reverse=True)
    return AdviceTopic(name, severity, normalised(text, names, namespaces))


def normalised(text: str, names: Iterable[str] = (), namespaces: Iterable[str] = ()) -> str:
    """Lower case, one space; objects, namespaces and figures as placeholders, percentages in bands of five."""
    found = text[:MAX_REASON].lower()
    for name in names:
        found = _named(name.lower(), NAME, found)
    for namespace in namespaces:
        found = _named(namespace.lower(), NAMESPACE, found)
    for pattern, write in _FIGURES:
        found = pattern.sub(write, found)
    return " ".join(found.split())


NAME: Final = "<name>"
NAMESPACE: Final = "<ns>"


def _named(name: str, word: str, text: str) -> str:
    """A name, and what its controller makes of it: `api`, `api-7d9f`, `api-7d9f-x2z`."""
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(-[a-z0-9]{{1,10}}){{0,2}}(?![\w-])", word, text)


def _band(found: re.Match[str]) -> str:
    low = int(float(found[1])) // 5 * 5
    return f"{low}–{low + 4}%"


_FIGURES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), ""),
    (re.compile(r"\b(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}\b"), ""),
    (re.compile(r"\b(?:sha256:)?[0-9a-f]{8,64}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?\b"), ""),
    (re.compile(r"(?<![\w–.])(\d{1,3}(?:\.\d+)?) ?%"), _band),
    (re.compile(r"(?<![\w–<])\d+(?:\.\d+)?(?!\d*(?:–|%))"), "<n>"),
)


# --- the answer -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ReplyParts:
    """The parts of a reply, as words."""

    diagnosis: str = ""
    action: str = ""
    urgency: str = ""
    remediate: str = ""
    named: str = ""
    prompt: str = ""


def read_advice(reply: ModelReply, actions: Iterable[str]) -> Advice | None:
    """The advice of a reply; None where it is none: refused, cut, or without a diagnosis."""
    if reply.finish_reason in ("length", "content_filter"):
        return None
    said = _labelled(reply.text)
    if not said.diagnosis or not said.action:
        return None
    known = {name.lower(): name for name in actions}
    fits = known.get(said.named.strip(" .`*\"'").lower(), "") if _is_yes(said.remediate) else ""
    return Advice(
        diagnosis=_shown(said.diagnosis, MAX_TEXT),
        action=_shown(said.action, MAX_TEXT),
        urgency=_URGENCIES.get(said.urgency.strip(" .*").lower(), Urgency.SOON),
        with_action=fits,
        prompt=_shown(said.prompt, MAX_PROMPT) if fits else "",
    )


_URGENCIES: Final[Mapping[str, Urgency]] = {
    "now": Urgency.IMMEDIATE,
    "immediate": Urgency.IMMEDIATE,
    "soon": Urgency.SOON,
    "can wait": Urgency.ROUTINE,
    "routine": Urgency.ROUTINE,
    "none": Urgency.NONE,
}
_LABELS: Final[Mapping[str, str]] = {
    "diagnosis": "diagnosis",
    "action": "action",
    "urgency": "urgency",
    "remediate": "remediate",
    "with": "named",
    "prompt": "prompt",
}
_LABEL: Final = re.compile(
    r"^\s*+[*#]*+\s*+(diagnosis|action|urgency|remediate|with|prompt)\s*+\**+\s*+:\**+\s*+(.*)$", re.I
)
_RULE: Final = re.compile(r"^\s*-{3,}\s*$")
_HALF: Final = re.compile(
    r"(?:^|(?<=\s))[*#\s]*(?:-{1,2}|"
    + "|".join(label.upper()[:end] for label in _LABELS for end in range(len(label), 0, -1))
    + r")\**\s*$"
)
"""The begin of the sentinel, or of a label, at the end of a text that was cut within it."""
_WHOLE: Final = re.compile(r"(?i)(?:^|\s)(?:-{3,}(?=\s|$)|[*#]*+remediate\s*+\**+\s*+:).*$", re.DOTALL)


def _labelled(text: str) -> _ReplyParts:
    """Three labelled parts, a line of dashes, the sentinel; a part goes on until the next label."""
    parts: dict[str, list[str]] = {}
    current = ""
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            current = _LABELS[label[1].lower()]
            parts.setdefault(current, []).append(label[2])
        elif _RULE.match(line):
            current = ""
        elif current:
            parts[current].append(line)
    return _ReplyParts(**{part: " ".join(" ".join(lines).split()) for part, lines in parts.items()})


def _is_yes(text: str) -> bool:
    return text.strip(" .*").lower() == "yes"


def _shown(text: str, most: int) -> str:
    """Text for a person: the sentinel never shows, wherever a model put it, nor half of it."""
    return make_visible(" ".join(_HALF.sub("", _WHOLE.sub("", text)).split()))[:most]


# --- what the code decides -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdvicePlace:
    """Where the advice would be followed."""

    target: TargetRef
    owner: TargetRef
    git_ops: bool = False
    """The owner follows a source: what is changed in the cluster would be undone."""


def place_of(signal: Signal, inv: Investigation | None) -> AdvicePlace:
    """Where the Signal points, and who owns what is there, as triage and the case found it."""
    target, root = signal.spec.target, signal.status.root_owner
    owner = TargetRef(kind=root.kind, name=root.name, namespace=root.namespace) if root else target
    labels = inv.status.context.detected_labels if inv is not None and inv.status.context else None
    return AdvicePlace(target, owner, git_ops=bool(labels and labels.git_ops_managed))


FROM_SOURCE: Final = frozenset({"GitRevertCommit", "HelmRollback"})
"""Action types that change the source rather than the cluster."""


def fit_advice(advice: Advice, place: AdvicePlace) -> Advice:
    """The advice, its action left out where what is known of the place contradicts it."""
    if advice.with_action and any(rule(advice.with_action, place) for rule in _CONTRADICTIONS):
        return replace(advice, with_action="", prompt="")
    return advice


def _is_of_another_kind(action: str, place: AdvicePlace) -> bool:
    wanted = next((kind for kind in ("Deployment", "Node") if action.endswith(kind)), "")
    return bool(wanted) and place.owner.kind != wanted


def _would_be_undone(action: str, place: AdvicePlace) -> bool:
    return place.git_ops and action not in FROM_SOURCE


_CONTRADICTIONS: Final = (_is_of_another_kind, _would_be_undone)


def fill_names(text: str, place: AdvicePlace) -> str:
    """A text with the names of this Signal."""
    namespace = place.owner.namespace or place.target.namespace or "the cluster"
    return text.replace(NAME, place.owner.name).replace(NAMESPACE, namespace)


# --- without a model ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaseSoFar:
    """What an investigation has found so far, as its status says it."""

    category: str = ""
    summary: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Placeholders of a fix, in upper case, to what stands there."""
    fix: str = ""
    """Template of the playbook that matches."""
    actions: tuple[str, ...] = ()


def known_of(inv: Investigation | None, books: Iterable[Playbook]) -> CaseSoFar:
    """What a case has found so far: its first finding, and the playbook of that category before others that match."""
    if inv is None or not inv.status.findings:
        return CaseSoFar()
    status, first = inv.status, inv.status.findings[0]
    matching = [book for book in books if book.name in status.playbooks]
    matching.sort(key=lambda book: (book.name != first.category, status.playbooks.index(book.name)))
    chosen = status.selected_workflow
    return CaseSoFar(
        category=first.category or "",
        summary=first.summary or "",
        facts=_facts(first.object, first.field or "", first.value or ""),
        fix=matching[0].fix if matching else "",
        actions=(chosen.action_type,) if chosen else (),
    )


def _facts(ref: TargetRef | None, path: str, value: str) -> dict[str, str]:
    """What a fix may name: the object, the field, its value, the container of the field."""
    container = path.partition("containers[name=")[2].partition("]")[0]
    return {"OBJECT": ref.display if ref else "", "FIELD": path, "VALUE": value, "CONTAINER": container}


def without_model(known: CaseSoFar, actions: Iterable[str]) -> Advice | None:
    """From a finding and the playbook that matches; None where neither says anything."""
    if not known.summary:
        return None
    offered = frozenset(actions)
    fits = next((name for name in known.actions if name in offered), "")
    fix = fill_template(known.fix, known.facts) or f"Look at {known.category}: {known.summary}"
    prompt = known.summary[:MAX_PROMPT] if fits else ""
    return Advice(known.summary[:MAX_TEXT], fix[:MAX_TEXT], Urgency.SOON, fits, prompt)


_PLACEHOLDER: Final = re.compile(r"<([A-Z][A-Z_]{1,30})>")


def fill_template(template: str, facts: Mapping[str, str]) -> str:
    """A fix with its placeholders filled; nothing where evidence does not fill every one."""
    wanted = set(_PLACEHOLDER.findall(template))
    if any(not facts.get(name) for name in wanted):
        return ""
    return " ".join(_PLACEHOLDER.sub(lambda found: facts[found[1]], template).split())
