"""A stored case as a folder or a file: what the snapshot held, what was expected, the recording.

What was stored had been redacted; nothing is added to it. A read that was not answered whole is written as Partial:
what is there is evidence, what is not there proves nothing. Reads that failed are not written down one by one, because
a folder says the same of everything that it does not hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from inquest.api.base import API_VERSION, rfc3339
from inquest.api.investigation import Feedback, FeedbackVerdict
from inquest.api.signal import SignalContent
from inquest.core.case import facts
from inquest.core.case.case import Case, told_diagnosis
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.transitions import fold_case
from inquest.core.diagnosis.categories import UNKNOWN, category_from
from inquest.core.diagnosis.diagnosis import Cause
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, ObservedObject
from inquest.core.evidence.snapshot import CompleteListing, Snapshot
from inquest.errors import AlreadyExists, InquestError, NotRecorded
from inquest.replay.case import CASE, EXPECTED, FEEDBACK, GAPS, METRICS, SIGNAL, resource_of
from inquest.replay.kinds import is_namespaced, kinds_of
from inquest.replay.one_file import in_one_file
from inquest.replay.yaml_pages import CaseFileError, text_of

RECORDING: Final = "recording.json"
ONE_FILE: Final = ".yaml"
MARK: Final = "… cut: "
"""How the head of a log that was cut begins."""
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
Files = Mapping[str, str]
"""Path in the folder → text."""


def export_case(case: Case, place: Path, feedback: Feedback | None = None) -> tuple[Path, ...]:
    """Write a case with what a person said of it; AlreadyExists where something is there.

    A place that ends in `.yaml` is one file, with the recording beside it; every other is a folder.
    """
    if place.exists():
        raise AlreadyExists(f"{place} is there already: nothing is written over")
    files = files_of(case, feedback)
    if place.suffix == ONE_FILE:
        written = {place: in_one_file(files), recording_of(place): files[RECORDING]}
    else:
        written = {place / name: text for name, text in files.items()}
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tuple(written)


def files_of(case: Case, feedback: Feedback | None = None) -> Files:
    """Every file of the folder; NotRecorded for a case that ended before its snapshot.

    There is an expectation only where `feedback` confirms the answer or names another cause.
    """
    taken = case.first(facts.SnapshotTaken)
    if taken is None:
        raise NotRecorded("the investigation ended before anything was read: there is no case to export")
    snapshot = taken.snapshot
    return {
        CASE: _yaml(_head(case, snapshot)),
        SIGNAL: _yaml(_signal(case)),
        **_objects(snapshot.objects),
        **_logs(snapshot),
        **{f"text/{number}.txt": f"{one.title}\n{one.text}" for number, one in enumerate(snapshot.texts, start=1)},
        **_figures(case.evidence),
        GAPS: _yaml(list(_gaps(snapshot))),
        **_judgement(case, feedback),
        RECORDING: recording_text(case),
    }


def _yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def _head(case: Case, snapshot: Snapshot) -> dict[str, Any]:
    opened = case.opened
    return {
        "name": opened.name,
        "description": opened.spec.signal.message or opened.spec.signal.name,
        "takenAt": rfc3339(snapshot.taken_at),
        "source": f"exported from Investigation {opened.namespace}/{opened.name}",
        **({"home": opened.pinned.home} if opened.pinned.home else {}),
        "recorded": list(_recorded(snapshot)),
    }


def _signal(case: Case) -> dict[str, Any]:
    """The Signal as the Investigation pinned it: what triage found out of its place stands in it as overrides."""
    pinned, opened = case.opened.spec.signal, case.opened
    names = set(SignalContent.model_fields)
    content = {key: value for key, value in pinned.model_dump(by_alias=False).items() if key in names}
    name = opened.spec.signal_ref.name if opened.spec.signal_ref else opened.name
    return {
        "apiVersion": API_VERSION,
        "kind": "Signal",
        "metadata": {"name": name, "namespace": opened.namespace},
        "spec": SignalContent(**content).to_object(),
    }


# --- what was seen ----------------------------------------------------------------------------------------


def _objects(seen: Iterable[ObservedObject]) -> dict[str, str]:
    """Beneath their namespace, one file for each kind."""
    found: dict[str, list[Any]] = {}
    for one in seen:
        place = f"objects/{_word(one.namespace or 'cluster')}/{_word(one.kind.lower())}.yaml"
        found.setdefault(place, []).append(one.object)
    return {place: "---\n".join(map(_yaml, objects)) for place, objects in sorted(found.items())}


def _logs(snapshot: Snapshot) -> dict[str, str]:
    found = {}
    for log in snapshot.logs:
        name = log.container + (".previous" if log.previous else "")
        text = log.text.partition("\n")[2] if log.text.startswith(MARK) else log.text
        found[f"logs/{_word(log.namespace)}/{_word(log.pod)}/{_word(name)}.log"] = text
    return found


QUERY_TOOL: Final = "query_prometheus"


def _figures(evidence: Iterable[Evidence]) -> dict[str, str]:
    """Answers of Prometheus that were given whole; of a cut one nobody knows what it holds."""
    asked = (one for one in evidence if one.tool == QUERY_TOOL and one.status is EvidenceStatus.OK)
    found = [figures for one in asked if (figures := _figures_of(one))]
    return {METRICS: _yaml(found)} if found else {}


def _figures_of(found: Evidence) -> dict[str, Any]:
    try:
        result = json.loads(found.text)["data"]["result"]
    except (ValueError, KeyError, TypeError):
        return {}
    said = found.arguments
    spread = {"range": _length(str(said["start"]), str(said["end"]))} if "start" in said and "end" in said else {}
    return {"query": str(said.get("query")), **spread, "result": result}


def _length(start: str, end: str) -> str:
    return f"{(datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds():g}s"


def _word(name: str) -> str:
    """A name as a part of a path: names of the API server are harmless, and nothing else is taken for one."""
    if not _WORD.fullmatch(name) or ".." in name:
        raise NotRecorded(f"{name[:80]!r} is no name of an object or a container: the case is not written")
    return name


def _recorded(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Kinds that were listed whole, by kind."""
    found: dict[str, set[str]] = {}
    for listing in filter(lambda one: _is_kept(one, snapshot), snapshot.listings):
        found.setdefault(_resource(listing.kind, snapshot), set()).add(listing.namespace)
    for kind, namespaces in sorted(found.items()):
        yield {"kind": kind} if "" in namespaces else {"kind": kind, "namespaces": sorted(namespaces)}


