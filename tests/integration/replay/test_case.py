"""What stands in a folder, as values; and what is wrong with one, by file and line (cases, section 1)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from inquest.replay.case import read_case
from inquest.replay.scoring import WantedObject
from inquest.replay.yaml_pages import CaseFileError
from tests.integration.replay.support import case, copied


def test_a_hand_written_case_is_read_whole() -> None:
    found = case()
    assert (found.name, found.kubernetes_version) == ("memory", "v1.36.0")
    assert found.taken_at == datetime(2026, 11, 22, 10, tzinfo=UTC)
    assert found.signal.spec.target.display == "Pod/api-6d5f9c7b8-x2x4p"
    assert [title for title, _ in found.texts] == ["systemctl status kubelet on node-1"]
    assert [(one.metric, one.range, dict(one.labels)["container"]) for one in found.measured] == [
        ("container_memory_working_set_bytes", "1h", "api")
    ]
    assert found.expected is not None
    assert found.expected.cause is not None
    assert found.expected.cause.objects == (WantedObject("Deployment", "api", "shop", "apps/v1"),)


def test_lists_are_taken_apart_and_items_of_a_typed_list_get_its_kind() -> None:
    kinds = sorted(f"{one['kind']}/{one['metadata']['name']}" for one in case().objects)
    assert {"ConfigMap/seen", "Namespace/shop", "Node/node-1", "Pod/web-0"} <= set(kinds)
    assert not any(kind.startswith("List") for kind in kinds)


def test_a_secret_in_the_folder_is_left_out() -> None:
    assert not [one for one in case().objects if one["kind"] == "Secret"]


def test_times_stay_texts() -> None:
    pod = next(one for one in case().objects if one["metadata"]["name"].startswith("api-6d5f9c7b8-x"))
    ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert ended["finishedAt"] == "2026-11-22T09:57:00Z"


def test_events_of_the_newer_group_are_the_same_objects() -> None:
    event = next(one for one in case().objects if one["kind"] == "Event")
    assert (event["apiVersion"], event["involvedObject"]["kind"], event["count"]) == ("v1", "Pod", 9)
    assert event["message"] == "Back-off restarting failed container"


def test_an_owner_without_a_uid_has_the_one_that_its_child_names() -> None:
    api, owner, pod = (
        next(one["metadata"] for one in case().objects if one["kind"] == kind and "api" in one["metadata"]["name"])
        for kind in ("Deployment", "ReplicaSet", "Pod")
    )
    assert api["uid"] == "4b1d"
    assert pod["ownerReferences"][0]["uid"] == owner["uid"]


def test_a_case_without_a_name_is_called_as_its_folder() -> None:
    assert case("quiet").name == "quiet"


HEAD = "takenAt: 2026-11-22T10:00:00Z\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n"
FAULTS: dict[str, tuple[dict[str, str | bytes], str]] = {
    "no case.yaml": ({"case.yaml": ""}, "case.yaml:1: No such file or directory"),
    "no signal": ({"signal.yaml": ""}, "signal.yaml:1: No such file or directory"),
    "no YAML": ({"case.yaml": HEAD + "name: [a\n"}, "case.yaml:3: no YAML"),
    "an empty file": ({"case.yaml": "# nothing\n"}, "case.yaml:1: the file is empty"),
    "a list for a mapping": ({"case.yaml": "- a\n"}, "case.yaml:1: the document must be a mapping"),
    "no time": ({"case.yaml": "name: a\n"}, "case.yaml:1: takenAt must be a text"),
    "a time that is none": ({"case.yaml": "name: a\ntakenAt: noon\n"}, "case.yaml:2: takenAt: 'noon' is no time"),
    "a time without a zone": ({"case.yaml": "takenAt: 2026-11-22T10:00:00\n"}, "case.yaml:1: takenAt: .* no time zone"),
    "a key that is nearly right": (
        {"case.yaml": HEAD + "\nrecordeds: []\n"},
        "case.yaml:3: 'recordeds' is not known: 'recorded' is",
    ),
    "a recorded entry without a kind": (
        {"case.yaml": HEAD + "recorded:\n  - {kind: pods}\n  - {namespaces: [shop]}\n"},
        "case.yaml:4: recorded.1..kind must be a text",
    ),
    "an empty list of namespaces": (
        {"case.yaml": HEAD + "recorded:\n  - kind: pods\n    namespaces: []\n"},
        "case.yaml:4: namespaces is empty",
    ),
    "a signal that is none": (
        {"signal.yaml": "kind: Signal\nmetadata: {name: a}\nspec:\n  name: A\n  severity: huge\n"},
        "signal.yaml:5: spec.severity: Input should be",
    ),
    "an object without kind": (
        {"objects/x.yaml": POD + "---\napiVersion: v1\nmetadata: {name: x}\n"},
        "x.yaml:5: an object needs kind",
    ),
    "an item without name": (
        {"objects/x.yaml": "kind: List\nitems:\n  - apiVersion: v1\n    kind: Node\n    metadata: {labels: {}}\n"},
        "x.yaml:5: Node needs metadata.name",
    ),
    "a name that YAML takes for a number": (
        {"objects/x.yaml": "apiVersion: v1\nkind: Node\nmetadata:\n  name: 1234\n"},
        "x.yaml:4: metadata.name must be a text: quote it",
    ),
    "a namespaced object without one": (
        {"objects/x.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"},
        "x.yaml:3: Pod x needs metadata.namespace",
    ),
    "a cluster-scoped object with one": (
        {"objects/x.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: x, namespace: shop}\n"},
        "x.yaml:3: Node has no namespace",
    ),
    "one object twice, not the same": (
        {"objects/x.yaml": POD, "objects/y.yaml": "\n" + POD + "spec: {nodeName: n}\n"},
        "y.yaml:2: Pod p stands also in x.yaml",
    ),
    "a gap without a reason": ({"gaps.yaml": "- {verb: list, kind: pods}\n"}, "gaps.yaml:1: .0..reason must be a text"),
    "a log in the wrong place": ({"logs/shop/x.log": "a\n"}, "x.log:1: a log stands in logs/<namespace>/<pod>"),
    "a text without a title": ({"text/x.txt": "\nall well\n"}, "x.txt:1: the first line must say which command"),
    "no UTF-8": ({"text/x.txt": b"ok\n\xff\xfe\n"}, "x.txt:2: no UTF-8"),
    "figures of nothing": (
        {"metrics/prometheus.yaml": "- {result: []}\n"},
        "prometheus.yaml:1: an answer needs the query",
    ),
    "a cause without words": ({"expected.yaml": "cause:\n  field: log\n"}, "expected.yaml:1: a cause needs category"),
    "a wanted object without a name": (
        {"expected.yaml": "cause:\n  category: A\n  object: {kind: Pod}\n"},
        "expected.yaml:3: cause.object.name must be a text",
    ),
}


@pytest.mark.parametrize(("files", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_names_file_and_line(tmp_path: Path, files: dict[str, str | bytes], said: str) -> None:
    with pytest.raises(CaseFileError, match=said):
        read_case(copied(tmp_path, files))


def test_one_object_twice_the_same_is_one(tmp_path: Path) -> None:
    folder = copied(tmp_path, {"objects/x.yaml": POD, "objects/y.yaml": POD})
    assert len([one for one in read_case(folder).objects if one["metadata"]["name"] == "p"]) == 1


def test_what_must_not_be_named_may_be_a_category_an_object_or_both(tmp_path: Path) -> None:
    text = "forbidden:\n  - NodeNotReady\n  - {kind: Node, name: n}\n  - {category: A, object: {kind: Pod, name: p}}\n"
    expected = read_case(copied(tmp_path, {"expected.yaml": text})).expected
    assert expected is not None
    assert [(one.categories, [each.name for each in one.objects]) for one in expected.forbidden] == [
        (("NodeNotReady",), []),
        ((), ["n"]),
        (("A",), ["p"]),
    ]


def test_a_key_that_nobody_knows_is_passed_over(tmp_path: Path) -> None:
    text = "takenAt: 2026-11-22T10:00:00Z\nrecorded: []\nrecordedBy: me\nteam: shop\n"
    assert read_case(copied(tmp_path, {"case.yaml": text})).whole == ()


def test_json_may_stand_for_yaml(tmp_path: Path) -> None:
    text = '{\n\t"kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "j"}}]\n}'
    found = read_case(copied(tmp_path, {"objects/x.json": text})).objects
    assert "j" in [one["metadata"]["name"] for one in found]
    with pytest.raises(CaseFileError, match=r"y\.json:2: no JSON"):
        read_case(copied(tmp_path, {"objects/y.json": "{\n}}"}))


def test_a_folder_that_is_not_there_is_a_bad_case(tmp_path: Path) -> None:
    with pytest.raises(CaseFileError, match="there is no such folder"):
        read_case(tmp_path / "none")


@pytest.mark.parametrize("place", ["logs/shop/api-1/app.log", "objects/linked.yaml", "text/linked.txt", "objects/deep"])
def test_a_link_out_of_the_folder_is_refused_wherever_it_stands(tmp_path: Path, place: str) -> None:
    """As somebody would send it: a log that is the reader's own key."""
    secret = tmp_path / "elsewhere" / "id_ed25519"
    secret.parent.mkdir()
    secret.write_text("PRIVATE KEY")
    (tmp_path / "case").mkdir()
    folder = copied(tmp_path / "case", {})
    link = folder / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(secret.parent if link.suffix == "" else secret)

    with pytest.raises(CaseFileError, match=r"is a link that leads out of"):
        read_case(folder)


def test_a_case_may_be_reached_by_a_link_and_hold_links_to_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    folder = copied(tmp_path / "case", {"objects/x.yaml": POD})
    (folder / "objects" / "y.yaml").symlink_to(folder / "objects" / "x.yaml")
    (tmp_path / "alias").symlink_to(folder)

    assert read_case(tmp_path / "alias").objects == read_case(folder).objects
