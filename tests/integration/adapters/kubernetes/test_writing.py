"""`ports.Status` on the real API server: no lost update, no foreign object deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from inquest.adapters.kubernetes.bodies import apply_body
from inquest.adapters.kubernetes.clients import Clients
from inquest.core.redaction.redacted import Redacted, seal
from inquest.errors import AlreadyExists, Conflict, Invalid, NotFound
from inquest.ports.kubernetes import Access, Json, Person, ResourceKind
from tests.support.kube import proposal

CONFIG_MAP = ResourceKind("", "v1", "ConfigMap", "configmaps", True)
INVESTIGATION = ResourceKind("inquest.dev", "v1alpha1", "Investigation", "investigations", True)


def obj(namespace: str, name: str, version: str = "", **content: object) -> Redacted[Json]:
    meta = {"name": name, "namespace": namespace} | ({"resourceVersion": version} if version else {})
    return seal({"metadata": meta, **content})


def version(found: Json) -> str:
    return str(found["metadata"]["resourceVersion"])


async def case(kube: Clients, namespace: str) -> Json:
    made = proposal("Investigation")
    made["metadata"] = {"name": "case", "namespace": namespace}
    return await kube.status.create(INVESTIGATION, seal(made))


async def test_a_name_is_given_once(kube: Clients, namespace: str) -> None:
    made = await kube.status.create(CONFIG_MAP, obj(namespace, "slot", data={"head": "1"}))

    with pytest.raises(AlreadyExists):
        await kube.status.create(CONFIG_MAP, obj(namespace, "slot", data={"head": "2"}))

    assert await kube.status.read(CONFIG_MAP, "slot", namespace) == made


async def test_a_swap_that_comes_too_late_is_refused(kube: Clients, namespace: str) -> None:
    first = await kube.status.create(CONFIG_MAP, obj(namespace, "a", data={"by": "one", "kept": "yes"}))
    await kube.status.swap(CONFIG_MAP, obj(namespace, "a", version(first), data={"by": "two"}), status=False)

    with pytest.raises(Conflict):
        await kube.status.swap(CONFIG_MAP, obj(namespace, "a", version(first), data={"by": "three"}), status=False)

    assert (await kube.status.read(CONFIG_MAP, "a", namespace))["data"] == {"by": "two", "kept": "yes"}


async def test_a_write_without_its_version_is_never_sent(kube: Clients, namespace: str) -> None:
    for writing in (
        kube.status.swap(CONFIG_MAP, obj(namespace, "a")),
        kube.status.apply_status(INVESTIGATION, obj(namespace, "a")),
        kube.status.create(CONFIG_MAP, seal({"metadata": {"name": "a"}})),
    ):
        with pytest.raises(Invalid):
            await writing

    assert kube.traffic.writes == 0


def every_character() -> Iterator[str]:
    """The basic plane whole, each further plane in its first and last 32 characters, in pieces that a message holds."""
    planes = [chr(plane << 16 | low) for plane in range(1, 17) for low in (*range(32), *range(0xFFE0, 0x10000))]
    whole = "".join(map(chr, range(0x10000))) + "".join(planes)
    yield from (whole[at : at + 1000] for at in range(0, len(whole), 1000))


async def test_every_character_that_a_status_holds_arrives(own: Clients, namespace: str) -> None:
    found = await case(own, namespace)

    for piece in every_character():
        status = {"phase": "Investigating", "message": f"<{piece}>"}
        found = await own.status.apply_status(INVESTIGATION, obj(namespace, "case", version(found), status=status))

        expected = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in piece)
        assert found["status"]["message"] == f"<{expected}>"


async def test_every_character_arrives_in_what_is_made_and_in_what_is_swapped(kube: Clients, namespace: str) -> None:
    # In JSON two halves side by side are one character, so each half stands alone here.
    whole = re.sub("([\ud800-\udfff])", r"\1 ", "".join(every_character()))
    expected = re.sub("[\ud800-\udfff]", "\ufffd", whole)
    made = await kube.status.create(CONFIG_MAP, obj(namespace, "made", data={"text": whole}))
    assert made["data"]["text"] == expected

    swapped = obj(namespace, "made", version(made), data={"again": whole})
    assert (await kube.status.swap(CONFIG_MAP, swapped, status=False))["data"] == {"text": expected, "again": expected}


@given(message=st.text(max_size=300), key=st.text(min_size=1, max_size=50))
@settings(max_examples=60)
async def test_any_text_arrives_in_a_status_as_it_was_sent(message: str, key: str) -> None:
    """A parser of the same language as the API server's: what `apply_body` writes is read back as it was."""
    assert yaml.safe_load(apply_body({"status": {key: message}})) == {"status": {key: message}}


