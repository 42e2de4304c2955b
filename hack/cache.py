"""Where the built things live: one folder outside every clone, shared by all checkouts of one user.

Sharing is what makes a second clone cheap, so everything in it is named by a hash of what it was made from, appears by
an atomic rename, and is made under a file lock.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hack import HackError

REPOSITORY = Path(__file__).resolve().parent.parent
LOCK_POLL_SECONDS = 0.1
LOG_COLUMNS = 400


def cache_folder() -> Path:
    """The shared folder; INQUEST_CACHE moves it, for example onto a disk that CI keeps between runs."""
    chosen = os.environ.get("INQUEST_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "inquest"


def hash_of(parts: Iterable[bytes]) -> str:
    """A short name for the bytes; each part is counted, so that moving a byte between two parts changes the name."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:16]


@contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock of that path; it dies with its process, so a killed holder never blocks the next one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        _wait_for_lock(handle, path, seconds)
        yield


def _wait_for_lock(handle: IO[str], path: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise HackError(f"another process has held {path} for more than {seconds:.0f} s") from None
            time.sleep(LOCK_POLL_SECONDS)


def log_tail(path: Path, lines: int = 15) -> str:
    """The end of a log, for a message that has to explain a failure by itself."""
    if not path.exists():
        return f"(no log at {path})"
    text = path.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join(f"    {line[:LOG_COLUMNS]}" for line in text)
