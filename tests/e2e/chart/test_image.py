"""The operator's image as it was built: what is in it, what it says is in it, and that it can be built again."""

from __future__ import annotations

import json
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hack.images import build_image, digest_of_another_build, layers, settings_of
from tests.e2e.chart.chart import ROOT

pytestmark = [pytest.mark.xdist_group("real-node"), pytest.mark.timeout(900)]

MOST_BYTES = 85_000_000
"""Compressed, all of it: the image has no layer below its own."""
VENV = "/opt/inquest/"
NOT_IN_IT = {"sh", "bash", "dash", "busybox", "apt", "dpkg", "pip", "kubectl", "curl", "wget", "opa", "gcc", "cc", "ld"}


@pytest.fixture(scope="module")
def files() -> dict[str, tarfile.TarInfo]:
    """Every file of the image by its path."""
    found = (member for layer in layers(build_image("operator").archive) for member in layer.getmembers())
    return {f"/{member.name.removeprefix('./')}": member for member in found}


@pytest.fixture(scope="module")
def contents() -> dict[str, Any]:
    """What the image says of itself, as it lies beside the archive."""
    found: dict[str, Any] = json.loads(build_image("operator").contents.read_text())
    return found


def test_the_image_holds_no_shell_no_package_manager_no_compiler_and_no_kubectl(
    files: dict[str, tarfile.TarInfo],
) -> None:
    programs = {Path(name).name for name, info in files.items() if not info.isdir()}

    assert "python" in programs
    assert not programs & NOT_IN_IT


def test_the_image_is_small_and_says_which_version_it_is() -> None:
    image = build_image("operator")
    said = settings_of(image.archive)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert image.archive.stat().st_size <= MOST_BYTES
    assert said["User"] == "65532:65532"
    assert said["Labels"]["org.opencontainers.image.version"] == version
    assert said["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


@pytest.mark.parametrize("row", ["RV-17-packages"])
def test_the_list_of_contents_names_each_installed_package_and_no_other(
    files: dict[str, tarfile.TarInfo], contents: dict[str, Any], row: str
) -> None:
    folders = {Path(name).parent.name for name in files if name.endswith(".dist-info/METADATA")}
    installed = {_spelled(*folder.removesuffix(".dist-info").split("-", 1)) for folder in folders}

    listed = {_spelled(one["name"], one["version"]) for one in contents["components"] if "pkg:pypi/" in one["purl"]}

    assert contents["bomFormat"] == "CycloneDX"
    assert len(installed) > 50
    assert listed == installed


@pytest.mark.parametrize("row", ["RV-17-libraries"])
def test_the_list_of_contents_says_which_package_each_library_of_the_system_is_from(
    files: dict[str, tarfile.TarInfo], contents: dict[str, Any], row: str
) -> None:
    present = {name for name, found in files.items() if found.isfile() and _is_library(name)}

    found = {place["location"] for one in contents["components"] for place in _places(one)}

    assert any("libssl" in name for name in present)
    assert found == present


@pytest.mark.parametrize("row", ["RV-17-names"])
def test_nothing_in_the_list_of_contents_is_named_by_chance_or_by_the_hour(contents: dict[str, Any], row: str) -> None:
    """The library makes names up where none is given; then no two builds would be equal."""
    components = contents["components"]
    named = [one["bom-ref"] for one in components] + [place["bom-ref"] for one in components for place in _places(one)]

    assert not [name for name in named if name.startswith("BomRef.")]
    assert contents["metadata"]["timestamp"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("row", ["RV-17-again-small"])
def test_an_image_that_is_built_again_has_the_same_digest(row: str) -> None:
    assert digest_of_another_build("busybox") == build_image("busybox").digest


@pytest.mark.long
@pytest.mark.parametrize("row", ["RV-17-again"])
def test_the_operators_image_that_is_built_again_has_the_same_digest(row: str) -> None:
    assert digest_of_another_build("operator") == build_image("operator").digest


def _spelled(name: str, version: str) -> str:
    return f"{name.lower().replace('_', '-').replace('.', '-')} {version}"


def _is_library(name: str) -> bool:
    return ".so" in Path(name).name and not name.startswith(VENV) and not name.startswith("/etc/")


def _places(component: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = component.get("evidence", {}).get("occurrences", [])
    return found
