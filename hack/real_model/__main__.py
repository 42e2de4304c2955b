"""Make the environment of the engine where it is missing, then run the tests that need it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack import HackError
from hack.cache import REPOSITORY, cache_folder, hash_of, locked

LOCK = REPOSITORY / "requirements" / "real-model.lock"
ENGINE = Path(__file__).with_name("engine.py")
INSTALL_SECONDS = 1200


def folder() -> Path:
    """The environment, named by what is locked into it."""
    return cache_folder() / "real-model" / hash_of([LOCK.read_bytes()])


def install() -> Path:
    """The environment's Python; HackError where it cannot be made."""
    made = folder()
    ready = made / "ready"
    with locked(made.with_suffix(".lock"), seconds=INSTALL_SECONDS):
        if not ready.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(made))
            _run(
                str(made / "bin" / "pip"),
                "install",
                "--quiet",
                "--require-hashes",
                "--only-binary=:all:",
                "-r",
                str(LOCK),
            )
            ready.touch()
    return made / "bin" / "python"


def _run(*command: str) -> None:
    if subprocess.run(command, check=False, timeout=INSTALL_SECONDS).returncode:
        raise HackError(f"{' '.join(command[:3])} failed")


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """The base URL of a running engine; what it says goes into the file."""
    command = [str(install()), str(ENGINE), "--weights", str(folder() / "model.gguf")]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as engine,
    ):
        assert engine.stdout is not None
        try:
            url = engine.stdout.readline().strip()
            if not url:
                raise HackError(f"the engine did not start: {log.read_text(errors='replace')[-500:]}")
            yield url
        finally:
            engine.terminate()


def main() -> int:
    """Exit status of the tests."""
    install()
    return subprocess.run([sys.executable, "-m", "pytest", "tests/real_model", "-m", "long"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
