"""A PostgreSQL of its own on loopback, from the system's packages: started, stopped, killed and started again."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from hack.ports import free_port

PACKAGES: Final = "/usr/lib/postgresql/*/bin"
UNPRIVILEGED: Final = "postgres"
LOOPBACK: Final = "127.0.0.1"


class NoPostgres(RuntimeError):
    """Why there is none here."""


@dataclass(frozen=True)
class Postgres:
    """A server; `durable` waits for the disk as in production."""

    binaries: Path
    home: Path
    port: int
    user: str | None
    durable: bool = False
    host: str = LOOPBACK

    @property
    def url(self) -> str:
        """Base URL; the name of a database follows."""
        return f"postgresql://inquest@{self.host}:{self.port}"

    def start(self) -> None:
        """Until it answers."""
        waits = [] if self.durable else ["-c", "fsync=off"]
        listen = ["-c", f"listen_addresses={self.host}", "-p", str(self.port), "-k", str(self.home)]
        self._control("-o", " ".join([*listen, *waits, "-c", "max_connections=80"]), "start")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """`fast` ends every connection; `immediate` is a crash."""
        self._control("-m", mode, "stop")

    def _control(self, *words: str) -> None:
        data, log = str(self.home / "data"), str(self.home / "log")
        _run([str(self.binaries / "pg_ctl"), "-D", data, "-w", "-l", log, *words], self.user)

    def create(self, name: str) -> str:
        """URL of a new, empty database."""
        _run([str(self.binaries / "createdb"), *self._place(), "-T", "template0", name], self.user)
        return f"{self.url}/{name}"

    def ask(self, name: str, query: str) -> str:
        """What a query of a database of it gives, without any frame."""
        return _run([str(self.binaries / "psql"), *self._place(), "-Atc", query, name], self.user)

    def _place(self) -> list[str]:
        return ["-h", self.host, "-p", str(self.port), "-U", "inquest"]


@contextmanager
def running(*, durable: bool = False, host: str = LOOPBACK) -> Iterator[Postgres]:
    """Made, started, and gone at the end; NoPostgres where the package is missing.

    With the address under which pods of a local cluster see this machine, whoever is in that cluster's network gets in.
    """
    found = sorted(glob.glob(PACKAGES))
    if not found:
        raise NoPostgres("no PostgreSQL server binaries (install the package `postgresql`)")
    home = Path(tempfile.mkdtemp(prefix="inquest-pg-"))
    server = Postgres(Path(found[-1]), home, free_port(), _drop_root(home), durable, host)
    try:
        data = ["-D", str(home / "data"), "-U", "inquest", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"]
        _run([str(server.binaries / "initdb"), *data], server.user)
        if host != LOOPBACK:
            with (home / "data" / "pg_hba.conf").open("a") as doors:
                doors.write(f"host all all {host}/16 trust\n")
        server.start()
        yield server
    finally:
        if (home / "data" / "postmaster.pid").exists():
            server.stop("immediate")
        shutil.rmtree(home, ignore_errors=True)


def _drop_root(home: Path) -> str | None:
    """PostgreSQL refuses to run as root, so root lends the directory to the package's own user."""
    if os.geteuid() != 0:
        return None
    shutil.chown(home, UNPRIVILEGED, UNPRIVILEGED)
    return UNPRIVILEGED


def _run(command: list[str], user: str | None) -> str:
    surroundings = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, user=user, cwd="/", env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise NoPostgres(f"{Path(command[0]).name}: {done.stdout.decode(errors='replace')[-500:]}")
    return done.stdout.decode(errors="replace").strip()
