"""Writes the CRDs, admission policies and roles, or says where the files differ from the code.

python -m hack.gen.crds            writes crds/, policies/admission/, policies/datastorage/ and policies/rbac/
python -m hack.gen.crds --check    exits 1 with a unified diff
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hack.gen.files import ROOT, reconcile
from inquest.api.manifests.admission import render_mutating, render_policies
from inquest.api.manifests.crd import render_crds
from inquest.api.manifests.rbac import render_datastorage, render_rbac

HEADER = "# Written by `python -m hack.gen.crds` from src/inquest/api; do not edit.\n"


def main(arguments: list[str] | None = None) -> int:
    """The command; exit code 1 with --check means that something differs."""
    parser = argparse.ArgumentParser(prog="python -m hack.gen.crds", description="CRDs, policies and roles as files.")
    parser.add_argument("--check", action="store_true", help="write nothing, show the difference")
    options = parser.parse_args(arguments)
    return reconcile(files(), check=options.check, strangers=_strangers())


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    found = {ROOT / "crds" / name: _text([crd]) for name, crd in render_crds().items()}
    found |= {
        ROOT / "policies/admission" / name: _text(them)
        for name, them in _by_purpose([*render_policies(), *render_mutating()])
    }
    found |= {ROOT / "policies/datastorage" / name: _text(them) for name, them in _by_purpose(render_datastorage())}
    return found | {ROOT / "policies/rbac" / name: _text(them) for name, them in _by_purpose(render_rbac())}


def _by_purpose(objects: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """One file for each name, so that a policy stands beside its binding."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for found in objects:
        groups.setdefault(found["metadata"]["name"], []).append(found)
    return ((f"{name}.yaml", them) for name, them in groups.items())


def _text(objects: Iterable[Mapping[str, Any]]) -> str:
    documents = (yaml.safe_dump(found, sort_keys=False, width=120, allow_unicode=True) for found in objects)
    return HEADER + "---\n".join(documents)


def _strangers() -> list[Path]:
    wanted = files()
    return [path for folder in {path.parent for path in wanted} for path in folder.glob("*.yaml") if path not in wanted]


if __name__ == "__main__":
    raise SystemExit(main())