async def test_a_status_is_applied_and_ownership_stays(own: Clients, namespace: str) -> None:
    made = await case(own, namespace)
    owner = {"owner": {"replica": "inquest-0/ab", "epoch": 1}, "attempts": 1}
    owned = await own.status.swap(INVESTIGATION, obj(namespace, "case", version(made), status=owner))

    applied = await own.status.apply_status(
        INVESTIGATION, obj(namespace, "case", version(owned), status={"phase": "Investigating", "message": "at work"})
    )
    shorter = await own.status.apply_status(
        INVESTIGATION, obj(namespace, "case", version(applied), status={"phase": "Investigating"})
    )

    assert applied["status"]["message"] == "at work"
    assert "message" not in shorter["status"]
    assert (shorter["status"]["owner"]["epoch"], shorter["status"]["attempts"]) == (1, 1)
    managers = {field["manager"] for field in shorter["metadata"]["managedFields"]}
    assert {"inquest", "inquest-owner"} <= managers


async def test_a_stale_status_is_refused(own: Clients, namespace: str) -> None:
    made = await case(own, namespace)
    newer = {"phase": "Investigating"}
    await own.status.apply_status(INVESTIGATION, obj(namespace, "case", version(made), status=newer))

    with pytest.raises(Conflict):
        await own.status.apply_status(INVESTIGATION, obj(namespace, "case", version(made), status={"phase": "Failed"}))


async def test_a_status_that_the_schema_refuses_is_invalid(own: Clients, namespace: str) -> None:
    made = await case(own, namespace)

    with pytest.raises(Invalid, match="phase"):
        await own.status.apply_status(INVESTIGATION, obj(namespace, "case", version(made), status={"phase": "Dancing"}))


async def test_a_status_of_an_object_that_is_gone_is_not_found(own: Clients, namespace: str) -> None:
    with pytest.raises((NotFound, Conflict)):
        await own.status.apply_status(INVESTIGATION, obj(namespace, "nobody", "1", status={"phase": "Pending"}))


async def test_what_is_deleted_together_has_a_label_and_what_is_excepted_stays(kube: Clients, namespace: str) -> None:
    for name, labels in (("a", {"case": "1"}), ("b", {"case": "1"}), ("c", {"case": "1"}), ("d", {"case": "2"})):
        meta = {"name": name, "namespace": namespace, "labels": labels}
        await kube.status.create(CONFIG_MAP, seal({"metadata": meta}))

    with pytest.raises(Invalid):
        await kube.status.delete_all(CONFIG_MAP, namespace, labels="")
    await kube.status.delete_all(CONFIG_MAP, namespace, labels="case=1", fields="metadata.name!=a")

    left = await kube.status.list(CONFIG_MAP, namespace, labels="case")
    assert sorted(found["metadata"]["name"] for found in left) == ["a", "d"]


async def test_only_the_object_that_is_meant_is_deleted(kube: Clients, namespace: str) -> None:
    made = await kube.status.create(CONFIG_MAP, obj(namespace, "a"))

    await kube.status.delete(CONFIG_MAP, "a", namespace, uid="another")
    assert await kube.status.read(CONFIG_MAP, "a", namespace)

    await kube.status.delete(CONFIG_MAP, "a", namespace, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await kube.status.read(CONFIG_MAP, "a", namespace)
    await kube.status.delete(CONFIG_MAP, "a", namespace)


async def test_rights_are_asked_for_oneself_and_for_others(kube: Clients, own: Clients) -> None:
    secrets, everything = Access("get", "", "secrets"), Access("get", "", "/*")

    assert await kube.status.allowed(secrets)
    assert await kube.status.allowed(everything)
    assert not await own.status.allowed(secrets)
    assert not await own.status.allowed(everything)
    assert await own.status.allowed_for(Person("jane", ("system:masters",)), secrets)
    assert not await own.status.allowed_for(Person("jane"), secrets, name="one")
    assert kube.traffic.writes == own.traffic.writes == 0


async def test_the_clock_is_that_of_the_api_server(kube: Clients) -> None:
    """To the second that its header counts, and half of what the answer took."""
    before = datetime.now(UTC)

    found = await kube.status.now()

    after = datetime.now(UTC)
    assert before - timedelta(seconds=1) < found < after + (after - before) / 2 + timedelta(seconds=1)
