"""What is built for others stands on a base that cannot change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hack.cache import REPOSITORY
from hack.release import CONTAINERFILE, main
from tests.support.tables import each_row

NAME = "registry.example/inquest/operator:0.1.0"
DIGEST = f"sha256:{'ab' * 32}"
PINNED = f"docker.io/library/python:3.13-slim@{DIGEST}"
LOOSE = (
    "docker.io/library/python:3.13-slim",
    "docker.io/library/python",
    "",
    f"python@{DIGEST}0",
    f"python@{DIGEST[:-1]}",
    f"python:{'ab' * 32}",
    f"python@{DIGEST} --tag",
)


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker that writes down what it was asked; it is the only program there."""
    asked, program = tmp_path / "asked", tmp_path / "docker"
    program.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "$word"; done > {asked}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return asked


@pytest.mark.parametrize("base", LOOSE)
def test_a_release_refuses_a_base_that_may_change(base: str, builder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([NAME, f"--base={base}"])

    assert code == 1
    assert "name it by its digest" in capsys.readouterr().err
    assert not builder.exists()


def test_a_release_is_built_on_the_digest_that_is_given(builder: Path) -> None:
    code = main([NAME, "--base", PINNED])

    assert code == 0
    asked = builder.read_text().splitlines()
    assert {"--build-arg=RELEASE=yes", f"--build-arg=BASE={PINNED}", f"--tag={NAME}"} <= set(asked)


def check_of_the_base() -> str:
    """The step of the Containerfile that looks at what it stands on, as a shell reads it."""
    text = (REPOSITORY / CONTAINERFILE).read_text().replace("\\\n", "")
    (step,) = [line for line in text.splitlines() if line.startswith("RUN ") and "RELEASE" in line]
    return step.removeprefix("RUN ")


@each_row(
    ("release", "base", "built"),
    [("yes", PINNED, True), ("no", LOOSE[0], True), ("no", PINNED, True), *(("yes", base, False) for base in LOOSE)],
)
def test_the_containerfile_refuses_it_too(release: str, base: str, built: bool) -> None:
    environment = {"PATH": "/usr/bin:/bin", "RELEASE": release, "BASE": base}

    done = subprocess.run(
        ["sh", "-c", check_of_the_base()], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode == 0) is built
    assert built or "named by its digest" in done.stderr
