"""The scripted model as a process of its own, which notes when it was asked what: `python -m benchmarks.model …`.

The script is the demo's with more looks before its verdict (`looks.yaml`), so that a case calls twenty tools, and with
a delay in every turn. What it notes is one line of JSON for each request: begin, end, case, body.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hack import HackError
from hack.scripted_model.script import Script, load
from hack.scripted_model.server import Play, application

SCRIPTS: Final = Path(__file__).resolve().parents[1] / "hack" / "scripted_model" / "scripts"
LOOKS: Final = Path(__file__).with_name("looks.yaml")
CASE: Final = re.compile(r"case-[0-9a-f]{4}-\d{3}")
"""The name of a case, which is the name of its namespace and of its workload; it stands in every prompt."""
START_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Span:
    """One request; seconds of the monotonic clock."""

    begin: float
    end: float
    case: str
    body: dict[str, Any]

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Model:
    """A running server."""

    url: str
    """Empty: nobody is told of it."""
    notes: Path
    pid: int

    def spans(self, begin: float = 0.0) -> list[Span]:
        """Every request that began since then, in order."""
        lines = self.notes.read_text().splitlines()
        found = (Span(*json.loads(line)) for line in lines)
        return sorted((span for span in found if span.begin >= begin), key=lambda span: span.begin)


def script(delay: float) -> Script:
    """The demo's case with twenty tool calls, each turn as slow as told (seconds)."""
    demo, looks = load(SCRIPTS / "oom.yaml"), load(LOOKS)
    after = [step for step in demo.steps if step.when.turn is None or "submit_result" not in step.when.offers]
    steps = [step.model_copy(update={"delay": delay}) for step in (*looks.steps, *after)]
    return demo.model_copy(update={"model": looks.model, "steps": tuple(steps)})


@contextmanager
def served(folder: Path, delay: float) -> Iterator[Model]:
    """Run it; it has ended when the block has."""
    notes = folder / "model.jsonl"
    notes.touch()
    command = [sys.executable, "-m", "benchmarks.model", "--notes", str(notes), "--delay", str(delay)]
    with (folder / "model.log").open("wb") as log, _listening() as listening:
        command += ["--fd", str(listening.fileno())]
        process = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=[listening.fileno()])
        port = listening.getsockname()[1]
    try:
        _wait_for(port, process, folder / "model.log")
        yield Model(f"http://127.0.0.1:{port}/v1", notes, process.pid)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model")
    parser.add_argument("--notes", type=Path, required=True)
    parser.add_argument("--delay", type=float, required=True)
    parser.add_argument("--fd", type=int, required=True)
    options = parser.parse_args()
    with options.notes.open("a", buffering=1) as notes:
        app = noting(application(Play(script(options.delay))), notes.write)
        config = uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False)
        uvicorn.Server(config).run([socket.socket(fileno=options.fd)])


def noting(app: ASGIApp, write: Any) -> ASGIApp:
    """The same application; a line is written after each answer."""

    async def asked(scope: Scope, receive: Receive, send: Send) -> None:
        begun, body = time.monotonic(), bytearray()

        async def heard() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        await app(scope, heard, send)
        if body:
            ended, text = time.monotonic(), body.decode()
            case = CASE.search(text)
            write(json.dumps([begun, ended, case.group() if case else "", json.loads(text)]) + "\n")

    return asked


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
                if connection.recv(16).startswith(b"HTTP/1."):
                    return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > end:
            raise HackError(f"the scripted model did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
