"""Copies what this interpreter and its packages need to run into an empty root, and the product into its packages.

    /opt/inquest/bin/python distil.py /rootfs

Run by images/operator/Containerfile inside the build stage. What is not named here is not in the image.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

NOT_NEEDED = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "__pycache__")
BESIDES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/nsswitch.conf")
LOADED_LATER = ("libgcc_s.so.1",)
"""Libraries that no program names and that the C library loads when a thread ends."""
USERS = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"


def main(root: Path) -> None:
    """Fill the root."""
    packages, stdlib = Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))
    shutil.copytree("product/inquest", packages / "inquest", dirs_exist_ok=True)
    _link_folders(root)
    for tree in (Path(sys.prefix), stdlib):
        _copy(tree, root)
    for program in _links_to(Path(sys.prefix, "bin", "python")):
        _copy(program, root)
    for path in BESIDES:
        if os.path.exists(path):
            _copy(Path(path), root)
    for library in sorted(_libraries(stdlib, packages)):
        _copy_library(library, root)
    _lay_out(root)
    _compile([root / str(tree).lstrip("/") for tree in (sys.prefix, stdlib)])


def _link_folders(root: Path) -> None:
    """`/lib` and its kin are links into `/usr` on newer systems."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}") and name.startswith("lib"):
            (root / os.readlink(f"/{name}").lstrip("/")).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(os.readlink(f"/{name}"))


def _copy(path: Path, root: Path) -> None:
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        unwanted = (
            shutil.ignore_patterns(*NOT_NEEDED) if "python" in str(path) else shutil.ignore_patterns("__pycache__")
        )
        shutil.copytree(path, target, symlinks=True, ignore=unwanted, dirs_exist_ok=True)
    elif not target.exists():
        shutil.copy2(path, target, follow_symlinks=False)


def _links_to(path: Path) -> Iterator[Path]:
    """The path and every link on the way to the file itself."""
    while path.is_symlink():
        yield path
        path = path.parent / os.readlink(path)
    yield path


def _libraries(*trees: Path) -> set[Path]:
    """Every shared library that the interpreter or a compiled module asks for, as the loader finds it."""
    modules = [Path(os.path.realpath(sys.executable)), *(found for tree in trees for found in tree.rglob("*.so*"))]
    found = {Path(line) for module in modules for line in _needed(module)}
    folders = {library.parent for library in found}
    return found | {folder / name for folder in folders for name in LOADED_LATER if (folder / name).exists()}


def _needed(module: Path) -> list[str]:
    answer = subprocess.run(["ldd", str(module)], capture_output=True, text=True, check=False).stdout
    return [path for path in re.findall(r"(/\S+) \(0x", answer) if "/site-packages/" not in path]


def _copy_library(library: Path, root: Path) -> None:
    """The file under the name that the loader asks for, in the folder that is no link."""
    target = root / os.path.realpath(library.parent).lstrip("/") / library.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(library, target)


def _lay_out(root: Path) -> None:
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(USERS)
    (root / "etc/group").write_text("root:x:0:\nnonroot:x:65532:\n")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "var/lib/inquest").mkdir(parents=True)


def _compile(trees: list[Path]) -> None:
    """Without times in them, so that the same sources give the same bytes."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for tree in trees:
        compileall.compile_dir(
            tree, quiet=2, maxlevels=30, invalidation_mode=mode, stripdir=str(sys.argv[1]), prependdir="/"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
