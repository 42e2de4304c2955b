"""A settings file that changes under a running process: what is taken up, what waits, what is refused."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from inquest.controllers.ports import ControllerPorts
from inquest.operator.reload import SettingsFile, differing, with_live_of
from inquest.settings.settings import Settings, list_settings
from inquest.telemetry.logs import log_from
from inquest.telemetry.metrics import SETTINGS_REFUSED, SETTINGS_WAITING


class Running:
    """A process that runs with a file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        path.write_text(text)
        self.taken: list[Settings] = []
        self.file = SettingsFile(path, Settings.load(path), self.taken.append)

    async def finds(self, text: str) -> str:
        self.path.write_text(text)
        await self.file.look()
        return self.file.fault()


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "settings.yaml", "triage: {rate: 5}\ncluster_name: east\n")


async def test_a_live_setting_is_taken_up_and_nothing_waits(running: Running) -> None:
    fault = await running.finds("triage: {rate: 7}\ncluster_name: east\n")

    assert (fault, [one.triage.rate for one in running.taken]) == ("", [7])


async def test_what_was_built_at_the_start_stays_and_is_said_to_need_a_restart(running: Running) -> None:
    fault = await running.finds("triage: {rate: 7}\ncluster_name: west\nserver: {health_port: 1}\n")

    assert fault == "needs restart: server.health_port, cluster_name"
    assert [(one.triage.rate, one.cluster_name) for one in running.taken] == [(7, "east")]
    assert SETTINGS_WAITING._value.get() == 2
    assert await running.finds("triage: {rate: 7}\ncluster_name: east\n") == ""
    assert SETTINGS_WAITING._value.get() == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("triage: {rate: 0}", "triage.rate: Input should be greater than or equal to 1"),
        ("triage: {rat: 7}", "triage.rat: there is no such setting; did you mean triage.rate?"),
        ("tirage: {rate: 7}", "tirage: there is no such setting; did you mean triage?"),
        ("zzz: 1", "zzz: there is no such setting"),
        ("{", "cannot be read"),
        ("- 1", "must hold a mapping"),
    ],
    ids=["a value", "a name", "a group", "a word", "no YAML", "no mapping"],
)
async def test_a_file_that_is_refused_changes_nothing_and_names_the_field(
    running: Running, text: str, words: str
) -> None:
    fault = await running.finds(text)

    assert fault.startswith("refused, the earlier ones stay: ")
    assert words in fault
    assert (running.taken, SETTINGS_REFUSED._value.get()) == ([], 1)
    assert await running.finds("triage: {rate: 7}\ncluster_name: east\n") == ""
    assert ([one.triage.rate for one in running.taken], SETTINGS_REFUSED._value.get()) == ([7], 0)


async def test_a_file_that_is_gone_is_refused_and_comes_back(running: Running) -> None:
    await running.file.look()
    running.path.unlink()
    await running.file.look()

    assert "cannot be read" in running.file.fault()
    assert (await running.finds("triage: {rate: 5}\ncluster_name: east\n"), running.taken) == ("", [])


async def test_the_environment_beats_a_changed_file_too(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_TRIAGE__RATE", "9")
    await running.finds("triage: {rate: 7}\ncluster_name: east\n")

    assert [one.triage.rate for one in running.taken] == [9]


def test_every_live_setting_and_no_other_is_taken_from_what_was_found() -> None:
    start = Settings()
    found = start.model_copy(
        update={
            "limits": start.limits.model_copy(update={"max_turns": 3}),
            "rca": start.rca.model_copy(update={"streams": True, "playbooks": False}),
            "execution": start.execution.model_copy(update={"dry_run": True, "namespace": "elsewhere"}),
            "retention": timedelta(days=1),
            "log_format": "text",
        }
    )

    now = with_live_of(found, start)

    assert set(differing(start, now)) == {"limits.max_turns", "rca.streams", "execution.dry_run", "retention"}
    assert set(differing(now, found)) == {"rca.playbooks", "execution.namespace", "log_format"}


BUILT = {"kubernetes", "model", "runner", "datastorage", "audit", "prometheus", "loki", "alertmanager", "server"}
BUILT |= {"telemetry", "crash"}


def test_nothing_that_something_was_opened_from_is_live() -> None:
    assert not [leaf.path for leaf in list_settings() if leaf.live and leaf.path.partition(".")[0] in BUILT]


def test_a_house_gives_all_its_rooms_the_settings_of_now() -> None:
    ports = ControllerPorts(**dict.fromkeys(ControllerPorts.__dataclass_fields__) | {"settings": Settings()})  # type: ignore[arg-type]
    room = ports

    ports.take_up(Settings(triage={"rate": 7}))

    assert room.settings.triage.rate == 7


@pytest.fixture
def level() -> Iterator[None]:
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


def test_the_log_starts_at_the_level_that_was_taken_up(level: None) -> None:
    log_from("error")

    assert not logging.getLogger("inquest.any").isEnabledFor(logging.WARNING)
