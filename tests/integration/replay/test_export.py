"""A stored investigation as a folder, and the folder played once more: the same verdict (cases, section 5)."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.adapters.kubernetes.clients import Clients
from inquest.adapters.kubernetes.credentials import from_kubeconfig
from inquest.api.base import ObjectMeta
from inquest.api.investigation import Feedback, FeedbackVerdict, Investigation
from inquest.api.types import Outcome
from inquest.cli.admin.replay import replay
from inquest.cli.exits import Exit
from inquest.controllers.investigation.stored import from_records
from inquest.core.case.case import Case
from inquest.core.case.facts import Proposed, SnapshotTaken, ToolsRan
from inquest.core.case.transitions import fold_case
from inquest.core.llm.messages import ModelReply, ModelRequest, ToolCall
from inquest.core.redaction.redacted import Redacted, seal
from inquest.core.reporting import audit
from inquest.core.reporting.archive import fact_records
from inquest.core.selection.catalogue import CatalogueFilters
from inquest.errors import AlreadyExists, Misconfigured, NotFound, NotRecorded
from inquest.ports.datastorage import AuditEvent
from inquest.replay.case import RecordedCase, read_case
from inquest.replay.cluster import RecordedCluster
from inquest.replay.export import export_case, read_recording
from inquest.replay.player import Player, default_catalogue, named_case, open_player
from inquest.replay.yaml_pages import CaseFileError
from inquest.settings.settings import Settings
from tests.integration.datastorage.served import embedded
from tests.integration.replay.support import CASES
from tests.support.listening import serving
from tests.support.programs import inquest
from tests.unit.core import cases

UID = "8c0e5b5e-5a4c-4d0e-9a53-0d3a7a1f3c11"
WRONG = Feedback(verdict=FeedbackVerdict.WRONG, cause="somebody pulled the plug", by="jane")
RIGHT = Feedback(verdict=FeedbackVerdict.RIGHT, by="jane")
FILTERS = CatalogueFilters("critical", "Deployment", "staging", "P1")


class Scripted:
    """A model that says these things, one after the other."""

    def __init__(self, replies: Iterator[ModelReply]) -> None:
        self._replies = replies

    async def ask(self, request: Redacted[ModelRequest]) -> ModelReply:
        return next(self._replies)


@asynccontextmanager
async def playing_with(*replies: Callable[[str], ModelReply]) -> AsyncIterator[Player]:
    """A player whose model knows the id of the workflow."""
    async with open_player(Settings(), default_catalogue()) as player:
        offers = await player.datastorage.workflows("IncreaseMemoryLimits", FILTERS)
        workflow = offers.items[0].workflow_id
        model = player.settings.model.model_copy(update={"name": "m-1"})
        settings = player.settings.model_copy(update={"model": model})
        yield replace(player, settings=settings, model=Scripted(iter([say(workflow) for say in replies])))


def looks(_: str) -> ModelReply:
    asked = {"kind": "Deployment", "name": "api", "namespace": "shop", "output": "json"}
    get = ToolCall("c-get", "kubectl_get", json.dumps(asked))
    return cases.reply("I look at the workload.", get)


def concludes(_: str) -> ModelReply:
    claims = [
        {
            "statement": "The container was killed for memory.",
            "role": "root_cause",
            "evidence": [{"id": "E3", "quote": "OOMKilled"}, {"id": "E2", "quote": "128Mi"}],
        }
    ]
    return cases.submitted(claims=claims)


def chooses(workflow: str) -> ModelReply:
    chosen = {"workflow_id": workflow, "confidence": 0.9, "parameters": {"CONTAINER": "api", "MEMORY_LIMIT": "256Mi"}}
    return cases.chose(selected_workflow={**chosen, "rationale": "fits"})


async def talked() -> Case:
    """The hand-written case, as a model that looks, concludes and chooses leaves it."""
    async with playing_with(looks, concludes, chooses) as player:
        return (await player.play(CASES / "memory")).case


async def by_detectors(name: str) -> Case:
    async with open_player(Settings(), default_catalogue()) as player:
        return (await player.play(CASES / name)).case


def verdict_of(case: Case) -> object:
    selected, closed = case.last(Proposed), case.closed
    return (selected.verdict, selected.proposal) if selected else closed.verdict if closed else None


async def test_a_model_works_on_a_recorded_case() -> None:
    case = await talked()

    (batch,) = case.all(ToolsRan)
    evidence = batch.results[0].evidence
    assert evidence is not None
    assert "128Mi" in evidence.text
    selected = case.last(Proposed)
    assert selected is not None
    assert selected.verdict.outcome is Outcome.WORKFLOW_SELECTED
    assert selected.proposal.pin.id == "increase-memory-limit"


async def test_the_recorded_replies_end_in_the_same_verdict(tmp_path: Path) -> None:
    case = await talked()
    export_case(case, tmp_path / "case", RIGHT)

    async with open_player(Settings(), default_catalogue(), "recorded") as player:
        again = await player.play(tmp_path / "case")

    assert verdict_of(again.case) == verdict_of(case)
    assert again.judged is not None
    assert again.judged.holds


@pytest.mark.parametrize("name", ["memory", "quiet"])
async def test_the_detectors_find_the_same_in_what_was_exported(name: str, tmp_path: Path) -> None:
    case = await by_detectors(name)
    export_case(case, tmp_path / "case", RIGHT)

    async with open_player(Settings(), default_catalogue()) as player:
        again = await player.play(tmp_path / "case")

    assert again.recorded.home == case.opened.pinned.home == Settings().kubernetes.namespace
    told = [(one.detector, one.category, one.object, one.field, one.value) for one in again.case.findings]
    assert told == [(one.detector, one.category, one.object, one.field, one.value) for one in case.findings]
    assert again.judged is not None
    assert again.judged.at1


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (None, None),
        (RIGHT, True),
        (Feedback(verdict=FeedbackVerdict.WRONG, by="jane"), None),
        (WRONG, None),
        (Feedback(verdict=FeedbackVerdict.WRONG, cause="CrashLoopBackOff", by="jane"), False),
        (Feedback(verdict=FeedbackVerdict.WRONG, cause="OOMKilled", by="jane"), False),
        (Feedback(verdict=FeedbackVerdict.PARTIAL, by="jane"), None),
        (Feedback(verdict=FeedbackVerdict.PARTIAL, cause="OOMKilled", by="jane"), True),
    ],
)
async def test_an_answer_replays_as_right_only_where_a_person_said_so(
    said: Feedback | None, right: bool | None, tmp_path: Path
) -> None:
    export_case(await by_detectors("memory"), tmp_path / "case", said)

    async with open_player(Settings(), default_catalogue()) as player:
        again = await player.play(tmp_path / "case")

    assert (again.judged.at1 if again.judged else None) is right
    assert (tmp_path / "case" / "feedback.yaml").exists() is (said is not None)


async def test_an_exported_case_that_nobody_judged_counts_neither_right_nor_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export_case(await by_detectors("memory"), tmp_path / "case")

    assert await replay([tmp_path / "case"], Settings(), default_catalogue(), "none", "text") == 0

    said = capsys.readouterr().out
    assert said.startswith("no expectation  ")
    assert "1 cases, 1 without an expectation" in said


async def test_an_exported_folder_says_what_was_seen(tmp_path: Path) -> None:
    export_case(await by_detectors("memory"), tmp_path / "case")

    found = read_case(tmp_path / "case")

    assert found.signal.spec.target.display == "Pod/api-6d5f9c7b8-x2x4p"
    assert found.taken_at == read_case(CASES / "memory").taken_at
    assert [title for title, _ in found.texts] == ["systemctl status kubelet on node-1"]
    assert await log_of(found) == "starting\ncache is full\n"
    assert "hunter2" not in "".join(path.read_text() for path in (tmp_path / "case").rglob("*") if path.is_file())


async def log_of(found: RecordedCase) -> str:
    return await RecordedCluster(found).logs("shop", "api-6d5f9c7b8-x2x4p", "api")


async def test_what_was_looked_for_in_vain_is_not_there_in_the_folder_either(tmp_path: Path) -> None:
    case = await by_detectors("quiet")
    taken = case.first(SnapshotTaken)
    assert taken is not None
    export_case(case, tmp_path / "case")
    cluster = RecordedCluster(read_case(tmp_path / "case"))

    assert (await cluster.list(await cluster.kind("pods"), "shop")).items
    with pytest.raises(NotRecorded):
        await cluster.list(await cluster.kind("pods"), "another")
    for absent in taken.snapshot.absent:
        with pytest.raises(NotFound):
            await cluster.get(await cluster.kind(absent.ref.kind), absent.ref.name, absent.ref.namespace or "")


async def test_nothing_is_written_over(tmp_path: Path) -> None:
    case = await by_detectors("quiet")
    (tmp_path / "case").mkdir()

    with pytest.raises(AlreadyExists, match="nothing is written over"):
        export_case(case, tmp_path / "case")
    assert list((tmp_path / "case").iterdir()) == []


async def test_a_case_that_ended_before_its_snapshot_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotRecorded, match="before anything was read"):
        export_case(fold_case([cases.opened()]), tmp_path / "case")
    assert not (tmp_path / "case").exists()


async def keep(client: DataStorageClient, case: Case) -> None:
    """What the archive sends besides the transcript; the service takes no events of the future."""
    events = [
        AuditEvent(
            audit.event_id(UID, one.step),
            one.event_type,
            one.category,
            one.action,
            one.outcome,
            UID,
            datetime.now(UTC),
            "shop",
            one.data,
        )
        for one in fact_records(case, UID)
    ]
    await client.record(seal(events))


async def test_the_records_of_a_closed_case_make_it_again(tmp_path: Path) -> None:
    case = await talked()
    async with embedded(f"sqlite:///{tmp_path}/kept.db") as service:
        await keep(service.client, case)

        assert await from_records(service.client, UID) == case
        with pytest.raises(NotRecorded):
            await from_records(service.client, "another")


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig for a server that knows one Investigation and, in the operator's namespace, no slot of it."""
    spec = cases.opened().spec.model_copy(update={"feedback": WRONG})
    found = Investigation(metadata=ObjectMeta(name="inv-1", namespace="shop", uid=UID), spec=spec).to_object()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"/apis/inquest.dev/v1alpha1/namespaces/shop/investigations/inv-1": found}
            slots = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []}
            path = self.path.partition("?")[0]
            body = slots if path == "/api/v1/namespaces/ops/configmaps" else known.get(path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            details = {"name": path.rpartition("/")[2], "kind": "investigations"}
            details = {} if path.startswith("/apis/evidence.inquest.dev/") else details
            missing = {"kind": "Status", "reason": "NotFound", "code": 404, "message": "not found", "details": details}
            self.wfile.write(json.dumps(body or missing).encode())

        def log_message(self, *args: object) -> None:
            return None

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Answers)) as server:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "a", "user": {"token": "none"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        yield path


def beside(kubeconfig: Path, database: str) -> dict[str, dict[str, str]]:
    """Settings of an operator in another namespace than the usual one."""
    return {
        "kubernetes": {"kubeconfig": str(kubeconfig), "namespace": "ops"},
        "datastorage": {"database": f"sqlite:///{kubeconfig.with_name(database)}"},
    }


async def written(settings: Settings, namespace: str, name: str, folder: Path) -> None:
    assert settings.kubernetes.kubeconfig is not None
    async with Clients(from_kubeconfig(settings.kubernetes.kubeconfig), SystemClock()) as kube:
        export_case(await named_case(kube, settings, namespace, name), folder)


async def stored(folder: Path, api_server: Path) -> tuple[Case, Settings]:
    """A case in a database, and the settings that lead there."""
    case = await talked()
    async with embedded(f"sqlite:///{folder}/kept.db") as service:
        await keep(service.client, case)
    return case, Settings.model_validate(beside(api_server, "kept.db"))


async def test_an_investigation_is_exported_by_name_and_once_it_is_deleted_by_uid(
    tmp_path: Path, api_server: Path
) -> None:
    case, settings = await stored(tmp_path, api_server)

    for number, name in enumerate(("inv-1", UID)):
        await written(settings, "shop", name, tmp_path / f"case-{number}")

        assert read_recording(tmp_path / f"case-{number}") == case
    with pytest.raises(NotFound):
        await written(settings, "shop", "inv-2", tmp_path / "none")
    with pytest.raises(AlreadyExists):
        await written(settings, "shop", "inv-1", tmp_path / "case-0")


async def test_an_investigation_is_exported_into_one_file_with_its_recording_beside_it(
    tmp_path: Path, api_server: Path
) -> None:
    case, settings = await stored(tmp_path, api_server)

    for place in ("case.yaml", "case"):
        await written(settings, "shop", "inv-1", tmp_path / place)

    assert read_recording(tmp_path / "case.yaml") == case
    assert (tmp_path / "case.recording.json").is_file()
    assert read_case(tmp_path / "case.yaml") == read_case(tmp_path / "case")
    with pytest.raises(AlreadyExists):
        await written(settings, "shop", "inv-1", tmp_path / "case.yaml")


async def test_a_database_that_is_not_there_is_not_made(tmp_path: Path, api_server: Path) -> None:
    own = beside(api_server, "no.db")

    with pytest.raises(Misconfigured, match="the records are where the operator runs"):
        await written(Settings.model_validate(own), "shop", "inv-1", tmp_path / "case")
    assert not (tmp_path / "no.db").exists()


async def test_a_database_that_knows_nothing_of_the_case_is_named(tmp_path: Path, api_server: Path) -> None:
    async with embedded(f"sqlite:///{tmp_path}/other.db"):
        pass
    own = beside(api_server, "other.db")

    with pytest.raises(NotRecorded, match=r"/other\.db: nothing is stored of this investigation"):
        await written(Settings.model_validate(own), "shop", "inv-1", tmp_path / "case")


# --- the command ------------------------------------------------------------------------------------------------------


async def told(
    tmp_path: Path, own: dict[str, dict[str, str]], *words: str, settings: bool = True
) -> tuple[int, bytes, str]:
    """What the program of a person says, with a file of settings or without."""
    file = tmp_path / "settings.yaml"
    file.write_text(json.dumps(own))
    place = [f"--kubeconfig={own['kubernetes']['kubeconfig']}", "--namespace=shop"]
    place += [f"--settings={file}"] if settings else []
    # The API server of this test is served by this very loop.
    ran = await asyncio.to_thread(inquest, *words, *place)
    return ran.code, ran.bytes, ran.err


async def test_the_command_takes_along_what_a_person_said_of_the_case(tmp_path: Path, api_server: Path) -> None:
    async with embedded(f"sqlite:///{tmp_path}/kept.db") as service:
        await keep(service.client, await by_detectors("memory"))

    code, _, err = await told(tmp_path, beside(api_server, "kept.db"), "export", "inv-1", "-o", str(tmp_path / "case"))

    assert (code, err) == (Exit.OK, "")
    assert yaml.safe_load((tmp_path / "case" / "feedback.yaml").read_text()) == WRONG.to_object()
    assert not (tmp_path / "case" / "expected.yaml").exists()


async def test_an_archive_holds_the_folder_and_nothing_else_is_said(tmp_path: Path, api_server: Path) -> None:
    case = await talked()
    async with embedded(f"sqlite:///{tmp_path}/kept.db") as service:
        await keep(service.client, case)

    code, out, err = await told(tmp_path, beside(api_server, "kept.db"), "export", "inv-1", "-o", "-")

    assert (code, err) == (Exit.OK, "")
    with tarfile.open(fileobj=io.BytesIO(out)) as archive:
        archive.extractall(tmp_path, filter="data")
    assert read_recording(tmp_path / case.opened.name) == case


@pytest.mark.parametrize("words", [["export", "inv-1", "-o", "case"], ["evidence", "inv-1", "E1"]])
@pytest.mark.parametrize(
    ("settings", "way"),
    [
        (True, "without --settings they come through the API server"),
        (False, "this cluster has no APIService v1alpha1.evidence.inquest.dev, by which cases are read"),
    ],
)
async def test_what_lies_with_the_operator_is_told_with_the_way_that_leads_there(
    words: list[str], settings: bool, way: str, tmp_path: Path, api_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = beside(api_server, "no.db")
    monkeypatch.setenv("INQUEST_DATASTORAGE__DATABASE", own["datastorage"]["database"])
    monkeypatch.setenv("INQUEST_KUBERNETES__NAMESPACE", own["kubernetes"]["namespace"])

    code, _, err = await told(tmp_path, own, *words, settings=settings)

    assert way in err
    assert "exec" not in err
    assert code == (Exit.MISUSED if words[0] == "export" else Exit.NOT_FOUND)
    assert not (tmp_path / "case").exists()


def test_an_archive_is_not_written_to_a_terminal() -> None:
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "inquest.cli.main", "export", "inv-1", "-o", "-"]

    ran = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False)

    os.close(theirs)
    os.close(mine)
    assert ran.returncode == Exit.MISUSED
    assert "send it to tar x" in ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "recording.json:1: no JSON"),
        ("{}", "recording.json:1: no recording"),
        ('{"facts": [{"fact": "X"}]}', ":1:"),
    ],
)
def test_a_recording_that_is_none_is_a_bad_case(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "recording.json").write_text(text)
    with pytest.raises(CaseFileError, match=said):
        read_recording(tmp_path)


def test_a_folder_without_a_recording_is_a_bad_case(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match=r"recording\.json:1: No such file"):
        read_recording(tmp_path)


async def test_a_recording_is_plain_json(tmp_path: Path) -> None:
    export_case(await by_detectors("quiet"), tmp_path / "case")
    facts = json.loads((tmp_path / "case" / "recording.json").read_text())["facts"]
    assert [fact["fact"] for fact in facts][:3] == ["Opened", "ContextResolved", "SnapshotTaken"]
