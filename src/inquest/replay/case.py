"""A case as values: read once, checked as a whole, never changed.

It stands in a folder or in one file. A fault is a `CaseFileError` that names file and line. Secrets are left out while
reading: nothing may ever show one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from pydantic import ValidationError

from inquest.adapters.kubernetes.discovery import SECRET_WORDS, ServedResource, pick_kind
from inquest.api.base import API_VERSION
from inquest.api.signal import Signal
from inquest.errors import AmbiguousKind, UnknownKind
from inquest.ports.kubernetes import Json, ResourceKind
from inquest.replay.kinds import BUILT_IN, METRICS_KINDS, is_namespaced, kinds_of
from inquest.replay.scoring import Expectation, WantedCause, WantedObject
from inquest.replay.yaml_pages import CaseFileError, YamlDocument, read_page, read_yaml_pages, text_of

CASE: Final = "case.yaml"
SIGNAL: Final = "signal.yaml"
EXPECTED: Final = "expected.yaml"
GAPS: Final = "gaps.yaml"
FEEDBACK: Final = "feedback.yaml"
METRICS: Final = "metrics/prometheus.yaml"
TOP: Final = "metrics/top.yaml"
_YAML: Final = frozenset({".yaml", ".yml", ".json"})
BACKGROUNDS: Final = "_backgrounds"
"""Folder of objects that cases in one file share, beside them or one above."""
_CASE_WORDS: Final = frozenset({"name", "description", "takenAt", "kubernetesVersion", "source", "recorded", "home"})
_FILE_WORDS: Final = _CASE_WORDS | {"signal", "background", "logs", "text", "prometheus", "gaps", "expected"}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SCOPE_WORDS: Final = frozenset({"kind", "apiVersion", "namespaces"})
_GAP_WORDS: Final = frozenset({"verb", "apiVersion", "kind", "namespace", "name", "reason"})
_EXPECTED_WORDS: Final = frozenset({"outcome", "cause", "acceptable", "forbidden", "actionTypes"})
_CAUSE_WORDS: Final = frozenset({"category", "object", "field", "value"})
_OBJECT_WORDS: Final = frozenset({"apiVersion", "kind", "namespace", "name"})
ALL: Final = "*"
PREVIOUS: Final = ".previous"


@dataclass(frozen=True)
class WholeListing:
    """A kind that was listed completely; `namespaces` is empty where it was so everywhere."""

    group: str
    plural: str
    namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MissedRead:
    """A read that the recorder could not make; an empty word stands for all."""

    verb: str
    group: str | None
    kind: str
    """Kind, plural or short name, in small letters."""
    namespace: str
    name: str
    reason: str


@dataclass(frozen=True)
class LogPlace:
    """Whose log; `previous` is the run before the present one."""

    namespace: str
    pod: str
    container: str
    previous: bool


@dataclass(frozen=True)
class RecordedQuery:
    """One recorded answer of Prometheus, as it was written down."""

    query: str
    metric: str
    labels: Mapping[str, str]
    range: str
    result: Any


@dataclass(frozen=True)
class RecordedCase:
    """All of a case but what the product would never read."""

    name: str
    description: str
    taken_at: datetime
    kubernetes_version: str
    signal: Signal
    objects: tuple[Json, ...] = ()
    kinds: tuple[ServedResource, ...] = BUILT_IN
    whole: tuple[WholeListing, ...] = ()
    missed: tuple[MissedRead, ...] = ()
    logs: Mapping[LogPlace, str] = field(default_factory=dict)
    texts: tuple[tuple[str, str], ...] = ()
    """Title and text of other evidence."""
    measured: tuple[RecordedQuery, ...] = ()
    expected: Expectation | None = None
    home: str = ""
    """Namespace of the operator that looked; empty: the one that the settings name."""


def read_case(place: Path) -> RecordedCase:
    """The case in a folder or a file, whose ending may be left out; BadCase for the first thing that is wrong."""
    file = _file_of(place)
    pages = _in_one_file(file) if file else _in_folder(place)
    head, objects = pages.head, _objects(pages)
    kinds = kinds_of(objects)
    return RecordedCase(
        name=head.text("name", default="") or case_id(place).name,
        description=head.text("description", default=""),
        taken_at=_time(head, "takenAt"),
        kubernetes_version=str(head.at("kubernetesVersion") or ""),
        signal=_signal(pages.signal),
        objects=objects,
        kinds=kinds,
        whole=tuple(_whole(head, number, kinds) for number in range(len(head.items("recorded")))),
        missed=tuple(one for where in pages.gaps for one in _missed(where)),
        logs=pages.logs,
        texts=pages.texts,
        measured=tuple(one for where in pages.measured for one in _measured(where)),
        expected=_expected(pages.expected) if pages.expected else None,
        home=head.text("home", default=""),
    )


def find_case(name: Path) -> Path | None:
    """The folder or the file of a case, whose ending may be left out; None where there is none."""
    if (name / CASE).is_file():
        return name
    file = _file_of(name)
    return file if file and is_case(file) else None


def _file_of(name: Path) -> Path | None:
    """A folder goes before a file of the same name."""
    if name.is_file() or name.is_dir() or not name.name:
        return name if name.is_file() else None
    beside = name.with_name(f"{name.name}.yaml")
    return beside if beside.is_file() else None


def is_case(path: Path) -> bool:
    """Whether a YAML file is a case: it begins with a head that has a time and a Signal."""
    if path.suffix not in _YAML:
        return False
    try:
        # What is no UTF-8 is told by whoever reads it as a case.
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise CaseFileError(path, 1, error.strerror or "cannot be read") from error
    head = text.removeprefix("---").partition("\n---")[0]
    return {"takenAt", "signal"} <= {line.partition(":")[0] for line in head.splitlines()}


def case_id(place: Path) -> Path:
    """What a case is called: its folder, or its file without the ending."""
    return place.with_suffix("") if place.suffix in _YAML and not place.is_dir() else place


@dataclass(frozen=True)
class _Pages:
    """What a case is read from."""

    head: YamlDocument
    signal: YamlDocument
    objects: tuple[YamlDocument, ...]
    shared: tuple[YamlDocument, ...] = ()
    """Objects of a background; one of the same name in the case takes its place."""
    gaps: tuple[YamlDocument, ...] = ()
    measured: tuple[YamlDocument, ...] = ()
    expected: YamlDocument | None = None
    logs: Mapping[LogPlace, str] = field(default_factory=dict)
    texts: tuple[tuple[str, str], ...] = ()


def _in_folder(folder: Path) -> _Pages:
    if not folder.is_dir():
        raise CaseFileError(folder, 1, "there is no such folder or file")
    # A case comes from others: a link in it could show any file of this machine as evidence.
    home = folder.resolve()
    for path in folder.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise CaseFileError(path, 1, f"is a link that leads out of {folder.name}: put a copy in its place")
    head = read_page(folder / CASE)
    head.mapping()
    head.known(_CASE_WORDS)
    return _Pages(
        head=head,
        signal=read_page(folder / SIGNAL),
        objects=tuple(_object_pages(folder)),
        gaps=_if_there(folder / GAPS),
        measured=_if_there(folder / METRICS),
        expected=read_page(folder / EXPECTED) if (folder / EXPECTED).exists() else None,
        logs=dict(_logs(folder / "logs")),
        texts=tuple(_texts(folder / "text")),
    )


def _object_pages(folder: Path) -> Iterator[YamlDocument]:
    root, top = folder / "objects", folder / TOP
    files = sorted(path for path in root.rglob("*") if path.suffix in _YAML) if root.is_dir() else []
    for path in (*files, *((top,) if top.exists() else ())):
        yield from read_yaml_pages(path)


def _if_there(path: Path) -> tuple[YamlDocument, ...]:
    return tuple(read_yaml_pages(path)) if path.exists() else ()


def _in_one_file(path: Path) -> _Pages:
    """The head has what a folder has files for; the documents after it are objects."""
    pages = list(read_yaml_pages(path))
    if not pages:
        raise CaseFileError(path, 1, "the file is empty")
    head, *objects = pages
    head.mapping()
    head.known(_FILE_WORDS)
    if head.at("signal") is None:
        raise head.fault("a case needs its signal")
    return _Pages(
        head=head,
        signal=head.part("signal"),
        objects=tuple(objects),
        shared=tuple(page for name in head.texts("background") for page in _background(head, name)),
        gaps=(head.part("gaps"),),
        measured=(head.part("prometheus"),),
        expected=head.part("expected") if head.at("expected") is not None else None,
        logs=dict(_logs_in(head)),
        texts=tuple(_texts_in(head)),
    )


def _logs_in(head: YamlDocument) -> Iterator[tuple[LogPlace, str]]:
    for where in head.mapping("logs") if head.at("logs") else ():
        place = _log_place(where.split("/"), partial(head.fault, _LOG_PLACE, "logs", where))
        yield place, head.text("logs", where, default="")


def _texts_in(head: YamlDocument) -> Iterator[tuple[str, str]]:
    for number in range(len(head.items("text"))):
        yield head.text("text", number, "title"), head.text("text", number, "text", default="")


def _background(head: YamlDocument, name: str) -> Iterator[YamlDocument]:
    """By its name alone: a case comes from others, and a path could show any file of this machine as evidence."""
    folders = (above / BACKGROUNDS for above in head.path.resolve().parents[:2])
    found = next((folder / f"{name}.yaml" for folder in folders if (folder / f"{name}.yaml").is_file()), None)
    if not _NAME.fullmatch(name) or found is None or found.is_symlink():
        raise head.fault(f"there is no background {name!r} in {BACKGROUNDS}", "background")
    yield from read_yaml_pages(found)


def _time(head: YamlDocument, *place: str) -> datetime:
    text = head.text(*place)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise head.fault(f"{place[-1]}: {text!r} is no time such as 2026-11-22T10:00:00Z", *place) from error
    if found.tzinfo is None:
        raise head.fault(f"{place[-1]}: {text!r} has no time zone: end it with Z", *place)
    return found


def _signal(found: YamlDocument) -> Signal:
    found.mapping()
    if (kind := found.at("kind")) not in (None, "Signal"):
        raise found.fault(f"kind must be Signal, not {kind}", "kind")
    metadata = dict(found.mapping("metadata")) if found.at("metadata") else {}
    metadata = {"name": f"{metadata.get('generateName') or ''}signal", **metadata}
    try:
        return Signal.from_object(
            {"apiVersion": API_VERSION, "kind": "Signal", **found.mapping(), "metadata": metadata}
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise found.fault(f"{place}: {first['msg']}", *first["loc"]) from error


# --- objects --------------------------------------------------------------------------------------------


def _objects(pages: _Pages) -> tuple[Json, ...]:
    """Every object once; the same one in two places must be the same in both, unless one is a background's."""
    found: dict[tuple[str, str, str, str], tuple[Json, YamlDocument]] = {}
    for one, where, number in _all_objects(pages.objects):
        first = found.setdefault(_key(one), (one, where))
        if first[0] != one:
            name = f"{one['kind']} {one['metadata']['name']}"
            raise where.fault(f"{name} stands also in {first[1].path.name}, and is another one there", *number)
    for one, where, _ in _all_objects(pages.shared):
        found.setdefault(_key(one), (one, where))
    several = [one for one, _ in found.values()]
    return with_uids(sorted(several, key=_recorded_place) if pages.shared else several)


