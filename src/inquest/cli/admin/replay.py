"""`inquest replay`: recorded cases in, one line of JSON or a few lines of text for each out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from inquest.cli.output import json_line, print_lines, print_warning
from inquest.core.case import facts
from inquest.core.case.case import Case, gaps_of, replies_in
from inquest.core.diagnosis.diagnosis import Cause
from inquest.core.evidence.evidence import Finding, Gap, Health
from inquest.errors import InquestError
from inquest.replay.case import case_id
from inquest.replay.player import KNOWN, Player, Result, case_places, known_misses, open_player
from inquest.replay.scoring import Judged, Played, Share, Table, tabulate
from inquest.replay.yaml_pages import CaseFileError
from inquest.settings.settings import Settings

OK: Final = 0
FAILED: Final = 1
BAD: Final = 2
SHOWN_GAPS: Final = 8
Output = Literal["text", "json"]


async def replay(cases: Sequence[Path], settings: Settings, catalogue: Path | None, model: str, output: Output) -> int:
    """Play every case; the exit status: 2 for a bad case, 1 for an expectation that failed, else 0.

    A case that a list beside the cases names as answered wrong fails nothing; the end says how many those are.
    """
    played: list[Played] = []
    known, expected_misses, status = known_misses(cases), 0, OK
    async with open_player(settings, catalogue, model) as player:
        for place in case_places(cases):
            result = await _played(player, place)
            if result is None:
                status = BAD
                continue
            played.append(result.played)
            missed = result.judged is not None and not result.judged.holds
            is_known = missed and case_id(place) in known
            expected_misses += is_known
            status = max(status, FAILED if missed and not is_known else OK)
            print_lines(*([json_line(line_of(result))] if output == "json" else _text_lines(result)))
    if output == "text" and played:
        print_lines("", table_text(tabulate(played)))
    if output == "text" and known:
        print_lines(f"{expected_misses} of them are not as expected, and known: {KNOWN} beside the cases says why.")
    return status


async def _played(player: Player, place: Path) -> Result | None:
    """None for a case that cannot be played: it is named, and the others go on."""
    try:
        return await player.play(place)
    except CaseFileError as error:
        print_warning(str(error))
    except InquestError as error:
        print_warning(f"{place}: {error.reason}: {error}")
    except Exception as error:  # a case that finds a fault of ours must not cost the others
        print_warning(f"{place}: {type(error).__name__}: {error}")
    return None


# --- JSON --------------------------------------------------------------------------------------------------


def line_of(result: Result) -> dict[str, Any]:
    """The object of one case."""
    case, taken = result.case, result.case.first(facts.SnapshotTaken)
    turns = [reply.usage for fact in case.facts for reply in replies_in(fact)]
    tokens = {"prompt": sum(one.prompt for one in turns), "completion": sum(one.completion for one in turns)}
    usage = {"turns": len(turns), "tokens": tokens}
    line = {
        "case": result.recorded.name,
        "outcome": result.outcome,
        "healthy": taken is not None and taken.health is Health.HEALTHY,
        "causes": [_cause(cause) for cause in result.causes],
        "findings": [_finding(found) for found in case.findings],
        "gaps": len(_gaps(case)),
        "action": _action(case),
        "reads": result.reads,
        **usage,
        "seconds": round(result.seconds, 3),
    }
    return {**line, "expected": _judged(result.judged)}


def _gaps(case: Case) -> tuple[Gap, ...]:
    return gaps_of(case) if case.first(facts.SnapshotTaken) else ()


def _cause(found: Cause) -> dict[str, Any]:
    return {
        "category": found.category,
        "object": found.object.to_object(),
        "field": found.field,
        "value": found.value,
        "summary": found.summary,
        "confidence": found.confidence,
        "evidence": list(found.evidence),
        "explains": list(found.explains),
    }


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "detector": found.detector,
        "category": found.category,
        "object": found.object.to_object(),
        "field": found.field,
        "value": found.value,
        "confidence": found.confidence,
        "evidence": list(found.evidence),
        "actions": list(found.actions),
    }


def _action(case: Case) -> dict[str, Any] | None:
    """What would go to the ruling; None where nothing was selected."""
    selected = case.last(facts.Proposed)
    if selected is None:
        return None
    pin = selected.proposal.pin
    return {"actionType": pin.action_type, "workflow": pin.id, "parameters": dict(selected.proposal.parameters)}


def _judged(found: Judged | None) -> dict[str, bool] | None:
    """None where nothing was expected."""
    return {"at1": found.at1, "at3": found.at3, "field": found.field, "outcome": found.outcome} if found else None


# --- text --------------------------------------------------------------------------------------------------


def _text_lines(result: Result) -> Iterator[str]:
    yield f"{_mark(result.judged)}{result.recorded.name}: {_ending(result)} ({result.reads} reads)"
    for number, cause in enumerate(result.causes, start=1):
        figure = "" if cause.confidence is None else f" {cause.confidence:.2f}"
        where = f" in {cause.object.namespace}" if cause.object.namespace else ""
        place = f" {cause.field}" if cause.field else ""
        yield f"  {number}.{figure} {cause.category} {cause.object.display}{where}{place}"
        yield f"     {cause.summary}"
    if not result.causes and result.verdict is not None:
        yield f"  {result.verdict.message}"
    yield from (f"  gap: {gap.what}: {gap.why}" for gap in _gaps(result.case)[:SHOWN_GAPS])
    action = _action(result.case)
    if action:
        yield f"  action: {action['actionType']} by {action['workflow']}"


def _ending(result: Result) -> str:
    expected, judged = result.recorded.expected, result.judged
    return (
        result.outcome
        if expected is None or judged is None or judged.outcome
        else (f"{result.outcome or 'no outcome'}, expected {expected.outcome}")
    )


def _mark(judged: Judged | None) -> str:
    if judged is None:
        return "no expectation  "
    return "right  " if judged.at1 else "third  " if judged.at3 else "wrong  "


def table_text(table: Table) -> str:
    """The figures over all cases."""
    lines = [f"{table.cases} cases" + (f", {table.unjudged} without an expectation" if table.unjudged else "")]
    if table.total.cases:
        rows = {"all": table.total, **table.by_category}
        width = max(map(len, rows))
        lines += [f"{'category':<{width}}  cases  at 1  at 3  with field"]
        lines += [_row(name, share, width) for name, share in rows.items()]
    if table.healthy:
        lines.append(f"false alarms among the healthy: {table.alarms} of {table.healthy}")
    if table.told:
        lines.append(f"outcome as expected: {table.outcomes} of {table.told}")
    lines.append(f"reads per case: {table.reads / max(1, table.cases):.0f}")
    return "\n".join(lines)


def _row(name: str, share: Share, width: int) -> str:
    shares: Mapping[str, int] = {"at1": share.at1, "at3": share.at3, "field": share.field}
    one, three, named = (f"{100 * count / share.cases:.0f} %" for count in shares.values())
    return f"{name:<{width}}  {share.cases:>5}  {one:>5}  {three:>5}  {named:>10}"
