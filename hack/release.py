"""Builds the operator's image for others: on a base that is named by its digest, or not at all.

    python -m hack.release --base docker.io/library/python:3.13-slim@sha256:... registry.example/inquest/operator:0.1.0

A tag may name another base tomorrow, and nobody could build the same image again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from typing import Final

from hack import HackError
from hack.cache import REPOSITORY

BUILDERS: Final = ("docker", "podman", "buildah")
CONTAINERFILE: Final = "images/operator/Containerfile"
PINNED: Final = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")


def main(arguments: list[str] | None = None) -> int:
    """The command: 0 where the image was built."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.release", description="Build the operator's image for others."
    )
    parser.add_argument("name", help="of the image that is made: registry.example/inquest/operator:0.1.0")
    parser.add_argument("--base", required=True, help="what it is built on: NAME@sha256:...")
    options = parser.parse_args(arguments)
    try:
        release(options.name, options.base)
    except HackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def release(name: str, base: str) -> None:
    """Builds `name` on `base` with the first builder that is there; HackError where the base is not pinned."""
    if not PINNED.fullmatch(base):
        raise HackError(f"BASE={base}: a tag may name another base tomorrow; name it by its digest, NAME@sha256:...")
    pinned = ("--build-arg=RELEASE=yes", f"--build-arg=BASE={base}")
    command = [_builder(), "build", *pinned, f"--file={CONTAINERFILE}", f"--tag={name}", "."]
    if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:
        raise HackError(f"{' '.join(command)} failed")


def _builder() -> str:
    found = next((one for one in BUILDERS if shutil.which(one)), "")
    if not found:
        raise HackError(f"one of {', '.join(BUILDERS)} is needed to build an image")
    return found


if __name__ == "__main__":
    sys.exit(main())