def _recorded_place(one: Json) -> tuple[str, str, str]:
    """Where a recording has it: what is shared stands between what is the case's own."""
    metadata = one["metadata"]
    return str(metadata.get("namespace") or "cluster"), one["kind"].lower(), metadata["name"]


def _key(one: Json) -> tuple[str, str, str, str]:
    metadata = one["metadata"]
    return one["apiVersion"].rpartition("/")[0], one["kind"], str(metadata.get("namespace") or ""), metadata["name"]


def with_uids(objects: Sequence[Json]) -> tuple[Json, ...]:
    """Who writes by hand leaves uids out: an owner's is then the one that its child names, or follows from its name."""
    named: dict[tuple[str, str, str], Any] = {}
    for one in objects:
        for ref in one["metadata"].get("ownerReferences") or ():
            place = (str(ref.get("kind")), str(one["metadata"].get("namespace") or ""), str(ref.get("name")))
            named.setdefault(place, ref.get("uid"))
    uids = {_place(one): str(one["metadata"]["uid"]) for one in objects if one["metadata"].get("uid")}
    for one in objects:
        uids.setdefault(_place(one), str(named.get(_place(one)) or "") or _made_up(*_place(one)))
    return tuple({**one, "metadata": _identified(one, uids)} for one in objects)


