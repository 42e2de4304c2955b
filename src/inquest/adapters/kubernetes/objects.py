"""`ports.Status`: what Inquest itself reads back and writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from inquest.adapters.kubernetes import paths
from inquest.adapters.kubernetes.bodies import APPLY
from inquest.adapters.kubernetes.namespaces import WatchedNamespaces
from inquest.adapters.kubernetes.own_writes import OwnWrites
from inquest.adapters.kubernetes.reader import PAGE, read_list, read_pages
from inquest.adapters.kubernetes.transport import Request, Transport
from inquest.api.base import FIELD_MANAGER
from inquest.core.redaction.redacted import Redacted
from inquest.errors import Conflict, Forbidden, Invalid, NotFound
from inquest.ports.kubernetes import Access, Json, ListedEverywhere, Person, ResourceKind

MERGE: Final = "application/merge-patch+json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
WHOAMI: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SELF: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
HEARTBEATS: Final = "leases"
DECISIONS: Final = "remediationapprovalrequests"
EFFECTS: Final = frozenset({DECISIONS, "workflowexecutions", "jobs"})
"""What is created on behalf of a decision."""


class ObjectClient:
    """Reads past every cache, and writes that lose no update.

    With `places` a list of all namespaces is one list of each of these, since the wide one is refused; what only the
    whole cluster can answer about somebody else's rights is asked inside the namespace.
    """

    def __init__(self, transport: Transport, places: WatchedNamespaces) -> None:
        self._transport, self._places = transport, places
        self.own_writes = OwnWrites()

    async def read(self, kind: ResourceKind, name: str, namespace: str) -> Json:
        path = paths.item_path(kind, name, namespace)
        return (await self._transport.send(Request("GET", path, "get", kind.plural))).json()

    async def list(
        self, kind: ResourceKind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> tuple[Json, ...]:
        if self._is_in_parts(kind, namespace):
            return (await self.seen(kind, labels=labels, fields=fields)).items
        return await self._listed(kind, namespace, labels, fields)

    async def seen(self, kind: ResourceKind, *, labels: str = "", fields: str = "") -> ListedEverywhere:
        if not self._is_in_parts(kind, ""):
            return ListedEverywhere(await self._listed(kind, "", labels, fields))
        found: list[Json] = []
        unseen = set(self._places.refused)
        for place in self._places.served:
            try:
                found += await self._listed(kind, place, labels, fields)
            except Forbidden as error:
                self._places.lose(place, kind, error)
                unseen.add(place)
        return ListedEverywhere(tuple(found), frozenset(unseen))

    async def pages(self, kind: ResourceKind, namespace: str = "") -> AsyncIterator[tuple[Json, ...]]:
        """The list page by page, for whoever keeps little of each; an expired one raises Unavailable."""
        for place in self._places.served if self._is_in_parts(kind, namespace) else (namespace,):
            try:
                async for page in read_pages(self._transport, kind, paths.collection_path(kind, place), limit=None):
                    yield page.items
            except Forbidden as error:
                if place == namespace:
                    raise
                self._places.lose(place, kind, error)

    async def look_around(self) -> None:
        """Ask in which of its namespaces this account may work now: some may have gone, others be back."""
        await self._places.look(self.allowed)

    async def _listed(self, kind: ResourceKind, namespace: str, labels: str, fields: str) -> tuple[Json, ...]:
        path = paths.collection_path(kind, namespace)
        return (await read_list(self._transport, kind, path, labels=labels, fields=fields, limit=None)).items

    def _is_in_parts(self, kind: ResourceKind, namespace: str) -> bool:
        return self._places.confined and kind.namespaced and not namespace

    async def table(self, kind: ResourceKind, namespace: str = "", *, labels: str = "", name: str = "") -> Json:
        """The objects, or the one of a name, as the API server prints them: `columnDefinitions` and `rows`.

        A row carries the `metadata` of its object in `object`.
        """
        path = paths.item_path(kind, name, namespace) if name else paths.collection_path(kind, namespace)
        query = {"limit": str(PAGE)} | ({"labelSelector": labels} if labels else {})
        found = await self._page(kind, path, query)
        rows: list[Json] = []
        while True:
            rows += found.get("rows") or []
            token = (found.get("metadata") or {}).get("continue")
            if not token:
                return {**found, "rows": rows}
            found = await self._page(kind, path, {**query, "continue": str(token)})

    async def _page(self, kind: ResourceKind, path: str, query: dict[str, str]) -> Json:
        verb = "get" if path.rsplit("/", 1)[-1] != kind.plural else "list"
        return (await self._transport.send(Request("GET", path, verb, kind.plural, query, accept=TABLE))).json()

    async def create(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        namespace = str((obj.value.get("metadata") or {}).get("namespace") or "")
        if kind.namespaced and not namespace:
            raise Invalid(f"{kind.kind}: metadata.namespace is needed to create it")
        path = paths.collection_path(kind, namespace)
        body, query = {**_type(kind), **obj.value}, {"fieldManager": FIELD_MANAGER}
        return await self._write("POST", path, "create", kind, body, query, urgent=kind.plural in EFFECTS)

    async def apply_status(self, kind: ResourceKind, obj: Redacted[Json]) -> Json:
        frame = _versioned(kind, obj.value)
        path = paths.item_path(kind, str(frame["name"]), str(frame.get("namespace", "")), "status")
        kept = {key: frame[key] for key in ("name", "namespace", "resourceVersion") if key in frame}
        body = {**_type(kind), "metadata": kept, "status": obj.value.get("status") or {}}
        query = {"fieldManager": FIELD_MANAGER, "force": "false"}
        written = await self._write("PATCH", path, "patch", kind, body, query, APPLY, urgent=kind.plural == DECISIONS)
        self.own_writes.note(written)
        return written

    async def swap(
        self, kind: ResourceKind, obj: Redacted[Json], *, manager: str = "inquest-owner", status: bool = True
    ) -> Json:
        frame = _versioned(kind, obj.value)
        part = "status" if status else ""
        path = paths.item_path(kind, str(frame["name"]), str(frame.get("namespace", "")), part)
        body = {key: value for key, value in obj.value.items() if key not in ("apiVersion", "kind")}
        body["metadata"] = {key: value for key, value in frame.items() if key != "managedFields"}
        written = await self._write("PATCH", path, "patch", kind, body, {"fieldManager": manager}, MERGE, urgent=True)
        if status:
            self.own_writes.note(written)
        return written

    async def change(self, kind: ResourceKind, found: Json, change: Redacted[Json], manager: str) -> Json:
        """Merge patch of that very object by a person: by its uid, whatever else was written to it meanwhile.

        Conflict where another object has its name now. A `resourceVersion` in the change binds it to that version.
        """
        frame = found["metadata"]
        path = paths.item_path(kind, str(frame["name"]), str(frame.get("namespace", "")))
        body = {**change.value, "metadata": {**(change.value.get("metadata") or {}), "uid": frame["uid"]}}
        return await self._write("PATCH", path, "patch", kind, body, {"fieldManager": manager}, MERGE)

    async def whoami(self) -> Person:
        """Whoever asks, as the API server knows them."""
        request = Request("POST", WHOAMI, "create", "selfsubjectreviews", body={**_SELF})
        status = (await self._transport.send(request)).json().get("status") or {}
        user = status.get("userInfo") or {}
        extra = {str(key): tuple(map(str, values)) for key, values in (user.get("extra") or {}).items()}
        groups = tuple(map(str, user.get("groups") or ()))
        return Person(str(user.get("username") or ""), groups, str(user.get("uid") or ""), extra)

    async def delete(self, kind: ResourceKind, name: str, namespace: str, *, uid: str = "") -> None:
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        try:
            await self._write("DELETE", paths.item_path(kind, name, namespace), "delete", kind, body, {})
        except NotFound:
            return
        except Conflict as error:
            # Another object took the name, so the one that was meant is gone.
            if not uid or "uid" not in str(error).lower():
                raise

    async def delete_all(self, kind: ResourceKind, namespace: str, *, labels: str, fields: str = "") -> None:
        if not labels or not namespace:
            raise Invalid(f"{kind.kind}: whatever is deleted together has a label and a namespace")
        body: Json = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        query = {"labelSelector": labels} | ({"fieldSelector": fields} if fields else {})
        await self._write("DELETE", paths.collection_path(kind, namespace), "deletecollection", kind, body, query)

    async def allowed(self, access: Access, name: str = "") -> bool:
        return _is_allowed(await self._review("selfsubjectaccessreviews", {**_attributes(access, name)}))

    async def allowed_for(self, person: Person, access: Access, name: str = "") -> bool:
        found = {
            "user": person.user,
            "groups": list(person.groups),
            "uid": person.uid,
            "extra": {key: list(values) for key, values in person.extra.items()},
        }
        subject = {key: value for key, value in found.items() if value}
        spec = {**_attributes(access, name), **subject}
        place = access.namespace if self._places.confined else ""
        plural = "localsubjectaccessreviews" if place else "subjectaccessreviews"
        return _is_allowed(await self._review(plural, spec, place, urgent=True))

    async def rules(self, namespace: str) -> Json:
        """The `status` of a SelfSubjectRulesReview; it may be incomplete."""
        return (await self._review("selfsubjectrulesreviews", {"namespace": namespace})).get("status") or {}

    async def now(self) -> datetime:
        return await self._transport.now()

    async def _review(self, plural: str, spec: Json, namespace: str = "", *, urgent: bool = False) -> Json:
        # A review stores nothing: it counts as a read and may be repeated.
        kind = ResourceKind("authorization.k8s.io", "v1", _REVIEW_KINDS[plural], plural, bool(namespace))
        frame = {"metadata": {"namespace": namespace}} if namespace else {}
        body = {**_type(kind), **frame, "spec": spec}
        request = Request("POST", paths.collection_path(kind, namespace), "create", plural, body=body, urgent=urgent)
        return (await self._transport.send(request)).json()

    async def _write(
        self,
        method: str,
        path: str,
        verb: str,
        kind: ResourceKind,
        body: Json,
        query: dict[str, str],
        content_type: str = "application/json",
        *,
        urgent: bool = False,
    ) -> Json:
        urgent = urgent or kind.plural == HEARTBEATS
        request = Request(method, path, verb, kind.plural, query, body, content_type, writes=True, urgent=urgent)
        return (await self._transport.send(request)).json()


def _is_allowed(review: Json) -> bool:
    return bool(review.get("status", {}).get("allowed", False))


_REVIEW_KINDS: Final = {
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
}


def _type(kind: ResourceKind) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _versioned(kind: ResourceKind, obj: Json) -> Json:
    """The metadata, which must carry what makes the write refusable when it comes too late."""
    frame: Json = obj.get("metadata") or {}
    for key in ("name", "resourceVersion"):
        if not frame.get(key):
            raise Invalid(f"{kind.kind}: metadata.{key} is needed to write it")
    return frame


def _attributes(access: Access, name: str = "") -> Json:
    if access.resource.startswith("/"):
        return {"nonResourceAttributes": {"path": access.resource, "verb": access.verb}}
    found = {
        "verb": access.verb,
        "group": access.group,
        "resource": access.resource,
        "subresource": access.subresource,
        "namespace": access.namespace,
        "name": name,
    }
    return {"resourceAttributes": {key: value for key, value in found.items() if value}}
