"""The aggregated API behind its HTTP face: who is believed, what is asked, what each end looks like."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from starlette.datastructures import Headers

from inquest.api.names import EVIDENCE_GROUP, ROOT
from inquest.controllers.journal import Journal
from inquest.core.case.transitions import fold_case
from inquest.core.evidence.evidence import Origin
from inquest.core.reporting.archive import case_from_records, fact_records
from inquest.errors import AmbiguousKind, Misconfigured, NotFound, Unavailable, UnknownKind
from inquest.ports.kinds import CONFIG_MAP, INVESTIGATION
from inquest.ports.kubernetes import Access, ResourceKind
from inquest.server.evidence.app import AT_ONCE, AT_ONCE_FOR_ONE, EvidenceService, create_app
from inquest.server.evidence.caller import FrontProxy, caller_of, front_proxy
from inquest.server.evidence.case_files import CaseReader
from inquest.serving.http import CALLER
from tests.support.tables import each_row
from tests.unit.core import cases
from tests.unit.gather.snapshot.support import FakeClock

Json = dict[str, Any]
HOME = cases.opened().namespace
NAME = cases.opened().name
UID = "6d1f7a3e-0b54-4a6e-9c55-0a4b8c9d1e2f"
PROXY = FrontProxy(
    "PEM", ("front-proxy",), ("X-Remote-User",), ("X-Remote-Group",), ("X-Remote-Extra-",), ("X-Remote-Uid",)
)
KINDS = {"Pod": ("", "v1", "pods", True), "Service": ("", "v1", "services", True), "Node": ("", "v1", "nodes", False)}
SECRET = "their-ledger"
MINE = cases.evidence(1, "reason: OOMKilled", tool="snapshot", origins=(Origin(HOME, "Pod", "v1"),))
THEIRS = cases.evidence(2, SECRET, tool="snapshot", origins=(Origin("payments", "Service", "v1"),))
CASE = fold_case([cases.opened(), cases.resolved(), cases.taken(evidence=(MINE, THEIRS))])


@dataclass
class Api:
    """An API server of a few lines: one Investigation, no journal, and rights by name."""

    rights: dict[str, set[str]] = field(default_factory=dict)
    """By user: namespaces that they read whole; `*`: everything."""
    asked: list[tuple[Json, Access, str]] = field(default_factory=list)
    read_whole: int = 0
    """How often the records of the case were read."""
    gate: asyncio.Event | None = None
    """Where there is one, a read of the records waits for it."""
    came: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    """Released by each of those reads."""
    away: bool = False

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        if (kind.kind, name, namespace) != (INVESTIGATION.kind, NAME, HOME):
            raise NotFound(name)
        spec = CASE.opened.spec.to_object()
        return {"metadata": {"name": NAME, "namespace": HOME, "uid": UID}, "spec": spec}

    async def list(self, kind: ResourceKind, namespace: str = "", *, labels: str = "") -> tuple[Json, ...]:
        assert kind == CONFIG_MAP
        return ()

    async def transcript(self, uid: str) -> tuple[Json, ...]:
        self.read_whole += 1
        if self.gate is not None:
            self.came.release()
            await self.gate.wait()
        return tuple({"event_data": one.data} for one in fact_records(CASE, uid)) if uid == UID else ()

    async def may(self, user: Json, access: Access, name: str = "") -> bool:
        if self.away:
            raise Unavailable("the API server")
        self.asked.append((user, access, name))
        held = self.rights.get(user["username"], set())
        return "*" in held or (access.namespace in held and access.namespace != "")

    async def kind(self, word: str, api_version: str = "") -> ResourceKind:
        if word == "Deployment":
            return ResourceKind("apps", "v1", word, "deployments", True)
        if word not in KINDS:
            raise UnknownKind(word)
        group, version, plural, namespaced = KINDS[word]
        return ResourceKind(group, version, word, plural, namespaced)


def spoken_by(name: str, app: Any) -> Any:
    """The application as a connection reaches it on which this common name was proven."""

    async def introduced(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": {CALLER: name}}, receive, send)

    return introduced


@asynccontextmanager
async def talking(api: Api, common_name: str = "front-proxy") -> AsyncIterator[httpx2.AsyncClient]:
    case_reader = CaseReader(api, Journal(api, HOME), api, FakeClock())  # type: ignore[arg-type]
    app = create_app(EvidenceService(case_reader, api, api, FakeClock(), lambda: PROXY))
    transport = httpx2.ASGITransport(app=spoken_by(common_name, app), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="https://inquest") as http:
        yield http


def as_user(name: str, **more: str) -> dict[str, str]:
    return {"X-Remote-User": name, **more}


PATH = f"{ROOT}/namespaces/{HOME}/cases/{NAME}"
TENANT = {"tess": {HOME, str(CASE.target.namespace)}}


# --- who is believed ------------------------------------------------------------------------------------------------

CALLERS = {
    "nobody's certificate": ("", as_user("tess"), None),
    "a person's certificate of the same authority": ("tess", as_user("admin"), None),
    "the API server, which names nobody": ("front-proxy", {}, None),
    "the API server": ("front-proxy", as_user("tess"), "tess"),
}


@each_row(("common_name", "headers", "user"), CALLERS.values(), ids=CALLERS.keys())
@each_row("path", [PATH, f"{PATH}/record", ROOT])
async def test_only_the_api_server_is_believed(common_name: str, headers: Any, user: str | None, path: str) -> None:
    async with talking(Api(TENANT), common_name) as http:
        answer = await http.get(path, headers=headers)

    assert answer.status_code == (200 if user else 401)
    assert ("OOMKilled" in answer.text) is False or user


async def test_everything_that_the_api_server_says_of_a_person_is_asked_about() -> None:
    api = Api(TENANT)
    said = [("X-Remote-User", "tess"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b"), ("X-Remote-Uid", "u-1")]
    async with talking(api) as http:
        await http.get(PATH, headers=[*said, ("X-Remote-Extra-Scopes%2Fx", "one")])

    user, access, name = api.asked[0]
    assert user == {"username": "tess", "uid": "u-1", "groups": ["a", "b"], "extra": {"scopes/x": ["one"]}}
    assert (access, name) == (Access("get", EVIDENCE_GROUP, "cases", "", HOME), NAME)


def test_how_the_api_server_is_known_is_read_from_its_own_config_map() -> None:
    data = {
        "requestheader-client-ca-file": "PEM",
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
    }

    assert front_proxy({"data": data}) == PROXY
    anybody = front_proxy({"data": {**data, "requestheader-allowed-names": "[]"}})
    assert caller_of(Headers(as_user("tess")), "any name", anybody) is not None
    for lacking in ("requestheader-client-ca-file", "requestheader-username-headers"):
        with pytest.raises(Misconfigured):
            front_proxy({"data": {**data, lacking: ""}})
    with pytest.raises(Misconfigured):
        front_proxy({"data": {**data, "requestheader-allowed-names": "front-proxy"}})


def _bundle(*bodies: str) -> str:
    return "".join(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in bodies)


def test_where_one_authority_signs_people_and_the_proxy_its_names_must_be_listed() -> None:
    data = {
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-client-ca-file": _bundle("MIIproxy", "MII\nshared"),
        "client-ca-file": _bundle("MIIpeople", "MIIsha\nred"),
    }

    with pytest.raises(Misconfigured, match="requestheader-allowed-names"):
        front_proxy({"data": data})
    assert front_proxy({"data": {**data, "requestheader-allowed-names": '["front-proxy"]'}}).names == ("front-proxy",)
    assert front_proxy({"data": {**data, "client-ca-file": _bundle("MIIpeople")}}).names == ()


@pytest.mark.parametrize("name", ["Zoë", "管理员", "plain"])
async def test_a_name_is_asked_about_as_it_is_written(name: str) -> None:
    api = Api()
    async with talking(api) as http:
        await http.get(PATH, headers=[(b"X-Remote-User", name.encode()), (b"X-Remote-Group", name.encode())])

    assert (api.asked[0][0]["username"], api.asked[0][0]["groups"]) == (name, [name])


async def test_a_name_that_is_no_text_is_nobody() -> None:
    async with talking(Api(TENANT)) as http:
        answer = await http.get(PATH, headers=[(b"X-Remote-User", b"tess\xff")])

    assert answer.status_code == 401


# --- what they get ------------------------------------------------------------------------------------------------


async def test_a_reader_gets_what_they_may_read_and_the_count_of_the_rest() -> None:
    async with talking(Api(TENANT)) as http:
        index = (await http.get(PATH, headers=as_user("tess"))).json()
        mine = (await http.get(f"{PATH}?piece=E1", headers=as_user("tess"))).json()
        theirs = await http.get(f"{PATH}?piece=E2", headers=as_user("tess"))
        record = await http.get(f"{PATH}/record", headers=as_user("tess"))

    assert [one["id"] for one in index["evidence"]] == ["E1"]
    assert index["withheld"] == [{"id": "E2", "why": "read in a namespace that you may not read"}]
    assert mine["evidence"][0]["text"] == "reason: OOMKilled"
    assert theirs.json()["evidence"] == []
    assert theirs.json()["withheld"] == index["withheld"]
    assert SECRET not in theirs.text + record.text
    made = case_from_records(record.json()["record"])
    assert [one.id for one in made.evidence] == ["E1"]


async def test_who_may_read_everything_gets_the_case_as_it_is_stored() -> None:
    async with talking(Api({"root": {"*"}})) as http:
        answer = (await http.get(f"{PATH}/record", headers=as_user("root"))).json()

    assert case_from_records(answer["record"]) == CASE
    assert answer["withheld"] == []


async def test_a_long_record_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inquest.server.evidence.case_files.PAGE_CHARACTERS", 10)
    found: list[Json] = []
    api = Api({"root": {"*"}})
    async with talking(api) as http:
        more: int | None = 0
        while more is not None:
            page = (await http.get(f"{PATH}/record?from={more}", headers=as_user("root"))).json()
            found += page["record"]
            more = page.get("next")

    assert case_from_records(found) == CASE
    assert len(found) > 1
    assert api.read_whole == 1


async def test_a_page_is_of_the_reader_who_asked_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inquest.server.evidence.case_files.PAGE_CHARACTERS", 10)
    held = {"root": {"*"}} | TENANT
    async with talking(Api(held)) as http:
        whole = (await http.get(f"{PATH}/record", headers=as_user("root"))).json()
        theirs = (await http.get(f"{PATH}/record?from={whole['next']}", headers=as_user("tess"))).json()
        rest = (await http.get(f"{PATH}/record?from={whole['next']}", headers=as_user("root"))).json()

    assert SECRET not in json.dumps(theirs)
    assert theirs["withheld"]
    assert rest["withheld"] == []
    assert rest["record"][0]["fact"] == 1


# --- what they do not get -----------------------------------------------------------------------------------------


async def test_who_may_not_read_a_case_is_told_the_same_whether_it_is_there_or_not() -> None:
    api = Api({"neil": {"elsewhere"}})
    async with talking(api) as http:
        there = await http.get(PATH, headers=as_user("neil"))
        not_there = await http.get(PATH.replace(NAME, "inv-none"), headers=as_user("neil"))
        by_uid = await http.get(f"{ROOT}/namespaces/elsewhere/cases/{UID}", headers=as_user("neil"))
        nothing = await http.get(f"{ROOT}/namespaces/elsewhere/cases/{UID[:-1]}0", headers=as_user("neil"))

    assert (there.status_code, not_there.status_code) == (403, 403)
    assert there.text.replace(NAME, "?") == not_there.text.replace("inv-none", "?")
    assert (by_uid.status_code, nothing.status_code) == (404, 404)
    assert by_uid.text.replace(UID, "?") == nothing.text.replace(f"{UID[:-1]}0", "?")


ENDS = {
    "another verb": ("POST", PATH, 405),
    "a change": ("PATCH", PATH, 405),
    "no piece": ("GET", f"{PATH}?piece=../E1", 400),
    "a piece that is not there": ("GET", f"{PATH}?piece=E77", 404),
    "no number": ("GET", f"{PATH}/record?from=-1", 400),
    "a namespace that cannot be": ("GET", f"{ROOT}/namespaces/A_B/cases/x", 404),
    "a name that cannot be": ("GET", f"{ROOT}/namespaces/{HOME}/cases/..", 404),
    "a path in a name": ("GET", f"{ROOT}/namespaces/{HOME}/cases/a%2F..%2F{NAME}", 404),
    "another subresource": ("GET", f"{PATH}/status", 404),
    "all cases": ("GET", f"{ROOT}/namespaces/{HOME}/cases", 404),
}


@each_row(("method", "path", "status"), ENDS.values(), ids=ENDS.keys())
async def test_every_other_end_is_a_status_as_kubernetes_writes_it(method: str, path: str, status: int) -> None:
    async with talking(Api({"root": {"*"}})) as http:
        answer = await http.request(method, path, headers=as_user("root"))

    assert answer.status_code == status
    assert (answer.json()["kind"], answer.json()["code"]) == ("Status", status)
    assert "OOMKilled" not in answer.text


async def test_where_rights_cannot_be_asked_nothing_is_shown() -> None:
    async with talking(Api(TENANT, away=True)) as http:
        answer = await http.get(PATH, headers=as_user("tess"))

    assert answer.status_code == 503
    assert "OOMKilled" not in answer.text


async def test_readers_are_held_back_where_there_are_too_many() -> None:
    async with talking(Api({"root": {"*"}, "other": {"*"}})) as http:
        codes = [(await http.get(PATH, headers=as_user("root"))).status_code for _ in range(501)]
        last = await http.get(PATH, headers=as_user("root"))
        another = await http.get(PATH, headers=as_user("other"))

    assert codes.count(200) == 500
    assert AT_ONCE < 16
    assert last.status_code == 429
    assert another.status_code == 200
    assert json.loads(last.text)["reason"] == "TooManyRequests"
    assert int(last.headers["retry-after"]) >= 1


async def test_one_reader_does_not_take_every_place() -> None:
    api = Api({"root": {"*"}, "other": {"*"}}, gate=asyncio.Event())
    assert api.gate is not None
    async with talking(api) as http, asyncio.TaskGroup() as group:
        mine = [group.create_task(http.get(PATH, headers=as_user("root"))) for _ in range(AT_ONCE)]
        theirs = group.create_task(http.get(PATH, headers=as_user("other")))
        for _ in range(AT_ONCE_FOR_ONE + 1):
            await api.came.acquire()
        api.gate.set()

    assert sorted(one.result().status_code for one in mine) == [200] * AT_ONCE_FOR_ONE + [429] * (
        AT_ONCE - AT_ONCE_FOR_ONE
    )
    assert theirs.result().status_code == 200


async def test_a_kind_of_which_nobody_knows_the_group_is_not_shown() -> None:
    class Several(Api):
        async def kind(self, word: str, api_version: str = "") -> ResourceKind:
            raise AmbiguousKind(word, ("a/v1", "b/v1"))

    async with talking(Several(TENANT)) as http:
        answer = (await http.get(PATH, headers=as_user("tess"))).json()

    assert answer["evidence"] == []
    assert len(answer["withheld"]) == 2
