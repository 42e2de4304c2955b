"""An API server in memory behind plain HTTP on the loopback: one thread, one store, every request kept."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

import yaml
from aiohttp import web

from tests.support.apiserver.controllers import Controllers, complete_pod
from tests.support.apiserver.kinds import Kind, aggregated_discovery, group_list, resource_list
from tests.support.apiserver.refusals import Refused, no_such_path
from tests.support.apiserver.rights import ADMIN, Rights, User
from tests.support.apiserver.store import Change, Store, Write, is_selected

Object = dict[str, Any]

ADMIN_TOKEN: Final = "admin"
IDENTITY: Final = "apiserver-in-memory"
GIT_VERSION: Final = "v1.37.0"
BOOKMARK_SECONDS: Final = 60.0
REVIEWS: Final = ("authorization.k8s.io", "authentication.k8s.io")
JSON: Final = "application/json"
DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HALF: Final = re.compile("[\ud800-\udfff]")
VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class Call:
    """One request, as an audit log has it."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    subresource: str
    agent: str = ""


@dataclass
class ApiServer:
    """The server; `before` may raise `Refused`, and `calls` are all that came."""

    store: Store = field(default_factory=Store)
    before: list[Callable[[Call], None]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)
    """By namespace: what every container there has said."""
    forbidden: Counter[str] = field(default_factory=Counter)
    """Requests that no role allowed, by resource."""
    port: int = 0
    rights: Rights = field(init=False)
    _watching: set[asyncio.Queue[Change]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rights = Rights(self.store, {ADMIN_TOKEN: ADMIN})
        self.store.reactions.append(Controllers(self.store).react)
        self.store.hooks.append(complete_pod)
        self.store.listeners.append(self._tell)
        place = self.store.kind("", "namespaces")
        for name in ("default", "kube-system"):
            self.store.create(place, "", {"metadata": {"name": name}}, Write())
        lease: Object = {
            "metadata": {"name": IDENTITY, "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}
        }
        lease |= {"spec": {"holderIdentity": IDENTITY, "leaseDurationSeconds": 3600}}
        self.store.create(self.store.kind("coordination.k8s.io", "leases"), "kube-system", lease, Write())

    def kubeconfig(self, path: Path, token: str = ADMIN_TOKEN) -> Path:
        """Write one for the holder of a token."""
        context = {"name": "memory", "context": {"cluster": "memory", "user": "memory"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "memory",
            "clusters": [{"name": "memory", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "memory", "user": {"token": token}}],
            "contexts": [context],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    # --- requests -------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Any request."""
        try:
            return await self._handle(request)
        except Refused as refused:
            return _answer(refused.body(), refused.code)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        user, parts = self._user(request), [part for part in request.path.split("/") if part]
        if parts == ["version"]:
            return _answer({"major": "1", "minor": "37", "gitVersion": GIT_VERSION})
        if parts in (["readyz"], ["livez"], ["healthz"]):
            return web.Response(text="ok", headers=_date())
        if parts == ["metrics"]:
            counted = (
                f'apiserver_request_total{{code="403",resource="{what}"}} {n}' for what, n in self.forbidden.items()
            )
            return web.Response(text="\n".join(counted))
        if (found := self._discovered(request, parts)) is not None:
            return _answer(found, form=DISCOVERY if found.get("kind") == "APIGroupDiscoveryList" else JSON)
        if parts[0] not in ("api", "apis"):
            raise no_such_path()
        group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
        version = parts[1] if parts[0] == "api" else parts[2]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if group in REVIEWS:
            return _answer(self.rights.review(rest[0], await request.json(), user), 201)
        return await self._resource(request, user, self.store.kind(group, rest[0], version), namespace, rest[1:])

    def _user(self, request: web.Request) -> User:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        user = self.rights.tokens.get(bearer)
        if user is None:
            raise Refused(401, "Unauthorized", "Unauthorized")
        asked = request.headers.get("Impersonate-User")
        if not asked:
            return user
        groups = request.headers.getall("Impersonate-Group", [])
        return User(asked, frozenset(groups), request.headers.get("Impersonate-Uid", ""))

    def _discovered(self, request: web.Request, parts: list[str]) -> Object | None:
        """A discovery document; None where the path is none of them."""
        kinds = self.store.kinds
        if parts in (["api"], ["apis"]):
            is_core = parts == ["api"]
            if "apidiscovery" in request.headers.get("Accept", ""):
                return aggregated_discovery(kinds, core=is_core)
            return {"kind": "APIVersions", "versions": ["v1"]} if is_core else group_list(kinds)
        if (parts[0], len(parts)) in (("api", 2), ("apis", 3)):
            found = resource_list(kinds, "" if parts[0] == "api" else parts[1], parts[-1])
            if found is None:
                raise no_such_path()
            return found
        return None

    async def _resource(
        self, request: web.Request, user: User, kind: Kind, namespace: str, rest: list[str]
    ) -> web.StreamResponse:
        name, part = (rest[0] if rest else ""), ("/".join(rest[1:]))
        call = Call(user.name, _verb(request, name), kind.group, kind.plural, namespace, name, part, _agent(request))
        self.calls.append(call)
        for hook in tuple(self.before):
            hook(call)
        self._must_be_allowed(user, call)
        if call.verb == "watch":
            return await self._watch(request, kind, namespace, name)
        if part in ("log", "token", "binding"):
            return await self._special(request, kind, namespace, name, part)
        body = _body(request, await request.read())
        with self.store.lock:
            return self._done(request, call, kind, body, user)

    def _must_be_allowed(self, user: User, call: Call) -> None:
        asked = {
            "verb": call.verb,
            "group": call.group,
            "resource": call.resource,
            "subresource": call.subresource,
            "namespace": call.namespace,
            "name": call.name,
        }
        if self.rights.may(user, asked):
            return
        self.forbidden[call.resource] += 1
        what = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        full = f"{call.resource}.{call.group}" if call.group else call.resource
        named = f' "{call.name}"' if call.name else ""
        where = f'in the namespace "{call.namespace}"' if call.namespace else "at the cluster scope"
        why = f'User "{user.name}" cannot {call.verb} resource "{what}" in API group "{call.group}" {where}'
        details = {"name": call.name, "group": call.group, "kind": call.resource}
        raise Refused(403, "Forbidden", f"{full}{named} is forbidden: {why}", details)

    def _done(self, request: web.Request, call: Call, kind: Kind, body: Object, user: User) -> web.Response:
        query, store = request.query, self.store
        manager = query.get("fieldManager") or call.agent.split("/")[0]
        is_dry, is_forced = query.get("dryRun") == "All", query.get("force") == "true"
        write = Write(manager, user.name, call.subresource, force=is_forced, dry=is_dry)
        match call.verb:
            case "get":
                return _answer(store.get(kind, call.namespace, call.name))
            case "list":
                return _answer(self._listed(request, kind, call.namespace))
            case "create":
                return _answer(store.create(kind, call.namespace, body, write), 201)
            case "update":
                return _answer(store.replace(kind, call.namespace, call.name, body, write))
            case "patch":
                return self._patched(request, call, kind, body, write)
            case "delete":
                meant = body.get("preconditions") or {}
                uid, version = meant.get("uid") or "", meant.get("resourceVersion") or ""
                return _answer(store.delete(kind, call.namespace, call.name, write, uid=uid, version=version))
            case _:
                for one in store.list(kind, call.namespace, *_selectors(request)):
                    store.delete(kind, one["metadata"].get("namespace", ""), one["metadata"]["name"], write)
                return _answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _patched(self, request: web.Request, call: Call, kind: Kind, body: Object, write: Write) -> web.Response:
        if request.content_type.startswith("application/apply-patch"):
            is_new = self.store.find(kind, call.namespace, call.name) is None
            return _answer(self.store.apply(kind, call.namespace, call.name, body, write), 201 if is_new else 200)
        if request.content_type == "application/json-patch+json":
            raise Refused(415, "UnsupportedMediaType", "this server takes merge patches and applies")
        return _answer(self.store.patch(kind, call.namespace, call.name, body, write))

    def _listed(self, request: web.Request, kind: Kind, namespace: str) -> Object:
        """A page; `continue` names the version of the first one and the number of objects before it."""
        limit = int(request.query.get("limit") or 0)
        version, _, start = request.query.get("continue", "").rpartition(":")
        found, begin = self.store.list(kind, namespace, *_selectors(request)), int(start or 0)
        page = found[begin : begin + limit] if limit else found[begin:]
        meta = {"resourceVersion": version or str(self.store.version)}
        left = len(found) - begin - len(page)
        if left > 0:
            meta |= {"continue": f"{meta['resourceVersion']}:{begin + limit}", "remainingItemCount": str(left)}
        items = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in page]
        if kind.schema:
            items = page
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": items}

    async def _special(
        self, request: web.Request, kind: Kind, namespace: str, name: str, part: str
    ) -> web.StreamResponse:
        found = self.store.get(kind, namespace, name)
        if part == "log":
            return web.Response(text=self.logs.get(namespace, ""), headers=_date())
        asked = _body(request, await request.read())
        if part == "binding":
            spec = {**found["spec"], "nodeName": asked["target"]["name"]}
            return _answer(self.store.update(kind, found, {**found, "spec": spec}, Write("kube-scheduler")), 201)
        return _answer({**asked, "status": {"token": self.rights.token_for(namespace, name)}}, 201)

    # --- watches --------------------------------------------------------------------------------------------

    def _tell(self, change: Change) -> None:
        for queue in tuple(self._watching):
            self._loop.call_soon_threadsafe(queue.put_nowait, change)

    async def _watch(self, request: web.Request, kind: Kind, namespace: str, name: str) -> web.StreamResponse:
        labels, fields = _selectors(request)
        fields = ",".join(filter(None, (fields, f"metadata.name={name}" if name else "")))
        response = web.StreamResponse(headers={"Content-Type": "application/json", **_date()})
        await response.prepare(request)
        queue: asyncio.Queue[Change] = asyncio.Queue()
        with self.store.lock:
            since, is_expired = self._since(request)
            for change in self._before(kind, namespace, labels, fields, since):
                queue.put_nowait(change)
            self._watching.add(queue)
        try:
            if is_expired:
                gone = Refused(410, "Expired", f"too old resource version: {since}")
                await _line(response, "ERROR", gone.body())
                return response
            end = time.monotonic() + float(request.query.get("timeoutSeconds") or 1800)
            await self._stream(response, queue, kind, namespace, (labels, fields), end)
        except (ConnectionResetError, ConnectionError):
            pass
        finally:
            self._watching.discard(queue)
        return response

    def _since(self, request: web.Request) -> tuple[int | None, bool]:
        """The version after which changes are told; None: all that is there first. And whether it is too old."""
        asked = request.query.get("resourceVersion") or ""
        if asked in ("", "0"):
            return None, False
        changes = self.store.changes
        is_expired = len(changes) == changes.maxlen and int(asked) < changes[0].version - 1
        return int(asked), is_expired

    def _before(self, kind: Kind, namespace: str, labels: str, fields: str, since: int | None) -> Iterator[Change]:
        if since is None:
            for obj in self.store.list(kind, namespace, labels, fields):
                yield Change(self.store.version, kind, "ADDED", obj)
            return
        yield from (change for change in self.store.changes if change.version > since)

    async def _stream(
        self,
        response: web.StreamResponse,
        queue: asyncio.Queue[Change],
        kind: Kind,
        namespace: str,
        selectors: tuple[str, str],
        end: float,
    ) -> None:
        while (left := end - time.monotonic()) > 0:
            try:
                change = await asyncio.wait_for(queue.get(), min(left, BOOKMARK_SECONDS))
            except TimeoutError:
                meta = {"resourceVersion": str(self.store.version), "creationTimestamp": None}
                shown = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}
                await _line(response, "BOOKMARK", shown)
                continue
            word = _seen(change, kind, namespace, *selectors)
            if word:
                await _line(response, word, change.obj)

    # --- running --------------------------------------------------------------------------------------------

    @contextmanager
    def serve(self) -> Iterator[ApiServer]:
        """Listen on a free port of the loopback until the end."""
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="apiserver", daemon=True)
        thread.start()
        runner = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._stop(runner), self._loop).result(30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(30)
            self._loop.close()

    async def _stop(self, runner: web.AppRunner) -> None:
        await runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _start(self) -> web.AppRunner:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{tail:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        return runner


def _seen(change: Change, kind: Kind, namespace: str, labels: str, fields: str) -> str:
    """The word under which a watch with selectors is told of a change; empty: it is not."""
    if change.kind.key != kind.key or namespace not in ("", change.obj["metadata"].get("namespace", "")):
        return ""
    is_in = is_selected(change.obj, labels, fields)
    was_in = change.before is not None and is_selected(change.before, labels, fields)
    if change.word == "MODIFIED" and is_in != was_in:
        return "ADDED" if is_in else "DELETED"
    return change.word if is_in else ""


def _verb(request: web.Request, name: str) -> str:
    if request.method == "GET":
        watches = request.query.get("watch") in ("true", "1")
        return "watch" if watches else ("get" if name else "list")
    if request.method == "DELETE":
        return "delete" if name else "deletecollection"
    return VERBS[request.method]


def _selectors(request: web.Request) -> tuple[str, str]:
    return request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")


def _agent(request: web.Request) -> str:
    return request.headers.get("User-Agent", "")


def _body(request: web.Request, raw: bytes) -> Object:
    if not raw:
        return {}
    try:
        found = yaml.load(raw, yaml.CSafeLoader) if "yaml" in request.content_type else json.loads(raw)
        found = _as_go_reads(found)
    except (ValueError, yaml.YAMLError) as error:
        raise Refused(400, "BadRequest", f"the body of the request is not readable: {error}") from error
    if not isinstance(found, dict):
        raise Refused(400, "BadRequest", "the body of the request is no object")
    return found


def _as_go_reads(value: Any) -> Any:
    """Half of a character that stands alone is U+FFFD, and a number without a fraction is whole."""
    if isinstance(value, dict):
        return {_as_go_reads(key): _as_go_reads(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_go_reads(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else value


def _answer(body: Object, code: int = 200, form: str = JSON) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=code, headers={"Content-Type": form, **_date()})


def _date() -> dict[str, str]:
    return {"Date": formatdate(usegmt=True)}


async def _line(response: web.StreamResponse, word: str, obj: Object) -> None:
    await response.write(json.dumps({"type": word, "object": obj}).encode() + b"\n")
