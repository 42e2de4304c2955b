"""A binary is rebuilt when, and only when, something it is made from has changed."""

import shutil
from pathlib import Path

import pytest

from hack import HackError, tools
from hack.cache import REPOSITORY, hash_of
from hack.tools import TOOLS, store_name


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for module in {tool.module for tool in TOOLS.values()}:
        shutil.copytree(REPOSITORY / module, tmp_path / module)
    return tmp_path


def test_another_checkout_with_the_same_files_shares_the_binaries(copy: Path) -> None:
    assert [store_name(tool, copy) for tool in TOOLS.values()] == [store_name(tool) for tool in TOOLS.values()]


def test_a_changed_sum_renames_the_tools_of_its_module_and_no_other(copy: Path) -> None:
    sums = copy / "hack/tools/go.sum"
    sums.write_text(sums.read_text() + "example.com/new v1.0.0 h1:x=\n")

    renamed = {tool.module for tool in TOOLS.values() if store_name(tool, copy) != store_name(tool)}

    assert renamed == {"hack/tools"}


def test_a_changed_program_text_renames_its_binary(copy: Path) -> None:
    source = copy / "images/pause/main.go"
    source.write_text(source.read_text() + "// more\n")

    assert store_name(TOOLS["pause"], copy) != store_name(TOOLS["pause"])


def test_kubernetes_reports_the_version_that_its_module_requires() -> None:
    flags = tools._linker_flags(TOOLS["kubectl"], REPOSITORY)

    assert "gitVersion=v1.36.3" in flags
    assert "gitMinor=36" in flags


def test_kubernetes_staging_modules_are_of_the_same_release() -> None:
    lines = (REPOSITORY / "hack/kubernetes/go.mod").read_text().splitlines()
    replaced = [line.split() for line in lines if "=>" in line]

    assert len(replaced) == 33
    assert {version for *_, version in replaced} == {"v0.36.3"}


def test_an_unknown_tool_is_named_in_the_complaint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path))

    with pytest.raises(HackError, match="no tool is named kubctl"):
        tools.build(["kubctl"])


def test_a_tool_that_is_there_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INQUEST_CACHE", str(tmp_path))
    stored = tmp_path / "store" / store_name(TOOLS["etcd"])
    stored.parent.mkdir()
    stored.write_text("built")

    assert (tools.build(["etcd"]) / "etcd").read_text() == "built"


def test_a_byte_that_moves_to_another_part_changes_the_hash() -> None:
    assert hash_of([b"ab", b"c"]) != hash_of([b"a", b"bc"])


def test_go_versions_compare_by_number() -> None:
    assert tools._numbers("1.26.10") > tools._numbers("1.26.4")
