"""A case in one file: the same as in a folder, with faults by line, and a background that several share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inquest.replay.case import is_case, read_case
from inquest.replay.one_file import in_one_file
from inquest.replay.player import case_places
from inquest.replay.yaml_pages import CaseFileError
from tests.integration.replay.support import CASES

HEAD = """\
takenAt: 2026-11-22T10:00:00Z
signal:
  kind: Signal
  spec:
    name: A
    severity: high
    source: {type: Manual, name: jane}
    target: {apiVersion: v1, kind: Pod, namespace: shop, name: p}
    message: m
    firingTime: 2026-11-22T09:55:00Z
"""
POD = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"


def files_of(folder: Path) -> dict[str, str]:
    """The texts of a folder by their path."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["memory", "quiet"])
def test_a_case_is_the_same_in_a_folder_and_in_one_file(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"{name}.yaml", in_one_file(files_of(CASES / name)))

    assert read_case(path) == read_case(CASES / name)
    assert read_case(path.with_suffix("")) == read_case(path)


def test_a_person_writes_a_case_in_a_few_lines(tmp_path: Path) -> None:
    logs = "logs:\n  shop/p/app: |\n    one\n    two\n  shop/p/app.previous: gone\n"

    found = read_case(written(tmp_path / "late.yaml", f"{HEAD}{logs}text: [{{title: dmesg, text: killed}}]\n{POD}"))

    assert (found.name, found.texts) == ("late", (("dmesg", "killed"),))
    assert {(place.container, place.previous): text for place, text in found.logs.items()} == {
        ("app", False): "one\ntwo\n",
        ("app", True): "gone",
    }
    assert [one["metadata"]["name"] for one in found.objects] == ["p"]
    assert found.expected is None


FAULTS = {
    "no file": (None, "x:1: there is no such folder or file"),
    "nothing in it": ("", "x.yaml:1: the file is empty"),
    "no signal": ("takenAt: 2026-11-22T10:00:00Z\n", "x.yaml:1: a case needs its signal"),
    "a signal that is none": (HEAD.replace("high", "huge"), "x.yaml:6: spec.severity: Input should be"),
    "a key that is nearly right": (f"{HEAD}log: {{}}\n", "x.yaml:11: 'log' is not known: 'logs' is"),
    "a log in the wrong place": (f"{HEAD}logs:\n  shop/p: a\n", "x.yaml:12: a log stands in logs/<namespace>/<pod>"),
    "a gap without a reason": (f"{HEAD}gaps:\n- {{kind: pods}}\n", "x.yaml:12: .0..reason must be a text"),
    "a cause without words": (f"{HEAD}expected:\n  cause: {{field: log}}\n", "x.yaml:12: a cause needs category"),
    "an object without a name": (f"{HEAD}---\napiVersion: v1\nkind: Pod\n", "x.yaml:12: Pod needs metadata.name"),
    "a background that is not there": (f"{HEAD}background: calm\n", "x.yaml:11: there is no background 'calm'"),
    "a background by its path": (f"{HEAD}background: ../a/x\n", "x.yaml:11: there is no background '../a/x'"),
}


@pytest.mark.parametrize(("text", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_file_and_line(text: str | None, said: str, tmp_path: Path) -> None:
    written(tmp_path / "_backgrounds" / "other.yaml", NODE)
    written(tmp_path / "a" / "x.yaml", NODE)
    path = tmp_path / "x.yaml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(CaseFileError, match=said):
        read_case(path if text is not None else path.with_suffix(""))


@pytest.mark.parametrize("above", [0, 1])
def test_cases_share_a_background_beside_them_or_one_above(above: int, tmp_path: Path) -> None:
    path = tmp_path / "family" / "case.yaml"
    written(path.parents[above] / "_backgrounds" / "calm.yaml", f"{NODE}status: {{phase: Old}}\n{POD}")
    own = f"---\n{NODE}status: {{phase: New}}\n"

    found = read_case(written(path, f"{HEAD}background: calm\n{own}"))

    assert [(one["kind"], one.get("status")) for one in found.objects] == [("Node", {"phase": "New"}), ("Pod", None)]


def test_what_is_shared_stands_where_a_recording_has_it(tmp_path: Path) -> None:
    written(
        tmp_path / "_backgrounds" / "calm.yaml", "\n---\n".join(NODE.replace("name: n", f"name: {n}") for n in "ac")
    )

    found = read_case(
        written(tmp_path / "x.yaml", f"{HEAD}background: calm\n---\n{NODE.replace('name: n', 'name: b')}")
    )

    assert [one["metadata"]["name"] for one in found.objects] == ["a", "b", "c"]


def test_a_background_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = written(tmp_path / "elsewhere.yaml", NODE)
    (tmp_path / "_backgrounds").mkdir()
    (tmp_path / "_backgrounds" / "calm.yaml").symlink_to(elsewhere)

    with pytest.raises(CaseFileError, match="there is no background 'calm'"):
        read_case(written(tmp_path / "x.yaml", f"{HEAD}background: calm\n"))


def test_a_folder_goes_before_a_file_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, text in files_of(CASES / "memory").items():
        written(tmp_path / "case" / place, text)
    written(tmp_path / "case.yaml", HEAD)

    assert len(read_case(tmp_path / "case").objects) > len(read_case(tmp_path / "case.yaml").objects) == 0
    monkeypatch.chdir(tmp_path / "case")
    assert read_case(Path()) == replace(read_case(tmp_path / "case"), name=read_case(Path()).name)


def test_two_texts_of_one_title_are_both_kept(tmp_path: Path) -> None:
    more = {"text/1.txt": "# dmesg\none\n", "text/2.txt": "# dmesg\ntwo\n"}
    text = in_one_file(files_of(CASES / "quiet") | more)

    assert read_case(written(tmp_path / "x.yaml", text)).texts == (("dmesg", "one\n"), ("dmesg", "two\n"))


def test_a_file_that_is_no_text_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    one = written(tmp_path / "one.yaml", HEAD)

    assert list(case_places([tmp_path])) == [one]


def test_a_folder_of_cases_holds_files_and_folders(tmp_path: Path) -> None:
    for place, text in files_of(CASES / "memory").items():
        written(tmp_path / "memory" / place, text)
    one = written(tmp_path / "family" / "one.yaml", HEAD)
    other = written(tmp_path / "family" / "background.yaml", f"{NODE}---\n{HEAD}")

    assert list(case_places([tmp_path])) == [one, tmp_path / "memory"]
    assert list(case_places([one])) == [one]
    assert (is_case(one), is_case(other)) == (True, False)


def test_what_stands_in_a_line_is_what_fits_into_one() -> None:
    text = in_one_file(files_of(CASES / "memory"))

    assert max(map(len, text.splitlines())) <= 120
    assert "  metadata: {name: " in text
