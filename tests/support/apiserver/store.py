"""Objects in memory with the rules of the API server: versions, conflicts, status, finalizers, garbage collection.

What it does not know: rules in CEL, admission policies, strategic merge patches, printing. A write goes through the
hooks before it is stored, as admission would.
"""

from __future__ import annotations

import copy
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tests.support.apiserver.fields import merged
from tests.support.apiserver.kinds import CRDS, Kind, built_in, kinds_of
from tests.support.apiserver.ownership import FieldOwners, Manager
from tests.support.apiserver.refusals import Refused, conflict, invalid, no_such_path, not_found
from tests.support.apiserver.schema import faults, prune_and_default, whole
from tests.support.apiserver.selectors import has_fields, has_labels

Object = dict[str, Any]

KEPT_CHANGES: Final = 20_000
"""Changes that a watch may begin with; an older version is Expired."""
WRITABLE: Final = ("labels", "annotations", "finalizers", "ownerReferences")
"""Fields of the metadata that a client may change."""
WITH_GENERATION: Final = frozenset({"apps", "batch", "networking.k8s.io", "policy", "admissionregistration.k8s.io"})


@dataclass(frozen=True)
class Change:
    """One line of a watch."""

    version: int
    kind: Kind
    word: str
    """ADDED, MODIFIED or DELETED."""
    obj: Object
    before: Object | None = None
    """What it was, so that a watch with a selector sees it come and go."""


@dataclass(frozen=True)
class Write:
    """How something is written."""

    manager: str = "unknown"
    user: str = "system:admin"
    subresource: str = ""
    force: bool = False
    dry: bool = False


Hook = Callable[[str, Kind, Object | None, Object | None, Write], None]
"""Before a write is stored: CREATE, UPDATE or DELETE, the object before and after; raises Refused."""


