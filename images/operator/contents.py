"""Writes down what is in the image as CycloneDX: its Python packages, and the system's packages that gave its files.

    /pip/bin/python contents.py /rootfs /opt/inquest

Run by images/operator/Containerfile after distil.py. The same root gives the same bytes: no time, no chance.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.component_evidence import ComponentEvidence, Occurrence
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

DPKG = Path("/var/lib/dpkg/info")
NAME = "sbom.cdx.json"
PRODUCT = "kube-inquest"
MADE_LATER = {"/etc/ssl/certs/ca-certificates.crt": "ca-certificates"}
"""Files that a package makes when it is installed, and does not name."""
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "inquest.dev")


def main(root: Path, prefix: Path) -> None:
    """Write the list into the image."""
    bom = Bom(components=[*_python_packages(root, prefix), *_system_packages(root, prefix), _interpreter()])
    bom.metadata.component = Component(name=PRODUCT, type=ComponentType.CONTAINER, bom_ref=PRODUCT)
    bom.metadata.timestamp = datetime.fromtimestamp(0, UTC)
    bom.register_dependency(bom.metadata.component, bom.components)
    names = sorted(str(component.purl) for component in bom.components)
    bom.serial_number = uuid.uuid5(NAMESPACE, "\n".join(names))
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    (root / str(prefix).lstrip("/") / NAME).write_text(text + "\n", encoding="utf-8")


def _python_packages(root: Path, prefix: Path) -> Iterator[Component]:
    folders = [str(path) for path in (root / str(prefix).lstrip("/")).glob("lib/python*/site-packages")]
    for found in distributions(path=folders):
        name, version = found.metadata["Name"].lower().replace("_", "-"), found.version
        yield Component(
            name=name,
            version=version,
            licenses=[LicenseFactory().make_from_string(told)] if (told := _license(found)) else [],
            purl=PackageURL("pypi", name=name, version=version),
            bom_ref=f"pypi:{name}",
        )


def _license(found: Distribution) -> str:
    """The expression; else the field of before, unless somebody put the whole text of a license there."""
    told = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    return "" if "\n" in told else told.strip()


def _system_packages(root: Path, prefix: Path) -> Iterator[Component]:
    """Every package that gave a file, with the libraries that came from it."""
    versions, owners = _versions(), _owners()
    given: dict[str, set[str]] = defaultdict(set)
    for path in _files(root, prefix):
        if package := MADE_LATER.get(path) or owners.get(path) or owners.get(path.removeprefix("/usr")):
            given[package] |= {path} if ".so" in Path(path).name else set()
    for package, libraries in sorted(given.items()):
        version, architecture = versions[package]
        yield Component(
            name=package,
            type=ComponentType.LIBRARY,
            version=version,
            purl=PackageURL("deb", "debian", package, version, {"arch": architecture}),
            evidence=ComponentEvidence(occurrences=map(_occurrence, sorted(libraries))),
            bom_ref=f"deb:{package}",
        )


def _occurrence(path: str) -> Occurrence:
    """With a name of its own: what has none is written in an order of chance."""
    return Occurrence(location=path, bom_ref=path)


def _interpreter() -> Component:
    """By itself, for it need not come from a package of the system."""
    version = ".".join(map(str, sys.version_info[:3]))
    purl = PackageURL("generic", name="python", version=version)
    return Component(name="python", version=version, purl=purl, bom_ref="python")


def _files(root: Path, prefix: Path) -> Iterator[str]:
    """As they are named in the image."""
    for path in root.rglob("*"):
        name = "/" + str(path.relative_to(root))
        if path.is_file() and not name.startswith(f"{prefix}/"):
            yield name


def _owners() -> dict[str, str]:
    """Package of each file that a package names."""
    lists = ((path.name.removesuffix(".list").partition(":")[0], path) for path in sorted(DPKG.glob("*.list")))
    return {line: package for package, path in lists for line in path.read_text().splitlines()}


def _versions() -> dict[str, tuple[str, str]]:
    """Version and architecture of each installed package."""
    form = "${Package} ${Version} ${Architecture}\n"
    told = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    return {name: (version, architecture) for name, version, architecture in map(str.split, told.splitlines())}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
