"""Recorded cases through the product, one after the other, and out of it: `inquest replay` and `inquest export`.

The ports are those of the operator; their cluster is the recorded case, their clock starts when it was recorded, and
nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from sqlalchemy import make_url
from starlette.applications import Starlette

from inquest.adapters.clock import SystemClock
from inquest.adapters.datastorage.client import DataStorageClient
from inquest.adapters.kubernetes.clients import Clients
from inquest.api.base import ObjectMeta
from inquest.api.investigation import Investigation, InvestigationStatus
from inquest.controllers.investigation.replay import Replay, register_catalogue
from inquest.controllers.investigation.stored import from_journal, from_records, uid_of
from inquest.controllers.journal import Journal
from inquest.controllers.ports import ControllerPorts
from inquest.core.case import facts
from inquest.core.case.case import Case, told_diagnosis
from inquest.core.case.outcome import Conclusion
from inquest.core.diagnosis.diagnosis import Cause
from inquest.core.diagnosis.playbooks import Playbook
from inquest.core.llm.messages import Invocation
from inquest.core.redaction.redactor import Redactor
from inquest.core.reporting.archive import replay_case
from inquest.core.reporting.status import status_changes
from inquest.datastorage.app import create_app
from inquest.datastorage.store.database import migrate_database
from inquest.datastorage.store.opening import open_database
from inquest.errors import Misconfigured, NotRecorded
from inquest.gather.tools.context import Backends
from inquest.gather.tools.resource_context import context_tool
from inquest.gather.tools.toolset import Toolset
from inquest.ports.kubernetes import Json
from inquest.ports.model import Model
from inquest.replay.case import CASE, RecordedCase, is_case, read_case
from inquest.replay.clock import RecordedClock
from inquest.replay.cluster import RecordedCluster
from inquest.replay.export import read_recording
from inquest.replay.metrics import RecordedMetrics
from inquest.replay.null import NullNotifier, NullPolicy, ReadOnlyObjects
from inquest.replay.scoring import Judged, Played, judge_result
from inquest.replay.target_reader import RecordedTargetReader
from inquest.replay.yaml_pages import read_yaml_pages
from inquest.settings.model import ModelSettings
from inquest.settings.settings import Settings
from inquest.wiring import external_datastorage, model_names, model_of, playbooks_of

PACKAGED_CATALOGUE: Final = Path(__file__).parents[1] / "catalogue"
SOURCE_CATALOGUE: Final = Path(__file__).parents[3] / "catalogue"
MOST_CAUSES: Final = 5
NONE: Final = "none"
RECORDED: Final = "recorded"


class NotHere(Misconfigured):
    """The records lie in a database that this process does not see."""


@dataclass(frozen=True)
class Result:
    """What one replay said."""

    recorded: RecordedCase
    case: Case
    reads: int
    seconds: float

    @property
    def verdict(self) -> Conclusion | None:
        closed, selected = self.case.closed, self.case.last(facts.Proposed)
        return closed.verdict if closed else selected.verdict if selected else None

    @property
    def outcome(self) -> str:
        """One of the nine; the reason where the case ended outside them."""
        verdict = self.verdict
        return str((verdict.outcome or verdict.reason or "") if verdict else "")

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Ranked, the root cause first."""
        found = told_diagnosis(self.case)
        return found.causes[:MOST_CAUSES] if found else ()

    @property
    def judged(self) -> Judged | None:
        """How it compares with what was expected; None where nothing was."""
        expected = self.recorded.expected
        return judge_result(expected, self.causes, self.outcome) if expected else None

    @property
    def played(self) -> Played:
        """As the table counts it."""
        return Played(self.recorded.expected, self.judged, len(self.causes), self.outcome, self.reads)


def case_places(cases: Iterable[Path]) -> Iterator[Path]:
    """The cases that are meant, folders or files: a folder that is none itself stands for those beneath it."""
    for place in cases:
        if not place.is_dir() or (place / CASE).exists():
            yield place
            continue
        folders = {path.parent for path in place.rglob(CASE)}
        files = (path for path in place.rglob("*.yaml") if not folders.intersection(path.parents) and is_case(path))
        yield from sorted((*folders, *files)) or (place,)