def _is_kept(listing: CompleteListing, snapshot: Snapshot) -> bool:
    """Whether everything that was listed is in the snapshot too."""
    there = {f"{one.namespace}/{one.name}" for one in snapshot.of_kind(listing.kind)}
    return set(listing.names) <= there


def _resource(kind: str, snapshot: Snapshot) -> str:
    objects = (one.object for one in snapshot.objects if one.kind == kind)
    version = next((str(found.get("apiVersion", "")) for found in objects), "")
    group, plural = resource_of(kind, version, kinds_of(one.object for one in snapshot.objects))
    return f"{plural}.{group}" if group else plural


def _gaps(snapshot: Snapshot) -> Iterator[dict[str, str]]:
    """What was looked for in vain, and listings of which the snapshot holds a part."""
    for absent in snapshot.absent:
        ref = absent.ref
        named = {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
        yield {"verb": "get", **{key: word for key, word in named.items() if word}, "reason": "NotFound"}
    whole = {(one.kind, one.namespace) for one in snapshot.listings if _is_kept(one, snapshot)}
    seen = {(str(one.object.get("apiVersion", "")), one.kind, one.namespace) for one in snapshot.objects}
    for version, kind, namespace in sorted(seen):
        if (kind, namespace) in whole or (kind, "") in whole:
            continue
        place = {"namespace": namespace} if namespace and is_namespaced(version, kind) is not False else {}
        yield {"verb": "list", "apiVersion": version, "kind": kind, **place, "reason": "Partial"}


# --- what was said --------------------------------------------------------------------------------------------


def _judgement(case: Case, feedback: Feedback | None) -> dict[str, str]:
    """What a person said, and what follows from it for a replay."""
    if feedback is None:
        return {}
    expected = _expected(case, feedback)
    # An empty expectation would say that nothing may be blamed: there is none then.
    held_against = {EXPECTED: _yaml(expected)} if expected else {}
    return {FEEDBACK: _yaml(feedback.to_object()), **held_against}


def _expected(case: Case, feedback: Feedback) -> dict[str, Any]:
    """What a replay is held against; empty where what was said does not tell what would be right."""
    if feedback.verdict is FeedbackVerdict.RIGHT:
        return _confirmed(case)
    category = category_from(feedback.cause or "")
    if category == UNKNOWN:
        return {}
    refuted = _first(case) if feedback.verdict is FeedbackVerdict.WRONG else None
    return {"cause": {"category": category}, **({"forbidden": [_cause(refuted)]} if refuted else {})}


def _confirmed(case: Case) -> dict[str, Any]:
    """The answer of the investigation itself."""
    closed, selected = case.closed, case.last(facts.Proposed)
    verdict = selected.verdict if selected else closed.verdict if closed else None
    first = _first(case)
    outcome = {"outcome": str(verdict.outcome)} if verdict and verdict.outcome else {}
    cause = {"cause": _cause(first)} if first else {}
    actions = {"actionTypes": [selected.proposal.pin.action_type]} if selected else {}
    return {**outcome, **cause, **actions}


def _first(case: Case) -> Cause | None:
    found = told_diagnosis(case)
    return found.causes[0] if found and found.causes else None


def _cause(found: Cause) -> dict[str, Any]:
    field = {"field": found.field} if found.field else {}
    return {"category": found.category, "object": found.object.to_object(), **field}


def recording_text(case: Case) -> str:
    """The facts of a case, for `--model recorded`."""
    return json.dumps({"facts": [dump_fact(fact) for fact in case.facts]}, ensure_ascii=False, indent=1)


def recording_of(place: Path) -> Path:
    """Where the recording of a case lies: in its folder, or beside its file."""
    return place.with_name(f"{place.stem}.{RECORDING}") if place.suffix == ONE_FILE else place / RECORDING


def read_recording(place: Path) -> Case:
    """The case whose recording lies there; BadCase where there is none, or one that makes no case."""
    path = recording_of(place)
    try:
        return fold_case(load_fact(payload) for payload in json.loads(text_of(path))["facts"])
    except json.JSONDecodeError as error:
        raise CaseFileError(path, error.lineno, f"no JSON: {error.msg}") from error
    except (KeyError, TypeError, ValidationError) as error:
        raise CaseFileError(path, 1, f"no recording: {type(error).__name__}") from error
    except CaseFileError:
        raise
    except InquestError as error:
        raise CaseFileError(path, 1, f"no recording: {error}") from error
