"""Builds the container images of `images/`, reproducibly: the same inputs and compiler give the same digest anywhere.

Workflows pin their image by digest, so the digest must not depend on who built it or when. The archive of an image is
kept in the cache under the hash of what it was made from.

    python -m hack.images                    builds all and prints name@digest, one a line
    python -m hack.images kubectl --rebuild  builds again, to see that the digest stays
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hack import HackError
from hack.cache import REPOSITORY, cache_folder, hash_of, locked
from hack.packages import IMAGE_PROGRAMS, SYSTEM_PATH, ensure_programs, require_root
from hack.progress import building
from hack.tools import TOOLS, build, store_name

PREFIX = "localhost/inquest"
"""No registry has this name, so nothing can ever be pulled in the place of what was built here."""

TAG = "local"
BUILD_SECONDS = 10 * 60
BUILDER_NOTES = (Path("/var/lib/containers"), Path("/etc/cni"))
BUILDER_FLAGS = ("--timestamp=0", "--identity-label=false", "--isolation=chroot", "--format=oci")
DYNAMIC_LOADER = 3
"""PT_INTERP of the ELF format."""

BUSYBOX_USERS = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"


@dataclass(frozen=True)
class Recipe:
    """How the files beside an image's Containerfile come about."""

    inputs: Callable[[], list[bytes]]
    """What they are made from, to tell whether a build is needed."""
    lay_out: Callable[[Path], None]
    """Puts them into the folder that the builder is given."""
    base: Callable[[], Path] | None = None
    """Archive of a root in the place of the public base image of the first stage; none: it is built as written."""
    arguments: tuple[str, ...] = ()
    """Arguments of the build."""
    contents: str = ""
    """Where the image holds the list of what is in it; the list is put beside the archive."""


@dataclass(frozen=True)
class Image:
    """An image that was built."""

    name: str
    """Without tag or digest."""
    digest: str
    """Of the manifest, sha256:…"""
    archive: Path

    @property
    def pinned(self) -> str:
        """The reference that a workflow writes down."""
        return f"{self.name}@{self.digest}"

    @property
    def contents(self) -> Path:
        """The list of what is in it (CycloneDX), of an image that has one."""
        return self.archive.with_name("sbom.cdx.json")


def main(arguments: list[str] | None = None) -> int:
    """The command; one line per image, ready to be pinned."""
    parser = argparse.ArgumentParser(prog="python -m hack.images", description="Build container images.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RECIPES)}; all if none is given")
    parser.add_argument("--rebuild", action="store_true", help="build even what is in the cache")
    options = parser.parse_args(arguments)
    try:
        for name in options.names or RECIPES:
            if options.rebuild:
                forget(name)
            print(build_image(name).pinned)
    except HackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def build_images(names: Iterable[str]) -> list[Image]:
    """Each of these images, built if it is not in the cache."""
    wanted = list(names)
    missing = [name for name in wanted if not _folder(name, _recipe(name)).exists()]
    return [build_image(name, missing) for name in wanted]


def build_image(name: str, missing: Sequence[str] = ()) -> Image:
    """The image of `images/<name>`, built if it is not in the cache; `missing` are all that are built in this run."""
    recipe = _recipe(name)
    ensure_programs(IMAGE_PROGRAMS)
    folder = _folder(name, recipe)
    with locked(folder.parent / f".{folder.name}.lock", seconds=BUILD_SECONDS):
        if not folder.exists():
            with building(_titled(name), among=[_titled(one) for one in missing]):
                _build_into(folder, name, recipe)
    digest = (folder / "digest").read_text().strip()
    return Image(f"{PREFIX}/{name}", digest, folder / "image.tar")


def _titled(name: str) -> str:
    return f"image {name}"


def digest_of_another_build(name: str) -> str:
    """The digest of the image built once more from its sources, beside the one that is kept."""
    with tempfile.TemporaryDirectory(dir=cache_folder() / "images", prefix=f".again-{name}-") as work:
        folder = Path(work) / "result"
        _build_into(folder, name, _recipe(name))
        return (folder / "digest").read_text().strip()


def layers(archive: Path) -> Iterator[tarfile.TarFile]:
    """The layers of an image's archive, open, from the lowest."""
    with tarfile.open(archive) as image:
        for layer in _manifest(image)["layers"]:
            with tarfile.open(fileobj=_blob(image, layer["digest"])) as found:
                yield found


def settings_of(archive: Path) -> dict[str, Any]:
    """What an image says of itself: its user, its labels, its entry point."""
    with tarfile.open(archive) as image:
        found: dict[str, Any] = json.load(_blob(image, _manifest(image)["config"]["digest"]))["config"]
        return found