def _identified(one: Json, uids: Mapping[tuple[str, str, str], str]) -> Json:
    metadata = {**one["metadata"], "uid": uids[_place(one)]}
    if owners := metadata.get("ownerReferences"):
        namespace = str(metadata.get("namespace") or "")
        metadata["ownerReferences"] = [{"uid": _uid_of(ref, namespace, uids), **ref} for ref in owners]
    return metadata


def _uid_of(ref: Json, namespace: str, uids: Mapping[tuple[str, str, str], str]) -> str:
    kind, name = str(ref.get("kind")), str(ref.get("name"))
    return uids.get((kind, namespace, name)) or uids.get((kind, "", name)) or _made_up(kind, namespace, name)


def _place(one: Json) -> tuple[str, str, str]:
    return one["kind"], str(one["metadata"].get("namespace") or ""), one["metadata"]["name"]


def _made_up(*place: str) -> str:
    return str(uuid5(NAMESPACE_URL, "recorded:" + "/".join(place)))


def _all_objects(
    pages: Iterable[YamlDocument],
) -> Iterator[tuple[Json, YamlDocument, tuple[str | int, ...]]]:
    for each in pages:
        yield from _taken_apart(each, (), each.value, {})


def _taken_apart(
    where: YamlDocument, place: tuple[str | int, ...], value: Any, above: Mapping[str, Any]
) -> Iterator[tuple[Json, YamlDocument, tuple[str | int, ...]]]:
    """An object, or the items of a list; items of a typed list carry no kind of their own."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _taken_apart(where, (*place, number), item, above)
        return
    if not isinstance(value, Mapping):
        raise where.fault("an object must be a mapping", *place)
    kind = str(value.get("kind", ""))
    if kind.endswith("List") and "items" in value:
        own = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
        for number, item in enumerate(where.items(*place, "items")):
            yield from _taken_apart(where, (*place, "items", number), item, own)
        return
    one = _checked(where, place, {**above, **value})
    if one["kind"].lower() not in SECRET_WORDS:
        yield _as_core_event(one), where, place


def _checked(where: YamlDocument, place: tuple[str | int, ...], one: dict[str, Any]) -> dict[str, Any]:
    for word in ("apiVersion", "kind"):
        if not isinstance(one.get(word), str) or not one[word]:
            raise where.fault(f"an object needs {word}", *place)
    metadata = one.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise where.fault(f"{one['kind']} needs metadata.name", *place, "metadata")
    for word in ("name", "namespace"):
        if metadata.get(word) is not None and not isinstance(metadata[word], str):
            raise where.fault(f"metadata.{word} must be a text: quote it", *place, "metadata", word)
    namespaced = is_namespaced(one["apiVersion"], one["kind"])
    if namespaced and not metadata.get("namespace"):
        raise where.fault(f"{one['kind']} {metadata['name']} needs metadata.namespace", *place, "metadata")
    if namespaced is False and metadata.get("namespace"):
        raise where.fault(f"{one['kind']} has no namespace", *place, "metadata", "namespace")
    return one


_EVENT_WORDS: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "reportingController": "reportingComponent",
}


def _as_core_event(one: dict[str, Any]) -> dict[str, Any]:
    """Events of `events.k8s.io` are the same objects under other words: the core group's are kept."""
    if one["kind"] != "Event" or one["apiVersion"] == "v1":
        return one
    return {_EVENT_WORDS.get(key, key): value for key, value in one.items()} | {"apiVersion": "v1"}