@dataclass
class Store:
    """Everything that the server holds."""

    kinds: list[Kind] = field(default_factory=built_in)
    hooks: list[Hook] = field(default_factory=list)
    reactions: list[Callable[[Kind, Object], None]] = field(default_factory=list)
    """After a write: what the controllers of a control plane do."""
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    version: int = 1
    lock: threading.RLock = field(default_factory=threading.RLock)
    changes: deque[Change] = field(default_factory=lambda: deque(maxlen=KEPT_CHANGES))
    _objects: dict[tuple[str, str], dict[tuple[str, str], Object]] = field(default_factory=dict)
    _owners: dict[str, FieldOwners] = field(default_factory=dict)

    # --- reading --------------------------------------------------------------------------------------------

    def kind(self, group: str, plural: str, version: str = "") -> Kind:
        """The kind of a path."""
        for one in self.kinds:
            if one.key == (group, plural) and version in ("", one.version):
                return one
        raise no_such_path()

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind.key, {}).get((namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise not_found(kind.group, kind.plural, name)
        return found

    def list(self, kind: Kind, namespace: str = "", labels: str = "", fields: str = "") -> list[Object]:
        """In the order of their names, as etcd gives them."""
        held = self._objects.get(kind.key, {})
        there = (obj for (place, _), obj in sorted(held.items()) if namespace in ("", place))
        return [obj for obj in there if is_selected(obj, labels, fields)]

    # --- writing --------------------------------------------------------------------------------------------

    def create(self, kind: Kind, namespace: str, body: Object, write: Write) -> Object:
        """A new object; its status is left out where the kind has one of its own."""
        obj = copy.deepcopy(body)
        meta = obj["metadata"] = dict(obj.get("metadata") or {})
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise invalid(kind.kind, "", ["metadata.name: Required value: name or generateName is required"])
            meta["name"] = f"{meta['generateName']}{uuid.uuid4().hex[:5]}"
        if meta.get("resourceVersion"):
            raise Refused(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        self._must_have_place(kind, namespace)
        name = meta["name"]
        if self.find(kind, namespace, name) is not None:
            details = {"name": name, "group": kind.group, "kind": kind.plural}
            what = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
            raise Refused(409, "AlreadyExists", f'{what} "{name}" already exists', details)
        if kind.has_status and kind.schema:
            obj.pop("status", None)
        obj |= {"apiVersion": kind.api_version, "kind": kind.kind}
        meta |= {"namespace": namespace} if kind.namespaced else {}
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now_text()}
        meta |= {"generation": 1} if _counts_generations(kind) else {}
        meta.pop("managedFields", None)
        self._must_be_valid(kind, obj)
        self._ask("CREATE", kind, None, obj, write)
        owners = FieldOwners()
        owners.update({}, obj, kind.schema, Manager(write.manager, "Update", ""), meta["creationTimestamp"])
        return self._store(kind, obj, "ADDED", owners, write)

    def update(self, kind: Kind, old: Object, new: Object, write: Write) -> Object:
        """The object as it shall be; a part that this path does not write stays as it was."""
        new = self._written(kind, old, copy.deepcopy(new), write)
        if _content(new) == _content(old):
            return old
        self._ask("UPDATE", kind, old, new, write)
        owners = copy.deepcopy(self._owners.get(old["metadata"]["uid"], FieldOwners()))
        owners.update(old, new, kind.schema, Manager(write.manager, "Update", write.subresource), now_text())
        return self._changed(kind, old, new, owners, write)

    def patch(self, kind: Kind, namespace: str, name: str, change: Object, write: Write) -> Object:
        """A JSON merge patch."""
        old = self.get(kind, namespace, name)
        self._must_be_meant(kind, old, change)
        return self.update(kind, old, merged(old, change), write)

    def replace(self, kind: Kind, namespace: str, name: str, body: Object, write: Write) -> Object:
        old = self.get(kind, namespace, name)
        self._must_be_meant(kind, old, body)
        return self.update(kind, old, body, write)

    def apply(self, kind: Kind, namespace: str, name: str, body: Object, write: Write) -> Object:
        """Server-side apply; of an object that is not there: create, unless it is its status."""
        old, manager = self.find(kind, namespace, name), Manager(write.manager, "Apply", write.subresource)
        if old is None:
            if write.subresource:
                raise not_found(kind.group, kind.plural, name)
            return self._created_by_apply(kind, namespace, name, body, write, manager)
        self._must_be_meant(kind, old, body)
        wanted = {key: value for key, value in body.items() if key in self._parts(kind, body, write)}
        owners = copy.deepcopy(self._owners.get(old["metadata"]["uid"], FieldOwners()))
        before = copy.deepcopy(owners)
        wanted["apiVersion"] = kind.api_version
        new, differing = owners.apply(old, wanted, kind.schema, manager, now_text(), force=write.force)
        if differing:
            raise _apply_conflict(kind, name, differing)
        new = self._written(kind, old, new, write)
        if _content(new) == _content(old) and owners == before:
            return old
        self._ask("UPDATE", kind, old, new, write)
        return self._changed(kind, old, new, owners, write)

    def delete(
        self, kind: Kind, namespace: str, name: str, write: Write, *, uid: str = "", version: str = ""
    ) -> Object:
        """Mark it while it has finalizers, else take it away with all that it owned."""
        obj = self.get(kind, namespace, name)
        meta = obj["metadata"]
        if uid and uid != meta["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
            raise conflict(kind.group, kind.plural, name, why)
        if version and version != meta["resourceVersion"]:
            raise conflict(kind.group, kind.plural, name, "Precondition failed: ResourceVersion")
        self._ask("DELETE", kind, obj, None, write)
        if write.dry:
            return obj
        if kind.key == ("", "namespaces"):
            return self._empty(kind, obj, write)
        return self._go(kind, obj, write)

    # --- rules ----------------------------------------------------------------------------------------------

    def _must_have_place(self, kind: Kind, namespace: str) -> None:
        if not kind.namespaced:
            return
        place = self.find(self.kind("", "namespaces"), "", namespace)
        if place is None:
            raise not_found("", "namespaces", namespace)
        if place["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise Refused(403, "Forbidden", f"{kind.plural} is forbidden: {why}")

    def _must_be_meant(self, kind: Kind, old: Object, body: Object) -> None:
        meta, there = body.get("metadata") or {}, old["metadata"]
        if meta.get("uid") not in (None, "", there["uid"]):
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {there['uid']}"
            raise conflict(kind.group, kind.plural, there["name"], why)
        if meta.get("resourceVersion") not in (None, "", there["resourceVersion"]):
            why = "the object has been modified; please apply your changes to the latest version and try again"
            raise conflict(kind.group, kind.plural, there["name"], why)

    def _must_be_valid(self, kind: Kind, obj: Object) -> None:
        if not kind.schema:
            return
        schema = whole(kind.schema)
        prune_and_default(obj, schema)
        if found := list(faults(obj, schema)):
            raise invalid(f"{kind.kind}.{kind.group}", obj["metadata"]["name"], found)

    def _parts(self, kind: Kind, body: Object, write: Write) -> set[str]:
        """The top fields that a path writes."""
        if write.subresource == "status":
            return {"status"}
        return set(body) - ({"status"} if kind.has_status else set())

    def _written(self, kind: Kind, old: Object, new: Object, write: Write) -> Object:
        """`new` with everything that this path may not write as it was."""
        if write.subresource == "status":
            kept = {key: value for key, value in old.items() if key != "status"}
            result = {**kept, **({"status": new["status"]} if new.get("status") is not None else {})}
            result["metadata"] = dict(old["metadata"])
        else:
            result = dict(new)
            if kind.has_status:
                result.pop("status", None)
                result |= {"status": old["status"]} if "status" in old else {}
            asked = new.get("metadata") or {}
            meta = {key: value for key, value in old["metadata"].items() if key not in WRITABLE}
            result["metadata"] = meta | {key: asked[key] for key in WRITABLE if asked.get(key)}
        result |= {"apiVersion": kind.api_version, "kind": kind.kind}
        self._must_be_valid(kind, result)
        if _counts_generations(kind) and _specified(result) != _specified(old):
            result["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        return result

    def _ask(self, word: str, kind: Kind, old: Object | None, new: Object | None, write: Write) -> None:
        for hook in tuple(self.hooks):
            hook(word, kind, old, new, write)

    def _created_by_apply(
        self, kind: Kind, namespace: str, name: str, body: Object, write: Write, manager: Manager
    ) -> Object:
        # A version that it goes by is passed over: there is nothing that it could be older than.
        meta = {key: value for key, value in body.get("metadata", {}).items() if key != "resourceVersion"}
        made = self.create(kind, namespace, {**body, "metadata": {**meta, "name": name}}, write)
        if not write.dry:
            owners = self._owners[made["metadata"]["uid"]]
            owners.claims = dict.fromkeys((manager,), next(iter(owners.claims.values())))
            made["metadata"]["managedFields"] = owners.managed_fields()
        return made

    def _changed(self, kind: Kind, old: Object, new: Object, owners: FieldOwners, write: Write) -> Object:
        meta = new["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and not write.dry:
            return self._remove(kind, new, write)
        return self._store(kind, new, "MODIFIED", owners, write, old)

    def _store(
        self, kind: Kind, obj: Object, word: str, owners: FieldOwners, write: Write, old: Object | None = None
    ) -> Object:
        meta = obj["metadata"]
        meta["managedFields"] = owners.managed_fields()
        if write.dry:
            return {**obj, "metadata": {**meta, "resourceVersion": str(self.version)}}
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        self._objects.setdefault(kind.key, {})[meta.get("namespace", ""), meta["name"]] = obj
        self._owners[meta["uid"]] = owners
        if kind.key == CRDS:
            self._serve(obj)
        self._tell(Change(self.version, kind, word, obj, old))
        for reaction in tuple(self.reactions):
            reaction(kind, obj)
        return self.find(kind, meta.get("namespace", ""), meta["name"]) or obj

    def _tell(self, change: Change) -> None:
        self.changes.append(change)
        for listener in tuple(self.listeners):
            listener(change)

    def _serve(self, crd: Object) -> None:
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        self.kinds = [one for one in self.kinds if one.key != (group, plural)] + kinds_of(crd)
        names = {"acceptedNames": crd["spec"]["names"], "storedVersions": [crd["spec"]["versions"][0]["name"]]}
        at = crd["metadata"]["creationTimestamp"]
        conditions = [
            {"type": word, "status": "True", "lastTransitionTime": at, "reason": word}
            for word in ("NamesAccepted", "Established")
        ]
        crd["status"] = {**names, "conditions": conditions}

    # --- going ----------------------------------------------------------------------------------------------

    def _go(self, kind: Kind, obj: Object, write: Write) -> Object:
        meta = obj["metadata"]
        if not meta.get("finalizers"):
            return self._remove(kind, obj, write)
        if meta.get("deletionTimestamp"):
            return obj
        going = copy.deepcopy(obj)
        going["metadata"] |= {"deletionTimestamp": now_text(), "deletionGracePeriodSeconds": 0}
        return self._store(kind, going, "MODIFIED", self._owners[meta["uid"]], write, obj)

    def _remove(self, kind: Kind, obj: Object, write: Write) -> Object:
        meta = obj["metadata"]
        self._objects[kind.key].pop((meta.get("namespace", ""), meta["name"]), None)
        self._owners.pop(meta["uid"], None)
        self.version += 1
        gone = copy.deepcopy(obj)
        gone["metadata"]["resourceVersion"] = str(self.version)
        if kind.key == CRDS:
            group, plural = obj["spec"]["group"], obj["spec"]["names"]["plural"]
            self.kinds = [one for one in self.kinds if one.key != (group, plural)]
            self._objects.pop((group, plural), None)
        self._tell(Change(self.version, kind, "DELETED", gone, obj))
        for other, dependent in [*self._dependents(meta["uid"])]:
            self._collect(other, dependent, write)
        self._close(meta.get("namespace", ""))
        return gone

    def _dependents(self, uid: str) -> Iterator[tuple[Kind, Object]]:
        for key, held in tuple(self._objects.items()):
            for obj in tuple(held.values()):
                if any(ref.get("uid") == uid for ref in obj["metadata"].get("ownerReferences") or ()):
                    yield self.kind(*key), obj

    def _collect(self, kind: Kind, obj: Object, write: Write) -> None:
        """What nobody owns any more goes; a second owner keeps it."""
        owners = {ref.get("uid") for ref in obj["metadata"].get("ownerReferences") or ()}
        is_owned = any(one["metadata"]["uid"] in owners for held in self._objects.values() for one in held.values())
        if not is_owned and self.find(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]):
            self._go(kind, obj, write)

    def _empty(self, kind: Kind, place: Object, write: Write) -> Object:
        """A namespace goes when nothing is in it any more."""
        name = place["metadata"]["name"]
        if not place["metadata"].get("deletionTimestamp"):
            going = copy.deepcopy(place)
            going["metadata"] |= {"deletionTimestamp": now_text()}
            going["status"] = {"phase": "Terminating"}
            place = self._store(kind, going, "MODIFIED", self._owners[place["metadata"]["uid"]], write, place)
        for key, held in tuple(self._objects.items()):
            for (namespace, one), obj in tuple(held.items()):
                if namespace == name and self.find(self.kind(*key), namespace, one):
                    self._go(self.kind(*key), obj, write)
        self._close(name)
        return place

    def _close(self, namespace: str) -> None:
        kind = self.kind("", "namespaces")
        place = self.find(kind, "", namespace) if namespace else None
        if place is None or not place["metadata"].get("deletionTimestamp"):
            return
        if not any(space == namespace for held in self._objects.values() for space, _ in held):
            self._remove(kind, place, Write())


def is_selected(obj: Object, labels: str, fields: str) -> bool:
    """Whether both selectors hold."""
    return has_labels(obj["metadata"].get("labels") or {}, labels) and has_fields(obj, fields)


def now_text() -> str:
    """This moment as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _counts_generations(kind: Kind) -> bool:
    return bool(kind.schema) or kind.group in WITH_GENERATION or kind.plural == "pods"


def _specified(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}


def _content(obj: Object) -> Object:
    """All but what the server itself writes at each change."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": meta}


def _apply_conflict(kind: Kind, name: str, differing: list[tuple[str, Any]]) -> Refused:
    listed = "\n".join(f'- conflict with "{who}": {_dotted(path)}' for who, path in differing)
    count = f"{len(differing)} conflict{'s' if len(differing) > 1 else ''}"
    causes = [{"reason": "FieldManagerConflict", "field": _dotted(path)} for _, path in differing]
    details = {"name": name, "group": kind.group, "kind": kind.plural, "causes": causes}
    return Refused(409, "Conflict", f"Apply failed with {count}: {listed}", details)


def _dotted(path: Any) -> str:
    return "".join(f".{step}" if isinstance(step, str) else str(dict(step)) for step in path)
