"""Four looks at one thing each, where the loop leaves the root cause open (behaviours, section 9.1)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import pytest

from inquest.api.types import Phase
from inquest.core.case import decide, facts
from inquest.core.case.case import Case, results_in
from inquest.core.case.facts import Fact
from inquest.core.case.investigating import rca_usage, stream_findings
from inquest.core.case.journal import dump_fact, load_fact
from inquest.core.case.selecting import selection_inquiry
from inquest.core.case.steps import CallModel, MoveStreams, RecordFact, Step
from inquest.core.case.transitions import fold_case
from inquest.core.llm.conversation import AskModel, RunTools, Slot
from inquest.core.llm.messages import Invocation, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage
from inquest.core.llm.planning.prepare import RcaOptions
from inquest.core.llm.streams import RUN_STREAMS, STREAMS, StreamFinding
from inquest.core.reporting.audit import audit_records
from inquest.core.reporting.status import status_changes
from tests.unit.core import cases

ON: Final = {"model": "m-1", "habits": RcaOptions(streams=True)}
NAMES: Final = ("kubectl_describe", "kubectl_top_pods", "kubectl_logs", "kubectl_events", "read_evidence")
TOOLS: Final = {
    **dict.fromkeys(Invocation, ()),
    Invocation.RCA: tuple(ToolSchema(name, "", {"type": "object", "properties": {"about": {}}}) for name in NAMES),
}
FOUND: Final = {"signals": ["x"], "hypothesis": "the limit is too low", "confidence": 0.6}
PROSE: Final = cases.reply("I think that the logs look bad.")


def found(**changes: Any) -> ModelReply:
    return cases.reply("", cases.call("submit_finding", **{**FOUND, **changes}))


def called(tool: str, about: str = "api-1") -> ModelReply:
    return cases.reply("", ToolCall("c", tool, json.dumps({"about": about})))


def still_open() -> ModelReply:
    return cases.submitted(investigation_outcome="inconclusive", confidence=0.3)


@dataclass
class Looking(cases.World):
    """A world whose model also answers the streams, each from a list of its own."""

    settings: Mapping[str, Any] = field(default_factory=lambda: ON)
    streams: Mapping[str, list[ModelReply]] = field(default_factory=dict)
    asked: dict[str, list[ModelRequest]] = field(default_factory=lambda: defaultdict(list))
    rounds: list[tuple[str, ...]] = field(default_factory=list)
    verdicts: list[ModelRequest] = field(default_factory=list)

    def perform(self, step: Step, now: datetime) -> Fact:
        match step:
            case MoveStreams(moves):
                asks = {name: move for name, move in moves if isinstance(move, AskModel)}
                if asks:
                    self.rounds.append(tuple(asks))
                for name, move in asks.items():
                    self.asked[name].append(move.request)
                return facts.StreamsMoved(tuple((name, self.moved(name, move)) for name, move in moves), now)
            case CallModel(Invocation.RCA, move):
                self.verdicts.append(move.request)
                return super().perform(step, now)
            case _:
                return super().perform(step, now)

    def moved(self, name: str, move: AskModel | RunTools) -> Slot:
        if isinstance(move, RunTools):
            return tuple(self.ran(run) for run in move.runs)
        given = self.streams.get(name, [])
        return move.stamp(given.pop(0) if given else found())

    def diagnosed(self, *replies: ModelReply) -> Case:
        """As far as the verdict of invocation 1."""
        self.replies = iter(replies)
        return self.run(cases.view(tools=TOOLS), until=Phase.SELECTING)


def by_domain(case: Case) -> dict[str, StreamFinding]:
    return {one.domain: one for one in stream_findings(case)}


@pytest.mark.parametrize((), [()], ids=["L31"])
def test_a_stream_that_answers_in_prose_twice_finds_nothing_and_the_others_are_unaffected() -> None:
    world = Looking(streams={"logs": [PROSE, PROSE]})
    case = world.diagnosed(still_open(), cases.submitted())

    seen = by_domain(case)
    assert (seen["logs"].confidence, seen["logs"].signals) == (0.0, ())
    assert seen["logs"].hypothesis == "no finding: the answer could not be read"
    assert [seen[one].confidence for one in STREAMS if one != "logs"] == [0.6, 0.6, 0.6]
    assert [len(world.asked[str(one)]) for one in STREAMS] == [1, 1, 2, 1]
    assert world.asked["logs"][1].forced == ("submit_finding",)


@pytest.mark.parametrize((), [()], ids=["L32"])
def test_a_stream_is_told_the_snapshot_and_nothing_of_what_was_said_or_done_before() -> None:
    looks = [called("kubectl_logs"), found()]
    world = Looking(streams={"logs": looks})
    said = replace(called("kubectl_describe", "elsewhere"), text="the words of the loop")
    case = world.diagnosed(said, still_open(), cases.submitted())

    first = case.first(facts.SnapshotTaken)
    past = case.first(facts.ContextResolved)
    assert first is not None
    assert past is not None
    assert past.history.recent[0].action_type == "ScaleUp"
    for asked in (request for several in world.asked.values() for request in several):
        text = "\n".join(message.content for message in asked.messages)
        assert first.snapshot.evidence[0].text in text
        assert first.findings[0].summary in text
        assert "the words of the loop" not in text
        assert "elsewhere" not in text
        assert "ScaleUp" not in text
    assert [len(request.messages) for request in world.asked["pod"]] == [2]


def test_each_stream_has_its_own_tools_and_so_many_calls() -> None:
    looks = [called("kubectl_logs", f"pod-{number}") for number in range(9)]
    world = Looking(streams={"logs": looks})
    case = world.diagnosed(still_open(), cases.submitted())

    offered = {name: {tool.name for tool in asked[0].tools} for name, asked in world.asked.items()}
    assert offered == {
        "pod": {"kubectl_describe", "read_evidence", "submit_finding"},
        "metrics": {"kubectl_top_pods", "read_evidence", "submit_finding"},
        "logs": {"kubectl_logs", "read_evidence", "submit_finding"},
        "events": {"kubectl_events", "read_evidence", "submit_finding"},
    }
    ran = [result for batch in case.all(facts.StreamsMoved) for result in results_in(batch)]
    assert len(ran) == 3
    assert by_domain(case)["logs"].confidence == 0.0


def test_they_go_at_once_and_the_evidence_of_all_of_them_has_numbers_of_its_own() -> None:
    tools = {
        "pod": "kubectl_describe",
        "metrics": "kubectl_top_pods",
        "logs": "kubectl_logs",
        "events": "kubectl_events",
    }
    world = Looking(streams={name: [called(tool), found()] for name, tool in tools.items()})
    case = world.diagnosed(called("kubectl_describe", "a"), still_open(), cases.submitted())

    assert world.rounds == [tuple(tools), tuple(tools)]
    ids = [item.id for item in case.evidence]
    assert len(ids) == len(set(ids)) == 1 + 1 + 4
    assert selection_inquiry(case, cases.view(tools=TOOLS)).first_evidence == 1 + max(int(name[1:]) for name in ids)


def test_the_verdict_is_made_of_what_they_found_and_may_cite_it() -> None:
    world = Looking(streams={"logs": [called("kubectl_logs"), found(evidence=["E10", "E99"])]})
    claim = {"statement": "s", "role": "root_cause", "evidence": [{"id": "E12", "quote": "text of E12"}]}
    case = world.diagnosed(still_open(), cases.submitted(claims=[claim]))

    seen = by_domain(case)["logs"]
    made = {item.id for item in case.evidence}
    assert seen.evidence == tuple(name for name in ("E10", "E99") if name in made)
    told = "\n".join(message.content for message in world.verdicts[-1].messages)
    assert "- logs: the limit is too low (confidence 0.60" in told
    assert [tool.name for tool in world.verdicts[-1].tools] == ["submit_result"]
    ended = case.last(facts.Diagnosed)
    assert ended is not None
    assert [one.verdict for one in ended.diagnosis.checked.claims] == ["Supported"]


def test_a_model_may_ask_for_them_and_is_not_asked_again() -> None:
    world = Looking()
    case = world.diagnosed(called(RUN_STREAMS.name), cases.submitted())

    assert len(world.rounds) == 1
    assert RUN_STREAMS.name in {tool.name for tool in world.verdicts[0].tools}
    assert len(case.all(facts.RcaReplied)) == 2
    assert case.phase is Phase.SELECTING


@pytest.mark.parametrize(
    ("settings", "replies"),
    [
        ({"model": "m-1"}, [still_open()]),
        (ON, [cases.submitted()]),
        ({**ON, "max_turns": 1}, [still_open()]),
    ],
    ids=["switched off", "the cause is known", "a budget is spent"],
)
def test_they_do_not_run(settings: Mapping[str, Any], replies: Iterable[ModelReply]) -> None:
    world = Looking(settings=settings)
    case = world.diagnosed(*replies)

    assert world.rounds == []
    assert stream_findings(case) == ()
    assert case.phase is Phase.SELECTING


def test_they_run_once_however_open_the_cause_stays() -> None:
    world = Looking()
    case = world.diagnosed(still_open(), still_open())

    assert len(world.rounds) == 1
    assert case.phase is Phase.SELECTING


def test_where_no_verdict_comes_of_them_the_one_before_stands() -> None:
    world = Looking()
    case = world.diagnosed(still_open(), *[PROSE] * 2)

    ended = case.last(facts.Diagnosed)
    assert ended is not None
    assert ended.diagnosis.summary == "Deployment/api: the memory limit of container app is too low"


def test_a_stream_without_a_tool_of_its_own_is_not_configured() -> None:
    world = Looking(replies=iter([still_open(), cases.submitted()]))
    bare = {**TOOLS, Invocation.RCA: tuple(tool for tool in TOOLS[Invocation.RCA] if "top" not in tool.name)}
    case = world.run(cases.view(tools=bare), until=Phase.SELECTING)

    assert by_domain(case)["metrics"].hypothesis == "no finding: not configured"
    assert world.rounds == [("pod", "logs", "events")]


def test_a_crash_between_two_rounds_changes_nothing() -> None:
    world = Looking(streams={"logs": [called("kubectl_logs"), found()]})
    case = world.diagnosed(called("kubectl_describe"), still_open(), cases.submitted())

    for number in range(1, len(case.facts)):
        again = fold_case(load_fact(dump_fact(fact)) for fact in case.facts[:number])
        step = decide.next_step(again, cases.view(tools=TOOLS))
        if isinstance(step, RecordFact):
            assert step.fact == case.facts[number]
    whole = fold_case(load_fact(dump_fact(fact)) for fact in case.facts)
    assert stream_findings(whole) == stream_findings(case)


def test_people_and_books_see_what_they_cost_and_found() -> None:
    world = Looking(streams={"logs": [called("kubectl_logs"), found()]})
    case = world.diagnosed(still_open(), cases.submitted())

    status = status_changes(case)
    assert [one.detector for one in status["findings"]][-4:] == [f"stream/{one}" for one in STREAMS]
    assert (status["usage"].turns, status["usage"].tool_calls) == (2 + 5, 1)
    assert rca_usage(case) == Usage(7_000, 700, 350)
    kept = audit_records(case, "uid-1", {}, TOOLS)
    assert {one.data.get("phase") for one in kept if one.event_type.endswith("llm.tool_call")} == {None, "stream/logs"}
    assert len([one for one in kept if one.event_type.endswith("llm.response")]) == 7