def _manifest(image: tarfile.TarFile) -> dict[str, Any]:
    index = json.load(_member(image, "index.json"))
    found: dict[str, Any] = json.load(_blob(image, index["manifests"][0]["digest"]))
    return found


def _blob(image: tarfile.TarFile, digest: str) -> IO[bytes]:
    return _member(image, f"blobs/{digest.replace(':', '/')}")


def _member(image: tarfile.TarFile, name: str) -> IO[bytes]:
    found = image.extractfile(name)
    if found is None:
        raise HackError(f"{image.name!r} does not hold {name}")
    return found


def forget(name: str) -> None:
    """Drop the image from the cache."""
    shutil.rmtree(_folder(name, _recipe(name)), ignore_errors=True)


def _recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise HackError(f"no image is named {name}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def _folder(name: str, recipe: Recipe) -> Path:
    containerfile = (REPOSITORY / "images" / name / "Containerfile").read_bytes()
    flags = " ".join(BUILDER_FLAGS).encode()
    return cache_folder() / "images" / f"{name}-{hash_of([containerfile, flags, *recipe.inputs()])}"


def _build_into(folder: Path, name: str, recipe: Recipe) -> None:
    require_root()
    with _leaving_no_trace(), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as work:
        context, result = Path(work) / "context", Path(work) / "result"
        context.mkdir()
        result.mkdir()
        recipe.lay_out(context)
        _buildah(Path(work), name, context, result, recipe)
        if recipe.contents:
            (result / "sbom.cdx.json").write_bytes(_file_in(result / "image.tar", recipe.contents))
        result.chmod(0o755)
        result.replace(folder)


def _file_in(archive: Path, name: str) -> bytes:
    for layer in layers(archive):
        if name in layer.getnames() and (found := layer.extractfile(name)):
            return found.read()
    raise HackError(f"{archive} holds no {name}")


@contextmanager
def _leaving_no_trace() -> Iterator[None]:
    """The builder takes notes in folders that cannot be moved; they go again unless they were there before."""
    traces = [folder for folder in BUILDER_NOTES if not folder.exists()]
    try:
        yield
    finally:
        for trace in traces:
            shutil.rmtree(trace, ignore_errors=True)


def _buildah(work: Path, name: str, context: Path, result: Path, recipe: Recipe) -> None:
    """Build in a store of our own and throw it away, so that nothing is left on the machine but the archive."""
    policy = work / "policy.json"
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    buildah = ["buildah", f"--root={work / 'store'}", f"--runroot={work / 'run'}", "--storage-driver=vfs"]
    trust = f"--signature-policy={policy}"
    containerfile = REPOSITORY / "images" / name / "Containerfile"
    flags = [*BUILDER_FLAGS, trust, *(f"--build-arg={argument}" for argument in recipe.arguments)]
    if recipe.base:
        flags.append(f"--from={_based([*buildah, 'build', *BUILDER_FLAGS, trust], work, recipe.base())}")
    _run([*buildah, "build", *flags, f"--file={containerfile}", f"--tag={name}", str(context)])
    archive = f"oci-archive:{result / 'image.tar'}:{TAG}"
    _run([*buildah, "push", trust, f"--digestfile={result / 'digest'}", name, archive])


def _based(build: list[str], work: Path, archive: Path) -> str:
    """The name of an image that holds the archive and nothing else, in the builder's store."""
    folder = work / "base"
    folder.mkdir()
    (folder / "root.tar").hardlink_to(archive)
    (folder / "Containerfile").write_text("FROM scratch\nADD root.tar /\n")
    _run([*build, f"--file={folder / 'Containerfile'}", "--tag=localhost/base", str(folder)])
    return "localhost/base"


def _run(command: list[str]) -> None:
    environment = {**os.environ, "PATH": SYSTEM_PATH, "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run(command, env=environment, timeout=BUILD_SECONDS, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HackError(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")


def _one_tool(tool: str) -> Recipe:
    """An image that holds one of our binaries and nothing else."""

    def lay_out(context: Path) -> None:
        _copy_program(build([tool]) / tool, context / tool)

    return Recipe(inputs=lambda: [store_name(TOOLS[tool]).encode()], lay_out=lay_out)


def _busybox() -> Path:
    ensure_programs(IMAGE_PROGRAMS)
    return Path(shutil.which("busybox", path=SYSTEM_PATH) or "/bin/busybox")


def _static_busybox() -> Path:
    """An empty image has no libraries: a busybox that needs them would start nowhere."""
    program = _busybox()
    if _needs_libraries(program.read_bytes()):
        raise HackError(f"{program} needs shared libraries: please install busybox-static in its place")
    return program


def _needs_libraries(program: bytes) -> bool:
    """Whether an ELF file (64 bits, little-endian) names a dynamic loader."""
    table, size, count = *struct.unpack_from("<Q", program, 32), *struct.unpack_from("<HH", program, 54)
    kinds = (struct.unpack_from("<I", program, table + size * number)[0] for number in range(count))
    return DYNAMIC_LOADER in kinds


def _lay_out_busybox(context: Path) -> None:
    root = context / "root"
    for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
        (root / folder).mkdir(parents=True)
        (root / folder).chmod(mode)
    _copy_program(_static_busybox(), root / "bin" / "busybox")
    (root / "etc" / "passwd").write_text(BUSYBOX_USERS)
    for applet in _applets():
        (root / "bin" / applet).symlink_to("busybox")


def _applets() -> list[str]:
    """Every command that busybox plays but its own name: a link of that name would overwrite the program."""
    listed = subprocess.run([_busybox(), "--list"], capture_output=True, text=True, timeout=30, check=True)
    return [applet for applet in listed.stdout.split() if applet != "busybox"]


def _copy_program(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o755)


# --- the operator's image ------------------------------------------------------------------------------------------

OPERATOR_SOURCES = (
    "src/inquest",
    "policies/approval.rego",
    "catalogue",
    "images/operator",
    "requirements/runtime.lock",
    "requirements/sbom.lock",
)
CONTENTS = "opt/inquest/sbom.cdx.json"
"""Where the image says what it holds."""

BASE_SUITE = "bookworm"
BASE_PACKAGES = "python3,python3-venv,ca-certificates,tzdata,libc-bin"
BASE_PYTHON = "3.11"
"""The Python of that suite; packages are fetched for it, whichever Python runs this."""
BASE_MIRROR = "http://deb.debian.org/debian"


def _operator_inputs() -> list[bytes]:
    base = "\n".join((BASE_SUITE, BASE_PACKAGES, BASE_PYTHON)).encode()
    files = (REPOSITORY / path for path in _operator_files())
    return [base, *(part for path in files for part in (str(path.relative_to(REPOSITORY)).encode(), path.read_bytes()))]


def _operator_files() -> list[Path]:
    """Every source file of the image, from the root of the repository."""
    found = []
    for source in OPERATOR_SOURCES:
        path = REPOSITORY / source
        within = path.rglob("*") if path.is_dir() else [path]
        found += [one for one in within if one.is_file() and "__pycache__" not in one.parts]
    return sorted(path.relative_to(REPOSITORY) for path in found)


def _lay_out_operator(context: Path) -> None:
    for path in _operator_files():
        (context / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / path, context / path)
    wheels = context / "wheels"
    wheels.mkdir()
    machine = os.uname().machine
    platforms = [f"--platform=manylinux{version}_{machine}" for version in ("2014", "_2_17", "_2_28", "_2_34")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    for lock in ("runtime.lock", "sbom.lock"):
        given = f"--requirement={context / 'requirements' / lock}"
        _run([*pip, f"--python-version={BASE_PYTHON}", *platforms, f"--dest={wheels}", given])


def _operator_base() -> Path:
    """A small Debian with Python, made once: no registry is needed for it."""
    ensure_programs({"debootstrap": "debootstrap"})
    kept = cache_folder() / "images" / f"base-{hash_of([BASE_SUITE.encode(), BASE_PACKAGES.encode()])}.tar"
    with locked(kept.with_name(f".{kept.name}.lock"), seconds=BUILD_SECONDS):
        if not kept.exists():
            with building("base of the operator"):
                _make_base(kept)
    return kept


def _make_base(kept: Path) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".base-") as work:
        root, fresh = Path(work) / "root", Path(work) / "root.tar"
        variant = ["--variant=minbase", f"--include={BASE_PACKAGES}", BASE_SUITE]
        _run(["debootstrap", *variant, str(root), BASE_MIRROR])
        _run(["tar", "--sort=name", "--numeric-owner", f"--directory={root}", "-cf", str(fresh), "."])
        fresh.replace(kept)


RECIPES: Mapping[str, Recipe] = {
    "kubectl": _one_tool("kubectl"),
    "opa": _one_tool("opa"),
    "operator": Recipe(
        inputs=_operator_inputs,
        lay_out=_lay_out_operator,
        base=_operator_base,
        arguments=("PIP_OPTIONS=--no-index --find-links=/src/wheels",),
        contents=CONTENTS,
    ),
    "pause": _one_tool("pause"),
    "busybox": Recipe(inputs=lambda: [_busybox().read_bytes()], lay_out=_lay_out_busybox),
}


if __name__ == "__main__":
    sys.exit(main())