# --- what was read, and what could not be -----------------------------------------------------------------


def _whole(head: YamlDocument, number: int, kinds: Iterable[ServedResource]) -> WholeListing:
    entry = head.at("recorded", number)
    if isinstance(entry, str):
        word, api_version, namespaces = entry, "", frozenset[str]()
    else:
        head.mapping("recorded", number)
        head.known(_SCOPE_WORDS, "recorded", number)
        word = head.text("recorded", number, "kind")
        api_version = head.text("recorded", number, "apiVersion", default="")
        namespaces = frozenset(head.texts("recorded", number, "namespaces"))
    group, plural = resource_of(word, api_version, kinds)
    if ALL in namespaces or "" in namespaces:
        namespaces = frozenset()
    elif not namespaces and isinstance(entry, Mapping) and "namespaces" in entry:
        raise head.fault("namespaces is empty: leave it out for all of them", "recorded", number, "namespaces")
    return WholeListing(one_group(group, plural), plural, namespaces)


def one_group(group: str, plural: str) -> str:
    """Events are the same objects in both of their groups."""
    return "" if (group, plural) == ("events.k8s.io", "events") else group


def resource_of(word: str, api_version: str, kinds: Iterable[ServedResource]) -> tuple[str, str]:
    """Group and plural that a word means: `pods`, `deployments.apps`, `Deployment` beside its apiVersion."""
    try:
        kind = pick_kind((*kinds, *METRICS_KINDS), word, api_version)
    except (UnknownKind, AmbiguousKind):
        plural, _, group = word.lower().partition(".")
        return group or api_version.rpartition("/")[0], plural
    return kind.group, kind.plural


