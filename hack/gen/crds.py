"""Writes the CRDs, admission policies and roles, or says where the files differ from the code.

python -m hack.gen.crds            writes crds/, policies/admission/, policies/datastorage/ and policies/rbac/
python -m hack.gen.crds --check    exits 1 with a unified diff
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from inquest.api.manifests.admission import render_mutating, render_policies
from inquest.api.manifests.crd import render_crds
from inquest.api.manifests.rbac import render_datastorage, render_rbac

ROOT = Path(__file__).resolve().parents[2]
HEADER = "# Written by `python -m hack.gen.crds` from src/inquest/api; do not edit.\n"


def main(arguments: list[str] | None = None) -> int:
    """The command; exit code 1 with --check means that something differs."""
    parser = argparse.ArgumentParser(prog="python -m hack.gen.crds", description="CRDs, policies and roles as files.")
    parser.add_argument("--check", action="store_true", help="write nothing, show the difference")
    options = parser.parse_args(arguments)
    return _check() if options.check else _write()


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


def _write() -> int:
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in _strangers():
        path.unlink()
    return 0


def _check() -> int:
    differences = [line for path, text in files().items() for line in _difference(path, text)]
    differences += [f"{path.relative_to(ROOT)} is not generated any more\n" for path in _strangers()]
    sys.stdout.writelines(differences)
    return 1 if differences else 0


def _difference(path: Path, text: str) -> Iterator[str]:
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    name = str(path.relative_to(ROOT))
    return difflib.unified_diff(there.splitlines(True), text.splitlines(True), name, f"{name} (generated)")


def _strangers() -> list[Path]:
    wanted = files()
    return [path for folder in {path.parent for path in wanted} for path in folder.glob("*.yaml") if path not in wanted]


if __name__ == "__main__":
    raise SystemExit(main())
