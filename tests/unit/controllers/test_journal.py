"""The journal's format and its promises, on a Status of a few lines."""

from __future__ import annotations

import copy
import string
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inquest.controllers.journal import JOURNAL_VERSION, MAX_PART_BYTES, Draft, Journal, Log, Writer, encode, fold
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import AlreadyExists, Fenced, Invalid, OlderJournal, Tampered

UID = "7be1f0c2-5f0e-4c59-8d0a-6c9f2f3b1a77"
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
ME = Writer("inquest-0/9c1f", 3)


class Slots:
    """As much of Status as a journal needs: a name is given out once."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self.deletions: list[str] = []

    async def create(self, kind: object, obj: Redacted[dict[str, Any]]) -> dict[str, Any]:
        name = obj.value["metadata"]["name"]
        if name in self.held:
            raise AlreadyExists(name)
        self.held[name] = copy.deepcopy(obj.value)
        return obj.value

    async def list(self, kind: object, namespace: str = "", *, labels: str = "") -> tuple[dict[str, Any], ...]:
        return tuple(self.held.values())

    async def delete(self, kind: object, name: str, namespace: str) -> None:
        self.deletions.append(name)
        del self.held[name]

    async def delete_all(self, kind: object, namespace: str, *, labels: str, fields: str = "") -> None:
        self.deletions.append(fields)
        kept = fields.removeprefix("metadata.name!=")
        self.held = {
            name: slot
            for name, slot in self.held.items()
            if name == kept or any(f"{key}={value}" not in labels for key, value in _told(slot).items())
        }


def _told(slot: dict[str, Any]) -> dict[str, str]:
    wanted = ("inquest.dev/journal", "inquest.dev/investigation")
    return {key: value for key, value in slot["metadata"]["labels"].items() if key in wanted}


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


def draft(kind: str = "Snapshot", **payload: Any) -> Draft:
    return Draft(kind, seal(payload), NOW)


def random_text(length: int) -> str:
    return "".join(Random(7).choices(string.ascii_letters + string.digits, k=length))


@pytest.fixture
def slots() -> Slots:
    return Slots()


@pytest.fixture
def journal(slots: Slots) -> Journal:
    return Journal(slots, "inquest-system")  # type: ignore[arg-type]


async def written(journal: Journal, count: int) -> Log:
    log = Log(UID)
    for number in range(count):
        log = await journal.add(log, (draft(n=number),), ME, yes)
    return log


async def test_what_was_written_is_read_back_in_order(journal: Journal) -> None:
    log = await written(journal, 3)

    again = await journal.read(UID)

    assert again == log
    assert [entry.payload["n"] for entry in again.entries] == [0, 1, 2]
    assert again.seq == 3


async def test_entries_share_a_slot_and_are_read_back_one_by_one(journal: Journal, slots: Slots) -> None:
    log = await written(journal, 1)

    log = await journal.add(log, (draft("ToolBatch", n=1), draft("ModelTurn", n=2)), ME, yes)
    log = await journal.add(log, (draft("Verdict", n=3),), ME, yes)

    read = await Journal(slots, "inquest-system").read(UID)  # type: ignore[arg-type]
    assert read == await journal.read(UID) == log
    assert [(entry.seq, entry.kind, entry.payload["n"]) for entry in read.entries] == [
        (1, "Snapshot", 0),
        (2, "ToolBatch", 1),
        (2, "ModelTurn", 2),
        (3, "Verdict", 3),
    ]


async def test_slots_are_immutable_and_named_by_uid_and_number(journal: Journal, slots: Slots) -> None:
    await written(journal, 2)

    assert sorted(slots.held) == [f"{UID}-0001", f"{UID}-0002"]
    assert all(slot["immutable"] for slot in slots.held.values())


@pytest.mark.parametrize((), [()], ids=["FA-06"])
async def test_a_number_taken_by_another_replica_fences_the_sleeper(journal: Journal) -> None:
    log = await written(journal, 1)
    await journal.add(log, (draft(n="the other's"),), Writer("inquest-1/aaaa", 4), yes)

    with pytest.raises(Fenced):
        await journal.add(log, (draft(n="mine"),), ME, no)


@pytest.mark.parametrize((), [()], ids=["FA-06"])
async def test_the_own_lost_answer_is_adopted(journal: Journal) -> None:
    log = await written(journal, 1)
    await journal.add(log, (draft(n="written, answer lost"),), ME, yes)

    adopted = await journal.add(log, (draft(n="written, answer lost"),), ME, yes)

    assert adopted.seq == 2
    assert adopted.entries[-1].payload["n"] == "written, answer lost"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda held: held.pop(f"{UID}-0002"), id="a slot is missing"),
        pytest.param(lambda held: held[f"{UID}-0002"]["binaryData"].update(payload="AAAA"), id="a payload was changed"),
        pytest.param(
            lambda held: held[f"{UID}-0001"]["data"].update(
                head=held[f"{UID}-0001"]["data"]["head"].replace("inquest-0", "inquest-9")
            ),
            id="a head was changed",
        ),
    ],
)
async def test_a_journal_that_does_not_hold_is_refused(journal: Journal, slots: Slots, spoil: Any) -> None:
    await written(journal, 3)
    spoil(slots.held)

    with pytest.raises((Tampered, OSError, EOFError)):
        await journal.read(UID)


async def test_a_falling_epoch_is_refused(journal: Journal) -> None:
    log = await written(journal, 1)
    stale = encode(log, (draft(),), Writer("inquest-1/b", 2), "inquest-system")

    with pytest.raises(Tampered, match="falling epoch"):
        fold(UID, [*(await journal._status.list(None)), *stale])  # type: ignore[arg-type]


async def test_a_slot_for_a_newer_reader_is_left_alone(journal: Journal, slots: Slots) -> None:
    await written(journal, 1)
    data = slots.held[f"{UID}-0001"]["data"]
    data["head"] = data["head"].replace(f'"minReader":{JOURNAL_VERSION}', '"minReader":99')

    with pytest.raises(Fenced, match="newer reader"):
        await journal.read(UID)


async def test_a_slot_of_an_earlier_version_is_not_read_and_says_what_to_do(journal: Journal, slots: Slots) -> None:
    await written(journal, 1)
    data = slots.held[f"{UID}-0001"]["data"]
    data["head"] = data["head"].replace(f'"v":{JOURNAL_VERSION}', f'"v":{JOURNAL_VERSION - 1}')

    with pytest.raises(OlderJournal, match="Create its Signal again"):
        await journal.read(UID)


async def test_a_large_entry_is_spread_over_slots_and_read_as_one(journal: Journal, slots: Slots) -> None:
    noise = random_text(2 * MAX_PART_BYTES)

    log = await journal.add(Log(UID), (draft(text=noise),), ME, yes)

    assert len(slots.held) == log.seq > 1
    assert (await journal.read(UID)).entries[0].payload["text"] == noise


async def test_an_entry_that_was_not_written_to_its_end_did_not_happen(journal: Journal, slots: Slots) -> None:
    noise = random_text(2 * MAX_PART_BYTES)
    whole = await journal.add(Log(UID), (draft(text=noise),), ME, yes)
    del slots.held[f"{UID}-{whole.seq:04d}"]

    torn = await journal.read(UID)
    mended = await journal.add(torn, (draft(n="instead"),), ME, yes)

    assert torn.entries == ()
    assert [entry.payload for entry in mended.entries] == [{"n": "instead"}]
    assert await journal.read(UID) == mended


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_forgetting_leaves_nothing(journal: Journal, slots: Slots, count: int) -> None:
    await written(journal, count)

    assert await journal.forget(UID) == count
    assert slots.held == {}


async def test_the_first_slot_is_forgotten_last_and_the_others_by_one_request(journal: Journal, slots: Slots) -> None:
    await written(journal, 30)
    await journal.forget(UID)

    assert slots.deletions == [f"metadata.name!={UID}-0001", f"{UID}-0001"]


@given(payload=st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=4))
def test_encoding_is_deterministic(payload: dict[str, str]) -> None:
    once = encode(Log(UID), (Draft("Opened", seal(payload), NOW),), ME, "ns")
    twice = encode(Log(UID), (Draft("Opened", seal(dict(reversed(payload.items()))), NOW),), ME, "ns")

    assert once == twice
    assert fold(UID, once).entries[0].payload == payload


def test_what_fits_no_four_slots_keeps_head_and_tail_and_says_so() -> None:
    text = "".join(("first", random_text(8 * MAX_PART_BYTES), "last"))

    slots = encode(Log(UID), (draft(log=text, kept="as it is"),), ME, "inquest-system")
    entry = fold(UID, slots).entries[0]

    assert entry.truncated
    assert entry.payload["kept"] == "as it is"
    assert entry.payload["log"].startswith("first")
    assert entry.payload["log"].endswith("last")
    assert "characters truncated" in entry.payload["log"]


def test_what_cannot_be_cut_is_refused_in_words() -> None:
    text = random_text(8_000 * 200)
    words = [text[at : at + 200] for at in range(0, len(text), 200)]

    with pytest.raises(Invalid, match="do not fit"):
        encode(Log(UID), (draft(words=words),), ME, "inquest-system")


async def test_a_log_that_is_read_again_is_the_same_and_one_that_grew_keeps_its_entries(
    journal: Journal, slots: Slots
) -> None:
    await written(journal, 3)

    first, again = await journal.read(UID), await journal.read(UID)
    log = await journal.add(again, (draft(n=4),), ME, yes)
    longer = await Journal(slots, "inquest-system").read(UID)  # type: ignore[arg-type]

    assert again is first
    assert await journal.read(UID) == log == longer
    assert all(ours is theirs for ours, theirs in zip((await journal.read(UID)).entries, first.entries, strict=False))


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_slot_that_is_altered_after_it_was_read_is_found(journal: Journal, slots: Slots, place: int) -> None:
    await written(journal, 3)
    await journal.read(UID)

    name = sorted(slots.held)[place]
    slots.held[name]["binaryData"]["payload"] = slots.held[sorted(slots.held)[place - 1]]["binaryData"]["payload"]

    with pytest.raises(Tampered):
        await journal.read(UID)