def _missed(where: YamlDocument) -> Iterator[MissedRead]:
    for number in range(len(where.items())):
        where.mapping(number)
        where.known(_GAP_WORDS, number)
        api_version = where.text(number, "apiVersion", default="")
        yield MissedRead(
            verb=where.text(number, "verb", default="").lower(),
            group=api_version.rpartition("/")[0] if api_version else None,
            kind=where.text(number, "kind", default="").lower(),
            namespace=where.text(number, "namespace", default=""),
            name=where.text(number, "name", default=""),
            reason=where.text(number, "reason"),
        )


def names_kind(missed: MissedRead, kind: ResourceKind) -> bool:
    """Whether a gap is about this kind; a subresource such as `pods/log` is another thing."""
    word, _, group = missed.kind.partition(".")
    own = missed.group if missed.group is not None else (group or None)
    return own in (None, kind.group) and word in ("", kind.kind.lower(), kind.plural)


# --- logs, texts, figures -----------------------------------------------------------------------------------


def _logs(root: Path) -> Iterator[tuple[LogPlace, str]]:
    for path in sorted(root.rglob("*.log")) if root.is_dir() else ():
        parts = path.relative_to(root).with_suffix("").parts
        place = _log_place(parts, partial(CaseFileError, path, 1, _LOG_PLACE))
        yield place, path.read_bytes().decode("utf-8", "replace")


_LOG_PLACE: Final = "a log stands in logs/<namespace>/<pod>/<container>"


def _log_place(parts: Sequence[str], fault: Callable[[], CaseFileError]) -> LogPlace:
    if len(parts) != 3:
        raise fault()
    namespace, pod, name = parts
    return LogPlace(namespace, pod, name.removesuffix(PREVIOUS), name.endswith(PREVIOUS))


def _texts(root: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(root.glob("*.txt")) if root.is_dir() else ():
        title, _, text = text_of(path).partition("\n")
        if not title.strip():
            raise CaseFileError(path, 1, "the first line must say which command or check printed this")
        yield title.strip().removeprefix("#").strip(), text


def _measured(where: YamlDocument) -> Iterator[RecordedQuery]:
    for number, entry in enumerate(where.items()):
        where.mapping(number)
        if not (entry.get("query") or entry.get("metric")):
            raise where.fault("an answer needs the query or the metric that it is of", number)
        if "result" not in entry:
            raise where.fault("an answer needs its result", number)
        labels = where.mapping(number, "labels") if "labels" in entry else {}
        yield RecordedQuery(
            query=where.text(number, "query", default=""),
            metric=where.text(number, "metric", default=""),
            labels={str(key): str(value) for key, value in labels.items()},
            range=str(entry.get("range") or ""),
            result=entry["result"],
        )


# --- the answer -----------------------------------------------------------------------------------------------


def _expected(where: YamlDocument) -> Expectation:
    where.mapping()
    where.known(_EXPECTED_WORDS)
    return Expectation(
        outcome=where.text("outcome", default=""),
        cause=_wanted(where, "cause") if where.at("cause") else None,
        acceptable=tuple(_wanted(where, "acceptable", number) for number in range(len(where.items("acceptable")))),
        forbidden=tuple(_wanted(where, "forbidden", number) for number in range(len(where.items("forbidden")))),
        action_types=where.texts("actionTypes"),
    )


def _wanted(where: YamlDocument, *place: str | int) -> WantedCause:
    """A cause, or an object alone (`acceptable` lists objects), or a category alone."""
    if isinstance(where.at(*place), str):
        return WantedCause(categories=where.texts(*place))
    found = where.mapping(*place)
    if "kind" in found:
        return WantedCause(objects=(_wanted_object(where, *place),))
    where.known(_CAUSE_WORDS, *place)
    if not found.get("category") and not found.get("object"):
        raise where.fault("a cause needs category or object", *place)
    several = where.at(*place, "object")
    count = len(several) if isinstance(several, list) else 0
    steps = [(number,) for number in range(count)] if count else [()] if several else []
    return WantedCause(
        categories=where.texts(*place, "category"),
        objects=tuple(_wanted_object(where, *place, "object", *step) for step in steps),
        fields=where.texts(*place, "field"),
    )


def _wanted_object(where: YamlDocument, *place: str | int) -> WantedObject:
    where.mapping(*place)
    where.known(_OBJECT_WORDS, *place)
    return WantedObject(
        kind=where.text(*place, "kind"),
        name=where.text(*place, "name"),
        namespace=where.text(*place, "namespace", default=""),
        api_version=where.text(*place, "apiVersion", default=""),
    )
