"""Snapshots out of hand-written objects, and the checks that every finding has to pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from inquest.api.refs import TargetRef
from inquest.core.cluster.objects import parse_time
from inquest.core.evidence.evidence import Evidence, EvidenceStatus, Finding, Gap, ObservedObject, digest_of
from inquest.core.evidence.rendering import event_line, line_of
from inquest.core.evidence.snapshot import Absent, CompleteListing, LogTail, Snapshot, TextSeen

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
CASES = Path(__file__).parent / "cases"


def cases(name: str) -> dict[str, dict[str, Any]]:
    """Sentence → case of one file; keys that start with a dot are anchors only."""
    found = yaml.load((CASES / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    return {sentence: case for sentence, case in found.items() if not sentence.startswith(".")}


def snapshot_of(case: dict[str, Any]) -> Snapshot:
    """Each object is an entry of its own, as the snapshot writes it; logs, texts, listings, absent objects follow."""
    objects = [_plain(found) for found in case.get("objects", ())]
    entries = [_entry(number, found) for number, found in enumerate(objects, start=1)]
    logs = [_log(len(entries) + number, log) for number, log in enumerate(case.get("logs", ()), start=1)]
    logged = [entry for _, entry in logs]
    texts = [_text(len(entries) + len(logged) + number, each) for number, each in enumerate(case.get("texts", ()), 1)]
    told = [*entries, *logged, *(entry for _, entry in texts)]
    listings = [_listing(len(told) + number, each) for number, each in enumerate(case.get("listed", ()), start=1)]
    told += [entry for _, entry in listings]
    absent = [_absent(len(told) + number, each) for number, each in enumerate(case.get("absent", ()), start=1)]
    target = TargetRef.model_validate(case.get("target") or _ref_of(objects[0]))
    chain = tuple(TargetRef.model_validate(ref) for ref in case.get("chain", ()))
    return Snapshot(
        taken_at=NOW,
        target=target,
        root=chain[-1] if chain else target,
        chain=chain,
        root_verified=True,
        objects=tuple(ObservedObject(found, entry.id) for found, entry in zip(objects, entries, strict=True)),
        logs=tuple(log for log, _ in logs),
        evidence=(*told, *(entry for _, entry in absent)),
        gaps=tuple(Gap(what, "Forbidden: no") for what in case.get("gaps", ())),
        cut=tuple(case.get("cut", ())),
        listings=tuple(listing for listing, _ in listings),
        absent=tuple(each for each, _ in absent),
        texts=tuple(text for text, _ in texts),
        since=parse_time(_plain(case.get("since"))),
        about_names=tuple(case.get("about_names", ())),
        about_requests=bool(case.get("about_requests")),
        about_throttling=bool(case.get("about_throttling")),
    )


def _plain(value: Any) -> Any:
    """Times as the API server writes them: YAML reads them as datetimes."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _ref_of(found: dict[str, Any]) -> dict[str, Any]:
    metadata = found["metadata"]
    names = {"kind": found["kind"], "name": metadata["name"], "namespace": metadata.get("namespace")}
    return {"apiVersion": found["apiVersion"], **names}


def _entry(number: int, found: dict[str, Any]) -> Evidence:
    is_event = found["kind"] == "Event"
    text = event_line(found) if is_event else line_of(found)
    return _evidence(number, text, api_fact=not is_event)


def _log(number: int, log: dict[str, Any]) -> tuple[LogTail, Evidence]:
    read = {"read": log["read"]} if "read" in log else {}
    entry = replace(_evidence(number, log["text"], api_fact=False), arguments=read)
    previous = bool(log.get("previous"))
    place = (log.get("namespace", "shop"), log["pod"], log.get("container", "app"))
    return LogTail(*place, previous, log["text"], entry.id), entry


def _text(number: int, case: dict[str, Any]) -> tuple[TextSeen, Evidence]:
    entry = _evidence(number, case["text"], api_fact=False)
    return TextSeen(case["title"], case["text"], entry.id), entry


def _listing(number: int, case: dict[str, Any]) -> tuple[CompleteListing, Evidence]:
    entry = _evidence(number, case.get("text", "none found"), api_fact=True)
    return CompleteListing(case["kind"], case.get("namespace", "shop"), entry.id), entry


def _absent(number: int, case: dict[str, Any]) -> tuple[Absent, Evidence]:
    ref = TargetRef.model_validate({"namespace": "shop", **case})
    return Absent(ref, f"E{number}"), _evidence(number, f"NotFound: {ref.display}", api_fact=True)


def _evidence(number: int, text: str, *, api_fact: bool) -> Evidence:
    return Evidence(
        f"E{number}", "snapshot", {}, text, digest_of(text), EvidenceStatus.OK, NOW, text, api_fact=api_fact
    )


def told(finding: Finding) -> dict[str, Any]:
    """A finding in the words of the case files."""
    return {
        "category": finding.category,
        "object": finding.object.display,
        "field": finding.field,
        "value": finding.value,
        "confidence": finding.confidence,
        "facts": dict(finding.facts),
        "explains": list(finding.explains),
        "actions": list(finding.actions),
        "act": finding.act,
    }


def assert_says(expected: dict[str, Any], finding: Finding) -> None:
    """Every word of the case stands in the finding; facts may be more than the case names."""
    found = told(finding)
    facts = expected.get("facts", {})
    assert {key: found[key] for key in expected if key != "facts"} == {
        k: v for k, v in expected.items() if k != "facts"
    }
    assert {key: found["facts"].get(key) for key in facts} == facts


def assert_grounded(snapshot: Snapshot, finding: Finding) -> None:
    """Every quote stands in the entry it cites, and at least one entry is a fact of the API server."""
    entries = {entry.id: entry for entry in snapshot.evidence}
    assert finding.citations
    for citation in finding.citations:
        assert _folded(citation.quote) in _folded(entries[citation.id].text)
        assert len(citation.quote) <= 300
    assert any(entries[citation.id].api_fact for citation in finding.citations)
    assert 0 < finding.confidence <= 1
    assert len(finding.summary) <= 500
    assert finding.object.name in finding.summary
    assert len(finding.value) <= 253


def _folded(text: str) -> str:
    return " ".join(text.split())