KNOWN: Final = "not-yet.txt"


def known_misses(cases: Iterable[Path]) -> dict[Path, str]:
    """Id of a case → why it is answered wrong, from the list that a given folder may hold: `<case>: <why>` a line."""
    lists = (folder / KNOWN for folder in cases if (folder / KNOWN).is_file())
    return {beside.parent / name.strip(): why.strip() for beside in lists for name, why in _rows_of(beside)}


def _rows_of(beside: Path) -> Iterator[tuple[str, str]]:
    lines = (line.strip() for line in beside.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line and not line.startswith("#"):
            name, _, why = line.partition(":")
            yield name, why


@dataclass(frozen=True)
class Player:
    """Plays recorded cases."""

    settings: Settings
    datastorage: DataStorageClient
    redactor: Redactor
    model: Model | None
    playbooks: tuple[Playbook, ...]
    elapsed: Callable[[], float] = time.monotonic
    """Seconds that go by while a model answers."""
    words: bool = False
    """Whether the replies that were recorded with a case are taken, instead of asking anybody."""

    async def play(self, place: Path) -> Result:
        """The case in a folder or a file, as far as a replay goes; BadCase where it cannot be read."""
        begun = time.monotonic()
        recorded = read_case(place)
        cluster = RecordedCluster(recorded)
        ports = self._ports_of(recorded, cluster)
        if self.words:
            tools = {invocation: ports.tools.schemas(invocation) for invocation in Invocation}
            case = replay_case(read_recording(place), tools)
        else:
            case = await Replay(ports).play(recorded.signal)
        return Result(recorded, case, cluster.reads, time.monotonic() - begun)

    def _ports_of(self, recorded: RecordedCase, cluster: RecordedCluster) -> ControllerPorts:
        # With a model the time that really goes by counts: its budgets are real.
        clock = RecordedClock(recorded.taken_at, self.elapsed) if self.model else RecordedClock(recorded.taken_at)
        target_reader, status = RecordedTargetReader(recorded, cluster, self.redactor, clock), ReadOnlyObjects(clock)
        context = context_tool(target_reader, self.datastorage)
        runbooks = {book.name: book.text for book in self.playbooks}
        blocked = frozenset(self.settings.rca.blocked_kinds)
        backends = Backends(cluster, self.redactor, clock, self.datastorage, context, runbooks, blocked)
        if recorded.measured:
            backends = replace(backends, metrics=RecordedMetrics(recorded))
        settings = _at_home_in(self.settings, recorded.home)
        return ControllerPorts(
            settings=settings,
            cluster=cluster,
            target_reader=target_reader,
            tools=Toolset(backends),
            status=status,
            policy=NullPolicy(),
            catalogue=self.datastorage,
            datastorage=self.datastorage,
            notifier=NullNotifier(),
            clock=clock,
            redactor=self.redactor,
            journal=Journal(status, settings.kubernetes.namespace),
            model=self.model,
            replica="replay/1",
            random=Random(recorded.name),
            must_hold=lambda: None,
            playbooks=self.playbooks,
            offer=lambda *_: None,
        )


def _at_home_in(settings: Settings, home: str) -> Settings:
    """The settings of an operator in that namespace, which may act on every other."""
    own = {"namespace": home or settings.kubernetes.namespace}
    return settings.model_copy(update={"kubernetes": settings.kubernetes.model_copy(update=own)})


@asynccontextmanager
async def open_player(settings: Settings, catalogue: Path | None, model: str = NONE) -> AsyncIterator[Player]:
    """What replays need, open; the catalogue is that of a folder, in a database of its own.

    `model` is `none`, `recorded`, or the name of a configured one.
    """
    async with AsyncExitStack() as stack:
        asked, redactor = _alone(settings.model, model), Redactor(settings.secrets())
        settings = settings.model_copy(update={"model": asked})
        clock = SystemClock()
        folder = stack.enter_context(TemporaryDirectory(prefix="inquest-replay-"))
        database = open_database(f"sqlite:///{folder}/catalogue.db")
        stack.push_async_callback(database.close)
        await migrate_database(database)
        app = create_app(database)
        stack.push_async_callback(app.state.service.close)
        datastorage = DataStorageClient.in_process(app, clock=clock)
        stack.push_async_callback(datastorage.close)
        if catalogue is not None:
            await register_catalogue(datastorage, catalogue_objects(catalogue))
        endpoint = await model_of(asked, clock, redactor.learn, stack)
        yield Player(settings, datastorage, redactor, endpoint, playbooks_of(settings), words=model == RECORDED)


def _alone(chosen: ModelSettings, name: str) -> ModelSettings:
    """The settings with one endpoint, or none."""
    if name in (NONE, RECORDED):
        return chosen.model_copy(update={"provider": "none"})
    found = next((one for one in chosen.endpoints if one.name == name), None)
    if found is None:
        known = ", ".join(model_names(chosen)) or "there is none"
        raise Misconfigured(f"no model {name!r} is configured: {known}")
    own = {field: getattr(found, field) for field in type(found).model_fields if field in ModelSettings.model_fields}
    return chosen.model_copy(update={**own, "failover": ()})


# --- export ------------------------------------------------------------------------------------------------------


async def named_case(kube: Clients, settings: Settings, namespace: str, name: str) -> Case:
    """The stored case of an Investigation, by its name, or by its uid once it is deleted."""
    return await stored_case(kube, settings, await uid_of(kube.status, namespace, name))


async def stored_case(kube: Clients, settings: Settings, uid: str) -> Case:
    """A case as its journal has it, else as DataStorage keeps it; NotRecorded where neither does."""
    case = await from_journal(Journal(kube.status, settings.kubernetes.namespace), uid)
    if case is not None:
        return case
    async with AsyncExitStack() as stack:
        try:
            # The service with the records; an embedded one is read from its database, which is never made here.
            clock = SystemClock()
            chosen = settings.datastorage
            if chosen.mode == "external":
                client = external_datastorage(chosen, clock)
            else:
                client = DataStorageClient.in_process(_service(chosen.database, stack), clock=clock)
            stack.push_async_callback(client.close)
            return await from_records(client, uid)
        except NotRecorded as error:
            raise NotRecorded(f"{_looked_into(settings)}: {error}") from error


def _looked_into(settings: Settings) -> str:
    """Where the records were looked for."""
    chosen = settings.datastorage
    if chosen.mode == "external":
        return str(chosen.url)
    url = make_url(chosen.database)
    return url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def recorded_investigation(case: Case) -> Investigation:
    """A case as its Investigation would say it."""
    opened = case.opened
    metadata = ObjectMeta(name=opened.name, namespace=opened.namespace)
    return Investigation(metadata=metadata, spec=opened.spec, status=InvestigationStatus(**status_changes(case)))


def _service(database: str, stack: AsyncExitStack) -> Starlette:
    url = make_url(database)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise NotHere(
            f"datastorage.database: there is no {url.database}; the records are where the operator runs: run this "
            "there, or name its service with datastorage.mode and datastorage.url"
        )
    opened = open_database(database)
    stack.push_async_callback(opened.close)
    app = create_app(opened)
    stack.push_async_callback(app.state.service.close)
    return app


def catalogue_objects(folder: Path) -> tuple[Json, ...]:
    """Every object of the YAML files in a folder."""
    if not folder.is_dir():
        raise Misconfigured(f"there is no catalogue folder {folder}")
    return tuple(dict(found.mapping()) for path in sorted(folder.glob("*.yaml")) for found in read_yaml_pages(path))


def default_catalogue() -> Path | None:
    """The catalogue that ships with the product."""
    return next((folder for folder in (PACKAGED_CATALOGUE, SOURCE_CATALOGUE) if folder.is_dir()), None)
